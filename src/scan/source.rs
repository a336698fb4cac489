//! The scan as a DataFusion data source.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DfResult, Statistics, stats::Precision};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source::{DataSource, OpenArgs};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, Partitioning};
use futures::TryStreamExt;

use super::ScanContext;
use super::deletes::{deleted_rows, key_sets};
use super::hidden::HiddenReads;
use super::open::FileHandle;
use super::prune::{FilePruner, FileView, Selected};
use super::queue::{Work, WorkQueue};
use super::reader::{FileShape, RowGroupReader};
use crate::bitmap::RowSet;
use crate::error::{Error, Result, ResultExt};
use crate::table::{Column, FileScanTask, ScanPlan, TableIdent};

/// Rows that are worth a partition of their own.
const ROWS_PER_PARTITION: u64 = 64 * 1024;

/// The files of one snapshot with their deletes, as a leaf of a physical plan.
#[derive(Debug, Clone)]
pub(super) struct MergeOnReadSource {
    table: TableIdent,
    plan: Arc<ScanPlan>,
    /// Columns of the result.
    columns: Arc<Vec<Arc<Column>>>,
    schema: SchemaRef,
    context: Arc<ScanContext>,
    partitions: usize,
    fetch: Option<usize>,
    /// What the inside of files is pruned by.
    pruner: Option<Arc<FilePruner>>,
    /// Conditions on the result that every row of it meets.
    proved: Vec<Arc<dyn PhysicalExpr>>,
    metrics: ExecutionPlanMetricsSet,
}

impl MergeOnReadSource {
    pub(super) fn new(
        table: TableIdent,
        plan: ScanPlan,
        columns: Vec<Arc<Column>>,
        schema: SchemaRef,
        context: Arc<ScanContext>,
        target_partitions: usize,
        fetch: Option<usize>,
    ) -> Self {
        let rows: u64 = plan.tasks.iter().map(|t| t.record_count.unwrap_or(0)).fold(0, u64::saturating_add);
        let wanted = usize::try_from(rows / ROWS_PER_PARTITION + 1).unwrap_or(usize::MAX);
        let partitions = wanted.clamp(1, target_partitions.max(1));
        let metrics = ExecutionPlanMetricsSet::new();
        Self {
            table,
            plan: Arc::new(plan),
            columns: Arc::new(columns),
            schema,
            context,
            partitions,
            fetch,
            pruner: None,
            proved: Vec::new(),
            metrics,
        }
    }

    /// Skips row groups and pages in which no row can match.
    pub(super) fn with_pruner(mut self, pruner: Option<FilePruner>) -> Self {
        self.pruner = pruner.map(Arc::new);
        self
    }

    /// Notes conditions that planning has proved for every row.
    pub(super) fn with_proved(mut self, proved: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        self.proved = proved;
        self
    }

    /// Whether every row of the result meets this condition.
    pub(super) fn is_proved(&self, condition: &Arc<dyn PhysicalExpr>) -> bool {
        self.proved.contains(condition)
    }
}

impl MergeOnReadSource {
    /// Exact where metadata alone tells: `count(*)` is then answered without reading.
    fn row_count(&self) -> Precision<usize> {
        let tasks = &self.plan.tasks;
        let known = tasks
            .iter()
            .try_fold(0u64, |sum, task| sum.checked_add(task.known_rows()?))
            .and_then(|rows| usize::try_from(rows).ok());
        match (known, self.fetch) {
            (Some(rows), None) => Precision::Exact(rows),
            (Some(rows), Some(fetch)) if self.partitions == 1 => Precision::Exact(rows.min(fetch)),
            _ => {
                let rows = tasks.iter().map(|t| t.estimated_rows()).fold(0, u64::saturating_add);
                Precision::Inexact(usize::try_from(rows).unwrap_or(usize::MAX))
            }
        }
    }
}

