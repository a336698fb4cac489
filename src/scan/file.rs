//! Opening a Parquet file: its footer (cached) and its schema as the table formats see it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{
    FooterTail, PageIndexPolicy, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};

use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, Result, ResultExt};
use crate::io::{FileKind, TableIo};
use crate::scan::footer_repair::well_formed;

/// Largest footer that is read.
const FOOTER_LIMIT: u64 = 64 << 20;
/// Length and magic at the end.
const TAIL: u64 = 8;
/// Read at the end of a file in one go; most footers fit.
const FOOTER_GUESS: u64 = 64 << 10;

/// A file's footer with the arrow schema derived from its Parquet schema alone (an embedded arrow schema is ignored).
pub(super) async fn footer(io: &TableIo, caches: &Caches, location: &Arc<str>) -> Result<Arc<ArrowReaderMetadata>> {
    let key = CacheKey::new(CacheKind::ParquetFooter, Arc::clone(location), io.cache_scope());
    caches
        .metadata
        .get_or_load(key, async {
            let metadata = load(io, location).await?;
            let bytes = metadata.metadata().memory_size();
            Ok((metadata, bytes))
        })
        .await
        .context("file", || location)
}

async fn load(io: &TableIo, location: &str) -> Result<ArrowReaderMetadata> {
    let size = io.size(location, FileKind::Footer).await?;
    if size < 12 {
        return Err(Error::corrupt(format!("not a parquet file: it has {size} bytes")));
    }
    let start = size - size.min(FOOTER_GUESS);
    let end = size - TAIL;
    let guess = read(io, location, start..size).await?;
    let tail = FooterTail::try_from(guess.slice(guess.len().saturating_sub(8)..).as_ref())?;
    if tail.is_encrypted_footer() {
        return Err(Error::unsupported("encrypted parquet files cannot be read"));
    }
    let length = tail.metadata_length() as u64;
    if length > end.min(FOOTER_LIMIT) {
        return Err(Error::corrupt(format!("parquet footer claims {length} bytes of a file of {size}")));
    }
    let footer = match (end - length).checked_sub(start) {
        Some(skip) => guess.slice(usize::try_from(skip).unwrap_or(usize::MAX)..guess.len() - 8),
        None => read(io, location, end - length..end).await?,
    };
    let footer = well_formed(&footer).ok_or_else(|| Error::corrupt("the parquet footer is damaged"))?;
    // Statistics of sizes and encodings are of no use here.
    let options = ParquetMetaDataOptions::new()
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll);
    arrow_metadata(ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&options))?)
}

async fn read(io: &TableIo, location: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
    let parts = io.read_ranges(location, FileKind::Footer, &[range]).await?;
    parts.into_iter().next().ok_or_else(|| Error::internal("a range read gave nothing"))
}

pub(super) fn arrow_metadata(metadata: ParquetMetaData) -> Result<ArrowReaderMetadata> {
    let metadata = Arc::new(metadata);
    let plain = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options())?;
    let has_int96 = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .any(|c| c.physical_type() == PhysicalType::INT96);
    if !has_int96 {
        return Ok(plain);
    }
    // INT96 holds more than nanoseconds in 64 bits can: read it in microseconds.
    let mut leaf = 0;
    let descr = metadata.file_metadata().schema_descr();
    let is_int96: Vec<bool> = descr.columns().iter().map(|c| c.physical_type() == PhysicalType::INT96).collect();
    let fields: Fields = plain
        .schema()
        .fields()
        .iter()
        .map(|f| int96_to_micros(f, &is_int96, &mut leaf))
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, plain.schema().metadata().clone()));
    Ok(ArrowReaderMetadata::try_new(metadata, options().with_schema(schema))?)
}

fn options() -> ArrowReaderOptions {
    ArrowReaderOptions::new()
        .with_skip_arrow_metadata(true)
        .with_page_index_policy(PageIndexPolicy::Skip)
}

fn int96_to_micros(field: &FieldRef, is_int96: &[bool], leaf: &mut usize) -> FieldRef {
    let nested = |f: &FieldRef, leaf: &mut usize| int96_to_micros(f, is_int96, leaf);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| nested(f, leaf)).collect()),
        DataType::List(f) => DataType::List(nested(f, leaf)),
        DataType::LargeList(f) => DataType::LargeList(nested(f, leaf)),
        DataType::FixedSizeList(f, n) => DataType::FixedSizeList(nested(f, leaf), *n),
        DataType::Map(f, sorted) => DataType::Map(nested(f, leaf), *sorted),
        other => {
            let int96 = is_int96.get(*leaf).copied().unwrap_or(false);
            *leaf += 1;
            if int96 {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            } else {
                other.clone()
            }
        }
    };
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone()))
}
