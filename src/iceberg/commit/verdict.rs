//! The last look at a snapshot before it is published: whether it keeps the rules.
//!
//! What the parent broke already is not held against the commit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::action::NotCommitted;
use super::live::Live;
use super::manifests::Written;
use super::matching::Matching;
use crate::error::{Error, Result};
use crate::iceberg::manifest::{Manifest, ManifestFile};
use crate::iceberg::rules::{Rule, SnapshotRules};
use crate::iceberg::spec::{Snapshot, TableMetadata};

/// The manifests of a finished list, as they will be read.
#[derive(Debug)]
pub(super) struct Published {
    read: Vec<(ManifestFile, Arc<Manifest>)>,
    /// Whether all manifests with live files are among them.
    is_whole: bool,
}

impl Published {
    /// Reads back what was made; of the parent's manifests those that were read anyway are taken.
    pub(super) fn read(own: &[Written], listed: &[ManifestFile], live: &Live, next: &TableMetadata) -> Result<Self> {
        let mut read = Vec::new();
        let mut is_whole = true;
        let kept = live
            .manifests
            .iter()
            .filter_map(|(kept, manifest)| Some(((&kept.location, kept.first_row_id), manifest.as_ref()?)));
        let kept: HashMap<(&String, Option<u64>), &Arc<Manifest>> = kept.collect();
        for listed in listed {
            let manifest = match own.iter().find(|written| written.listed.location == listed.location) {
                Some(written) => {
                    let manifest = Manifest::parse_in_full(&written.bytes, listed, next);
                    Some(Arc::new(manifest.map_err(|e| {
                        Error::internal("a manifest that was written cannot be read").with_source(e)
                    })?))
                }
                // One that gets its first row id only now would be read otherwise than it was.
                None => kept
                    .get(&(&listed.location, listed.first_row_id))
                    .map(|manifest| Arc::clone(manifest)),
            };
            match manifest {
                Some(manifest) => read.push((listed.clone(), manifest)),
                None => is_whole &= !listed.may_have_live_files(),
            }
        }
        Ok(Self { read, is_whole })
    }
}

/// Whether every added data file lies inside of the filter.
pub(super) fn check_inside(published: &Published, matching: Option<&Matching<'_>>, snapshot_id: i64) -> Result<(), NotCommitted> {
    let entries = published.read.iter().flat_map(|(_, manifest)| manifest.live());
    let mut added = entries.filter(|entry| entry.snapshot_id() == Some(snapshot_id));
    match added.find(|entry| !matching.is_some_and(|matching| matching.must_match(*entry))) {
        Some(outside) => {
            let message = "a new data file has, or may have, rows that do not match the filter of the overwrite";
            Err(Error::invalid(message).with("file", outside.file_path()).into())
        }
        None => Ok(()),
    }
}

/// Refuses a snapshot that breaks a rule.
pub(super) fn check(
    published: &Published,
    next: &TableMetadata,
    snapshot: &Snapshot,
    live: &Live,
    before: &TableMetadata,
    parent: Option<&Snapshot>,
) -> Result<(), NotCommitted> {
    let mut rules = SnapshotRules::new(next, snapshot);
    for (listed, manifest) in &published.read {
        rules.manifest(listed, manifest);
    }
    let found = rules.finish(published.is_whole);
    if found.is_empty() {
        return Ok(());
    }
    let mut known: HashSet<(Rule, String)> = HashSet::new();
    if let Some(parent) = parent {
        let mut rules = SnapshotRules::new(before, parent);
        let mut is_whole = true;
        for (listed, manifest) in &live.manifests {
            match manifest {
                Some(manifest) => rules.manifest(listed, manifest),
                None => is_whole &= !listed.may_have_live_files(),
            }
        }
        known.extend(rules.finish(is_whole).into_iter().map(|finding| (finding.rule, finding.subject)));
    }
    match found
        .into_iter()
        .find(|finding| !known.contains(&(finding.rule, finding.subject.clone())))
    {
        Some(finding) => {
            let message = format!("the commit would break the table, so it was not made: {finding}");
            Err(Error::internal(message).into())
        }
        None => Ok(()),
    }
}
