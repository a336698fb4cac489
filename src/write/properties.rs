//! Table properties that files are written by.
//!
//! What is declared and cannot be honoured is an error that names the property.

use std::collections::BTreeMap;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use crate::error::{Error, Result};
use crate::iceberg::spec::{Schema, TableMetadata};

const FORMAT: &str = "write.format.default";
const DELETE_FORMAT: &str = "write.delete.format.default";
const TARGET: &str = "write.target-file-size-bytes";
const DELETE_TARGET: &str = "write.delete.target-file-size-bytes";
const PARQUET: &str = "write.parquet.";
const DELETE_PARQUET: &str = "write.delete.parquet.";
const BLOOM: &str = "write.parquet.bloom-filter-enabled.column.";
const BLOOM_FPP: &str = "write.parquet.bloom-filter-fpp.column.";
const ENCRYPTION_KEY: &str = "encryption.key-id";

/// Keys of the schema, and of what kind of deletes, in a file's footer, as Iceberg Java writes them.
const SCHEMA_KEY: &str = "iceberg.schema";
const DELETE_TYPE_KEY: &str = "delete-type";

/// Which files a property is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Data,
    /// Position delete files. What is not said of them is what is said of data files.
    Deletes,
}

/// A property of Parquet files, with the name under which it is set.
fn parquet_property<'a>(properties: &'a BTreeMap<String, String>, of: Of, name: &str) -> Option<(String, &'a str)> {
    let prefixes: &[&str] = match of {
        Of::Data => &[PARQUET],
        Of::Deletes => &[DELETE_PARQUET, PARQUET],
    };
    prefixes.iter().find_map(|prefix| {
        let name = format!("{prefix}{name}");
        properties.get(&name).map(|value| (name.clone(), value.as_str()))
    })
}

/// Sizes of files and their parts, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) file: u64,
    pub(super) row_group: u64,
}

impl Sizes {
    /// Errors: `InvalidInput` for a size that is no positive number.
    pub(super) fn new(metadata: &TableMetadata, of: Of) -> Result<Self> {
        let (target, default) = match of {
            Of::Data => (TARGET, 512 << 20),
            Of::Deletes => (DELETE_TARGET, 64 << 20),
        };
        Ok(Self {
            file: positive(metadata, target)?.unwrap_or(default),
            row_group: parquet_size(metadata, of, "row-group-size-bytes")?.unwrap_or(128 << 20),
        })
    }
}

fn parquet_size(metadata: &TableMetadata, of: Of, name: &str) -> Result<Option<u64>> {
    match parquet_property(&metadata.properties, of, name) {
        None => Ok(None),
        Some((name, _)) => positive(metadata, &name),
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
pub(super) fn check_supported(properties: &BTreeMap<String, String>, of: Of) -> Result<()> {
    let names: &[&str] = match of {
        Of::Data => &[FORMAT],
        Of::Deletes => &[DELETE_FORMAT, FORMAT],
    };
    let format = names.iter().find_map(|name| properties.get_key_value(*name));
    if let Some((name, format)) = format.filter(|(_, format)| !format.eq_ignore_ascii_case("parquet")) {
        return Err(Error::unsupported(format!(
            "property {name} is \"{format}\": only parquet files are written"
        )));
    }
    if properties.contains_key(ENCRYPTION_KEY) {
        return Err(Error::unsupported(format!(
            "property {ENCRYPTION_KEY} is set: encrypted tables cannot be written"
        )));
    }
    Ok(())
}

/// How Parquet files are laid out that hold the columns of `schema`.
///
/// Errors: `InvalidInput` for a value that is none, `Unsupported` for a codec that is not built.
pub(super) fn writer_properties(metadata: &TableMetadata, of: Of, schema: &Schema, parquet: &SchemaDescriptor) -> Result<WriterProperties> {
    let size = |name: &str, default: usize| -> Result<usize> {
        let value = parquet_size(metadata, of, name)?;
        Ok(value.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX)))
    };
    let version = match parquet_property(&metadata.properties, of, "page-version") {
        None => WriterVersion::PARQUET_1_0,
        Some((name, text)) => match text.to_ascii_lowercase().as_str() {
            "v1" | "1" => WriterVersion::PARQUET_1_0,
            "v2" | "2" => WriterVersion::PARQUET_2_0,
            _ => return Err(Error::invalid(format!("property {name} is \"{text}\": it must be v1 or v2"))),
        },
    };
    let mut keys = vec![KeyValue::new(SCHEMA_KEY.to_owned(), schema.to_json()?.to_string())];
    if of == Of::Deletes {
        keys.push(KeyValue::new(DELETE_TYPE_KEY.to_owned(), "position".to_owned()));
    }
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("sandur version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(version)
        .set_compression(compression(&metadata.properties, of)?)
        .set_data_page_size_limit(size("page-size-bytes", 1 << 20)?)
        .set_data_page_row_count_limit(size("page-row-limit", 20_000)?)
        .set_dictionary_page_size_limit(size("dict-size-bytes", 2 << 20)?)
        .set_statistics_enabled(EnabledStatistics::Page)
        // Row groups end where the file's writer says.
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(keys));
    match of {
        Of::Data => builder = with_bloom_filters(builder, &metadata.properties, schema, parquet)?,
        // No position is there twice for one path.
        Of::Deletes => {
            for (path, _) in leaves(parquet, schema).into_iter().filter(|(_, name)| name == "pos") {
                builder = builder.set_column_dictionary_enabled(path, false);
            }
        }
    }
    Ok(builder.build())
}

