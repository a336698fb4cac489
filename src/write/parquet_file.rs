//! One Parquet file on its way: columns are encoded side by side on the decode pool, a finished row group goes
//! to the file's stream, and what the file is known by in a manifest is gathered on the way.
//!
//! In memory are the pages of one row group, never those that the stream has taken.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::FieldRef;
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::writer::SerializedFileWriter;

use super::file_schema::{FileColumn, Kind};
use super::metrics::ColumnMetrics;
use super::metrics_mode::MetricsMode;
use super::setup::FileSetup;
use super::sort::Sorted;
use super::stored::bytes_of;
use crate::error::{Error, ErrorKind, Result};
use crate::iceberg::manifest::{DataFile, FileContent, FileFormat};
use crate::iceberg::spec::{PartitionValues, SortOrder};
use crate::io::{FileKind, FileWriter};
use crate::runtime::Job;

/// Chunks of fewer bytes are not worth dividing among threads.
const DIVIDED: u64 = 256 << 10;

/// Rows to be written, as parts of the stored columns.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) pieces: Vec<Vec<ArrayRef>>,
    /// The order of its rows, where they are sorted.
    pub(super) sorted: Option<Sorted>,
    pub(super) rows: usize,
    pub(super) bytes: u64,
}

/// One column and its part of the open row group.
#[derive(Debug)]
struct Lane {
    at: usize,
    field: FieldRef,
    /// Of its leaves; empty while no row group is open.
    writers: Vec<ArrowColumnWriter>,
    leaves: usize,
    metrics: ColumnMetrics,
}

/// Whether the rows of a file are in the table's order so far.
#[derive(Debug)]
enum FileOrder {
    Broken,
    /// Up to this row.
    Holds(Option<arrow::row::OwnedRow>),
}

/// A file that takes rows.
pub(super) struct ParquetFile {
    setup: Arc<FileSetup>,
    /// The file's path as manifests have it.
    recorded: String,
    out: FileWriter,
    /// `None` after a failure.
    writer: Option<SerializedFileWriter<Pieces>>,
    factory: ArrowRowGroupWriterFactory,
    lanes: Vec<Lane>,
    running: Vec<Job<Vec<Lane>>>,
    running_bytes: u64,
    rows: u64,
    group_rows: u64,
    groups: usize,
    /// Memory of the open row group, and what it will take in the file, when it was last looked at.
    memory: u64,
    estimate: u64,
    order: FileOrder,
}

impl std::fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetFile")
            .field("path", &self.recorded)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

fn encoding(e: ParquetError) -> Error {
    match e {
        ParquetError::External(inner) => Error::internal("a data file cannot be encoded").with_source(inner),
        other => Error::internal("a data file cannot be encoded").with_source(other),
    }
}

