//! Manifest lists and manifests of real writers, from the case collection, read by us and by
//! the apache-avro crate; every field must agree. The crate finds fields by position in the
//! writer schema, whose ids are taken from its JSON, so nothing is shared with the code under test.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use apache_avro::types::Value;
use sandur::error::ErrorKind;
use sandur::iceberg::manifest::{FileContent, Manifest, ManifestContent, ManifestFile, read_manifest_list};
use sandur::iceberg::spec::{Literal, PartitionSpec, SnapshotManifests, TableMetadata};
use serde_json::Value as Json;

use crate::support::cases;

/// What another Avro reader sees: the fields of a record by their ids, unions taken off.
pub(crate) type Row = HashMap<i32, (Json, Value)>;

fn unwrap_union(value: &Value) -> &Value {
    match value {
        Value::Union(_, inner) => unwrap_union(inner),
        other => other,
    }
}

/// The type behind a union with null and behind `{"type": ..}` wrappers.
fn unwrap_type(json: &Json) -> &Json {
    match json {
        Json::Array(branches) => unwrap_type(branches.iter().find(|b| *b != "null").unwrap()),
        Json::Object(object) if object["type"].is_object() || object["type"].is_array() => unwrap_type(&object["type"]),
        other => other,
    }
}

fn row(schema: &Json, value: &Value) -> Row {
    let Value::Record(values) = unwrap_union(value) else {
        panic!("no record: {value:?}")
    };
    let fields = unwrap_type(schema)["fields"].as_array().unwrap();
    assert_eq!(fields.len(), values.len());
    // BigQuery gives no ids to the fields of maps; they count from -1 downwards here.
    let id = |(i, field): (i32, &Json)| field["field-id"].as_i64().map_or(-i, |id| i32::try_from(id).unwrap());
    let ids = (1..).zip(fields).map(id);
    ids.zip(fields.iter().zip(values))
        .map(|(id, (field, (_, value)))| (id, (unwrap_type(&field["type"]).clone(), unwrap_union(value).clone())))
        .collect()
}

/// All rows of a file and its metadata; `None` where the other reader fails.
pub(crate) fn oracle(bytes: &[u8]) -> Option<(Vec<Row>, HashMap<String, Vec<u8>>)> {
    let reader = apache_avro::Reader::new(bytes).ok()?;
    let metadata = reader.user_metadata().clone();
    // The crate's own copy of the schema keeps no order of attributes; the file's text does.
    let start = bytes.windows(11).position(|w| w == b"avro.schema")? + 11;
    let length_bytes = bytes[start..].iter().position(|b| *b < 0x80)? + 1;
    let text = &bytes[start + length_bytes..];
    let schema: Json = serde_json::Deserializer::from_slice(text).into_iter().next()?.ok()?;
    let rows: Result<Vec<_>, _> = reader.map(|value| value.map(|value| row(&schema, &value))).collect();
    Some((rows.ok()?, metadata))
}

fn number(row: &Row, id: i32) -> Option<i64> {
    match row.get(&id).map(|(_, value)| value) {
        Some(Value::Int(v)) => Some(i64::from(*v)),
        Some(Value::Long(v)) => Some(*v),
        None | Some(Value::Null) => None,
        Some(other) => panic!("field {id} is {other:?}"),
    }
}

fn text(row: &Row, id: i32) -> Option<&str> {
    match row.get(&id).map(|(_, value)| value) {
        Some(Value::String(v)) => Some(v),
        None | Some(Value::Null) => None,
        Some(other) => panic!("field {id} is {other:?}"),
    }
}

fn bytes(row: &Row, id: i32) -> Option<&[u8]> {
    match row.get(&id).map(|(_, value)| value) {
        Some(Value::Bytes(v)) => Some(v),
        None | Some(Value::Null) => None,
        Some(other) => panic!("field {id} is {other:?}"),
    }
}

fn boolean(row: &Row, id: i32) -> Option<bool> {
    match row.get(&id).map(|(_, value)| value) {
        Some(Value::Boolean(v)) => Some(*v),
        None | Some(Value::Null) => None,
        Some(other) => panic!("field {id} is {other:?}"),
    }
}

