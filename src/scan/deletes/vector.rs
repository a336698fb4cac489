//! Deletion vectors: one blob, read by its offset without the footer, checked in full.

use std::sync::Arc;

use crate::bitmap::RowSet;
use crate::bitmap::deletion_vector::decode_blob;
use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::io::{FileKind, TableIo};
use crate::table::DeletionVectorRef;

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

async fn read(io: &TableIo, context: &Arc<ScanContext>, vector: &DeletionVectorRef) -> Result<(RowSet, usize)> {
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
    let mut parts = io.read_ranges(&vector.location, FileKind::Delete, &[vector.offset..end]).await?;
    let blob = parts.pop().ok_or_else(|| Error::internal("a range read gave nothing"))?;
    let cardinality = vector.cardinality;
    let rows = context.pool.spawn(move |_| decode_blob(&blob, Some(cardinality))).await?;
    let bytes = rows.memory_size();
    Ok((rows, bytes))
}
