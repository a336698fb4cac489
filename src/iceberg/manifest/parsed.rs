//! A manifest as a columnar object (spec "Manifests"): what the cache holds.

use std::sync::Arc;

use super::build::Builder;
use super::columns::Columns;
use super::partition::{FixedForm, PartitionPlan};
use super::plan::{EntryPlan, RawEntry, format_version, spend};
use super::{EntryRef, ManifestContent, ManifestFile};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::avro::{AvroSchema, BlockBuffer, Container, Cursor};
use crate::iceberg::spec::{Literal, PartitionSpec, PartitionValues, TableMetadata, Type};

/// Most entries of a manifest.
const MAX_ENTRIES: usize = 10_000_000;

/// Field ids that only manifests from v2 on have: an entry's sequence number, a file's content.
const V2_FIELDS: [i32; 2] = [3, 134];

/// All entries of a manifest, decoded, checked and with inherited values filled in.
#[derive(Debug)]
pub struct Manifest {
    location: Arc<str>,
    spec_id: i32,
    content: ManifestContent,
    pub(super) partitions: Vec<PartitionValues>,
    pub(super) columns: Columns,
    /// Whether the sizes of columns were read too.
    in_full: bool,
    /// Names of fields of the file that were passed over.
    unread: Vec<String>,
}

impl Manifest {
    /// Parses a manifest's bytes. `list_entry` is its entry in the manifest list, `metadata`
    /// that of the table (partition specs and schemas).
    ///
    /// Errors: `Corrupt` naming the manifest for bytes that break the format, `Unsupported` for
    /// an unknown codec, format version or file format.
    pub fn parse(bytes: &[u8], list_entry: &ManifestFile, metadata: &TableMetadata) -> Result<Self> {
        Self::parse_with(bytes, list_entry, metadata, false)
    }

    /// As [`Self::parse`], with what only a listing of files shows: the sizes of columns.
    pub fn parse_in_full(bytes: &[u8], list_entry: &ManifestFile, metadata: &TableMetadata) -> Result<Self> {
        Self::parse_with(bytes, list_entry, metadata, true)
    }

    fn parse_with(bytes: &[u8], list_entry: &ManifestFile, metadata: &TableMetadata, with_sizes: bool) -> Result<Self> {
        let source_types = |id| source_types(metadata, id);
        let spec = |id: i32| {
            metadata
                .spec_by_id(id)
                .map(|spec| (**spec).clone())
                .ok_or_else(|| Error::corrupt(format!("the table has no partition spec {id}")))
        };
        parse(bytes, list_entry, with_sizes, spec, source_types).context("manifest", || &list_entry.location)
    }

    /// Location of the manifest.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Partition spec of all entries.
    pub fn spec_id(&self) -> i32 {
        self.spec_id
    }

    /// Data or delete files.
    pub fn content(&self) -> ManifestContent {
        self.content
    }

    /// Number of entries, deleted ones included.
    pub fn len(&self) -> usize {
        self.columns.flags.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.columns.flags.is_empty()
    }

    /// Entry `index`; `None` behind the end.
    pub fn get(&self, index: usize) -> Option<EntryRef<'_>> {
        (index < self.len()).then(|| EntryRef::new(self, index))
    }

    /// Entry `index`, which is below [`Self::len`]; panics otherwise, like a slice.
    pub fn entry(&self, index: usize) -> EntryRef<'_> {
        assert!(index < self.len(), "entry {index} of a manifest of {}", self.len());
        EntryRef::new(self, index)
    }

    /// All entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = EntryRef<'_>> {
        (0..self.len()).map(|row| EntryRef::new(self, row))
    }

    /// The entries that are part of the table.
    pub fn live(&self) -> impl Iterator<Item = EntryRef<'_>> {
        self.entries().filter(EntryRef::is_live)
    }

    /// The distinct partitions of the entries.
    pub fn partitions(&self) -> &[PartitionValues] {
        &self.partitions
    }

    /// Whether the entries hold all that the file says of them, so that they can be written anew.
    ///
    /// Errors: `Unsupported` naming fields that are not known here; `Internal` where the manifest
    /// was not read in full.
    pub(super) fn check_complete(&self) -> Result<()> {
        if !self.in_full {
            return Err(Error::internal("the manifest was not read in full").with("manifest", &self.location));
        }
        if self.unread.is_empty() {
            return Ok(());
        }
        let fields = self.unread.join(", ");
        let message = format!("the manifest has fields that are not known here and would be lost: {fields}; rewrite it with its writer");
        Err(Error::unsupported(message).with("manifest", &self.location))
    }

    pub(super) fn partition(&self, index: u32) -> &PartitionValues {
        &self.partitions[index as usize]
    }

    /// Bytes of memory that this object holds.
    pub fn memory_size(&self) -> usize {
        let partitions: usize = self.partitions.iter().map(partition_memory).sum();
        let unread: usize = self.unread.iter().map(|name| size_of::<String>() + name.capacity()).sum();
        size_of::<Self>() + self.location.len() + partitions + unread + self.columns.memory()
    }
}

fn partition_memory(values: &PartitionValues) -> usize {
    let heap = |value: &Option<Literal>| match value {
        Some(Literal::String(v)) => v.capacity(),
        Some(Literal::Binary(v)) => v.capacity(),
        _ => 0,
    };
    size_of::<PartitionValues>() + size_of_val::<[_]>(values) + values.iter().map(heap).sum::<usize>()
}

