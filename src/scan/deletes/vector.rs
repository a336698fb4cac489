//! Deletion vectors: one blob, read by its offset without the footer, checked in full.

use std::sync::Arc;

use crate::bitmap::RowSet;
use crate::bitmap::deletion_vector::{decode_blob, decode_vector};
use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::io::{FileKind, TableIo};
use crate::table::{DeletionVectorRef, VectorContainer};

use super::super::ScanContext;

/// Largest blob that is read.
const BLOB_LIMIT: u64 = 64 << 20;

pub(super) async fn load(io: &TableIo, context: &Arc<ScanContext>, vector: &DeletionVectorRef) -> Result<Arc<RowSet>> {
    // The cardinality is part of the key: an entry that lies must not find what an honest one left.
    let part = vector.offset ^ vector.length.rotate_left(24) ^ vector.cardinality.rotate_left(40) ^ io.cache_scope();
    let key = CacheKey::new(
        CacheKind::DeletionVector,
        format!("{}#{}+{}", vector.location, vector.offset, vector.length),
        part,
    );
    context
        .caches
        .deletes
        .get_or_load(key, read(io, context, vector))
        .await
        .context("file", || &vector.location)
}

/// Version of the format of files that hold vectors and nothing else (PROTOCOL.md, "Deletion Vector File Storage Format").
const FILE_VERSION: u8 = 1;

async fn read(io: &TableIo, context: &Arc<ScanContext>, vector: &DeletionVectorRef) -> Result<(RowSet, usize)> {
    let cardinality = vector.cardinality;
    if let VectorContainer::Inline(bytes) = &vector.container {
        let bytes = Arc::clone(bytes);
        let rows = context.pool.spawn(move |_| decode_vector(&bytes, Some(cardinality))).await?;
        let size = rows.memory_size();
        return Ok((rows, size));
    }
    let size = io.size(&vector.location, FileKind::Delete).await?;
    let end = vector.offset.checked_add(vector.length).filter(|end| *end <= size);
    let Some(end) = end else {
        return Err(Error::corrupt(format!(
            "deletion vector at offset {} with {} bytes does not lie in its file of {size} bytes",
            vector.offset, vector.length
        )));
    };
    if vector.length > BLOB_LIMIT {
        return Err(Error::resource_exhausted(format!(
            "deletion vector of {} bytes is larger than {BLOB_LIMIT}",
            vector.length
        )));
    }
    let mut ranges = vec![vector.offset..end];
    if vector.container == VectorContainer::Versioned {
        ranges.insert(0, 0..1);
    }
    let mut parts = io.read_ranges(&vector.location, FileKind::Delete, &ranges).await?;
    let blob = parts.pop().ok_or_else(|| Error::internal("a range read gave nothing"))?;
    if let Some(version) = parts.first().and_then(|start| start.first()).filter(|v| **v != FILE_VERSION) {
        return Err(Error::unsupported(format!(
            "deletion vector file of version {version}: only version {FILE_VERSION} is known"
        )));
    }
    let rows = context.pool.spawn(move |_| decode_blob(&blob, Some(cardinality))).await?;
    let bytes = rows.memory_size();
    Ok((rows, bytes))
}
