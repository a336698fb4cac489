//! Pruning by partition: manifests and files.

use sandur::iceberg::spec::{Literal, PrimitiveType, Transform};
use sandur::table::{AsOf, Pruning};
use serde_json::{Value, json};

use super::{answers, answers_at, ask};
use crate::support::builder::{
    Commit, DataFile, EqualityDeletes, PartitionSpec, PositionDeletes, Schema, TableBuilder, TestTable, Type, identity, optional,
    partition, required,
};

/// Files of one row in one commit: name, partition, cells.
fn files(table: &mut TestTable, files: impl IntoIterator<Item = (Value, Value)>) {
    let mut commit = Commit::new();
    for (n, (partition, row)) in files.into_iter().enumerate() {
        let name = format!("F{n}");
        commit = commit.data(DataFile::named(&name).partition(partition).without_metrics().rows(json!([row])));
    }
    table.commit(commit);
}

const TIMES: [&str; 4] = [
    "1899-12-31T01:00:00.000000",
    "1969-12-31T23:59:59.000000",
    "1970-01-01T00:00:01.000000",
    "2024-02-29T12:00:00.000000",
];

/// B041
#[test]
fn values_before_1970_are_found_in_every_time_partition() {
    let days = |d: [&str; 4]| d.map(|d| json!([d]));
    let numbers = |n: [i64; 4]| n.map(|n| json!([n]));
    for (transform, partitions) in [
        ("year", numbers([-71, -1, 0, 54])),
        ("month", numbers([-841, -1, 0, 649])),
        ("day", days(["1899-12-31", "1969-12-31", "1970-01-01", "2024-02-29"])),
        ("hour", numbers([-613_631, -1, 0, 474_780])),
        // as writers that truncated toward zero left them
        ("year", numbers([-70, 0, 0, 54])),
        ("month", numbers([-840, 0, 0, 649])),
        ("day", days(["1900-01-01", "1970-01-01", "1970-01-01", "2024-02-29"])),
        ("hour", numbers([-613_630, 0, 0, 474_780])),
    ] {
        let mut table = TableBuilder::temp(Schema::new([optional(1, "ts", Type::Timestamp)]))
            .spec(PartitionSpec::new([partition(1, "p", transform)]))
            .create();
        files(&mut table, partitions.iter().cloned().zip(TIMES.map(|t| json!([t]))));
        for time in TIMES {
            let sql = format!("SELECT ts FROM t WHERE ts = TIMESTAMP '{}'", time.replace('T', " "));
            let answer = answers(&table, &sql, &json!([[time]]));
            let skipped = answer.scan.counters.files_skipped_by_partition();
            assert!(skipped >= 2, "{transform} {time}: {skipped}");
        }
        let before = "SELECT count(*) FROM t WHERE ts < TIMESTAMP '1970-01-01 00:00:00'";
        let answer = answers(&table, before, &json!([[2]]));
        assert!(answer.scan.counters.files_skipped_by_partition() >= 1, "{transform}");
    }
}

