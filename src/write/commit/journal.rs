//! The journal of commits: what is under way, and how each ended (reliability-security.md AT-20, IC-32).
//!
//! Invariants: an entry is durable before its swap is sent; of one run the last entry decides, and a commit id
//! may have several runs; an entry that was left open stays open until its fate is proved. Closed entries are kept to answer questions about
//! them, the oldest are dropped when the journal is opened.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::known::Added;
use crate::error::{Error, Result};
use crate::iceberg::commit::JournalEntry;
use crate::io::AppendLog;
use crate::table::TableIdent;

/// Closed entries that are kept.
const KEPT: usize = 100_000;

/// A line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Open(Open),
    Close(Close),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Close {
    pub(super) commit_id: String,
    pub(super) run: String,
    /// The snapshot that the commit id became.
    pub(super) committed: Option<i64>,
    /// Filled in by the journal where the run was open before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) about: Option<About>,
}

/// Where a commit goes, and what it adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// As the table was called then.
    pub(super) table: TableIdent,
    pub(super) table_uuid: Option<String>,
    pub(super) branch: String,
    pub(super) added: Added,
}

impl About {
    /// Whether both are about one table, whatever it is called.
    fn is_same_table(&self, other: &Self) -> bool {
        match (&self.table_uuid, &other.table_uuid) {
            (None, None) => self.table == other.table,
            (own, other) => own == other,
        }
    }
}

/// A commit whose swap was or is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) catalog: String,
    pub(super) schema: String,
    pub(super) table: String,
    /// The swap gives the table its name.
    #[serde(default)]
    pub(super) creates: bool,
    pub(super) entry: JournalEntry,
    #[serde(default)]
    pub(super) added: Added,
}

impl Open {
    pub(super) fn new(ident: &TableIdent, creates: bool, entry: JournalEntry, added: Added) -> Self {
        Self {
            catalog: ident.catalog.clone(),
            schema: ident.schema.clone(),
            table: ident.table.clone(),
            creates,
            entry,
            added,
        }
    }

    fn about(&self) -> About {
        About {
            table: self.ident(),
            table_uuid: self.entry.table_uuid.clone(),
            branch: self.entry.branch.clone(),
            added: self.added,
        }
    }

    pub(super) fn ident(&self) -> TableIdent {
        TableIdent::new(&self.catalog, &self.schema, &self.table)
    }
}

/// What the journal says of a commit id on one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Noted {
    Open(Box<Open>),
    Closed { committed: Option<i64> },
}

/// The journal of one catalog.
#[derive(Debug)]
pub(super) struct Journal {
    log: AppendLog,
    notes: Mutex<Notes>,
}

/// The last line of each run, and the runs of each commit id.
#[derive(Debug, Default)]
struct Notes {
    of_run: HashMap<String, Line>,
    runs: HashMap<String, Vec<String>>,
    /// Runs in the order in which they began.
    order: Vec<String>,
}

impl Line {
    fn ids(&self) -> (&str, &str) {
        match self {
            Self::Open(open) => (&open.entry.commit_id, &open.entry.run),
            Self::Close(close) => (&close.commit_id, &close.run),
        }
    }
}

impl Notes {
    fn put(&mut self, line: Line) {
        let (commit_id, run) = line.ids();
        let (commit_id, run) = (commit_id.to_owned(), run.to_owned());
        if self.of_run.insert(run.clone(), line).is_none() {
            self.runs.entry(commit_id).or_default().push(run.clone());
            self.order.push(run);
        }
    }

    /// Forgets the oldest of the closed runs beyond [`KEPT`].
    fn forget_old(&mut self) {
        let is_closed = |of_run: &HashMap<String, Line>, run: &String| matches!(of_run.get(run), Some(Line::Close(_)));
        let closed = self.order.iter().filter(|run| is_closed(&self.of_run, run)).count();
        let mut surplus = closed.saturating_sub(KEPT);
        let order = std::mem::take(&mut self.order);
        for run in order {
            if surplus > 0 && is_closed(&self.of_run, &run) {
                surplus -= 1;
                if let Some(line) = self.of_run.remove(&run)
                    && let Some(runs) = self.runs.get_mut(line.ids().0)
                {
                    runs.retain(|other| *other != run);
                }
            } else {
                self.order.push(run);
            }
        }
    }

    fn lines(&self, commit_id: &str) -> impl Iterator<Item = &Line> {
        let runs = self.runs.get(commit_id).into_iter().flatten();
        runs.filter_map(|run| self.of_run.get(run))
    }

    fn find(&self, commit_id: &str) -> Vec<(Option<About>, Noted)> {
        let mut found: Vec<(Option<About>, Noted)> = Vec::new();
        for line in self.lines(commit_id) {
            let (about, noted) = match line {
                Line::Open(open) => (Some(open.about()), Noted::Open(Box::new(open.clone()))),
                Line::Close(Close { committed, about, .. }) => (about.clone(), Noted::Closed { committed: *committed }),
            };
            let same = |known: &Option<About>| match (known, &about) {
                (Some(known), Some(about)) => known.is_same_table(about),
                (known, about) => known.is_none() && about.is_none(),
            };
            match found.iter_mut().find(|(known, _)| same(known)) {
                None => found.push((about, noted)),
                // One run that was made outweighs all others, one that is open those that were not.
                Some((_, Noted::Closed { committed: Some(_) })) => {}
                Some(_) if noted == (Noted::Closed { committed: None }) => {}
                Some(known) => *known = (about, noted),
            }
        }
        found
    }
}

