//! Writing a manifest (spec "Manifests", "Sequence Number Inheritance", "First Row ID Inheritance").
//!
//! Added files carry neither snapshot id nor sequence numbers (v1 apart, which has no
//! inheritance), so that the manifest stays valid when a commit is tried again. Existing and
//! deleted files carry all of them.

use super::entry::Tracking;
use super::partition::PartitionColumn;
use super::summary::Summaries;
use super::{AvroLayout, UNASSIGNED_SEQUENCE_NUMBER, avro_schema, checks, entry};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::avro::ContainerWriter;
use crate::iceberg::manifest::{DataFile, EntryRef, EntryStatus, ManifestContent, ManifestFile};
use crate::iceberg::spec::TableMetadata;

/// A manifest in the making, of one partition spec and one content.
#[derive(Debug)]
pub struct ManifestWriter {
    version: u8,
    content: ManifestContent,
    spec_id: i32,
    snapshot_id: i64,
    columns: Vec<PartitionColumn>,
    file: ContainerWriter,
    summaries: Summaries,
    /// Files and rows by status: existing, added, deleted.
    files: [u64; 3],
    rows: [u64; 3],
    /// Of live files that have their own.
    min_sequence_number: Option<i64>,
}

impl ManifestWriter {
    /// A manifest of the table's format version, written by the snapshot of this id.
    ///
    /// Errors: `InvalidInput` for a spec that the table does not have and for delete files in
    /// v1, `Unsupported` for a partition transform that is not known.
    pub fn new(metadata: &TableMetadata, spec_id: i32, content: ManifestContent, snapshot_id: i64, layout: AvroLayout) -> Result<Self> {
        let version = metadata.format_version;
        if version == 1 && content == ManifestContent::Deletes {
            return Err(Error::invalid("delete files need format version 2, the table has 1"));
        }
        let spec = metadata
            .spec_by_id(spec_id)
            .ok_or_else(|| Error::invalid(format!("the table has no partition spec {spec_id}")))?;
        let columns = PartitionColumn::of(spec, metadata)?;
        let schema = metadata.current_schema()?;
        let schema_id = schema.schema_id().to_string();
        let schema = schema.to_json()?.to_string();
        let spec = spec.to_json();
        let fields = spec.get("fields").map(ToString::to_string).unwrap_or_default();
        let (spec_text, version_text) = (spec_id.to_string(), version.to_string());
        let mut header = vec![
            ("schema", schema.as_str()),
            ("schema-id", &schema_id),
            ("partition-spec", &fields),
            ("partition-spec-id", &spec_text),
            ("format-version", &version_text),
        ];
        if version > 1 {
            header.push(match content {
                ManifestContent::Data => ("content", "data"),
                ManifestContent::Deletes => ("content", "deletes"),
            });
        }
        let file = ContainerWriter::with_schema_text(&avro_schema::manifest_entry(version, &columns), &header, layout.codec, layout.sync);
        Ok(Self {
            version,
            content,
            spec_id,
            snapshot_id,
            summaries: Summaries::new(columns.len()),
            columns,
            file,
            files: [0; 3],
            rows: [0; 3],
            min_sequence_number: None,
        })
    }

    /// Adds a new file. Its sequence numbers are those of the commit.
    ///
    /// Errors: `InvalidInput` naming the file where it lacks something, has something that the
    /// table's format version does not take, or is of another spec or content than the manifest.
    pub fn add(&mut self, file: &DataFile) -> Result<()> {
        self.add_file(file, None)
    }

    /// Adds a new file whose rows are as old as this data sequence number: a rewritten file that
    /// later deletes must still apply to.
    ///
    /// Errors: as for [`Self::add`]; v1 has no sequence numbers.
    pub fn add_with_sequence_number(&mut self, file: &DataFile, sequence_number: i64) -> Result<()> {
        if self.version == 1 || sequence_number < 0 {
            return Err(Error::invalid(format!("a file cannot have sequence number {sequence_number}")).with("file", &file.file_path));
        }
        self.add_file(file, Some(sequence_number))
    }

    fn add_file(&mut self, file: &DataFile, sequence_number: Option<i64>) -> Result<()> {
        let tracking = Tracking {
            status: EntryStatus::Added,
            snapshot_id: (self.version == 1).then_some(self.snapshot_id),
            sequence_number,
            file_sequence_number: None,
        };
        checks::may_be_added(file, self.version).context("file", || &file.file_path)?;
        self.push(tracking, file)
    }

