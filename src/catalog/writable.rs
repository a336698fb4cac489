//! The writing side of the catalog seam: namespaces, names of tables, and the one step of a commit
//! that others see, the swap of a table's metadata location.
//!
//! Shaped so that a SQL catalog on a server and a REST catalog fit too: every call may fail, and those that
//! make something visible say exactly what is known afterwards (reliability-security.md IC-30, IC-31).
//! Names are spelled exactly, as listings give them; finding the stored spelling of a name that somebody
//! wrote is [`super::Catalog::find_table`].

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind, Result};
use crate::table::TableIdent;

/// What became of a swap or a creation. There is no other answer, and none of them is a guess.
#[derive(Debug)]
pub enum SwapOutcome {
    /// The catalog names the new metadata, or it did and a later commit came on top. Durable.
    Done,
    /// The catalog names other metadata than the base: somebody else committed. Not applied.
    Conflict,
    /// Not applied, and it never will be. The kind says why: `NotFound` (no such table or schema),
    /// `AlreadyExists` (creation), `PermissionDenied`, `InvalidInput`, `Unavailable` (may be tried again).
    Failed(Error),
    /// May or may not have been applied. Nothing that it would make visible may be deleted;
    /// [`WritableCatalog::resolve`] tells more, now or later.
    Unknown(Error),
}

impl SwapOutcome {
    /// As a result, for callers that do not tell the cases apart. Kinds: `CommitConflict`, `CommitStateUnknown`,
    /// or that of the failure.
    pub fn into_result(self) -> Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Conflict => Err(Error::new(ErrorKind::CommitConflict, "another commit to this table came first")),
            Self::Failed(e) => Err(e),
            Self::Unknown(e) if e.kind() == ErrorKind::CommitStateUnknown => Err(e),
            Self::Unknown(e) => {
                Err(Error::new(ErrorKind::CommitStateUnknown, "it is not known whether the catalog took the change").with_source(e))
            }
        }
    }
}

/// What a catalog says about a table, without reading the table's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The current metadata file as the catalog spells it.
    pub location: String,
    /// The one before, where the catalog keeps it.
    pub previous: Option<String>,
}

/// A catalog that can be changed. Metadata locations are compared as places, not as text: `file:///x` is `/x`.
///
/// A future that is dropped does not take its call back: what it was about is then as good as unknown.
#[async_trait]
pub trait WritableCatalog: Send + Sync + Debug {
    /// Makes this process the catalog's writer and prepares the catalog where it is new. Every call below
    /// does this by itself; a server does it when it starts, to know early.
    ///
    /// Errors: `PermissionDenied` when another process is, where a catalog allows for one only.
    async fn claim(&self) -> Result<()>;

    /// A file of this process's own, beside the catalog, for its journal of commits: there for whoever
    /// claims the catalog next.
    fn journal_file(&self) -> PathBuf;

    /// Creates a schema; a nested one is joined with dots and does not need its parents.
    ///
    /// Errors: `AlreadyExists`, `InvalidInput` for a name that cannot be one, `CommitStateUnknown`.
    async fn create_namespace(&self, schema: &str, properties: &BTreeMap<String, String>) -> Result<()>;

    /// Drops an empty schema.
    ///
    /// Errors: `NotFound`; `InvalidInput` when it has tables, views or schemas inside; `CommitStateUnknown`.
    async fn drop_namespace(&self, schema: &str) -> Result<()>;

    /// A schema's properties. Errors: `NotFound`.
    async fn namespace_properties(&self, schema: &str) -> Result<BTreeMap<String, String>>;

    /// Sets and removes properties of a schema in one step.
    ///
    /// Errors: `NotFound`; `InvalidInput` for a key in both; `CommitStateUnknown`.
    async fn set_namespace_properties(&self, schema: &str, set: &BTreeMap<String, String>, remove: &[String]) -> Result<()>;

    /// Where a new table of this name should lie: a folder that holds nothing yet, as a URI or absolute path.
    ///
    /// Errors: `NotFound` for the schema.
    async fn new_location(&self, ident: &TableIdent) -> Result<String>;

    /// Whether files of a new table of this name may lie below a location, before anything is written there.
    ///
    /// Errors: `PermissionDenied` outside of the catalog's folders; `InvalidInput` for what is no path, for a folder
    /// around one of these, and for one that lies in another table's or holds it.
    async fn check_location(&self, ident: &TableIdent, location: &str) -> Result<()>;

    /// What the catalog says about a table now; `None` when there is no such table.
    async fn pointer(&self, ident: &TableIdent) -> Result<Option<Pointer>>;

    /// Gives a name to a table whose metadata file is written. [`SwapOutcome::Done`] also when the name
    /// has exactly this location already; never [`SwapOutcome::Conflict`].
    async fn create_table(&self, ident: &TableIdent, metadata_location: &str) -> SwapOutcome;

    /// Takes a name away and gives the location it stood for. No file is touched.
    ///
    /// Errors: `NotFound`, `CommitStateUnknown`.
    async fn drop_table(&self, ident: &TableIdent) -> Result<String>;

    /// Gives a table another name, maybe in another schema of the same catalog. No file is touched.
    ///
    /// Errors: `NotFound` for the table or the new schema, `AlreadyExists`, `CommitStateUnknown`.
    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()>;

    /// Makes `new` the table's metadata if it still is `base`: the commit itself. Sending one swap again
    /// is safe: [`SwapOutcome::Done`] when it was applied before.
    async fn swap(&self, ident: &TableIdent, base: &str, new: &str) -> SwapOutcome;

    /// Tells what became of a swap whose outcome was unknown, by making sure that it cannot be applied any more
    /// before looking. `base` is `None` for a creation. Stays [`SwapOutcome::Unknown`] where the catalog alone
    /// cannot tell; the metadata log of the current table may.
    async fn resolve(&self, ident: &TableIdent, base: Option<&str>, new: &str) -> SwapOutcome;
}
