//! What the files of a table have in common: layout on disk, metrics, the manifest's view of a
//! file, and what the model remembers of its rows.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use super::avro::Codec;
use super::row_formats;
use super::types::{Field, Schema, Type};
use super::values::{self, Scalar};

/// How a file stores its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowFormat {
    #[default]
    Parquet,
    Avro(Codec),
    /// Flat columns of the plainer types.
    Orc,
}

/// Layout of a file of rows. `row_group_rows` are the rows of a Parquet row group, an Avro block
/// or an ORC stripe; the rest is Parquet's.
#[derive(Debug, Clone)]
pub struct Layout {
    pub format: RowFormat,
    pub row_group_rows: Option<usize>,
    pub page_rows: Option<usize>,
    pub compression: Compression,
    pub dictionary: bool,
    pub bloom_filters: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            format: RowFormat::Parquet,
            row_group_rows: None,
            page_rows: None,
            compression: Compression::SNAPPY,
            dictionary: true,
            bloom_filters: false,
        }
    }
}

impl Layout {
    /// The rows as a file of the layout's format.
    pub fn file(&self, schema: &Schema, rows: &[Vec<Value>], ids: bool) -> Vec<u8> {
        match self.format {
            RowFormat::Parquet => self.write(&values::batch(schema, rows, ids)),
            RowFormat::Avro(codec) => row_formats::avro_file(schema, rows, ids, codec, self.row_group_rows),
            RowFormat::Orc => row_formats::orc_file(schema, &values::batch(schema, rows, ids), ids, self.row_group_rows),
        }
    }

    /// The name of the format, in lower case.
    pub fn extension(&self) -> &'static str {
        match self.format {
            RowFormat::Parquet => "parquet",
            RowFormat::Avro(_) => "avro",
            RowFormat::Orc => "orc",
        }
    }

    /// The batch as a Parquet file. The arrow schema is left out, as any other writer would.
    pub fn write(&self, batch: &RecordBatch) -> Vec<u8> {
        let mut properties = WriterProperties::builder()
            .set_compression(self.compression)
            .set_dictionary_enabled(self.dictionary)
            .set_bloom_filter_enabled(self.bloom_filters)
            .set_max_row_group_row_count(Some(self.row_group_rows.unwrap_or(1 << 20)));
        if let Some(rows) = self.page_rows {
            properties = properties.set_data_page_row_count_limit(rows).set_write_batch_size(rows);
        }
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options).expect("a Parquet schema");
        writer.write(batch).expect("memory");
        writer.into_inner().expect("memory")
    }
}

/// Methods of everything that becomes a file of rows.
macro_rules! layout_methods {
    () => {
        /// How the rows are stored; in Parquet by default.
        #[must_use]
        pub fn stored_as(mut self, format: $crate::support::builder::RowFormat) -> Self {
            self.layout.format = format;
            self
        }

        /// Rows per row group; one group by default.
        #[must_use]
        pub fn row_group_rows(mut self, rows: usize) -> Self {
            self.layout.row_group_rows = Some(rows);
            self
        }

        /// Rows per data page at most.
        #[must_use]
        pub fn page_rows(mut self, rows: usize) -> Self {
            self.layout.page_rows = Some(rows);
            self
        }

        /// Compression; Snappy by default.
        #[must_use]
        pub fn compression(mut self, compression: parquet::basic::Compression) -> Self {
            self.layout.compression = compression;
            self
        }

        /// Writes a bloom filter for every column chunk.
        #[must_use]
        pub fn bloom_filters(mut self) -> Self {
            self.layout.bloom_filters = true;
            self
        }

        /// Writes plain pages.
        #[must_use]
        pub fn without_dictionary(mut self) -> Self {
            self.layout.dictionary = false;
            self
        }
    };
}
pub(super) use layout_methods;

/// Methods of everything that becomes an entry of a manifest.
macro_rules! entry_methods {
    () => {
        /// Spec that the file is written under; the table's default by default.
        #[must_use]
        pub fn spec(mut self, id: i32) -> Self {
            self.place.spec = Some(id);
            self
        }

        /// Partition: a list in the spec's order or an object by field name, in canonical form.
        #[must_use]
        pub fn partition(mut self, values: serde_json::Value) -> Self {
            self.place.partition = Some(values);
            self
        }

        /// Path below the table's folder, also where the file's name is to be odd.
        #[must_use]
        pub fn path(mut self, relative: &str) -> Self {
            self.place.path = Some(relative.to_owned());
            self
        }

        /// How the manifest spells the path; `{location}` stands for the table's recorded location.
        #[must_use]
        pub fn recorded_path(mut self, spelling: &str) -> Self {
            self.place.recorded = Some(spelling.to_owned());
            self
        }

        /// The entry is ADDED with this data sequence number instead of inheriting the commit's.
        #[must_use]
        pub fn sequence_number(mut self, number: i64) -> Self {
            self.place.status = $crate::support::builder::Status::AddedWith(number);
            self
        }

        /// The entry is EXISTING with this data and file sequence number.
        #[must_use]
        pub fn existing(mut self, number: i64) -> Self {
            self.place.status = $crate::support::builder::Status::Existing(Some(number));
            self
        }

        /// The entry is EXISTING without sequence number, which no reader may accept.
        #[must_use]
        pub fn existing_without_number(mut self) -> Self {
            self.place.status = $crate::support::builder::Status::Existing(None);
            self
        }

        /// Record count that the manifest claims.
        #[must_use]
        pub fn claimed_record_count(mut self, count: i64) -> Self {
            self.place.record_count = Some(count);
            self
        }

        /// File size that the manifest claims.
        #[must_use]
        pub fn claimed_size(mut self, size: i64) -> Self {
            self.place.size = Some(size);
            self
        }

        /// File format that the manifest claims.
        #[must_use]
        pub fn claimed_format(mut self, format: &str) -> Self {
            self.place.format = Some(format.to_owned());
            self
        }
    };
}
pub(super) use entry_methods;

