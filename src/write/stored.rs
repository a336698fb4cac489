//! The columns of a batch as files store them: types and nulls checked, type unknown left out.
//!
//! What comes out has no null in a required field, no decimal of more digits than its type, and no elements of
//! lists that no row has; an error names the column and the row.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType, Decimal128Type, Time64MicrosecondType};
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};

use super::file_schema::{FileColumn, Kind};
use crate::error::{Error, Result};
use crate::iceberg::spec::PrimitiveType;

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// The columns of a batch, in the order of `columns`; those of type unknown are there too, all null.
/// `first_row` is the number of its first row, counted over the whole input.
///
/// Errors: `InvalidInput` for other columns than the table's, and for values that they do not take.
pub(super) fn stored(columns: &[FileColumn], batch: &RecordBatch, first_row: u64) -> Result<Vec<ArrayRef>> {
    let schema = batch.schema_ref();
    if schema.fields().len() != columns.len() {
        return Err(Error::invalid(format!(
            "a batch has {} columns, the table {}",
            schema.fields().len(),
            columns.len()
        )));
    }
    let rows = Rows::Top(first_row);
    let pairs = columns.iter().zip(schema.fields()).zip(batch.columns());
    let arrays = pairs.map(|((column, field), array)| {
        if field.name() != column.field.name() {
            return Err(Error::invalid(format!(
                "a batch has column `{}` in the place of `{}`",
                field.name(),
                column.name
            )));
        }
        stored_array(column, array, None, &rows).map_err(|e| e.with("column", &column.name))
    });
    arrays.collect()
}

/// Which row of the input a value belongs to.
enum Rows<'a> {
    Top(u64),
    /// Elements of lists.
    Elements {
        offsets: &'a OffsetBuffer<i32>,
        of: &'a Rows<'a>,
    },
}

impl Rows<'_> {
    fn row(&self, at: usize) -> u64 {
        match self {
            Self::Top(first) => first.saturating_add(at as u64),
            Self::Elements { offsets, of } => {
                let behind = offsets.partition_point(|offset| usize::try_from(*offset).is_ok_and(|offset| offset <= at));
                of.row(behind.saturating_sub(1))
            }
        }
    }
}

/// `live` tells which values lie in a struct that is there.
fn stored_array(column: &FileColumn, array: &ArrayRef, live: Option<&NullBuffer>, rows: &Rows<'_>) -> Result<ArrayRef> {
    let array = &with_own_nulls(array);
    if column.required && array.logical_null_count() > 0 {
        let nulls = array.logical_nulls();
        let is_null = |at: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
        let is_live = |at: usize| live.is_none_or(|live| live.is_valid(at));
        if let Some(at) = (0..array.len()).find(|at| is_null(*at) && is_live(*at)) {
            return Err(Error::invalid("a required column is null")
                .with("column", &column.name)
                .with("row", rows.row(at)));
        }
    }
    let target = column.field.data_type();
    if *array.data_type() == DataType::Null {
        return Ok(new_null_array(target, array.len()));
    }
    let other_type = || {
        let message = format!("a column of type {target} cannot hold values of type {}", array.data_type());
        Error::invalid(message).with("column", &column.name)
    };
    match &column.kind {
        Kind::Primitive(primitive) => {
            let array = in_type(array, target).ok_or_else(other_type)??;
            check_values(column, primitive, &array, live, rows)?;
            Ok(array)
        }
        Kind::Struct(fields) => {
            let whole = array.as_struct_opt().ok_or_else(other_type)?;
            let live = NullBuffer::union(live, whole.nulls());
            let same = whole.fields().len() == fields.len() && whole.fields().iter().zip(fields).all(|(a, b)| a.name() == b.field.name());
            let DataType::Struct(stored) = target else {
                return Err(other_type());
            };
            if !same {
                return Err(other_type());
            }
            let pairs = fields.iter().zip(whole.columns()).filter(|(field, _)| field.is_stored());
            let children = pairs.map(|(field, child)| stored_array(field, child, live.as_ref(), rows));
            let children = children.collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                stored.clone(),
                children,
                live,
                whole.len(),
            )?))
        }
        Kind::List(element) => {
            let list = array.as_list_opt::<i32>().ok_or_else(other_type)?;
            let nulls = NullBuffer::union(live, list.nulls());
            let (offsets, values) = only_live(list.offsets(), nulls.as_ref(), list.values())?;
            let rows = Rows::Elements {
                offsets: &offsets,
                of: rows,
            };
            let values = stored_array(element, &values, None, &rows)?;
            let field = Arc::clone(&element.field);
            Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls)?))
        }
        Kind::Map(parts) => {
            let map = array.as_map_opt().ok_or_else(other_type)?;
            let DataType::Map(entries_field, _) = target else {
                return Err(other_type());
            };
            let DataType::Struct(pair) = entries_field.data_type() else {
                return Err(other_type());
            };
            let nulls = NullBuffer::union(live, map.nulls());
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let (offsets, entries) = only_live(map.offsets(), nulls.as_ref(), &entries)?;
            let rows = Rows::Elements {
                offsets: &offsets,
                of: rows,
            };
            let entries = entries.as_struct();
            let children = parts.iter().zip(entries.columns());
            let children = children.map(|(part, child)| stored_array(part, child, None, &rows));
            let children = children.collect::<Result<Vec<_>>>()?;
            if let Some(keys) = children.first()
                && let Some(twice) = key_twice(&offsets, keys)?
            {
                return Err(Error::invalid("a map has a key twice")
                    .with("column", &column.name)
                    .with("row", rows.row(twice)));
            }
            let entries = StructArray::try_new_with_length(pair.clone(), children, None, entries.len())?;
            Ok(Arc::new(MapArray::try_new(
                Arc::clone(entries_field),
                offsets,
                entries,
                nulls,
                false,
            )?))
        }
    }
}

