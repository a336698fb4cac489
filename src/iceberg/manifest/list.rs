//! Manifest lists (spec "Manifest Lists"): what a snapshot consists of.
//!
//! Columns are found by field id, never by name: old writers call the counts otherwise.

use bytes::Bytes;

use super::plan::{check_ids, fits, format_version, spend};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::avro::{AvroSchema, BlockBuffer, Container, Cursor, Field, NodeId, Presence};

/// Most manifests of a snapshot.
const MAX_MANIFESTS: usize = 1_000_000;

/// What the files of a manifest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManifestContent {
    Data,
    Deletes,
}

/// One manifest of a snapshot, as its manifest list describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestFile {
    /// Location as written.
    pub location: String,
    /// Length in bytes; `None` for a manifest named in v1 metadata directly.
    pub length: Option<u64>,
    /// Partition spec of all files; `None` for a manifest named in v1 metadata directly, which tells it itself.
    pub partition_spec_id: Option<i32>,
    pub content: ManifestContent,
    /// 0 in v1.
    pub sequence_number: i64,
    /// Lowest data sequence number of the live files; 0 in v1.
    pub min_sequence_number: i64,
    /// `None` only for a manifest named in v1 metadata directly.
    pub added_snapshot_id: Option<i64>,
    /// Counts; `None` means unknown, to be treated as not zero.
    pub added_files_count: Option<u64>,
    pub existing_files_count: Option<u64>,
    pub deleted_files_count: Option<u64>,
    pub added_rows_count: Option<u64>,
    pub existing_rows_count: Option<u64>,
    pub deleted_rows_count: Option<u64>,
    /// Summaries by position in the spec's fields; `None` means unknown.
    pub partitions: Option<Vec<FieldSummary>>,
    /// Whether the manifest is encrypted; then it must be refused.
    pub has_key_metadata: bool,
    /// Key metadata as written.
    pub key_metadata: Option<Bytes>,
    /// First row id for the data files without one (v3).
    pub first_row_id: Option<u64>,
}

/// Summary of one partition field over all files of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSummary {
    pub contains_null: bool,
    pub contains_nan: Option<bool>,
    /// Binary single-value form, typed by the partition field; `None` if there is no value or it is unknown.
    pub lower_bound: Option<Bytes>,
    pub upper_bound: Option<Bytes>,
}

impl ManifestFile {
    /// A data manifest that v1 metadata names directly, without a manifest list.
    pub fn bare(location: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            length: None,
            partition_spec_id: None,
            content: ManifestContent::Data,
            sequence_number: 0,
            min_sequence_number: 0,
            added_snapshot_id: None,
            added_files_count: None,
            existing_files_count: None,
            deleted_files_count: None,
            added_rows_count: None,
            existing_rows_count: None,
            deleted_rows_count: None,
            partitions: None,
            has_key_metadata: false,
            key_metadata: None,
            first_row_id: None,
        }
    }

    /// Whether the manifest may have live files, by its counts.
    pub fn may_have_live_files(&self) -> bool {
        self.added_files_count != Some(0) || self.existing_files_count != Some(0)
    }
}

/// Reads a manifest list of any version, in the order of the file.
///
/// `file` is the list's location, for messages.
///
/// Errors: `Corrupt` for bytes that are no manifest list, `Unsupported` for an unknown codec
/// or format version.
pub fn read_manifest_list(bytes: &[u8], file: &str) -> Result<Vec<ManifestFile>> {
    read(bytes, false).context("manifest list", || file)
}

/// As [`read_manifest_list`], for a list that is to be written anew.
///
/// Errors: also `Unsupported` for a list with columns that are not known here and would be lost.
pub fn read_manifest_list_in_full(bytes: &[u8], file: &str) -> Result<Vec<ManifestFile>> {
    read(bytes, true).context("manifest list", || file)
}

