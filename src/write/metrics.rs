//! What the rows of a file tell of its columns (spec "Data File Fields"): bounds and counts of NaN, gathered
//! while rows are written; sizes, counts of values and nulls come from the finished file.
//!
//! NaN is in no bound, -0.0 lies below 0.0. Fields inside of lists and maps have a size only, as in files of
//! Iceberg Java.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::NullBuffer;

use super::bounds::{cut_lower, cut_upper};
use super::file_schema::{FileColumn, Kind};
use super::metrics_mode::{MetricsMode, MetricsModes};
use super::source::walk;
use super::values::Values;
use crate::error::Result;
use crate::iceberg::manifest::DataFile;
use crate::iceberg::spec::{Literal, PrimitiveType};

/// The fields of one column that have counts.
#[derive(Debug, Clone)]
pub(super) struct ColumnMetrics(Vec<FieldMetrics>);

#[derive(Debug, Clone)]
struct FieldMetrics {
    id: i32,
    primitive: PrimitiveType,
    /// Positions of what is stored, from the column down.
    path: Vec<usize>,
    /// Characters or bytes of bounds; `None` where there are none.
    length: Option<usize>,
    range: Option<(Literal, Literal)>,
    nans: u64,
}

impl ColumnMetrics {
    /// Of no rows yet.
    pub(super) fn new(column: &FileColumn, modes: &MetricsModes) -> Self {
        let mut fields = Vec::new();
        add_fields(column, &mut vec![0], modes, &mut fields);
        Self(fields)
    }

    /// Takes the rows of the stored column in.
    pub(super) fn add(&mut self, array: &ArrayRef) -> Result<()> {
        for field in &mut self.0 {
            field.add(array)?;
        }
        Ok(())
    }

    /// The fields that have counts of values and nulls.
    pub(super) fn counted(&self) -> impl Iterator<Item = i32> {
        self.0.iter().map(|field| field.id)
    }

    /// Writes bounds and counts of NaN.
    pub(super) fn write(self, file: &mut DataFile) -> Result<()> {
        for field in self.0 {
            if is_float(&field.primitive) {
                file.nan_value_counts.insert(field.id, field.nans);
            }
            let (Some(length), Some((lower, upper))) = (field.length, field.range) else {
                continue;
            };
            let lower = cut_lower(lower, length).to_bytes(&field.primitive)?;
            file.lower_bounds.insert(field.id, lower);
            if let Some(upper) = cut_upper(upper, length) {
                file.upper_bounds.insert(field.id, upper.to_bytes(&field.primitive)?);
            }
        }
        Ok(())
    }
}

fn add_fields(column: &FileColumn, path: &mut Vec<usize>, modes: &MetricsModes, into: &mut Vec<FieldMetrics>) {
    match &column.kind {
        Kind::Primitive(primitive) => {
            let mode = modes.of(column.id);
            if mode == MetricsMode::None || !column.is_stored() {
                return;
            }
            let length = match mode {
                MetricsMode::Bounds(length) if has_bounds(primitive) => Some(cut_length(primitive, length)),
                _ => None,
            };
            into.push(FieldMetrics {
                id: column.id,
                primitive: primitive.clone(),
                path: path.clone(),
                length,
                range: None,
                nans: 0,
            });
        }
        Kind::Struct(fields) => {
            for (at, field) in fields.iter().filter(|field| field.is_stored()).enumerate() {
                path.push(at);
                add_fields(field, path, modes, into);
                path.pop();
            }
        }
        Kind::List(_) | Kind::Map(_) => {}
    }
}

/// Bounds of shapes are points, not bytes of shapes.
fn has_bounds(primitive: &PrimitiveType) -> bool {
    !matches!(primitive, PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. })
}

/// Only text and binary are cut; fixed is as long as its type says.
fn cut_length(primitive: &PrimitiveType, length: usize) -> usize {
    match primitive {
        PrimitiveType::String | PrimitiveType::Binary => length,
        _ => usize::MAX,
    }
}

fn is_float(primitive: &PrimitiveType) -> bool {
    matches!(primitive, PrimitiveType::Float | PrimitiveType::Double)
}

