//! The columns that a predicate asks about: their type now and in every schema of the table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};

use crate::iceberg::spec::{Literal, PrimitiveType, TableMetadata, Type};
use crate::table::{Column, Datum};

/// A column that can prune.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Type in the schema that the snapshot is read with.
    pub(super) read_as: PrimitiveType,
    /// Types in all schemas of the table, each once.
    pub(super) ever: Vec<PrimitiveType>,
}

/// Types of columns by field id.
#[derive(Debug, Clone, Default)]
pub struct SourceTypes(HashMap<i32, Source>);

impl SourceTypes {
    /// The columns among `ids` that are primitive and can be compared. `columns` are those that
    /// the snapshot is read with.
    ///
    /// A column that the table's name mapping leaves out is none of them: in a file without field
    /// ids it is null, whatever the file's metrics and partition say of its id.
    pub fn new(ids: &[i32], columns: &[Arc<Column>], metadata: &TableMetadata) -> Self {
        let has_mapping = !matches!(metadata.name_mapping(), Ok(None));
        let known = ids.iter().filter_map(|id| {
            let mut ever: Vec<PrimitiveType> = Vec::new();
            for field in metadata.schemas.iter().filter_map(|schema| schema.field_by_id(*id)) {
                let Type::Primitive(primitive) = &field.field_type else {
                    return None;
                };
                if !ever.contains(primitive) {
                    ever.push(primitive.clone());
                }
            }
            let data_type = find(columns, *id, has_mapping)?;
            let read_as = ever.iter().find(|p| arrow_of(p).as_ref() == Some(data_type))?.clone();
            Some((*id, Source { read_as, ever }))
        });
        Self(known.collect())
    }

    /// A column of one type, for tests of evaluators.
    pub fn of(id: i32, primitive: PrimitiveType) -> Self {
        let source = Source {
            read_as: primitive.clone(),
            ever: vec![primitive],
        };
        Self(HashMap::from([(id, source)]))
    }

    pub(super) fn get(&self, id: i32) -> Option<&Source> {
        self.0.get(&id)
    }
}

/// The arrow type of a column at any depth of structs.
fn find(columns: &[Arc<Column>], id: i32, has_mapping: bool) -> Option<&DataType> {
    let mut mapped = columns.iter().filter(|column| !(has_mapping && column.names.is_empty()));
    mapped.find_map(|column| match column.field.data_type() {
        _ if column.id == id => Some(column.field.data_type()),
        DataType::Struct(_) => find(&column.children, id, has_mapping),
        _ => None,
    })
}

/// The arrow type whose values compare as the bounds of the Iceberg type do; `None` where bounds
/// are something else than values (geometry) or there are none.
fn arrow_of(primitive: &PrimitiveType) -> Option<DataType> {
    use PrimitiveType as P;
    let utc = || Some("UTC".into());
    Some(match primitive {
        P::Boolean => DataType::Boolean,
        P::Int => DataType::Int32,
        P::Long => DataType::Int64,
        P::Float => DataType::Float32,
        P::Double => DataType::Float64,
        P::Decimal { precision, scale } => DataType::Decimal128(*precision, i8::try_from(*scale).ok()?),
        P::Date => DataType::Date32,
        P::Time => DataType::Time64(TimeUnit::Microsecond),
        P::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        P::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        P::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        P::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        P::String => DataType::Utf8,
        P::Uuid => DataType::FixedSizeBinary(16),
        P::Fixed(length) => DataType::FixedSizeBinary(i32::try_from(*length).ok()?),
        P::Binary => DataType::Binary,
        P::Unknown | P::Geometry { .. } | P::Geography { .. } => return None,
    })
}

/// A value in the domain that a column of this type compares in; `None` for a value of another type.
pub(super) fn datum(primitive: &PrimitiveType, value: &Literal) -> Option<Datum> {
    use PrimitiveType as P;
    Some(match (primitive, value) {
        (P::Boolean, Literal::Boolean(v)) => Datum::Boolean(*v),
        (P::Int | P::Long | P::Date, Literal::Int(v)) => Datum::Number(i128::from(*v)),
        (P::Int | P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs, Literal::Long(v)) => {
            Datum::Number(i128::from(*v))
        }
        (P::Decimal { .. }, Literal::Decimal(v)) => Datum::Number(*v),
        (P::Float | P::Double, Literal::Float(v)) => Datum::Float(f64::from(*v)),
        (P::Float | P::Double, Literal::Double(v)) => Datum::Float(*v),
        (P::String, Literal::String(v)) => Datum::Bytes(v.as_bytes().to_vec()),
        (P::Uuid, Literal::Uuid(v)) => Datum::Bytes(v.to_vec()),
        (P::Fixed(_) | P::Binary, Literal::Binary(v)) => Datum::Bytes(v.clone()),
        _ => return None,
    })
}

/// The value of a column of this type that compares as `value`; the other way round of [`datum`].
pub(super) fn literal(primitive: &PrimitiveType, value: &Datum) -> Option<Literal> {
    use PrimitiveType as P;
    Some(match (primitive, value) {
        (P::Int | P::Date, Datum::Number(v)) => Literal::Int(i32::try_from(*v).ok()?),
        (P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs, Datum::Number(v)) => {
            Literal::Long(i64::try_from(*v).ok()?)
        }
        (P::Decimal { .. }, Datum::Number(v)) => Literal::Decimal(*v),
        (P::String, Datum::Bytes(v)) => Literal::String(String::from_utf8(v.clone()).ok()?),
        (P::Uuid, Datum::Bytes(v)) => Literal::Uuid(v.as_slice().try_into().ok()?),
        (P::Fixed(_) | P::Binary, Datum::Bytes(v)) => Literal::Binary(v.clone()),
        _ => return None,
    })
}

/// Whether a column of this type may hold NaN.
pub(super) fn has_nan(primitive: &PrimitiveType) -> bool {
    matches!(primitive, PrimitiveType::Float | PrimitiveType::Double)
}
