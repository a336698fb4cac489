//! The `sandur` binary: the allocator and the exit code; everything else is `sandur::cli`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sandur::cli::main()
}