fn list(row: &Row, id: i32) -> Option<(&Json, &[Value])> {
    match row.get(&id) {
        Some((schema, Value::Array(items))) => Some((&schema["items"], items)),
        None | Some((_, Value::Null)) => None,
        Some((_, other)) => panic!("field {id} is {other:?}"),
    }
}

fn numbers(row: &Row, id: i32) -> Option<Vec<i64>> {
    let (_, items) = list(row, id)?;
    Some(
        items
            .iter()
            .map(|item| match unwrap_union(item) {
                Value::Int(v) => i64::from(*v),
                Value::Long(v) => *v,
                other => panic!("list {id} holds {other:?}"),
            })
            .collect(),
    )
}

/// A map of field id to something, key and value found by their ids.
fn map<T>(row_: &Row, id: i32, key_id: i32, value_of: impl Fn(&Row, i32) -> Option<T>) -> BTreeMap<i32, T> {
    let Some((schema, items)) = list(row_, id) else {
        return BTreeMap::new();
    };
    let pairs = items.iter().map(|item| row(schema, item)).filter_map(|pair| {
        let has_ids = pair.contains_key(&key_id);
        let key = number(&pair, if has_ids { key_id } else { -1 })?;
        let value = value_of(&pair, if has_ids { key_id + 1 } else { -2 })?;
        Some((i32::try_from(key).unwrap(), value))
    });
    pairs.collect()
}

fn counts(row: &Row, id: i32, key_id: i32) -> BTreeMap<i32, u64> {
    map(row, id, key_id, |pair, id| number(pair, id).and_then(|v| u64::try_from(v).ok()))
}

fn bounds(row: &Row, id: i32, key_id: i32) -> BTreeMap<i32, Vec<u8>> {
    map(row, id, key_id, |pair, id| bytes(pair, id).map(<[u8]>::to_vec))
}

pub(crate) fn assert_list_entry(ours: &ManifestFile, theirs: &Row, name: &str) {
    let unsigned = |id| number(theirs, id).map(|v| u64::try_from(v).unwrap());
    assert_eq!(ours.location, text(theirs, 500).unwrap(), "{name}");
    assert_eq!(ours.length, unsigned(501), "{name}");
    assert_eq!(ours.partition_spec_id.map(i64::from), number(theirs, 502), "{name}");
    let content = match number(theirs, 517).unwrap_or(0) {
        0 => ManifestContent::Data,
        1 => ManifestContent::Deletes,
        other => panic!("{name}: content {other}"),
    };
    assert_eq!(ours.content, content, "{name}");
    assert_eq!(ours.sequence_number, number(theirs, 515).unwrap_or(0), "{name}");
    assert_eq!(ours.min_sequence_number, number(theirs, 516).unwrap_or(0), "{name}");
    assert_eq!(ours.added_snapshot_id, number(theirs, 503), "{name}");
    assert_eq!(ours.added_files_count, unsigned(504), "{name}");
    assert_eq!(ours.existing_files_count, unsigned(505), "{name}");
    assert_eq!(ours.deleted_files_count, unsigned(506), "{name}");
    assert_eq!(ours.added_rows_count, unsigned(512), "{name}");
    assert_eq!(ours.existing_rows_count, unsigned(513), "{name}");
    assert_eq!(ours.deleted_rows_count, unsigned(514), "{name}");
    assert_eq!(ours.has_key_metadata, bytes(theirs, 519).is_some(), "{name}");
    assert_eq!(ours.first_row_id, unsigned(520), "{name}");
    let summaries = list(theirs, 507).map(|(schema, items)| items.iter().map(|item| row(schema, item)).collect::<Vec<_>>());
    assert_eq!(ours.partitions.as_ref().map(Vec::len), summaries.as_ref().map(Vec::len), "{name}");
    for (ours, theirs) in ours.partitions.iter().flatten().zip(summaries.iter().flatten()) {
        assert_eq!(ours.contains_null, boolean(theirs, 509).unwrap(), "{name}");
        assert_eq!(ours.contains_nan, boolean(theirs, 518), "{name}");
        assert_eq!(ours.lower_bound.as_deref(), bytes(theirs, 510), "{name}");
        assert_eq!(ours.upper_bound.as_deref(), bytes(theirs, 511), "{name}");
    }
}

