//! Manifest lists and manifests.
