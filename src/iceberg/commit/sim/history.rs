//! One history: servers with a journal each run statements side by side, one step at a time in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Seen;
use super::chance::Chance;
use super::check;
use super::world::{Faults, World};
use crate::bitmap::RowSet;
use crate::iceberg::avro::Codec;
use crate::iceberg::commit::{Action, Change, Check, Committer, Event, JournalEntry, Operation, Outcome, Reconciler, VectorRows};
use crate::iceberg::manifest::{DataFile, FileContent, FileFormat};
use crate::iceberg::spec::{MetadataBuilder, NewTable, PREVIOUS_VERSIONS_MAX_PROPERTY, StructType, TableMetadata};
use crate::table::Predicate;

/// What must have happened in some history of a full run.
pub(super) const RARE: &[&str] = &[
    "acknowledged",
    "clean-up",
    "commit id sent again",
    "commit id was there",
    "conflict",
    "crash while swapping",
    "crash while writing",
    "crashed",
    "deleted",
    "deleted beside another",
    "late swap applied",
    "late swap came too late",
    "lost answer of a conflict",
    "lost answer of an applied swap",
    "not committed",
    "reconciled as committed",
    "reconciled as not committed",
    "stale table",
    "swap lost on its way",
    "swap refused",
    "unknown",
];

/// What a client knows of a commit id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing yet, or the server died.
    Nothing,
    Committed(i64),
    NotCommitted,
    Unknown,
}

/// A statement under a commit id: an append of one file, or a delete of one row of a file that is there.
#[derive(Debug)]
struct Task {
    commit_id: String,
    /// The file that is added.
    file: Option<String>,
    /// The row that is deleted.
    row: Option<(String, u64)>,
    server: usize,
    committer: Box<Committer>,
    action: Option<Action>,
}

#[derive(Debug, Default)]
struct Server {
    /// Open entries by run, the last of each.
    journal: BTreeMap<String, JournalEntry>,
}

/// What was said of single runs, by the file that each would add.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) applied: BTreeSet<String>,
    pub(super) refused: BTreeSet<String>,
    /// Rows that are surely deleted.
    pub(super) deleted: BTreeSet<(String, u64)>,
    /// Rows that may be deleted: somebody asked for it.
    pub(super) asked: BTreeSet<(String, u64)>,
    /// Snapshots of which a restarted server found that they were not committed.
    pub(super) lost: BTreeSet<i64>,
}

#[derive(Debug)]
pub(super) struct History {
    chance: Chance,
    world: World,
    servers: Vec<Server>,
    tasks: Vec<Task>,
    facts: Facts,
    known: BTreeMap<String, Known>,
    /// Statements that are still to come.
    left: usize,
    files: usize,
    skipped: Option<Check>,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) seen: Seen,
}