/// Equal but for what a promotion of the source column changes: the width.
fn same_value(ours: Option<&Literal>, theirs: Option<&Value>) -> bool {
    match (ours, theirs) {
        (None, None | Some(Value::Null)) => true,
        (Some(Literal::Boolean(a)), Some(Value::Boolean(b))) => a == b,
        (Some(Literal::Int(a)), Some(Value::Int(b) | Value::Date(b))) => a == b,
        (Some(Literal::Long(a)), Some(Value::Int(b))) => *a == i64::from(*b),
        (Some(Literal::Long(a)), Some(Value::Long(b) | Value::TimeMicros(b) | Value::TimestampMicros(b))) => a == b,
        (Some(Literal::Float(a)), Some(Value::Float(b))) => a.to_bits() == b.to_bits(),
        (Some(Literal::Double(a)), Some(Value::Double(b))) => a.to_bits() == b.to_bits(),
        (Some(Literal::Double(a)), Some(Value::Float(b))) => a.to_bits() == f64::from(*b).to_bits(),
        (Some(Literal::String(a)), Some(Value::String(b))) => a == b,
        (Some(Literal::Binary(a)), Some(Value::Bytes(b) | Value::Fixed(_, b))) => a == b,
        (Some(Literal::Uuid(a)), Some(Value::Uuid(b))) => a == b.as_bytes(),
        (Some(Literal::Decimal(a)), Some(Value::Decimal(b))) => {
            let bytes = Vec::<u8>::try_from(b).unwrap();
            let sign = if bytes[0] >= 0x80 { 0xff } else { 0 };
            let mut wide = [sign; 16];
            wide[16 - bytes.len()..].copy_from_slice(&bytes);
            *a == i128::from_be_bytes(wide)
        }
        _ => false,
    }
}

/// Compares a manifest with what the other reader sees, inheritance worked out anew.
pub(crate) fn assert_manifest(ours: &Manifest, listed: &ManifestFile, spec: &PartitionSpec, theirs: &[Row], is_v1: bool, name: &str) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    assert_eq!(ours.content(), listed.content, "{name}");
    assert_eq!(ours.spec_id(), spec.spec_id, "{name}");
    let mut next_row_id = listed.first_row_id;
    for (ours, theirs) in ours.entries().zip(theirs) {
        let name = format!("{name} entry {}", ours.index());
        let status = number(theirs, 0).unwrap();
        assert_eq!(ours.status() as i64, status, "{name}");
        assert_eq!(ours.is_live(), status != 2, "{name}");
        assert_eq!(ours.snapshot_id(), number(theirs, 1).or(listed.added_snapshot_id), "{name}");
        let listed_sequence = if is_v1 { 0 } else { listed.sequence_number };
        let inherited = (status == 1 || listed_sequence == 0).then_some(listed_sequence);
        assert_eq!(Some(ours.sequence_number()), number(theirs, 3).or(inherited), "{name}");
        assert_eq!(ours.file_sequence_number(), number(theirs, 4).or(inherited), "{name}");

        let (schema, file) = &theirs[&2];
        let file = &row(schema, file);
        let unsigned = |id| number(file, id).map(|v| u64::try_from(v).unwrap());
        let content = match number(file, 134).unwrap_or(0) {
            0 => FileContent::Data,
            1 => FileContent::PositionDeletes,
            _ => FileContent::EqualityDeletes,
        };
        assert_eq!(ours.content(), content, "{name}");
        assert_eq!(ours.file_path(), text(file, 100).unwrap(), "{name}");
        assert_eq!(ours.file_format().as_str(), text(file, 101).unwrap().to_lowercase(), "{name}");
        assert_eq!(ours.record_count(), unsigned(103).unwrap(), "{name}");
        assert_eq!(ours.file_size_in_bytes(), unsigned(104).unwrap(), "{name}");
        assert_eq!(
            ours.value_counts().iter().collect::<BTreeMap<_, _>>(),
            counts(file, 109, 119),
            "{name}"
        );
        assert_eq!(
            ours.null_value_counts().iter().collect::<BTreeMap<_, _>>(),
            counts(file, 110, 121),
            "{name}"
        );
        assert_eq!(
            ours.nan_value_counts().iter().collect::<BTreeMap<_, _>>(),
            counts(file, 137, 138),
            "{name}"
        );
        let owned = |(id, bytes): (i32, &[u8])| (id, bytes.to_vec());
        let lower = bounds(file, 125, 126);
        assert_eq!(ours.lower_bounds().map(owned).collect::<BTreeMap<_, _>>(), lower, "{name}");
        assert!(lower.iter().all(|(id, bound)| ours.lower_bound(*id) == Some(bound)), "{name}");
        let upper = bounds(file, 128, 129);
        assert_eq!(ours.upper_bounds().map(owned).collect::<BTreeMap<_, _>>(), upper, "{name}");
        assert!(upper.iter().all(|(id, bound)| ours.upper_bound(*id) == Some(bound)), "{name}");
        assert_eq!(ours.has_key_metadata(), bytes(file, 131).is_some(), "{name}");
        assert_eq!(ours.split_offsets().map(<[i64]>::to_vec), numbers(file, 132), "{name}");
        let equality_ids = ours
            .equality_ids()
            .map(|ids| ids.iter().map(|id| i64::from(*id)).collect::<Vec<_>>());
        assert_eq!(equality_ids, numbers(file, 135), "{name}");
        assert_eq!(ours.sort_order_id().map(i64::from), number(file, 140), "{name}");
        assert_eq!(ours.referenced_data_file(), text(file, 143), "{name}");
        assert_eq!(ours.content_offset(), unsigned(144), "{name}");
        assert_eq!(ours.content_size_in_bytes(), unsigned(145), "{name}");

        let mut first_row_id = None;
        if let (Some(next), FileContent::Data) = (next_row_id, content) {
            first_row_id = unsigned(142);
            if first_row_id.is_none() && status != 2 {
                first_row_id = Some(next);
                next_row_id = Some(next + ours.record_count());
            }
        }
        assert_eq!(ours.first_row_id(), first_row_id, "{name}");

        let partition = match file.get(&102) {
            None | Some((_, Value::Null)) => Row::new(),
            Some((schema, value)) => row(schema, value),
        };
        assert_eq!(ours.spec_id(), spec.spec_id, "{name}");
        assert_eq!(ours.partition().len(), spec.fields.len(), "{name}");
        for (field, ours) in spec.fields.iter().zip(ours.partition().iter()) {
            let theirs = partition.get(&field.field_id).map(|(_, value)| value);
            assert!(same_value(ours.as_ref(), theirs), "{name}: {ours:?} and {theirs:?}");
        }
    }
}

