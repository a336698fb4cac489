//! The source column of a partition or sort field, found in the stored columns of a batch.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;

use super::file_schema::{FileColumn, Kind};
use super::values::Values;
use crate::error::{Error, Result};
use crate::iceberg::spec::{Literal, PrimitiveType, Transform};

/// A transform of a column.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    transform: Transform,
    /// `None` where all values are null: void, and type unknown.
    column: Option<(Vec<usize>, PrimitiveType)>,
}

impl Source {
    /// A field's source; `name` is the field's.
    ///
    /// Errors: `Unsupported` for a transform that is not known, `InvalidInput` where the table has no such
    /// column or the transform does not take its type.
    pub(super) fn new(name: &str, transform: &Transform, source_id: i32, columns: &[FileColumn]) -> Result<Self> {
        let column = match transform {
            Transform::Void => None,
            Transform::Unknown(_) => {
                return Err(
                    Error::unsupported(format!("rows cannot be written under transform {transform}, which is not known"))
                        .with("partition_field", name),
                );
            }
            _ => {
                let found = path_to(columns, source_id);
                let (path, primitive) = found.ok_or_else(|| {
                    Error::invalid(format!(
                        "field {source_id}, the source of a partition or sort field, is no column with values"
                    ))
                    .with("partition_field", name)
                })?;
                let takes = transform.result_type(&crate::iceberg::spec::Type::Primitive(primitive.clone()));
                if takes.is_none() {
                    return Err(
                        Error::invalid(format!("transform {transform} does not take a column of type {primitive}"))
                            .with("partition_field", name),
                    );
                }
                (primitive != PrimitiveType::Unknown).then_some((path, primitive))
            }
        };
        Ok(Self {
            name: name.to_owned(),
            transform: transform.clone(),
            column,
        })
    }

    /// The column's values and which rows have one; `None` where no row has.
    pub(super) fn find(&self, columns: &[ArrayRef]) -> Result<Option<(ArrayRef, Option<NullBuffer>)>> {
        let Some((path, _)) = &self.column else { return Ok(None) };
        walk(columns, path).map(Some)
    }

    pub(super) fn is_identity(&self) -> bool {
        self.transform == Transform::Identity
    }

    /// Calls back with the transformed value of each row.
    ///
    /// Errors: `InvalidInput` for a value whose result has no place in the result's type.
    pub(super) fn each(&self, columns: &[ArrayRef], rows: usize, mut value: impl FnMut(Option<Literal>)) -> Result<()> {
        let (Some((_, primitive)), Some((array, nulls))) = (&self.column, self.find(columns)?) else {
            for _ in 0..rows {
                value(None);
            }
            return Ok(());
        };
        let values = Values::new(primitive, array.as_ref())?;
        for row in 0..rows {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                value(None);
                continue;
            }
            let source = values.literal(row);
            let result = source.as_ref().and_then(|source| self.transform.apply(primitive, source));
            if result.is_none() {
                return Err(
                    Error::invalid(format!("transform {} has no result for value {source:?}", self.transform))
                        .with("partition_field", &self.name),
                );
            }
            value(result.map(canonical));
        }
        Ok(())
    }

    /// Text or bytes of a row, where rows of the same bytes have the same result.
    pub(super) fn has_bytes(&self) -> bool {
        matches!(
            &self.column,
            Some((
                _,
                PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_) | PrimitiveType::Uuid
            ))
        )
    }

    /// The result for one row of [`Self::find`].
    pub(super) fn at(&self, array: &dyn Array, row: usize) -> Result<Option<Literal>> {
        let Some((_, primitive)) = &self.column else { return Ok(None) };
        let source = Values::new(primitive, array)?.literal(row);
        Ok(source.and_then(|source| self.transform.apply(primitive, &source)))
    }
}

/// All NaNs are one partition, as where they are compared as objects.
fn canonical(value: Literal) -> Literal {
    match value {
        Literal::Float(v) if v.is_nan() => Literal::Float(f32::NAN),
        Literal::Double(v) if v.is_nan() => Literal::Double(f64::NAN),
        other => other,
    }
}

/// Positions from the columns down through structs, of what is stored of them.
fn path_to(columns: &[FileColumn], id: i32) -> Option<(Vec<usize>, PrimitiveType)> {
    columns.iter().enumerate().find_map(|(at, column)| below(column, at, id))
}

fn below(column: &FileColumn, at: usize, id: i32) -> Option<(Vec<usize>, PrimitiveType)> {
    match &column.kind {
        Kind::Primitive(primitive) if column.id == id => Some((vec![at], primitive.clone())),
        Kind::Struct(fields) => {
            // A field of type unknown has no place of its own.
            let places = fields.iter().scan(0, |next, field| {
                let place = *next;
                *next += usize::from(field.is_stored());
                Some((place, field))
            });
            let found = places.into_iter().find_map(|(place, field)| below(field, place, id));
            found.map(|(mut path, primitive)| {
                path.insert(0, at);
                (path, primitive)
            })
        }
        _ => None,
    }
}

/// The array at a path, with the nulls of all above it.
pub(super) fn walk(columns: &[ArrayRef], path: &[usize]) -> Result<(ArrayRef, Option<NullBuffer>)> {
    let lost = || Error::internal("a batch lacks a column");
    let (first, rest) = path.split_first().ok_or_else(lost)?;
    let mut array = columns.get(*first).ok_or_else(lost)?;
    let mut nulls = array.nulls().cloned();
    for at in rest {
        array = array.as_struct_opt().and_then(|s| s.columns().get(*at)).ok_or_else(lost)?;
        nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
    }
    Ok((array.clone(), nulls))
}