impl FieldMetrics {
    fn add(&mut self, column: &ArrayRef) -> Result<()> {
        if self.length.is_none() && !is_float(&self.primitive) {
            return Ok(());
        }
        let (array, nulls) = walk(std::slice::from_ref(column), &self.path)?;
        let nulls = nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
        let values = Values::new(&self.primitive, array.as_ref())?;
        let ends = match &values {
            Values::Boolean(array) => booleans(array, nulls),
            Values::Int(v) => extremes(v, nulls, i32::cmp),
            Values::Long(v) => extremes(v, nulls, i64::cmp),
            Values::Decimal(v) => extremes(v, nulls, i128::cmp),
            Values::Float(v) => {
                self.nans += count(v, nulls, |v| v.is_nan());
                extremes_but(v, nulls, f32::total_cmp, |v| v.is_nan())
            }
            Values::Double(v) => {
                self.nans += count(v, nulls, |v| v.is_nan());
                extremes_but(v, nulls, f64::total_cmp, |v| v.is_nan())
            }
            Values::String(_) | Values::Binary(_) | Values::Fixed(_) | Values::Uuid(_) => byte_extremes(&values, array.len(), nulls),
        };
        let Some((least, greatest)) = ends else { return Ok(()) };
        let (Some(least), Some(greatest)) = (values.literal(least), values.literal(greatest)) else {
            return Ok(());
        };
        self.range = Some(match self.range.take() {
            None => (least, greatest),
            Some((lower, upper)) => (
                if least.order(&lower) == Ordering::Less { least } else { lower },
                if greatest.order(&upper) == Ordering::Greater {
                    greatest
                } else {
                    upper
                },
            ),
        });
        Ok(())
    }
}

/// Rows that are not null.
fn rows(length: usize, nulls: Option<&NullBuffer>) -> impl Iterator<Item = usize> {
    (0..length).filter(move |row| nulls.is_none_or(|nulls| nulls.is_valid(*row)))
}

/// Rows of the least and greatest value.
fn extremes<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, order: impl Fn(&T, &T) -> Ordering) -> Option<(usize, usize)> {
    extremes_but(values, nulls, order, |_| false)
}

fn extremes_but<T: Copy>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    order: impl Fn(&T, &T) -> Ordering,
    left_out: impl Fn(&T) -> bool,
) -> Option<(usize, usize)> {
    let mut ends: Option<((usize, T), (usize, T))> = None;
    for (row, value) in values.iter().enumerate() {
        if left_out(value) || nulls.is_some_and(|nulls| nulls.is_null(row)) {
            continue;
        }
        match &mut ends {
            None => ends = Some(((row, *value), (row, *value))),
            Some((least, greatest)) => {
                if order(value, &least.1) == Ordering::Less {
                    *least = (row, *value);
                } else if order(value, &greatest.1) == Ordering::Greater {
                    *greatest = (row, *value);
                }
            }
        }
    }
    ends.map(|(least, greatest)| (least.0, greatest.0))
}

fn count<T>(values: &[T], nulls: Option<&NullBuffer>, is_counted: impl Fn(&T) -> bool) -> u64 {
    let counted = values.iter().enumerate().filter(|(row, value)| {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(*row));
        is_counted(value) && !is_null
    });
    counted.count() as u64
}

fn booleans(array: &BooleanArray, nulls: Option<&NullBuffer>) -> Option<(usize, usize)> {
    let first = |wanted: bool| rows(array.len(), nulls).find(|row| array.value(*row) == wanted);
    let (no, yes) = (first(false), first(true));
    Some((no.or(yes)?, yes.or(no)?))
}

