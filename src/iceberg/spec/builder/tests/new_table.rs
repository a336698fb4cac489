//! New tables.

use super::*;
use crate::iceberg::spec::SortField;

#[test]
fn the_metadata_of_a_new_table_is_what_the_reference_implementation_writes() {
    let new = NewTable {
        partition_fields: vec![partition(2, "b_day", "day")],
        properties: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        ..request(2)
    };
    let table = MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap();
    let expected = json!({
        "format-version": 2, "table-uuid": UUID.to_string(), "location": "file:/t", "last-sequence-number": 0,
        "last-updated-ms": NOW, "last-column-id": 3, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [field(1, "a", "int"), field(2, "b", "timestamp"), field(3, "c", "string")]}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "b_day", "transform": "day"}]}],
        "last-partition-id": 1000, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"k": "v"}, "current-snapshot-id": -1, "refs": {}, "snapshots": [], "snapshot-log": [], "metadata-log": []
    });
    assert_eq!(Value::Object(table.raw_object().unwrap()), expected);
}

#[test]
fn each_version_has_its_members() {
    let v1 = Value::Object(table(1).raw_object().unwrap());
    assert_eq!(v1["schema"], v1["schemas"][0]);
    assert_eq!((&v1["partition-spec"], v1.get("last-sequence-number")), (&json!([]), None));
    let v3 = Value::Object(table(3).raw_object().unwrap());
    assert_eq!(
        (&v3["next-row-id"], &v3["current-snapshot-id"], v3.get("schema")),
        (&json!(0), &Value::Null, None)
    );
}

#[test]
fn ids_are_given_anew_level_by_level() {
    let schema = json!([
        field(
            70,
            "s",
            json!({"type": "struct", "fields": [field(5, "x", "int"), field(6, "y", "int")]})
        ),
        field(
            9,
            "l",
            json!({"type": "list", "element-id": 8, "element-required": false, "element": "int"})
        ),
        field(
            3,
            "m",
            json!({"type": "map", "key-id": 20, "key": "string", "value-id": 21, "value-required": false, "value":
            {"type": "struct", "fields": [field(22, "z", "int")]}})
        )
    ]);
    let new = NewTable {
        schema: fields(&schema),
        partition_fields: vec![partition(5, "x_bucket", "bucket[4]")],
        sort_fields: vec![SortField {
            source_id: 6,
            source_ids: vec![6],
            transform: Transform::Identity,
            descending: true,
            nulls_first: false,
        }],
        ..request(2)
    };
    let table = MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap();
    let schema = table.current_schema().unwrap();
    let ids = ["s", "l", "m", "s.x", "s.y", "l.element", "m.key", "m.value", "m.value.z"];
    let found: Vec<_> = (1..=9).map(|id| schema.full_name(id).unwrap()).collect();
    assert_eq!(found, ids);
    assert_eq!(table.last_column_id, 9);
    assert_eq!(table.partition_specs[0].fields[0].source_id, 4);
    assert_eq!((table.sort_orders[0].order_id, table.default_sort_order_id), (1, 1));
    assert_eq!((table.sort_orders.len(), table.sort_orders[0].fields[0].source_id), (1, 5));
}

#[test]
fn identifiers_follow_their_columns() {
    let schema = json!([field(7, "a", "int"), {"id": 4, "name": "k", "required": true, "type": "long"}]);
    let new = NewTable {
        schema: fields(&schema),
        identifier_field_ids: vec![4],
        ..request(2)
    };
    let table = MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap();
    assert_eq!(table.current_schema().unwrap().identifier_field_ids(), [2]);
}

#[test]
fn what_a_new_table_cannot_have() {
    let refused = |new: NewTable, message: &str| assert_refused(MetadataBuilder::new_table(new, NOW), message);
    let with = |schema: Value| NewTable {
        schema: fields(&schema),
        ..request(2)
    };
    refused(with(json!([field(1, "a", "timestamp_ns")])), "needs format version 3");
    refused(with(json!([field(1, "a", "variant")])), "needs format version 3");
    refused(
        with(json!([{"id": 1, "name": "a", "required": false, "type": "int", "write-default": 1}])),
        "defaults need format version 3",
    );
    refused(with(json!([field(1, "a", "int"), field(2, "a", "int")])), "two fields named `a`");
    refused(with(json!([field(1, "", "int")])), "needs a name");
    let identified = |id| NewTable {
        schema: fields(
            &json!([field(1, "a", "int"), {"id": 2, "name": "d", "required": true, "type": "double"},
            {"id": 3, "name": "l", "required": true, "type": {"type": "list", "element-id": 4, "element-required": true, "element": "int"}},
            field(5, "s", json!({"type": "struct", "fields": [{"id": 6, "name": "x", "required": true, "type": "int"}]}))]),
        ),
        identifier_field_ids: vec![id],
        ..request(2)
    };
    for (id, message) in [
        (1, "must be required"),
        (2, "not identified by floats"),
        (3, "primitive fields"),
        (4, "required structs only"),
        (6, "required structs only"),
        (9, "identifier field"),
    ] {
        refused(identified(id), message);
    }
    let location = |location: &str| NewTable {
        location: location.to_owned(),
        ..request(2)
    };
    refused(location("/"), "cannot lie at");
    refused(location("file:///"), "cannot lie at");
    let property = NewTable {
        properties: BTreeMap::from([("format-version".to_owned(), "3".to_owned())]),
        ..request(2)
    };
    refused(property, "format-version is reserved");
    let version = MetadataBuilder::new_table(request(4), NOW).unwrap_err();
    assert_eq!(version.kind(), ErrorKind::Unsupported);
}