fn read(bytes: &[u8], in_full: bool) -> Result<Vec<ManifestFile>> {
    let mut container = Container::open(bytes)?;
    format_version(&container)?;
    let schema = container.schema()?;
    let plan = Plan::compile(&schema)?;
    if in_full {
        plan.check_complete(&schema)?;
    }
    let mut manifests = Vec::new();
    let mut buffer = BlockBuffer::default();
    let mut decoded = 0;
    while let Some(block) = container.next_block(&mut buffer)? {
        spend(&mut decoded, block.bytes.len())?;
        let mut cursor = Cursor::new(block.bytes);
        for _ in 0..block.count {
            if manifests.len() == MAX_MANIFESTS {
                return Err(Error::corrupt(format!("more than {MAX_MANIFESTS} manifests")));
            }
            let row = manifests.len();
            manifests.push(plan.read(&schema, &mut cursor).context("row", || row)?);
        }
        block.finish(&cursor)?;
    }
    Ok(manifests)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Location,
    Length,
    SpecId,
    Content,
    SequenceNumber,
    MinSequenceNumber,
    AddedSnapshotId,
    AddedFiles,
    ExistingFiles,
    DeletedFiles,
    AddedRows,
    ExistingRows,
    DeletedRows,
    KeyMetadata,
    FirstRowId,
}

impl Column {
    fn from_id(id: i32) -> Option<Self> {
        Some(match id {
            500 => Self::Location,
            501 => Self::Length,
            502 => Self::SpecId,
            517 => Self::Content,
            515 => Self::SequenceNumber,
            516 => Self::MinSequenceNumber,
            503 => Self::AddedSnapshotId,
            504 => Self::AddedFiles,
            505 => Self::ExistingFiles,
            506 => Self::DeletedFiles,
            512 => Self::AddedRows,
            513 => Self::ExistingRows,
            514 => Self::DeletedRows,
            519 => Self::KeyMetadata,
            520 => Self::FirstRowId,
            _ => return None,
        })
    }

    fn presence(self, schema: &AvroSchema, node: NodeId) -> Result<Presence> {
        match self {
            Self::Location => schema.text(node),
            Self::KeyMetadata => schema.binary(node),
            _ => schema.integer(node),
        }
    }
}

/// Field id of the partition summaries.
const PARTITIONS: i32 = 507;

enum Step {
    Skip(NodeId),
    Column(Column, Presence),
    Partitions(Presence, SummaryPlan),
}

struct Plan(Vec<Step>);

impl Plan {
    fn compile(schema: &AvroSchema) -> Result<Self> {
        let (_, fields) = schema.fields(schema.root())?;
        check_ids(fields)?;
        for (id, name) in [(500, "manifest_path"), (502, "partition_spec_id")] {
            if !fields.iter().any(|field| field.id == Some(id)) {
                return Err(Error::corrupt(format!("not a manifest list: it has no field {id} ({name})")));
            }
        }
        let step = |field: &Field| {
            let node = field.node;
            Ok(match field.id {
                Some(PARTITIONS) => {
                    let (presence, items) = schema.list(node)?;
                    Step::Partitions(presence, SummaryPlan::compile(schema, items)?)
                }
                id => match id.and_then(Column::from_id) {
                    Some(column) => Step::Column(column, column.presence(schema, node)?),
                    None => Step::Skip(node),
                },
            })
        };
        let steps = fields.iter().map(|field| step(field).context("field", || &field.name));
        Ok(Self(steps.collect::<Result<_>>()?))
    }

