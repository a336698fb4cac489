//! Start and end of the server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::super::args::ServeArgs;
use super::super::output::Out;
use super::super::run::Failure;
use super::super::wiring::{self, Parts};
use super::greeting::{client_lines, pyiceberg_line};
use super::sample::{self, Laid};
use super::setup::{ICEBERG, Setup, Warehouse, add_locations, setup};
use super::warm_up::warm_up;
use crate::catalog::Catalogs;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Runtimes;
use crate::sql::Engine;
use crate::telemetry;

/// Runs `sandur serve` until SIGINT or SIGTERM.
pub(in super::super) fn serve(args: ServeArgs) -> Result<(), Failure> {
    let config = Config::load(args.config.as_deref())?;
    let setup = setup(&args, config)?;
    telemetry::init(&setup.config.log)?;
    if args.allow_insecure {
        tracing::warn!("--allow-insecure is not honoured yet: only loopback addresses are served");
    }
    Runtimes::start()?.run(run(args, setup))?
}

async fn run(args: ServeArgs, setup: Setup) -> Result<(), Failure> {
    let mut stop = StopSignals::new()?;
    let Setup { mut config, warehouse } = setup;
    let parts = Parts::new(&config)?;
    add_locations(&mut config, &args.locations, &parts.storage).await?;
    if let Some(warehouse) = &warehouse {
        prepare(warehouse, args.sample)?;
    }
    let catalogs = Arc::new(parts.catalogs(&config).await?);
    claim(&catalogs).await;
    let engine = Arc::new(parts.engine(&config, Arc::clone(&catalogs))?);
    let sample = warehouse.filter(|_| args.sample);
    if let Some(warehouse) = &sample {
        let catalog = catalogs.writable(ICEBERG)?;
        sample::register(catalog, ICEBERG, Path::new(&warehouse.iceberg)).await?;
        sample::make(&engine, catalog, ICEBERG).await?;
    }
    warm_up(&engine).await;
    let listener = bind(&config).await?;
    let address = listener
        .local_addr()
        .map_err(|e| Error::unavailable("the listener has no address").with_source(e))?;

    let shutdown = CancellationToken::new();
    let mut serving = tokio::spawn(wiring::serve(listener, Arc::clone(&engine), shutdown.clone()));
    tracing::info!(%address, catalogs = config.catalogs.len(), "listening");
    match greet(&engine, address, sample.as_ref()).await {
        // nobody reads the greeting; the server is there all the same
        Ok(()) | Err(Failure::OutputClosed) => {}
        Err(failure) => return Err(failure),
    }
    tokio::select! {
        signal = stop.next() => tracing::info!(signal, "stopping: running streams may finish"),
        ended = &mut serving => return Err(Failure::Work(ended_early(ended))),
    }
    shutdown.cancel();
    tokio::select! {
        ended = &mut serving => match ended {
            Ok(Ok(())) => tracing::info!("stopped"),
            other => return Err(Failure::Work(ended_early(other))),
        },
        signal = stop.next() => tracing::warn!(signal, "stopped at once"),
    }
    Ok(())
}

fn ended_early(ended: Result<Result<()>, tokio::task::JoinError>) -> Error {
    match ended {
        Ok(Ok(())) => Error::internal("the server ended by itself"),
        Ok(Err(e)) => e,
        Err(e) => Error::internal("the server failed").with_source(e),
    }
}

async fn bind(config: &Config) -> Result<TcpListener> {
    let listen = config.server.listen;
    TcpListener::bind(listen).await.map_err(|e| {
        Error::unavailable("cannot listen: is the address in use? --listen names another")
            .with("listen", listen)
            .with_source(e)
    })
}

/// Makes this server the writer of the catalogs that can be changed. One that another server writes is still read.
async fn claim(catalogs: &Catalogs) {
    for catalog in catalogs.iter() {
        let Some(writable) = catalog.writable() else { continue };
        if let Err(error) = writable.claim().await {
            tracing::warn!(catalog = catalog.name(), %error, "catalog is served for reading only");
        }
    }
}

/// Makes the warehouse's folders, and lays the sample tables where they are wanted.
fn prepare(warehouse: &Warehouse, with_sample: bool) -> Result<()> {
    for folder in [&warehouse.iceberg, &warehouse.delta] {
        std::fs::create_dir_all(folder).map_err(|e| {
            Error::unavailable("cannot make the warehouse")
                .with("folder", folder)
                .with_source(e)
        })?;
    }
    if !with_sample {
        return Ok(());
    }
    let carried = [(&warehouse.iceberg, sample::CARRIED), (&warehouse.delta, sample::CARRIED_DELTA)];
    for (folder, table) in carried
        .iter()
        .flat_map(|(folder, tables)| tables.iter().map(move |table| (folder, table)))
    {
        let schema = Path::new(folder.as_str()).join(sample::SCHEMA);
        match sample::lay(table, &schema)? {
            Laid::Fresh => tracing::info!(table = table.name, "sample table laid"),
            Laid::Kept => {}
            Laid::Changed => tracing::warn!(
                table = table.name,
                folder = %schema.display(),
                "sample table differs from what this program carries and is left alone; delete its folder to get it afresh"
            ),
        }
    }
    Ok(())
}

/// Prints what a person needs to go on, `ready` last. `sample`: the warehouse that has the sample tables.
async fn greet(engine: &Engine, address: SocketAddr, sample: Option<&Warehouse>) -> Result<(), Failure> {
    let mut out = Out::new();
    let mut sql = "SELECT 1";
    if sample.is_some() {
        sql = sample::QUERY;
        for (catalog, table) in sample::NAMES {
            let (live, deleted) = match sample::count(engine, catalog, table).await {
                // its absence was logged
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                counted => counted?,
            };
            out.line(&format!(
                "{:<30}{live:>5} rows, {deleted:>2} deleted",
                format!("{catalog}.{}.{table}", sample::SCHEMA)
            ))?;
        }
    }
    for line in client_lines(address, sql) {
        out.line(&line)?;
    }
    if let Some(warehouse) = sample {
        out.line(&pyiceberg_line(&warehouse.database, sample::MADE_HERE))?;
    }
    Ok(out.line("ready")?)
}

/// SIGINT and SIGTERM.
#[derive(Debug)]
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Takes the signals over from the system, which would end the process.
    fn new() -> Result<Self> {
        let take = |kind| signal(kind).map_err(|e| Error::internal("cannot handle signals").with_source(e));
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
