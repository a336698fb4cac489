//! Commits and JSON checkpoints as batches.

use std::io::Cursor;
use std::sync::Arc;

use arrow::json::ReaderBuilder;
use bytes::Bytes;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::engine::arrow_utils::{build_json_reorder_indices, fixup_json_read, json_arrow_schema, parse_json};
use delta_kernel::schema::SchemaRef;
use delta_kernel::{
    EngineData, FileDataReadResultIterator, FileMeta, FileSize, FilteredEngineData, JsonHandler, KernelError, KernelResult,
    KernelResultIterator, PredicateRef,
};
use url::Url;

use super::errors::wrapped;
use super::files::{BATCH, LogFiles, in_order, place};
use crate::error::Error;

#[derive(Debug)]
pub(super) struct LogJson(pub(super) LogFiles);

fn batches(data: Bytes, schema: &SchemaRef, location: &Url) -> KernelResult<impl Iterator<Item = KernelResult<ArrowEngineData>> + use<>> {
    if data.is_empty() {
        // A commit says something; what was cut to nothing is no version in which nothing happened.
        return Err(wrapped(
            Error::corrupt("a file of the Delta log is empty").with("file", place(location)),
        ));
    }
    let json_schema = Arc::new(json_arrow_schema(schema)?);
    let order = build_json_reorder_indices(schema)?;
    let reader = ReaderBuilder::new(json_schema)
        .with_coerce_primitive(true)
        .with_batch_size(BATCH)
        .build(Cursor::new(data))?;
    let location = location.clone();
    Ok(reader.map(move |batch| {
        let broken = |e: arrow::error::ArrowError| {
            wrapped(
                Error::corrupt("a file of the Delta log is not what it should be")
                    .with("file", place(&location))
                    .with_source(e),
            )
        };
        fixup_json_read(batch.map_err(broken)?, &order, location.as_str())
    }))
}

impl JsonHandler for LogJson {
    fn parse_json(&self, json_strings: Box<dyn EngineData>, output_schema: SchemaRef) -> KernelResult<Box<dyn EngineData>> {
        parse_json(json_strings, output_schema)
    }

    fn read_json_files(
        &self,
        files: &[FileMeta],
        physical_schema: SchemaRef,
        _predicate: Option<PredicateRef>,
    ) -> KernelResult<FileDataReadResultIterator> {
        Ok(in_order(&self.0, files, move |data, file| {
            batches(data, &physical_schema, &file.location)
        }))
    }

    fn write_json_file(
        &self,
        _path: &Url,
        _data: KernelResultIterator<'_, FilteredEngineData>,
        _overwrite: bool,
    ) -> KernelResult<FileSize> {
        Err(KernelError::unsupported("Delta tables cannot be written yet"))
    }
}
