//! A store and a catalog in memory, and what can go wrong between them and a committer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::Seen;
use super::chance::Chance;
use crate::error::Error;
use crate::iceberg::commit::lab::part_of;
use crate::iceberg::commit::{Action, Event, JournalEntry, Loaded, NewFile, ReadKind, SwapAnswer, WriteKind};
use crate::iceberg::spec::TableMetadata;

/// How likely faults are, in percent of the calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    pub(super) failed: u64,
    pub(super) lost_answer: u64,
    pub(super) stale: u64,
    /// The catalog can make sure that a swap is not applied any more.
    pub(super) fences: bool,
}

impl Faults {
    pub(super) const NONE: Self = Self {
        failed: 0,
        lost_answer: 0,
        stale: 0,
        fences: true,
    };
}

#[derive(Debug)]
pub(super) struct World {
    /// Files that a power cut does not take.
    pub(super) store: BTreeMap<String, Bytes>,
    /// Metadata files by location, as they are read.
    parsed: HashMap<String, Arc<TableMetadata>>,
    /// Metadata locations that the catalog named, the current one last.
    pub(super) pointers: Vec<String>,
    /// Swaps that were sent and may still arrive.
    pub(super) late: Vec<(String, String)>,
    pub(super) faults: Faults,
    pub(super) now_ms: i64,
    pub(super) seen: Seen,
    /// Everything that was ever deleted.
    pub(super) deleted: BTreeSet<String>,
}

fn unavailable(what: &str) -> Error {
    Error::unavailable(format!("the simulation made {what} fail"))
}

impl World {
    pub(super) fn new(table: TableMetadata, location: &str, faults: Faults) -> Self {
        let bytes = table.to_json_bytes();
        Self {
            store: BTreeMap::from([(location.to_owned(), bytes.into())]),
            parsed: HashMap::from([(location.to_owned(), Arc::new(table))]),
            pointers: vec![location.to_owned()],
            late: Vec::new(),
            faults,
            now_ms: 1_700_000_000_000,
            seen: Seen::default(),
            deleted: BTreeSet::new(),
        }
    }

    pub(super) fn pointer(&self) -> &str {
        self.pointers.last().unwrap()
    }

    pub(super) fn loaded(&self, location: &str) -> Loaded {
        Loaded {
            metadata: Arc::clone(&self.parsed[location]),
            location: location.to_owned(),
        }
    }

    pub(super) fn current(&self) -> Loaded {
        self.loaded(self.pointer())
    }

    fn create(&mut self, file: &NewFile) {
        assert!(
            self.store.get(&file.location).is_none_or(|old| *old == file.bytes),
            "{} is written twice",
            file.location
        );
        if file.kind == WriteKind::Metadata {
            let read = TableMetadata::from_bytes(&file.bytes, &file.location).unwrap();
            self.parsed.insert(file.location.clone(), Arc::new(read));
        }
        self.store.insert(file.location.clone(), file.bytes.clone());
    }

    fn swap(&mut self, base: &str, new: &str) -> bool {
        let applies = self.pointer() == base;
        if applies {
            assert!(self.store.contains_key(new), "{new} was made the table before it was written");
            self.pointers.push(new.to_owned());
        }
        applies
    }

    /// A swap that was on its way arrives, or never will.
    pub(super) fn deliver_late(&mut self, chance: &mut Chance) {
        if self.late.is_empty() {
            return;
        }
        let at = chance.below(self.late.len());
        let (base, new) = self.late.swap_remove(at);
        if chance.percent(50) {
            let applied = self.swap(&base, &new);
            self.seen.add(if applied { "late swap applied" } else { "late swap came too late" });
        }
    }

    /// What of an action still happens when its process dies meanwhile.
    pub(super) fn die_during(&mut self, action: &Action, chance: &mut Chance) -> Option<JournalEntry> {
        match action {
            Action::Write(files) => {
                for file in files.iter().filter(|_| chance.percent(50)) {
                    self.create(file);
                }
                self.seen.add("crash while writing");
            }
            Action::Swap { base, new } => {
                self.seen.add("crash while swapping");
                match chance.below(3) {
                    0 => {
                        self.swap(base, new);
                    }
                    1 => self.late.push((base.clone(), new.clone())),
                    _ => {}
                }
            }
            Action::Delete(files) => self.delete(files, 50, chance),
            Action::OpenJournal(entry) if chance.percent(50) => return Some(entry.clone()),
            _ => {}
        }
        None
    }

