//! Wire types, metadata and relabelling.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal64Array, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array, LargeListArray,
    ListArray, MapArray, RecordBatch, RunArray, StringArray, StringViewArray, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int8Type, Int32Type, Int64Type, Schema, TimeUnit};

use super::*;

fn metadata<'a>(field: &'a Field, name: &str) -> Option<&'a str> {
    field.metadata().get(&format!("ARROW:FLIGHT:SQL:{name}")).map(String::as_str)
}

#[test]
fn engine_only_types_become_plain_ones() {
    let cases = [
        (DataType::Utf8View, DataType::Utf8),
        (DataType::BinaryView, DataType::Binary),
        (
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8View)),
            DataType::Utf8,
        ),
        (
            DataType::RunEndEncoded(
                Arc::new(Field::new("run_ends", DataType::Int32, false)),
                Arc::new(Field::new("values", DataType::Decimal32(9, 2), true)),
            ),
            DataType::Decimal128(9, 2),
        ),
        (DataType::Decimal64(18, 4), DataType::Decimal128(18, 4)),
        (DataType::Decimal256(50, 4), DataType::Decimal256(50, 4)),
        (
            DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())),
            DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        ),
        (
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ),
        (DataType::LargeUtf8, DataType::LargeUtf8),
    ];
    for (engine, wire) in cases {
        let schema = wire_schema(&Schema::new(vec![Field::new("c", engine.clone(), false)]), None);
        assert_eq!(schema.field(0).data_type(), &wire, "{engine}");
        assert!(!schema.field(0).is_nullable());
        assert!(metadata(schema.field(0), "TYPE_NAME").is_some());
    }
}

#[test]
fn large_lists_survive_and_children_are_converted() {
    let item = Arc::new(Field::new("element", DataType::Utf8View, true));
    let values: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("a"),
        None,
        Some("a long text outside of the view"),
    ]));
    let list: ArrayRef = Arc::new(LargeListArray::new(item, OffsetBuffer::new(vec![0i64, 2, 3].into()), values, None));
    let schema = Schema::new(vec![Field::new("l", list.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![list]).unwrap();

    let wire = wire_schema(&schema, None);
    let DataType::LargeList(item) = wire.field(0).data_type() else {
        panic!("{wire}")
    };
    assert_eq!((item.name().as_str(), item.data_type()), ("element", &DataType::Utf8));
    assert_eq!(metadata(item, "TYPE_NAME"), Some("string"));

    let sent = to_wire(&batch, &wire).unwrap();
    assert_eq!(sent.schema(), wire);
    let first = sent.column(0).as_list::<i64>().value(0);
    assert_eq!(first.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), None]);
    let second = sent.column(0).as_list::<i64>().value(1);
    assert_eq!(second.as_string::<i32>().value(0), "a long text outside of the view");
}

#[test]
fn values_behind_dictionaries_and_runs_are_kept() {
    let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), None, Some("y"), Some("x")].into_iter().collect();
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1, 3, 4]), &Int64Array::from(vec![Some(7), None, Some(9)])).unwrap();
    let small = Decimal64Array::from(vec![Some(1234), Some(-5), None, Some(0)])
        .with_precision_and_scale(10, 2)
        .unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("d", Arc::new(dictionary) as ArrayRef, true),
        ("r", Arc::new(runs) as ArrayRef, true),
        ("s", Arc::new(small) as ArrayRef, true),
    ])
    .unwrap();
    let wire = wire_schema(&batch.schema(), None);
    let sent = to_wire(&batch.slice(1, 3), &wire).unwrap();
    assert_eq!(
        sent.column(0).as_string::<i32>().iter().collect::<Vec<_>>(),
        [None, Some("y"), Some("x")]
    );
    assert_eq!(
        sent.column(1).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [None, None, Some(9)]
    );
    let decimals = sent.column(2).as_primitive::<arrow::datatypes::Decimal128Type>();
    assert_eq!(decimals.iter().collect::<Vec<_>>(), [Some(-5), None, Some(0)]);
    assert_eq!(decimals.data_type(), &DataType::Decimal128(10, 2));
}

