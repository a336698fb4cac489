//! Decodes records into columns.
//!
//! Invariants: what a null or a default takes in memory without taking it in the file is counted
//! and limited ([`BATCH_BYTES`] ends a batch, [`ROW_BYTES`] is an error); a row that fails ends
//! the decoder, whose columns are then of no use. Columns that are not wanted are passed without
//! being built.

use std::sync::Arc;

use arrow::array::builder::{BooleanBufferBuilder, NullBufferBuilder};
use arrow::array::{
    ArrayData, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, ListArray, MapArray, NullArray, StringArray,
    StructArray, make_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};

use super::super::{AvroSchema, Cursor, Kind, NodeId, Presence};
use super::fields::{leaf_count, map_entry};
use crate::error::{Error, ErrorKind, Result};

/// A time of day is less.
const MICROS_OF_DAY: i64 = 86_400_000_000;

/// Bytes at which a batch ends early.
const BATCH_BYTES: usize = 32 << 20;
/// Bytes that one row may add at most.
const ROW_BYTES: usize = 1 << 30;

/// Decodes the wanted columns of rows, one row after the other.
#[derive(Debug)]
pub struct RowDecoder {
    schema: Arc<AvroSchema>,
    steps: Vec<Step>,
    columns: Vec<Slot>,
    rows: usize,
    /// Bytes built since the last [`Self::take`].
    built: Built,
}

/// What to do with a field of a record, in the file's order.
#[derive(Debug)]
enum Step {
    Skip(NodeId),
    /// Into the child of this index.
    Read(usize),
}

/// Counts bytes that are built, and stops a row that grows without end.
#[derive(Debug, Default)]
struct Built {
    bytes: usize,
    limit: usize,
}

impl Built {
    fn add(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit {
            return Err(Error::resource_exhausted(format!(
                "a row of the avro file takes more than {ROW_BYTES} bytes"
            )));
        }
        Ok(())
    }
}

/// A column that is being built.
#[derive(Debug)]
struct Slot {
    presence: Presence,
    nulls: NullBufferBuilder,
    len: usize,
    data_type: DataType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Null,
    Boolean(BooleanBufferBuilder),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes {
        offsets: Vec<i32>,
        data: Vec<u8>,
    },
    Fixed {
        size: usize,
        data: Vec<u8>,
    },
    Decimal {
        /// Bytes of a value; `None` where each has its length.
        size: Option<usize>,
        values: Vec<i128>,
    },
    Struct {
        steps: Vec<Step>,
        children: Vec<Slot>,
    },
    List {
        offsets: Vec<i32>,
        item: Box<Slot>,
    },
    Map {
        offsets: Vec<i32>,
        /// `None` for Avro's own map, which has a text before each value.
        steps: Option<Vec<Step>>,
        /// Key and value.
        pair: Vec<Slot>,
    },
}

/// Which leaves are wanted, while the tree is walked.
struct Leaves<'a> {
    wanted: &'a [usize],
    next: usize,
}

impl Leaves<'_> {
    /// Whether any of the next `count` leaves is wanted.
    fn any(&self, count: usize) -> bool {
        let end = self.next + count;
        let at = self.wanted.partition_point(|leaf| *leaf < self.next);
        self.wanted.get(at).is_some_and(|leaf| *leaf < end)
    }
}

impl RowDecoder {
    /// A decoder of the given leaves (ascending) of `fields`, which [`super::file_fields`] made of the schema.
    pub fn new(schema: &Arc<AvroSchema>, fields: &Fields, leaves: &[usize]) -> Result<Self> {
        let nodes: Vec<NodeId> = schema
            .record(schema.root())?
            .ok_or_else(|| Error::internal("avro rows are no records"))?
            .iter()
            .map(|f| f.node)
            .collect();
        let mut leaves = Leaves { wanted: leaves, next: 0 };
        let (steps, columns) = plan_fields(schema, &nodes, fields, &mut leaves)?;
        Ok(Self {
            schema: Arc::clone(schema),
            steps,
            columns,
            rows: 0,
            built: Built::default(),
        })
    }

    /// Rows since the last [`Self::take`].
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True when the rows so far are a batch by their size.
    pub fn is_full(&self) -> bool {
        self.built.bytes >= BATCH_BYTES
    }

    /// Decodes a row.
    pub fn read_row(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.built.limit = self.built.bytes.saturating_add(ROW_BYTES);
        read_record(&self.steps, &mut self.columns, &self.schema, cursor, &mut self.built)?;
        self.rows += 1;
        Ok(())
    }

