//! Commands and flags with their help: the only place where they are defined.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "sandur",
    version,
    about = "Apache Iceberg tables over Arrow Flight SQL, with their row-level deletes applied",
    after_help = "Exit codes: 0 fine, 1 the work failed, 2 wrong usage."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the server
    Serve(ServeArgs),
    /// Run SQL on a server
    Sql(SqlArgs),
    /// Look at a table's metadata, without a server
    #[command(subcommand)]
    Table(TableCommand),
    /// Check every rule that a table must hold, and that its files are there; reads only
    Fsck(FsckArgs),
    /// Check a configuration file and print what is in effect, secrets redacted
    CheckConfig {
        /// Configuration file (TOML)
        file: PathBuf,
    },
}

/// `sandur serve`
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Tables or folders of tables to serve, as catalog `files`
    #[arg(value_name = "LOCATION")]
    pub(super) locations: Vec<String>,
    /// Configuration file (TOML); any key also as variable, for example SANDUR__LIMITS__QUERIES
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder with the catalogs `iceberg` and `delta`, created when absent; used when nothing
    /// else is configured [default: ./warehouse]
    #[arg(long, value_name = "DIR")]
    pub(super) warehouse: Option<String>,
    /// Address and port to listen on [default: 127.0.0.1:31337]
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(super) listen: Option<SocketAddr>,
    /// Lay small sample tables with row-level deletes into the warehouse and list them
    #[arg(long)]
    pub(super) sample: bool,
    /// Allow other than loopback addresses without TLS and authentication (not honoured yet)
    #[arg(long)]
    pub(super) allow_insecure: bool,
}

/// `sandur sql`
#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    /// Server
    #[arg(long, default_value = "grpc://127.0.0.1:31337")]
    pub(super) url: String,
    /// Statement to run; several are separated by `;`
    #[arg(short = 'c', long = "command", value_name = "SQL", conflicts_with = "file")]
    pub(super) command: Option<String>,
    /// File with statements, `-` for stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
}

/// How `sandur sql` prints rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Boxes for people
    Table,
    /// With a header line
    Csv,
    /// One object a line
    Json,
    /// Arrow IPC stream, not to a terminal
    Arrow,
}

#[derive(Debug, Subcommand)]
pub(super) enum TableCommand {
    /// Format version, schema, partitioning, files and deletes of the current snapshot
    Inspect(TableArgs),
    /// Data files of the current snapshot with their deletes
    Files(TableArgs),
    /// Snapshots with their operation and counters
    History(TableArgs),
}

/// `sandur fsck`
#[derive(Debug, Args)]
pub(super) struct FsckArgs {
    /// `catalog.schema.table` of the configuration, or the table's folder or metadata file
    #[arg(value_name = "NAME|LOCATION")]
    pub(super) table: String,
    /// Configuration file with the catalogs for NAME
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// Which table.
#[derive(Debug, Args)]
pub(super) struct TableArgs {
    /// `catalog.schema.table` of the configuration, or the table's folder or metadata file
    #[arg(value_name = "NAME|LOCATION")]
    pub(super) table: String,
    /// Configuration file with the catalogs for NAME
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Print a metadata table instead, as SQL shows it: snapshots, files, entries, partitions, ..
    #[arg(long, value_name = "TABLE")]
    pub(super) metadata: Option<String>,
    /// Of this snapshot id, branch, tag or time (UTC) instead of now
    #[arg(long, value_name = "VERSION")]
    pub(super) as_of: Option<String>,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    crate::config::parse_listen(text).ok_or_else(|| "an IP address and a port such as 127.0.0.1:31337 is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
