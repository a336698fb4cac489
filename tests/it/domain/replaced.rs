//! The same names with other content: what was cached of a table must not answer for another.

use serde_json::json;

use super::{column, ids};
use crate::support::builder::{DataFile, PositionDeletes, TableBuilder};
use crate::support::canonical::sorted_lines;
use crate::support::read::{self, Target};

#[track_caller]
fn gives(target: &Target, sql: &str, rows: &serde_json::Value) {
    let read = read::query(target.clone(), sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(serde_json::to_value(read.rows).unwrap(), *rows, "{sql}");
}

#[test]
fn a_table_that_was_dropped_and_made_again_in_its_folder_shows_its_new_rows() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    for (round, values) in [vec![1, 2, 3], vec![7, 8, 9], vec![5, 6]].into_iter().enumerate() {
        let uuid = format!("9c12d441-03fe-4693-9a96-a0705ddf69c{round}");
        let mut table = TableBuilder::new(&place, ids())
            .edit_metadata(move |json| {
                json.insert("table-uuid".to_owned(), json!(uuid));
            })
            .create();
        table.append(DataFile::named("F").rows(column(values.clone())));
        table.delete_positions(PositionDeletes::named("P").rows("F", [0]));
        let left: Vec<_> = values.iter().skip(1).map(|v| json!([v])).collect();
        gives(&Target::from(&table), "SELECT id FROM t ORDER BY id", &json!(left));
        std::fs::remove_dir_all(&place).unwrap();
    }
}

/// Position deletes name data files, and the names mean other files under another path map.
#[test]
fn one_table_under_two_path_maps_keeps_its_deletes_under_both() {
    let mut table = TableBuilder::temp(ids()).recorded_location("s3://bucket/t").create();
    table.append(DataFile::named("F").path("rows/F.parquet").rows(column(0..10)));
    table.delete_positions(PositionDeletes::named("P").rows("F", [0, 3, 9]));
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::copy(table.real_path("F"), elsewhere.path().join("F.parquet")).unwrap();

    let plain = Target::from(&table);
    let mut moved = plain.clone();
    let to = format!("{}/", elsewhere.path().to_str().unwrap());
    moved.path_map.insert(0, ("s3://bucket/t/rows/".to_owned(), to));
    let left = json!([[1], [2], [4], [5], [6], [7], [8]]);
    for target in [&plain, &moved, &plain] {
        gives(target, "SELECT id FROM t ORDER BY id", &left);
    }
    let read = read::rows(moved).unwrap();
    assert_eq!(sorted_lines(&read).len(), 7);
}