    /// Passes a row.
    pub fn skip_row(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.schema.skip(self.schema.root(), cursor)
    }

    /// The wanted columns of the rows since the last call; structs have their wanted fields only.
    pub fn take(&mut self) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        self.built.bytes = 0;
        self.columns.iter_mut().map(Slot::take).collect()
    }
}

fn read_record(steps: &[Step], children: &mut [Slot], schema: &AvroSchema, cursor: &mut Cursor<'_>, built: &mut Built) -> Result<()> {
    for step in steps {
        match step {
            Step::Skip(node) => schema.skip(*node, cursor)?,
            Step::Read(index) => children
                .get_mut(*index)
                .ok_or_else(|| Error::internal("avro column is out of range"))?
                .read(schema, cursor, built)?,
        }
    }
    Ok(())
}

fn plan_fields(schema: &AvroSchema, nodes: &[NodeId], fields: &Fields, leaves: &mut Leaves<'_>) -> Result<(Vec<Step>, Vec<Slot>)> {
    let (mut steps, mut slots) = (Vec::with_capacity(nodes.len()), Vec::new());
    for (node, field) in nodes.iter().zip(fields) {
        let count = leaf_count(field.data_type());
        if leaves.any(count) {
            steps.push(Step::Read(slots.len()));
            slots.push(plan(schema, *node, field.data_type(), leaves)?);
        } else {
            steps.push(Step::Skip(*node));
            leaves.next += count;
        }
    }
    Ok((steps, slots))
}

/// Plans a type of which some leaf is wanted.
fn plan(schema: &AvroSchema, id: NodeId, data_type: &DataType, leaves: &mut Leaves<'_>) -> Result<Slot> {
    let mismatch = || Error::internal(format!("avro column was planned as {data_type}"));
    let optional = schema.optional(id)?;
    let (values, data_type) = match (&optional.node.kind, data_type) {
        (_, DataType::Null) => {
            leaves.next += 1;
            (Values::Null, DataType::Null)
        }
        (Kind::Record(fields), DataType::Struct(children)) => {
            let nodes: Vec<NodeId> = fields.iter().map(|f| f.node).collect();
            let (steps, slots) = plan_fields(schema, &nodes, children, leaves)?;
            let kept: Fields = steps
                .iter()
                .zip(children)
                .filter(|(step, _)| matches!(step, Step::Read(_)))
                .zip(&slots)
                .map(|((_, field), slot)| retyped(field, &slot.data_type))
                .collect();
            if nodes.is_empty() {
                leaves.next += 1;
            }
            (Values::Struct { steps, children: slots }, DataType::Struct(kept))
        }
        (Kind::Array { items, .. }, DataType::List(element)) => {
            let item = Box::new(plan(schema, *items, element.data_type(), leaves)?);
            let element = retyped(element, &item.data_type);
            (Values::List { offsets: vec![0], item }, DataType::List(element))
        }
        (kind @ (Kind::Array { .. } | Kind::Map { .. }), DataType::Map(entries, sorted)) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(mismatch());
            };
            let [key_field, value_field] = fields.as_ref() else {
                return Err(mismatch());
            };
            let (steps, pair) = match kind {
                Kind::Array { items, .. } => {
                    let Some((key, value)) = map_entry(schema, *items)? else {
                        return Err(mismatch());
                    };
                    let (steps, pair) = plan_fields(schema, &[key.node, value.node], fields, leaves)?;
                    (Some(steps), pair)
                }
                Kind::Map { values, .. } => {
                    leaves.next += 1;
                    let key = Slot::new(Presence::Required, DataType::Utf8, bytes());
                    (None, vec![key, plan(schema, *values, value_field.data_type(), leaves)?])
                }
                _ => return Err(mismatch()),
            };
            let [key, value] = pair.as_slice() else {
                return Err(Error::internal("avro map is read without its keys or values"));
            };
            let kept = Fields::from(vec![retyped(key_field, &key.data_type), retyped(value_field, &value.data_type)]);
            let entries = Field::new(entries.name(), DataType::Struct(kept), false);
            let values = Values::Map {
                offsets: vec![0],
                steps,
                pair,
            };
            (values, DataType::Map(Arc::new(entries), *sorted))
        }
        (kind, data_type) => {
            leaves.next += 1;
            (primitive(kind, data_type).ok_or_else(mismatch)?, data_type.clone())
        }
    };
    Ok(Slot::new(optional.presence, data_type, values))
}

fn retyped(field: &FieldRef, data_type: &DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(data_type.clone()))
}

fn bytes() -> Values {
    Values::Bytes {
        offsets: vec![0],
        data: Vec::new(),
    }
}

