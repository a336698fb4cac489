//! From a version's files to tasks.

use std::sync::Arc;

use super::live_files::{LiveFile, LiveFiles};
use super::log::Log;
use super::paths::locate;
use super::version::TableVersion;
use crate::error::{Error, Result, ResultExt};
use crate::table::{
    DeleteSet, Facts, FileFormat, FileOrigin, FileScanTask, PlanCounts, Predicate, PruningKind, Residuals, ScanPlan, ScanRequest,
};

/// The files that may have a row that is asked for.
///
/// Errors: `Corrupt` and `PermissionDenied` for a path that is none or lies outside, naming it.
pub(super) fn plan(log: &Log, version: &TableVersion, files: &LiveFiles, request: &ScanRequest) -> Result<ScanPlan> {
    let mut counts = PlanCounts::default();
    let mut residuals = Residuals::new(request);
    let mut tasks = Vec::new();
    let asks = request.predicate != Predicate::True;
    for file in &files.files {
        let facts = file.facts();
        if asks {
            let may_match = |kind, facts: &dyn Facts| request.pruning.may_match(kind, &request.predicate, facts);
            if !may_match(PruningKind::Partitions, &file.partition_facts()) {
                counts.files_skipped_by_partition += 1;
                continue;
            }
            if !may_match(PruningKind::Metrics, &facts) {
                counts.files_skipped_by_metrics += 1;
                continue;
            }
        }
        residuals.judge(&[&facts]);
        let task = task(log, file).context("file", || &file.path);
        tasks.push(Arc::new(task.context("log", || format!("{}/_delta_log", log.root))?));
    }
    if !asks {
        residuals.give_up();
    }
    counts.filters_proved = residuals.count();
    Ok(ScanPlan {
        tasks,
        io: log.io_of(version),
        matching: version.matching,
        counts,
        proved: residuals.proved().to_vec(),
    })
}

fn task(log: &Log, file: &LiveFile) -> Result<FileScanTask> {
    let location = locate(&log.io, &log.root, &file.path)?;
    let vector = match &file.vector {
        Some(descriptor) => Some(Arc::new(descriptor.reference(&log.io, &log.root, &location)?)),
        None => None,
    };
    let first_row_id = file.base_row_id.map(u64::try_from).transpose();
    Ok(FileScanTask {
        location: location.into(),
        format: FileFormat::Parquet,
        recorded_path: file.path.to_string(),
        size: u64::try_from(file.size).unwrap_or(0),
        record_count: file.record_count(),
        constants: Arc::new(file.partition().collect()),
        deletes: DeleteSet {
            vector,
            ..DeleteSet::default()
        },
        origin: FileOrigin {
            spec_id: 0,
            partition: None,
            first_row_id: first_row_id.map_err(|_| Error::corrupt("baseRowId is negative"))?,
            sequence_number: file.commit_version.unwrap_or(0),
        },
    })
}
