//! File statistics (PROTOCOL.md, "Per-file Statistics"): JSON text in the log, arrays by column here.
//!
//! Writers differ, so nothing is taken at its word that one of them is known to get wrong:
//! - Timestamps are cut to milliseconds, before 1970 in either direction: bounds are widened by one. Before 1900 old
//!   writers left out the seconds of zones: such bounds are not used.
//! - Decimals may have gone through a double: bounds of more than fifteen digits are widened.
//! - Doubles may have been floats when the statistics were written, and print shorter than they are: bounds are
//!   widened to the floats around.
//! - A count of nulls says that there are none, or nothing else but them; with wide bounds it says no more, and inside
//!   of structs it may leave out rows without the struct.
//!
//! A text that is no statistics is as good as none.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::json::ReaderBuilder;

use super::partition_value::{lenient, timestamps};
use crate::error::{Error, Result};
use crate::table::{Column, ColumnStats, Datum};

const RECORDS: &str = "numRecords";
const LOWER: &str = "minValues";
const UPPER: &str = "maxValues";
const NULLS: &str = "nullCount";

/// Microseconds of 1900-01-01.
const YEAR_1900: i64 = -2_208_988_800_000_000;
/// What cutting to milliseconds may take.
const MILLISECOND: i64 = 1_000;
/// Unscaled decimals from here on have more digits than every double keeps.
const EXACT: i128 = 1_000_000_000_000_000;

/// Statistics of some files, by row of the batch that they came in.
#[derive(Debug)]
pub(super) struct Statistics {
    records: Int64Array,
    /// By field id.
    columns: HashMap<i32, ColumnStatistics>,
}

#[derive(Debug)]
struct ColumnStatistics {
    lower: Option<ArrayRef>,
    upper: Option<ArrayRef>,
    nulls: Int64Array,
    is_nested: bool,
    is_float: bool,
}

/// What the statistics of a table's files look like.
#[derive(Debug)]
pub(super) struct StatisticsSchema {
    json: SchemaRef,
    leaves: Vec<Leaf>,
}

/// A column that can have statistics, and where they stand.
#[derive(Debug)]
struct Leaf {
    id: i32,
    path: Vec<String>,
    data_type: DataType,
}

impl StatisticsSchema {
    /// For these columns of data files.
    pub(super) fn new<'a>(columns: impl Iterator<Item = &'a Arc<Column>> + Clone) -> Self {
        let mut leaves = Vec::new();
        let bounds = fields(columns.clone(), &DataType::Utf8, &mut Vec::new(), &mut leaves);
        let nulls = fields(columns, &DataType::Int64, &mut Vec::new(), &mut Vec::new());
        let json = Schema::new(vec![
            Field::new(RECORDS, DataType::Int64, true),
            Field::new_struct(LOWER, bounds.clone(), true),
            Field::new_struct(UPPER, bounds, true),
            Field::new_struct(NULLS, nulls, true),
        ]);
        Self {
            json: Arc::new(json),
            leaves,
        }
    }

    /// The statistics of files, one text each.
    ///
    /// Errors: `Internal` only; a text that is no statistics counts as none.
    pub(super) fn parse(&self, texts: &StringArray) -> Result<Statistics> {
        let batch = match self.decode(texts) {
            Ok(batch) => batch,
            // Some text is broken: the others are read one by one.
            Err(_) => {
                let one_by_one = (0..texts.len()).map(|row| {
                    let text = texts.slice(row, 1);
                    self.decode(&text).or_else(|_| self.decode(&StringArray::new_null(1)))
                });
                concat_batches(&self.json, &one_by_one.collect::<Result<Vec<_>>>()?)?
            }
        };
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| Error::internal("statistics lack a column"))
        };
        let part = |name: &str| Ok::<_, Error>(column(name)?.as_struct().clone());
        let (lower, upper, nulls) = (part(LOWER)?, part(UPPER)?, part(NULLS)?);
        let mut columns = HashMap::with_capacity(self.leaves.len());
        for leaf in &self.leaves {
            let counts = at_path(&nulls, &leaf.path).map(|array| array.as_primitive::<Int64Type>().clone());
            columns.insert(
                leaf.id,
                ColumnStatistics {
                    lower: bound(&lower, leaf, Side::Lower)?,
                    upper: bound(&upper, leaf, Side::Upper)?,
                    nulls: counts.unwrap_or_else(|| Int64Array::new_null(texts.len())),
                    is_nested: leaf.path.len() > 1,
                    is_float: matches!(leaf.data_type, DataType::Float32 | DataType::Float64),
                },
            );
        }
        Ok(Statistics {
            records: column(RECORDS)?.as_primitive::<Int64Type>().clone(),
            columns,
        })
    }

    fn decode(&self, texts: &StringArray) -> Result<RecordBatch> {
        let mut decoder = ReaderBuilder::new(Arc::clone(&self.json))
            .with_coerce_primitive(true)
            .with_batch_size(texts.len().max(1))
            .build_decoder()?;
        let rows = texts.len();
        for text in texts {
            let line = text.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("{}");
            let mut rest = line.as_bytes();
            while !rest.is_empty() {
                let read = decoder.decode(rest)?;
                if read == 0 {
                    return Err(Error::corrupt("statistics are more than one object"));
                }
                rest = rest.get(read..).unwrap_or_default();
            }
            decoder.decode(b"\n")?;
        }
        let batch = decoder.flush()?.ok_or_else(|| Error::corrupt("statistics are no objects"))?;
        match batch.num_rows() == rows {
            true => Ok(batch),
            false => Err(Error::corrupt("statistics are more or fewer than one object")),
        }
    }
}

