//! The sample tables that this program makes itself, by the statements in `sample/*.sql`.
//!
//! Invariants: a table is made with its rows in one commit, so it is there as a whole or not at all; rows that are
//! deleted of it afterwards are missing in nothing that is told of it; a name that is taken is left as it is.

use crate::catalog::WritableCatalog;
use crate::error::Result;
use crate::sql::{Defaults, Engine, With};
use crate::table::TableIdent;

use super::SCHEMA;

/// Names, and statements that make the tables.
const MADE: [(&str, &[&str]); 2] = [
    ("orders", &[include_str!("../../../../sample/orders.sql")]),
    (
        "measurements",
        &[
            include_str!("../../../../sample/measurements.sql"),
            include_str!("../../../../sample/measurements_deletes.sql"),
        ],
    ),
];

/// Makes the tables that are not there. One that cannot be made, because another server writes the catalog, is logged.
///
/// Errors: those of asking the catalog.
pub(in super::super) async fn make(engine: &Engine, catalog: &dyn WritableCatalog, name: &str) -> Result<()> {
    for (table, statements) in MADE {
        let ident = TableIdent::new(name, SCHEMA, table);
        if catalog.pointer(&ident).await?.is_some() {
            continue;
        }
        for statement in statements {
            match engine.change(statement, &Defaults::default(), With::default()).await {
                Ok(done) => tracing::info!(table = %ident, verb = done.verb, "sample table made"),
                Err(error) => {
                    tracing::warn!(table = %ident, %error, "sample table could not be made");
                    break;
                }
            }
        }
    }
    Ok(())
}