fn primitive(kind: &Kind, data_type: &DataType) -> Option<Values> {
    Some(match (kind, data_type) {
        (Kind::Boolean, _) => Values::Boolean(BooleanBufferBuilder::new(0)),
        (Kind::Int, _) => Values::Int(Vec::new()),
        (Kind::Long, _) => Values::Long(Vec::new()),
        (Kind::Float, _) => Values::Float(Vec::new()),
        (Kind::Double, _) => Values::Double(Vec::new()),
        (Kind::Bytes, DataType::Decimal128(..)) => Values::Decimal {
            size: None,
            values: Vec::new(),
        },
        (Kind::Fixed(size), DataType::Decimal128(..)) => Values::Decimal {
            size: Some(*size),
            values: Vec::new(),
        },
        (Kind::Fixed(size), DataType::FixedSizeBinary(_)) => Values::Fixed {
            size: *size,
            data: Vec::new(),
        },
        (Kind::Bytes | Kind::String, _) => bytes(),
        _ => return None,
    })
}

impl Slot {
    fn new(presence: Presence, data_type: DataType, values: Values) -> Self {
        Self {
            presence,
            nulls: NullBufferBuilder::new(0),
            len: 0,
            data_type,
            values,
        }
    }

    fn read(&mut self, schema: &AvroSchema, cursor: &mut Cursor<'_>, built: &mut Built) -> Result<()> {
        if !self.presence.read(cursor)? {
            return self.null(built);
        }
        self.nulls.append_non_null();
        self.len += 1;
        match &mut self.values {
            Values::Null => Ok(()),
            Values::Boolean(values) => {
                values.append(cursor.boolean()?);
                built.add(1)
            }
            Values::Int(values) => {
                values.push(cursor.int()?);
                built.add(4)
            }
            Values::Long(values) => {
                let value = cursor.long()?;
                if self.data_type == DataType::Time64(TimeUnit::Microsecond) && !(0..MICROS_OF_DAY).contains(&value) {
                    return Err(Error::corrupt(format!("time of day of {value} microseconds")));
                }
                values.push(value);
                built.add(8)
            }
            Values::Float(values) => {
                values.push(cursor.float()?);
                built.add(4)
            }
            Values::Double(values) => {
                values.push(cursor.double()?);
                built.add(8)
            }
            Values::Bytes { offsets, data } => {
                let value = cursor.bytes()?;
                data.extend_from_slice(value);
                offsets.push(offset(data.len())?);
                built.add(4 + value.len())
            }
            Values::Fixed { size, data } => {
                data.extend_from_slice(cursor.take(*size)?);
                built.add(*size)
            }
            Values::Decimal { size, values } => {
                let bytes = match size {
                    Some(size) => cursor.take(*size)?,
                    None => cursor.bytes()?,
                };
                values.push(unscaled(bytes)?);
                built.add(16)
            }
            Values::Struct { steps, children } => read_record(steps, children, schema, cursor, built),
            Values::List { offsets, item } => {
                cursor.items(|cursor| item.read(schema, cursor, built))?;
                offsets.push(offset(item.len)?);
                built.add(4)
            }
            Values::Map { offsets, steps, pair } => {
                cursor.items(|cursor| match steps {
                    Some(steps) => read_record(steps, pair, schema, cursor, built),
                    None => pair.iter_mut().try_for_each(|slot| slot.read(schema, cursor, built)),
                })?;
                offsets.push(offset(pair.first().map_or(0, |key| key.len))?);
                built.add(4)
            }
        }
    }

    /// Appends a null, for which children get fillers.
    fn null(&mut self, built: &mut Built) -> Result<()> {
        self.nulls.append_null();
        self.len += 1;
        let bytes = match &mut self.values {
            Values::Null => 0,
            Values::Boolean(values) => {
                values.append(false);
                1
            }
            Values::Int(values) => {
                values.push(0);
                4
            }
            Values::Long(values) => {
                values.push(0);
                8
            }
            Values::Float(values) => {
                values.push(0.0);
                4
            }
            Values::Double(values) => {
                values.push(0.0);
                8
            }
            Values::Bytes { offsets, .. } | Values::List { offsets, .. } | Values::Map { offsets, .. } => {
                offsets.push(offsets.last().copied().unwrap_or(0));
                4
            }
            Values::Fixed { size, data } => {
                // Before the memory is taken: the size is the schema's word alone.
                built.add(*size)?;
                data.resize(data.len() + *size, 0);
                0
            }
            Values::Decimal { values, .. } => {
                values.push(0);
                16
            }
            Values::Struct { children, .. } => {
                children.iter_mut().try_for_each(|child| child.null(built))?;
                0
            }
        };
        built.add(bytes)
    }