pub(crate) fn avro_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(avro_files(&path));
        } else if path.extension().is_some_and(|e| e == "avro") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_v1(metadata: &HashMap<String, Vec<u8>>) -> bool {
    metadata.get("format-version").is_some_and(|v| v == b"1")
}

/// Counts of files compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    lists: usize,
    manifests: usize,
}

/// Reads all lists of a table and the manifests in them.
fn check_table(case: &Path, seen: &mut Seen) {
    let expected: Json = serde_json::from_slice(&std::fs::read(case.join("expected.json")).unwrap()).unwrap();
    let table = case.join("table");
    let metadata_file = table.join(expected["metadata_file"].as_str().unwrap());
    let name = metadata_file.display().to_string();
    let metadata = TableMetadata::from_bytes(&std::fs::read(&metadata_file).unwrap(), &name).unwrap();
    let files = avro_files(&table.join("metadata"));
    let by_name: HashMap<_, _> = files
        .iter()
        .map(|path| (path.file_name().unwrap().to_str().unwrap(), path))
        .collect();
    for path in &files {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).unwrap();
        let Some((rows, _)) = oracle(&bytes) else { continue };
        if rows.first().is_none_or(|row| !row.contains_key(&500)) {
            continue;
        }
        seen.lists += 1;
        let manifests = read_manifest_list(&bytes, &name).unwrap();
        assert_eq!(manifests.len(), rows.len(), "{name}");
        for (ours, theirs) in manifests.iter().zip(&rows) {
            assert_list_entry(ours, theirs, &name);
            let manifest_name = ours.location.rsplit('/').next().unwrap();
            // Some cases lack the files of expired snapshots.
            if let Some(path) = by_name.get(manifest_name) {
                check_manifest(path, ours, &metadata, seen);
            }
        }
    }
}

