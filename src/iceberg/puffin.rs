//! Puffin files (puffin-spec): footer and blobs.