/// Dictionaries may have their nulls among the values; everything else has its own.
fn with_own_nulls(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Dictionary(_, value) => cast_with_options(array, value, &STRICT).unwrap_or_else(|_| Arc::clone(array)),
        _ => Arc::clone(array),
    }
}

const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: arrow::util::display::FormatOptions::new(),
};

/// The array in its stored type, where it is another layout of the same values; `None` where it is not.
fn in_type(array: &ArrayRef, target: &DataType) -> Option<Result<ArrayRef>> {
    use DataType as D;
    let same = match (array.data_type(), target) {
        (own, target) if own == target => return Some(Ok(Arc::clone(array))),
        (D::LargeUtf8 | D::Utf8View, D::Utf8) | (D::LargeBinary | D::BinaryView, D::Binary) => true,
        // The zone is how a point in time is shown, not which one it is.
        (D::Timestamp(own, from), D::Timestamp(unit, to)) => own == unit && from.is_some() == to.is_some(),
        _ => false,
    };
    same.then(|| Ok(cast_with_options(array, target, &STRICT)?))
}

/// Values that arrow holds and the type does not.
fn check_values(
    column: &FileColumn,
    primitive: &PrimitiveType,
    array: &ArrayRef,
    live: Option<&NullBuffer>,
    rows: &Rows<'_>,
) -> Result<()> {
    let nulls = NullBuffer::union(live, array.nulls());
    let is_valid = |at: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*at));
    let wrong = match primitive {
        PrimitiveType::Decimal { precision, .. } => {
            let bound = 10_i128.pow(u32::from(*precision).min(38));
            let values = array.as_primitive::<Decimal128Type>().values();
            let is_wide = |value: &i128| *value <= -bound || *value >= bound;
            (0..values.len()).filter(is_valid).find(|at| values.get(*at).is_some_and(is_wide))
        }
        PrimitiveType::Time => {
            let values = array.as_primitive::<Time64MicrosecondType>().values();
            let is_outside = |value: &i64| !(0..MICROS_OF_DAY).contains(value);
            (0..values.len())
                .filter(is_valid)
                .find(|at| values.get(*at).is_some_and(is_outside))
        }
        _ => None,
    };
    match wrong {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!("a value is outside of the range of type {primitive}"))
            .with("column", &column.name)
            .with("row", rows.row(at))),
    }
}

/// The place of a key that its map has before.
fn key_twice(offsets: &OffsetBuffer<i32>, keys: &ArrayRef) -> Result<Option<usize>> {
    if offsets.lengths().all(|length| length < 2) {
        return Ok(None);
    }
    let converter = RowConverter::new(vec![SortField::new(keys.data_type().clone())])?;
    let keys = converter.convert_columns(&[Arc::clone(keys)])?;
    let mut seen = HashSet::new();
    for pair in offsets.windows(2) {
        let [from, to] = pair else { continue };
        let (from, to) = (to_usize(*from)?, to_usize(*to)?);
        seen.clear();
        if let Some(twice) = (from..to).find(|at| !seen.insert(keys.row(*at))) {
            return Ok(Some(twice));
        }
    }
    Ok(None)
}

