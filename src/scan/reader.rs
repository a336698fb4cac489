//! Decoding one unit of one file (a row group, a stripe, an Avro file), a bounded step at a time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{and, filter_record_batch};
use arrow::datatypes::{Schema, SchemaRef};
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection, RowSelectionPolicy};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};

use super::deletes::KeySet;
use super::hidden::{HiddenReads, KeptRows};
use super::open::{Decode, FileHandle, Step};
use super::resolve::ReadPlan;
use super::{ScanContext, Steps};
use crate::error::{Error, Result, ResultExt};
use crate::io::{FileKind, TableIo};
use crate::runtime::{Cancelled, Job};
use crate::table::Column;

/// What is made of a file's decoded columns.
#[derive(Debug)]
pub(super) struct FileShape {
    pub(super) plan: ReadPlan,
    /// Schema of the result: the first columns of the plan.
    pub(super) schema: SchemaRef,
    /// Equality deletes: key set, age of the data file, which columns of the plan are the keys.
    pub(super) keys: Vec<(Arc<KeySet>, i64, Range<usize>)>,
    /// Columns that come from the task and from positions.
    pub(super) hidden: HiddenReads,
}

impl FileShape {
    /// The result of `rows` decoded rows, deleted keys left out, and how many those were. `kept`
    /// tells the positions of the rows.
    fn finish(&self, decoded: &[ArrayRef], rows: usize, kept: Option<&mut KeptRows>) -> Result<(Option<RecordBatch>, u64)> {
        let mut arrays = self
            .plan
            .reads
            .iter()
            .map(|read| read.apply(decoded, rows))
            .collect::<Result<Vec<_>>>()?;
        self.hidden.fill(&mut arrays, rows, kept)?;
        let mut keep: Option<BooleanArray> = None;
        for (set, age, columns) in &self.keys {
            let columns = arrays
                .get(columns.clone())
                .ok_or_else(|| Error::internal("key columns are out of range"))?;
            if let Some(mask) = set.keep(columns, *age)? {
                keep = Some(match keep {
                    None => mask,
                    Some(so_far) => and(&so_far, &mask)?,
                });
            }
        }
        arrays.truncate(self.schema.fields().len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|e| Error::corrupt("the file's values break the table's schema").with_source(e))?;
        let Some(mask) = keep else { return Ok((Some(batch), 0)) };
        let kept = filter_record_batch(&batch, &mask)?;
        let removed = (rows - kept.num_rows()) as u64;
        Ok(((kept.num_rows() > 0).then_some(kept), removed))
    }
}

/// One row group to decode.
#[derive(Debug)]
pub(super) struct RowGroupReader {
    io: TableIo,
    context: Arc<ScanContext>,
    location: Arc<str>,
    state: State,
    /// Rows left out by equality deletes so far.
    pub(super) removed_by_key: u64,
    /// Bytes fetched so far.
    pub(super) bytes: u64,
}

#[derive(Debug)]
enum State {
    Running(Job<Unit>),
    Finished,
}

/// What one job did.
#[derive(Debug)]
struct Unit {
    work: Option<Work>,
    batches: VecDeque<RecordBatch>,
    removed: u64,
    needs: Vec<Range<u64>>,
}

/// What is left to do, handed from job to job.
#[derive(Debug)]
struct Work {
    shape: Arc<FileShape>,
    source: Source,
    kept: Option<KeptRows>,
    steps: Steps,
}

#[derive(Debug)]
enum Source {
    /// Columns of the file.
    Decoder(Box<ParquetPushDecoder>),
    /// Columns of a file that is not Parquet.
    Other(Box<dyn Decode>),
    /// No column of the file is wanted: only so many rows.
    Rows(usize),
}

impl RowGroupReader {
    /// Starts on a unit of rows of which the first has the position `first`; `keep` has one bit a row for
    /// those that are wanted, `None` when all are.
    #[expect(clippy::too_many_arguments, reason = "one caller, which has all of them at hand")]
    pub(super) fn start(
        io: &TableIo,
        context: &Arc<ScanContext>,
        location: &Arc<str>,
        handle: &FileHandle,
        shape: &Arc<FileShape>,
        unit: usize,
        positions: Range<u64>,
        keep: Option<BooleanBuffer>,
    ) -> Result<Self> {
        let rows = positions.end.saturating_sub(positions.start);
        let kept = Some(KeptRows::new(positions.start, keep.clone()));
        let source = if shape.plan.leaves.is_empty() {
            let rows = usize::try_from(rows).map_err(|_| Error::corrupt("too many rows"))?;
            Source::Rows(keep.map_or(rows, |mask| mask.count_set_bits()))
        } else {
            context.counters.row_groups_read.fetch_add(1, Ordering::Relaxed);
            source(handle, &shape.plan.leaves, unit, Some(rows), keep, context.steps)?
        };
        let work = Work {
            shape: Arc::clone(shape),
            source,
            kept,
            steps: context.steps,
        };
        Ok(Self {
            io: io.clone(),
            context: Arc::clone(context),
            location: Arc::clone(location),
            state: State::Running(context.pool.spawn(move |cancelled| work.run(cancelled))),
            removed_by_key: 0,
            bytes: 0,
        })
    }