impl ParquetFile {
    /// Opens a new file.
    ///
    /// Errors: `PermissionDenied` outside of the table's folders, `Unavailable`.
    pub(super) async fn open(setup: &Arc<FileSetup>, recorded: String) -> Result<Self> {
        let location = setup.io.resolve(&recorded).map_err(|e| e.with("file", &recorded))?;
        let out = setup.io.writer(&location, FileKind::Data).await?;
        let parquet = Arc::clone(&setup.schema.parquet);
        let writer = SerializedFileWriter::new(Pieces::default(), parquet, Arc::clone(&setup.properties)).map_err(encoding)?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&setup.schema.arrow));
        let columns = setup.schema.columns.iter().filter(|column| column.is_stored());
        let lanes = columns.enumerate().map(|(at, column)| Lane {
            at,
            field: Arc::clone(&column.field),
            writers: Vec::new(),
            leaves: leaves(column),
            metrics: ColumnMetrics::new(column, &setup.modes),
        });
        Ok(Self {
            lanes: lanes.collect(),
            setup: Arc::clone(setup),
            recorded,
            out,
            writer: Some(writer),
            factory,
            running: Vec::new(),
            running_bytes: 0,
            rows: 0,
            group_rows: 0,
            groups: 0,
            memory: 0,
            estimate: 0,
            order: FileOrder::Holds(None),
        })
    }

    /// Bytes held in memory.
    pub(super) fn memory(&self) -> u64 {
        self.memory + self.running_bytes + self.out.buffered() as u64
    }

    /// Bytes of the open row group in memory.
    pub(super) fn group_memory(&self) -> u64 {
        self.memory
    }

    /// What the open row group, and the file, will take, as far as it is known.
    pub(super) fn group_length(&self) -> u64 {
        self.estimate
    }

    pub(super) fn length(&self) -> u64 {
        self.out.written() + self.estimate
    }

    pub(super) fn row_groups(&self) -> usize {
        self.groups
    }

    /// Starts to encode a chunk; [`Self::settle`] waits for it.
    pub(super) async fn start(&mut self, chunk: Chunk) -> Result<()> {
        self.settle().await?;
        if self.lanes.iter().all(|lane| lane.writers.is_empty()) {
            let mut writers = self.factory.create_column_writers(self.groups).map_err(encoding)?.into_iter();
            for lane in &mut self.lanes {
                lane.writers = writers.by_ref().take(lane.leaves).collect();
            }
        }
        self.follow(chunk.sorted.as_ref());
        self.rows += chunk.rows as u64;
        self.group_rows += chunk.rows as u64;
        self.running_bytes = chunk.bytes;
        let order = chunk.sorted.map(|sorted| sorted.rows);
        let threads = if chunk.bytes < DIVIDED {
            1
        } else {
            self.setup.pool.threads().max(1)
        };
        for share in shares(std::mem::take(&mut self.lanes), chunk.pieces, threads) {
            let order = order.clone();
            self.running.push(self.setup.pool.spawn(move |_| {
                let encoded = share.into_iter().map(|(mut lane, pieces)| {
                    lane.encode(pieces, order.as_deref())?;
                    Ok(lane)
                });
                encoded.collect()
            }));
        }
        Ok(())
    }

    fn follow(&mut self, sorted: Option<&Sorted>) {
        self.order = match (&self.order, sorted) {
            (FileOrder::Holds(last), Some(sorted)) if last.as_ref().is_none_or(|last| *last <= sorted.first) => {
                FileOrder::Holds(Some(sorted.last.clone()))
            }
            _ => FileOrder::Broken,
        };
    }

    /// Waits until the last chunk is encoded.
    pub(super) async fn settle(&mut self) -> Result<()> {
        while let Some(job) = self.running.last_mut() {
            let lanes = job.await;
            self.running.pop();
            self.lanes.extend(lanes.map_err(|e| e.with("file", &self.recorded))?);
        }
        if self.running_bytes > 0 {
            self.running_bytes = 0;
            self.lanes.sort_by_key(|lane| lane.at);
            let writers = || self.lanes.iter().flat_map(|lane| &lane.writers);
            self.memory = writers().map(|writer| writer.memory_size() as u64).sum();
            self.estimate = writers().map(|writer| writer.get_estimated_total_bytes() as u64).sum();
        }
        Ok(())
    }

    /// Ends the open row group and hands it to the stream.
    pub(super) async fn flush_group(&mut self) -> Result<()> {
        self.settle().await?;
        if self.group_rows == 0 {
            return Ok(());
        }
        let open = self.lanes.iter_mut().map(|lane| (lane.at, std::mem::take(&mut lane.writers)));
        let mut bins: Vec<Vec<(usize, Vec<ArrowColumnWriter>)>> = Vec::new();
        let threads = if self.memory < DIVIDED {
            1
        } else {
            self.setup.pool.threads().max(1)
        };
        bins.resize_with(threads, Vec::new);
        for (at, writers) in open {
            if let Some(bin) = bins.get_mut(at % threads) {
                bin.push((at, writers));
            }
        }
        let jobs: Vec<_> = bins.into_iter().map(|bin| self.setup.pool.spawn(move |_| close(bin))).collect();
        let mut chunks = Vec::new();
        for job in jobs {
            chunks.extend(job.await?);
        }
        chunks.sort_by_key(|(at, _)| *at);
        let mut writer = self.writer.take().ok_or_else(|| self.given_up())?;
        let append = move |_: &crate::runtime::Cancelled| {
            let mut group = writer.next_row_group().map_err(encoding)?;
            for chunk in chunks.into_iter().flat_map(|(_, chunks)| chunks) {
                chunk.append_to_row_group(&mut group).map_err(encoding)?;
            }
            group.close().map_err(encoding)?;
            let pieces = drain(&mut writer)?;
            Ok((writer, pieces))
        };
        let (writer, pieces) = self.setup.pool.spawn(append).await?;
        for piece in pieces {
            self.out.write(piece).await?;
        }
        self.writer = Some(writer);
        self.groups += 1;
        (self.group_rows, self.memory, self.estimate) = (0, 0, 0);
        Ok(())
    }

    /// Ends the file: durable under its name, and described.
    pub(super) async fn finish(mut self, spec_id: i32, values: PartitionValues) -> Result<DataFile> {
        self.flush_group().await?;
        let mut writer = self.writer.take().ok_or_else(|| self.given_up())?;
        let end = move |_: &crate::runtime::Cancelled| {
            let metadata = writer.finish().map_err(encoding)?;
            Ok((metadata, drain(&mut writer)?))
        };
        let (metadata, pieces) = self.setup.pool.spawn(end).await?;
        for piece in pieces {
            self.out.write(piece).await?;
        }
        let mut file = DataFile::new(self.setup.content, self.recorded, FileFormat::Parquet, spec_id, values);
        let location = self.out.location().to_owned();
        let created = &self.setup.created;
        // Before the call: whatever comes of it, the file may be there, unless it is somebody else's.
        created.add(location.clone());
        file.file_size_in_bytes = match self.out.finish().await {
            Ok(size) => size,
            Err(e) => {
                if e.kind() == ErrorKind::AlreadyExists {
                    created.forget(&location);
                }
                return Err(e);
            }
        };
        file.record_count = self.rows;
        // Delete files have an order of their own, which the table's orders do not name.
        file.sort_order_id = (self.setup.content == FileContent::Data).then(|| match &self.order {
            FileOrder::Holds(_) => self.setup.order_id,
            FileOrder::Broken => SortOrder::unsorted().order_id,
        });
        let lanes = self.lanes;
        let counted: HashSet<i32> = lanes.iter().flat_map(|lane| lane.metrics.counted()).collect();
        describe(&metadata, &counted, &self.setup, &mut file)?;
        for lane in lanes {
            lane.metrics.write(&mut file)?;
        }
        Ok(file)
    }

    fn given_up(&self) -> Error {
        Error::internal("a data file was written to after it had failed").with("file", &self.recorded)
    }
}

