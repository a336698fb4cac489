//! Rows of Avro files, written by `apache-avro`, as arrow arrays.

use std::sync::Arc;

use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Fields, Int32Type, Int64Type, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use proptest::prelude::*;

use super::super::{AvroSchema, Cursor};
use super::{RowDecoder, file_fields};
use crate::error::{ErrorKind, Result};

fn schema(json: &str) -> Arc<AvroSchema> {
    Arc::new(AvroSchema::parse(json.as_bytes()).unwrap())
}

/// The records one after the other, without container.
fn encode(json: &str, records: &[Value]) -> Vec<u8> {
    let schema = apache_avro::Schema::parse_str(json).unwrap();
    let writer = GenericDatumWriter::builder(&schema).build().unwrap();
    let mut out = Vec::new();
    for record in records {
        writer.write_value_ref(&mut out, record).unwrap();
    }
    out
}

/// Reads rows until the bytes end; those that `keep` refuses are passed.
fn decode(json: &str, bytes: &[u8], leaves: &[usize], keep: impl Fn(usize) -> bool) -> Result<Vec<ArrayRef>> {
    let schema = schema(json);
    let fields = file_fields(&schema)?;
    let mut decoder = RowDecoder::new(&schema, &fields, leaves)?;
    let mut cursor = Cursor::new(bytes);
    let mut row = 0;
    while cursor.remaining() > 0 {
        if keep(row) {
            decoder.read_row(&mut cursor)?;
        } else {
            decoder.skip_row(&mut cursor)?;
        }
        row += 1;
    }
    decoder.take()
}

fn types(json: &str) -> Fields {
    file_fields(&schema(json)).unwrap()
}

