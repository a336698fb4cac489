//! How a column of a predicate is found in a Parquet file, and what its statistics mean.
//!
//! Statistics are used only where the file's values become the table's by a conversion that keeps
//! values and order, and where their own order is certain (parquet.thrift `ColumnOrder`).

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Fields, Schema, TimeUnit};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{ColumnOrder, SortOrder, Type as PhysicalType};

use crate::scan::adapt::{Adapt, Read};
use crate::scan::resolve::resolve;
use crate::table::{Column, ColumnMatching, ColumnStats, Datum};

/// Where a column's values come from in one file.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A leaf column of the file.
    Leaf(Leaf),
    /// The same in every row.
    Constant(ColumnStats),
    Unknown,
}

/// A leaf column that a predicate asks about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf {
    /// Index among the leaf columns of the Parquet schema.
    pub(super) index: usize,
    pub(super) decode: Decode,
    /// No value of the column is null.
    pub(super) is_required: bool,
}

/// How a plain value of the file becomes a value of the table's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decode {
    Boolean,
    /// 32 bits times this.
    Int32(i128),
    /// 64 bits times this.
    Int64(i128),
    Float,
    Double,
    /// Two's complement, big-endian.
    DecimalBytes,
    Text,
    Bytes,
}

/// The column of `id`, cut down to the path that leads to it.
pub(super) fn path_to(columns: &[Arc<Column>], id: i32) -> Option<Arc<Column>> {
    columns.iter().find_map(|column| {
        if column.id == id {
            return Some(Arc::clone(column));
        }
        let DataType::Struct(_) = column.field.data_type() else {
            return None;
        };
        let child = path_to(&column.children, id)?;
        let data_type = DataType::Struct(Fields::from(vec![Arc::clone(&child.field)]));
        Some(Arc::new(Column {
            id: column.id,
            field: Arc::new(column.field.as_ref().clone().with_data_type(data_type)),
            names: column.names.clone(),
            initial_default: None,
            children: vec![child],
        }))
    })
}

/// Where the values of `column` (a [path](path_to)) come from.
pub(super) fn find(
    column: &Arc<Column>,
    metadata: &ArrowReaderMetadata,
    constants: &[(i32, ArrayRef)],
    matching: ColumnMatching,
) -> Source {
    let schema: &Schema = metadata.schema();
    // A column that cannot be resolved is the scan's to complain about.
    let Ok(plan) = resolve(std::slice::from_ref(column), schema.fields(), constants, matching) else {
        return Source::Unknown;
    };
    let [read] = plan.reads.as_slice() else { return Source::Unknown };
    match read {
        // Inside a struct that is absent the struct's own default decides, which the path leaves out.
        Read::Null(_) if !column.children.is_empty() => Source::Unknown,
        Read::Null(_) => Source::Constant(ColumnStats::null()),
        Read::Constant(value) => match datum(value) {
            Some(stats) => Source::Constant(stats),
            None => Source::Unknown,
        },
        read => {
            let (true, [index]) = (ends_in_leaf(read), plan.leaves.as_slice()) else {
                return Source::Unknown;
            };
            leaf(*index, column, metadata).map_or(Source::Unknown, Source::Leaf)
        }
    }
}

/// Whether the one path of `read` ends in a column of the file.
fn ends_in_leaf(read: &Read) -> bool {
    match read {
        Read::Column {
            adapt: Adapt::Same | Adapt::Cast(_),
            ..
        } => true,
        Read::Column {
            adapt: Adapt::Struct { reads, .. },
            ..
        } => matches!(reads.as_slice(), [one] if ends_in_leaf(one)),
        _ => false,
    }
}

fn leaf(index: usize, column: &Column, metadata: &ArrowReaderMetadata) -> Option<Leaf> {
    let descriptor = metadata.parquet_schema().columns().get(index)?;
    if descriptor.max_rep_level() > 0 {
        return None;
    }
    let mut target = column;
    while let [child] = target.children.as_slice() {
        target = child;
    }
    let file_type = leaf_type(metadata.schema().fields(), &mut { index })?;
    let decode = Decode::new(descriptor.physical_type(), file_type, target.field.data_type())?;
    Some(Leaf {
        index,
        decode,
        is_required: descriptor.max_def_level() == 0,
    })
}

