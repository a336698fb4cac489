//! Commits with real files and a real catalog: the engine's actions carried out, the journal, the fate of
//! commits after a restart.
//!
//! Invariants: a table's commits of one process follow one another, which spares retries and is needed for
//! nothing else (AT-15); what an earlier process left open is found out before this one commits to the table
//! (AT-20); an error says whether the change was made, was not, or may have been.

mod create;
mod driver;
mod journal;
mod known;
mod properties;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::catalog::Catalogs;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::IcebergTable;
use crate::iceberg::commit::{Change, Committed, Committer, Outcome, Reconciler, VectorsMade};
use crate::io::{Storage, TableIo, normalise};
use crate::table::{Table, TableIdent};
use crate::telemetry::QueryId;

use driver::{Driver, chance, discard};
use journal::{About, Close, Journal, Open};

pub use create::Creation;
pub use known::{Added, CommitStatus, Known};

type TableLock = Arc<tokio::sync::Mutex<()>>;

/// A table that no other commit of this process is made to.
#[derive(Debug)]
pub struct TableGuard {
    ident: TableIdent,
    _lock: tokio::sync::OwnedMutexGuard<()>,
}

/// Commits to the tables of all catalogs; one per process.
#[derive(Debug)]
pub struct Commits {
    catalogs: Arc<Catalogs>,
    storage: Arc<Storage>,
    journals: Mutex<HashMap<String, Arc<OnceCell<Journal>>>>,
    tables: Mutex<HashMap<TableIdent, TableLock>>,
}

impl Commits {
    /// Over the catalogs that statements see.
    pub fn new(catalogs: Arc<Catalogs>, storage: Arc<Storage>) -> Self {
        Self {
            catalogs,
            storage,
            journals: Mutex::default(),
            tables: Mutex::default(),
        }
    }

    /// An id for a new commit: a UUIDv7.
    pub fn new_id() -> String {
        QueryId::new().to_string()
    }

    /// The table with its newest metadata, to be written to.
    ///
    /// Errors: `NotFound`; `Unsupported` for a table or catalog that cannot be written.
    pub async fn table(&self, ident: &TableIdent) -> Result<IcebergTable> {
        // Before files are written: a process that may not commit would leave them behind.
        self.journal_of(&ident.catalog).await?;
        let table = self.catalogs.table(ident).await?;
        let table = IcebergTable::of(table.as_ref())?;
        check_in_place(table).context("table", || ident)?;
        Ok(table.clone())
    }

    /// Commits a change of a table. Where the table has the commit id already, what was written for this change is
    /// deleted, and [`Self::known`] tells what was made then.
    ///
    /// Errors: `CommitConflict` and others: the change was not made; its files are deleted where that is proved;
    /// `CommitStateUnknown`: it may have been made, [`Self::status`] tells more.
    pub async fn commit(&self, table: &IcebergTable, change: Change) -> Result<Committed> {
        self.commit_holding(table, change, None).await
    }

    /// Keeps all other commits of this process to a table waiting.
    pub async fn hold(&self, ident: &TableIdent) -> TableGuard {
        TableGuard {
            ident: ident.clone(),
            _lock: self.lock_of(ident).lock_owned().await,
        }
    }

    /// As [`Self::commit`], by who holds the table already.
    ///
    /// Errors: as [`Self::commit`].
    pub async fn commit_holding(&self, table: &IcebergTable, change: Change, guard: Option<&TableGuard>) -> Result<Committed> {
        let ident = table.ident();
        let journal = self.journal_of(&ident.catalog).await?;
        let journal = ready(&journal)?;
        let _one_at_a_time = match guard {
            Some(guard) if guard.ident == *ident => None,
            Some(_) => return Err(Error::internal("another table is held than is committed to")),
            None => Some(self.hold(ident).await),
        };
        let created = change.created.clone();
        if let Err(error) = self.settle_left_open(journal, ident, Some(table.metadata().table_uuid)).await {
            discard(table.io(), ident, &created).await;
            return Err(error);
        }
        let committed = match known_from_before(journal, table, &change.commit_id) {
            Some(known) => known,
            None => {
                let driver = Driver {
                    catalogs: &self.catalogs,
                    journal,
                    ident,
                    io: table.io().clone(),
                    creates: false,
                    unnamed: None,
                    added: Added::of_files(&change.added),
                };
                finish(&driver, change).await?
            }
        };
        // Names are fresh and nothing was sent, so no snapshot can have them.
        if committed.was_there && committed.attempts == 0 {
            discard(table.io(), ident, &created).await;
        }
        Ok(committed)
    }

    /// Takes a table's name away; its files stay.
    ///
    /// Errors: `NotFound`, `CommitStateUnknown`.
    pub async fn drop_table(&self, ident: &TableIdent) -> Result<()> {
        let catalog = self.catalogs.writable(&ident.catalog)?;
        let journal = self.journal_of(&ident.catalog).await?;
        let _one_at_a_time = self.hold(ident).await;
        self.settle_while_it_can_be(ready(&journal)?, ident).await;
        catalog.drop_table(ident).await.map(|_| ()).context("table", || ident)
    }

    /// Finds out what became of open commits to a name before it goes or stands for another table. What is not known
    /// even now stands in nobody's way: no swap of a table that is gone can become part of another one.
    async fn settle_while_it_can_be(&self, journal: &Journal, ident: &TableIdent) {
        if let Err(error) = self.settle_left_open(journal, ident, None).await {
            tracing::warn!(table = %ident, %error, "what became of a commit will stay unknown");
        }
    }

