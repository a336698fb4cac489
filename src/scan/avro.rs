//! Reading Avro files for a scan: the header (cached), then the blocks in pieces of the file.
//!
//! Invariants: rows are counted through all blocks, so positions are physical; a file with more or
//! fewer rows than its manifest entry says is an error; at most one piece of the file and one
//! decompressed block are held.

use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Fields;
use bytes::{Bytes, BytesMut};

use super::Steps;
use super::open::{Decode, Step};
use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::avro::{AvroSchema, Container, Frame, Framing, OpenBlock, RowDecoder, file_fields};
use crate::io::{FileKind, TableIo};

/// Read at the start of a file in one go; most headers fit.
const HEADER_GUESS: u64 = 64 << 10;
/// Largest header that is read.
const HEADER_LIMIT: u64 = 16 << 20;
/// Pieces in which blocks are fetched.
const CHUNK: u64 = 8 << 20;
/// Batches of rows that a step passes at most, deleted ones included.
const STEP_BATCHES: usize = 16;

/// A file whose header was read.
#[derive(Debug)]
pub(super) struct AvroFile {
    schema: Arc<AvroSchema>,
    /// Columns with their field ids.
    pub(super) fields: Fields,
    framing: Framing,
    size: u64,
}

/// Opens a file through the cache.
pub(super) async fn open(io: &TableIo, caches: &Caches, location: &Arc<str>) -> Result<Arc<AvroFile>> {
    let key = CacheKey::new(CacheKind::AvroHeader, Arc::clone(location), io.cache_scope());
    caches
        .metadata
        .get_or_load(key, load(io, location))
        .await
        .context("file", || location)
}

async fn load(io: &TableIo, location: &str) -> Result<(AvroFile, usize)> {
    let size = io.size(location, FileKind::Footer).await?;
    let mut wanted = HEADER_GUESS.min(size);
    loop {
        let mut parts = io.read_ranges(location, FileKind::Footer, &[0..wanted]).await?;
        let head = parts.pop().ok_or_else(|| Error::internal("a range read gave nothing"))?;
        match header(&head, size) {
            // A header that goes on behind the piece looks like one that is cut.
            Err(e) if wanted == size || wanted >= HEADER_LIMIT => return Err(e),
            Err(_) => wanted = (wanted * 8).min(size).min(HEADER_LIMIT),
            Ok(file) => return Ok((file, head.len().min(1 << 20) * 4)),
        }
    }
}

fn header(head: &[u8], size: u64) -> Result<AvroFile> {
    let container = Container::open(head)?;
    let schema = container.schema()?;
    Ok(AvroFile {
        fields: file_fields(&schema)?,
        framing: container.framing(head)?,
        schema: Arc::new(schema),
        size,
    })
}

impl AvroFile {
    /// Bytes of the file that are held at a time.
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.size.min(CHUNK)
    }
}

/// Decodes a whole file.
#[derive(Debug)]
pub(super) struct AvroUnit {
    file: Arc<AvroFile>,
    decoder: RowDecoder,
    /// Rows that the file must have; `None` when that is not known.
    rows: Option<u64>,
    keep: Option<BooleanBuffer>,
    /// Physical position of the next row.
    position: u64,
    steps: Steps,
    block: OpenBlock,
    /// Fetched bytes from the start of the next block.
    buffer: BytesMut,
    /// Where in the file the bytes behind `buffer` start.
    next: u64,
}

impl AvroUnit {
    pub(super) fn new(
        file: &Arc<AvroFile>,
        leaves: &[usize],
        rows: Option<u64>,
        keep: Option<BooleanBuffer>,
        steps: Steps,
    ) -> Result<Self> {
        Ok(Self {
            decoder: RowDecoder::new(&file.schema, &file.fields, leaves)?,
            file: Arc::clone(file),
            rows,
            keep,
            position: 0,
            steps,
            block: OpenBlock::default(),
            buffer: BytesMut::new(),
            next: file.framing.header_len() as u64,
        })
    }

    fn emit(&mut self) -> Result<Step> {
        let rows = self.decoder.rows();
        Ok(Step::Rows {
            columns: self.decoder.take()?,
            rows,
        })
    }

    fn wrong_count(&self, found: &str) -> Error {
        let recorded = self.rows.unwrap_or_default();
        Error::corrupt(format!("data file has {found} rows, its manifest entry says {recorded}"))
    }

    /// Reads rows of the open block; true when a batch is ready or enough rows were passed.
    fn read_block(&mut self, passed: &mut usize) -> Result<bool> {
        let more_than_recorded = self.rows.is_some_and(|rows| self.block.left() > rows.saturating_sub(self.position));
        if more_than_recorded {
            return Err(self.wrong_count("more"));
        }
        let Self {
            decoder,
            keep,
            position,
            block,
            steps,
            ..
        } = self;
        let mut ready = false;
        block.read(|cursor| {
            let at = usize::try_from(*position).unwrap_or(usize::MAX);
            let live = keep.as_ref().is_none_or(|mask| at < mask.len() && mask.value(at));
            if live {
                decoder.read_row(cursor)?;
            } else {
                decoder.skip_row(cursor)?;
            }
            *position += 1;
            *passed += 1;
            ready = decoder.rows() >= steps.batch_rows || decoder.is_full() || *passed >= steps.batch_rows.saturating_mul(STEP_BATCHES);
            Ok(!ready)
        })?;
        Ok(ready)
    }
}

impl Decode for AvroUnit {
    fn step(&mut self) -> Result<Step> {
        let mut passed = 0;
        loop {
            if self.block.left() > 0 && self.read_block(&mut passed)? {
                return self.emit();
            }
            match self.file.framing.frame(&self.buffer)? {
                Frame::Block { count, stored, len } => {
                    self.block.open(&self.file.framing, count, stored)?;
                    let _ = self.buffer.split_to(len);
                }
                Frame::Incomplete { needed } if self.next < self.file.size => {
                    let missing = needed.saturating_sub(self.buffer.len()) as u64;
                    let end = self.next.saturating_add(missing.max(CHUNK)).min(self.file.size);
                    let range = self.next..end;
                    self.next = end;
                    return Ok(Step::Needs(vec![range]));
                }
                Frame::Incomplete { .. } if !self.buffer.is_empty() => {
                    return Err(Error::corrupt("avro file ends within a block"));
                }
                Frame::Incomplete { .. } => break,
            }
        }
        if self.decoder.rows() > 0 {
            return self.emit();
        }
        match self.rows {
            Some(rows) if rows != self.position => Err(self.wrong_count(&self.position.to_string())),
            _ => Ok(Step::Finished),
        }
    }

    fn supply(&mut self, parts: Vec<Bytes>) -> Result<()> {
        for part in parts {
            self.buffer.extend_from_slice(&part);
        }
        Ok(())
    }
}
