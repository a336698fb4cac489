//! Runtimes and the decode pool.

mod runtimes;

pub use runtimes::Runtimes;
