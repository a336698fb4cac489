//! Cells of deletes whose vectors are made at the commit (reliability-security.md 2.4).

use super::{FILTER, File, base, commit, plan, single};
use crate::iceberg::commit::lab::{Lab, Planned};
use crate::iceberg::commit::matrix::Op;
use crate::iceberg::commit::{Cause, Isolation, Outcome};

/// A delete of rows of file A. The first row was deleted before.
fn delete(lab: &mut Lab, positions: &[usize]) -> Planned {
    let view = lab.view();
    lab.delete_counted(&view, FILTER, &File::A.path(&view), positions)
}

/// What a delete says that it deleted.
#[track_caller]
fn told(lab: &mut Lab, planned: Planned) -> u64 {
    match lab.commit(planned.change, None) {
        Outcome::Committed(committed) => committed.vectors.newly_deleted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn deletes_of_different_rows_of_one_file_both_succeed() {
    let mut lab = base(3);
    let (first, second) = (delete(&mut lab, &[1]), delete(&mut lab, &[2]));
    assert_eq!(told(&mut lab, first), 1);
    assert_eq!(told(&mut lab, second), 1);
    let view = lab.view();
    let file = view.file(&File::A.path(&view));
    assert_eq!((file.positions.len(), file.deletes.len()), (3, 1));
    assert_eq!(lab.findings(), []);
}

#[test]
fn the_second_of_two_deletes_that_overlap_counts_what_the_first_left() {
    let mut lab = base(3);
    let (first, second) = (delete(&mut lab, &[1]), delete(&mut lab, &[1, 2]));
    let third = delete(&mut lab, &[1, 2]);
    assert_eq!(told(&mut lab, first), 1);
    assert_eq!(told(&mut lab, second), 1);
    assert_eq!(told(&mut lab, third), 0);
}

#[test]
fn rows_of_a_file_that_another_delete_took_as_a_whole_are_not_counted() {
    let mut lab = base(3);
    let second = delete(&mut lab, &[1, 2]);
    let whole = plan(&mut lab, Op::DeleteFile, File::A, 0, FILTER);
    commit(&mut lab, whole);
    assert_eq!(told(&mut lab, second), 0);
    assert_eq!(lab.findings(), []);
}

#[test]
fn a_delete_is_not_merged_into_a_file_that_was_written_anew() {
    for op in [Op::Compact, Op::CopyOnWriteDelete, Op::CopyOnWriteUpdate] {
        let mut lab = base(3);
        let second = delete(&mut lab, &[2]);
        let first = plan(&mut lab, op, File::A, 1, File::A.region());
        commit(&mut lab, first);
        single::refused(&mut lab, second, Cause::Conflict);
    }
}

#[test]
fn a_delete_is_merged_with_a_compaction_of_deletes() {
    let mut lab = base(3);
    let second = delete(&mut lab, &[2]);
    let first = plan(&mut lab, Op::CompactDeletes, File::A, 1, FILTER);
    commit(&mut lab, first);
    assert_eq!(told(&mut lab, second), 1);
    assert_eq!(lab.findings(), []);
}

#[test]
fn a_row_that_another_commit_wrote_anew_elsewhere_is_not_merged_away() {
    // Row 1 is updated to a row outside of the filter, so that serializable bears it.
    for (isolation, positions, goes) in [
        (Isolation::Snapshot, [1, 2].as_slice(), false),
        (Isolation::Snapshot, &[2], true),
        (Isolation::Serializable, &[1, 2], false),
    ] {
        let mut lab = base(3);
        let mut second = delete(&mut lab, positions);
        second.change.isolation = isolation;
        let update = plan(&mut lab, Op::UpdateRows, File::A, 1, File::A.region());
        commit(&mut lab, update);
        match goes {
            true => assert_eq!(told(&mut lab, second), 1),
            // Serializable: the new row is inside of the filter here.
            false => drop(single::refused(&mut lab, second, Cause::Conflict)),
        }
    }
}

#[test]
fn a_count_is_not_told_beside_deletes_that_cannot_be_merged() {
    for version in [2, 3] {
        let mut lab = base(version);
        let second = delete(&mut lab, &[2]);
        let upsert = plan(&mut lab, Op::Upsert, File::A, 1, FILTER);
        commit(&mut lab, upsert);
        single::refused(&mut lab, second, Cause::Conflict);
    }
    let mut lab = base(2);
    let (first, second) = (delete(&mut lab, &[1]), delete(&mut lab, &[1, 2]));
    commit(&mut lab, first);
    single::refused(&mut lab, second, Cause::Conflict);
}