    /// The values so far; what follows is a new array.
    fn take(&mut self) -> Result<ArrayRef> {
        let len = std::mem::take(&mut self.len);
        let nulls = self.nulls.finish();
        let fixed_width = |buffer: Buffer, nulls: Option<NullBuffer>, data_type: &DataType| -> Result<ArrayRef> {
            let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(buffer).nulls(nulls);
            Ok(make_array(data.build()?))
        };
        Ok(match &mut self.values {
            Values::Null => Arc::new(NullArray::new(len)),
            Values::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Int(values) => fixed_width(Buffer::from_vec(std::mem::take(values)), nulls, &self.data_type)?,
            Values::Long(values) => fixed_width(Buffer::from_vec(std::mem::take(values)), nulls, &self.data_type)?,
            Values::Float(values) => fixed_width(Buffer::from_vec(std::mem::take(values)), nulls, &self.data_type)?,
            Values::Double(values) => fixed_width(Buffer::from_vec(std::mem::take(values)), nulls, &self.data_type)?,
            Values::Bytes { offsets, data } => {
                let offsets = restart(offsets);
                let data = Buffer::from_vec(std::mem::take(data));
                if self.data_type == DataType::Utf8 {
                    let array = StringArray::try_new(offsets, data, nulls);
                    Arc::new(array.map_err(|e| Error::corrupt("avro string is not utf-8").with_source(e))?)
                } else {
                    Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
                }
            }
            Values::Fixed { size, data } => {
                let size = i32::try_from(*size).map_err(|_| Error::internal("avro fixed is too long"))?;
                let data = Buffer::from_vec(std::mem::take(data));
                Arc::new(FixedSizeBinaryArray::try_new(size, data, nulls)?)
            }
            Values::Decimal { values, .. } => {
                let DataType::Decimal128(precision, scale) = self.data_type else {
                    return Err(Error::internal("avro decimal was planned as another type"));
                };
                let array = Decimal128Array::new(ScalarBuffer::from(std::mem::take(values)), nulls);
                let array = array.with_precision_and_scale(precision, scale)?;
                array
                    .validate_decimal_precision(precision)
                    .map_err(|e| Error::corrupt("avro decimal has more digits than its type").with_source(e))?;
                Arc::new(array)
            }
            Values::Struct { children, .. } => {
                let DataType::Struct(fields) = &self.data_type else {
                    return Err(Error::internal("avro record was planned as another type"));
                };
                let arrays = children.iter_mut().map(Self::take).collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, len)?)
            }
            Values::List { offsets, item } => {
                let DataType::List(element) = &self.data_type else {
                    return Err(Error::internal("avro array was planned as another type"));
                };
                let offsets = restart(offsets);
                Arc::new(ListArray::try_new(Arc::clone(element), offsets, item.take()?, nulls)?)
            }
            Values::Map { offsets, pair, .. } => {
                let DataType::Map(entries, sorted) = &self.data_type else {
                    return Err(Error::internal("avro map was planned as another type"));
                };
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(Error::internal("avro map entries are no struct"));
                };
                let offsets = restart(offsets);
                let arrays = pair.iter_mut().map(Self::take).collect::<Result<Vec<_>>>()?;
                let pairs = StructArray::try_new(fields.clone(), arrays, None)
                    .map_err(|e| Error::corrupt("avro map has a null key").with_source(e))?;
                Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *sorted)?)
            }
        })
    }
}

/// The offsets so far, which only ever grew from 0.
fn restart(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}

fn offset(len: usize) -> Result<i32> {
    i32::try_from(len).map_err(|_| Error::new(ErrorKind::ResourceExhausted, "values of a few avro rows take more than 2 GiB"))
}

/// A big-endian number of any length.
fn unscaled(bytes: &[u8]) -> Result<i128> {
    let too_long = || Error::corrupt(format!("avro decimal of {} bytes has more than 128 bits", bytes.len()));
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let (head, tail) = bytes.split_at(bytes.len().saturating_sub(16));
    if head.iter().any(|b| *b != fill) || (!head.is_empty() && tail.first().is_some_and(|b| (b & 0x80 != 0) != negative)) {
        return Err(too_long());
    }
    let mut wide = [fill; 16];
    if let Some(slot) = wide.get_mut(16 - tail.len()..) {
        slot.copy_from_slice(tail);
    }
    Ok(i128::from_be_bytes(wide))
}