/// The arrow type of the leaf that comes `skip` leaves after the first.
fn leaf_type<'a>(fields: &'a Fields, skip: &mut usize) -> Option<&'a DataType> {
    fields.iter().find_map(|f| leaf_in(f.data_type(), skip))
}

fn leaf_in<'a>(data_type: &'a DataType, skip: &mut usize) -> Option<&'a DataType> {
    match data_type {
        DataType::Struct(fields) => leaf_type(fields, skip),
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => leaf_in(f.data_type(), skip),
        other if *skip == 0 => Some(other),
        _ => {
            *skip -= 1;
            None
        }
    }
}

impl Decode {
    /// `None` where the conversion from the file's to the table's type is none of the exact ones.
    fn new(physical: PhysicalType, file: &DataType, table: &DataType) -> Option<Self> {
        use DataType as T;
        use PhysicalType as P;
        Some(match (physical, file, table) {
            (P::BOOLEAN, T::Boolean, T::Boolean) => Self::Boolean,
            (P::INT32, T::Int8 | T::Int16 | T::Int32, T::Int8 | T::Int16 | T::Int32 | T::Int64) | (P::INT32, T::Date32, T::Date32) => {
                Self::Int32(1)
            }
            (P::INT64, T::Int64, T::Int64) => Self::Int64(1),
            (P::INT32, T::Date32, T::Timestamp(unit, None)) => Self::Int32(units(*unit) * 86_400),
            (P::INT32, T::Time32(TimeUnit::Millisecond), T::Time64(TimeUnit::Microsecond)) => Self::Int32(1_000),
            (P::INT64, T::Time64(TimeUnit::Microsecond), T::Time64(TimeUnit::Microsecond)) => Self::Int64(1),
            (P::INT64, T::Timestamp(from, _), T::Timestamp(to, _)) if units(*to) >= units(*from) => Self::Int64(units(*to) / units(*from)),
            (P::FLOAT, T::Float32, T::Float32 | T::Float64) => Self::Float,
            (P::DOUBLE, T::Float64, T::Float64) => Self::Double,
            (physical, T::Decimal32(_, s) | T::Decimal64(_, s) | T::Decimal128(_, s), T::Decimal128(_, to)) if s == to => match physical {
                P::INT32 => Self::Int32(1),
                P::INT64 => Self::Int64(1),
                P::BYTE_ARRAY | P::FIXED_LEN_BYTE_ARRAY => Self::DecimalBytes,
                _ => return None,
            },
            (P::BYTE_ARRAY, T::Utf8 | T::Binary, T::Utf8) => Self::Text,
            (P::BYTE_ARRAY, T::Utf8 | T::Binary, T::Binary) => Self::Bytes,
            (P::FIXED_LEN_BYTE_ARRAY, T::FixedSizeBinary(n), T::FixedSizeBinary(to)) if n == to => Self::Bytes,
            (P::FIXED_LEN_BYTE_ARRAY, T::FixedSizeBinary(_), T::Binary) => Self::Bytes,
            _ => return None,
        })
    }