/// The fields of statistics of these columns, every leaf of type `leaf`.
fn fields<'a>(columns: impl Iterator<Item = &'a Arc<Column>>, leaf: &DataType, path: &mut Vec<String>, leaves: &mut Vec<Leaf>) -> Fields {
    let mut found = Vec::new();
    for column in columns {
        let Some(name) = column.names.first() else { continue };
        path.push(name.clone());
        match column.field.data_type() {
            // Bounds of variants are encoded variants.
            _ if column.is_variant() => {}
            DataType::Null => {}
            DataType::Struct(_) => {
                let inside = fields(column.children.iter(), leaf, path, leaves);
                if !inside.is_empty() {
                    found.push(Field::new_struct(name, inside, true));
                }
            }
            data_type if !data_type.is_nested() => {
                found.push(Field::new(name, leaf.clone(), true));
                leaves.push(Leaf {
                    id: column.id,
                    path: path.clone(),
                    data_type: data_type.clone(),
                });
            }
            _ => {}
        }
        path.pop();
    }
    found.into()
}

fn at_path(of: &StructArray, path: &[String]) -> Option<ArrayRef> {
    let (last, outer) = path.split_last()?;
    let mut inside = of.clone();
    for name in outer {
        inside = inside.column_by_name(name)?.as_struct_opt()?.clone();
    }
    inside.column_by_name(last).cloned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

impl Side {
    /// The value further out by `slack`.
    fn widen(self, value: i128, slack: i128) -> i128 {
        match self {
            Self::Lower => value.saturating_sub(slack),
            Self::Upper => value.saturating_add(slack),
        }
    }
}

/// The bounds of one column, none too narrow; null where there is none.
fn bound(of: &StructArray, leaf: &Leaf, side: Side) -> Result<Option<ArrayRef>> {
    let Some(texts) = at_path(of, &leaf.path) else { return Ok(None) };
    Ok(Some(match &leaf.data_type {
        DataType::Utf8 => texts,
        DataType::Boolean => lenient(&texts, &DataType::Boolean)?,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => lenient(&texts, &DataType::Int64)?,
        DataType::Date32 => {
            let days = lenient(&texts, &DataType::Date32)?;
            let days = days.as_primitive::<Date32Type>().unary::<_, Int64Type>(i64::from);
            Arc::new(days)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = timestamps(&texts)?;
            let widened = micros.as_primitive::<TimestampMicrosecondType>().iter().map(|micros| {
                let used = micros.filter(|micros| *micros >= YEAR_1900)?;
                Some(match side {
                    Side::Lower => used.saturating_sub(MILLISECOND),
                    Side::Upper => used.saturating_add(MILLISECOND),
                })
            });
            Arc::new(widened.collect::<Int64Array>())
        }
        DataType::Float32 => {
            let values = lenient(&texts, &DataType::Float32)?;
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float64Type>(f64::from))
        }
        DataType::Float64 => {
            let exact = lenient(&texts, &DataType::Float64)?;
            let rounded: Float32Array = lenient(&texts, &DataType::Float32)?.as_primitive::<Float32Type>().clone();
            let both = exact.as_primitive::<Float64Type>().iter().zip(&rounded);
            let widened = both.map(|(exact, rounded)| {
                let (exact, rounded) = (exact?, rounded.map_or(f64::NAN, f64::from));
                Some(match side {
                    Side::Lower => exact.min(rounded),
                    Side::Upper => exact.max(rounded),
                })
            });
            Arc::new(widened.collect::<Float64Array>())
        }
        to @ DataType::Decimal128(_, scale) => {
            let values = lenient(&texts, to)?;
            let texts = texts.as_string::<i32>();
            let mut widened = values.as_primitive::<Decimal128Type>().iter().zip(texts).map(|(value, text)| {
                let (value, text) = (value?, text?);
                let rounded = i128::from(fraction_digits(text) > usize::try_from(*scale).unwrap_or(0));
                let slack = if value.saturating_abs() < EXACT {
                    rounded
                } else {
                    value.saturating_abs() / EXACT + 1
                };
                Some(side.widen(value, slack))
            });
            let array = widened.by_ref().collect::<arrow::array::Decimal128Array>();
            Arc::new(array.with_data_type(to.clone()))
        }
        // Writers do not agree on a text for bytes.
        _ => return Ok(None),
    }))
}