/// Offsets from 0 on, and the elements that a list has which is there.
fn only_live(offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>, values: &ArrayRef) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    let is_valid = |at: usize| nulls.is_none_or(|nulls| nulls.is_valid(at));
    let mut lengths = offsets.lengths().enumerate();
    let first = offsets.first().copied().unwrap_or(0);
    let last = offsets.last().copied().unwrap_or(0);
    if lengths.all(|(at, length)| length == 0 || is_valid(at)) {
        if first == 0 && usize::try_from(last) == Ok(values.len()) {
            return Ok((offsets.clone(), Arc::clone(values)));
        }
        let from_zero: ScalarBuffer<i32> = offsets.iter().map(|offset| offset - first).collect();
        let (start, length) = (to_usize(first)?, to_usize(last - first)?);
        return Ok((OffsetBuffer::new(from_zero), values.slice(start, length)));
    }
    let ranges = offsets.windows(2).enumerate().map(|(at, pair)| match pair {
        [from, to] if is_valid(at) => *from..*to,
        _ => 0..0,
    });
    let (mut live, mut ends, mut end) = (Vec::new(), vec![0_i32], 0_i32);
    for range in ranges {
        end += range.end - range.start;
        ends.push(end);
        live.extend(range.map(i32::cast_unsigned));
    }
    let values = take(values, &UInt32Array::from(live), None)?;
    Ok((OffsetBuffer::new(ends.into()), values))
}

fn to_usize(offset: i32) -> Result<usize> {
    usize::try_from(offset).map_err(|_| Error::internal("a list has a negative offset"))
}

/// Bytes of the rows of an array, without what it shares with others.
pub(super) fn bytes_of(array: &dyn Array) -> usize {
    array
        .to_data()
        .get_slice_memory_size()
        .unwrap_or_else(|_| array.get_array_memory_size())
}

/// The columns, copied where they would keep far more memory alive than their rows need.
pub(super) fn compact(columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    const SLACK: usize = 64 << 10;
    let needed: usize = columns.iter().map(|column| bytes_of(column.as_ref())).sum();
    if held_by(&columns) <= 2 * needed + SLACK {
        return Ok(columns);
    }
    let copied = columns.iter().map(|column| {
        let rows = u32::try_from(column.len()).map_err(|_| Error::internal("a batch has more than 2^32 rows"))?;
        Ok(take(column, &UInt32Array::from_iter_values(0..rows), None)?)
    });
    copied.collect()
}

