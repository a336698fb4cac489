//! Cells that the table of all pairs has no place for.

use std::sync::Arc;

use super::{FILTER, File, base, commit, plan};
use crate::iceberg::commit::lab::{Lab, Planned, Region};
use crate::iceberg::commit::matrix::Op;
use crate::iceberg::commit::{Cause, Isolation, Outcome};
use crate::iceberg::spec::{MAIN_BRANCH, NestedField, Schema, SnapshotRef, StructType};

/// The message of a commit that must not be made.
#[track_caller]
pub(super) fn refused(lab: &mut Lab, planned: Planned, cause: Cause) -> String {
    let before = lab.view().model().unwrap();
    match lab.commit(planned.change, None) {
        Outcome::NotCommitted(reason) if reason.cause == cause => {
            assert_eq!(lab.view().model().unwrap(), before);
            reason.error.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_says(message: &str, wanted: &str) {
    assert!(message.contains(wanted), "{message} lacks {wanted}");
}

#[test]
fn a_filter_that_a_file_matches_in_part_removes_no_file() {
    let mut lab = base(3);
    let half = Region { p: 1, low: 2, high: 6 };
    let delete = lab.delete_where(half);
    assert_says(&refused(&mut lab, delete, Cause::Conflict), "some of its rows only");
    let rows = lab.rows(1, &[5]);
    let overwrite = lab.overwrite_where(half, rows);
    assert_says(&refused(&mut lab, overwrite, Cause::Conflict), "some of its rows only");
}

#[test]
fn a_delete_by_filter_also_takes_files_that_came_after_it_was_planned() {
    let mut lab = base(2);
    let delete = lab.delete_where(FILTER);
    let rows = lab.rows(1, &[2, 5]);
    let append = lab.append(rows);
    commit(&mut lab, append);
    commit(&mut lab, delete);
    assert!(lab.view().model().unwrap().0.values().all(|row| !FILTER.has(row)));
}

#[test]
fn new_rows_of_an_overwrite_lie_inside_its_filter() {
    let mut lab = base(3);
    let rows = lab.rows(1, &[5, 7]);
    let overwrite = lab.overwrite_where(FILTER, rows);
    assert_says(&refused(&mut lab, overwrite, Cause::Refused), "do not match the filter");
}

#[test]
fn a_branch_that_was_turned_back_is_not_committed_to() {
    let mut lab = base(3);
    let first = lab.now.metadata.snapshots[1].snapshot_id;
    let delete = plan(&mut lab, Op::DeleteRows, File::A, 1, FILTER);
    lab.alter(|table| table.set_ref(MAIN_BRANCH, SnapshotRef::branch(first)).unwrap());
    assert_says(&refused(&mut lab, delete, Cause::Conflict), "not in the branch's history");
    // An append is not about what was there.
    let rows = lab.rows(1, &[9]);
    let append = lab.append(rows);
    commit(&mut lab, append);
}

#[test]
fn position_delete_files_are_not_committed_to_a_table_that_takes_vectors_now() {
    let mut lab = base(2);
    let delete = plan(&mut lab, Op::DeleteRows, File::A, 1, FILTER);
    lab.alter(|table| table.upgrade_format_version(3).unwrap());
    assert_says(&refused(&mut lab, delete, Cause::Conflict), "deletion vectors only");
}

#[test]
fn appends_survive_an_upgrade_and_rows_get_ids() {
    let mut lab = base(2);
    let rows = lab.rows(1, &[9]);
    let append = lab.append(rows);
    lab.alter(|table| table.upgrade_format_version(3).unwrap());
    commit(&mut lab, append);
    let snapshot = lab.now.metadata.current_snapshot().unwrap().unwrap();
    // One new row, and three rows of each of the four files that had none.
    assert_eq!((snapshot.first_row_id, snapshot.added_rows), (Some(0), Some(13)));
    assert_eq!(lab.findings(), []);
}

#[test]
fn files_do_not_outlive_the_schema_they_fit() {
    let mut lab = base(3);
    let rows = lab.rows(1, &[9]);
    let (append, upsert) = (lab.append(rows.clone()), lab.upsert(rows[0].clone()));
    lab.alter(|table| {
        let fields = &table.table().current_schema().unwrap().root().fields;
        let only = StructType {
            fields: vec![Arc::clone(&fields[0])],
        };
        let id = table.add_schema(only, Vec::new()).unwrap();
        table.set_current_schema(id).unwrap();
    });
    assert_says(&refused(&mut lab, upsert, Cause::Refused), "was dropped");
    // A column less does no harm to rows.
    commit(&mut lab, append);
}

#[test]
fn a_column_that_became_required_refuses_files_that_may_lack_it() {
    let mut lab = base(3);
    let rows = lab.rows(1, &[9]);
    let append = lab.append(rows);
    // Our own builder makes no such change; another writer may.
    let mut other = (*lab.now.metadata).clone();
    let fields = &other.current_schema().unwrap().root().fields;
    let required = NestedField {
        required: true,
        ..(*fields[1]).clone()
    };
    let root = StructType {
        fields: vec![Arc::clone(&fields[0]), Arc::new(required)],
    };
    other.schemas.push(Arc::new(Schema::new(1, root, Vec::new()).unwrap()));
    other.current_schema_id = 1;
    lab.now.metadata = Arc::new(other);
    assert_says(&refused(&mut lab, append, Cause::Refused), "cannot become required");
}

#[test]
fn a_table_that_was_made_anew_is_another_table() {
    let mut lab = base(3);
    let rows = lab.rows(1, &[9]);
    let append = lab.append(rows);
    let mut other = (*lab.now.metadata).clone();
    other.table_uuid = Some(uuid::uuid!("00000000-0000-4000-8000-000000000001"));
    lab.now.metadata = Arc::new(other);
    assert_says(&refused(&mut lab, append, Cause::Refused), "made anew");
}

#[test]
fn a_commit_id_is_applied_once() {
    let mut lab = base(3);
    let rows = lab.rows(1, &[9]);
    let first = lab.append(rows.clone());
    let mut again = lab.append(rows);
    again.change.commit_id.clone_from(&first.change.commit_id);
    commit(&mut lab, first);
    let snapshots = lab.now.metadata.snapshots.len();
    match lab.commit(again.change, None) {
        Outcome::Committed(committed) => {
            assert!(committed.was_there);
            assert_eq!(Some(committed.snapshot_id), lab.now.metadata.current_snapshot_id);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(lab.now.metadata.snapshots.len(), snapshots);
}

#[test]
fn a_change_that_contradicts_itself_is_refused() {
    let mut lab = base(3);
    let rows = lab.rows(1, &[9]);
    let mut twice = lab.append(rows);
    let file = twice.change.added[0].clone();
    twice.change.added.push(file);
    assert_says(&refused(&mut lab, twice, Cause::Refused), "adds a file twice");

    let mut both = plan(&mut lab, Op::DeleteRows, File::A, 1, FILTER);
    let view = lab.view();
    let delete = lab.delete_file(&view, &File::A.path(&view));
    both.change.removed.extend(delete.change.removed);
    assert_says(
        &refused(&mut lab, both, Cause::Refused),
        "removes a data file and adds a deletion vector",
    );

    let mut unasked = plan(&mut lab, Op::CompactDeletes, File::A, 1, FILTER);
    unasked.change.removed.clear();
    assert_says(&refused(&mut lab, unasked, Cause::Refused), "only where it removes some");
}

#[test]
fn a_snapshot_that_breaks_a_rule_is_not_published() {
    // A vector beside the one that is there, as a writer would that forgot to remove it.
    let mut lab = base(3);
    let mut second = plan(&mut lab, Op::DeleteRows, File::A, 1, FILTER);
    second.change.removed.clear();
    assert_says(&refused(&mut lab, second, Cause::Refused), "two-vectors");
    // A file that is in the table already.
    let view = lab.view();
    let rows = lab.rows(1, &[1]);
    let mut doubled = lab.copy_on_write(&view, FILTER, &File::A.path(&view), &[1], rows);
    doubled.change.added[0].file_path = File::B.path(&view);
    assert_says(&refused(&mut lab, doubled, Cause::Refused), "duplicate-file");
}

#[test]
fn a_file_that_another_commit_deleted_needs_no_vector() {
    let mut lab = base(3);
    let mut delete = plan(&mut lab, Op::DeleteRows, File::A, 1, FILTER);
    delete.change.isolation = Isolation::Serializable;
    let won = plan(&mut lab, Op::DeleteFile, File::A, 0, FILTER);
    commit(&mut lab, won);
    commit(&mut lab, delete);
    let summary = &lab.now.metadata.current_snapshot().unwrap().unwrap().summary;
    assert_eq!((summary.get("added-dvs"), summary["operation"].as_str()), (None, "delete"));
    assert_eq!(lab.findings(), []);
}
