//! Evolution of partition specs, and sort orders.

use super::*;
use crate::iceberg::spec::{SortField, SortOrder};

fn ids(table: &TableMetadata, spec: usize) -> Vec<String> {
    let fields = table.partition_specs[spec].fields.iter();
    fields.map(|f| format!("{} {} {}", f.field_id, f.name, f.transform)).collect()
}

#[test]
fn fields_keep_their_ids_from_spec_to_spec() {
    let mut builder = change(&table(2));
    let a = || partition(1, "a", "identity");
    let b = || partition(2, "b_day", "day");
    assert_eq!(builder.add_partition_spec(&[a(), b()]).unwrap(), 1);
    assert_eq!(
        builder.add_partition_spec(&[b(), partition(3, "c_bucket", "bucket[8]")]).unwrap(),
        2
    );
    assert_eq!(
        builder.add_partition_spec(&[a(), b()]).unwrap(),
        1,
        "an equal spec is not made again"
    );
    assert_eq!(builder.add_partition_spec(&[partition(2, "day", "day")]).unwrap(), 3);
    builder.set_default_partition_spec(2).unwrap();
    assert_refused(builder.set_default_partition_spec(9), "no partition spec 9");
    let table = builder.build().unwrap();
    assert_eq!(ids(&table, 1), ["1000 a identity", "1001 b_day day"]);
    assert_eq!(ids(&table, 2), ["1001 b_day day", "1002 c_bucket bucket[8]"]);
    assert_eq!(ids(&table, 3), ["1001 day day"]);
    assert_eq!((table.last_partition_id, table.default_spec_id), (1002, 2));
}

#[test]
fn v1_drops_fields_by_making_them_void() {
    let new = NewTable {
        partition_fields: vec![partition(1, "a", "identity"), partition(2, "b_day", "day")],
        ..request(1)
    };
    let base = Arc::new(MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap());
    let mut builder = change(&base);
    let id = builder
        .add_partition_spec(&[partition(2, "b_day", "day"), partition(3, "c", "identity")])
        .unwrap();
    builder.set_default_partition_spec(id).unwrap();
    let table = builder.build().unwrap();
    assert_eq!(ids(&table, 1), ["1000 a void", "1001 b_day day", "1002 c identity"]);
    assert_eq!(
        table.raw_object().unwrap()["partition-spec"],
        table.raw_object().unwrap()["partition-specs"][1]["fields"]
    );
}

#[test]
fn each_rule_of_a_spec_has_its_message() {
    let refused = |fields: &[UnboundPartitionField], message: &str| {
        assert_refused(change(&table(2)).add_partition_spec(fields), message);
    };
    refused(&[partition(9, "x", "identity")], "no column 9");
    refused(&[partition(3, "x", "day")], "does not take type string");
    refused(&[partition(3, "x", "zorder")], "zorder is not known");
    refused(&[partition(3, "", "identity")], "needs a name");
    refused(
        &[partition(3, "x", "bucket[2]"), partition(1, "x", "bucket[2]")],
        "two partition fields have this name",
    );
    refused(&[partition(3, "a", "bucket[2]")], "a column has this name");
    refused(&[partition(3, "a", "identity")], "a column has this name");
    refused(&[partition(2, "y", "year"), partition(2, "d", "day")], "says as much");
    change(&table(2))
        .add_partition_spec(&[partition(3, "x", "bucket[2]"), partition(3, "y", "bucket[4]")])
        .unwrap();
    let list = json!({"type": "list", "element-id": 9, "element-required": false, "element": "int"});
    let new = NewTable {
        schema: fields(&json!([field(1, "l", list)])),
        partition_fields: vec![partition(9, "x", "identity")],
        ..request(2)
    };
    assert_refused(MetadataBuilder::new_table(new, NOW), "lies in a list or map");
}

#[test]
fn the_source_of_the_default_spec_cannot_be_dropped() {
    let mut builder = change(&table(2));
    let spec = builder.add_partition_spec(&[partition(3, "c", "identity")]).unwrap();
    builder.set_default_partition_spec(spec).unwrap();
    let base = Arc::new(builder.build().unwrap());
    let without = fields(&json!([field(1, "a", "int"), field(2, "b", "timestamp")]));
    let mut builder = change(&base);
    let schema = builder.add_schema(without.clone(), Vec::new()).unwrap();
    builder.set_current_schema(schema).unwrap();
    assert_refused(builder.build(), "no column 3");
    let mut builder = change(&base);
    builder.set_default_partition_spec(0).unwrap();
    let schema = builder.add_schema(without, Vec::new()).unwrap();
    builder.set_current_schema(schema).unwrap();
    builder.build().unwrap();
}

#[test]
fn sort_orders() {
    let by = |source_id| SortField {
        source_id,
        source_ids: vec![source_id],
        transform: Transform::Identity,
        descending: false,
        nulls_first: true,
    };
    let mut builder = change(&table(2));
    assert_eq!(builder.add_sort_order(Vec::new()).unwrap(), 0);
    assert_eq!(builder.add_sort_order(vec![by(1)]).unwrap(), 1);
    assert_eq!(builder.add_sort_order(vec![by(2)]).unwrap(), 2);
    assert_eq!(builder.add_sort_order(vec![by(1)]).unwrap(), 1);
    builder.set_default_sort_order(2).unwrap();
    assert_refused(builder.set_default_sort_order(9), "no sort order 9");
    assert_refused(builder.add_sort_order(vec![by(9)]), "no column 9");
    let table = builder.build().unwrap();
    assert_eq!((table.default_sort_order_id, &table.sort_orders[0]), (2, &SortOrder::unsorted()));
}
