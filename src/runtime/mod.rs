//! Threads: the async runtime and the decode pool beside it.

mod decode;
mod runtimes;

pub use decode::{Cancelled, DecodePool, Job};
pub use runtimes::Runtimes;
