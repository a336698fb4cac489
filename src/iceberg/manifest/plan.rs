//! How the entries of one manifest lie in its bytes: compiled once from the writer schema,
//! field id to slot or skip (spec "Manifest Entry Fields", "Data File Fields").

use super::partition::{FixedForm, PartitionPlan};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::avro::{AvroSchema, Container, Cursor, Field, NodeId, Presence};
use crate::iceberg::spec::Literal;

/// Most bytes of a manifest or manifest list after decompression.
const MAX_DECODED_BYTES: usize = 2 << 30;

/// The format version that a file's metadata states.
///
/// Errors: `Unsupported` for a version that is not known.
pub(super) fn format_version(container: &Container<'_>) -> Result<Option<u8>> {
    Ok(match container.metadata_text("format-version")? {
        None => None,
        Some("1") => Some(1),
        Some("2") => Some(2),
        Some("3") => Some(3),
        Some(other) => {
            return Err(Error::unsupported(format!("format version {other} is not supported (1 to 3 are)")));
        }
    })
}

/// Adds a block to the bytes decoded so far.
pub(super) fn spend(decoded: &mut usize, block: usize) -> Result<()> {
    *decoded += block;
    if *decoded > MAX_DECODED_BYTES {
        return Err(Error::new(
            ErrorKind::ResourceExhausted,
            format!("more than {} MiB after decompression", MAX_DECODED_BYTES >> 20),
        ));
    }
    Ok(())
}

/// Refuses a record with the same field id twice.
pub(super) fn check_ids(fields: &[Field]) -> Result<()> {
    let mut ids: Vec<i32> = fields.iter().filter_map(|field| field.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::corrupt(format!("avro record has field id {} twice", pair[0]))),
        None => Ok(()),
    }
}

/// A number that must fit `T`.
pub(super) fn fits<T: TryFrom<i64>>(value: i64, what: &str) -> Result<T> {
    T::try_from(value).map_err(|_| Error::corrupt(format!("{what} is {value}")))
}

/// An entry as it lies in the file; nothing checked but the encoding.
#[derive(Debug, Default)]
pub(super) struct RawEntry<'a> {
    pub(super) status: Option<i64>,
    pub(super) snapshot_id: Option<i64>,
    pub(super) sequence_number: Option<i64>,
    pub(super) file_sequence_number: Option<i64>,
    pub(super) content: Option<i64>,
    pub(super) path: &'a str,
    pub(super) format: &'a str,
    /// In the order of the spec.
    pub(super) partition: Vec<Option<Literal>>,
    pub(super) record_count: Option<i64>,
    pub(super) file_size: Option<i64>,
    pub(super) column_sizes: Vec<(i32, u64)>,
    pub(super) value_counts: Vec<(i32, u64)>,
    pub(super) null_value_counts: Vec<(i32, u64)>,
    pub(super) nan_value_counts: Vec<(i32, u64)>,
    pub(super) lower_bounds: Vec<(i32, &'a [u8])>,
    pub(super) upper_bounds: Vec<(i32, &'a [u8])>,
    pub(super) key_metadata: Option<&'a [u8]>,
    pub(super) split_offsets: Option<Vec<i64>>,
    pub(super) equality_ids: Option<Vec<i32>>,
    pub(super) sort_order_id: Option<i64>,
    pub(super) first_row_id: Option<i64>,
    pub(super) referenced: Option<&'a str>,
    pub(super) content_offset: Option<i64>,
    pub(super) content_size: Option<i64>,
}

impl RawEntry<'_> {
    /// Back to nothing, keeping the memory of the maps.
    pub(super) fn clear(&mut self) {
        let mut fresh = Self {
            partition: std::mem::take(&mut self.partition),
            column_sizes: std::mem::take(&mut self.column_sizes),
            value_counts: std::mem::take(&mut self.value_counts),
            null_value_counts: std::mem::take(&mut self.null_value_counts),
            nan_value_counts: std::mem::take(&mut self.nan_value_counts),
            lower_bounds: std::mem::take(&mut self.lower_bounds),
            upper_bounds: std::mem::take(&mut self.upper_bounds),
            ..Self::default()
        };
        fresh.partition.clear();
        fresh.column_sizes.clear();
        fresh.value_counts.clear();
        fresh.null_value_counts.clear();
        fresh.nan_value_counts.clear();
        fresh.lower_bounds.clear();
        fresh.upper_bounds.clear();
        *self = fresh;
    }
}