/// The types that a column has had: that of today, then those of older schemas from the newest on.
pub(super) fn source_types(metadata: &TableMetadata, id: i32) -> Vec<Type> {
    let current = metadata.schema_by_id(metadata.current_schema_id);
    let schemas = current.into_iter().chain(metadata.schemas.iter().rev());
    schemas
        .filter_map(|schema| schema.field_by_id(id))
        .map(|field| field.field_type.clone())
        .collect()
}

/// The partition spec id that list and manifest agree on.
fn agreed_spec_id(container: &Container<'_>, list_entry: &ManifestFile) -> Result<i32> {
    let own = container
        .metadata_text("partition-spec-id")?
        .map(|text| {
            text.parse::<i32>()
                .map_err(|e| Error::corrupt(format!("partition spec id is \"{text}\"")).with_source(e))
        })
        .transpose()?;
    match (list_entry.partition_spec_id, own) {
        (Some(listed), Some(own)) if listed != own => Err(Error::corrupt(format!(
            "the manifest list says partition spec {listed}, the manifest {own}"
        ))),
        // Before there were several specs, manifests did not name theirs: it is the first one.
        (listed, own) => Ok(listed.or(own).unwrap_or(0)),
    }
}

/// Checks the manifest's own word on its content, where it gives one.
fn check_content(container: &Container<'_>, listed: ManifestContent) -> Result<()> {
    let own = match container.metadata_text("content")? {
        None => return Ok(()),
        Some("data") => ManifestContent::Data,
        Some("deletes") => ManifestContent::Deletes,
        Some(other) => return Err(Error::corrupt(format!("manifest content is \"{other}\""))),
    };
    if own == listed {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the manifest list says {listed:?}, the manifest {own:?}")))
    }
}

fn parse(
    bytes: &[u8],
    list_entry: &ManifestFile,
    with_sizes: bool,
    spec: impl Fn(i32) -> Result<PartitionSpec>,
    source_types: impl Fn(i32) -> Vec<Type>,
) -> Result<Manifest> {
    let container = Container::open(bytes)?;
    check_content(&container, list_entry.content)?;
    let version = format_version(&container)?;
    let spec = spec(agreed_spec_id(&container, list_entry)?)?;
    let schema = container.schema()?;
    let plan = EntryPlan::compile(&schema, with_sizes, |presence, fields| {
        PartitionPlan::compile(&schema, presence, fields, &spec, &source_types)
    })?;
    let is_v1 = version == Some(1);
    let lacks_v2_fields = !V2_FIELDS.iter().any(|id| schema.contains_field(schema.root(), *id));
    let decode = |form| {
        let builder = Builder::new(list_entry, spec.fields.len(), is_v1, lacks_v2_fields);
        decode(container.clone(), &schema, &plan, form, builder)
    };
    let built = if plan.has_fixed {
        either_form(decode(FixedForm::Plain), decode(FixedForm::LengthFirst), list_entry)?
    } else {
        decode(FixedForm::Plain)?
    };
    let (columns, partitions) = built;
    Ok(Manifest {
        location: list_entry.location.as_str().into(),
        spec_id: spec.spec_id,
        content: list_entry.content,
        partitions,
        columns,
        in_full: with_sizes,
        unread: plan.unread,
    })
}

type Decoded = (Columns, Vec<PartitionValues>);

/// The one of two readings that makes sense. The wrong one can end at the same byte: what it
/// takes for the end of a value starts a longer number of rows. So where both work, the row
/// counts of the manifest list decide, and without them the manifest is refused.
fn either_form(plain: Result<Decoded>, length_first: Result<Decoded>, list_entry: &ManifestFile) -> Result<Decoded> {
    match (plain, length_first) {
        // No value was read, only nulls.
        (Ok(plain), Ok(other)) if plain.1 == other.1 && plain.0.record_count == other.0.record_count => Ok(plain),
        (Ok(plain), Ok(other)) => match (has_listed_rows(&plain.0, list_entry), has_listed_rows(&other.0, list_entry)) {
            (true, false) => Ok(plain),
            (false, true) => Ok(other),
            _ => Err(Error::corrupt(
                "partition values of type fixed can be read in two ways; rewrite the manifests with another writer",
            )),
        },
        (Err(_), Ok(other)) => Ok(other),
        (plain, Err(_)) => plain,
    }
}

/// Whether the entries have the row counts of the manifest list, as far as it tells them.
fn has_listed_rows(columns: &Columns, list_entry: &ManifestFile) -> bool {
    let rows = columns.rows_by_status();
    let listed = [
        list_entry.existing_rows_count,
        list_entry.added_rows_count,
        list_entry.deleted_rows_count,
    ];
    rows.iter()
        .zip(listed)
        .all(|(rows, listed)| listed.is_none_or(|listed| listed == *rows))
}

fn decode(
    mut container: Container<'_>,
    schema: &AvroSchema,
    plan: &EntryPlan,
    form: FixedForm,
    mut builder: Builder<'_>,
) -> Result<Decoded> {
    let mut buffer = BlockBuffer::default();
    let mut decoded = 0;
    while let Some(block) = container.next_block(&mut buffer)? {
        spend(&mut decoded, block.bytes.len())?;
        let mut cursor = Cursor::new(block.bytes);
        let mut raw = RawEntry::default();
        for _ in 0..block.count {
            let row = builder.len();
            if row == MAX_ENTRIES {
                return Err(Error::corrupt(format!("more than {MAX_ENTRIES} entries")));
            }
            raw.clear();
            plan.read(schema, form, &mut cursor, &mut raw).context("entry", || row)?;
            builder.push(&mut raw).context("entry", || row)?;
        }
        block.finish(&cursor)?;
    }
    Ok(builder.finish())
}
