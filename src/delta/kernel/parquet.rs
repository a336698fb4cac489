//! Checkpoints, their parts and sidecars as batches.

use std::sync::Arc;

use bytes::Bytes;
use delta_kernel::engine::arrow_conversion::TryFromArrow;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::engine::arrow_utils::{RowIndexBuilder, fixup_parquet_read, ordering_needs_row_indexes, parquet_read_plan};
use delta_kernel::engine::reader_options;
use delta_kernel::schema::{SchemaRef, StructType};
use delta_kernel::{
    EngineData, FileDataReadResultIterator, FileMeta, FileSize, KernelError, KernelResult, KernelResultIteratorStatic, ParquetFooter,
    ParquetHandler, PredicateRef,
};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use url::Url;

use super::errors::wrapped;
use super::files::{BATCH, LogFiles, in_order, place};
use crate::error::Error;

#[derive(Debug)]
pub(super) struct LogParquet(pub(super) LogFiles);

fn broken(e: impl Into<Box<dyn std::error::Error + Send + Sync>>, location: &Url) -> KernelError {
    let error = Error::corrupt("a checkpoint of the Delta log cannot be read");
    wrapped(error.with("file", place(location)).with_source(e))
}

/// What the crate says, without a trace of calls.
fn own_text(error: &KernelError) -> String {
    error.without_backtrace().to_string()
}

fn batches(data: Bytes, schema: &SchemaRef, location: &Url) -> KernelResult<impl Iterator<Item = KernelResult<ArrowEngineData>> + use<>> {
    let metadata = ArrowReaderMetadata::load(&data, reader_options()).map_err(|e| broken(e, location))?;
    let (ordering, mask) = parquet_read_plan(schema, &metadata).map_err(|e| broken(own_text(&e), location))?;
    let mut indexes = match ordering_needs_row_indexes(&ordering) {
        true => Some(RowIndexBuilder::new(metadata.metadata().row_groups()).build()?),
        false => None,
    };
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(data, metadata).with_batch_size(BATCH);
    if let Some(mask) = mask {
        builder = builder.with_projection(mask);
    }
    let (schema, location) = (Arc::clone(schema), location.clone());
    let reader = builder.build().map_err(|e| broken(e, &location))?;
    Ok(reader.map(move |batch| {
        let batch = batch.map_err(|e| broken(e, &location))?;
        let fixed = fixup_parquet_read(batch, &ordering, indexes.as_mut(), Some(location.as_str()), Some(&schema));
        fixed.map_err(|e| broken(own_text(&e), &location))
    }))
}

impl ParquetHandler for LogParquet {
    fn read_parquet_files(
        &self,
        files: &[FileMeta],
        physical_schema: SchemaRef,
        _predicate: Option<PredicateRef>,
    ) -> KernelResult<FileDataReadResultIterator> {
        Ok(in_order(&self.0, files, move |data, file| {
            batches(data, &physical_schema, &file.location)
        }))
    }

    fn write_parquet_file(&self, _location: Url, _data: KernelResultIteratorStatic<Box<dyn EngineData>>) -> KernelResult<FileSize> {
        Err(KernelError::unsupported("Delta tables cannot be written yet"))
    }

    fn read_parquet_footer(&self, file: &FileMeta) -> KernelResult<ParquetFooter> {
        let data = self.0.read(&file.location)?;
        let metadata = ArrowReaderMetadata::load(&data, reader_options()).map_err(|e| broken(e, &file.location))?;
        let schema = Arc::new(StructType::try_from_arrow(metadata.schema().as_ref())?);
        Ok(ParquetFooter { schema })
    }
}
