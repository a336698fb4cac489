//! The catalog seam.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::table::{Table, TableIdent};

/// One configured catalog. Schemas are namespaces; a nested namespace is one name joined with dots.
#[async_trait]
pub trait Catalog: Send + Sync + Debug {
    /// The catalog's name.
    fn name(&self) -> &str;
    /// Schema names, sorted.
    async fn list_schemas(&self) -> Result<Vec<String>>;
    /// Tables of a schema, sorted; empty for a schema that is not there.
    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>>;
    /// The table with its newest metadata. Errors: `NotFound`.
    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>>;
}

/// All configured catalogs, in order of configuration.
#[derive(Debug, Default)]
pub struct Catalogs {
    pub(crate) list: Vec<Arc<dyn Catalog>>,
}

impl Catalogs {
    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Catalog>> {
        self.list.iter()
    }
}
