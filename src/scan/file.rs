//! Opening a Parquet file: its footer (cached) and its schema as the table formats see it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{
    FooterTail, PageIndexPolicy, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataPushDecoder, ParquetMetaDataReader,
    ParquetStatisticsPolicy,
};

use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, Result, ResultExt};
use crate::io::{FileKind, TableIo};
use crate::scan::footer_repair::without_mistyped_fields;

/// Largest footer that is read.
const FOOTER_LIMIT: u64 = 256 << 20;
/// Read at the end of a file in one go; most footers fit.
const FOOTER_GUESS: u64 = 64 << 10;

/// A file's footer with the arrow schema derived from its Parquet schema alone (an embedded arrow schema is ignored).
pub(super) async fn footer(io: &TableIo, caches: &Caches, location: &Arc<str>) -> Result<Arc<ArrowReaderMetadata>> {
    let key = CacheKey::new(CacheKind::ParquetFooter, Arc::clone(location), 0);
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
    // Statistics of sizes and encodings are of no use here, and some writers encode them wrongly.
    let options = Arc::new(
        ParquetMetaDataOptions::new()
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll),
    );
    let mut decoder = ParquetMetaDataPushDecoder::try_new(size)?
        .with_page_index_policy(PageIndexPolicy::Skip)
        .with_metadata_options(Some(Arc::clone(&options)));
    let start = size - size.min(FOOTER_GUESS);
    let tail = io.read_ranges(location, FileKind::Footer, &[start..size]).await?;
    push(&mut decoder, vec![start..size], tail)?;
    loop {
        let decoded = match decoder.try_decode() {
            Ok(decoded) => decoded,
            Err(e) => {
                let repaired = load_repaired(io, location, size, &options).await?;
                return arrow_metadata(repaired.ok_or(e)?);
            }
        };
        match decoded {
            DecodeResult::Data(metadata) => return arrow_metadata(metadata),
            DecodeResult::Finished => return Err(Error::corrupt("parquet footer ended early")),
            DecodeResult::NeedsData(ranges) => {
                let total: u64 = ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum();
                if total > FOOTER_LIMIT || ranges.iter().any(|r| r.end > size) {
                    return Err(Error::corrupt(format!("parquet footer claims {total} bytes of a file of {size}")));
                }
                let parts = io.read_ranges(location, FileKind::Footer, &ranges).await?;
                push(&mut decoder, ranges, parts)?;
            }
        }
    }
}

/// The footer of a file of `size` bytes without the fields that are not of the type the format gives
/// them; `None` where there are none, where that does not help, or where the footer is encrypted.
async fn load_repaired(io: &TableIo, location: &str, size: u64, options: &ParquetMetaDataOptions) -> Result<Option<ParquetMetaData>> {
    let end = size.saturating_sub(8);
    let tail = read(io, location, end..size).await?;
    let Some(length) = FooterTail::try_from(&tail[..])
        .ok()
        .filter(|tail| !tail.is_encrypted_footer())
        .map(|tail| tail.metadata_length() as u64)
        .filter(|length| *length <= end.min(FOOTER_LIMIT))
    else {
        return Ok(None);
    };
    let footer = read(io, location, end - length..end).await?;
    let repaired = without_mistyped_fields(&footer);
    Ok(repaired.and_then(|bytes| ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(options)).ok()))
}

async fn read(io: &TableIo, location: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
    let parts = io.read_ranges(location, FileKind::Footer, &[range]).await?;
    Ok(parts.into_iter().next().unwrap_or_default())
}

fn push(decoder: &mut ParquetMetaDataPushDecoder, ranges: Vec<std::ops::Range<u64>>, parts: Vec<Bytes>) -> Result<()> {
    Ok(decoder.push_ranges(ranges, parts)?)
}

fn arrow_metadata(metadata: ParquetMetaData) -> Result<ArrowReaderMetadata> {
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
