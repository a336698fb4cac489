//! Random histories of all operations, planned on what was current then and committed later, replayed
//! on a model of rows. They find nothing; without any one of the checks they do (IT-2).

use std::collections::BTreeMap;

use super::lab::{Lab, Model, Planned, Region};
use super::sim::Chance;
use super::{Check, Outcome};
use crate::iceberg::spec::{MAIN_BRANCH, SnapshotRef};

/// Histories in which each missing check must be noticed.
const HISTORIES: u64 = 400;

/// A statement that was planned and is not committed yet.
#[derive(Debug, Clone)]
struct Statement {
    planned: Planned,
    /// It must not be committed, whatever happened meanwhile.
    is_wrong: bool,
    /// A DELETE that tells how many rows it deleted, of this region.
    counts: Option<Region>,
}

struct History {
    chance: Chance,
    lab: Lab,
    model: Model,
    /// The rows at each snapshot.
    models: BTreeMap<i64, Model>,
    pending: Vec<Statement>,
    committed_appends: Vec<String>,
    skipped: Option<Check>,
}

impl History {
    fn new(seed: u64, skipped: Option<Check>) -> Self {
        let mut chance = Chance::new(seed);
        let lab = Lab::new(if chance.percent(50) { 2 } else { 3 });
        Self {
            chance,
            lab,
            model: Model::default(),
            models: BTreeMap::new(),
            pending: Vec::new(),
            committed_appends: Vec::new(),
            skipped,
        }
    }

    fn run(mut self) -> Result<(u64, u64), String> {
        let (mut committed, mut refused) = (0, 0);
        for _ in 0..3 {
            let planned = self.append();
            self.commit(Statement {
                planned,
                is_wrong: false,
                counts: None,
            })?;
        }
        for _ in 0..14 {
            match self.chance.below(10) {
                0..=3 => self.plan(),
                4 if self.chance.percent(15) => self.turn_back(),
                _ if self.pending.is_empty() => self.plan(),
                _ => {
                    let at = self.chance.below(self.pending.len());
                    let statement = self.pending.swap_remove(at);
                    match self.commit(statement)? {
                        true => committed += 1,
                        false => refused += 1,
                    }
                }
            }
        }
        Ok((committed, refused))
    }

    fn region(&mut self) -> Region {
        let p = 1 + i32::try_from(self.chance.below(2)).unwrap();
        let low = [1, 1, 4, 7][self.chance.below(4)];
        let high = low + [2, 5][self.chance.below(2)];
        Region { p, low, high }
    }

    /// Three numbers beginning at one of a few places, so that regions hold whole files and parts of them.
    fn xs(&mut self) -> Vec<i64> {
        let low = [1, 4, 7][self.chance.below(3)];
        vec![low, low + 1, low + 2]
    }

    fn append(&mut self) -> Planned {
        let (p, xs) = (1 + i32::try_from(self.chance.below(2)).unwrap(), self.xs());
        let rows = self.lab.rows(p, &xs);
        self.lab.append(rows)
    }

    fn plan(&mut self) {
        let view = self.lab.view();
        let region = self.region();
        let (mut is_wrong, mut counts) = (false, None);
        let in_region: Vec<String> = view
            .files
            .iter()
            .filter(|file| file.visible().any(|(_, row)| region.has(row)))
            .map(|file| file.path.clone())
            .collect();
        let some_file = (!view.files.is_empty()).then(|| view.files[self.chance.below(view.files.len().max(1))].clone());
        let planned = match (self.chance.below(14), some_file) {
            (0, _) => Some(self.append()),
            (1, Some(file)) => Some(self.lab.delete_file(&view, &file.path)),
            (2, _) => Some(self.lab.delete_where(region)),
            (3, _) => self.rows_of(&view, region, &in_region, false, false),
            (4 | 12 | 13, _) => {
                counts = Some(region);
                self.counted_rows_of(&view, region, &in_region)
            }
            (5 | 6, _) => self.rows_of(&view, region, &in_region, true, false),
            (7, _) => {
                let updates = self.chance.percent(50);
                self.rows_of(&view, region, &in_region, updates, true)
            }
            (8, Some(file)) => {
                let other = view.files.iter().find(|other| other.p == file.p && other.path != file.path);
                let paths: Vec<&str> = [Some(&file), other].into_iter().flatten().map(|file| file.path.as_str()).collect();
                let keeps_age = self.chance.percent(50);
                Some(self.lab.compact(&view, &paths, keeps_age))
            }
            (9, Some(file)) => match file.deletes.is_empty() {
                true => Some(self.lab.rewrite_manifests(&view)),
                false => Some(self.lab.compact_deletes(&view, &file.path)),
            },
            (10, _) => {
                let row = self.lab.rows(region.p, &[region.low]).remove(0);
                Some(self.lab.upsert(row))
            }
            _ => self.overwrite(&view, region, &mut is_wrong),
        };
        if let Some(planned) = planned {
            self.pending.push(Statement { planned, is_wrong, counts });
        }
    }

