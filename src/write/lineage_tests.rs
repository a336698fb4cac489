//! Rows that are written anew with their ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Field, Int32Type, Int64Type, Schema as ArrowSchema};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::printer::print_schema;
use serde_json::{Value, json};

use super::tests::{Table, batch, numbered, read};
use super::{DataWriter, WriterLimits};
use crate::error::{ErrorKind, Result};
use crate::iceberg::manifest::DataFile;

const ROW_ID: i32 = 2_147_483_540;
const SEQUENCE: i32 = 2_147_483_539;

fn v3(mut table: Table) -> Table {
    table.json["format-version"] = json!(3);
    table.json["next-row-id"] = json!(1000);
    table
}

fn writer(table: &Table) -> Result<DataWriter> {
    DataWriter::with_lineage(table.io(), table.pool(), &table.metadata(), "id", 0, WriterLimits::default())
}

fn with_lineage(rows: &RecordBatch, ids: Vec<Option<i64>>, numbers: Vec<Option<i64>>) -> RecordBatch {
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = rows.columns().to_vec();
    for (name, values) in [("_row_id", ids), ("_last_updated_sequence_number", numbers)] {
        let array: ArrayRef = Arc::new(Int64Array::from(values));
        fields.push(Field::new(name, array.data_type().clone(), true));
        columns.push(array);
    }
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap()
}

async fn write(table: &Table, rows: &RecordBatch) -> Vec<DataFile> {
    let mut writer = writer(table).unwrap();
    writer.write(rows).await.unwrap();
    writer.finish().await.unwrap()
}

#[tokio::test]
async fn ids_and_sequence_numbers_lie_in_the_file() {
    let table = v3(Table::new());
    let rows = batch(vec![5, 6, 7], vec![Some("a"), None, Some("c")], vec![None; 3]);
    let rows = with_lineage(&rows, vec![Some(40), None, Some(7)], vec![Some(2), None, Some(1)]);
    let [file] = write(&table, &rows).await.try_into().unwrap();
    let read = read(&file.file_path).remove(0);
    assert_eq!(read.columns(), rows.columns());
    // A file is given its first row id by its commit, for the rows that have none.
    assert_eq!((file.first_row_id, file.sort_order_id, file.record_count), (None, Some(0), 3));
    assert_eq!(
        file.null_value_counts,
        BTreeMap::from([(1, 0), (2, 1), (3, 3), (ROW_ID, 1), (SEQUENCE, 1)])
    );
    assert_eq!(file.value_counts.get(&ROW_ID), Some(&3));
    let ends = |id: i32| (file.lower_bounds[&id].clone(), file.upper_bounds[&id].clone());
    let numbers = |from: i64, to: i64| (from.to_le_bytes().to_vec(), to.to_le_bytes().to_vec());
    assert_eq!((ends(ROW_ID), ends(SEQUENCE)), (numbers(7, 40), numbers(1, 2)));

    let reader = SerializedFileReader::new(std::fs::File::open(&file.file_path).unwrap()).unwrap();
    let footer = reader.metadata().file_metadata();
    let mut printed = Vec::new();
    print_schema(&mut printed, footer.schema());
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.contains("OPTIONAL INT64 _row_id [2147483540];"), "{printed}");
    assert!(
        printed.contains("OPTIONAL INT64 _last_updated_sequence_number [2147483539];"),
        "{printed}"
    );
    let keys = footer.key_value_metadata().unwrap();
    let schema = keys
        .iter()
        .find(|pair| pair.key == "iceberg.schema")
        .unwrap()
        .value
        .clone()
        .unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    // As Spark 4 with Iceberg 1.10 writes it.
    assert_eq!(
        schema["fields"].as_array().unwrap()[3..],
        [
            json!({"id": ROW_ID, "name": "_row_id", "required": false, "type": "long", "doc": "Implicit row ID that is automatically assigned"}),
            json!({"id": SEQUENCE, "name": "_last_updated_sequence_number", "required": false, "type": "long",
                "doc": "Sequence number when the row was last updated"}),
        ]
    );
}

#[tokio::test]
async fn rows_keep_their_ids_in_whatever_partition_and_order_they_come() {
    let table = v3(Table::partitioned(&[("i", 1, "bucket[4]")]).sorted("identity", 2));
    let rows = with_lineage(
        &numbered(0, 1000, 7),
        (0..1000).map(|n| Some(n * 10)).collect(),
        (0..1000).map(|n| Some(n % 3)).collect(),
    );
    let files = write(&table, &rows).await;
    assert_eq!(files.len(), 4);
    let mut seen = Vec::new();
    for batch in files.iter().flat_map(|file| read(&file.file_path)) {
        let (i, ids) = (
            batch.column(0).as_primitive::<Int32Type>(),
            batch.column(3).as_primitive::<Int64Type>(),
        );
        let numbers = batch.column(4).as_primitive::<Int64Type>();
        let each = i.values().iter().zip(ids.values()).zip(numbers.values());
        seen.extend(each.map(|((i, id), number)| (i64::from(*i), *id, *number)));
    }
    seen.sort_unstable();
    assert!(seen.iter().copied().eq((0..1000).map(|n| (n, n * 10, n % 3))));
}

#[tokio::test]
async fn the_columns_have_the_metrics_of_the_tables_default() {
    let table = v3(Table::new().property("write.metadata.metrics.default", "counts"));
    let rows = with_lineage(&numbered(0, 3, 3), vec![Some(1); 3], vec![Some(1); 3]);
    let [file] = write(&table, &rows).await.try_into().unwrap();
    assert!(file.lower_bounds.is_empty() && file.value_counts[&ROW_ID] == 3);
    let limit = "write.metadata.metrics.max-inferred-column-defaults";
    for (most, counted) in [("3", true), ("2", false)] {
        let table = v3(Table::new().property(limit, most));
        let [file] = write(&table, &rows).await.try_into().unwrap();
        let has = (file.value_counts.contains_key(&ROW_ID), file.lower_bounds.contains_key(&SEQUENCE));
        assert_eq!(has, (counted, counted), "{most}");
        assert!(file.value_counts.contains_key(&1));
    }
}

#[tokio::test]
async fn other_tables_and_other_columns_are_refused() {
    let error = writer(&Table::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("format version 3"), "{error}");
    let mut table = v3(Table::new());
    table.json["schemas"][0]["fields"][1]["name"] = json!("_row_id");
    let error = writer(&table).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unsupported && error.to_string().contains("_row_id"),
        "{error}"
    );
    let table = v3(Table::new());
    let rows = numbered(0, 3, 3);
    let complete = with_lineage(&rows, vec![Some(1); 3], vec![Some(1); 3]);
    let turned = complete.project(&[0, 1, 2, 4, 3]).unwrap();
    for rows in [rows, turned] {
        let mut writer = writer(&table).unwrap();
        assert_eq!(writer.write(&rows).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert!(table.files().is_empty());
}
