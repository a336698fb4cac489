//! The writer of data files, on tables of real writers: what it says of rows is what Iceberg Java says of
//! them, and what it writes reads back as the same rows.

mod java;
mod random;
mod round_trip;

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use sandur::error::Result;
use sandur::iceberg::manifest::DataFile;
use sandur::iceberg::spec::TableMetadata;
use sandur::io::{PathMap, Storage, TableIo};
use sandur::runtime::DecodePool;
use sandur::write::{DataWriter, WriterLimits};

use crate::support::cases::{self, Case};

/// The project's own tables: those of the repository, and of the collection where it is there.
fn own_cases() -> Vec<Case> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folders = std::fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<Case> = folders.filter_map(|folder| Case::open(&folder)).collect();
    for case in cases::iceberg().into_iter().filter(Case::is_own) {
        if all.iter().all(|known| known.name != case.name) {
            all.push(case);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Writes batches as files of a table that lies in a local folder.
async fn write(metadata: &TableMetadata, batches: &[RecordBatch]) -> Result<Vec<DataFile>> {
    let io = TableIo::new(Arc::new(Storage::default()), PathMap::default(), [metadata.location.clone()])?;
    let pool = Arc::new(DecodePool::new(2)?);
    let mut writer = DataWriter::new(io, pool, metadata, "0af0", 0, WriterLimits::default())?;
    for batch in batches {
        writer.write(batch).await?;
    }
    writer.finish().await
}