/// B042
#[test]
fn the_session_s_zone_does_not_move_partitions() {
    let times = [
        "2023-12-31T23:30:00.000000",
        "2024-01-01T00:30:00.000000",
        "2024-01-01T12:00:00.000000",
    ];
    for of in [Type::Timestamp, Type::Timestamptz] {
        let mut table = TableBuilder::temp(Schema::new([optional(1, "ts", of.clone())]))
            .spec(PartitionSpec::new([partition(1, "p", "day")]))
            .create();
        let suffix = if of == Type::Timestamptz { "Z" } else { "" };
        let rows = times.map(|t| (json!([&t[..10]]), json!([format!("{t}{suffix}")])));
        files(&mut table, rows.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for zone in ["UTC", "America/Chicago", "Asia/Tokyo"] {
            for time in times {
                let sql = format!("SELECT count(*) FROM t WHERE ts = arrow_cast('{time}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')");
                let sql = if suffix.is_empty() {
                    format!("SELECT count(*) FROM t WHERE ts = TIMESTAMP '{}'", time.replace('T', " "))
                } else {
                    sql
                };
                let on = runtime.block_on(ask(&table, &AsOf::Latest, &sql, Pruning::default(), Some(zone)));
                assert_eq!(on.lines, ["[1]"], "{of:?} {zone} {time}");
                assert!(on.scan.counters.files_skipped_by_partition() >= 1);
            }
        }
    }
}

/// B044
#[test]
fn uuids_are_found_in_their_buckets() {
    let uuid = |n: u64| uuid::Uuid::from_u64_pair(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n.wrapping_mul(0xd1b5_4a32_d192_ed03));
    let mut table = TableBuilder::temp(Schema::new([required(1, "u", Type::Uuid)]))
        .spec(PartitionSpec::new([partition(1, "u_bucket", "bucket[16]")]))
        .create();
    let bucket = |u: uuid::Uuid| match Transform::Bucket(16).apply(&PrimitiveType::Uuid, &Literal::Uuid(u.into_bytes())) {
        Some(Literal::Int(bucket)) => bucket,
        other => panic!("{other:?}"),
    };
    // the example of the specification lies in bucket 12
    let example = uuid::Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap();
    let all: Vec<uuid::Uuid> = (1..40).map(uuid).chain([example]).collect();
    assert_eq!(bucket(example), 12);
    files(&mut table, all.iter().map(|u| (json!([bucket(*u)]), json!([u.to_string()]))));
    for u in all.iter().step_by(7).chain([&example]) {
        let hex: String = u.as_bytes().iter().map(|b| format!("{b:02x}")).collect();
        let sql = format!("SELECT u FROM t WHERE u = arrow_cast(X'{hex}', 'FixedSizeBinary(16)')");
        let answer = answers(&table, &sql, &json!([[u.to_string()]]));
        assert!(answer.scan.counters.files_skipped_by_partition() > 25);
    }
}

/// B045
#[test]
fn a_negated_prefix_is_not_cut_to_the_width() {
    let mut table = TableBuilder::temp(Schema::new([optional(1, "name", Type::String)]))
        .spec(PartitionSpec::new([partition(1, "name_trunc", "truncate[2]")]))
        .create();
    let rows = [("ab", "ab"), ("ab", "abc"), ("ab", "abd"), ("zz", "zz")];
    files(&mut table, rows.map(|(p, name)| (json!([p]), json!([name]))));
    let name = |condition: &str| format!("SELECT name FROM t WHERE name {condition}");
    answers(&table, &name("NOT LIKE 'abc%'"), &json!([["ab"], ["abd"], ["zz"]]));
    let answer = answers(&table, &name("NOT LIKE 'ab%'"), &json!([["zz"]]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 3);
    let answer = answers(&table, &name("LIKE 'abc%'"), &json!([["abc"]]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 1);
    let answer = answers(&table, &name("> 'abc'"), &json!([["abd"], ["zz"]]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 0);
    let answer = answers(&table, &name(">= 'ac'"), &json!([["zz"]]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 3);
}

/// B046
#[test]
fn a_dropped_partition_field_of_v1_prunes_only_what_was_written_before() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "category", Type::String),
        optional(3, "n", Type::Int),
    ]);
    let mut table = TableBuilder::temp(schema)
        .format_version(1)
        .spec(PartitionSpec::new([identity(2, "category"), identity(3, "n")]))
        .create();
    files(
        &mut table,
        [(json!(["a", 5]), json!([1, "a", 5])), (json!(["a", 6]), json!([2, "a", 6]))],
    );
    table.set_spec(PartitionSpec::new([
        identity(2, "category").field_id(1000),
        partition(3, "n", "void").field_id(1001),
    ]));
    let mut commit = Commit::new();
    for (name, n, id) in [("V1", 5, 3), ("V2", 6, 4)] {
        let file = DataFile::named(name).partition(json!(["a", null])).without_metrics();
        commit = commit.data(file.rows(json!([[id, "a", n]])));
    }
    table.commit(commit);
    answers(&table, "SELECT id FROM t", &json!([[1], [2], [3], [4]]));
    let answer = answers(&table, "SELECT id FROM t WHERE n = 5", &json!([[1], [3]]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 1);
    answers(&table, "SELECT id FROM t WHERE n IS NULL", &json!([]));
}

#[test]
fn each_file_is_judged_by_its_own_spec() {
    let schema = Schema::new([optional(1, "id", Type::Long), optional(2, "region", Type::String)]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(2, "region")]))
        .create();
    let one =
        |name: &str, p: Value, id: i64, region: Value| DataFile::named(name).partition(p).without_metrics().rows(json!([[id, region]]));
    table.append(one("A1", json!(["eu"]), 1, json!("eu")));
    table.append(one("A2", json!(["us"]), 2, json!("us")));
    table.append(one("A3", json!([null]), 3, json!(null)));
    table.set_spec(PartitionSpec::new([partition(1, "id_trunc", "truncate[10]")]));
    table.append(one("B1", json!([0]), 4, json!("eu")));
    table.append(one("B2", json!([10]), 11, json!("eu")));
    table.set_spec(PartitionSpec::new([]));
    table.append(one("C1", json!([]), 12, json!("eu")));

    let eu = answers(&table, "SELECT id FROM t WHERE region = 'eu'", &json!([[1], [4], [11], [12]]));
    // A manifest of null alone has no bounds, which could also mean that they are unknown.
    assert_eq!(eu.scan.counters.manifests_skipped(), 1);
    let small = answers(&table, "SELECT id FROM t WHERE id < 10", &json!([[1], [2], [3], [4]]));
    assert_eq!(small.scan.counters.manifests_skipped(), 1);
    let null = answers(&table, "SELECT id FROM t WHERE region IS NULL", &json!([[3]]));
    assert_eq!(null.scan.counters.manifests_skipped(), 2);
    let either = answers(&table, "SELECT id FROM t WHERE region = 'us' OR id = 11", &json!([[2], [11]]));
    // B1 alone cannot have either: files of the first spec may have any id.
    assert_eq!(either.scan.counters.manifests_skipped(), 0);
    // Without the summaries the values of each file say the same.
    let mut pruning = Pruning::off();
    pruning.partitions = true;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sql = "SELECT id FROM t WHERE region = 'eu'";
    let by_file = runtime.block_on(ask(&table, &AsOf::Latest, sql, pruning, None));
    assert_eq!(by_file.scan.counters.files_skipped_by_partition(), 2);
}

