//! From the arrays that a file holds to the arrays that the table has.
//!
//! A plan is made once per file by `resolve`; here it is applied to each batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array, make_array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{is_not_null, take};
use arrow::datatypes::{DataType, FieldRef, Fields, Float32Type, Float64Type};

use super::casts::cast_exact;
use super::variant;
use crate::error::{Error, Result};

/// Where a column's values come from.
#[derive(Debug, Clone)]
pub(super) enum Read {
    /// Field `index` of the decoded batch or struct.
    Column {
        index: usize,
        adapt: Adapt,
    },
    /// The same value in every row.
    Constant(ArrayRef),
    Null(DataType),
}

/// What has to be done to a decoded array.
#[derive(Debug, Clone)]
pub(super) enum Adapt {
    Same,
    Cast(DataType),
    Struct {
        fields: Fields,
        reads: Vec<Read>,
    },
    List {
        element: FieldRef,
        adapt: Box<Adapt>,
    },
    Map {
        entries: FieldRef,
        key: Box<Adapt>,
        value: Box<Adapt>,
    },
    /// A group that holds a variant, as JSON text.
    Variant,
}

impl Read {
    /// True when every primitive below comes from the file itself.
    pub(super) fn is_from_file(&self) -> bool {
        match self {
            Self::Column {
                adapt: Adapt::Struct { reads, .. },
                ..
            } => reads.iter().all(Self::is_from_file),
            Self::Column { .. } => true,
            Self::Constant(_) | Self::Null(_) => false,
        }
    }

    /// The column's values for a batch of `rows` rows.
    pub(super) fn apply(&self, decoded: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        match self {
            Self::Column { index, adapt } => {
                let array = decoded
                    .get(*index)
                    .ok_or_else(|| Error::internal("decoded batch lacks a planned column"))?;
                adapt.apply(array)
            }
            Self::Constant(value) => repeat(value, rows),
            Self::Null(data_type) => Ok(new_null_array(data_type, rows)),
        }
    }
}

impl Adapt {
    fn apply(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Same => Ok(one_nan(array)),
            Self::Cast(to) => Ok(one_nan(&cast_exact(array, to)?)),
            Self::Variant => variant::to_json(downcast::<StructArray>(array)?),
            Self::Struct { fields, reads } => {
                let array = downcast::<StructArray>(array)?;
                // The engine gives a field without looking whether its struct is there, and where it is not
                // a file's required field holds anything.
                let absent = array.nulls().filter(|nulls| nulls.null_count() > 0);
                let children = reads.iter().map(|read| {
                    let child = read.apply(array.columns(), array.len())?;
                    absent.map_or(Ok(Arc::clone(&child)), |nulls| null_where(&child, nulls))
                });
                let children = children.collect::<Result<Vec<_>>>()?;
                Ok(Arc::new(StructArray::try_new_with_length(
                    fields.clone(),
                    children,
                    array.nulls().cloned(),
                    array.len(),
                )?))
            }
            Self::List { element, adapt } => {
                let array = downcast::<ListArray>(array)?;
                let values = adapt.apply(array.values())?;
                Ok(Arc::new(ListArray::try_new(
                    Arc::clone(element),
                    array.offsets().clone(),
                    values,
                    array.nulls().cloned(),
                )?))
            }
            Self::Map { entries, key, value } => {
                let array = downcast::<MapArray>(array)?;
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(Error::internal("map entries are no struct"));
                };
                let columns = vec![key.apply(array.keys())?, value.apply(array.values())?];
                let pairs = StructArray::try_new(fields.clone(), columns, None)?;
                Ok(Arc::new(MapArray::try_new(
                    Arc::clone(entries),
                    array.offsets().clone(),
                    pairs,
                    array.nulls().cloned(),
                    false,
                )?))
            }
        }
    }
}

/// The array with NaN in one form: it is one value, but the engine tells its signs apart.
fn one_nan(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            match floats.values().iter().any(|v| v.is_nan() && v.is_sign_negative()) {
                true => Arc::new(floats.unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v })),
                false => Arc::clone(array),
            }
        }
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            match floats.values().iter().any(|v| v.is_nan() && v.is_sign_negative()) {
                true => Arc::new(floats.unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v })),
                false => Arc::clone(array),
            }
        }
        _ => Arc::clone(array),
    }
}

/// The array, null also where `nulls` is; so are the fields of a struct.
fn null_where(array: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef> {
    let nulls = NullBuffer::union(array.logical_nulls().as_ref(), Some(nulls));
    if let (DataType::Struct(fields), Some(own)) = (array.data_type(), &nulls) {
        let children = downcast::<StructArray>(array)?.columns().iter().map(|c| null_where(c, own));
        let children = children.collect::<Result<Vec<_>>>()?;
        return Ok(Arc::new(StructArray::try_new_with_length(
            fields.clone(),
            children,
            nulls,
            array.len(),
        )?));
    }
    if *array.data_type() == DataType::Null {
        return Ok(Arc::clone(array));
    }
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

fn downcast<T: Array + 'static>(array: &ArrayRef) -> Result<&T> {
    array
        .as_any()
        .downcast_ref::<T>()
        .ok_or_else(|| Error::internal(format!("decoded array has type {}", array.data_type())))
}

/// An array of `rows` times the one value of `value`.
pub(super) fn repeat(value: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    if value.is_null(0) {
        return Ok(new_null_array(value.data_type(), rows));
    }
    Ok(take(value, &UInt32Array::from(vec![0u32; rows]), None)?)
}

/// What a key column that was cut down to a struct path compares by: whether each struct on the
/// way is there, outermost first, then the value at the end. A null struct is another key than a
/// struct whose field is null, as in the reference implementation.
pub(super) fn path_parts(array: &ArrayRef) -> Result<Vec<ArrayRef>> {
    let mut array = Arc::clone(array);
    let mut parts: Vec<ArrayRef> = Vec::new();
    while let DataType::Struct(_) = array.data_type() {
        let parent = downcast::<StructArray>(&array)?;
        parts.push(Arc::new(is_not_null(parent)?));
        let child = parent
            .columns()
            .first()
            .ok_or_else(|| Error::internal("key path ends in an empty struct"))?;
        let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
        let data = child.to_data().into_builder().nulls(nulls).build()?;
        array = make_array(data);
    }
    parts.push(array);
    Ok(parts)
}
