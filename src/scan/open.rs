//! Opened files of every format: what a scan and the loading of deletes see of them.
//!
//! A file has columns (arrow fields with field ids in their metadata, from which `resolve` plans)
//! and units of work: a row group of Parquet, a stripe of ORC, a whole Avro file. A unit is read
//! by the physical rows that it starts with and holds, and a mask of those that live; what a
//! decoder gives are the live rows in file order, so row `n` of its output is the `n`-th set bit
//! of the mask, whatever the format.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Fields;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::avro::{self, AvroFile};
use super::file::footer;
use super::orc::{self, OrcFile};
use super::resolve::{ReadPlan, has_id, resolve};
use super::{ScanContext, Steps};
use crate::error::{Error, Result};
use crate::io::TableIo;
use crate::table::{Column, ColumnMatching, FileFormat};

/// One step of decoding.
#[derive(Debug)]
pub(super) enum Step {
    /// Live rows, perhaps none: the columns of the read plan's leaves, as `resolve` numbers them.
    Rows {
        columns: Vec<ArrayRef>,
        rows: usize,
    },
    /// These ranges of the file are needed.
    Needs(Vec<Range<u64>>),
    Finished,
}

/// Decodes a unit of a file that is not Parquet. Steps are bounded and run on the decode pool.
pub(super) trait Decode: Send + Debug {
    fn step(&mut self) -> Result<Step>;
    /// Gives what the last step needed.
    fn supply(&mut self, parts: Vec<Bytes>) -> Result<()>;
}

/// A file that was opened.
#[derive(Debug, Clone)]
pub(super) enum FileHandle {
    Parquet(Arc<ArrowReaderMetadata>),
    Avro(Arc<AvroFile>),
    Orc(Arc<OrcFile>),
}

impl FileHandle {
    /// Reads what tells the file's columns and units, through the cache.
    pub(super) async fn open(io: &TableIo, context: &Arc<ScanContext>, location: &Arc<str>, format: FileFormat) -> Result<Self> {
        Ok(match format {
            FileFormat::Parquet => Self::Parquet(footer(io, &context.caches, location).await?),
            FileFormat::Avro => Self::Avro(avro::open(io, &context.caches, location).await?),
            FileFormat::Orc => Self::Orc(orc::open(io, context, location).await?),
        })
    }

    /// The file's columns.
    pub(super) fn fields(&self) -> &Fields {
        match self {
            Self::Parquet(metadata) => metadata.schema().fields(),
            Self::Avro(file) => &file.fields,
            Self::Orc(file) => &file.fields,
        }
    }

    /// Plans how `columns` are read from the file.
    ///
    /// Errors: those of [`resolve`]; `Unsupported` for an Avro or ORC file without field ids of a
    /// table without name mapping, since columns by position are a rule of Parquet files alone.
    pub(super) fn resolve(&self, columns: &[Arc<Column>], constants: &[(i32, ArrayRef)], matching: ColumnMatching) -> Result<ReadPlan> {
        let fields = self.fields();
        let by_position = matching == ColumnMatching::IdsOrPositions && !fields.iter().any(|f| has_id(f));
        if by_position && !fields.is_empty() && !matches!(self, Self::Parquet(_)) {
            return Err(Error::unsupported(
                "the file has no field ids and the table no name mapping: set the table property schema.name-mapping.default",
            ));
        }
        let plan = resolve(columns, fields, constants, matching)?;
        if let Self::Orc(file) = self {
            file.check_zones(&plan)?;
        }
        Ok(plan)
    }

    /// Rows of each unit. An Avro file does not say how many rows it has; they are counted on
    /// reading and must be `recorded`.
    ///
    /// Errors: `Corrupt` for an Avro file of which nothing is recorded.
    pub(super) fn units(&self, recorded: Option<u64>) -> Result<Vec<u64>> {
        match self {
            Self::Parquet(metadata) => {
                let groups = metadata.metadata().row_groups().iter();
                groups
                    .map(|group| u64::try_from(group.num_rows()).map_err(|_| Error::corrupt("row group with a negative row count")))
                    .collect()
            }
            Self::Avro(_) => Ok(vec![
                recorded.ok_or_else(|| Error::corrupt("nothing tells how many rows the file has"))?,
            ]),
            Self::Orc(file) => Ok(file.stripe_rows().collect()),
        }
    }

    /// Bytes that reading the leaves of a unit holds at least.
    pub(super) fn unit_bytes(&self, unit: usize, leaves: &[usize]) -> u64 {
        match self {
            Self::Parquet(metadata) => {
                let Some(group) = metadata.metadata().row_groups().get(unit) else {
                    return 0;
                };
                let sizes = leaves.iter().filter_map(|leaf| group.columns().get(*leaf));
                sizes.map(|column| u64::try_from(column.compressed_size()).unwrap_or(0)).sum()
            }
            Self::Avro(file) => file.chunk_bytes(),
            Self::Orc(file) => file.stripe_bytes(unit),
        }
    }

    /// A decoder of a unit of a file that is not Parquet; `None` for Parquet. Of the unit's `rows`
    /// rows (unknown for an Avro delete file), those in `keep` are live.
    pub(super) fn decoder(
        &self,
        leaves: &[usize],
        unit: usize,
        rows: Option<u64>,
        keep: Option<BooleanBuffer>,
        steps: Steps,
    ) -> Result<Option<Box<dyn Decode>>> {
        Ok(match self {
            Self::Parquet(_) => None,
            Self::Avro(file) => Some(Box::new(avro::AvroUnit::new(file, leaves, rows, keep, steps)?)),
            Self::Orc(file) => Some(Box::new(orc::StripeUnit::new(file, leaves, unit, keep, steps)?)),
        })
    }
}