/// Digits behind the point; very many for a number with an exponent.
fn fraction_digits(text: &str) -> usize {
    if text.contains(['e', 'E']) {
        return usize::MAX;
    }
    text.split_once('.').map_or(0, |(_, digits)| digits.len())
}

impl Statistics {
    /// Rows of a file before deletes.
    pub(super) fn record_count(&self, row: usize) -> Option<u64> {
        value(&self.records, row).and_then(|n| u64::try_from(n).ok())
    }

    /// What is known of a column of a file.
    pub(super) fn column(&self, id: i32, row: usize) -> ColumnStats {
        let Some(column) = self.columns.get(&id) else {
            return ColumnStats::unknown();
        };
        let (records, nulls) = (value(&self.records, row), value(&column.nulls, row));
        let all_null = matches!((records, nulls), (Some(records), Some(nulls)) if nulls >= records);
        let at = |bounds: &Option<ArrayRef>| bounds.as_ref().and_then(|array| Datum::at(array, row));
        let known = ColumnStats {
            may_be_null: column.is_nested || nulls != Some(0),
            may_be_nan: column.is_float && !all_null,
            may_be_value: !all_null,
            ..ColumnStats::unknown()
        };
        known.with_bounds(at(&column.lower), at(&column.upper))
    }

    /// Bytes that this holds.
    pub(super) fn memory_size(&self) -> usize {
        let size = |array: &Option<ArrayRef>| array.as_ref().map_or(0, |a| a.get_array_memory_size());
        let columns = self.columns.values();
        let columns: usize = columns
            .map(|c| size(&c.lower) + size(&c.upper) + c.nulls.get_array_memory_size())
            .sum();
        columns + self.records.get_array_memory_size()
    }
}