#[derive(Debug, Clone, Copy)]
enum Integer {
    Status,
    SnapshotId,
    SequenceNumber,
    FileSequenceNumber,
    Content,
    RecordCount,
    FileSize,
    SortOrderId,
    FirstRowId,
    ContentOffset,
    ContentSize,
}

#[derive(Debug, Clone, Copy)]
enum Text {
    Path,
    Format,
    Referenced,
}

#[derive(Debug, Clone, Copy)]
enum CountMap {
    Sizes,
    Values,
    Nulls,
    Nans,
}

#[derive(Debug)]
enum Step {
    Skip(NodeId),
    Integer(Integer, Presence),
    Text(Text, Presence),
    Counts(CountMap, MapPlan),
    LowerBounds(MapPlan),
    UpperBounds(MapPlan),
    KeyMetadata(Presence),
    SplitOffsets(ListPlan),
    EqualityIds(ListPlan),
    Partition(PartitionPlan),
    DataFile(Presence, Vec<Step>),
}

/// The compiled plan.
#[derive(Debug)]
pub(super) struct EntryPlan {
    steps: Vec<Step>,
    /// Whether a partition field is a plain fixed, whose form on disk is in doubt.
    pub(super) has_fixed: bool,
    /// Names of fields that are passed over although they may tell something.
    pub(super) unread: Vec<String>,
}

/// Fields that no one reads any more and the specification says not to write: block size, file
/// ordinal, sort columns, distinct counts; and the spec id, which the manifest tells.
const FORGOTTEN_FIELDS: [i32; 5] = [105, 106, 107, 111, 141];

impl EntryPlan {
    /// Compiles the plan. `partition` makes that of the partition struct out of its fields;
    /// `with_sizes` reads the sizes of columns too, which no scan needs.
    pub(super) fn compile(
        schema: &AvroSchema,
        with_sizes: bool,
        partition: impl Fn(Presence, &[Field]) -> Result<PartitionPlan>,
    ) -> Result<Self> {
        let (_, fields) = schema.fields(schema.root())?;
        check_ids(fields)?;
        for (id, name) in [(0, "status"), (2, "data_file")] {
            require(fields, id, name)?;
        }
        let mut has_fixed = false;
        let mut unread = Vec::new();
        let mut compile_partition = |presence, fields: &[Field]| {
            let plan = partition(presence, fields)?;
            has_fixed |= plan.has_fixed();
            Ok(plan)
        };
        let mut steps = Vec::with_capacity(fields.len());
        for field in fields {
            let node = field.node;
            let number = |number| Ok(Step::Integer(number, schema.integer(node)?));
            let step = match field.id {
                Some(0) => number(Integer::Status),
                Some(1) => number(Integer::SnapshotId),
                Some(2) => data_file(schema, node, with_sizes, &mut compile_partition, &mut unread),
                Some(3) => number(Integer::SequenceNumber),
                Some(4) => number(Integer::FileSequenceNumber),
                _ => Ok(skip(field, &mut unread)),
            };
            steps.push(step.context("field", || &field.name)?);
        }
        Ok(Self { steps, has_fixed, unread })
    }

    /// Reads the next entry over `out`, which is fresh or cleared.
    pub(super) fn read<'a>(&self, schema: &AvroSchema, form: FixedForm, cursor: &mut Cursor<'a>, out: &mut RawEntry<'a>) -> Result<()> {
        read_steps(&self.steps, schema, form, cursor, out)
    }
}

fn require(fields: &[Field], id: i32, name: &str) -> Result<()> {
    if fields.iter().any(|field| field.id == Some(id)) {
        Ok(())
    } else {
        Err(Error::corrupt(format!("not a manifest: it has no field {id} ({name})")))
    }
}

/// Passes a field over, and says so unless it is one that nobody misses.
fn skip(field: &Field, unread: &mut Vec<String>) -> Step {
    if field.id.is_none_or(|id| !FORGOTTEN_FIELDS.contains(&id)) {
        unread.push(field.name.clone());
    }
    Step::Skip(field.node)
}

