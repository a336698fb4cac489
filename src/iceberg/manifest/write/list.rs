//! Writing a manifest list (spec "Manifest Lists", "First Row ID Assignment").
//!
//! One list is written for every attempt of a commit: here manifests that the commit adds get its
//! sequence number, and data manifests without row ids get them (v3). All else stays as it was read.

use std::collections::HashSet;

use super::entry::long;
use super::{AvroLayout, UNASSIGNED_SEQUENCE_NUMBER, avro_schema};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::avro::{ContainerWriter, Encoder};
use crate::iceberg::manifest::{FieldSummary, ManifestContent, ManifestFile};

/// A manifest list in the making.
#[derive(Debug)]
pub struct ManifestListWriter {
    version: u8,
    snapshot_id: i64,
    sequence_number: i64,
    /// Where the row ids of the commit start; `None` before v3.
    first_row_id: Option<u64>,
    next_row_id: u64,
    file: ContainerWriter,
    manifests: Vec<ManifestFile>,
    locations: HashSet<String>,
}

/// A finished manifest list.
#[derive(Debug)]
pub struct WrittenList {
    pub bytes: Vec<u8>,
    /// The manifests as the list has them: with sequence numbers and first row ids.
    pub manifests: Vec<ManifestFile>,
    /// Row ids handed out from the first one on: `added-rows` of the snapshot. `None` before v3.
    pub assigned_rows: Option<u64>,
}

impl ManifestListWriter {
    /// A list of the table's format version for a snapshot. `sequence_number` is 0 in v1;
    /// `first_row_id` is the table's next row id, and there from v3 on.
    ///
    /// Errors: `InvalidInput` where version, sequence number and row id do not go together.
    pub fn new(
        version: u8,
        snapshot_id: i64,
        parent_snapshot_id: Option<i64>,
        sequence_number: i64,
        first_row_id: Option<u64>,
        layout: AvroLayout,
    ) -> Result<Self> {
        if !(1..=3).contains(&version) {
            return Err(Error::unsupported(format!("format version {version} cannot be written")));
        }
        if (version == 1) != (sequence_number == 0) || sequence_number < 0 {
            return Err(Error::invalid(format!(
                "sequence number {sequence_number} is none of format version {version}"
            )));
        }
        if (version > 2) != first_row_id.is_some() {
            return Err(Error::invalid(format!(
                "format version {version} and a first row id do not go together"
            )));
        }
        let next_row_id = first_row_id.unwrap_or(0);
        let parent = parent_snapshot_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let [id, number, row, version_text] = [
            snapshot_id.to_string(),
            sequence_number.to_string(),
            long(next_row_id, "first row id")?.to_string(),
            version.to_string(),
        ];
        let mut header = vec![("snapshot-id", id.as_str()), ("parent-snapshot-id", &parent)];
        if version > 1 {
            header.push(("sequence-number", &number));
        }
        if version > 2 {
            header.push(("first-row-id", &row));
        }
        header.push(("format-version", &version_text));
        Ok(Self {
            version,
            snapshot_id,
            sequence_number,
            first_row_id,
            next_row_id,
            file: ContainerWriter::with_schema_text(&avro_schema::manifest_file(version), &header, layout.codec, layout.sync),
            manifests: Vec::new(),
            locations: HashSet::new(),
        })
    }

    /// Adds a manifest, one of the commit or one of an earlier snapshot.
    ///
    /// Errors: `InvalidInput` naming the manifest where something that the format version
    /// requires is not known (see [`ManifestFile::complete`]), or something is known that it
    /// cannot hold; for a manifest that is listed already; for one of another snapshot without
    /// sequence number.
    pub fn add(&mut self, manifest: &ManifestFile) -> Result<()> {
        self.checked_add(manifest).context("manifest", || &manifest.location)
    }

    fn checked_add(&mut self, manifest: &ManifestFile) -> Result<()> {
        if self.locations.contains(&manifest.location) {
            return Err(Error::invalid("the manifest is listed already"));
        }
        let mut manifest = manifest.clone();
        self.assign_sequence_numbers(&mut manifest)?;
        let next_row_id = self.assign_row_ids(&mut manifest)?;
        let version = self.version;
        self.file.append(|out| encode(version, &manifest, out))?;
        self.next_row_id = next_row_id;
        self.locations.insert(manifest.location.clone());
        self.manifests.push(manifest);
        Ok(())
    }

