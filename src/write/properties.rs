//! Table properties that files are written by.
//!
//! What is declared and cannot be honoured is an error that names the property.

use std::collections::BTreeMap;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use crate::error::{Error, Result};
use crate::iceberg::spec::{Schema, TableMetadata};

const FORMAT: &str = "write.format.default";
const TARGET: &str = "write.target-file-size-bytes";
const ROW_GROUP: &str = "write.parquet.row-group-size-bytes";
const PAGE: &str = "write.parquet.page-size-bytes";
const PAGE_ROWS: &str = "write.parquet.page-row-limit";
const DICTIONARY: &str = "write.parquet.dict-size-bytes";
const PAGE_VERSION: &str = "write.parquet.page-version";
const CODEC: &str = "write.parquet.compression-codec";
const LEVEL: &str = "write.parquet.compression-level";
const BLOOM: &str = "write.parquet.bloom-filter-enabled.column.";
const BLOOM_FPP: &str = "write.parquet.bloom-filter-fpp.column.";
const ENCRYPTION_KEY: &str = "encryption.key-id";

/// Key of the table's schema in a file's footer, as Iceberg Java writes it.
const SCHEMA_KEY: &str = "iceberg.schema";

/// Sizes of files and their parts, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) file: u64,
    pub(super) row_group: u64,
}

impl Sizes {
    /// Errors: `InvalidInput` for a size that is no positive number.
    pub(super) fn new(metadata: &TableMetadata) -> Result<Self> {
        Ok(Self {
            file: positive(metadata, TARGET)?.unwrap_or(512 << 20),
            row_group: positive(metadata, ROW_GROUP)?.unwrap_or(128 << 20),
        })
    }
}

fn positive(metadata: &TableMetadata, name: &str) -> Result<Option<u64>> {
    let number = metadata.number_property(name)?;
    let checked = number.map(|number| u64::try_from(number).ok().filter(|n| *n > 0).ok_or(number));
    checked
        .transpose()
        .map_err(|number| Error::invalid(format!("property {name} is {number}: it must be a positive number")))
}

/// Refuses tables whose files this program does not write.
///
/// Errors: `Unsupported`, naming the property.
pub(super) fn check_supported(properties: &BTreeMap<String, String>) -> Result<()> {
    if let Some(format) = properties.get(FORMAT).filter(|format| !format.eq_ignore_ascii_case("parquet")) {
        return Err(Error::unsupported(format!(
            "property {FORMAT} is \"{format}\": only parquet files are written"
        )));
    }
    if properties.contains_key(ENCRYPTION_KEY) {
        return Err(Error::unsupported(format!(
            "property {ENCRYPTION_KEY} is set: encrypted tables cannot be written"
        )));
    }
    Ok(())
}

/// How Parquet files are laid out.
///
/// Errors: `InvalidInput` for a value that is none, `Unsupported` for a codec that is not built.
pub(super) fn writer_properties(metadata: &TableMetadata, schema: &Schema, parquet: &SchemaDescriptor) -> Result<WriterProperties> {
    let size = |name: &str, default: usize| -> Result<usize> {
        let value = positive(metadata, name)?;
        Ok(value.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX)))
    };
    let version = match metadata.properties.get(PAGE_VERSION).map(|text| text.to_ascii_lowercase()) {
        None => WriterVersion::PARQUET_1_0,
        Some(text) if text == "v1" || text == "1" => WriterVersion::PARQUET_1_0,
        Some(text) if text == "v2" || text == "2" => WriterVersion::PARQUET_2_0,
        Some(text) => {
            return Err(Error::invalid(format!(
                "property {PAGE_VERSION} is \"{text}\": it must be v1 or v2"
            )));
        }
    };
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("sandur version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(version)
        .set_compression(compression(&metadata.properties)?)
        .set_data_page_size_limit(size(PAGE, 1 << 20)?)
        .set_data_page_row_count_limit(size(PAGE_ROWS, 20_000)?)
        .set_dictionary_page_size_limit(size(DICTIONARY, 2 << 20)?)
        .set_statistics_enabled(EnabledStatistics::Page)
        // Row groups end where the file's writer says.
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(vec![parquet::file::metadata::KeyValue::new(
            SCHEMA_KEY.to_owned(),
            schema.to_json()?.to_string(),
        )]));
    for (path, name) in leaves(parquet, schema) {
        if let Some(text) = metadata.properties.get(&format!("{BLOOM}{name}"))
            && text.eq_ignore_ascii_case("true")
        {
            builder = builder.set_column_bloom_filter_enabled(path.clone(), true);
            let property = format!("{BLOOM_FPP}{name}");
            let fpp = match metadata.properties.get(&property) {
                None => 0.01,
                Some(text) => text
                    .parse()
                    .ok()
                    .filter(|fpp| *fpp > 0.0 && *fpp < 1.0)
                    .ok_or_else(|| Error::invalid(format!("property {property} is \"{text}\": it must lie between 0 and 1")))?,
            };
            builder = builder.set_column_bloom_filter_fpp(path, fpp);
        }
    }
    Ok(builder.build())
}