fn one(field: &str) -> String {
    format!(r#"{{"type":"record","name":"t","fields":[{{"name":"c","field-id":7,"type":{field}}}]}}"#)
}

#[test]
fn types_of_the_appendix() {
    let utc = || Some(Arc::from("UTC"));
    let cases = [
        (r#"["null","boolean"]"#, DataType::Boolean),
        (r#"["int","null"]"#, DataType::Int32),
        (r#"{"type":"int","logicalType":"date"}"#, DataType::Date32),
        (
            r#"{"type":"long","logicalType":"time-micros"}"#,
            DataType::Time64(TimeUnit::Microsecond),
        ),
        (
            r#"{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":false}"#,
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ),
        (
            r#"{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true}"#,
            DataType::Timestamp(TimeUnit::Microsecond, utc()),
        ),
        (
            r#"{"type":"long","logicalType":"timestamp-nanos","adjust-to-utc":true}"#,
            DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        ),
        (
            r#"{"type":"fixed","name":"f","size":4,"logicalType":"decimal","precision":9,"scale":2}"#,
            DataType::Decimal128(9, 2),
        ),
        (
            r#"{"type":"bytes","logicalType":"decimal","precision":38,"scale":0}"#,
            DataType::Decimal128(38, 0),
        ),
        (
            r#"{"type":"fixed","name":"f","size":16,"logicalType":"uuid"}"#,
            DataType::FixedSizeBinary(16),
        ),
        (r#""bytes""#, DataType::Binary),
        (r#""null""#, DataType::Null),
    ];
    for (json, data_type) in cases {
        let fields = types(&one(json));
        assert_eq!(fields[0].data_type(), &data_type, "{json}");
        assert_eq!(fields[0].metadata()[PARQUET_FIELD_ID_META_KEY], "7");
    }
}

#[test]
fn ids_of_elements_keys_and_values() {
    let json = one(
        r#"{"type":"array","element-id":8,"items":{"type":"array","logicalType":"map","items":{"type":"record","name":"k9_v10","fields":[
            {"name":"key","field-id":9,"type":"int"},
            {"name":"value","field-id":10,"type":{"type":"map","key-id":11,"value-id":12,"values":["null","string"]}}]}}}"#,
    );
    let id = |f: &arrow::datatypes::Field| f.metadata()[PARQUET_FIELD_ID_META_KEY].clone();
    let fields = types(&json);
    let DataType::List(element) = fields[0].data_type() else { panic!() };
    let DataType::Map(entries, _) = element.data_type() else { panic!() };
    let DataType::Struct(pair) = entries.data_type() else { panic!() };
    let DataType::Map(inner, _) = pair[1].data_type() else { panic!() };
    let DataType::Struct(inner) = inner.data_type() else { panic!() };
    let ids = [element, &pair[0], &pair[1], &inner[0], &inner[1]].map(|f| id(f));
    assert_eq!(ids, ["8", "9", "10", "11", "12"]);
}

#[test]
fn what_no_iceberg_writer_writes_is_passed_unless_wanted() {
    let json = r#"{"type":"record","name":"t","fields":[
        {"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}},
        {"name":"u","type":["null","int","string"]},
        {"name":"id","field-id":1,"type":"long"}]}"#;
    let records = [(0, Value::Null), (2, Value::String("x".into()))].map(|(branch, value)| {
        Value::Record(vec![
            ("e".into(), Value::Enum(1, "B".into())),
            ("u".into(), Value::Union(branch, Box::new(value))),
            ("id".into(), Value::Long(i64::from(branch) - 5)),
        ])
    });
    let bytes = encode(json, &records);
    let columns = decode(json, &bytes, &[2], |_| true).unwrap();
    assert_eq!(columns[0].as_primitive::<Int64Type>().values(), &[-5, -3]);
    assert!(matches!(types(json)[0].data_type(), DataType::Union(..)));
    assert!(decode(json, &bytes, &[0], |_| true).is_err());
    // a recursive type is no table's
    let list = r#"{"type":"record","name":"t","fields":[{"name":"next","type":["null","t"]}]}"#;
    assert_eq!(file_fields(&schema(list)).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn decimals_of_any_length() {
    let json = one(r#"{"type":"bytes","logicalType":"decimal","precision":38,"scale":2}"#);
    let read = |bytes: &[u8]| {
        let mut file = vec![(bytes.len() * 2) as u8];
        file.extend_from_slice(bytes);
        decode(&json, &file, &[0], |_| true).map(|c| c[0].as_primitive::<Decimal128Type>().value(0))
    };
    assert_eq!(read(&[]).unwrap(), 0);
    assert_eq!(read(&[0xff]).unwrap(), -1);
    assert_eq!(read(&[0x00, 0xff]).unwrap(), 255);
    assert_eq!(read(&[[0xff; 20].as_slice(), &[0x80]].concat()).unwrap(), -128);
    assert!(read(&[[0x00; 20].as_slice(), &[0x80; 16]].concat()).is_err(), "more than 128 bits");
    assert!(read(&[0x7f; 16]).is_err(), "more than 38 digits");
}

#[test]
fn an_empty_struct_tells_whether_it_is_there() {
    let json = one(r#"["null",{"type":"record","name":"nothing","fields":[]}]"#);
    let columns = decode(&json, &[0, 2, 0], &[0], |_| true).unwrap();
    assert_eq!(columns[0].nulls().unwrap().iter().collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn what_the_schema_alone_makes_large_is_stopped() {
    // a null of such a field takes a byte in the file
    let wide = r#"{"type":"fixed","name":"wide","size":16000000}"#;
    let json = one(&format!(r#"{{"type":"array","items":["null",{wide}]}}"#));
    let mut bytes = vec![200, 1];
    bytes.extend([0; 100]);
    bytes.push(0);
    assert_eq!(
        decode(&json, &bytes, &[0], |_| true).unwrap_err().kind(),
        ErrorKind::ResourceExhausted
    );
    // and ends a batch
    let json = one(&format!(r#"["null",{wide}]"#));
    let schema = schema(&json);
    let mut decoder = RowDecoder::new(&schema, &file_fields(&schema).unwrap(), &[0]).unwrap();
    let mut cursor = Cursor::new(&[0; 9]);
    while !decoder.is_full() {
        decoder.read_row(&mut cursor).unwrap();
    }
    assert_eq!(decoder.rows(), 3);
}

/// A column: its Avro type, some values of it.
fn column() -> impl Strategy<Value = (String, Vec<Value>)> {
    const ROWS: usize = 12;
    let leaf = prop_oneof![
        prop::collection::vec(any::<i32>().prop_map(Value::Int), ROWS).prop_map(|v| (r#""int""#.to_owned(), v)),
        prop::collection::vec(any::<i64>().prop_map(Value::Long), ROWS).prop_map(|v| (r#""long""#.to_owned(), v)),
        prop::collection::vec(any::<bool>().prop_map(Value::Boolean), ROWS).prop_map(|v| (r#""boolean""#.to_owned(), v)),
        prop::collection::vec(".{0,5}".prop_map(Value::String), ROWS).prop_map(|v| (r#""string""#.to_owned(), v)),
        prop::collection::vec(any::<[u8; 3]>().prop_map(|b| Value::Bytes(b.to_vec())), ROWS).prop_map(|v| (r#""bytes""#.to_owned(), v)),
        prop::collection::vec(any::<f64>().prop_filter("a number", |d| !d.is_nan()).prop_map(Value::Double), ROWS)
            .prop_map(|v| (r#""double""#.to_owned(), v)),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let null_first = any::<bool>();
        let nullable = (inner.clone(), null_first, prop::collection::vec(any::<bool>(), ROWS)).prop_map(|((of, values), first, nulls)| {
            if of.starts_with('[') {
                return (of, values);
            }
            let null = u32::from(!first);
            let values = values.into_iter().zip(nulls).map(|(value, is_null)| match is_null {
                true => Value::Union(null, Box::new(Value::Null)),
                false => Value::Union(1 - null, Box::new(value)),
            });
            let json = if first {
                format!(r#"["null",{of}]"#)
            } else {
                format!(r#"[{of},"null"]"#)
            };
            (json, values.collect())
        });
        let list = (inner.clone(), prop::collection::vec(0..3usize, ROWS)).prop_map(|((of, values), lengths)| {
            let lists = lengths
                .iter()
                .enumerate()
                .map(|(i, n)| Value::Array(values.iter().cycle().skip(i).take(*n).cloned().collect()));
            (format!(r#"{{"type":"array","items":{of}}}"#), lists.collect())
        });
        let record = prop::collection::vec(inner, 1..4).prop_map(|columns| {
            let fields: Vec<String> = columns
                .iter()
                .enumerate()
                .map(|(i, (of, _))| format!(r#"{{"name":"f{i}","type":{of}}}"#))
                .collect();
            let rows = (0..ROWS).map(|row| {
                Value::Record(
                    columns
                        .iter()
                        .enumerate()
                        .map(|(i, (_, values))| (format!("f{i}"), values[row].clone()))
                        .collect(),
                )
            });
            // the name is made unique below
            (
                format!(r#"{{"type":"record","name":"NAME","fields":[{}]}}"#, fields.join(",")),
                rows.collect(),
            )
        });
        prop_oneof![nullable, list, record]
    })
}

/// A value of a column as text, in one spelling for both sides.
fn written(value: &Value) -> String {
    match value {
        Value::Union(_, inner) => written(inner),
        Value::Null => "null".to_owned(),
        Value::Int(v) => v.to_string(),
        Value::Long(v) => v.to_string(),
        Value::Boolean(v) => v.to_string(),
        Value::Double(v) => format!("{v:?}"),
        Value::String(v) => format!("{v:?}"),
        Value::Bytes(v) => format!("{v:?}"),
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(",")),
        Value::Record(fields) => format!("{{{}}}", fields.iter().map(|(_, v)| written(v)).collect::<Vec<_>>().join(",")),
        other => panic!("{other:?}"),
    }
}

fn decoded(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Float64 => format!("{:?}", array.as_primitive::<arrow::datatypes::Float64Type>().value(row)),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        DataType::Binary => format!("{:?}", array.as_binary::<i32>().value(row)),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            format!("[{}]", (0..items.len()).map(|i| decoded(&items, i)).collect::<Vec<_>>().join(","))
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            format!("{{{}}}", columns.iter().map(|c| decoded(c, row)).collect::<Vec<_>>().join(","))
        }
        other => panic!("{other}"),
    }
}

/// Leaves of each column.
fn leaves_of(fields: &Fields) -> Vec<Vec<usize>> {
    let mut next = 0;
    let counts = fields.iter().map(|f| super::fields::leaf_count(f.data_type()));
    counts
        .map(|count| {
            next += count;
            (next - count..next).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Any columns, any of them wanted, any rows passed: what the other writer wrote is read.
    #[test]
    fn any_rows_come_back(columns in prop::collection::vec((column(), any::<bool>()), 1..5), keep in any::<u16>()) {
        let mut names = 0;
        let fields: Vec<String> = columns.iter().enumerate().map(|(i, ((of, _), _))| {
            let mut parts = of.split("NAME");
            let mut json = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                names += 1;
                json.push_str(&format!("r{names}"));
                json.push_str(part);
            }
            format!(r#"{{"name":"c{i}","type":{json}}}"#)
        }).collect();
        let json = format!(r#"{{"type":"record","name":"t","fields":[{}]}}"#, fields.join(","));
        let rows: Vec<Value> = (0..12).map(|row| {
            Value::Record(columns.iter().enumerate().map(|(i, ((_, values), _))| (format!("c{i}"), values[row].clone())).collect())
        }).collect();
        let bytes = encode(&json, &rows);
        let leaves = leaves_of(&types(&json));
        let wanted: Vec<usize> = leaves.iter().zip(&columns).filter(|(_, (_, wanted))| *wanted).flat_map(|(l, _)| l.clone()).collect();
        let live = |row: usize| keep & (1 << row) != 0;
        let arrays = decode(&json, &bytes, &wanted, live).unwrap();
        let kept = columns.iter().filter(|(_, wanted)| *wanted);
        prop_assert_eq!(arrays.len(), kept.clone().count());
        for (array, ((_, values), _)) in arrays.iter().zip(kept) {
            let expected: Vec<String> = (0..12).filter(|row| live(*row)).map(|row| written(&values[row])).collect();
            prop_assert_eq!((0..array.len()).map(|row| decoded(array, row)).collect::<Vec<_>>(), expected);
        }
    }

    /// Damaged rows are an error or rows, never a panic.
    #[test]
    fn any_bytes_give_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let json = one(r#"["null",{"type":"array","items":{"type":"record","name":"r","fields":[
            {"name":"m","type":{"type":"map","values":["null","string"]}},
            {"name":"d","type":{"type":"fixed","name":"f","size":3,"logicalType":"decimal","precision":6}}]}}]"#);
        let _ = decode(&json, &bytes, &[0, 1, 2], |row| row % 3 != 1);
    }
}
