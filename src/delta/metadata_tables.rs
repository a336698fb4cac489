//! Metadata tables of Delta tables: `history`, `files`, `delete_files`, `properties`, and what DESCRIBE DETAIL and SHOW
//! CREATE TABLE read (interface.md 4).
//!
//! Columns are named as Delta's own statements and actions name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, ListBuilder, MapBuilder, MapFieldNames, RecordBatch, StringArray, StringBuilder,
    StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use serde_json::Value;

use super::commit::Commit;
use super::live_files::LiveFile;
use super::log::Log;
use super::table::DeltaTable;
use super::version::TableVersion;
use crate::error::{Error, Result, ResultExt};
use crate::table::{AsOf, CreateOptions, MetadataTable, Table, create_statement, quoted};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    History,
    /// `vectors`: only files with a deletion vector, as what it is.
    Files {
        vectors: bool,
    },
    Properties,
    Detail,
    CreateStatement,
}

/// The metadata table of a name.
///
/// Errors: `Unsupported` for one that is not built, or has no versions and was asked for one.
pub(super) fn metadata_table(table: &DeltaTable, name: &str, at: &AsOf) -> Result<Arc<dyn MetadataTable>> {
    let kind = match name {
        "history" => Kind::History,
        "files" | "data_files" => Kind::Files { vectors: false },
        "delete_files" => Kind::Files { vectors: true },
        "properties" => Kind::Properties,
        "detail" => Kind::Detail,
        "create_statement" => Kind::CreateStatement,
        _ => return Err(Error::unsupported(format!("tables of Delta Lake have no metadata table {name}")).with("table", table.ident())),
    };
    if kind == Kind::History && *at != AsOf::Latest {
        return Err(Error::unsupported("the history is that of the table as a whole and has no versions").with("table", table.ident()));
    }
    Ok(Arc::new(DeltaMetadataTable {
        kind,
        location: table.newest_commit(),
        table: table.clone(),
        at: at.clone(),
        schema: Arc::new(Schema::new(fields(kind))),
    }))
}

#[derive(Debug)]
struct DeltaMetadataTable {
    kind: Kind,
    table: DeltaTable,
    at: AsOf,
    location: String,
    schema: SchemaRef,
}

#[async_trait]
impl MetadataTable for DeltaMetadataTable {
    fn metadata_location(&self) -> &str {
        &self.location
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn rows(&self, wanted: &[usize]) -> Result<Vec<RecordBatch>> {
        let rows = async {
            let version = self.table.version_of(&self.at).await?;
            let log = self.table.log();
            let columns = match self.kind {
                Kind::History => history(log, &version).await?,
                Kind::Files { vectors } => {
                    let files = log.files(&version).await?;
                    match vectors {
                        false => data_files(&files.files.iter().collect::<Vec<_>>())?,
                        true => vector_files(log, &files.files)?,
                    }
                }
                Kind::Properties => properties(&version),
                Kind::Detail => detail(log, &version).await?,
                Kind::CreateStatement => vec![strings([Some(self.create_statement(&version))])],
            };
            Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?.project(wanted)?)
        };
        let batch: Result<RecordBatch> = rows.await;
        Ok(vec![batch.context("table", || self.table.ident())?])
    }
}

impl DeltaMetadataTable {
    fn create_statement(&self, version: &TableVersion) -> String {
        let options = CreateOptions {
            format: "delta",
            partitioned_by: version.log.partition_columns.iter().map(|name| quoted(name)).collect(),
            location: &self.table.log().root,
            comment: version.log.description.as_deref(),
            properties: version.log.properties.clone(),
        };
        create_statement(self.table.ident(), &version.schema, &options)
    }
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn long(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true)
}

fn texts(name: &str) -> Field {
    Field::new_list(name, Field::new("element", DataType::Utf8, true), true)
}

fn map(name: &str) -> Field {
    let (key, value) = (Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true));
    Field::new_map(name, "key_value", key, value, false, true)
}

fn vector_fields() -> Fields {
    Fields::from(vec![
        text("storageType"),
        text("pathOrInlineDv"),
        Field::new("offset", DataType::Int32, true),
        Field::new("sizeInBytes", DataType::Int32, true),
        long("cardinality"),
    ])
}