    /// Carries a live file over from a manifest that was read in full.
    ///
    /// Errors: as for [`Self::add`]; `Unsupported` where the manifest has fields that are not
    /// known here and would be lost.
    pub fn existing(&mut self, entry: &EntryRef<'_>) -> Result<()> {
        let snapshot_id = entry.snapshot_id();
        let snapshot_id = snapshot_id.ok_or_else(|| Error::corrupt("the snapshot that added the file is not known"));
        let snapshot_id = snapshot_id.context("file", || entry.file_path())?;
        self.carry(entry, EntryStatus::Existing, snapshot_id)
    }

    /// Marks a live file of a manifest that was read in full as deleted by this snapshot.
    ///
    /// Errors: as for [`Self::existing`].
    pub fn delete(&mut self, entry: &EntryRef<'_>) -> Result<()> {
        self.carry(entry, EntryStatus::Deleted, self.snapshot_id)
    }

    fn carry(&mut self, entry: &EntryRef<'_>, status: EntryStatus, snapshot_id: i64) -> Result<()> {
        entry.check_complete()?;
        let checked = || -> Result<Tracking> {
            if !entry.is_live() {
                return Err(Error::invalid("a deleted file cannot be carried over"));
            }
            if self.version == 1 && entry.sequence_number() != 0 {
                return Err(Error::invalid("format version 1 has no sequence numbers"));
            }
            Ok(Tracking {
                status,
                snapshot_id: Some(snapshot_id),
                sequence_number: Some(entry.sequence_number()),
                file_sequence_number: entry.file_sequence_number(),
            })
        };
        let tracking = checked().context("file", || entry.file_path())?;
        self.push(tracking, &entry.to_data_file())
    }

    fn push(&mut self, tracking: Tracking, file: &DataFile) -> Result<()> {
        self.checked_push(tracking, file).context("file", || &file.file_path)
    }

    fn checked_push(&mut self, tracking: Tracking, file: &DataFile) -> Result<()> {
        if file.spec_id != self.spec_id {
            let (own, other) = (self.spec_id, file.spec_id);
            return Err(Error::invalid(format!(
                "the manifest is of partition spec {own}, the file of {other}"
            )));
        }
        checks::fits(file, self.content, self.version)?;
        let slot = tracking.status as usize;
        let rows = self.rows[slot]
            .checked_add(file.record_count)
            .filter(|rows| i64::try_from(*rows).is_ok());
        let rows = rows.ok_or_else(|| Error::invalid("the manifest has more than 2^63 rows"))?;
        let (version, columns) = (self.version, &self.columns);
        self.file.append(|out| entry::encode(version, tracking, file, columns, out))?;
        self.rows[slot] = rows;
        self.files[slot] += 1;
        self.summaries.add(&file.partition);
        if tracking.status != EntryStatus::Deleted
            && let Some(number) = tracking.sequence_number
        {
            self.min_sequence_number = Some(self.min_sequence_number.map_or(number, |least| least.min(number)));
        }
        Ok(())
    }

    /// Number of entries so far.
    pub fn len(&self) -> u64 {
        self.files.iter().sum()
    }

    /// Whether there is no entry so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the manifest and its entry for the manifest list; `location` is where it will lie.
    ///
    /// Errors: `InvalidInput` for a manifest without entries.
    pub fn finish(self, location: impl Into<String>) -> Result<(Vec<u8>, ManifestFile)> {
        if self.is_empty() {
            return Err(Error::invalid("a manifest without entries is not written"));
        }
        let bytes = self.file.finish()?;
        let [existing_files, added_files, deleted_files] = self.files.map(Some);
        let [existing_rows, added_rows, deleted_rows] = self.rows.map(Some);
        let unassigned = if self.version == 1 { 0 } else { UNASSIGNED_SEQUENCE_NUMBER };
        let listed = ManifestFile {
            length: Some(bytes.len() as u64),
            partition_spec_id: Some(self.spec_id),
            content: self.content,
            sequence_number: unassigned,
            min_sequence_number: self.min_sequence_number.unwrap_or(unassigned),
            added_snapshot_id: Some(self.snapshot_id),
            added_files_count: added_files,
            existing_files_count: existing_files,
            deleted_files_count: deleted_files,
            added_rows_count: added_rows,
            existing_rows_count: existing_rows,
            deleted_rows_count: deleted_rows,
            partitions: self.summaries.finish(&self.columns)?,
            ..ManifestFile::bare(location)
        };
        Ok((bytes, listed))
    }
}