fn byte_extremes(values: &Values<'_>, length: usize, nulls: Option<&NullBuffer>) -> Option<(usize, usize)> {
    let mut ends: Option<((usize, &[u8]), (usize, &[u8]))> = None;
    for row in rows(length, nulls) {
        let Some(bytes) = values.bytes(row) else { continue };
        match &mut ends {
            None => ends = Some(((row, bytes), (row, bytes))),
            Some((least, greatest)) => {
                if bytes < least.1 {
                    *least = (row, bytes);
                } else if bytes > greatest.1 {
                    *greatest = (row, bytes);
                }
            }
        }
    }
    ends.map(|(least, greatest)| (least.0, greatest.0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Float64Array, Int32Array, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field};
    use serde_json::{Value, json};

    use super::super::file_schema::FileSchema;
    use super::*;
    use crate::iceberg::manifest::{FileContent, FileFormat};
    use crate::iceberg::spec::{Schema, SortOrder};

    fn metrics(field: &Value, mode: &str, chunks: &[ArrayRef]) -> DataFile {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": [field]})).unwrap();
        let properties = [("write.metadata.metrics.default".to_owned(), mode.to_owned())].into();
        let modes = MetricsModes::new(&schema, &properties, &SortOrder::unsorted()).unwrap();
        let files = FileSchema::new(&schema).unwrap();
        let mut metrics = ColumnMetrics::new(&files.columns[0], &modes);
        for chunk in chunks {
            metrics.add(chunk).unwrap();
        }
        let mut file = DataFile::new(FileContent::Data, "f", FileFormat::Parquet, 0, [].into());
        metrics.write(&mut file).unwrap();
        file
    }

    fn bounds(file: &DataFile) -> (Option<&[u8]>, Option<&[u8]>) {
        (
            file.lower_bounds.get(&1).map(Vec::as_slice),
            file.upper_bounds.get(&1).map(Vec::as_slice),
        )
    }

    #[test]
    fn nan_is_counted_and_in_no_bound() {
        let field = json!({"id": 1, "name": "d", "required": false, "type": "double"});
        let chunk = |values: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let file = metrics(
            &field,
            "full",
            &[
                chunk(vec![Some(f64::NAN), Some(0.0), None]),
                chunk(vec![Some(-0.0), Some(-f64::NAN), Some(0.0)]),
            ],
        );
        assert_eq!(file.nan_value_counts[&1], 2);
        assert_eq!(
            bounds(&file),
            (Some((-0.0_f64).to_le_bytes().as_slice()), Some(0.0_f64.to_le_bytes().as_slice()))
        );
        let file = metrics(&field, "full", &[chunk(vec![Some(f64::NAN), None])]);
        assert_eq!((file.nan_value_counts[&1], bounds(&file)), (1, (None, None)));
        let file = metrics(&field, "counts", &[chunk(vec![Some(f64::NAN), Some(1.0)])]);
        assert_eq!((file.nan_value_counts[&1], bounds(&file)), (1, (None, None)));
        let file = metrics(&field, "none", &[chunk(vec![Some(f64::NAN)])]);
        assert!(file.nan_value_counts.is_empty());
    }

    #[test]
    fn text_is_cut_and_decimals_are_minimal() {
        let field = json!({"id": 1, "name": "s", "required": false, "type": "string"});
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("abcd"), None, Some("abca"), Some("b")]));
        let file = metrics(&field, "truncate(2)", &[Arc::clone(&text)]);
        assert_eq!(bounds(&file), (Some(b"ab".as_slice()), Some(b"b".as_slice())));
        let file = metrics(&field, "truncate(2)", &[text.slice(0, 3)]);
        assert_eq!(bounds(&file), (Some(b"ab".as_slice()), Some(b"ac".as_slice())));
        let file = metrics(&field, "full", &[text]);
        assert_eq!(bounds(&file), (Some(b"abca".as_slice()), Some(b"b".as_slice())));
        let field = json!({"id": 1, "name": "s", "required": false, "type": "decimal(20,2)"});
        let decimals = Decimal128Array::from(vec![128, -129, 1]).with_precision_and_scale(20, 2).unwrap();
        let file = metrics(&field, "truncate(1)", &[Arc::new(decimals)]);
        assert_eq!(bounds(&file), (Some([0xff, 0x7f].as_slice()), Some([0, 0x80].as_slice())));
    }

    #[test]
    fn values_of_a_struct_that_is_not_there_do_not_count() {
        let field = json!({"id": 9, "name": "s", "required": false, "type": {"type": "struct", "fields": [
            {"id": 2, "name": "nothing", "required": false, "type": "unknown"},
            {"id": 1, "name": "i", "required": false, "type": "int"}]}});
        let inner: ArrayRef = Arc::new(Int32Array::from(vec![5, -7, 9]));
        let fields = vec![Arc::new(Field::new("i", DataType::Int32, true))];
        let nulls = NullBuffer::from(vec![true, false, true]);
        let array: ArrayRef = Arc::new(StructArray::try_new(fields.into(), vec![inner], Some(nulls)).unwrap());
        let file = metrics(&field, "full", &[array]);
        assert_eq!(
            bounds(&file),
            (Some(5_i32.to_le_bytes().as_slice()), Some(9_i32.to_le_bytes().as_slice()))
        );
    }
}