    /// DELETE of the rows in the region that tells how many these are.
    fn counted_rows_of(&mut self, view: &super::lab::View, region: Region, paths: &[String]) -> Option<Planned> {
        let mut all: Option<Planned> = None;
        for path in paths {
            let hit = view.file(path).visible().filter(|(_, row)| region.has(row));
            let positions: Vec<usize> = hit.map(|(position, _)| position).collect();
            let one = self.lab.delete_counted(view, region, path, &positions);
            match &mut all {
                None => all = Some(one),
                Some(all) => {
                    all.change.added.extend(one.change.added);
                    all.change.removed.extend(one.change.removed);
                    all.change.vectors.extend(one.change.vectors);
                    all.change.referenced.extend(one.change.referenced);
                    all.effect.removes.extend(one.effect.removes);
                }
            }
        }
        all
    }

    /// DELETE or UPDATE of the rows in the region, by delete files or by writing files anew.
    fn rows_of(&mut self, view: &super::lab::View, region: Region, paths: &[String], updates: bool, rewrites: bool) -> Option<Planned> {
        let mut all: Option<Planned> = None;
        let mut pairs = Vec::new();
        for path in paths {
            let hit: Vec<_> = view.file(path).visible().filter(|(_, row)| region.has(row)).collect();
            let positions: Vec<usize> = hit.iter().map(|(position, _)| *position).collect();
            let xs: Vec<i64> = hit.iter().map(|(_, row)| row.x).collect();
            let new = if updates { self.lab.rows(region.p, &xs) } else { Vec::new() };
            pairs.extend(hit.iter().zip(&new).map(|((_, old), new)| (old.name.clone(), new.clone())));
            let one = match rewrites {
                true => self.lab.copy_on_write(view, region, path, &positions, new),
                false => self.lab.delete_rows(view, region, path, &positions, new),
            };
            match &mut all {
                None => all = Some(one),
                Some(all) => {
                    all.change.added.extend(one.change.added);
                    all.change.removed.extend(one.change.removed);
                    all.change.referenced.extend(one.change.referenced);
                }
            }
        }
        let mut all = all?;
        all.effect.removes.clear();
        all.effect.adds.clear();
        all.effect.clears = Some(region);
        all.effect.updates = pairs;
        Some(all)
    }

    /// INSERT OVERWRITE of rows that come of those in the region or partition.
    fn overwrite(&mut self, view: &super::lab::View, region: Region, is_wrong: &mut bool) -> Option<Planned> {
        let whole = self.chance.percent(50);
        let scope = if whole { Region::partition(region.p) } else { region };
        let old: Vec<_> = view
            .files
            .iter()
            .flat_map(|file| file.visible())
            .map(|(_, row)| row)
            .filter(|row| scope.has(row))
            .collect();
        if old.is_empty() {
            return None;
        }
        let mut xs: Vec<i64> = old.iter().map(|row| row.x).collect();
        if !whole && self.chance.percent(30) {
            *is_wrong = true;
            xs[0] = region.high + 1;
        }
        let new = self.lab.rows(region.p, &xs);
        let pairs = old.iter().zip(&new).map(|(old, new)| (old.name.clone(), new.clone())).collect();
        let mut planned = match whole {
            true => self.lab.overwrite_partition(new),
            false => self.lab.overwrite_where(region, new),
        };
        planned.effect.adds.clear();
        planned.effect.updates = pairs;
        Some(planned)
    }