    fn delete(&mut self, files: &[String], percent: u64, chance: &mut Chance) {
        for file in files.iter().filter(|_| chance.percent(percent)) {
            self.store.remove(file);
            self.deleted.insert(file.clone());
        }
    }

    /// Does what a committer asks, as far as the faults let it. Not for the journal, and the end.
    pub(super) fn perform(&mut self, action: &Action, chance: &mut Chance) -> Event {
        self.now_ms += i64::try_from(chance.below(50)).unwrap();
        let (failed, lost) = (chance.percent(self.faults.failed), chance.percent(self.faults.lost_answer));
        match action {
            Action::Load if failed => Event::Failed(unavailable("loading")),
            Action::Load => {
                let back = if chance.percent(self.faults.stale) { chance.below(3) } else { 0 };
                let at = self.pointers.len().saturating_sub(1 + back);
                if at + 1 < self.pointers.len() {
                    self.seen.add("stale table");
                }
                let location = self.pointers[at].clone();
                Event::Loaded(self.loaded(&location))
            }
            Action::Read(_) if failed => Event::Failed(unavailable("reading")),
            Action::Read(files) => {
                let mut deletes = 0;
                let read = files.iter().map(|file| match self.store.get(&file.location) {
                    Some(bytes) => {
                        if file.kind == ReadKind::DeletionVector {
                            deletes += 1;
                        }
                        part_of(bytes, file)
                    }
                    None => panic!("{} is read and is not there", file.location),
                });
                let read = Event::Read(read.collect());
                if deletes > 0 {
                    self.seen.add("deleted beside another");
                }
                read
            }
            Action::Write(files) => {
                let percent = if failed { 50 } else { 100 };
                for file in files.iter().filter(|_| chance.percent(percent)) {
                    self.create(file);
                }
                if failed || lost {
                    Event::Failed(unavailable("writing"))
                } else {
                    Event::Done
                }
            }
            Action::Swap { base, new } => self.swap_with_faults(base, new, failed, lost, chance),
            Action::Settle { base, new } => self.settle(base, new, failed || lost),
            Action::Sleep(wait) => {
                self.now_ms += i64::try_from(wait.as_millis()).unwrap();
                Event::Done
            }
            Action::Delete(files) => {
                self.delete(files, if failed { 50 } else { 100 }, chance);
                self.seen.add("clean-up");
                if failed || lost {
                    Event::Failed(unavailable("deleting"))
                } else {
                    Event::Done
                }
            }
            other => panic!("{other:?} is no work for the store"),
        }
    }

    fn swap_with_faults(&mut self, base: &str, new: &str, failed: bool, lost: bool, chance: &mut Chance) -> Event {
        if failed {
            self.seen.add("swap refused");
            let refusals = [SwapAnswer::Conflict, SwapAnswer::Failed(unavailable("the catalog"))];
            return Event::Swapped(refusals.into_iter().nth(chance.below(2)).unwrap());
        }
        if lost {
            match chance.below(3) {
                0 => {
                    let applied = self.swap(base, new);
                    self.seen.add(if applied {
                        "lost answer of an applied swap"
                    } else {
                        "lost answer of a conflict"
                    });
                }
                1 => self.late.push((base.to_owned(), new.to_owned())),
                _ => self.seen.add("swap lost on its way"),
            }
            return match chance.percent(50) {
                true => Event::Swapped(SwapAnswer::Unknown(unavailable("the answer"))),
                false => Event::Failed(unavailable("the connection")),
            };
        }
        Event::Swapped(match self.swap(base, new) {
            true => SwapAnswer::Done,
            false => {
                self.seen.add("conflict");
                SwapAnswer::Conflict
            }
        })
    }

    fn settle(&mut self, base: &str, new: &str, failed: bool) -> Event {
        if !self.faults.fences || failed {
            return Event::Swapped(SwapAnswer::Unknown(unavailable("settling")));
        }
        self.late.retain(|late| *late != (base.to_owned(), new.to_owned()));
        let newest = self.pointers.iter().rev().take(2).any(|location| location == new);
        Event::Swapped(match newest {
            true => SwapAnswer::Done,
            false if self.pointer() == base => SwapAnswer::Failed(unavailable("the catalog")),
            false => SwapAnswer::Unknown(unavailable("settling")),
        })
    }
}