/// Bytes of the allocations that arrays share in; several may lie in one.
fn held_by(columns: &[ArrayRef]) -> usize {
    fn add(data: &ArrayData, allocations: &mut HashMap<usize, usize>) {
        let buffers = data.buffers().iter().chain(data.nulls().map(NullBuffer::buffer));
        for buffer in buffers {
            allocations.insert(buffer.data_ptr().as_ptr() as usize, buffer.capacity());
        }
        for child in data.child_data() {
            add(child, allocations);
        }
    }
    let mut allocations = HashMap::new();
    for column in columns {
        add(&column.to_data(), &mut allocations);
    }
    allocations.values().sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Int32Array, StringViewArray};
    use arrow::buffer::BooleanBuffer;
    use arrow::datatypes::{Field, Int32Type, Schema as ArrowSchema};
    use serde_json::{Value, json};

    use super::super::file_schema::FileSchema;
    use super::*;
    use crate::iceberg::spec::Schema;

    fn files(fields: &Value) -> FileSchema {
        FileSchema::new(&Schema::from_json(&json!({"type": "struct", "fields": fields})).unwrap()).unwrap()
    }

    fn one(fields: &Value, array: ArrayRef) -> Result<ArrayRef> {
        let files = files(fields);
        let name = files.columns[0].name.clone();
        let field = Field::new(name, array.data_type().clone(), true);
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![field])), vec![array]).unwrap();
        Ok(stored(&files.columns, &batch, 100)?.remove(0))
    }

    #[test]
    fn a_null_in_a_required_column_names_the_row() {
        let fields = json!([{"id": 1, "name": "a", "required": true, "type": "int"}]);
        let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
        let error = one(&fields, array).unwrap_err();
        assert_eq!(error.to_string(), "a required column is null (column: a, row: 102)");
        assert!(one(&fields, Arc::new(Int32Array::from(vec![1, 2]))).is_ok());
    }

    #[test]
    fn a_null_element_names_the_row_of_its_list() {
        let fields = json!([{"id": 1, "name": "l", "required": false,
            "type": {"type": "list", "element-id": 2, "element-required": true, "element": "int"}}]);
        let rows = vec![None, Some(vec![Some(1), Some(2)]), Some(vec![]), Some(vec![Some(3), None])];
        let error = one(&fields, Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))).unwrap_err();
        assert_eq!(error.to_string(), "a required column is null (column: l.element, row: 103)");
    }

    #[test]
    fn a_required_field_may_be_null_in_a_struct_that_is_not_there() {
        let fields = json!([{"id": 1, "name": "s", "required": false, "type": {"type": "struct", "fields": [
            {"id": 2, "name": "r", "required": true, "type": "int"}]}}]);
        let inner: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        let field = Arc::new(Field::new("r", DataType::Int32, true));
        let with = |valid: Vec<bool>| -> ArrayRef {
            let nulls = NullBuffer::new(BooleanBuffer::from(valid));
            Arc::new(StructArray::try_new(vec![Arc::clone(&field)].into(), vec![Arc::clone(&inner)], Some(nulls)).unwrap())
        };
        assert!(one(&fields, with(vec![true, false])).is_ok());
        let error = one(&fields, with(vec![true, true])).unwrap_err();
        assert_eq!(error.to_string(), "a required column is null (column: s.r, row: 101)");
    }

    #[test]
    fn elements_of_no_row_are_left_behind() {
        let fields = json!([{"id": 1, "name": "l", "required": false,
            "type": {"type": "list", "element-id": 2, "element-required": true, "element": "int"}}]);
        let field = Arc::new(Field::new_list_field(DataType::Int32, true));
        let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
        // the second list is null and yet has an element, which is null
        let nulls = NullBuffer::from(vec![true, false, true]);
        let offsets = OffsetBuffer::new(vec![0, 1, 2, 4].into());
        let list = ListArray::try_new(field, offsets, values, Some(nulls)).unwrap();
        let got = one(&fields, Arc::new(list.clone())).unwrap();
        assert_eq!(got.as_list::<i32>().values().as_primitive::<Int32Type>().values(), &[1, 3, 4]);
        let got = one(&fields, Arc::new(list.slice(2, 1))).unwrap();
        assert_eq!(got.as_list::<i32>().values().as_primitive::<Int32Type>().values(), &[3, 4]);
        assert_eq!(got.as_list::<i32>().offsets().as_ref(), &[0, 2]);
    }

    #[test]
    fn decimals_of_too_many_digits_are_refused() {
        let fields = json!([{"id": 1, "name": "d", "required": false, "type": "decimal(4,2)"}]);
        let decimals = |v: i128| -> ArrayRef { Arc::new(Decimal128Array::from(vec![0, v]).with_precision_and_scale(4, 2).unwrap()) };
        assert!(one(&fields, decimals(-9999)).is_ok());
        let error = one(&fields, decimals(10_000)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a value is outside of the range of type decimal(4,2) (column: d, row: 101)"
        );
    }

    #[test]
    fn a_few_rows_do_not_keep_many_alive() {
        let many: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100_000));
        let few = many.slice(500, 2);
        assert!(held_by(std::slice::from_ref(&few)) >= 400_000);
        let kept = compact(vec![Arc::clone(&few), few]).unwrap();
        assert!(held_by(&kept) < 1000);
        assert_eq!(kept[1].as_primitive::<Int32Type>().values(), &[500, 501]);
        let all = compact(vec![many.slice(0, 90_000)]).unwrap();
        assert_eq!(held_by(&all), held_by(&[many]));
    }

    #[test]
    fn other_layouts_of_text_are_taken_and_other_types_are_not() {
        let fields = json!([{"id": 1, "name": "t", "required": false, "type": "string"}]);
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None]));
        assert_eq!(one(&fields, text).unwrap().data_type(), &DataType::Utf8);
        let error = one(&fields, Arc::new(Int32Array::from(vec![1]))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a column of type Utf8 cannot hold values of type Int32 (column: t)"
        );
    }
}