fn data_file(
    schema: &AvroSchema,
    node: NodeId,
    with_sizes: bool,
    partition: &mut impl FnMut(Presence, &[Field]) -> Result<PartitionPlan>,
    unread: &mut Vec<String>,
) -> Result<Step> {
    let (presence, fields) = schema.fields(node)?;
    check_ids(fields)?;
    for (id, name) in [
        (100, "file_path"),
        (101, "file_format"),
        (103, "record_count"),
        (104, "file_size_in_bytes"),
    ] {
        require(fields, id, name)?;
    }
    let mut steps = Vec::with_capacity(fields.len());
    for field in fields {
        let node = field.node;
        let number = |number| Ok(Step::Integer(number, schema.integer(node)?));
        let text = |text| Ok(Step::Text(text, schema.text(node)?));
        let counts = |map, key, value| Ok(Step::Counts(map, MapPlan::compile(schema, node, key, value, AvroSchema::integer)?));
        let bounds = |key, value| MapPlan::compile(schema, node, key, value, AvroSchema::binary);
        let step = match field.id {
            Some(134) => number(Integer::Content),
            Some(100) => text(Text::Path),
            Some(101) => text(Text::Format),
            Some(102) => {
                let (presence, fields) = schema.fields(node)?;
                let plan = partition(presence, fields)?;
                unread.extend(plan.unread().map(str::to_owned));
                Ok(Step::Partition(plan))
            }
            Some(103) => number(Integer::RecordCount),
            Some(104) => number(Integer::FileSize),
            Some(108) if with_sizes => counts(CountMap::Sizes, 117, 118),
            Some(109) => counts(CountMap::Values, 119, 120),
            Some(110) => counts(CountMap::Nulls, 121, 122),
            Some(137) => counts(CountMap::Nans, 138, 139),
            Some(125) => bounds(126, 127).map(Step::LowerBounds),
            Some(128) => bounds(129, 130).map(Step::UpperBounds),
            Some(131) => schema.binary(node).map(Step::KeyMetadata),
            Some(132) => ListPlan::compile(schema, node).map(Step::SplitOffsets),
            Some(135) => ListPlan::compile(schema, node).map(Step::EqualityIds),
            Some(140) => number(Integer::SortOrderId),
            Some(142) => number(Integer::FirstRowId),
            Some(143) => text(Text::Referenced),
            Some(144) => number(Integer::ContentOffset),
            Some(145) => number(Integer::ContentSize),
            Some(108) => Ok(Step::Skip(node)),
            _ => Ok(skip(field, unread)),
        };
        steps.push(step.context("field", || &field.name)?);
    }
    Ok(Step::DataFile(presence, steps))
}

fn read_steps<'a>(steps: &[Step], schema: &AvroSchema, form: FixedForm, cursor: &mut Cursor<'a>, out: &mut RawEntry<'a>) -> Result<()> {
    for step in steps {
        match step {
            Step::Skip(node) => schema.skip(*node, cursor)?,
            Step::Integer(number, presence) => {
                let value = presence.integer(cursor)?;
                let slot = match number {
                    Integer::Status => &mut out.status,
                    Integer::SnapshotId => &mut out.snapshot_id,
                    Integer::SequenceNumber => &mut out.sequence_number,
                    Integer::FileSequenceNumber => &mut out.file_sequence_number,
                    Integer::Content => &mut out.content,
                    Integer::RecordCount => &mut out.record_count,
                    Integer::FileSize => &mut out.file_size,
                    Integer::SortOrderId => &mut out.sort_order_id,
                    Integer::FirstRowId => &mut out.first_row_id,
                    Integer::ContentOffset => &mut out.content_offset,
                    Integer::ContentSize => &mut out.content_size,
                };
                *slot = value;
            }
            Step::Text(text, presence) => {
                let value = presence.text(cursor)?;
                match text {
                    Text::Path => out.path = value.unwrap_or_default(),
                    Text::Format => out.format = value.unwrap_or_default(),
                    Text::Referenced => out.referenced = value,
                }
            }
            Step::Counts(map, plan) => {
                let pairs = match map {
                    CountMap::Sizes => &mut out.column_sizes,
                    CountMap::Values => &mut out.value_counts,
                    CountMap::Nulls => &mut out.null_value_counts,
                    CountMap::Nans => &mut out.nan_value_counts,
                };
                // A negative count means that the writer did not know.
                plan.read(schema, cursor, pairs, |presence, cursor| {
                    Ok(presence.integer(cursor)?.and_then(|count| u64::try_from(count).ok()))
                })?;
            }
            Step::LowerBounds(plan) => plan.read(schema, cursor, &mut out.lower_bounds, Presence::binary)?,
            Step::UpperBounds(plan) => plan.read(schema, cursor, &mut out.upper_bounds, Presence::binary)?,
            Step::KeyMetadata(presence) => out.key_metadata = presence.binary(cursor)?,
            Step::SplitOffsets(plan) => out.split_offsets = plan.read(cursor, Ok)?,
            Step::EqualityIds(plan) => out.equality_ids = plan.read(cursor, |id| fits(id, "equality field id"))?,
            Step::Partition(plan) => plan.read(schema, form, cursor, &mut out.partition)?,
            Step::DataFile(presence, steps) => {
                if presence.read(cursor)? {
                    read_steps(steps, schema, form, cursor, out)?;
                }
            }
        }
    }
    Ok(())
}