    /// A bound in the plain encoding; `None` where the bytes are none.
    pub(super) fn bound(self, bytes: &[u8]) -> Option<Datum> {
        Some(match self {
            Self::Boolean => Datum::Boolean(*bytes.first()? != 0),
            Self::Int32(factor) => Datum::Number(i128::from(i32::from_le_bytes(bytes.try_into().ok()?)) * factor),
            Self::Int64(factor) => Datum::Number(i128::from(i64::from_le_bytes(bytes.try_into().ok()?)) * factor),
            Self::Float => Datum::Float(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
            Self::Double => Datum::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
            Self::DecimalBytes => Datum::Number(big_endian(bytes)?),
            // Text that was cut inside a character is no bound.
            Self::Text => Datum::Bytes(std::str::from_utf8(bytes).ok()?.as_bytes().to_vec()),
            Self::Bytes => Datum::Bytes(bytes.to_vec()),
        })
    }

    /// Whether values may be NaN, which bounds leave out.
    pub(super) fn has_nan(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// Whether bounds in this order can be used. Without an order only signed integers can:
    /// old writers compared everything as signed.
    pub(super) fn trusts(self, order: Option<&ColumnOrder>, is_deprecated: bool) -> bool {
        let is_integer = matches!(self, Self::Int32(_) | Self::Int64(_));
        match order {
            Some(ColumnOrder::TYPE_DEFINED_ORDER(order)) => {
                let expected = match self {
                    Self::Boolean | Self::Text | Self::Bytes => SortOrder::UNSIGNED,
                    _ => SortOrder::SIGNED,
                };
                *order == expected && (is_integer || !is_deprecated)
            }
            None | Some(ColumnOrder::UNDEFINED) => is_integer,
            Some(_) => false,
        }
    }
}

fn units(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// A decimal of at most 16 bytes.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign: u8 = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    wide.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// What a constant column of one row tells.
fn datum(value: &ArrayRef) -> Option<ColumnStats> {
    if value.len() != 1 {
        return None;
    }
    if value.is_null(0) {
        return Some(ColumnStats::null());
    }
    Datum::at(value, 0).map(ColumnStats::only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_in_the_unit_of_the_table() {
        assert_eq!(
            Decode::Int32(86_400_000_000).bound(&(-1i32).to_le_bytes()),
            Some(Datum::Number(-86_400_000_000))
        );
        assert_eq!(Decode::DecimalBytes.bound(&[0xff, 0x85]), Some(Datum::Number(-123)));
        assert_eq!(Decode::DecimalBytes.bound(&[0; 17]), None);
        assert_eq!(Decode::DecimalBytes.bound(&[]), None);
        assert_eq!(Decode::Int64(1).bound(&[1, 2, 3]), None);
    }

    /// B060
    #[test]
    fn text_that_ends_inside_a_character_is_no_bound() {
        assert_eq!(Decode::Text.bound(&[b'a', 0xc3]), None);
        assert_eq!(Decode::Bytes.bound(&[b'a', 0xc3]), Some(Datum::Bytes(vec![b'a', 0xc3])));
    }

    #[test]
    fn only_conversions_that_keep_values_are_used() {
        use DataType as T;
        use PhysicalType as P;
        let utc = Some("UTC".into());
        let (us, ns, ms) = (TimeUnit::Microsecond, TimeUnit::Nanosecond, TimeUnit::Millisecond);
        for (physical, file, table, expected) in [
            (P::INT32, T::Int32, T::Int64, Some(Decode::Int32(1))),
            (P::INT32, T::UInt32, T::Int64, None),
            (P::INT64, T::UInt64, T::Int64, None),
            (P::INT96, T::Timestamp(us, None), T::Timestamp(us, None), None),
            (
                P::INT64,
                T::Timestamp(ms, utc.clone()),
                T::Timestamp(us, utc),
                Some(Decode::Int64(1_000)),
            ),
            (P::INT64, T::Timestamp(ns, None), T::Timestamp(us, None), None),
            (P::INT64, T::Decimal128(18, 2), T::Decimal128(20, 2), Some(Decode::Int64(1))),
            (P::INT64, T::Decimal128(18, 2), T::Decimal128(20, 4), None),
            (
                P::FIXED_LEN_BYTE_ARRAY,
                T::Decimal128(20, 2),
                T::Decimal128(38, 2),
                Some(Decode::DecimalBytes),
            ),
            (P::FLOAT, T::Float32, T::Float64, Some(Decode::Float)),
            (P::BYTE_ARRAY, T::Binary, T::Utf8, Some(Decode::Text)),
            (P::FIXED_LEN_BYTE_ARRAY, T::Float16, T::Float32, None),
        ] {
            assert_eq!(Decode::new(physical, &file, &table), expected, "{physical} {file} {table}");
        }
    }

    #[test]
    fn without_an_order_only_integers_are_trusted() {
        let signed = ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED);
        let unsigned = ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::UNSIGNED);
        assert!(Decode::Int32(1).trusts(None, true));
        assert!(!Decode::Text.trusts(None, false));
        assert!(!Decode::Double.trusts(Some(&ColumnOrder::UNDEFINED), false));
        assert!(!Decode::Int32(1).trusts(Some(&ColumnOrder::UNKNOWN), false));
        assert!(Decode::Text.trusts(Some(&unsigned), false));
        assert!(!Decode::Text.trusts(Some(&unsigned), true));
        assert!(!Decode::Text.trusts(Some(&signed), false));
        assert!(Decode::DecimalBytes.trusts(Some(&signed), false));
    }
}