    fn assign_sequence_numbers(&self, manifest: &mut ManifestFile) -> Result<()> {
        let numbers = [&mut manifest.sequence_number, &mut manifest.min_sequence_number];
        for number in numbers {
            match *number {
                UNASSIGNED_SEQUENCE_NUMBER if manifest.added_snapshot_id == Some(self.snapshot_id) => *number = self.sequence_number,
                UNASSIGNED_SEQUENCE_NUMBER => return Err(Error::invalid("a manifest of another snapshot has no sequence number")),
                known if known < 0 || known > self.sequence_number => {
                    return Err(Error::invalid(format!(
                        "a manifest has sequence number {known} in a commit of {}",
                        self.sequence_number
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives a data manifest without row ids the next ones: enough for all its live files, since
    /// any of them may be without. Returns the next row id behind them.
    fn assign_row_ids(&self, manifest: &mut ManifestFile) -> Result<u64> {
        if self.version < 3 || manifest.content != ManifestContent::Data {
            return match manifest.first_row_id {
                Some(_) => Err(Error::invalid("only data manifests of format version 3 have row ids")),
                None => Ok(self.next_row_id),
            };
        }
        if let Some(own) = manifest.first_row_id {
            return match self.first_row_id {
                Some(first) if own > first => Err(Error::corrupt(format!(
                    "the manifest's row ids start at {own}, which the table has not handed out: its next one is {first}"
                ))),
                _ => Ok(self.next_row_id),
            };
        }
        let (Some(added), Some(existing)) = (manifest.added_rows_count, manifest.existing_rows_count) else {
            return Err(unknown("rows"));
        };
        manifest.first_row_id = Some(self.next_row_id);
        let next = added.checked_add(existing).and_then(|rows| rows.checked_add(self.next_row_id));
        next.filter(|next| i64::try_from(*next).is_ok())
            .ok_or_else(|| Error::invalid("row ids have more than 63 bits"))
    }

    /// The bytes of the list, and what was assigned.
    pub fn finish(self) -> Result<WrittenList> {
        Ok(WrittenList {
            bytes: self.file.finish()?,
            assigned_rows: self.first_row_id.map(|first| self.next_row_id - first),
            manifests: self.manifests,
        })
    }
}

fn unknown(what: &str) -> Error {
    Error::invalid(format!(
        "the manifest list that named this manifest did not tell its {what}; read the manifest to complete its entry"
    ))
}

fn encode(version: u8, manifest: &ManifestFile, out: &mut Encoder) -> Result<()> {
    if version == 1 && (manifest.content == ManifestContent::Deletes || manifest.sequence_number != 0) {
        return Err(Error::invalid("format version 1 has neither delete files nor sequence numbers"));
    }
    let length = manifest.length.ok_or_else(|| unknown("length"))?;
    let spec_id = manifest.partition_spec_id.ok_or_else(|| unknown("partition spec"))?;
    let snapshot_id = manifest.added_snapshot_id.ok_or_else(|| unknown("snapshot"))?;
    out.string(&manifest.location);
    out.long(long(length, "manifest length")?);
    out.long(i64::from(spec_id));
    if version > 1 {
        out.long(i64::from(manifest.content == ManifestContent::Deletes));
        out.long(manifest.sequence_number);
        out.long(manifest.min_sequence_number);
    }
    out.long(snapshot_id);
    let files = [
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    ];
    let rows = [manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count];
    if files.iter().flatten().any(|count| i32::try_from(*count).is_err()) {
        return Err(Error::invalid("a manifest has more than 2^31 files"));
    }
    for count in files.into_iter().chain(rows) {
        let count = count.map(|count| long(count, "count of a manifest")).transpose()?;
        match (version, count) {
            (1, count) => out.optional(count, Encoder::long),
            (_, Some(count)) => out.long(count),
            (_, None) => return Err(unknown("counts")),
        }
    }
    out.optional(manifest.partitions.as_deref(), |out, summaries| {
        out.array(summaries.iter(), encode_summary)
    });
    out.optional(manifest.key_metadata.as_deref(), Encoder::bytes);
    if version > 2 {
        let first_row_id = manifest.first_row_id.map(|id| long(id, "first row id")).transpose()?;
        out.optional(first_row_id, Encoder::long);
    }
    Ok(())
}

fn encode_summary(out: &mut Encoder, summary: &FieldSummary) {
    out.boolean(summary.contains_null);
    out.optional(summary.contains_nan, Encoder::boolean);
    out.optional(summary.lower_bound.as_deref(), Encoder::bytes);
    out.optional(summary.upper_bound.as_deref(), Encoder::bytes);
}
