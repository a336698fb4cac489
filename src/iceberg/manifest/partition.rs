//! Partition values of a manifest's entries (spec "Partitioning", "Data File Fields").
//!
//! Values come out in the order of the spec's fields, whatever the order and number of fields
//! in the file; they are matched by partition field id. Values are of the type that the
//! transform gives for the source column today, so files from before a promotion compare equal
//! to later ones; where the source column is unknown the file's own type decides.

use crate::error::{Error, Result, ResultExt};
use crate::iceberg::avro::{AvroSchema, Cursor, Field, Kind, Logical, NodeId, Presence};
use crate::iceberg::spec::{Literal, PartitionSpec, PrimitiveType, Transform, Type};

use super::plan::{check_ids, fits};

/// How values of plain `fixed` partition fields lie in the file. Iceberg Java writes a length
/// before them, against the Avro schema that it puts into the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FixedForm {
    /// As the schema says.
    Plain,
    /// With a length in front.
    LengthFirst,
}

/// How a value lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Text,
    Bytes,
    Fixed { size: usize, is_plain: bool },
}

#[derive(Debug)]
enum Step {
    Skip(NodeId),
    Value {
        /// Position in the spec; `None` for a field that the spec does not have.
        target: Option<usize>,
        name: String,
        presence: Presence,
        wire: Wire,
        logical: Option<Logical>,
        to: Option<PrimitiveType>,
    },
}

/// Reads the partition struct.
#[derive(Debug)]
pub(super) struct PartitionPlan {
    presence: Presence,
    width: usize,
    steps: Vec<Step>,
    /// Names of fields that the spec does not have and that may hold values.
    unread: Vec<String>,
}

/// The type of a spec field's values: the first one that the file's type is or promotes to,
/// by the source column's types from the newest on; `None` where only the file can tell.
///
/// A column's type is not always a promotion of an older one: a replaced table takes the ids
/// of its columns over by name.
fn result_type(transform: &Transform, source_types: &[Type], wire: Wire, logical: Option<Logical>) -> Option<PrimitiveType> {
    match transform {
        Transform::Bucket(_) | Transform::Year | Transform::Month | Transform::Day | Transform::Hour => Some(PrimitiveType::Int),
        Transform::Void | Transform::Unknown(_) => None,
        Transform::Identity | Transform::Truncate(_) => {
            let mut results = source_types.iter().filter_map(|source| transform.result_type(source));
            results.find(|to| wire.promotes_to(logical, to))
        }
    }
}

impl Wire {
    /// Whether values that lie like this can be read as `to`.
    fn promotes_to(self, logical: Option<Logical>, to: &PrimitiveType) -> bool {
        use PrimitiveType as P;
        let is_timestamp = matches!(
            logical,
            Some(Logical::TimestampMillis { .. } | Logical::TimestampMicros { .. } | Logical::TimestampNanos { .. })
        );
        match (self, to) {
            (Self::Boolean, P::Boolean) | (Self::Float, P::Float | P::Double) | (Self::Double, P::Double) => true,
            (Self::Int | Self::Long, P::Int | P::Long) => logical.is_none(),
            (Self::Int, P::Date) => matches!(logical, None | Some(Logical::Date)),
            (Self::Int, P::Time) => logical == Some(Logical::TimeMillis),
            (Self::Long, P::Time) => matches!(logical, None | Some(Logical::TimeMicros)),
            (Self::Int, P::Timestamp | P::TimestampNs) => logical == Some(Logical::Date),
            (Self::Long, P::Timestamp | P::TimestampNs | P::Timestamptz | P::TimestamptzNs) => is_timestamp || logical.is_none(),
            (Self::Text, P::String) => true,
            (Self::Text, P::Uuid) => logical == Some(Logical::Uuid),
            (Self::Bytes, P::Binary | P::Geometry { .. } | P::Geography { .. } | P::Fixed(_) | P::String) => logical.is_none(),
            (Self::Fixed { size, .. }, P::Fixed(length)) => logical.is_none() && size == *length as usize,
            (Self::Fixed { .. }, P::Binary) => logical.is_none(),
            (Self::Fixed { size: 16, .. }, P::Uuid) => matches!(logical, None | Some(Logical::Uuid)),
            (Self::Bytes | Self::Fixed { .. }, P::Decimal { scale, .. }) => match logical {
                Some(Logical::Decimal { scale: on_disk, .. }) => on_disk == u32::from(*scale),
                other => other.is_none(),
            },
            _ => false,
        }
    }
}