fn table(chance: &mut Chance) -> TableMetadata {
    let mut properties = BTreeMap::from([("commit.retry.num-retries".to_owned(), (1 + chance.below(4)).to_string())]);
    if chance.percent(30) {
        properties.insert(PREVIOUS_VERSIONS_MAX_PROPERTY.to_owned(), (1 + chance.below(2)).to_string());
    }
    let request = NewTable {
        format_version: 1 + u8::try_from(chance.below(3)).unwrap(),
        uuid: uuid::uuid!("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
        location: "file:/t".to_owned(),
        schema: StructType::default(),
        identifier_field_ids: Vec::new(),
        partition_fields: Vec::new(),
        sort_fields: Vec::new(),
        properties,
    };
    MetadataBuilder::new_table(request, 1_600_000_000_000).unwrap().build().unwrap()
}

/// Rows of each file.
pub(super) const ROWS: u64 = 4;

/// A file of a commit id.
pub(super) fn file(path: &str) -> DataFile {
    DataFile {
        record_count: ROWS,
        file_size_in_bytes: 100,
        ..DataFile::new(FileContent::Data, path, FileFormat::Parquet, 0, Arc::from([]))
    }
}

impl History {
    pub(super) fn new(mut chance: Chance, skipped: Option<Check>) -> Self {
        let faults = Faults {
            failed: [0, 5, 15][chance.below(3)],
            lost_answer: [0, 10, 30][chance.below(3)],
            stale: [0, 20][chance.below(2)],
            fences: chance.percent(50),
        };
        let table = table(&mut chance);
        let servers = 1 + chance.below(3);
        Self {
            world: World::new(table, "file:/t/metadata/00000-start.metadata.json", faults),
            servers: (0..servers).map(|_| Server::default()).collect(),
            tasks: Vec::new(),
            facts: Facts::default(),
            known: BTreeMap::new(),
            left: 2 + chance.below(3),
            files: 0,
            skipped,
            chance,
        }
    }

    pub(super) fn run(mut self) -> Ended {
        let mut steps = 0;
        while self.left > 0 || !self.tasks.is_empty() {
            steps += 1;
            assert!(steps < 5_000, "the history does not end");
            match self.chance.below(20) {
                0..=3 if self.left > 0 => self.begin(),
                4 if self.chance.percent(30) => self.crash(),
                5 => self.world.deliver_late(&mut self.chance),
                _ if self.tasks.is_empty() => self.begin(),
                _ => {
                    let at = self.chance.below(self.tasks.len());
                    self.advance(at);
                }
            }
        }
        self.heal();
        check::all(&self.world, &self.known, &self.facts);
        Ended { seen: self.world.seen }
    }

    fn begin(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        // A client that does not know may send its statement again.
        let again: Vec<&String> = self
            .known
            .iter()
            .filter(|(_, known)| !matches!(known, Known::Committed(_)))
            .map(|(id, _)| id)
            .collect();
        let commit_id = match again.is_empty() || self.chance.percent(60) {
            true => String::new(),
            false => {
                self.world.seen.add("commit id sent again");
                again[self.chance.below(again.len())].clone()
            }
        };
        let commit_id = if commit_id.is_empty() { self.new_id() } else { commit_id };
        self.known.entry(commit_id.clone()).or_insert(Known::Nothing);
        let server = self.chance.below(self.servers.len());
        if commit_id.starts_with("row-") {
            return self.delete(commit_id, server);
        }
        self.start(commit_id, server);
    }

    /// A commit id of a delete tells which row of which file it deletes, so that one that is sent again is the same.
    fn new_id(&mut self) -> String {
        let number = self.known.len();
        let live = check::live(&self.world);
        if self.world.current().metadata.format_version < 3 || live.is_empty() || self.chance.percent(50) {
            return format!("id-{number}");
        }
        let at = self.chance.below(live.len());
        format!("row-{number}:{}:{}", self.chance.below(ROWS as usize), live[at])
    }

    /// Deletes one row by a vector that is made at the commit.
    fn delete(&mut self, commit_id: String, server: usize) {
        let mut parts = commit_id.splitn(3, ':').skip(1);
        let row: u64 = parts.next().unwrap().parse().unwrap();
        let path = parts.next().unwrap().to_owned();
        let pinned = self.world.current().metadata;
        let (base, vector) = check::vector(&self.world, &path);
        self.facts.asked.insert((path.clone(), row));
        let mut change = Change::new(Operation::DeleteRows, pinned, commit_id.clone());
        change.filter = Predicate::False;
        change.counted = Some(0);
        change.vector_folder = "file:/t/data".to_owned();
        change.referenced = vec![path.clone()];
        change.vectors = vec![VectorRows {
            data_file: path.clone(),
            spec_id: 0,
            partition: Arc::from([]),
            record_count: ROWS,
            rows: Arc::new(RowSet::from_iter([row].into_iter().filter(|row| !base.contains(*row)))),
            base: Arc::new(base),
            vector,
            folded: Vec::new(),
        }];
        self.put(commit_id, None, Some((path, row)), server, change);
    }

    fn put(&mut self, commit_id: String, file: Option<String>, row: Option<(String, u64)>, server: usize, change: Change) {
        let mut committer = Box::new(self.committer(change));
        let action = committer.step(Event::Start, self.world.now_ms);
        self.tasks.push(Task {
            commit_id,
            file,
            row,
            server,
            committer,
            action: Some(action),
        });
    }

    fn start(&mut self, commit_id: String, server: usize) {
        self.files += 1;
        let path = format!("file:/t/data/{commit_id}/{}.parquet", self.files);
        self.world.store.insert(path.clone(), bytes::Bytes::from_static(b"row"));
        let pinned = self.world.current().metadata;
        let change = Change::append(pinned, commit_id.clone(), vec![file(&path)]);
        self.put(commit_id, Some(path), None, server, change);
    }

    fn committer(&mut self, change: Change) -> Committer {
        let committer = Committer::with_codec(change, Codec::Null, self.chance.source());
        match self.skipped {
            Some(check) => committer.without(check),
            None => committer,
        }
    }

    fn advance(&mut self, at: usize) {
        let action = self.tasks[at].action.take().unwrap();
        let server = self.tasks[at].server;
        let event = match action {
            Action::Finished(outcome) => {
                let task = self.tasks.swap_remove(at);
                return self.told(&task, &outcome);
            }
            Action::OpenJournal(entry) => {
                if self.chance.percent(self.world.faults.failed) {
                    Event::Failed(crate::error::Error::unavailable("the journal is full"))
                } else {
                    self.servers[server].journal.insert(entry.run.clone(), entry);
                    Event::Done
                }
            }
            Action::CloseJournal { run, .. } => {
                self.servers[server].journal.remove(&run);
                Event::Done
            }
            action => self.world.perform(&action, &mut self.chance),
        };
        let now = self.world.now_ms;
        let task = &mut self.tasks[at];
        task.action = Some(task.committer.step(event, now));
    }

    /// The client gets an answer.
    fn told(&mut self, task: &Task, outcome: &Outcome) {
        let known = match outcome {
            Outcome::Committed(committed) => {
                self.world.seen.add("acknowledged");
                if committed.was_there {
                    self.world.seen.add("commit id was there");
                } else if let Some(row) = &task.row {
                    self.world.seen.add("deleted");
                    self.facts.deleted.insert(row.clone());
                } else {
                    self.facts.applied.extend(task.file.clone());
                }
                Known::Committed(committed.snapshot_id)
            }
            Outcome::NotCommitted(_) => {
                self.world.seen.add("not committed");
                self.facts.refused.extend(task.file.clone());
                Known::NotCommitted
            }
            Outcome::Unknown { .. } => {
                self.world.seen.add("unknown");
                Known::Unknown
            }
        };
        self.learn(&task.commit_id, known);
    }

    /// Of several runs under one id, one that committed decides; one that did not says nothing of the others.
    fn learn(&mut self, commit_id: &str, new: Known) {
        let known = self.known.get_mut(commit_id).unwrap();
        match (*known, new) {
            (Known::Committed(a), Known::Committed(b)) => assert_eq!(a, b, "{commit_id} is committed as two snapshots"),
            (Known::Committed(_), _) => {}
            (_, new) => *known = new,
        }
    }

    /// A server dies with all that it was doing, and comes back.
    fn crash(&mut self) {
        let server = self.chance.below(self.servers.len());
        self.world.seen.add("crashed");
        let mut at = 0;
        while at < self.tasks.len() {
            if self.tasks[at].server != server {
                at += 1;
                continue;
            }
            let task = self.tasks.swap_remove(at);
            if let Some(action) = &task.action
                && let Some(entry) = self.world.die_during(action, &mut self.chance)
            {
                self.servers[server].journal.insert(entry.run.clone(), entry);
            }
            let is_known = self.servers[server].journal.contains_key(&task.committer.run());
            let is_ending = matches!(task.action, Some(Action::Finished(_) | Action::Delete(_) | Action::Load));
            if !is_known && !is_ending {
                // What is not in the journal was never sent.
                self.facts.refused.extend(task.file);
            }
        }
        self.reconcile(server);
    }

    /// Before a server writes again it finds out what became of the commits that it left open.
    fn reconcile(&mut self, server: usize) {
        let open: Vec<JournalEntry> = self.servers[server].journal.values().cloned().collect();
        for entry in open {
            let (commit_id, snapshot_id) = (entry.commit_id.clone(), entry.snapshot_id);
            let mut reconciler = Reconciler::new(entry, self.chance.source());
            let mut event = Event::Start;
            loop {
                event = match reconciler.step(event, self.world.now_ms) {
                    Action::Finished(outcome) => {
                        let known = match outcome {
                            Outcome::Committed(committed) => {
                                self.world.seen.add("reconciled as committed");
                                Known::Committed(committed.snapshot_id)
                            }
                            Outcome::NotCommitted(_) => {
                                self.world.seen.add("reconciled as not committed");
                                self.facts.lost.insert(snapshot_id);
                                Known::NotCommitted
                            }
                            Outcome::Unknown { .. } => Known::Unknown,
                        };
                        self.learn(&commit_id, known);
                        break;
                    }
                    Action::CloseJournal { run, .. } => {
                        self.servers[server].journal.remove(&run);
                        Event::Done
                    }
                    action => self.world.perform(&action, &mut self.chance),
                };
            }
        }
    }

    /// Nothing fails any more: the next commit succeeds, and every id finds its fate.
    fn heal(&mut self) {
        self.world.faults = Faults {
            fences: self.world.faults.fences,
            ..Faults::NONE
        };
        while !self.world.late.is_empty() {
            self.world.deliver_late(&mut self.chance);
        }
        let last = "last".to_owned();
        self.known.insert(last.clone(), Known::Nothing);
        self.start(last, 0);
        let mut steps = 0;
        while !self.tasks.is_empty() {
            self.advance(0);
            steps += 1;
            assert!(steps < 100, "a commit without faults does not end");
        }
        assert!(
            matches!(self.known["last"], Known::Committed(_)),
            "a commit without faults ends as {:?}",
            self.known["last"]
        );
        for server in 0..self.servers.len() {
            self.reconcile(server);
            assert!(
                self.servers[server].journal.is_empty(),
                "the fate of {:?} stays open",
                self.servers[server].journal
            );
        }
    }
}