fn check_manifest(path: &Path, listed: &ManifestFile, metadata: &TableMetadata, seen: &mut Seen) {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).unwrap();
    let ours = Manifest::parse(&bytes, listed, metadata).unwrap();
    assert!(ours.memory_size() > size_of::<Manifest>(), "{name}");
    seen.manifests += 1;
    match oracle(&bytes) {
        Some((rows, file)) => {
            let spec = metadata.spec_by_id(listed.partition_spec_id.unwrap()).unwrap();
            assert_manifest(&ours, listed, spec, &rows, is_v1(&file), &name);
        }
        None => panic!("{name}: the other reader fails"),
    }
}

/// A table whose manifests hold fixed partition values with a length in front, against their
/// Avro schema; readers that follow the schema fail or see other numbers of rows.
const LENGTH_BEFORE_FIXED: &str = "icebergjava_fixed_partition";

#[test]
fn fixed_partition_values_with_a_length_in_front_are_read() {
    let Some(cases) = cases::dir_or_say() else { return };
    let dir = cases.join("iceberg").join(LENGTH_BEFORE_FIXED).join("table/metadata");
    let metadata = TableMetadata::from_bytes(&std::fs::read(dir.join("v5.metadata.json")).unwrap(), "v5").unwrap();
    let file = |location: &str| std::fs::read(dir.join(location.rsplit('/').next().unwrap())).unwrap();
    let SnapshotManifests::List(list) = &metadata.current_snapshot().unwrap().unwrap().manifests else {
        panic!("no list")
    };
    let mut seen = Vec::new();
    for listed in read_manifest_list(&file(list), list).unwrap() {
        let manifest = Manifest::parse(&file(&listed.location), &listed, &metadata).unwrap();
        for entry in manifest.live() {
            seen.push((entry.content(), entry.partition()[0].clone(), entry.record_count()));
        }
    }
    // Three data files of three rows, in each of which the row at position 1 is deleted.
    let values = [
        Some(Literal::Binary(vec![0, 0xff, 0x80])),
        Some(Literal::Binary(b"abc".to_vec())),
        None,
    ];
    for value in values {
        assert!(seen.contains(&(FileContent::Data, value.clone(), 3)), "{seen:?}");
        assert!(seen.contains(&(FileContent::PositionDeletes, value, 1)), "{seen:?}");
    }
    assert_eq!(seen.len(), 6);
}

#[test]
fn manifests_of_every_table_agree_with_another_reader() {
    let Some(cases) = cases::dir_or_say() else { return };
    let mut seen = Seen::default();
    let mut tables: Vec<_> = std::fs::read_dir(cases.join("iceberg"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    tables.sort();
    for case in tables.iter().filter(|case| !case.ends_with(LENGTH_BEFORE_FIXED)) {
        check_table(case, &mut seen);
    }
    assert!(seen.lists > 400 && seen.manifests > 1000, "{seen:?}");
}

#[test]
fn single_manifest_lists_agree_with_another_reader() {
    let Some(cases) = cases::dir_or_say() else { return };
    let mut lists = 0;
    for dir in ["iceberg-rust", "iceberg-go-duckdb-v3", "pg_lake"] {
        for path in avro_files(&cases.join("format/manifest").join(dir)) {
            let name = path.display().to_string();
            let bytes = std::fs::read(&path).unwrap();
            if !bytes.starts_with(b"Obj\x01") {
                continue;
            }
            let (rows, _) = oracle(&bytes).unwrap();
            if rows[0].contains_key(&500) {
                let ours = read_manifest_list(&bytes, &name).unwrap();
                assert_eq!(ours.len(), rows.len());
                ours.iter()
                    .zip(&rows)
                    .for_each(|(ours, theirs)| assert_list_entry(ours, theirs, &name));
                lists += 1;
            }
        }
    }
    assert_eq!(lists, 6);
}

/// A table of one schema and one partition spec, spec 0.
fn table_of(schema: &str, partition_fields: &str) -> TableMetadata {
    let json = format!(
        r#"{{"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file:/t",
        "last-sequence-number": 1, "last-updated-ms": 1, "last-column-id": 100, "current-schema-id": 0,
        "schemas": [{schema}], "default-spec-id": 0, "partition-specs": [{{"spec-id": 0, "fields": {partition_fields}}}],
        "last-partition-id": 1000, "default-sort-order-id": 0, "sort-orders": [{{"order-id": 0, "fields": []}}]}}"#
    );
    TableMetadata::from_bytes(json.as_bytes(), "test").unwrap()
}