impl Lane {
    fn encode(&mut self, pieces: Vec<ArrayRef>, order: Option<&UInt32Array>) -> Result<()> {
        let pieces = match order {
            None => pieces,
            Some(rows) => {
                let parts: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
                vec![take(&concat(&parts)?, rows, None)?]
            }
        };
        for piece in pieces {
            self.metrics.add(&piece)?;
            let leaves = compute_leaves(&self.field, &piece).map_err(encoding)?;
            for (writer, leaf) in self.writers.iter_mut().zip(&leaves) {
                writer.write(leaf).map_err(encoding)?;
            }
        }
        Ok(())
    }
}

/// Divides columns among threads by their weight.
fn shares(lanes: Vec<Lane>, pieces: Vec<Vec<ArrayRef>>, threads: usize) -> Vec<Vec<(Lane, Vec<ArrayRef>)>> {
    let mut columns: Vec<Vec<ArrayRef>> = lanes.iter().map(|_| Vec::with_capacity(pieces.len())).collect();
    for piece in pieces {
        for (column, array) in columns.iter_mut().zip(piece) {
            column.push(array);
        }
    }
    let weight = |column: &Vec<ArrayRef>| -> usize { column.iter().map(bytes_of_ref).sum() };
    let mut all: Vec<_> = lanes.into_iter().zip(columns).map(|pair| (weight(&pair.1), pair)).collect();
    all.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut bins: Vec<(usize, Vec<(Lane, Vec<ArrayRef>)>)> = Vec::new();
    bins.resize_with(threads.min(all.len()).max(1), Default::default);
    for (weight, pair) in all {
        if let Some((sum, bin)) = bins.iter_mut().min_by_key(|(sum, _)| *sum) {
            *sum += weight;
            bin.push(pair);
        }
    }
    bins.into_iter().map(|(_, bin)| bin).collect()
}

