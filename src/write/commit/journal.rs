//! The journal of commits: what is under way, and how each ended (reliability-security.md AT-20, IC-32).
//!
//! Invariants: an entry is durable before its swap is sent; of one commit id the last entry decides; an entry
//! that was left open stays open until its fate is proved. Closed entries are kept to answer questions about
//! them, the oldest are dropped when the journal is opened.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

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
    Close { commit_id: String, committed: Option<i64> },
}

/// A commit whose swap was or is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) catalog: String,
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) entry: JournalEntry,
}

impl Open {
    pub(super) fn new(ident: &TableIdent, entry: JournalEntry) -> Self {
        Self {
            catalog: ident.catalog.clone(),
            schema: ident.schema.clone(),
            table: ident.table.clone(),
            entry,
        }
    }

    pub(super) fn ident(&self) -> TableIdent {
        TableIdent::new(&self.catalog, &self.schema, &self.table)
    }
}

/// What the journal says of a commit id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Noted {
    Open(Box<Open>),
    Closed { committed: Option<i64> },
}

/// The journal of one catalog.
#[derive(Debug)]
pub(super) struct Journal {
    log: AppendLog,
    noted: Mutex<HashMap<String, Noted>>,
}

impl Journal {
    /// Opens the journal. What earlier processes left open is told by [`Self::left_open`].
    ///
    /// Errors: `Unavailable`; `Corrupt` for a line that is none of ours.
    pub(super) async fn open(path: PathBuf) -> Result<Self> {
        let (log, lines) = AppendLog::open(path).await?;
        let mut noted = HashMap::new();
        let mut order: Vec<String> = Vec::new();
        for line in &lines {
            let line: Line =
                serde_json::from_str(line).map_err(|e| Error::corrupt("a line of the commit journal cannot be read").with_source(e))?;
            let (id, note) = match line {
                Line::Open(open) => (open.entry.commit_id.clone(), Noted::Open(Box::new(open))),
                Line::Close { commit_id, committed } => (commit_id, Noted::Closed { committed }),
            };
            if noted.insert(id.clone(), note).is_none() {
                order.push(id);
            }
        }
        let closed = noted.values().filter(|note| matches!(note, Noted::Closed { .. })).count();
        let mut surplus = closed.saturating_sub(KEPT);
        for id in order.iter().take(order.len()) {
            if surplus == 0 {
                break;
            }
            if matches!(noted.get(id), Some(Noted::Closed { .. })) {
                noted.remove(id);
                surplus -= 1;
            }
        }
        if lines.len() > noted.len() {
            let kept = order.iter().filter_map(|id| Some(line_of(id, noted.get(id)?)));
            log.rewrite(&kept.collect::<Result<Vec<_>>>()?).await?;
        }
        Ok(Self {
            log,
            noted: Mutex::new(noted),
        })
    }

    /// What is open, as far as this process did not open it just now.
    pub(super) fn left_open(&self) -> Vec<Open> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let open = noted.values().filter_map(|note| match note {
            Noted::Open(open) => Some(open.as_ref().clone()),
            Noted::Closed { .. } => None,
        });
        open.collect()
    }

    /// What is known of a commit id.
    pub(super) fn find(&self, commit_id: &str) -> Option<Noted> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get(commit_id).cloned()
    }

    /// Notes that a swap is about to be sent.
    ///
    /// Errors: `Unavailable`.
    pub(super) async fn note(&self, open: Open) -> Result<()> {
        let id = open.entry.commit_id.clone();
        self.put(id, Noted::Open(Box::new(open))).await
    }

    /// Notes how a commit ended.
    ///
    /// Errors: `Unavailable`; the entry stays open then, and is found out again later.
    pub(super) async fn close(&self, commit_id: String, committed: Option<i64>) -> Result<()> {
        self.put(commit_id, Noted::Closed { committed }).await
    }

    async fn put(&self, id: String, note: Noted) -> Result<()> {
        self.log.append(&line_of(&id, &note)?).await?;
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(id, note);
        Ok(())
    }
}

fn line_of(id: &str, note: &Noted) -> Result<String> {
    let line = match note {
        Noted::Open(open) => Line::Open(open.as_ref().clone()),
        Noted::Closed { committed } => Line::Close {
            commit_id: id.to_owned(),
            committed: *committed,
        },
    };
    serde_json::to_string(&line).map_err(|e| Error::internal("a line of the commit journal cannot be written").with_source(e))
}
