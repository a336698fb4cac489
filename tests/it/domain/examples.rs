//! Sequence numbers: which delete is older than which data file.

use serde_json::json;

use super::{column, id_data, ids, shows};
use crate::support::builder::{Commit, DataFile, EqualityDeletes, PositionDeletes, TableBuilder, TestTable};

/// Data file X of five rows, sequence number 1.
fn file_x() -> TestTable {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("X").rows(column([40, 41, 42, 43, 44])));
    table
}

#[test]
fn position_deletes_of_several_commits_add_up() {
    let mut table = file_x();
    table.commit(
        Commit::new()
            .sequence_number(2)
            .positions(PositionDeletes::named("P1").rows("X", [1])),
    );
    table.commit(
        Commit::new()
            .sequence_number(4)
            .positions(PositionDeletes::named("P2").rows("X", [3])),
    );
    // positions 0, 2, 4
    shows(&table, column([40, 42, 44]));
}

#[test]
fn an_equality_delete_applies_to_what_position_deletes_left() {
    let mut table = file_x();
    table.commit(
        Commit::new()
            .sequence_number(2)
            .positions(PositionDeletes::named("P1").rows("X", [1])),
    );
    table.commit(
        Commit::new()
            .sequence_number(3)
            .equality(EqualityDeletes::named("E", [1]).rows(column([42]))),
    );
    table.commit(
        Commit::new()
            .sequence_number(4)
            .positions(PositionDeletes::named("P2").rows("X", [3])),
    );
    shows(&table, column([40, 44]));
}

#[test]
fn an_equality_delete_spares_younger_data_files() {
    let mut table = TableBuilder::temp(id_data()).create();
    table.commit(
        Commit::new()
            .sequence_number(1)
            .data(DataFile::named("old").rows(json!([[42, "old"]]))),
    );
    table.commit(
        Commit::new()
            .sequence_number(2)
            .equality(EqualityDeletes::named("E", [1]).rows(column([42]))),
    );
    table.commit(
        Commit::new()
            .sequence_number(3)
            .data(DataFile::named("new").rows(json!([[42, "new"]]))),
    );
    shows(&table, json!([[42, "new"]]));
}

#[test]
fn a_position_delete_applies_to_data_of_its_own_commit() {
    // B013
    let mut table = TableBuilder::temp(ids()).create();
    let commit = Commit::new().sequence_number(5).data(DataFile::named("F1").rows(column([1, 2, 3])));
    table.commit(commit.positions(PositionDeletes::named("P").rows("F1", [0])));
    shows(&table, column([2, 3]));
}

#[test]
fn an_equality_delete_spares_data_of_its_own_commit() {
    // B012
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F1").rows(json!([[1, "F1"]])));
    let commit = Commit::new().data(DataFile::named("F2").rows(json!([[1, "F2"]])));
    table.commit(commit.equality(EqualityDeletes::named("E", [1]).rows(column([1]))));
    shows(&table, json!([[1, "F2"]]));
}

#[test]
fn rewritten_manifests_keep_the_age_of_their_entries() {
    // B014: F1 (1), E (2), F2 (3), then all entries EXISTING in manifests of 4
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F1").rows(json!([[1, "F1"]])));
    table.delete_keys(EqualityDeletes::named("E", [1]).rows(column([1])));
    table.append(DataFile::named("F2").rows(json!([[1, "F2"]])));
    shows(&table, json!([[1, "F2"]]));
    table.commit(Commit::new().rewrite_manifests());
    shows(&table, json!([[1, "F2"]]));
}

#[test]
fn a_compacted_file_keeps_the_sequence_number_it_was_given() {
    // F1 (1) and E (2) commit; compaction (3) writes F2 in F1's place, still of age 1
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F1").rows(column([1, 2, 3])));
    table.delete_keys(EqualityDeletes::named("E", [1]).rows(column([2])));
    let compacted = DataFile::named("F2").rows(column([1, 2, 3])).sequence_number(1);
    table.commit(Commit::new().remove("F1").data(compacted).operation("replace"));
    shows(&table, column([1, 3]));
}

#[test]
fn a_removed_delete_file_deletes_nothing() {
    let mut table = file_x();
    table.delete_positions(PositionDeletes::named("P").rows("X", [0, 1]));
    table.commit(Commit::new().remove("P"));
    shows(&table, column([40, 41, 42, 43, 44]));
}

#[test]
fn a_delete_left_over_from_a_removed_file_is_harmless() {
    let mut table = file_x();
    table.delete_positions(PositionDeletes::named("P").rows("X", [0]));
    table.commit(Commit::new().remove("X").data(DataFile::named("Y").rows(column([1]))));
    shows(&table, column([1]));
}

#[test]
fn a_file_name_that_came_back_is_not_hit_by_its_old_deletes() {
    let mut table = file_x();
    table.delete_positions(PositionDeletes::named("P").rows("X", [0]));
    table.commit(Commit::new().remove("X"));
    table.append(DataFile::named("X again").path("data/X.parquet").rows(column([1, 2])));
    shows(&table, column([1, 2]));
}