fn fields(kind: Kind) -> Vec<Field> {
    match kind {
        Kind::History => vec![
            Field::new("version", DataType::Int64, false),
            time("timestamp"),
            text("userId"),
            text("userName"),
            text("operation"),
            map("operationParameters"),
            text("clusterId"),
            long("readVersion"),
            text("isolationLevel"),
            Field::new("isBlindAppend", DataType::Boolean, true),
            map("operationMetrics"),
            text("userMetadata"),
            text("engineInfo"),
        ],
        Kind::Files { vectors: false } => vec![
            Field::new("file_path", DataType::Utf8, false),
            long("record_count"),
            long("file_size_in_bytes"),
            time("modification_time"),
            map("partition"),
            Field::new_struct("deletion_vector", vector_fields(), true),
            long("base_row_id"),
            long("default_row_commit_version"),
        ],
        Kind::Files { vectors: true } => vec![
            text("file_path"),
            Field::new("data_file_path", DataType::Utf8, false),
            Field::new_struct("deletion_vector", vector_fields(), true),
        ],
        Kind::CreateStatement => vec![Field::new("createtab_stmt", DataType::Utf8, false)],
        Kind::Properties => vec![Field::new("key", DataType::Utf8, false), text("value")],
        Kind::Detail => vec![
            text("format"),
            text("id"),
            text("name"),
            text("description"),
            text("location"),
            time("createdAt"),
            time("lastModified"),
            texts("partitionColumns"),
            long("numFiles"),
            long("sizeInBytes"),
            map("properties"),
            Field::new("minReaderVersion", DataType::Int32, true),
            Field::new("minWriterVersion", DataType::Int32, true),
            texts("tableFeatures"),
        ],
    }
}

fn times(millis: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    let micros = millis.into_iter().map(|ms| ms.map(|ms| ms.saturating_mul(1000)));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}

fn strings<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

fn longs(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// Maps, one a row.
fn maps<'a>(rows: impl IntoIterator<Item = Option<Vec<(&'a str, Option<String>)>>>) -> Result<ArrayRef> {
    let names = MapFieldNames {
        entry: "key_value".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for row in rows {
        let is_there = row.is_some();
        for (key, value) in row.into_iter().flatten() {
            builder.keys().append_value(key);
            builder.values().append_option(value);
        }
        builder.append(is_there)?;
    }
    Ok(Arc::new(builder.finish()))
}

fn lists(values: &[String]) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(Field::new("element", DataType::Utf8, true));
    for value in values {
        builder.values().append_value(value);
    }
    builder.append(true);
    Arc::new(builder.finish())
}

/// The commits whose files are there, newest first.
async fn history(log: &Log, version: &TableVersion) -> Result<Vec<ArrayRef>> {
    let mut commits = Vec::new();
    for commit in log.commits(version.log.number()).await?.into_iter().rev() {
        commits.extend(log.read_commit_info(commit).await?);
    }
    // A value that is no text is shown as the JSON that it is.
    let shown = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let of = |name: &'static str| strings(commits.iter().map(|c: &Commit| c.info.get(name).and_then(shown)));
    let map_of = |name: &'static str| {
        maps(commits.iter().map(|c| {
            let entries = c.info.get(name)?.as_object()?;
            Some(entries.iter().map(|(key, value)| (key.as_str(), shown(value))).collect())
        }))
    };
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Ok(vec![
        longs(commits.iter().map(|c| Some(number(c.number)))),
        times(commits.iter().map(|c| Some(c.millis))),
        of("userId"),
        of("userName"),
        of("operation"),
        map_of("operationParameters")?,
        of("clusterId"),
        longs(commits.iter().map(|c| c.info.get("readVersion").and_then(Value::as_i64))),
        of("isolationLevel"),
        Arc::new(
            commits
                .iter()
                .map(|c| c.info.get("isBlindAppend").and_then(Value::as_bool))
                .collect::<BooleanArray>(),
        ),
        map_of("operationMetrics")?,
        of("userMetadata"),
        of("engineInfo"),
    ])
}

