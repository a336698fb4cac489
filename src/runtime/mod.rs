//! Threads: the decode pool beside the async runtimes.

mod decode;

pub use decode::{Cancelled, DecodePool, Job};
