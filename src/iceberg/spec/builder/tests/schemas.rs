//! Evolution of schemas.

use super::*;

/// The columns of [`table`], with changes.
fn columns(changes: &[(usize, Value)]) -> Value {
    let mut columns = vec![field(1, "a", "int"), field(2, "b", "timestamp"), field(3, "c", "string")];
    for (at, column) in changes {
        match columns.get_mut(*at) {
            Some(old) => *old = column.clone(),
            None => columns.push(column.clone()),
        }
    }
    columns.into()
}

fn add(version: u8, schema: &Value) -> Result<i32> {
    change(&table(version)).add_schema(fields(schema), Vec::new())
}

#[test]
fn a_changed_schema_gets_the_next_id_and_a_known_one_keeps_its() {
    let mut builder = change(&table(2));
    let wider = columns(&[(0, field(1, "renamed", "long")), (3, field(4, "d", "double"))]);
    assert_eq!(builder.add_schema(fields(&columns(&[])), Vec::new()).unwrap(), 0);
    assert!(!builder.is_changed());
    let id = builder.add_schema(fields(&wider), Vec::new()).unwrap();
    builder.set_current_schema(id).unwrap();
    assert_eq!(builder.add_schema(fields(&wider), Vec::new()).unwrap(), 1);
    assert_refused(builder.set_current_schema(9), "no schema 9");
    let table = builder.build().unwrap();
    assert_eq!((table.schemas.len(), table.current_schema_id, table.last_column_id), (2, 1, 4));
}

#[test]
fn promotions_of_the_specification() {
    let promote = |version, from: &str, to: &str| {
        let new = NewTable {
            schema: fields(&json!([field(1, "a", from)])),
            ..request(version)
        };
        let base = Arc::new(MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap());
        change(&base).add_schema(fields(&json!([field(1, "a", to)])), Vec::new())
    };
    for (from, to) in [("int", "long"), ("float", "double"), ("decimal(9,2)", "decimal(10,2)")] {
        promote(1, from, to).unwrap();
    }
    for (from, to) in [("date", "timestamp"), ("date", "timestamp_ns"), ("unknown", "string")] {
        promote(3, from, to).unwrap();
    }
    for (version, from, to) in [
        (3, "long", "int"),
        (3, "int", "string"),
        (3, "decimal(9,2)", "decimal(10,3)"),
        (3, "decimal(9,2)", "decimal(8,2)"),
        (3, "date", "timestamptz"),
        (2, "date", "timestamp"),
    ] {
        assert_refused(promote(version, from, to), "cannot become");
    }
}

#[test]
fn each_rule_of_evolution_has_its_message() {
    let required = |id: i32, name: &str| json!({"id": id, "name": name, "required": true, "type": "int"});
    let with_default = json!({"id": 4, "name": "d", "required": true, "type": "int", "initial-default": 1, "write-default": 1});
    assert_refused(add(2, &columns(&[(0, required(1, "a"))])), "cannot become required");
    assert_refused(add(2, &columns(&[(3, required(4, "d"))])), "only with defaults");
    assert_refused(add(2, &columns(&[(3, with_default.clone())])), "need format version 3");
    add(3, &columns(&[(3, with_default)])).unwrap();
    let late = json!({"id": 1, "name": "a", "required": false, "type": "int", "initial-default": 5});
    assert_refused(add(3, &columns(&[(0, late)])), "never changes");
    assert_refused(
        add(2, &columns(&[(0, field(1, "a", json!({"type": "struct", "fields": []})))])),
        "cannot become",
    );
    let moved = field(4, "s", json!({"type": "struct", "fields": [field(3, "c", "string")]}));
    assert_refused(add(2, &columns(&[(2, moved)])), "into or out of a struct");
    assert_refused(add(2, &columns(&[(3, field(i32::MAX, "d", "int"))])), "is reserved");
    // Within a struct that is new there are no old rows.
    let nested = field(4, "s", json!({"type": "struct", "fields": [required(5, "x")]}));
    add(2, &columns(&[(3, nested)])).unwrap();
}

#[test]
fn the_id_of_a_dropped_column_is_not_used_again() {
    let mut builder = change(&table(2));
    let dropped = json!([field(1, "a", "int"), field(2, "b", "timestamp")]);
    let id = builder.add_schema(fields(&dropped), Vec::new()).unwrap();
    builder.set_current_schema(id).unwrap();
    let base = Arc::new(builder.build().unwrap());
    let again = json!([field(1, "a", "int"), field(2, "b", "timestamp"), field(3, "other", "string")]);
    assert_refused(change(&base).add_schema(fields(&again), Vec::new()), "was used before");
}

#[test]
fn keys_of_maps_stay_as_they_are() {
    let map = |key: Value| {
        field(
            1,
            "m",
            json!({"type": "map", "key-id": 2, "key": key, "value-id": 3, "value-required": false, "value": "int"}),
        )
    };
    let new = NewTable {
        schema: fields(&json!([map(json!("int"))])),
        ..request(2)
    };
    let base = Arc::new(MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap());
    assert_refused(
        change(&base).add_schema(fields(&json!([map(json!("long"))])), Vec::new()),
        "key of a map",
    );
}

#[test]
fn a_promotion_that_would_change_partition_values_is_refused() {
    let with = |transform: &str| {
        let new = NewTable {
            schema: fields(&json!([field(1, "d", "date"), field(2, "i", "int")])),
            partition_fields: vec![partition(1, "part", transform), partition(2, "i_bucket", "bucket[4]")],
            ..request(3)
        };
        let base = Arc::new(MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap());
        change(&base).add_schema(fields(&json!([field(1, "d", "timestamp"), field(2, "i", "long")])), Vec::new())
    };
    with("day").unwrap();
    assert_refused(with("bucket[8]"), "partition spec 0 divides by it");
}