fn vectors(files: &[&LiveFile]) -> ArrayRef {
    let of = |file: &&LiveFile| file.vector.clone();
    let found: Vec<_> = files.iter().map(of).collect();
    let columns: Vec<ArrayRef> = vec![
        strings(found.iter().map(|v| v.as_ref().map(|v| &v.storage))),
        strings(found.iter().map(|v| v.as_ref().map(|v| &v.path_or_inline))),
        Arc::new(found.iter().map(|v| v.as_ref().and_then(|v| v.offset)).collect::<Int32Array>()),
        Arc::new(found.iter().map(|v| v.as_ref().map(|v| v.size)).collect::<Int32Array>()),
        longs(found.iter().map(|v| v.as_ref().map(|v| v.cardinality))),
    ];
    let nulls: NullBuffer = found.iter().map(Option::is_some).collect();
    Arc::new(StructArray::new(vector_fields(), columns, Some(nulls)))
}

fn data_files(files: &[&LiveFile]) -> Result<Vec<ArrayRef>> {
    let partitions = files.iter().map(|file| Some(file.partition_texts().collect()));
    Ok(vec![
        strings(files.iter().map(|f| Some(&f.path))),
        longs(files.iter().map(|f| f.record_count().and_then(|n| i64::try_from(n).ok()))),
        longs(files.iter().map(|f| Some(f.size))),
        times(files.iter().map(|f| Some(f.modified))),
        maps(partitions)?,
        vectors(files),
        longs(files.iter().map(|f| f.base_row_id)),
        longs(files.iter().map(|f| f.commit_version)),
    ])
}

fn vector_files(log: &Log, files: &[LiveFile]) -> Result<Vec<ArrayRef>> {
    let with: Vec<&LiveFile> = files.iter().filter(|file| file.vector.is_some()).collect();
    let places = with
        .iter()
        .filter_map(|file| file.vector.as_ref())
        .map(|v| v.location(&log.io, &log.root));
    Ok(vec![
        strings(places.collect::<Result<Vec<_>>>()?),
        strings(with.iter().map(|f| Some(&f.path))),
        vectors(&with),
    ])
}

fn properties(version: &TableVersion) -> Vec<ArrayRef> {
    let all = shown_properties(version);
    vec![strings(all.keys().map(Some)), strings(all.values().map(Some))]
}

/// The table's properties, and what its protocol asks for as such.
fn shown_properties(version: &TableVersion) -> BTreeMap<String, String> {
    let mut all = version.log.properties.clone();
    let protocol = &version.log.protocol;
    all.insert("delta.minReaderVersion".to_owned(), protocol.reader.to_string());
    all.insert("delta.minWriterVersion".to_owned(), protocol.writer.to_string());
    for feature in protocol.features() {
        all.insert(format!("delta.feature.{feature}"), "supported".to_owned());
    }
    all
}

async fn detail(log: &Log, version: &Arc<TableVersion>) -> Result<Vec<ArrayRef>> {
    let files = log.files(version).await?;
    let of = &version.log;
    let count = i64::try_from(files.files.len()).unwrap_or(i64::MAX);
    let bytes = files.files.iter().map(|f| f.size).fold(0_i64, i64::saturating_add);
    let newest = log.commits(of.number()).await?.pop().filter(|(number, _)| *number == of.number());
    let modified = match newest {
        Some(commit) => log.read_commit_info(commit).await?.map(|commit| commit.millis),
        None => None,
    };
    let properties = of
        .properties
        .iter()
        .map(|(key, value)| (key.as_str(), Some(value.clone())))
        .collect();
    Ok(vec![
        strings([Some("delta")]),
        strings([Some(&of.id)]),
        strings([of.name.as_ref()]),
        strings([of.description.as_ref()]),
        strings([Some(&log.root)]),
        times([of.created]),
        times([modified]),
        lists(&of.partition_columns),
        longs([Some(count)]),
        longs([Some(bytes)]),
        maps([Some(properties)])?,
        Arc::new(Int32Array::from(vec![of.protocol.reader])),
        Arc::new(Int32Array::from(vec![of.protocol.writer])),
        lists(&of.protocol.features()),
    ])
}
