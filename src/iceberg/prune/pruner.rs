//! Judging the manifests and data files of one scan.

use std::collections::HashMap;
use std::sync::Arc;

use super::{MetricsFacts, PartitionProjection, SourceTypes};
use crate::iceberg::manifest::{EntryRef, Manifest, ManifestContent, ManifestFile};
use crate::iceberg::spec::TableMetadata;
use crate::table::{Column, Facts, PlanCounts, Predicate, Pruning, PruningKind, Residuals, ScanRequest};

/// What one scan prunes by.
#[derive(Debug)]
pub(in crate::iceberg) struct Pruner<'a> {
    predicate: &'a Predicate,
    pruning: Pruning,
    types: SourceTypes,
    /// By spec id.
    specs: HashMap<i32, PartitionProjection>,
    counts: PlanCounts,
    residuals: Residuals<'a>,
}

impl<'a> Pruner<'a> {
    /// A pruner for the columns that a snapshot is read with.
    pub(in crate::iceberg) fn new(request: &'a ScanRequest, columns: &[Arc<Column>], metadata: &TableMetadata) -> Self {
        let asked = std::iter::once(&request.predicate).chain(&request.misses);
        let ids: Vec<i32> = asked.flat_map(Predicate::field_ids).collect();
        let types = SourceTypes::new(&ids, columns, metadata);
        let specs = metadata
            .partition_specs
            .iter()
            .map(|spec| (spec.spec_id, PartitionProjection::new(spec, &types)))
            .collect();
        Self {
            predicate: &request.predicate,
            pruning: request.pruning,
            types,
            specs,
            counts: PlanCounts::default(),
            residuals: Residuals::new(request),
        }
    }

    /// Whether a manifest must be read. Delete manifests always are: their files may belong to any
    /// data file that is read.
    pub(in crate::iceberg) fn wants_manifest(&mut self, manifest: &ManifestFile) -> bool {
        if *self.predicate == Predicate::True || manifest.content == ManifestContent::Deletes {
            return true;
        }
        let projection = manifest.partition_spec_id.and_then(|id| self.specs.get(&id));
        let (Some(projection), Some(summaries)) = (projection, &manifest.partitions) else {
            return true;
        };
        let facts = projection.of_summaries(summaries);
        let wanted = self.pruning.may_match(PruningKind::Manifests, self.predicate, &facts);
        self.counts.manifests_skipped += u64::from(!wanted);
        wanted
    }

    /// The live data files of a data manifest that must be read.
    pub(in crate::iceberg) fn wanted_files<'m>(&mut self, manifest: &'m Manifest) -> Vec<EntryRef<'m>> {
        let live = manifest.live();
        if *self.predicate == Predicate::True {
            self.residuals.give_up();
            return live.collect();
        }
        let projection = self.specs.get(&manifest.spec_id()).filter(|p| !p.is_empty());
        // Entries of a partition share its values, so their address names the partition.
        let mut judged: HashMap<usize, bool> = HashMap::new();
        let mut wanted = Vec::new();
        for entry in live {
            if let Some(projection) = projection {
                let values = entry.partition();
                let may_match = *judged.entry(values.as_ptr().addr()).or_insert_with(|| {
                    let facts = projection.of_values(values);
                    self.pruning.may_match(PruningKind::Partitions, self.predicate, &facts)
                });
                if !may_match {
                    self.counts.files_skipped_by_partition += 1;
                    continue;
                }
            }
            let facts = MetricsFacts::new(entry, &self.types);
            if self.pruning.may_match(PruningKind::Metrics, self.predicate, &facts) {
                let partition = projection.map(|p| p.of_values(entry.partition()));
                let known: Vec<&dyn Facts> = partition.iter().map(|p| p as &dyn Facts).chain([&facts as &dyn Facts]).collect();
                self.residuals.judge(&known);
                wanted.push(entry);
            } else {
                self.counts.files_skipped_by_metrics += 1;
            }
        }
        wanted
    }

    /// For each filter, whether every row of the files that were wanted passes it.
    pub(in crate::iceberg) fn proved(&self) -> &[bool] {
        self.residuals.proved()
    }

    /// What was left out so far.
    pub(in crate::iceberg) fn counts(&self) -> PlanCounts {
        PlanCounts {
            filters_proved: self.residuals.count(),
            ..self.counts
        }
    }
}