impl PartitionPlan {
    /// Compiles the plan for the fields of a file's partition struct. `source_types` gives the
    /// types that a table column has had, newest first.
    pub(super) fn compile(
        schema: &AvroSchema,
        presence: Presence,
        fields: &[Field],
        spec: &PartitionSpec,
        source_types: impl Fn(i32) -> Vec<Type>,
    ) -> Result<Self> {
        check_ids(fields)?;
        let mut steps = Vec::with_capacity(fields.len());
        let mut unread = Vec::new();
        for field in fields {
            let target = field.id.and_then(|id| spec.fields.iter().position(|f| f.field_id == id));
            if target.is_none() && schema.node(field.node)?.kind != Kind::Null {
                unread.push(format!("partition.{}", field.name));
            }
            let optional = match schema.optional(field.node) {
                Err(_) if target.is_none() => {
                    steps.push(Step::Skip(field.node));
                    continue;
                }
                optional => optional.context("partition field", || &field.name)?,
            };
            let wire = match optional.node.kind {
                Kind::Boolean => Wire::Boolean,
                Kind::Int => Wire::Int,
                Kind::Long => Wire::Long,
                Kind::Float => Wire::Float,
                Kind::Double => Wire::Double,
                Kind::String => Wire::Text,
                Kind::Bytes => Wire::Bytes,
                Kind::Fixed(size) => Wire::Fixed {
                    size,
                    is_plain: optional.node.logical.is_none(),
                },
                // Never read: there is no value.
                Kind::Null => Wire::Boolean,
                _ if target.is_none() => {
                    steps.push(Step::Skip(field.node));
                    continue;
                }
                ref other => {
                    return Err(
                        Error::corrupt(format!("partition field is of avro type {}", other.name())).with("partition field", &field.name)
                    );
                }
            };
            let to = target
                .and_then(|at| spec.fields.get(at))
                .and_then(|f| result_type(&f.transform, &source_types(f.source_id), wire, optional.node.logical));
            steps.push(Step::Value {
                target,
                name: field.name.clone(),
                presence: optional.presence,
                wire,
                logical: optional.node.logical,
                to,
            });
        }
        Ok(Self {
            presence,
            width: spec.fields.len(),
            steps,
            unread,
        })
    }

    /// Names of fields that the spec does not have and that may hold values.
    pub(super) fn unread(&self) -> impl Iterator<Item = &str> {
        self.unread.iter().map(String::as_str)
    }

    pub(super) fn has_fixed(&self) -> bool {
        self.steps.iter().any(|step| {
            matches!(
                step,
                Step::Value {
                    wire: Wire::Fixed { is_plain: true, .. },
                    ..
                }
            )
        })
    }

