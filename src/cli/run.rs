//! Dispatch of commands and exit codes.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use super::args::{Cli, Command};
use super::output::{Out, escape_control};
use super::{serve, sql, table};
use crate::config::Config;
use crate::error::Error;
use crate::runtime::Runtimes;

/// Why a command ends early.
#[derive(Debug)]
pub(super) enum Failure {
    /// Wrong usage; exit code 2.
    Usage(Error),
    /// The work failed; exit code 1.
    Work(Error),
    /// Who reads our output has enough; exit code 0 and no message, as with `| head`.
    OutputClosed,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Work(e)
    }
}

/// Errors of writing results.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Work(Error::unavailable("cannot write the output").with_source(e)),
        }
    }
}

/// Runs the command line of the process. Wrong flags end it with exit code 2.
pub fn main() -> ExitCode {
    let failure = match run(Cli::parse().command) {
        Ok(()) | Err(Failure::OutputClosed) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    let (error, code) = match failure {
        Failure::Usage(error) => (error, 2),
        Failure::Work(error) => (error, 1),
        Failure::OutputClosed => return ExitCode::SUCCESS,
    };
    complain(&error.to_string());
    ExitCode::from(code)
}

/// A message for the person at stderr, on one line.
pub(super) fn complain(message: &str) {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    note(&format!("error: {}", lines.join(" ")));
}

/// A line to stderr; a closed stderr is no reason to stop.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", escape_control(line, true));
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::serve(args),
        Command::Sql(args) => Runtimes::start()?.run(sql::sql(args))?,
        Command::Table(command) => Runtimes::start()?.run(table::table(command))?,
        Command::Fsck(args) => Runtimes::start()?.run(table::fsck(args))?,
        Command::CheckConfig { file } => check_config(&file),
    }
}

fn check_config(file: &Path) -> Result<(), Failure> {
    let config = Config::load(Some(file))?;
    let mut out = Out::new();
    out.data(&config.to_toml()?)?;
    Ok(out.flush()?)
}
