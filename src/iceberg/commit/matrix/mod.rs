//! The matrix of concurrent commits (reliability-security.md 2.2, IT-1): what one operation does when
//! another one was committed between its reading and its committing.
//!
//! Both are planned on the same table. Whether the second one may be committed is written down in
//! `expected`, from the matrix and not from the engine; what the table then holds is compared with a
//! model of rows, and every snapshot keeps the rules.

mod expected;
mod merging;
mod single;

use super::lab::{Lab, Model, Planned, Region, View};
use super::{Cause, Isolation, Outcome};
use expected::{Expected, expected, facts};

/// The operations, each as the winner and as the one that comes second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Append,
    DeleteFile,
    DeleteWhere,
    CopyOnWriteDelete,
    CopyOnWriteUpdate,
    OverwriteWhere,
    OverwritePartition,
    DeleteRows,
    UpdateRows,
    Upsert,
    Compact,
    CompactKeepingAge,
    CompactDeletes,
    RewriteManifests,
}

const OPS: [Op; 14] = [
    Op::Append,
    Op::DeleteFile,
    Op::DeleteWhere,
    Op::CopyOnWriteDelete,
    Op::CopyOnWriteUpdate,
    Op::OverwriteWhere,
    Op::OverwritePartition,
    Op::DeleteRows,
    Op::UpdateRows,
    Op::Upsert,
    Op::Compact,
    Op::CompactKeepingAge,
    Op::CompactDeletes,
    Op::RewriteManifests,
];

/// The data files of the table. The second operation is about `A`, and its filter is [`FILTER`]; the
/// winner is about any one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    /// The same file.
    A,
    /// Another one of the same partition, inside of the filter.
    B,
    /// Another one of the same partition, outside of the filter.
    N,
    /// One of another partition.
    C,
}

const FILES: [File; 4] = [File::A, File::B, File::N, File::C];

const FILTER: Region = Region { p: 1, low: 1, high: 6 };

impl File {
    /// Its rows have three numbers in a row; the first was deleted before.
    fn region(self) -> Region {
        let (p, low) = match self {
            Self::A => (1, 1),
            Self::B => (1, 4),
            Self::N => (1, 100),
            Self::C => (2, 1),
        };
        Region { p, low, high: low + 2 }
    }

    fn path(self, view: &View) -> String {
        let region = self.region();
        let found = view
            .files
            .iter()
            .find(|file| file.p == region.p && file.bounds() == (region.low, region.high));
        found.unwrap().path.clone()
    }
}

fn base(format_version: u8) -> Lab {
    let mut lab = Lab::new(format_version);
    let mut all: Option<Planned> = None;
    for file in FILES {
        let region = file.region();
        let rows = lab.rows(region.p, &[region.low, region.low + 1, region.high]);
        let one = lab.append(rows);
        match &mut all {
            None => all = Some(one),
            Some(all) => all.change.added.extend(one.change.added),
        }
    }
    commit(&mut lab, all.unwrap());
    for file in FILES {
        let view = lab.view();
        let deletes = lab.delete_rows(&view, file.region(), &file.path(&view), &[0], Vec::new());
        commit(&mut lab, deletes);
    }
    lab
}

#[track_caller]
fn commit(lab: &mut Lab, planned: Planned) {
    let outcome = lab.commit(planned.change, None);
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
}