fn bytes_of_ref(array: &ArrayRef) -> usize {
    bytes_of(array.as_ref())
}

fn close(lanes: Vec<(usize, Vec<ArrowColumnWriter>)>) -> Result<Vec<(usize, Vec<ArrowColumnChunk>)>> {
    let closed = lanes.into_iter().map(|(at, writers)| {
        let chunks = writers.into_iter().map(ArrowColumnWriter::close);
        Ok((at, chunks.collect::<std::result::Result<Vec<_>, _>>().map_err(encoding)?))
    });
    closed.collect()
}

fn leaves(column: &FileColumn) -> usize {
    match &column.kind {
        Kind::Primitive(_) => 1,
        Kind::Struct(fields) => fields.iter().filter(|field| field.is_stored()).map(leaves).sum(),
        Kind::List(element) => leaves(element),
        Kind::Map(parts) => parts.iter().map(leaves).sum(),
    }
}

/// Takes sizes, counts and offsets from a file's own footer.
fn describe(metadata: &ParquetMetaData, counted: &HashSet<i32>, setup: &FileSetup, file: &mut DataFile) -> Result<()> {
    let mut offsets = Vec::new();
    for group in metadata.row_groups() {
        offsets.extend(group.columns().iter().map(|column| column.byte_range().0).min());
        for column in group.columns() {
            let descriptor = column.column_descr();
            let info = descriptor.self_type().get_basic_info();
            if !info.has_id() || setup.modes.of(info.id()) == MetricsMode::None {
                continue;
            }
            let number = |value: i64| u64::try_from(value).map_err(|_| Error::internal("a column of a file has a negative size"));
            *file.column_sizes.entry(info.id()).or_default() += number(column.compressed_size())?;
            if counted.contains(&info.id()) {
                let nulls = column.statistics().and_then(|statistics| statistics.null_count_opt());
                let nulls = nulls.ok_or_else(|| Error::internal("a column of a file has no count of nulls"))?;
                *file.value_counts.entry(info.id()).or_default() += number(column.num_values())?;
                *file.null_value_counts.entry(info.id()).or_default() += nulls;
            }
        }
    }
    let offsets = offsets.into_iter().map(|offset| i64::try_from(offset).unwrap_or(i64::MAX));
    file.split_offsets = Some(offsets.collect());
    Ok(())
}

/// Bytes that were encoded and not yet handed to the stream.
#[derive(Debug, Default)]
struct Pieces(Vec<Vec<u8>>);

const PIECE: usize = 1 << 20;

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.last_mut().filter(|last| last.len() + bytes.len() <= PIECE) {
            Some(last) => last.extend_from_slice(bytes),
            None => {
                let mut piece = Vec::with_capacity(bytes.len().max(PIECE / 16));
                piece.extend_from_slice(bytes);
                self.0.push(piece);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn drain(writer: &mut SerializedFileWriter<Pieces>) -> Result<Vec<Bytes>> {
    writer
        .flush()
        .map_err(|e| Error::internal("a data file cannot be encoded").with_source(e))?;
    Ok(std::mem::take(&mut writer.inner_mut().0).into_iter().map(Bytes::from).collect())
}
