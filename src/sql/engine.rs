//! The engine: one per process.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;

use crate::catalog::Catalogs;
use crate::error::{Error, Result};
use crate::table::TableIdent;

/// Session defaults that names are resolved against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    pub catalog: Option<String>,
    pub schema: Option<String>,
}

/// A table as a statement sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub table: TableIdent,
    /// Metadata file that was current when the statement was planned.
    pub metadata_location: String,
    /// `None` for a table without snapshot.
    pub snapshot_id: Option<i64>,
}

/// A statement with its tables pinned: all that is needed to run it on any replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    pub defaults: Defaults,
    pub pins: Vec<Pin>,
}

/// A placeholder of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// `1`, `2`, ... for `?` and `$1`; the name for `$name`.
    pub name: String,
    /// Inferred; `Utf8` where nothing says otherwise; integers are `Int64`.
    pub data_type: DataType,
}

/// A planned statement.
#[derive(Debug, Clone)]
pub struct Planned {
    pub statement: Statement,
    /// Schema of the result as the engine computes it (the wire schema is the server's affair).
    pub schema: SchemaRef,
    pub parameters: Vec<Parameter>,
}

/// Plans and runs statements.
#[derive(Debug)]
pub struct Engine {
    catalogs: Arc<Catalogs>,
}

impl Engine {
    /// The catalogs that statements see.
    pub fn catalogs(&self) -> &Arc<Catalogs> {
        &self.catalogs
    }

    /// Parses, checks and plans; reads metadata, runs nothing.
    pub async fn plan(&self, _sql: &str, _defaults: &Defaults) -> Result<Planned> {
        Err(Error::internal("not built"))
    }

    /// Runs a statement on its pinned snapshots. `parameters`: a batch with one column per
    /// placeholder and one row per execution; the results of the rows follow one another.
    /// Dropping the stream stops the query.
    pub async fn run(&self, _statement: &Statement, _parameters: Option<&RecordBatch>) -> Result<SendableRecordBatchStream> {
        Err(Error::internal("not built"))
    }
}