/// A list of numbers.
#[derive(Debug)]
struct ListPlan {
    presence: Presence,
    item: Presence,
}

impl ListPlan {
    fn compile(schema: &AvroSchema, node: NodeId) -> Result<Self> {
        let (presence, items) = schema.list(node)?;
        let item = schema.integer(items)?;
        Ok(Self { presence, item })
    }

    fn read<T>(&self, cursor: &mut Cursor<'_>, convert: impl Fn(i64) -> Result<T>) -> Result<Option<Vec<T>>> {
        if !self.presence.read(cursor)? {
            return Ok(None);
        }
        let mut list = Vec::new();
        cursor.items(|cursor| {
            let value = self
                .item
                .integer(cursor)?
                .ok_or_else(|| Error::corrupt("a list of numbers holds null"))?;
            list.push(convert(value)?);
            Ok(())
        })?;
        Ok(Some(list))
    }
}

#[derive(Debug)]
enum PairStep {
    Key(Presence),
    Value(Presence),
    Skip(NodeId),
}

/// A map from field ids: an array of records of key and value.
#[derive(Debug)]
struct MapPlan {
    presence: Presence,
    pair: Presence,
    steps: Vec<PairStep>,
}

impl MapPlan {
    fn compile(
        schema: &AvroSchema,
        node: NodeId,
        key_id: i32,
        value_id: i32,
        value: impl Fn(&AvroSchema, NodeId) -> Result<Presence>,
    ) -> Result<Self> {
        let (presence, items) = schema.list(node)?;
        let (pair, fields) = schema.fields(items)?;
        check_ids(fields)?;
        // Without ids key and value are found by position, as the specification lays a map out.
        let by_position = fields.len() == 2 && fields.iter().all(|field| field.id.is_none());
        let mut steps = Vec::with_capacity(fields.len());
        for (i, field) in fields.iter().enumerate() {
            let is_key = field.id == Some(key_id) || by_position && i == 0;
            let is_value = field.id == Some(value_id) || by_position && i == 1;
            steps.push(match (is_key, is_value) {
                (true, _) => PairStep::Key(schema.integer(field.node)?),
                (_, true) => PairStep::Value(value(schema, field.node)?),
                _ => PairStep::Skip(field.node),
            });
        }
        let has_key = steps.iter().any(|step| matches!(step, PairStep::Key(_)));
        let has_value = steps.iter().any(|step| matches!(step, PairStep::Value(_)));
        if presence != Presence::Never && !(has_key && has_value) {
            return Err(Error::corrupt(format!("avro map has no key {key_id} or no value {value_id}")));
        }
        Ok(Self { presence, pair, steps })
    }

    /// Appends the pairs; one with a null key or value tells nothing and is left out.
    fn read<'a, V>(
        &self,
        schema: &AvroSchema,
        cursor: &mut Cursor<'a>,
        out: &mut Vec<(i32, V)>,
        value_of: impl Fn(Presence, &mut Cursor<'a>) -> Result<Option<V>>,
    ) -> Result<()> {
        if !self.presence.read(cursor)? {
            return Ok(());
        }
        cursor.items(|cursor| {
            if !self.pair.read(cursor)? {
                return Ok(());
            }
            let (mut key, mut value) = (None, None);
            for step in &self.steps {
                match step {
                    PairStep::Key(presence) => key = presence.integer(cursor)?,
                    PairStep::Value(presence) => value = value_of(*presence, cursor)?,
                    PairStep::Skip(node) => schema.skip(*node, cursor)?,
                }
            }
            if let (Some(key), Some(value)) = (key, value) {
                out.push((fits(key, "field id")?, value));
            }
            Ok(())
        })
    }
}