fn value(array: &Int64Array, row: usize) -> Option<i64> {
    (row < array.len() && array.is_valid(row)).then(|| array.value(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(id: i32, name: &str, data_type: DataType, children: Vec<Arc<Column>>) -> Arc<Column> {
        Arc::new(Column {
            id,
            field: Arc::new(Field::new(name, data_type, true)),
            names: vec![name.to_owned()],
            initial_default: None,
            children,
        })
    }

    fn one(text: &str, data_type: DataType) -> ColumnStats {
        let columns = [column(1, "c", data_type, Vec::new())];
        let parsed = StatisticsSchema::new(columns.iter()).parse(&StringArray::from(vec![text])).unwrap();
        parsed.column(1, 0)
    }

    fn number(value: i128) -> Option<Datum> {
        Some(Datum::Number(value))
    }

    #[test]
    fn counts_and_bounds_are_read() {
        let text = r#"{"numRecords":3,"minValues":{"c":-4},"maxValues":{"c":9},"nullCount":{"c":0}}"#;
        let stats = one(text, DataType::Int32);
        assert_eq!((stats.lower, stats.upper, stats.may_be_null), (number(-4), number(9), false));
        let all_null = one(r#"{"numRecords":3,"nullCount":{"c":3}}"#, DataType::Int32);
        assert!(!all_null.may_be_value && all_null.may_be_null);
        // Neither none nor all: with wide bounds that says nothing.
        let some = one(r#"{"numRecords":3,"nullCount":{"c":1},"tightBounds":false}"#, DataType::Int32);
        assert!(some.may_be_value && some.may_be_null);
    }

    /// B058
    #[test]
    fn timestamps_are_known_to_the_millisecond_only() {
        let text = r#"{"minValues":{"c":"1970-01-01T00:00:01.123Z"},"maxValues":{"c":"1970-01-01T00:00:01.123Z"}}"#;
        let stats = one(text, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        assert_eq!((stats.lower, stats.upper), (number(1_122_000), number(1_124_000)));
        let old = r#"{"minValues":{"c":"1850-01-01T00:00:00.000-07:52"},"maxValues":{"c":"1850-01-01T00:00:00.000-07:52"}}"#;
        let stats = one(old, DataType::Timestamp(TimeUnit::Microsecond, None));
        assert_eq!((stats.lower, stats.upper), (None, None));
    }

    #[test]
    fn decimals_that_went_through_a_double_are_not_trusted_to_the_last_digit() {
        let text = r#"{"minValues":{"c":12.34},"maxValues":{"c":100000000000000000}}"#;
        let stats = one(text, DataType::Decimal128(20, 2));
        assert_eq!(stats.lower, number(1234));
        assert_eq!(stats.upper, number(10_000_000_000_000_000_000 + 10_001));
        let exponent = one(r#"{"maxValues":{"c":1.0E17}}"#, DataType::Decimal128(20, 2));
        assert_eq!(exponent.upper, None);
    }

    #[test]
    fn doubles_that_were_floats_are_inside_their_bounds() {
        let text = r#"{"minValues":{"c":0.1},"maxValues":{"c":0.1}}"#;
        let stats = one(text, DataType::Float64);
        assert_eq!(stats.upper, Some(Datum::Float(f64::from(0.1_f32))));
        assert_eq!(stats.lower, Some(Datum::Float(0.1)));
        assert!(stats.may_be_nan);
        let nan = one(r#"{"minValues":{"c":1},"maxValues":{"c":"NaN"}}"#, DataType::Float64);
        assert_eq!(nan.upper, None);
    }

    #[test]
    fn a_text_that_is_no_statistics_takes_none_away_from_others() {
        let columns = [column(1, "c", DataType::Int64, Vec::new())];
        let texts = [
            Some(r#"{"numRecords":1,"minValues":{"c":5}}"#),
            Some(r#"{"numRecords":1,"minValues":{"c":[5]}}"#),
            Some(r#"{"numRecords":1,"minVal"#),
            Some(r#"{"numRecords":2}{"numRecords":3}"#),
            None,
            Some(r#"{"numRecords":7,"minValues":{"c":6}}"#),
        ];
        let parsed = StatisticsSchema::new(columns.iter())
            .parse(&StringArray::from(texts.to_vec()))
            .unwrap();
        let counts: Vec<_> = (0..6).map(|row| parsed.record_count(row)).collect();
        assert_eq!(counts, [Some(1), None, None, None, None, Some(7)]);
        assert_eq!(parsed.column(1, 0).lower, number(5));
        assert_eq!(parsed.column(1, 5).lower, number(6));
        let broken = parsed.column(1, 2);
        assert!(broken.may_be_null && broken.may_be_value && broken.lower.is_none() && broken.upper.is_none());
    }

    #[test]
    fn fields_of_structs_may_be_null_in_rows_without_the_struct() {
        let inner = column(2, "a", DataType::Int64, Vec::new());
        let outer = column(1, "s", DataType::Struct(vec![inner.field.as_ref().clone()].into()), vec![inner]);
        let text = r#"{"numRecords":2,"minValues":{"s":{"a":1}},"maxValues":{"s":{"a":2}},"nullCount":{"s":{"a":0}}}"#;
        let parsed = StatisticsSchema::new([outer].iter()).parse(&StringArray::from(vec![text])).unwrap();
        let stats = parsed.column(2, 0);
        assert!(stats.may_be_null);
        assert_eq!((stats.lower, stats.upper), (number(1), number(2)));
    }
}
