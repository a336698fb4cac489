//! The sample tables of `sandur serve --sample`: two that other programs wrote and two that are made here.

mod carried;
mod made;

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::{FutureExt, TryStreamExt};

use crate::catalog::WritableCatalog;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{Defaults, Engine, from_datafusion};
use crate::table::{AsOf, ScanRequest, TableIdent};

pub(super) use carried::{CARRIED, CARRIED_DELTA, Laid, lay};
pub(super) use made::make;

/// The schema of the sample tables, in the warehouse's catalogs `iceberg` and `delta`.
pub(super) const SCHEMA: &str = "sample";

/// The sample tables with their catalogs, in the order in which they are listed.
pub(super) const NAMES: [(&str, &str); 4] = [
    ("iceberg", "orders"),
    ("iceberg", "customers"),
    ("iceberg", "measurements"),
    ("delta", "inventory"),
];

/// A statement that shows rows of a sample table; without quotes, see `greeting`.
pub(super) const QUERY: &str = "SELECT * FROM iceberg.sample.customers ORDER BY id LIMIT 5";

/// A table that other programs find in the catalog file and read: schema, name, and a column to sort by.
pub(super) const MADE_HERE: [&str; 3] = [SCHEMA, "orders", "order_id"];

/// Makes the schema, and names what was laid, in the catalog `name` of the warehouse `root`.
///
/// Errors: those of the catalog; none for what is there already.
pub(super) async fn register(catalog: &dyn WritableCatalog, name: &str, root: &Path) -> Result<()> {
    if all_named(catalog, name).await? {
        // Also where another server writes the catalog, and this one may not.
        return Ok(());
    }
    match catalog.create_namespace(SCHEMA, &BTreeMap::new()).await {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    carried::register(catalog, name, root).await
}

async fn all_named(catalog: &dyn WritableCatalog, name: &str) -> Result<bool> {
    for (_, table) in NAMES.into_iter().filter(|(of, _)| *of == "iceberg") {
        if catalog.pointer(&TableIdent::new(name, SCHEMA, table)).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Live rows, counted by a query, and deleted rows: those that the data files hold beyond them.
pub(in super::super) async fn count(engine: &Engine, catalog: &str, table: &str) -> Result<(u64, u64)> {
    let ident = engine.catalogs().find_table(Some(catalog), Some(SCHEMA), table).await?;
    let snapshot = engine.catalogs().table(&ident).await?.snapshot(&AsOf::Latest).await?;
    let plan = snapshot.plan_scan(&ScanRequest::default()).await?;
    let recorded: u64 = plan.tasks.iter().filter_map(|task| task.record_count).sum();

    let sql = format!("SELECT count(*) FROM {catalog}.{SCHEMA}.{table}");
    let planned = engine.plan(&sql, &Defaults::default()).boxed().await?;
    let batches: Vec<_> = engine
        .run(&planned.statement, None)
        .await?
        .try_collect()
        .await
        .map_err(from_datafusion)?;
    let live = batches
        .iter()
        .find(|batch| batch.num_rows() == 1)
        .and_then(|batch| {
            batch
                .columns()
                .first()?
                .as_primitive_opt::<Int64Type>()
                .map(|counts| counts.value(0))
        })
        .and_then(|count| u64::try_from(count).ok())
        .ok_or_else(|| Error::internal("a count gave no number").with("table", &ident))?;
    Ok((live, recorded.saturating_sub(live)))
}
