//! Runtimes and the decode pool.