/// How a new entry states its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// ADDED, inheriting the manifest's sequence number.
    #[default]
    Added,
    /// ADDED with a data sequence number of its own.
    AddedWith(i64),
    /// EXISTING with both sequence numbers, or (wrongly) with none.
    Existing(Option<i64>),
}

/// Where a file belongs and what its entry claims.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub spec: Option<i32>,
    pub partition: Option<Value>,
    /// The partition ready made; wins over `partition`.
    pub values: Option<Vec<Option<Scalar>>>,
    pub path: Option<String>,
    pub recorded: Option<String>,
    pub status: Status,
    pub record_count: Option<i64>,
    pub size: Option<i64>,
    pub format: Option<String>,
}

/// Content of a file, with the number that manifests give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    Data = 0,
    PositionDeletes = 1,
    EqualityDeletes = 2,
}

/// Metrics of a file by field id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    pub value_counts: BTreeMap<i32, i64>,
    pub null_counts: BTreeMap<i32, i64>,
    pub nan_counts: BTreeMap<i32, i64>,
    pub lower: BTreeMap<i32, Vec<u8>>,
    pub upper: BTreeMap<i32, Vec<u8>>,
}

impl Metrics {
    /// Right and full metrics of the primitive columns that lie in no list or map.
    pub fn of(schema: &Schema, rows: &[Vec<Value>]) -> Self {
        let mut out = Self::default();
        for (i, field) in schema.fields.iter().enumerate() {
            let cells: Vec<&Value> = rows.iter().map(|r| &r[i]).collect();
            out.add(field, &cells);
        }
        out
    }

    fn add(&mut self, field: &Field, cells: &[&Value]) {
        match &field.field_type {
            Type::Struct(inner) => {
                for child in inner {
                    let cells: Vec<&Value> = cells.iter().map(|c| c.get(&child.name).unwrap_or(&Value::Null)).collect();
                    self.add(child, &cells);
                }
            }
            Type::List(_) | Type::Map(..) | Type::Unknown => {}
            primitive => {
                let values: Vec<Scalar> = cells.iter().filter_map(|c| Scalar::new(primitive, c)).collect();
                self.value_counts.insert(field.id, cells.len() as i64);
                self.null_counts.insert(field.id, (cells.len() - values.len()) as i64);
                let (nan, plain): (Vec<Scalar>, Vec<Scalar>) = values.into_iter().partition(Scalar::is_nan);
                if matches!(primitive, Type::Float | Type::Double) {
                    self.nan_counts.insert(field.id, nan.len() as i64);
                }
                if let Some(lowest) = plain.iter().min_by(|a, b| a.order(b)) {
                    self.lower.insert(field.id, lowest.binary());
                }
                if let Some(highest) = plain.iter().max_by(|a, b| a.order(b)) {
                    self.upper.insert(field.id, highest.binary());
                }
            }
        }
    }
}

/// A file as manifests describe it.
#[derive(Debug, Clone)]
pub struct FileEntry {
    pub content: Content,
    /// As recorded.
    pub path: String,
    pub format: String,
    pub spec_id: i32,
    pub partition: Vec<Option<Scalar>>,
    pub record_count: i64,
    pub size: i64,
    pub metrics: Metrics,
    pub equality_ids: Option<Vec<i32>>,
    pub first_row_id: Option<i64>,
    pub referenced_data_file: Option<String>,
    pub content_offset: Option<i64>,
    pub content_size: Option<i64>,
}

/// What a file does to the rows of the table.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Rows of the file in its own schema.
    Rows { schema: Schema, rows: Vec<Vec<Value>> },
    /// (recorded path, position); the one path where the file is bound to one.
    Positions {
        list: BTreeSet<(String, i64)>,
        only_file: Option<String>,
    },
    /// Keys in the delete file's own schema.
    Keys {
        schema: Schema,
        ids: Vec<i32>,
        rows: Vec<Vec<Value>>,
    },
    /// Positions in the data file of this recorded path.
    Vector { path: String, positions: BTreeSet<u64> },
}

/// A file of the table.
#[derive(Debug)]
pub struct Stored {
    /// Name that the test gave it.
    pub name: String,
    pub entry: FileEntry,
    pub effect: Effect,
}