/// B105
#[test]
fn an_old_snapshot_is_pruned_by_its_own_schema_and_specs() {
    let schema = Schema::new([optional(1, "id", Type::Long), optional(2, "c", Type::Int)]);
    let mut table = TableBuilder::temp(schema).spec(PartitionSpec::new([identity(2, "c")])).create();
    files(&mut table, [(json!([1]), json!([10, 1])), (json!([2]), json!([20, 2]))]);
    let first = table.snapshot_id().unwrap();
    table.evolve(|s| s.rename("c", "d").promote("d", Type::Long));
    table.set_spec(PartitionSpec::new([partition(1, "id_bucket", "bucket[4]")]));
    table.append(DataFile::named("G").partition(json!([0])).without_metrics().rows(json!([[30, 1]])));

    let old = AsOf::Version(first);
    let answer = answers_at(&table, &old, "SELECT id, c FROM t WHERE c = 1", &json!([[10, 1]]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 1);
    let answer = answers(&table, "SELECT id FROM t WHERE d = 2", &json!([[20], [30]].as_slice()[..1]));
    assert_eq!(answer.scan.counters.files_skipped_by_partition(), 1);
}

#[test]
fn deletes_apply_to_what_is_left() {
    let schema = Schema::new([optional(1, "id", Type::Long), optional(2, "region", Type::String)]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(2, "region")]))
        .create();
    let rows = |from: i64, region: &str| -> Value { (from..from + 4).map(|i| json!([i, region])).collect() };
    table.append(DataFile::named("EU").partition(json!(["eu"])).rows(rows(0, "eu")));
    table.append(DataFile::named("US").partition(json!(["us"])).rows(rows(10, "us")));
    table.delete_positions(PositionDeletes::named("P").partition(json!(["eu"])).rows("EU", [0]));
    table.delete_keys(EqualityDeletes::named("E", [1]).partition(json!(["eu"])).rows(json!([[2]])));
    let answer = answers(&table, "SELECT id FROM t WHERE region = 'eu'", &json!([[1], [3]]));
    assert_eq!(answer.scan.counters.manifests_skipped(), 1);
    answers(&table, "SELECT id FROM t WHERE id IN (0, 1, 2, 11)", &json!([[1], [11]]));
}
