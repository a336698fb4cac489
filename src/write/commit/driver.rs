//! Runs the commit engine with real files and a real catalog.
//!
//! Invariants: what the engine asks for is done as it is asked, and nothing else; the table is read past
//! every cache; what may have happened is told as it is, never guessed.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::journal::{Close, Journal, Open};
use super::known::Added;
use crate::catalog::{Catalogs, SwapOutcome};
use crate::crash;
use crate::error::{Error, Result};
use crate::iceberg::IcebergTable;
use crate::iceberg::commit::{Action, Event, FileToRead, Loaded, NewFile, Outcome, Random, ReadKind, SwapAnswer, WriteKind};
use crate::io::{Created, FileKind, TableIo};
use crate::table::TableIdent;

/// Largest manifest or manifest list that is read.
const READ_LIMIT: u64 = 1 << 30;

/// What the engine's actions are carried out with: one table.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    pub(super) catalogs: &'a Catalogs,
    pub(super) journal: &'a Journal,
    pub(super) ident: &'a TableIdent,
    pub(super) io: TableIo,
    /// The swap gives the table its name.
    pub(super) creates: bool,
    /// The table as it is before it has a name.
    pub(super) unnamed: Option<Loaded>,
    /// What the commit adds.
    pub(super) added: Added,
}

impl Driver<'_> {
    /// Runs to the end. `step` is the engine's.
    pub(super) async fn run(&self, mut step: impl FnMut(Event, i64) -> Action + Send) -> Outcome {
        let mut event = Event::Start;
        loop {
            let action = step(event, now_ms());
            event = match action {
                Action::Finished(outcome) => return outcome,
                other => self.act(other).await.unwrap_or_else(Event::Failed),
            };
        }
    }

    async fn act(&self, action: Action) -> Result<Event> {
        Ok(match action {
            Action::Load if self.unnamed.is_some() => self.unnamed.clone().map(Event::Loaded).ok_or_else(|| Error::internal("no table"))?,
            Action::Load => {
                let table = self.catalogs.table(self.ident).await?;
                Event::Loaded(loaded(IcebergTable::of(table.as_ref())?))
            }
            Action::Read(files) => {
                let mut read = Vec::with_capacity(files.len());
                for FileToRead { kind, location, range } in files {
                    let kind = match kind {
                        ReadKind::ManifestList => FileKind::ManifestList,
                        ReadKind::Manifest => FileKind::Manifest,
                        ReadKind::DeletionVector => FileKind::Delete,
                    };
                    let location = self.io.resolve(&location)?;
                    read.push(match range {
                        None => self.io.read(&location, kind, READ_LIMIT).await?,
                        Some(range) => {
                            let parts = self.io.read_ranges(&location, kind, &[range]).await?;
                            parts
                                .into_iter()
                                .next()
                                .ok_or_else(|| Error::internal("a range read gave nothing"))?
                        }
                    });
                }
                Event::Read(read)
            }
            Action::Write(files) => {
                for file in files {
                    self.write(file).await?;
                }
                Event::Done
            }
            Action::OpenJournal(entry) => {
                crash::point("open-journal");
                self.journal.note(Open::new(self.ident, self.creates, entry, self.added)).await?;
                crash::point("journal-open");
                Event::Done
            }
            Action::Swap { base, new } => {
                let catalog = self.catalogs.writable(&self.ident.catalog)?;
                crash::point("swap");
                let outcome = match self.creates {
                    true => catalog.create_table(self.ident, &new).await,
                    false => catalog.swap(self.ident, &base, &new).await,
                };
                crash::point("swapped");
                Event::Swapped(answer(outcome))
            }
            Action::Settle { base, new } => {
                let catalog = self.catalogs.writable(&self.ident.catalog)?;
                let base = (!self.creates).then_some(base.as_str());
                crash::point("settle");
                let outcome = catalog.resolve(self.ident, base, &new).await;
                crash::point("settled");
                Event::Swapped(answer(outcome))
            }
            Action::Sleep(time) => {
                tokio::time::sleep(time).await;
                Event::Done
            }
            Action::CloseJournal { commit_id, run, committed } => {
                crash::point("close-journal");
                let close = Close {
                    commit_id,
                    run,
                    committed,
                    about: None,
                };
                self.journal.close(close).await?;
                crash::point("journal-closed");
                Event::Done
            }
            Action::Delete(files) => {
                discard(&self.io, self.ident, &files).await;
                Event::Done
            }
            Action::Finished(_) => return Err(Error::internal("the end is no action")),
        })
    }

    async fn write(&self, file: NewFile) -> Result<()> {
        let kind = match file.kind {
            WriteKind::Vectors => FileKind::Delete,
            WriteKind::Manifest => FileKind::Manifest,
            WriteKind::ManifestList => FileKind::ManifestList,
            WriteKind::Metadata => FileKind::Metadata,
        };
        let location = self.io.resolve(&file.location)?;
        match self.io.create(&location, kind, file.bytes).await? {
            Created::Ours => Ok(()),
            Created::Absent(error) => Err(error),
            Created::Foreign => Err(Error::internal("a file of this name is there already").with("file", location)),
        }
    }
}

/// A table as the engine knows it.
pub(super) fn loaded(table: &IcebergTable) -> Loaded {
    Loaded {
        metadata: Arc::clone(table.metadata()),
        location: table.metadata_location().to_owned(),
    }
}

/// Deletes files that nothing names, as far as that goes.
pub(super) async fn discard(io: &TableIo, ident: &TableIdent, files: &[String]) {
    for file in files {
        let deleted = match io.resolve(file) {
            Ok(location) => io.delete(&location, kind_of(&location)).await.map(|_| ()),
            Err(e) => Err(e),
        };
        if let Err(error) = deleted {
            tracing::warn!(table = %ident, %error, "a file that is not needed could not be deleted");
        }
    }
}

fn kind_of(location: &str) -> FileKind {
    match location {
        list if list.contains("/snap-") => FileKind::ManifestList,
        manifest if manifest.ends_with(".avro") => FileKind::Manifest,
        metadata if metadata.contains(".metadata.json") => FileKind::Metadata,
        vectors if vectors.ends_with(".puffin") => FileKind::Delete,
        _ => FileKind::Data,
    }
}

fn answer(outcome: SwapOutcome) -> SwapAnswer {
    match outcome {
        SwapOutcome::Done => SwapAnswer::Done,
        SwapOutcome::Conflict => SwapAnswer::Conflict,
        SwapOutcome::Failed(error) => SwapAnswer::Failed(error),
        SwapOutcome::Unknown(error) => SwapAnswer::Unknown(error),
    }
}

/// Milliseconds since the epoch.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The process's own chance.
pub(super) fn chance() -> Random {
    Random::new(rand::random::<u64>)
}