#[test]
fn three_levels_deep_everything_is_plain_and_described() {
    let leaf = Field::new(
        "leaf",
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        true,
    );
    let entries = Field::new(
        "key_value",
        DataType::Struct(
            vec![
                Field::new("k", DataType::Utf8View, false),
                Field::new("v", DataType::Struct(vec![leaf].into()), true),
            ]
            .into(),
        ),
        false,
    );
    let list = Field::new("item", DataType::Map(Arc::new(entries), false), true);
    let schema = wire_schema(&Schema::new(vec![Field::new("c", DataType::List(Arc::new(list)), true)]), None);

    let DataType::List(item) = schema.field(0).data_type() else {
        panic!("{schema}")
    };
    let DataType::Map(entries, _) = item.data_type() else {
        panic!("{schema}")
    };
    assert_eq!(entries.name(), "entries");
    let DataType::Struct(children) = entries.data_type() else {
        panic!("{schema}")
    };
    assert_eq!((children[0].name().as_str(), children[0].data_type()), ("key", &DataType::Utf8));
    assert_eq!(children[1].name(), "value");
    let DataType::Struct(inner) = children[1].data_type() else {
        panic!("{schema}")
    };
    assert_eq!(inner[0].data_type(), &DataType::Utf8);
    for field in [item, entries, &children[0], &children[1], &inner[0]] {
        assert!(metadata(field, "TYPE_NAME").is_some(), "{field:?}");
    }
    assert_eq!(
        metadata(schema.field(0), "TYPE_NAME"),
        Some("list<map<string, struct<leaf: string>>>")
    );
}

#[test]
fn maps_keep_their_entries() {
    let entries = StructArray::from(vec![
        (
            Arc::new(Field::new("k", DataType::Utf8, false)),
            Arc::new(StringArray::from(vec!["a", "b", "c"])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("v", DataType::Int64, true)),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])) as ArrayRef,
        ),
    ]);
    let field = Arc::new(Field::new("key_value", entries.data_type().clone(), false));
    let map: ArrayRef = Arc::new(MapArray::new(field, OffsetBuffer::new(vec![0, 2, 3].into()), entries, None, false));
    let batch = RecordBatch::try_from_iter([("m", map)]).unwrap();
    let sent = to_wire(&batch, &wire_schema(&batch.schema(), None)).unwrap();
    let second = sent.column(0).as_map().value(1);
    assert_eq!(second.column(0).as_string::<i32>().value(0), "c");
    assert_eq!(second.column(1).as_primitive::<Int64Type>().value(0), 3);
}

#[test]
fn columns_of_tables_are_described() {
    let table = TableIdent::new("cat", "sch", "tab");
    let uuid = Field::new("id", DataType::FixedSizeBinary(16), false).with_metadata(HashMap::from([
        (TYPE_NAME_KEY.to_owned(), "uuid".to_owned()),
        (DOC_KEY.to_owned(), "who".to_owned()),
        ("PARQUET:field_id".to_owned(), "1".to_owned()),
    ]));
    let amount = Field::new("amount", DataType::Decimal128(12, 2), true);
    let at = Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true);
    let clock = Field::new("clock", DataType::Time64(TimeUnit::Microsecond), true);
    let schema = wire_schema(&Schema::new(vec![uuid, amount, at, clock]), Some(&table));
    let id = schema.field(0);
    assert_eq!(metadata(id, "CATALOG_NAME"), Some("cat"));
    assert_eq!(metadata(id, "DB_SCHEMA_NAME"), Some("sch"));
    assert_eq!(metadata(id, "TABLE_NAME"), Some("tab"));
    assert_eq!(metadata(id, "TYPE_NAME"), Some("uuid"));
    assert_eq!(metadata(id, "REMARKS"), Some("who"));
    assert_eq!(id.metadata()["ARROW:extension:name"], "arrow.uuid");
    assert!(!id.metadata().contains_key("PARQUET:field_id"));
    assert_eq!(metadata(schema.field(1), "TYPE_NAME"), Some("decimal(12,2)"));
    assert_eq!(
        (metadata(schema.field(1), "PRECISION"), metadata(schema.field(1), "SCALE")),
        (Some("12"), Some("2"))
    );
    assert_eq!(metadata(schema.field(2), "TYPE_NAME"), Some("timestamptz"));
    // 2026-01-31 12:30:59.123456
    assert_eq!(
        (metadata(schema.field(2), "PRECISION"), metadata(schema.field(2), "SCALE")),
        (Some("26"), Some("6"))
    );
    assert_eq!(
        (metadata(schema.field(3), "PRECISION"), metadata(schema.field(3), "SCALE")),
        (Some("15"), Some("6"))
    );
}