/// A data file that was opened: footer, deletes, and how its columns become the table's.
#[derive(Debug)]
pub(super) struct OpenFile {
    task: Arc<FileScanTask>,
    handle: FileHandle,
    shape: Arc<FileShape>,
    deleted: Option<Arc<RowSet>>,
    /// Physical rows of each unit (row group, stripe, whole Avro file).
    units: Vec<Range<u64>>,
    /// Units and rows that may match the query.
    selected: Selected,
}

struct PartitionMetrics {
    bytes: Count,
    row_groups: Count,
    row_groups_all_deleted: Count,
    deleted_by_position: Count,
    deleted_by_key: Count,
    skipped_by_statistics: Count,
    skipped_by_bloom: Count,
    pages_skipped: Count,
    rows_skipped: Count,
}

/// The state of one partition's stream.
struct PartitionReader {
    source: MergeOnReadSource,
    queue: Arc<WorkQueue>,
    current: Option<RowGroupReader>,
    ready: VecDeque<RecordBatch>,
    left: Option<usize>,
    memory: MemoryReservation,
    metrics: PartitionMetrics,
}

impl PartitionReader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            if let Some(batch) = self.ready.pop_front() {
                let Some(left) = &mut self.left else { return Ok(Some(batch)) };
                let rows = batch.num_rows().min(*left);
                *left -= rows;
                return Ok(Some(batch.slice(0, rows)));
            }
            if let Some(reader) = &mut self.current {
                if let Some(batches) = reader.next_unit().await? {
                    self.ready = batches;
                } else {
                    self.metrics.bytes.add(usize::try_from(reader.bytes).unwrap_or(usize::MAX));
                    self.metrics
                        .deleted_by_key
                        .add(usize::try_from(reader.removed_by_key).unwrap_or(usize::MAX));
                    self.current = None;
                    self.memory.free();
                }
                continue;
            }
            match self.queue.next().await {
                None => return Ok(None),
                Some(Work::File(task)) => {
                    // Answers the queue also when opening fails or this stream is dropped meanwhile.
                    let mut answer = Answer {
                        queue: Arc::clone(&self.queue),
                        row_groups: Vec::new(),
                    };
                    let file = self.open(&task).await.context("file", || &task.location)?;
                    answer.row_groups = self.live_row_groups(&Arc::new(file))?;
                }
                Some(Work::RowGroup(file, row_group)) => self.start(&file, row_group).await?,
            }
        }
    }

    async fn open(&self, task: &Arc<FileScanTask>) -> Result<OpenFile> {
        let (plan, context) = (&self.source.plan, &self.source.context);
        let handle = FileHandle::open(&plan.io, context, &task.location, task.format).await?;
        let deleted = deleted_rows(&plan.io, context, task).await?;
        let sets = key_sets(&plan.io, context, task, plan.matching).await?;
        let mut wanted: Vec<Arc<Column>> = self.source.columns.to_vec();
        let mut keys = Vec::with_capacity(sets.len());
        for (set, age) in sets {
            let start = wanted.len();
            wanted.extend(set.columns().iter().cloned());
            keys.push((set, age, start..wanted.len()));
        }
        let matching = plan.matching;
        let io = &plan.io;
        let plan = handle.resolve(&wanted, &task.constants, matching)?;
        let shape = Arc::new(FileShape {
            plan,
            schema: Arc::clone(&self.source.schema),
            keys,
            hidden: HiddenReads::of(&self.source.columns, task)?,
        });
        let mut units = Vec::new();
        let mut next = 0u64;
        for rows in handle.units(task.record_count)? {
            let end = next.checked_add(rows).ok_or_else(|| Error::corrupt("row counts overflow"))?;
            units.push(next..end);
            next = end;
        }
        if let Some(recorded) = task.record_count.filter(|recorded| *recorded != next) {
            // Positions would fall on other rows than those that were deleted.
            return Err(Error::corrupt(format!("data file has {next} rows, its table says {recorded}")));
        }
        // Of a file whose rows were counted before, the vector was held against them then.
        let uncounted = task.deletes.vector.is_some() && task.record_count.is_none();
        let last = deleted.as_ref().and_then(|set| set.max()).filter(|last| uncounted && *last >= next);
        if let Some(last) = last {
            return Err(Error::corrupt(format!(
                "deletion vector deletes row {last} of a file of {next} rows"
            )));
        }
        let selected = match (&self.source.pruner, &handle) {
            (Some(pruner), FileHandle::Parquet(metadata)) => {
                let live = units.iter().map(|unit| {
                    let dead = deleted.as_ref().map_or(0, |set| set.count_in(unit.clone()));
                    dead < unit.end - unit.start
                });
                let view = FileView {
                    location: &task.location,
                    metadata,
                    constants: &task.constants,
                    matching,
                    leaves: &shape.plan.leaves,
                    live: live.collect(),
                };
                pruner.select(io, context, &view).await?
            }
            _ => Selected::default(),
        };
        self.count_skipped(&selected);
        Ok(OpenFile {
            task: Arc::clone(task),
            handle,
            shape,
            deleted,
            units,
            selected,
        })
    }

    fn count_skipped(&self, selected: &Selected) {
        let add = |count: &Count, n: u64| count.add(usize::try_from(n).unwrap_or(usize::MAX));
        add(&self.metrics.skipped_by_statistics, selected.row_groups_by_statistics);
        add(&self.metrics.skipped_by_bloom, selected.row_groups_by_bloom);
        add(&self.metrics.pages_skipped, selected.pages);
        add(&self.metrics.rows_skipped, selected.rows_by_pages);
        self.source.context.counters.add_file(selected);
    }

    /// Row groups that have a live row that may match.
    fn live_row_groups(&self, file: &Arc<OpenFile>) -> Result<Vec<(Arc<OpenFile>, usize)>> {
        let mut live = Vec::with_capacity(file.units.len());
        for (index, unit) in file.units.iter().enumerate() {
            let rows = unit.end - unit.start;
            let deleted = file.deleted.as_ref().map_or(0, |set| set.count_in(unit.clone()));
            self.metrics.deleted_by_position.add(usize::try_from(deleted).unwrap_or(usize::MAX));
            if rows == 0 {
                continue;
            }
            if deleted == rows {
                self.metrics.row_groups_all_deleted.add(1);
                self.source.context.counters.row_groups_all_deleted.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if !file.selected.skips(index) {
                live.push((Arc::clone(file), index));
            }
        }
        Ok(live)
    }

    async fn start(&mut self, file: &Arc<OpenFile>, row_group: usize) -> Result<()> {
        let unit = file
            .units
            .get(row_group)
            .cloned()
            .ok_or_else(|| Error::internal("row group is out of range"))?;
        let positions = unit.clone();
        let keep = match &file.deleted {
            Some(set) if set.count_in(unit.clone()) > 0 => {
                let set = Arc::clone(set);
                Some(self.source.context.pool.spawn(move |_| Ok(set.keep_mask(unit))).await?)
            }
            _ => None,
        };
        // Both masks are by physical row of the row group, so that they combine row by row.
        let rows = usize::try_from(positions.end - positions.start).unwrap_or(usize::MAX);
        let (handle, keep) = match (file.selected.mask(row_group, rows), keep) {
            (None, keep) => (file.handle.clone(), keep),
            (Some((metadata, chosen)), None) => (FileHandle::Parquet(Arc::clone(metadata)), Some(chosen)),
            (Some((metadata, chosen)), Some(keep)) => (FileHandle::Parquet(Arc::clone(metadata)), Some(&chosen & &keep)),
        };
        if keep.as_ref().is_some_and(|keep| keep.count_set_bits() == 0) {
            return Ok(());
        }
        let compressed = file.handle.unit_bytes(row_group, &file.shape.plan.leaves);
        self.memory
            .try_resize(usize::try_from(compressed).unwrap_or(usize::MAX))
            .map_err(|e| {
                Error::resource_exhausted("not enough memory to read a row group")
                    .with("file", &file.task.location)
                    .with_source(e)
            })?;
        self.metrics.row_groups.add(1);
        let (io, context) = (&self.source.plan.io, &self.source.context);
        self.current = Some(
            RowGroupReader::start(io, context, &file.task.location, &handle, &file.shape, row_group, positions, keep)
                .context("file", || &file.task.location)?,
        );
        Ok(())
    }
}