/// `op` about `file`, on the row at `position` where it is about one.
fn plan(lab: &mut Lab, op: Op, file: File, position: usize, filter: Region) -> Planned {
    let view = lab.view();
    let path = file.path(&view);
    let region = file.region();
    let row_at = region.low + i64::try_from(position).unwrap();
    let mut new = |xs: &[i64]| lab.rows(region.p, xs);
    match op {
        Op::Append => {
            let rows = new(&[region.low, region.high]);
            lab.append(rows)
        }
        Op::DeleteFile => lab.delete_file(&view, &path),
        Op::DeleteWhere => lab.delete_where(filter),
        Op::CopyOnWriteDelete => lab.copy_on_write(&view, filter, &path, &[position], Vec::new()),
        Op::CopyOnWriteUpdate => {
            let rows = new(&[region.low]);
            lab.copy_on_write(&view, filter, &path, &[position], rows)
        }
        Op::OverwriteWhere => {
            let rows = new(&[region.low, region.high]);
            lab.overwrite_where(filter, rows)
        }
        Op::OverwritePartition => {
            let rows = new(&[region.low, region.high]);
            lab.overwrite_partition(rows)
        }
        Op::DeleteRows => lab.delete_rows(&view, filter, &path, &[position], Vec::new()),
        Op::UpdateRows => {
            let rows = new(&[region.low]);
            lab.delete_rows(&view, filter, &path, &[position], rows)
        }
        Op::Upsert => {
            let row = new(&[row_at]).remove(0);
            let mut planned = lab.upsert(row);
            planned.change.filter = filter.predicate();
            planned
        }
        Op::Compact => lab.compact(&view, &[&path], false),
        Op::CompactKeepingAge => lab.compact(&view, &[&path], true),
        Op::CompactDeletes => lab.compact_deletes(&view, &path),
        Op::RewriteManifests => lab.rewrite_manifests(&view),
    }
}

/// Runs one cell and says what is wrong with it.
fn cell(base: &Lab, format_version: u8, second: Op, winner: Op, place: File, isolation: Isolation) -> Result<Expected, String> {
    let mut lab = base.clone();
    let mut model: Model = lab.view().model()?;
    let mut current = plan(&mut lab, second, File::A, 1, FILTER);
    current.change.isolation = isolation;
    let won = plan(&mut lab, winner, place, 2, place.region());
    model.apply(&won.effect);
    let outcome = lab.commit(won.change, None);
    if !matches!(outcome, Outcome::Committed(_)) {
        return Err(format!("the winner ends as {outcome:?}"));
    }
    let expected = expected(second, isolation, &facts(winner, place, format_version), format_version);
    let effect = current.effect;
    let outcome = lab.commit(current.change, None);
    match (&outcome, expected) {
        (Outcome::Committed(_), Expected::Committed) => model.apply(&effect),
        (Outcome::NotCommitted(reason), Expected::Conflict) if reason.cause == Cause::Conflict => {}
        _ => return Err(format!("expected {expected:?}, got {outcome:?}")),
    }
    let rows = lab.view().model()?;
    if rows != model {
        return Err(format!("the table holds {:?}, not {:?}", rows.0.keys(), model.0.keys()));
    }
    match lab.findings().first() {
        Some(finding) => Err(format!("the table breaks a rule: {finding}")),
        None => Ok(expected),
    }
}

/// All cells of one format version: how many there are, how many commit, and which are wrong.
fn cells(format_version: u8) -> (usize, usize, Vec<String>) {
    let (mut cells, mut committed, mut wrong) = (0, 0, Vec::new());
    let base = base(format_version);
    for second in OPS {
        for winner in OPS {
            for place in FILES {
                for isolation in [Isolation::Serializable, Isolation::Snapshot] {
                    cells += 1;
                    match cell(&base, format_version, second, winner, place, isolation) {
                        Ok(Expected::Committed) => committed += 1,
                        Ok(Expected::Conflict) => {}
                        Err(why) => wrong.push(format!(
                            "v{format_version} {second:?} after {winner:?} on {place:?}, {isolation:?}: {why}"
                        )),
                    }
                }
            }
        }
    }
    (cells, committed, wrong)
}

#[test]
fn every_operation_against_every_other_one() {
    let versions = [2, 3].map(|version| std::thread::spawn(move || cells(version)));
    let (mut all, mut committed, mut wrong) = (0, 0, Vec::new());
    for version in versions {
        let part = version.join().unwrap();
        all += part.0;
        committed += part.1;
        wrong.extend(part.2);
    }
    println!(
        "{all} cells, of which {committed} are committed and {} are conflicts",
        all - committed
    );
    assert!(wrong.is_empty(), "{} of {all} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