    /// Commits, and compares the table with the model. Whether it was committed.
    fn commit(&mut self, statement: Statement) -> Result<bool, String> {
        let mut change = statement.planned.change;
        let is_append = change.operation == super::Operation::Append;
        let mut is_again = false;
        if is_append && !self.committed_appends.is_empty() && self.chance.percent(30) {
            change.commit_id = self.committed_appends[self.chance.below(self.committed_appends.len())].clone();
            is_again = true;
        }
        let (id, name) = (change.commit_id.clone(), format!("{:?}", change.operation));
        let merges = !change.vectors.is_empty();
        let outcome = self.lab.commit(change, self.skipped);
        let committed = match outcome {
            Outcome::Committed(committed) => {
                if statement.is_wrong {
                    return Err(format!("{name} was committed with rows outside of its filter"));
                }
                if let Some(region) = statement.counts {
                    let there = self.model.0.values().filter(|row| region.has(row)).count() as u64;
                    let found = statement.planned.effect.removes.len() as u64;
                    let told = if merges { committed.vectors.newly_deleted } else { found };
                    if told != there {
                        return Err(format!("{name} says that it deleted {told} rows, there were {there}"));
                    }
                }
                if !committed.was_there {
                    self.model.apply(&statement.planned.effect);
                    if is_again {
                        return Err(format!("commit id {id} was applied twice"));
                    }
                    if is_append {
                        self.committed_appends.push(id);
                    }
                }
                true
            }
            Outcome::NotCommitted(_) => false,
            other @ Outcome::Unknown { .. } => return Err(format!("{other:?}")),
        };
        let rows = self.lab.view().model()?;
        if rows != self.model {
            return Err(format!("after {name} there are {:?}, not {:?}", rows.0.keys(), self.model.0.keys()));
        }
        if let Some(finding) = self.lab.findings().first() {
            return Err(format!("after {name}: {finding}"));
        }
        if let Some(id) = self.lab.now.metadata.current_snapshot_id {
            self.models.insert(id, self.model.clone());
        }
        Ok(committed)
    }

    /// Somebody turns the table back to an older snapshot.
    fn turn_back(&mut self) {
        let snapshots = &self.lab.now.metadata.snapshots;
        let id = snapshots[self.chance.below(snapshots.len())].snapshot_id;
        let Some(model) = self.models.get(&id) else { return };
        self.model = model.clone();
        self.lab.alter(|table| table.set_ref(MAIN_BRANCH, SnapshotRef::branch(id)).unwrap());
    }
}

#[test]
fn random_histories_replay_serially() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 0..HISTORIES {
        match History::new(seed, None).run() {
            Ok((yes, no)) => (committed, refused) = (committed + yes, refused + no),
            Err(why) => panic!("history {seed}: {why}"),
        }
    }
    println!("{HISTORIES} histories: {committed} statements committed, {refused} not");
    // Deletes that are merged are not refused.
    assert!(committed > HISTORIES && refused > HISTORIES / 4);
}

#[test]
fn each_check_is_missed_by_some_history() {
    let mut missed = Vec::new();
    let mut noticed = Vec::new();
    // The simulator is for what is about answers that are missing.
    let checks: Vec<Check> = Check::ALL
        .into_iter()
        .filter(|check| !matches!(check, Check::Unknown | Check::Journal))
        .collect();
    for check in &checks {
        let found = (0..HISTORIES).find_map(|seed| History::new(seed, Some(*check)).run().err().map(|why| (seed, why)));
        match found {
            Some((seed, why)) => noticed.push(format!("{check:?} by history {seed}: {why}")),
            None => missed.push(*check),
        }
    }
    println!("{} of {} checks:\n{}", noticed.len(), checks.len(), noticed.join("\n"));
    assert!(missed.is_empty(), "nothing notices that these are missing: {missed:?}");
}