/// Tells the queue that an opening has ended, however it ended.
struct Answer {
    queue: Arc<WorkQueue>,
    row_groups: Vec<(Arc<OpenFile>, usize)>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.queue.opened(std::mem::take(&mut self.row_groups));
    }
}

impl DataSource for MergeOnReadSource {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        // Without a shared queue every partition would read everything.
        if self.partitions != 1 {
            return Err(DataFusionError::Internal(
                "a scan of several partitions needs its shared queue".to_owned(),
            ));
        }
        self.open_with_args(OpenArgs::new(partition, context))
    }

    fn open_with_args(&self, args: OpenArgs) -> DfResult<SendableRecordBatchStream> {
        let queue = match args.sibling_state.map(|state| state.downcast::<WorkQueue>()) {
            Some(Ok(queue)) => queue,
            None if self.partitions == 1 => Arc::new(WorkQueue::new(&self.plan.tasks)),
            _ => return Err(DataFusionError::Internal("a scan got a foreign shared state".to_owned())),
        };
        let count = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, args.partition);
        let reader = PartitionReader {
            source: self.clone(),
            queue,
            current: None,
            ready: VecDeque::new(),
            left: self.fetch,
            memory: MemoryConsumer::new("scan").register(args.context.memory_pool()),
            metrics: PartitionMetrics {
                bytes: count("bytes_fetched"),
                row_groups: count("row_groups_read"),
                row_groups_all_deleted: count("row_groups_all_deleted"),
                deleted_by_position: count("rows_deleted_by_position"),
                deleted_by_key: count("rows_deleted_by_key"),
                skipped_by_statistics: count("row_groups_skipped_by_statistics"),
                skipped_by_bloom: count("row_groups_skipped_by_bloom"),
                pages_skipped: count("pages_skipped"),
                rows_skipped: count("rows_skipped_by_pages"),
            },
        };
        let table = self.table.clone();
        let stream = futures::stream::try_unfold(
            reader,
            |mut reader| async move { Ok(reader.next().await?.map(|batch| (batch, reader))) },
        )
        .map_err(move |e: Error| DataFusionError::External(Box::new(e.with("table", &table))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }

    fn create_sibling_state(&self, _config: &ConfigOptions) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(WorkQueue::new(&self.plan.tasks)))
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = &self.plan.tasks;
        let with = |test: fn(&FileScanTask) -> bool| tasks.iter().filter(|t| test(t)).count();
        write!(
            f,
            "table={}, files={}, with_deletion_vector={}, with_position_deletes={}, with_equality_deletes={}",
            self.table,
            tasks.len(),
            with(|t| t.deletes.vector.is_some()),
            with(|t| !t.deletes.positions.is_empty()),
            with(|t| !t.deletes.equality.is_empty()),
        )?;
        let counts = &self.plan.counts;
        for (what, n) in [
            ("manifests_skipped", counts.manifests_skipped),
            ("files_skipped_by_partition", counts.files_skipped_by_partition),
            ("files_skipped_by_metrics", counts.files_skipped_by_metrics),
            ("filters_proved", counts.filters_proved),
        ] {
            if n > 0 {
                write!(f, ", {what}={n}")?;
            }
        }
        self.fetch.map_or(Ok(()), |fetch| write!(f, ", fetch={fetch}"))
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.partitions)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(Arc::clone(&self.schema))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> DfResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if partition.is_none() {
            statistics.num_rows = self.row_count();
        }
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(Self {
            fetch: limit,
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    fn try_swapping_with_projection(&self, _projection: &ProjectionExprs) -> DfResult<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(&self, _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
