//! Changes of a table's properties, its format version among them, which make no snapshot (AT-10, IC-31, IC-34).
//!
//! Invariants: properties are set on the table as it is when the catalog takes them, never on an older state of it;
//! a metadata file is deleted only where it is proved that it was not, and never will be, the table's.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::driver::{chance, discard, loaded, now_ms};
use super::{Commits, ready};
use crate::catalog::{SwapOutcome, WritableCatalog};
use crate::crash;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::IcebergTable;
use crate::iceberg::commit::{Backoff, Loaded, Random, next_metadata_location, same_place};
use crate::iceberg::spec::{FORMAT_VERSION_PROPERTY, MetadataBuilder, MetadataCompression, TableMetadata, format_version};
use crate::io::{Created, FileKind};
use crate::table::{Table, TableIdent};

/// What is to be changed.
#[derive(Debug)]
struct Request {
    set: BTreeMap<String, String>,
    unset: Vec<String>,
    format_version: Option<u8>,
}

/// What became of one attempt.
enum Fate {
    Made,
    /// It may be tried again; the error is what is said when it is not.
    Lost(Error),
    Failed(Error),
    Unknown(Error),
}

impl Commits {
    /// Sets and removes properties of a table; `format-version` among those to be set upgrades the table. Where the
    /// table has it all already, nothing is written.
    ///
    /// Errors: `InvalidInput` for a name that is reserved, given twice or says nothing, and for a lower format
    /// version; `Unsupported` for one that is not known; `NotFound`, `CommitConflict` and others: nothing was
    /// changed; `CommitStateUnknown`: it may have been.
    pub async fn set_properties(&self, ident: &TableIdent, set: BTreeMap<String, String>, unset: Vec<String>) -> Result<()> {
        let request = Request::new(set, unset)?;
        self.change_properties(ident, &request).await.context("table", || ident)
    }

    async fn change_properties(&self, ident: &TableIdent, request: &Request) -> Result<()> {
        let catalog = self.catalogs.writable(&ident.catalog)?;
        let journal = self.journal_of(&ident.catalog).await?;
        let _one_at_a_time = self.hold(ident).await;
        let table_uuid = self.table(ident).await?.metadata().table_uuid;
        self.settle_left_open(ready(&journal)?, ident, Some(table_uuid)).await?;
        let (started_ms, mut random) = (now_ms(), chance());
        let mut number = 0;
        loop {
            number += 1;
            let table = self.table(ident).await?;
            if table.metadata().table_uuid != table_uuid {
                return Err(Error::invalid(
                    "the table was dropped and made anew since the statement began; run it again",
                ));
            }
            let Some(next) = request.applied_to(&table)? else {
                return Ok(());
            };
            let error = match self.attempt(catalog, &table, &next, &mut random).await? {
                Fate::Made => return Ok(()),
                Fate::Failed(error) | Fate::Unknown(error) => return Err(error),
                Fate::Lost(error) => error,
            };
            let backoff = Backoff::of_attempts(table.metadata())?;
            match backoff.before(number, now_ms().saturating_sub(started_ms), &mut random) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error.with("attempts", number)),
            }
        }
    }

    /// Writes the next metadata file and asks the catalog to take it.
    async fn attempt(
        &self,
        catalog: &dyn WritableCatalog,
        table: &IcebergTable,
        next: &TableMetadata,
        random: &mut Random,
    ) -> Result<Fate> {
        let (io, base) = (table.io(), table.metadata_location());
        let (new, location) = location_of(table, next)?;
        let bytes = next.to_file_bytes(MetadataCompression::of(next)?)?;
        let created = io.create(&location, FileKind::Metadata, bytes.into()).await;
        // Whatever became of the file: nobody was asked to take it.
        let created = created.map_err(|e| Error::unavailable("a metadata file cannot be written").with_source(e))?;
        match created {
            Created::Ours => {}
            Created::Absent(error) => return Err(error),
            Created::Foreign => return Err(Error::internal("a metadata file of this name is there already").with("file", location)),
        }
        crash::point("swap");
        let outcome = catalog.swap(table.ident(), base, &new).await;
        crash::point("swapped");
        let fate = match outcome {
            SwapOutcome::Unknown(cause) => return Ok(self.inquire(catalog, table, &new, cause, random).await),
            outcome => told(outcome),
        };
        if matches!(fate, Fate::Lost(_) | Fate::Failed(_)) {
            discard(io, table.ident(), &[new]).await;
        }
        Ok(fate)
    }

    /// Asks the catalog and looks at the table, several times, for what became of a swap that was not answered.
    async fn inquire(&self, catalog: &dyn WritableCatalog, table: &IcebergTable, new: &str, cause: Error, random: &mut Random) -> Fate {
        let (ident, base) = (table.ident(), table.metadata_location());
        let backoff = Backoff::of_looks(table.metadata()).unwrap_or(Backoff::LOOKS);
        let started_ms = now_ms();
        let mut looks = 0;
        loop {
            looks += 1;
            match catalog.resolve(ident, Some(base), new).await {
                SwapOutcome::Unknown(_) => {}
                outcome => {
                    let fate = told(outcome);
                    // The catalog made sure that it cannot be applied any more.
                    if matches!(fate, Fate::Lost(_) | Fate::Failed(_)) {
                        discard(table.io(), ident, &[new.to_owned()]).await;
                    }
                    return fate;
                }
            }
            if let Ok(now) = self.table(ident).await
                && now.metadata().table_uuid == table.metadata().table_uuid
                && let Some(fate) = seen(&loaded(&now), base, new)
            {
                return fate;
            }
            match backoff.before(looks, now_ms().saturating_sub(started_ms), random) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => {
                    let message = "it is not known whether the table's properties were changed; look at them before you try again";
                    return Fate::Unknown(Error::new(ErrorKind::CommitStateUnknown, message).with_source(cause));
                }
            }
        }
    }
}