    /// Refuses columns that are passed over.
    fn check_complete(&self, schema: &AvroSchema) -> Result<()> {
        let (_, fields) = schema.fields(schema.root())?;
        let skipped = self.0.iter().zip(fields).filter(|(step, _)| match step {
            Step::Skip(_) => true,
            Step::Partitions(_, plan) => plan.steps.iter().any(|step| matches!(step, SummaryStep::Skip(_))),
            Step::Column(..) => false,
        });
        let names: Vec<&str> = skipped.map(|(_, field)| field.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let names = names.join(", ");
        Err(Error::unsupported(format!(
            "the list has columns that are not known here and would be lost: {names}"
        )))
    }

    fn read(&self, schema: &AvroSchema, cursor: &mut Cursor<'_>) -> Result<ManifestFile> {
        let mut out = ManifestFile::bare("");
        for step in &self.0 {
            match step {
                Step::Skip(node) => schema.skip(*node, cursor)?,
                Step::Partitions(presence, plan) => {
                    if presence.read(cursor)? {
                        out.partitions = Some(plan.read(schema, cursor)?);
                    }
                }
                Step::Column(Column::Location, presence) => {
                    if let Some(location) = presence.text(cursor)? {
                        location.clone_into(&mut out.location);
                    }
                }
                Step::Column(Column::KeyMetadata, presence) => {
                    out.key_metadata = presence.binary(cursor)?.map(Bytes::copy_from_slice);
                    out.has_key_metadata = out.key_metadata.is_some();
                }
                Step::Column(column, presence) => {
                    if let Some(value) = presence.integer(cursor)? {
                        set(&mut out, *column, value)?;
                    }
                }
            }
        }
        if out.location.is_empty() {
            return Err(Error::corrupt("a manifest has no location"));
        }
        if out.partition_spec_id.is_none() {
            return Err(Error::corrupt("a manifest has no partition spec id").with("manifest", &out.location));
        }
        Ok(out)
    }
}

fn set(out: &mut ManifestFile, column: Column, value: i64) -> Result<()> {
    // A negative count means that the writer did not know.
    let count = u64::try_from(value).ok();
    match column {
        Column::Length => out.length = Some(fits(value, "manifest length")?),
        Column::SpecId => out.partition_spec_id = Some(fits(value, "partition spec id")?),
        Column::Content => {
            out.content = match value {
                0 => ManifestContent::Data,
                1 => ManifestContent::Deletes,
                other => return Err(Error::corrupt(format!("manifest content is {other}"))),
            }
        }
        Column::SequenceNumber => out.sequence_number = fits::<u64>(value, "sequence number").map(|_| value)?,
        Column::MinSequenceNumber => out.min_sequence_number = value.max(0),
        Column::AddedSnapshotId => out.added_snapshot_id = Some(value),
        Column::AddedFiles => out.added_files_count = count,
        Column::ExistingFiles => out.existing_files_count = count,
        Column::DeletedFiles => out.deleted_files_count = count,
        Column::AddedRows => out.added_rows_count = count,
        Column::ExistingRows => out.existing_rows_count = count,
        Column::DeletedRows => out.deleted_rows_count = count,
        Column::FirstRowId => out.first_row_id = Some(fits(value, "first row id")?),
        Column::Location | Column::KeyMetadata => {}
    }
    Ok(())
}

enum SummaryStep {
    Skip(NodeId),
    ContainsNull(Presence),
    ContainsNan(Presence),
    LowerBound(Presence),
    UpperBound(Presence),
}

/// Reads the list of partition summaries.
struct SummaryPlan {
    presence: Presence,
    steps: Vec<SummaryStep>,
}

impl SummaryPlan {
    fn compile(schema: &AvroSchema, items: NodeId) -> Result<Self> {
        let (presence, fields) = schema.fields(items)?;
        check_ids(fields)?;
        let steps = fields.iter().map(|field| {
            let node = field.node;
            Ok(match field.id {
                Some(509) => SummaryStep::ContainsNull(schema.boolean(node)?),
                Some(518) => SummaryStep::ContainsNan(schema.boolean(node)?),
                Some(510) => SummaryStep::LowerBound(schema.binary(node)?),
                Some(511) => SummaryStep::UpperBound(schema.binary(node)?),
                _ => SummaryStep::Skip(node),
            })
        });
        Ok(Self {
            presence,
            steps: steps.collect::<Result<_>>()?,
        })
    }

    fn read(&self, schema: &AvroSchema, cursor: &mut Cursor<'_>) -> Result<Vec<FieldSummary>> {
        let mut summaries = Vec::new();
        cursor.items(|cursor| {
            // An unknown summary, until the file tells more.
            let mut out = FieldSummary {
                contains_null: true,
                contains_nan: None,
                lower_bound: None,
                upper_bound: None,
            };
            if self.presence.read(cursor)? {
                for step in &self.steps {
                    match step {
                        SummaryStep::Skip(node) => schema.skip(*node, cursor)?,
                        SummaryStep::ContainsNull(presence) => out.contains_null = presence.boolean(cursor)?.unwrap_or(true),
                        SummaryStep::ContainsNan(presence) => out.contains_nan = presence.boolean(cursor)?,
                        SummaryStep::LowerBound(presence) => out.lower_bound = presence.binary(cursor)?.map(Bytes::copy_from_slice),
                        SummaryStep::UpperBound(presence) => out.upper_bound = presence.binary(cursor)?.map(Bytes::copy_from_slice),
                    }
                }
            }
            summaries.push(out);
            Ok(())
        })?;
        Ok(summaries)
    }
}