impl Journal {
    /// Opens the journal. What earlier processes left open is told by [`Self::left_open`].
    ///
    /// Errors: `Unavailable`; `Corrupt` for a line that is none of ours.
    pub(super) async fn open(path: PathBuf) -> Result<Self> {
        let (log, lines) = AppendLog::open(path).await?;
        let mut notes = Notes::default();
        for line in &lines {
            let line: Line =
                serde_json::from_str(line).map_err(|e| Error::corrupt("a line of the commit journal cannot be read").with_source(e))?;
            notes.put(line);
        }
        notes.forget_old();
        if lines.len() > notes.order.len() {
            let kept = notes.order.iter().filter_map(|run| notes.of_run.get(run));
            log.rewrite(&kept.map(text_of).collect::<Result<Vec<_>>>()?).await?;
        }
        Ok(Self {
            log,
            notes: Mutex::new(notes),
        })
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is open, as far as this process did not open it just now.
    pub(super) fn left_open(&self) -> Vec<Open> {
        let notes = self.notes();
        let open = notes.order.iter().filter_map(|run| match notes.of_run.get(run) {
            Some(Line::Open(open)) => Some(open.clone()),
            _ => None,
        });
        open.collect()
    }

    /// What is known of a commit id, once for each table that it was used on.
    pub(super) fn find(&self, commit_id: &str) -> Vec<(Option<About>, Noted)> {
        self.notes().find(commit_id)
    }

    /// Notes that a swap is about to be sent.
    ///
    /// Errors: `Unavailable`.
    pub(super) async fn note(&self, open: Open) -> Result<()> {
        self.put(Line::Open(open)).await
    }

    /// Notes how a run ended.
    ///
    /// Errors: `Unavailable`; the entry stays open then, and is found out again later.
    pub(super) async fn close(&self, mut close: Close) -> Result<()> {
        if let Some(Line::Open(open)) = self.notes().of_run.get(&close.run) {
            close.about = Some(open.about());
        }
        self.put(Line::Close(close)).await
    }

    /// The snapshot of the table of this uuid that a commit id became, whether the table still has it or not.
    pub(super) fn committed_to(&self, commit_id: &str, table_uuid: &str) -> Option<(i64, About)> {
        self.notes().lines(commit_id).find_map(|line| match line {
            Line::Close(Close { committed, about, .. }) => {
                let about = about.clone().filter(|about| about.table_uuid.as_deref() == Some(table_uuid))?;
                committed.map(|snapshot_id| (snapshot_id, about))
            }
            Line::Open(_) => None,
        })
    }

    async fn put(&self, line: Line) -> Result<()> {
        self.log.append(&text_of(&line)?).await?;
        self.notes().put(line);
        Ok(())
    }
}

fn text_of(line: &Line) -> Result<String> {
    serde_json::to_string(line).map_err(|e| Error::internal("a line of the commit journal cannot be written").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(commit_id: &str, run: &str) -> Open {
        let entry = JournalEntry {
            commit_id: commit_id.to_owned(),
            run: run.to_owned(),
            table_uuid: None,
            branch: "main".to_owned(),
            parent_snapshot_id: None,
            snapshot_id: 7,
            sequence_number: 1,
            attempt: 1,
            base: "a".to_owned(),
            new: "b".to_owned(),
        };
        Open::new(&TableIdent::new("c", "s", "t"), false, entry, Added::default())
    }

    fn close(commit_id: &str, run: &str, committed: Option<i64>) -> Close {
        Close {
            commit_id: commit_id.to_owned(),
            run: run.to_owned(),
            committed,
            about: None,
        }
    }

    fn found(journal: &Journal, commit_id: &str) -> Vec<Noted> {
        journal.find(commit_id).into_iter().map(|(_, noted)| noted).collect()
    }

    #[tokio::test]
    async fn what_was_noted_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("commits");
        let journal = Journal::open(path.clone()).await.unwrap();
        journal.note(open("x", "1")).await.unwrap();
        journal.note(open("y", "2")).await.unwrap();
        journal.close(close("y", "2", Some(7))).await.unwrap();
        journal.note(open("z", "3")).await.unwrap();
        journal.close(close("z", "3", None)).await.unwrap();
        // a commit id that was refused once and made afterwards
        journal.note(open("z", "4")).await.unwrap();
        journal.close(close("z", "4", Some(9))).await.unwrap();
        journal.close(close("w", "", None)).await.unwrap();
        for journal in [
            journal,
            Journal::open(path.clone()).await.unwrap(),
            Journal::open(path).await.unwrap(),
        ] {
            assert_eq!(found(&journal, "x"), [Noted::Open(Box::new(open("x", "1")))]);
            assert_eq!(found(&journal, "y"), [Noted::Closed { committed: Some(7) }]);
            assert_eq!(found(&journal, "z"), [Noted::Closed { committed: Some(9) }]);
            assert_eq!(found(&journal, "w"), [Noted::Closed { committed: None }]);
            assert_eq!(found(&journal, "v"), []);
            assert_eq!(journal.left_open(), [open("x", "1")]);
        }
    }
}