/// The columns of a file with the names that properties call them by.
fn leaves(parquet: &SchemaDescriptor, schema: &Schema) -> Vec<(ColumnPath, String)> {
    let named = parquet.columns().iter().filter_map(|column| {
        let info = column.self_type().get_basic_info();
        let name = if info.has_id() { schema.full_name(info.id())? } else { return None };
        Some((column.path().clone(), name))
    });
    named.collect()
}

fn compression(properties: &BTreeMap<String, String>) -> Result<Compression> {
    let level = properties.get(LEVEL).map(|text| {
        let parsed = text.trim().parse::<i32>();
        parsed.map_err(|e| Error::invalid(format!("property {LEVEL} is \"{text}\", which is no number")).with_source(e))
    });
    let level = level.transpose()?;
    let bad_level =
        |e: parquet::errors::ParquetError| Error::invalid(format!("property {LEVEL} is not a level of its codec")).with_source(e);
    let unsigned = |level: i32| u32::try_from(level).map_err(|_| Error::invalid(format!("property {LEVEL} is {level}")));
    let codec = properties.get(CODEC).map_or("zstd", String::as_str);
    Ok(match codec.to_ascii_lowercase().as_str() {
        "zstd" => Compression::ZSTD(ZstdLevel::try_new(level.unwrap_or(3)).map_err(bad_level)?),
        "snappy" => Compression::SNAPPY,
        "gzip" => Compression::GZIP(match level {
            Some(level) => GzipLevel::try_new(unsigned(level)?).map_err(bad_level)?,
            None => GzipLevel::default(),
        }),
        "brotli" => Compression::BROTLI(match level {
            Some(level) => BrotliLevel::try_new(unsigned(level)?).map_err(bad_level)?,
            None => BrotliLevel::default(),
        }),
        // The older framing has two incompatible readings.
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        "uncompressed" | "none" => Compression::UNCOMPRESSED,
        _ => {
            return Err(Error::unsupported(format!(
                "property {CODEC} is \"{codec}\", a codec that is not built"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn codecs_and_levels_are_those_of_the_table() {
        let codec = |pairs: &[(&str, &str)]| compression(&of(pairs));
        assert_eq!(codec(&[]).unwrap(), Compression::ZSTD(ZstdLevel::try_new(3).unwrap()));
        assert_eq!(
            codec(&[(CODEC, "GZIP"), (LEVEL, "9")]).unwrap(),
            Compression::GZIP(GzipLevel::try_new(9).unwrap())
        );
        assert_eq!(codec(&[(CODEC, "snappy")]).unwrap(), Compression::SNAPPY);
        assert_eq!(codec(&[(CODEC, "lzo")]).unwrap_err().kind(), ErrorKind::Unsupported);
        for level in ["99", "x"] {
            let error = codec(&[(LEVEL, level)]).unwrap_err();
            assert!(
                error.kind() == ErrorKind::InvalidInput && error.message().contains(LEVEL),
                "{error}"
            );
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        assert!(check_supported(&of(&[(FORMAT, "PARQUET")])).is_ok());
        for property in [(FORMAT, "orc"), (ENCRYPTION_KEY, "k")] {
            let error = check_supported(&of(&[property])).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Unsupported && error.message().contains(property.0),
                "{error}"
            );
        }
    }
}
