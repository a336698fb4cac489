//! Data files.

use arrow::array::RecordBatch;
use serde_json::Value;

use super::files::{Content, Effect, Layout, Metrics, Place, Stored, entry_methods, layout_methods};
use super::table::TestTable;
use super::types::{Schema, Type};
use super::values::Scalar;
use crate::support::canonical;

/// Which metrics the manifest gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Given {
    #[default]
    All,
    CountsOnly,
    Nothing,
}

/// A data file to be written. Its name is how deletes and removals refer to it.
#[derive(Debug, Clone)]
pub struct DataFile {
    name: String,
    rows: Vec<Vec<Value>>,
    schema: Option<Schema>,
    ids: bool,
    given: Given,
    lower: Vec<(i32, Option<Vec<u8>>)>,
    upper: Vec<(i32, Option<Vec<u8>>)>,
    first_row_id: Option<i64>,
    on_disk: bool,
    null_counts: bool,
    nan_counts: bool,
    pub(super) layout: Layout,
    pub(super) place: Place,
}

impl DataFile {
    /// An empty file of this name, in the schema that the table has when it is committed.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rows: Vec::new(),
            schema: None,
            ids: true,
            given: Given::All,
            lower: Vec::new(),
            upper: Vec::new(),
            first_row_id: None,
            on_disk: true,
            null_counts: true,
            nan_counts: true,
            layout: Layout::default(),
            place: Place::default(),
        }
    }

    layout_methods!();
    entry_methods!();

    /// Adds rows: a list of rows, each a list of cells in canonical form.
    #[must_use]
    pub fn rows(mut self, rows: Value) -> Self {
        self.rows.extend(row_list(rows));
        self
    }

    /// Adds rows made one by one.
    #[must_use]
    pub fn rows_from(mut self, rows: impl IntoIterator<Item = Value>) -> Self {
        self.rows.extend(rows.into_iter().map(one_row));
        self
    }

    /// Adds the rows of a batch whose columns are those of the file's schema in order.
    #[must_use]
    pub fn batch(mut self, batch: &RecordBatch) -> Self {
        self.rows.extend(canonical::rows(batch));
        self
    }

    /// Schema of the file where it is not the table's.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Leaves field ids out of the file.
    #[must_use]
    pub fn without_ids(mut self) -> Self {
        self.ids = false;
        self
    }

    /// Gives no metrics in the manifest.
    #[must_use]
    pub fn without_metrics(mut self) -> Self {
        self.given = Given::Nothing;
        self
    }

    /// Gives counts but no bounds in the manifest.
    #[must_use]
    pub fn without_bounds(mut self) -> Self {
        self.given = Given::CountsOnly;
        self
    }

    /// Leaves the null counts out of the manifest.
    #[must_use]
    pub fn without_null_counts(mut self) -> Self {
        self.null_counts = false;
        self
    }

    /// Leaves the NaN counts out of the manifest.
    #[must_use]
    pub fn without_nan_counts(mut self) -> Self {
        self.nan_counts = false;
        self
    }

    /// Replaces the bounds of a column, also by wrong ones; null leaves one out.
    #[must_use]
    pub fn bounds(mut self, id: i32, of: &Type, lower: &Value, upper: &Value) -> Self {
        let bytes = |v| Scalar::new(of, v).map(|s| s.binary());
        self.lower.push((id, bytes(lower)));
        self.upper.push((id, bytes(upper)));
        self
    }

    /// Replaces the bounds of a column by these bytes.
    #[must_use]
    pub fn raw_bounds(mut self, id: i32, lower: &[u8], upper: &[u8]) -> Self {
        self.lower.push((id, Some(lower.to_vec())));
        self.upper.push((id, Some(upper.to_vec())));
        self
    }

    /// First row id of the entry (v3); inherited by default.
    #[must_use]
    pub fn first_row_id(mut self, id: i64) -> Self {
        self.first_row_id = Some(id);
        self
    }

    /// Makes the entry, but no file.
    #[must_use]
    pub fn absent(mut self) -> Self {
        self.on_disk = false;
        self
    }

    pub(super) fn store(mut self, table: &TestTable) -> (Stored, Place) {
        let schema = self.schema.unwrap_or_else(|| table.schema().clone());
        let bytes = if self.on_disk {
            self.layout.file(&schema, &self.rows, self.ids)
        } else {
            Vec::new()
        };
        let mut metrics = match self.given {
            Given::Nothing => Metrics::default(),
            Given::CountsOnly => Metrics {
                lower: Default::default(),
                upper: Default::default(),
                ..Metrics::of(&schema, &self.rows)
            },
            Given::All => Metrics::of(&schema, &self.rows),
        };
        if !self.null_counts {
            metrics.null_counts.clear();
        }
        if !self.nan_counts {
            metrics.nan_counts.clear();
        }
        for (given, bounds) in [(self.lower, &mut metrics.lower), (self.upper, &mut metrics.upper)] {
            for (id, bytes) in given {
                match bytes {
                    Some(bytes) => bounds.insert(id, bytes),
                    None => bounds.remove(&id),
                };
            }
        }
        let relative = self
            .place
            .path
            .clone()
            .unwrap_or_else(|| format!("data/{}.{}", self.name, self.layout.extension()));
        self.place.format.get_or_insert_with(|| self.layout.extension().to_uppercase());
        if self.on_disk {
            table.write_file(&relative, &bytes);
        }
        let mut entry = table.entry(Content::Data, &self.place, &relative, self.rows.len(), bytes.len());
        entry.metrics = metrics;
        entry.first_row_id = self.first_row_id;
        let effect = Effect::Rows { schema, rows: self.rows };
        let stored = Stored {
            name: self.name,
            entry,
            effect,
        };
        (stored, self.place)
    }
}

/// A JSON list of rows.
pub(super) fn row_list(rows: Value) -> Vec<Vec<Value>> {
    match rows {
        Value::Array(rows) => rows.into_iter().map(one_row).collect(),
        other => panic!("{other} is no list of rows"),
    }
}

fn one_row(row: Value) -> Vec<Value> {
    match row {
        Value::Array(cells) => cells,
        other => panic!("{other} is no row"),
    }
}