#[test]
fn batches_take_the_announced_names_and_nullability() {
    let announced = wire_schema(&Schema::new(vec![Field::new("count(*)", DataType::Int64, false)]), None);
    let batch = RecordBatch::try_from_iter_with_nullable([("count", Arc::new(Int64Array::from(vec![3])) as ArrayRef, true)]).unwrap();
    assert_eq!(to_wire(&batch, &announced).unwrap().schema(), announced);

    let null = RecordBatch::try_from_iter_with_nullable([("count", Arc::new(Int64Array::from(vec![None])) as ArrayRef, true)]).unwrap();
    assert!(to_wire(&null, &announced).is_err());
    let two = RecordBatch::try_from_iter([
        ("a", Arc::new(BooleanArray::from(vec![true])) as ArrayRef),
        ("b", Arc::new(BooleanArray::from(vec![true])) as ArrayRef),
    ])
    .unwrap();
    assert!(to_wire(&two, &announced).is_err());
}

#[test]
fn rows_without_columns_are_counted() {
    let schema = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(5));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
    assert_eq!(to_wire(&batch, &wire_schema(&schema, None)).unwrap().num_rows(), 5);
}

#[test]
fn a_schema_message_is_encapsulated_and_reads_back() {
    let schema = wire_schema(
        &Schema::new(vec![
            Field::new("a", DataType::FixedSizeBinary(16), true),
            Field::new(
                "b",
                DataType::LargeList(Arc::new(Field::new("item", DataType::Utf8View, true))),
                true,
            ),
        ]),
        None,
    );
    let message = schema_message(&schema).unwrap();
    assert_eq!(&message[..4], [0xff, 0xff, 0xff, 0xff]);
    let length = i32::from_le_bytes(message[4..8].try_into().unwrap()) as usize;
    assert_eq!(length + 8, message.len());
    let back = arrow::ipc::convert::try_schema_from_ipc_buffer(&message).unwrap();
    assert_eq!(&back, schema.as_ref());
}

#[test]
fn nested_nulls_stay_where_they_are() {
    let child = Arc::new(Field::new("s", DataType::Utf8View, false));
    let rows = StructArray::new(
        vec![child].into(),
        vec![Arc::new(StringViewArray::from(vec!["a", "", "c"])) as ArrayRef],
        Some(vec![true, false, true].into()),
    );
    let list: ArrayRef = Arc::new(ListArray::new(
        Arc::new(Field::new("item", rows.data_type().clone(), true)),
        OffsetBuffer::new(vec![0, 2, 2, 3].into()),
        Arc::new(rows),
        Some(vec![true, false, true].into()),
    ));
    let uuid: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8; 16], [2; 16], [3; 16]].iter()).unwrap());
    let batch = RecordBatch::try_from_iter_with_nullable([("l", list, true), ("u", uuid, false)]).unwrap();
    let sent = to_wire(&batch, &wire_schema(&batch.schema(), None)).unwrap();
    let list = sent.column(0).as_list::<i32>();
    assert!(list.is_null(1));
    assert!(list.value(0).is_null(1));
    assert_eq!(list.value(2).as_struct().column(0).as_string::<i32>().value(0), "c");
}