    /// Reads the values into `out`, which becomes as long as the spec; what the file does not have is null.
    pub(super) fn read(&self, schema: &AvroSchema, form: FixedForm, cursor: &mut Cursor<'_>, out: &mut Vec<Option<Literal>>) -> Result<()> {
        out.clear();
        out.resize(self.width, None);
        if !self.presence.read(cursor)? {
            return Ok(());
        }
        for step in &self.steps {
            match step {
                Step::Skip(node) => schema.skip(*node, cursor)?,
                Step::Value {
                    target,
                    name,
                    presence,
                    wire,
                    logical,
                    to,
                } => {
                    if !presence.read(cursor)? {
                        continue;
                    }
                    let raw = Raw::read(*wire, form, cursor).context("partition field", || name)?;
                    if let Some(slot) = target.and_then(|at| out.get_mut(at)) {
                        let literal = match to {
                            Some(to) => raw.convert(*logical, to),
                            None => raw.own_type(*logical, *wire),
                        };
                        *slot = Some(literal.context("partition field", || name)?);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A value as it lies in the file.
#[derive(Debug, Clone, Copy)]
enum Raw<'a> {
    Boolean(bool),
    Number(i64),
    Float(f32),
    Double(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Raw<'a> {
    fn read(wire: Wire, form: FixedForm, cursor: &mut Cursor<'a>) -> Result<Self> {
        Ok(match wire {
            Wire::Boolean => Self::Boolean(cursor.boolean()?),
            Wire::Int | Wire::Long => Self::Number(cursor.long()?),
            Wire::Float => Self::Float(cursor.float()?),
            Wire::Double => Self::Double(cursor.double()?),
            Wire::Text => Self::Text(cursor.string()?),
            Wire::Bytes => Self::Bytes(cursor.bytes()?),
            Wire::Fixed { size, is_plain } => {
                if is_plain && form == FixedForm::LengthFirst {
                    let bytes = cursor.bytes()?;
                    if bytes.len() != size {
                        return Err(Error::corrupt(format!("fixed({size}) of {} bytes", bytes.len())));
                    }
                    Self::Bytes(bytes)
                } else {
                    Self::Bytes(cursor.take(size)?)
                }
            }
        })
    }

    /// A literal of the file's own type.
    fn own_type(self, logical: Option<Logical>, wire: Wire) -> Result<Literal> {
        let to = match (self, logical) {
            (Self::Boolean(_), _) => PrimitiveType::Boolean,
            (Self::Number(_), Some(Logical::TimeMillis | Logical::TimeMicros)) => PrimitiveType::Time,
            (Self::Number(_), Some(Logical::TimestampMillis { .. } | Logical::TimestampMicros { .. })) => PrimitiveType::Timestamp,
            (Self::Number(_), Some(Logical::TimestampNanos { .. })) => PrimitiveType::TimestampNs,
            (Self::Number(_), _) if wire == Wire::Int => PrimitiveType::Int,
            (Self::Number(_), _) => PrimitiveType::Long,
            (Self::Float(_), _) => PrimitiveType::Float,
            (Self::Double(_), _) => PrimitiveType::Double,
            (_, Some(Logical::Uuid)) => PrimitiveType::Uuid,
            (Self::Text(_), _) => PrimitiveType::String,
            (Self::Bytes(_), Some(Logical::Decimal { precision, scale })) => decimal(precision, scale),
            (Self::Bytes(_), _) => PrimitiveType::Binary,
        };
        self.convert(logical, &to)
    }

    /// A literal of type `to`, which the file's type [promotes to](Wire::promotes_to).
    fn convert(self, logical: Option<Logical>, to: &PrimitiveType) -> Result<Literal> {
        use PrimitiveType as P;
        let literal = match (to, self) {
            (P::Boolean, Self::Boolean(v)) => Some(Literal::Boolean(v)),
            (P::Int | P::Date, Self::Number(v)) => Some(Literal::Int(fits(v, "partition value of 32 bits")?)),
            (P::Long, Self::Number(v)) => Some(Literal::Long(v)),
            (P::Time, Self::Number(v)) => scaled(v, if logical == Some(Logical::TimeMillis) { 1_000 } else { 1 }),
            (P::Timestamp | P::Timestamptz, Self::Number(v)) => match logical {
                Some(Logical::Date) => scaled(v, 86_400_000_000),
                Some(Logical::TimestampMillis { .. }) => scaled(v, 1_000),
                Some(Logical::TimestampNanos { .. }) => None,
                _ => Some(Literal::Long(v)),
            },
            (P::TimestampNs | P::TimestamptzNs, Self::Number(v)) => match logical {
                Some(Logical::Date) => scaled(v, 86_400_000_000_000),
                Some(Logical::TimestampMillis { .. }) => scaled(v, 1_000_000),
                Some(Logical::TimestampMicros { .. }) => scaled(v, 1_000),
                _ => Some(Literal::Long(v)),
            },
            // All NaN are one partition value.
            (P::Float, Self::Float(v)) => Some(Literal::Float(if v.is_nan() { f32::NAN } else { v })),
            (P::Double, Self::Double(v)) => Some(Literal::Double(if v.is_nan() { f64::NAN } else { v })),
            (P::Double, Self::Float(v)) => Some(Literal::Double(if v.is_nan() { f64::NAN } else { f64::from(v) })),
            (P::Decimal { .. } | P::String | P::Uuid, Self::Bytes(v)) => return Literal::from_bytes(to, v),
            (P::String, Self::Text(v)) => Some(Literal::String(v.to_owned())),
            (P::Uuid, Self::Text(v)) => uuid::Uuid::try_parse(v).ok().map(|uuid| Literal::Uuid(uuid.into_bytes())),
            (P::Fixed(size), Self::Bytes(v)) => (v.len() == *size as usize).then(|| Literal::Binary(v.to_vec())),
            (P::Binary | P::Geometry { .. } | P::Geography { .. }, Self::Bytes(v)) => Some(Literal::Binary(v.to_vec())),
            _ => None,
        };
        literal.ok_or_else(|| Error::corrupt(format!("partition value {self:?} is not of type {to}")))
    }
}

fn scaled(value: i64, factor: i64) -> Option<Literal> {
    value.checked_mul(factor).map(Literal::Long)
}

fn decimal(precision: u32, scale: u32) -> PrimitiveType {
    PrimitiveType::Decimal {
        precision: u8::try_from(precision).unwrap_or(38),
        scale: u8::try_from(scale).unwrap_or_default(),
    }
}