    /// The batches of the next unit; `None` at the end. The unit after it is already being
    /// decoded when this returns, so at most two units are held.
    pub(super) async fn next_unit(&mut self) -> Result<Option<VecDeque<RecordBatch>>> {
        loop {
            let State::Running(job) = std::mem::replace(&mut self.state, State::Finished) else {
                return Ok(None);
            };
            let unit = job.await.context("file", || &self.location)?;
            self.context.counters.units_decoded.fetch_add(1, Ordering::Relaxed);
            self.removed_by_key += unit.removed;
            if let Some(mut work) = unit.work {
                if !unit.needs.is_empty() {
                    self.bytes += unit.needs.iter().map(|r| r.end - r.start).sum::<u64>();
                    work.supply(&self.io, &self.location, FileKind::Data, unit.needs).await?;
                }
                self.state = State::Running(self.context.pool.spawn(move |cancelled| work.run(cancelled)));
            }
            if !unit.batches.is_empty() {
                return Ok(Some(unit.batches));
            }
        }
    }
}

impl Work {
    /// Decodes up to a unit of batches, or until data is missing.
    fn run(mut self, cancelled: &Cancelled) -> Result<Unit> {
        let mut unit = Unit {
            work: None,
            batches: VecDeque::new(),
            removed: 0,
            needs: Vec::new(),
        };
        for _ in 0..self.steps.unit_batches {
            if cancelled.is_set() {
                return Err(Error::cancelled("the query was dropped"));
            }
            let finished = match &mut self.source {
                Source::Rows(0) => return Ok(unit),
                Source::Rows(left) => {
                    let rows = (*left).min(self.steps.batch_rows);
                    *left -= rows;
                    self.shape.finish(&[], rows, self.kept.as_mut())?
                }
                Source::Other(decoder) => match decoder.step()? {
                    Step::Rows { rows: 0, .. } => (None, 0),
                    Step::Rows { columns, rows } => self.shape.finish(&columns, rows, self.kept.as_mut())?,
                    Step::Needs(needs) => {
                        unit.needs = needs;
                        break;
                    }
                    Step::Finished => return Ok(unit),
                },
                Source::Decoder(decoder) => match decoder.try_decode()? {
                    DecodeResult::Data(batch) => self.shape.finish(batch.columns(), batch.num_rows(), self.kept.as_mut())?,
                    DecodeResult::NeedsData(needs) => {
                        unit.needs = needs;
                        break;
                    }
                    DecodeResult::Finished => return Ok(unit),
                },
            };
            unit.removed += finished.1;
            unit.batches.extend(finished.0);
        }
        unit.work = Some(self);
        Ok(unit)
    }

    async fn supply(&mut self, io: &TableIo, location: &str, kind: FileKind, needs: Vec<Range<u64>>) -> Result<()> {
        match &mut self.source {
            Source::Decoder(decoder) => {
                let parts = io.read_ranges(location, kind, &needs).await?;
                decoder.push_ranges(needs, parts)?;
            }
            Source::Other(decoder) if !needs.is_empty() => decoder.supply(io.read_ranges(location, kind, &needs).await?)?,
            Source::Other(_) | Source::Rows(_) => {}
        }
        Ok(())
    }
}

/// Decodes the leaves of a unit; `rows` is `None` where it is not known.
fn source(
    handle: &FileHandle,
    leaves: &[usize],
    unit: usize,
    rows: Option<u64>,
    keep: Option<BooleanBuffer>,
    steps: Steps,
) -> Result<Source> {
    if let FileHandle::Parquet(metadata) = handle {
        return Ok(Source::Decoder(Box::new(decoder(metadata, leaves, unit, keep, steps)?)));
    }
    let decoder = handle.decoder(leaves, unit, rows, keep, steps)?;
    Ok(Source::Other(
        decoder.ok_or_else(|| Error::internal("no decoder for the file's format"))?,
    ))
}

fn decoder(
    metadata: &ArrowReaderMetadata,
    leaves: &[usize],
    row_group: usize,
    keep: Option<BooleanBuffer>,
    steps: Steps,
) -> Result<ParquetPushDecoder> {
    let mask = ProjectionMask::leaves(metadata.parquet_schema(), leaves.iter().copied());
    let mut builder = ParquetPushDecoderBuilder::new_with_metadata(metadata.clone())
        .with_row_groups(vec![row_group])
        .with_projection(mask)
        .with_batch_size(steps.batch_rows);
    if metadata.metadata().offset_index().is_some() {
        // Pages that are not selected are not fetched. Runs of rows never touch them, a mask may.
        builder = builder.with_row_selection_policy(RowSelectionPolicy::Selectors);
    }
    if let Some(keep) = keep {
        builder = builder.with_row_selection(RowSelection::from_boolean_buffer(keep));
    }
    Ok(builder.build()?)
}

/// A whole unit of a delete file: the columns that `plan` reads.
pub(super) async fn decode_unit(
    io: &TableIo,
    context: &Arc<ScanContext>,
    location: &Arc<str>,
    handle: &FileHandle,
    unit: usize,
    columns: &[Arc<Column>],
    plan: &ReadPlan,
) -> Result<Vec<RecordBatch>> {
    let schema = Arc::new(Schema::new(
        columns
            .iter()
            .map(|c| c.field.as_ref().clone().with_nullable(true))
            .collect::<Vec<_>>(),
    ));
    let source = source(handle, &plan.leaves, unit, None, None, context.steps)?;
    let shape = Arc::new(FileShape {
        plan: plan.clone(),
        schema,
        keys: Vec::new(),
        hidden: HiddenReads::default(),
    });
    let mut work = Work {
        shape,
        source,
        kept: None,
        steps: context.steps,
    };
    let mut batches = Vec::new();
    loop {
        let unit = context
            .pool
            .spawn(move |cancelled| work.run(cancelled))
            .await
            .context("file", || location)?;
        batches.extend(unit.batches);
        match unit.work {
            None => return Ok(batches),
            Some(next) => work = next,
        }
        work.supply(io, location, FileKind::Delete, unit.needs).await?;
    }
}