fn with_bloom_filters(
    mut builder: WriterPropertiesBuilder,
    properties: &BTreeMap<String, String>,
    schema: &Schema,
    parquet: &SchemaDescriptor,
) -> Result<WriterPropertiesBuilder> {
    for (path, name) in leaves(parquet, schema) {
        if let Some(text) = properties.get(&format!("{BLOOM}{name}"))
            && text.eq_ignore_ascii_case("true")
        {
            builder = builder.set_column_bloom_filter_enabled(path.clone(), true);
            let property = format!("{BLOOM_FPP}{name}");
            let fpp = match properties.get(&property) {
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
    Ok(builder)
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

fn compression(properties: &BTreeMap<String, String>, of: Of) -> Result<Compression> {
    let named = parquet_property(properties, of, "compression-level");
    let (level_name, level) = named.map_or((String::new(), None), |(name, text)| (name, Some(text)));
    let level = level.map(|text| {
        let parsed = text.trim().parse::<i32>();
        parsed.map_err(|e| Error::invalid(format!("property {level_name} is \"{text}\", which is no number")).with_source(e))
    });
    let level = level.transpose()?;
    let bad_level =
        |e: parquet::errors::ParquetError| Error::invalid(format!("property {level_name} is not a level of its codec")).with_source(e);
    let unsigned = |level: i32| u32::try_from(level).map_err(|_| Error::invalid(format!("property {level_name} is {level}")));
    let named = parquet_property(properties, of, "compression-codec");
    let (codec_name, codec) = named.unwrap_or((String::new(), "zstd"));
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
                "property {codec_name} is \"{codec}\", a codec that is not built"
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
        const CODEC: &str = "write.parquet.compression-codec";
        const LEVEL: &str = "write.parquet.compression-level";
        let codec = |pairs: &[(&str, &str)]| compression(&of(pairs), Of::Data);
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
        let both = [(CODEC, "gzip"), (LEVEL, "9"), ("write.delete.parquet.compression-codec", "snappy")];
        let level = GzipLevel::try_new(9).unwrap();
        assert_eq!(compression(&of(&both), Of::Data).unwrap(), Compression::GZIP(level));
        assert_eq!(compression(&of(&both), Of::Deletes).unwrap(), Compression::SNAPPY);
        assert_eq!(compression(&of(&both[..2]), Of::Deletes).unwrap(), Compression::GZIP(level));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        assert!(check_supported(&of(&[(FORMAT, "PARQUET"), (DELETE_FORMAT, "orc")]), Of::Data).is_ok());
        assert!(check_supported(&of(&[(FORMAT, "orc"), (DELETE_FORMAT, "parquet")]), Of::Deletes).is_ok());
        for (property, kind) in [
            ((FORMAT, "orc"), Of::Data),
            ((FORMAT, "avro"), Of::Deletes),
            ((DELETE_FORMAT, "avro"), Of::Deletes),
            ((ENCRYPTION_KEY, "k"), Of::Data),
        ] {
            let error = check_supported(&of(&[property]), kind).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Unsupported && error.message().contains(property.0),
                "{error}"
            );
        }
    }
}