    /// Finds out what became of commits to the name that ended without an answer, of earlier processes or of callers
    /// that went away: of all, or of those to the table of a uuid. A swap that was sent to another table of the name
    /// cannot become part of this one.
    ///
    /// Errors: `Unavailable` while one of them may still be applied: a commit after it might double it.
    async fn settle_left_open(&self, journal: &Journal, ident: &TableIdent, table_uuid: Option<Option<uuid::Uuid>>) -> Result<()> {
        let table_uuid = table_uuid.map(|uuid| uuid.map(|uuid| uuid.to_string()));
        let is_meant = |open: &Open| open.ident() == *ident && table_uuid.as_ref().is_none_or(|uuid| *uuid == open.entry.table_uuid);
        for open in journal.left_open().into_iter().filter(is_meant) {
            if let Outcome::Unknown { commit_id, error } = self.reconcile(journal, &open).await? {
                let message = "it is not known yet what became of an earlier commit to the table; try again later";
                return Err(Error::unavailable(message)
                    .with("commit_id", commit_id)
                    .with("table", ident)
                    .with_source(error));
            }
        }
        Ok(())
    }

    async fn reconcile(&self, journal: &Journal, open: &Open) -> Result<Outcome> {
        let ident = open.ident();
        let io = match self.catalogs.table(&ident).await {
            Ok(table) => IcebergTable::of(table.as_ref())?.io().clone(),
            // Nothing is read or written but the table's metadata, by the catalog.
            Err(e) if e.kind() == ErrorKind::NotFound => TableIo::new(Arc::clone(&self.storage), Default::default(), [])?,
            Err(e) => return Err(e),
        };
        let driver = Driver {
            catalogs: &self.catalogs,
            journal,
            ident: &ident,
            io,
            creates: open.creates,
            unnamed: None,
            added: open.added,
        };
        let mut reconciler = Reconciler::new(open.entry.clone(), chance());
        Ok(driver.run(|event, now| reconciler.step(event, now)).await)
    }

    /// The catalog's journal, opened.
    async fn journal_of(&self, catalog: &str) -> Result<Arc<OnceCell<Journal>>> {
        let cell = {
            let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(journals.entry(catalog.to_owned()).or_default())
        };
        let writable = self.catalogs.writable(catalog)?;
        cell.get_or_try_init(|| async {
            // Of several processes one writes, so that one has the journal.
            writable.claim().await?;
            Journal::open(writable.journal_file()).await
        })
        .await
        .context("catalog", || catalog)?;
        Ok(cell)
    }

    fn lock_of(&self, ident: &TableIdent) -> TableLock {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        // Locks that nobody holds are of no use.
        if tables.len() > 10_000 {
            tables.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Arc::clone(tables.entry(ident.clone()).or_default())
    }
}

fn ready(cell: &OnceCell<Journal>) -> Result<&Journal> {
    cell.get().ok_or_else(|| Error::internal("the commit journal is not open"))
}

/// A commit that the journal knows, whose snapshot the table no longer has: its history cannot tell any more.
fn known_from_before(journal: &Journal, table: &IcebergTable, commit_id: &str) -> Option<Committed> {
    let metadata = table.metadata();
    let (snapshot_id, _) = journal.committed_to(commit_id, &metadata.table_uuid?.to_string())?;
    metadata.snapshot_by_id(snapshot_id).is_none().then(|| Committed {
        snapshot_id,
        sequence_number: 0,
        metadata_location: table.metadata_location().to_owned(),
        attempts: 0,
        was_there: true,
        vectors: VectorsMade::default(),
    })
}

/// Runs a change to its end.
async fn finish(driver: &Driver<'_>, change: Change) -> Result<Committed> {
    let commit_id = change.commit_id.clone();
    let about = About {
        table: driver.ident.clone(),
        table_uuid: change.pinned.table_uuid.map(|uuid| uuid.to_string()),
        branch: change.branch.clone(),
        added: driver.added,
    };
    let mut committer = Committer::new(change, chance());
    match driver.run(|event, now| committer.step(event, now)).await {
        Outcome::Committed(committed) => Ok(committed),
        Outcome::NotCommitted(not) => {
            // Whoever asks for the id later is told; the refusal stands without it.
            let close = Close {
                commit_id: commit_id.clone(),
                // A run of its own, so that one that went well is not forgotten.
                run: format!("refused {}", Commits::new_id()),
                committed: None,
                about: Some(about),
            };
            if let Err(error) = driver.journal.close(close).await {
                tracing::warn!(table = %driver.ident, commit_id, %error, "the journal does not say that the commit was refused");
            }
            Err(not.error.with("table", driver.ident))
        }
        Outcome::Unknown { error, .. } if error.kind() == ErrorKind::CommitStateUnknown => Err(error.with("table", driver.ident)),
        // Callers clean up after every other kind.
        Outcome::Unknown { commit_id, error } => {
            let message = "it is not known whether the commit was made";
            Err(Error::new(ErrorKind::CommitStateUnknown, message)
                .with("commit_id", commit_id)
                .with("table", driver.ident)
                .with_source(error))
        }
    }
}

/// Refuses a table that lies elsewhere than its metadata says: other writers would look for what is written
/// where it is not.
fn check_in_place(table: &IcebergTable) -> Result<()> {
    let recorded = &table.metadata().location;
    let inside = format!("{}/metadata", recorded.trim_end_matches('/'));
    if table.io().resolve(&inside)? == normalise(&inside)? {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the table was moved or copied: its metadata says that it lies at {recorded}; it can be read, not written"
    )))
}