fn told(outcome: SwapOutcome) -> Fate {
    match outcome {
        SwapOutcome::Done => Fate::Made,
        SwapOutcome::Conflict => Fate::Lost(overtaken()),
        SwapOutcome::Failed(error) if error.kind() == ErrorKind::Unavailable => Fate::Lost(error),
        SwapOutcome::Failed(error) => Fate::Failed(error),
        SwapOutcome::Unknown(error) => Fate::Unknown(error),
    }
}

/// What the table itself shows of a swap. One that was overtaken keeps its file: it matches again if the table is
/// turned back.
fn seen(now: &Loaded, base: &str, new: &str) -> Option<Fate> {
    if now.has_been(new) {
        return Some(Fate::Made);
    }
    let went_on = !same_place(&now.location, base) && now.has_been(base);
    went_on.then(|| Fate::Lost(overtaken()))
}

fn overtaken() -> Error {
    Error::new(ErrorKind::CommitConflict, "other commits to the table came first, time and again")
}

/// Where the next metadata file goes: as it is recorded, and resolved. A folder that the table may not write to can
/// be set like any other, and must not stand in the way of taking it back.
fn location_of(table: &IcebergTable, next: &TableMetadata) -> Result<(String, String)> {
    let compression = MetadataCompression::of(next)?;
    let id = uuid::Uuid::new_v4();
    let in_folder_of = |metadata: &TableMetadata| -> Result<(String, String)> {
        let new = next_metadata_location(metadata, table.metadata_location(), id, compression);
        let location = table.io().resolve(&new)?;
        Ok((new, location))
    };
    in_folder_of(table.metadata()).or_else(|e: Error| in_folder_of(next).map_err(|_| e))
}

impl Request {
    fn new(mut set: BTreeMap<String, String>, unset: Vec<String>) -> Result<Self> {
        if let Some(both) = unset.iter().find(|name| set.contains_key(*name)) {
            return Err(Error::invalid("a property is both set and removed").with("property", both));
        }
        let version = set.remove(FORMAT_VERSION_PROPERTY);
        Ok(Self {
            format_version: version.as_deref().map(format_version).transpose()?,
            set,
            unset,
        })
    }

    /// The table's metadata with the changes; `None` where there are none.
    fn applied_to(&self, table: &IcebergTable) -> Result<Option<TableMetadata>> {
        let metadata = table.metadata();
        let mut builder = MetadataBuilder::from_base(Arc::clone(metadata), Some(table.metadata_location()), now_ms());
        if let Some(version) = self.format_version {
            builder.upgrade_format_version(version)?;
            // Later versions require what v1 leaves open.
            if version > 1 && metadata.table_uuid.is_none() {
                builder.assign_uuid(uuid::Uuid::new_v4())?;
            }
        }
        builder.set_properties(&self.set)?;
        builder.remove_properties(self.unset.iter().map(String::as_str))?;
        if !builder.is_changed() {
            return Ok(None);
        }
        builder.build().map(Some)
    }
}
