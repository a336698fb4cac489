//! `partitions`: files, rows and deletes of each partition of a snapshot.
//!
//! As in Iceberg Java (1.10 and later), files of two specs are in one partition where their values are equal in the
//! unified partition type and both specs have equally many of its fields: the null of a field is told from a field
//! that the spec lacks, a spec that was left and taken up again is not told from itself.

use std::collections::HashMap;

use arrow::array::RecordBatch;

use super::arrays::{count, ints, literals, longs, small_count, structs, times};
use super::table::{IcebergMetadataTable, Wanted};
use crate::error::{Error, Result};
use crate::iceberg::manifest::{EntryRef, FileContent, Manifest};
use crate::iceberg::partition_type;
use crate::iceberg::partition_type::positions;
use crate::iceberg::spec::{Literal, StructType, TableMetadata, Type};

/// Id of the column `partition`.
const PARTITION: i32 = 1;

/// What makes a partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// How many fields of the unified partition type the spec has.
    fields: usize,
    /// In the order of the unified partition type.
    values: Vec<Option<Literal>>,
}

/// What the files of a partition add up to.
#[derive(Debug, Clone, Default)]
struct Totals {
    spec_id: i32,
    rows: u64,
    files: u64,
    bytes: u64,
    /// Position delete files without deletion vectors: records, files.
    positions: (u64, u64),
    /// Deletion vectors: positions, vectors.
    vectors: (u64, u64),
    equality: (u64, u64),
    /// Milliseconds and id of the newest snapshot that added one of the files.
    updated: Option<(i64, i64)>,
}

impl Totals {
    fn add(&mut self, entry: &EntryRef<'_>, metadata: &TableMetadata) {
        let snapshot = entry.snapshot_id().and_then(|id| metadata.snapshot_by_id(id));
        if let Some(snapshot) = snapshot
            && self.updated.is_none_or(|(known, _)| snapshot.timestamp_ms > known)
        {
            self.updated = Some((snapshot.timestamp_ms, snapshot.snapshot_id));
            self.spec_id = entry.spec_id();
        }
        let pair = match entry.content() {
            FileContent::Data => {
                self.bytes = self.bytes.saturating_add(entry.file_size_in_bytes());
                self.rows = self.rows.saturating_add(entry.record_count());
                self.files += 1;
                return;
            }
            FileContent::PositionDeletes if entry.is_deletion_vector() => &mut self.vectors,
            FileContent::PositionDeletes => &mut self.positions,
            FileContent::EqualityDeletes => &mut self.equality,
        };
        pair.0 = pair.0.saturating_add(entry.record_count());
        pair.1 += 1;
    }

    fn merge(&mut self, other: &Self) {
        if other
            .updated
            .is_some_and(|(at, _)| self.updated.is_none_or(|(known, _)| at > known))
        {
            self.updated = other.updated;
            self.spec_id = other.spec_id;
        }
        self.rows = self.rows.saturating_add(other.rows);
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (own, more) in [
            (&mut self.positions, other.positions),
            (&mut self.vectors, other.vectors),
            (&mut self.equality, other.equality),
        ] {
            own.0 = own.0.saturating_add(more.0);
            own.1 += more.1;
        }
    }

    /// Positions that files and vectors list; `None` where both are there: a vector replaces the files
    /// of its data file, and which of their records are left is not known without reading them.
    fn positions_total(&self) -> Option<u64> {
        match (self.positions.1, self.vectors.1) {
            (_, 0) => Some(self.positions.0),
            (0, _) => Some(self.vectors.0),
            _ => None,
        }
    }
}

/// Partitions in order of their first file.
#[derive(Debug, Default)]
struct Partitions {
    order: Vec<(Key, Totals)>,
    known: HashMap<Key, usize>,
}

impl Partitions {
    fn of(&mut self, key: Key, spec_id: i32) -> Option<&mut Totals> {
        let at = *self.known.entry(key).or_insert_with_key(|key| {
            let fresh = Totals {
                spec_id,
                ..Totals::default()
            };
            self.order.push((key.clone(), fresh));
            self.order.len() - 1
        });
        self.order.get_mut(at).map(|(_, totals)| totals)
    }
}

pub(super) async fn partitions(table: &IcebergMetadataTable, wanted: &Wanted) -> Result<Vec<RecordBatch>> {
    let mut manifests = table.distinct_manifests(false).await?;
    manifests.retain(|m| m.may_have_live_files());
    let parts = table.each_manifest(manifests, of_manifest).await?;
    let mut all = Partitions::default();
    for (key, totals) in parts.into_iter().flatten() {
        if let Some(known) = all.of(key, totals.spec_id) {
            known.merge(&totals);
        }
    }
    let partition = partition_type(&table.table.metadata)?;
    Ok(vec![batch(&all.order, &partition, wanted)?])
}

fn of_manifest(manifest: &Manifest, metadata: &TableMetadata) -> Result<Vec<(Key, Totals)>> {
    let spec = metadata
        .spec_by_id(manifest.spec_id())
        .ok_or_else(|| Error::corrupt(format!("the table has no partition spec {}", manifest.spec_id())))?;
    let positions = positions(&partition_type(metadata)?, spec);
    let fields = positions.iter().flatten().count();
    let mut found = Partitions::default();
    for entry in manifest.live() {
        let values = entry.partition();
        let values = positions.iter().map(|at| at.and_then(|at| values.get(at).cloned()).flatten());
        let key = Key {
            fields,
            values: values.collect(),
        };
        if let Some(totals) = found.of(key, manifest.spec_id()) {
            totals.add(&entry, metadata);
        }
    }
    Ok(found.order)
}

fn batch(rows: &[(Key, Totals)], partition: &StructType, wanted: &Wanted) -> Result<RecordBatch> {
    let all = || rows.iter().map(|(_, totals)| totals);
    wanted.batch(rows.len(), |id, field| {
        let many = |get: fn(&Totals) -> u64| longs(all().map(|t| Some(count(get(t)))));
        let few = |get: fn(&Totals) -> u64| ints(all().map(|t| Some(small_count(get(t)))));
        Ok(match id {
            PARTITION => {
                let children = partition.fields.iter().enumerate().map(|(at, field)| {
                    let Type::Primitive(primitive) = &field.field_type else {
                        return Err(Error::internal("a partition field is not primitive"));
                    };
                    let values: Vec<_> = rows.iter().map(|(key, _)| key.values.get(at).cloned().flatten()).collect();
                    literals(&values, primitive)
                });
                structs(field.data_type(), children.collect::<Result<_>>()?, rows.len())?
            }
            4 => ints(all().map(|t| Some(t.spec_id))),
            2 => many(|t| t.rows),
            3 => few(|t| t.files),
            11 => many(|t| t.bytes),
            5 => longs(all().map(|t| t.positions_total().map(count))),
            6 => few(|t| t.positions.1 + t.vectors.1),
            7 => many(|t| t.equality.0),
            8 => few(|t| t.equality.1),
            9 => times(all().map(|t| t.updated.map(|(at, _)| at))),
            10 => longs(all().map(|t| t.updated.map(|(_, id)| id))),
            101 => many(|t| t.positions.0),
            102 => few(|t| t.positions.1),
            103 => many(|t| t.vectors.0),
            104 => few(|t| t.vectors.1),
            other => return Err(Error::internal(format!("metadata column {other} is not known"))),
        })
    })
}