/// A list entry of an unpartitioned or spec 0 data manifest of sequence number 3.
fn listed(location: &Path) -> ManifestFile {
    ManifestFile {
        partition_spec_id: Some(0),
        sequence_number: 3,
        added_snapshot_id: Some(11),
        ..ManifestFile::bare(location.display().to_string())
    }
}

#[test]
fn single_manifests_agree_with_another_reader() {
    let Some(cases) = cases::dir_or_say() else { return };
    let mut manifests = 0;
    for path in avro_files(&cases.join("format/manifest/pg_lake")) {
        let name = path.display().to_string();
        let bytes = std::fs::read(&path).unwrap();
        let (rows, file) = oracle(&bytes).unwrap();
        if rows[0].contains_key(&0) {
            let text = |key: &str| String::from_utf8(file[key].clone()).unwrap();
            let table = table_of(&text("schema"), &text("partition-spec"));
            let ours = Manifest::parse(&bytes, &listed(&path), &table).unwrap();
            assert_manifest(&ours, &listed(&path), &table.partition_specs[0], &rows, false, &name);
            manifests += 1;
        }
    }
    assert_eq!(manifests, 3);
}

#[test]
fn a_partition_field_whose_name_is_no_avro_name_is_read() {
    let Some(cases) = cases::dir_or_say() else { return };
    let path = cases.join("format/manifest/pg_lake-odd/dot-field-name.avro");
    let bytes = std::fs::read(&path).unwrap();
    let schema = r#"{"type": "struct", "schema-id": 0, "fields": [{"id": 12, "name": "ts", "required": true, "type": "timestamp"}]}"#;
    let table = table_of(
        schema,
        r#"[{"source-id": 12, "field-id": 1000, "name": "redpanda.timestamp_hour", "transform": "hour"}]"#,
    );
    let manifest = Manifest::parse(&bytes, &listed(&path), &table).unwrap();
    assert_eq!(manifest.len(), 1);
    let entry = manifest.entry(0);
    // The path has the hour in it: 2025-05-27, 14 h.
    assert!(entry.file_path().contains("redpanda.timestamp_hour=2025-05-27-14/"));
    assert_eq!(entry.partition().as_ref(), [Some(Literal::Int(20235 * 24 + 14))]);
    assert_eq!((entry.snapshot_id(), entry.sequence_number()), (Some(1_821_517_129_874_860_909), 3));
    assert_eq!((entry.record_count(), entry.file_size_in_bytes()), (1, 2635));
}

#[test]
fn manifests_without_any_metadata_of_their_own_are_read() {
    let Some(cases) = cases::dir_or_say() else { return };
    let table = table_of(r#"{"type": "struct", "schema-id": 0, "fields": []}"#, "[]");
    for (file, data_file) in [
        ("equality-ids-manifest.avro", "s3://test-bucket/sec_test/equality_ids_test.parquet"),
        // Whether this may be opened is for those to decide who open it.
        ("local-path-manifest.avro", "/etc/passwd"),
    ] {
        let path = cases.join("format/manifest/pg_lake-odd").join(file);
        let bytes = std::fs::read(&path).unwrap();
        let manifest = Manifest::parse(&bytes, &listed(&path), &table).unwrap();
        assert_eq!(manifest.len(), 1);
        let entry = manifest.entry(0);
        assert_eq!((entry.content(), entry.file_path()), (FileContent::Data, data_file));
        assert_eq!((entry.record_count(), entry.file_size_in_bytes()), (10, 4096));
        assert_eq!(entry.equality_ids(), Some(&[1, 2, 3, 4][..]));
        assert_eq!((entry.snapshot_id(), entry.sequence_number()), (Some(11), 3));
    }
}

#[test]
fn an_encrypted_manifest_list_is_unsupported() {
    let Some(cases) = cases::dir_or_say() else { return };
    let bytes = std::fs::read(cases.join("format/manifest/iceberg-rust/manifest-list-v3-encrypted.avro")).unwrap();
    let error = read_manifest_list(&bytes, "manifest-list-v3-encrypted.avro").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("is encrypted"), "{error}");
    assert!(error.to_string().contains("manifest-list-v3-encrypted.avro"), "{error}");
}
