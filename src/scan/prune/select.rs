//! Choosing the row groups and rows of one file.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;

use super::bloom::{BloomFacts, Filter, wanted};
use super::chunk::{ChunkFacts, trusts};
use super::index::{Page, PageIndex, offset_index, page_rows};
use super::leaf::{Leaf, Source, find, path_to};
use super::pages::{PagedColumn, Rows, intersection, matching_rows};
use crate::error::Result;
use crate::io::TableIo;
use crate::scan::ScanContext;
use crate::scan::file::arrow_metadata;
use crate::table::{Column, ColumnMatching, Facts, Predicate, Pruning, PruningKind};

/// What one scan prunes the inside of its files by.
#[derive(Debug)]
pub(in crate::scan) struct FilePruner {
    predicate: Predicate,
    pruning: Pruning,
    /// Columns of the predicate by field id, cut down to the path to the field.
    columns: Vec<(i32, Arc<Column>)>,
}

/// An opened file.
#[derive(Debug)]
pub(in crate::scan) struct FileView<'a> {
    pub(in crate::scan) location: &'a Arc<str>,
    pub(in crate::scan) metadata: &'a Arc<ArrowReaderMetadata>,
    pub(in crate::scan) constants: &'a [(i32, ArrayRef)],
    pub(in crate::scan) matching: ColumnMatching,
    /// Leaf columns that are decoded.
    pub(in crate::scan) leaves: &'a [usize],
    /// By row group: has it a row that is not deleted?
    pub(in crate::scan) live: Vec<bool>,
}

/// What is chosen of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    All,
    Nothing,
    Rows(Rows),
}

/// What is chosen of a file. The default is everything.
#[derive(Debug, Default)]
pub(in crate::scan) struct Selected {
    /// By row group; a group behind the end is chosen whole.
    groups: Vec<Choice>,
    /// The file's metadata with the pages of those row groups of which only some rows are chosen.
    with_pages: Option<Arc<ArrowReaderMetadata>>,
    /// Row groups skipped by statistics, pages included.
    pub(in crate::scan) row_groups_by_statistics: u64,
    pub(in crate::scan) row_groups_by_bloom: u64,
    /// Pages of decoded columns that are not fetched, in row groups that are read or skipped by pages.
    pub(in crate::scan) pages: u64,
    /// Rows in ranges that no page can match.
    pub(in crate::scan) rows_by_pages: u64,
}

impl Selected {
    /// Whether a row group is left out.
    pub(in crate::scan) fn skips(&self, row_group: usize) -> bool {
        self.groups.get(row_group) == Some(&Choice::Nothing)
    }

    /// Metadata to read a row group with, and the mask of the chosen ones of its `rows` rows where not all are.
    pub(in crate::scan) fn mask(&self, row_group: usize, rows: usize) -> Option<(&Arc<ArrowReaderMetadata>, BooleanBuffer)> {
        let (Some(Choice::Rows(ranges)), Some(metadata)) = (self.groups.get(row_group), &self.with_pages) else {
            return None;
        };
        let mut bits = arrow::array::BooleanBufferBuilder::new(rows);
        for range in ranges {
            let clipped = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(rows);
            let (start, end) = (clipped(range.start), clipped(range.end));
            bits.append_n(start.saturating_sub(bits.len()), false);
            bits.append_n(end.saturating_sub(bits.len()), true);
        }
        bits.append_n(rows.saturating_sub(bits.len()), false);
        Some((metadata, bits.finish()))
    }
}

impl FilePruner {
    /// `None` where there is nothing to prune by. `columns` are all that the snapshot has.
    pub(in crate::scan) fn new(predicate: Predicate, columns: &[Arc<Column>], pruning: Pruning) -> Option<Self> {
        let is_off = !(pruning.row_groups || pruning.pages || pruning.bloom);
        if predicate == Predicate::True || is_off {
            return None;
        }
        let ids = predicate.field_ids();
        let columns = ids.into_iter().filter_map(|id| Some((id, path_to(columns, id)?))).collect();
        Some(Self {
            predicate,
            pruning,
            columns,
        })
    }

    /// Chooses what must be read of a file.
    ///
    /// Errors: those of reading; an index or filter that makes no sense is not used.
    pub(in crate::scan) async fn select(&self, io: &TableIo, context: &ScanContext, file: &FileView<'_>) -> Result<Selected> {
        let sources: HashMap<i32, Source> = self
            .columns
            .iter()
            .map(|(id, column)| (*id, find(column, file.metadata, file.constants, file.matching)))
            .collect();
        let mut selected = Selected {
            groups: vec![Choice::All; file.live.len()],
            ..Selected::default()
        };
        let mut open = Vec::new();
        for (row_group, choice) in selected.groups.iter_mut().enumerate() {
            if !file.live.get(row_group).copied().unwrap_or(true) {
                continue;
            }
            let facts = chunk_facts(file, row_group, &sources);
            if self.pruning.may_match(PruningKind::RowGroups, &self.predicate, &facts) {
                open.push(row_group);
            } else {
                *choice = Choice::Nothing;
                selected.row_groups_by_statistics += 1;
            }
        }
        if self.pruning.bloom && !open.is_empty() {
            self.by_bloom(io, context, file, &sources, &mut open, &mut selected).await?;
        }
        if self.pruning.pages && !open.is_empty() && !file.leaves.is_empty() {
            self.by_pages(io, context, file, &sources, &open, &mut selected).await?;
        }
        Ok(selected)
    }

    async fn by_bloom(
        &self,
        io: &TableIo,
        context: &ScanContext,
        file: &FileView<'_>,
        sources: &HashMap<i32, Source>,
        open: &mut Vec<usize>,
        selected: &mut Selected,
    ) -> Result<()> {
        let leaves: Vec<(i32, Leaf)> = leaves_of(&wanted(&self.predicate), sources);
        let mut kept = Vec::with_capacity(open.len());
        for row_group in open.drain(..) {
            let mut filters = HashMap::new();
            for (id, leaf) in &leaves {
                if let Some(filter) = Filter::load(io, &context.caches, file.location, file.metadata, row_group, leaf).await? {
                    filters.insert(*id, (leaf.decode, filter));
                }
            }
            let chunk = chunk_facts(file, row_group, sources);
            let facts = BloomFacts {
                filters: &filters,
                statistics: self.pruning.row_groups.then_some(&chunk as &dyn Facts),
            };
            if filters.is_empty() || self.pruning.may_match(PruningKind::Bloom, &self.predicate, &facts) {
                kept.push(row_group);
            } else {
                selected.row_groups_by_bloom += 1;
                if let Some(choice) = selected.groups.get_mut(row_group) {
                    *choice = Choice::Nothing;
                }
            }
        }
        *open = kept;
        Ok(())
    }

    async fn by_pages(
        &self,
        io: &TableIo,
        context: &ScanContext,
        file: &FileView<'_>,
        sources: &HashMap<i32, Source>,
        open: &[usize],
        selected: &mut Selected,
    ) -> Result<()> {
        let asked = leaves_of(&self.predicate.field_ids(), sources);
        let asked: Vec<(i32, Leaf)> = asked.into_iter().filter(|(_, leaf)| trusts(file.metadata, leaf, false)).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let Some(index) = PageIndex::load(io, &context.caches, file.location, file.metadata).await? else {
            return Ok(());
        };
        let mut offsets: Vec<Vec<OffsetIndexMetaData>> = vec![Vec::new(); file.metadata.metadata().num_row_groups()];
        for row_group in open {
            let Some(pages) = self.pages_of(*row_group, file, &asked, &index) else {
                continue;
            };
            selected.rows_by_pages += pages.rows - length(&pages.kept);
            selected.pages += pages.skipped;
            let choice = if pages.kept.is_empty() {
                selected.row_groups_by_statistics += 1;
                Choice::Nothing
            } else {
                if let Some(slot) = offsets.get_mut(*row_group) {
                    *slot = pages.offsets;
                }
                Choice::Rows(pages.kept)
            };
            if let Some(slot) = selected.groups.get_mut(*row_group) {
                *slot = choice;
            }
        }
        if selected.groups.iter().any(|g| matches!(g, Choice::Rows(_))) {
            let metadata = file.metadata.metadata().as_ref().clone();
            let metadata = metadata.into_builder().set_offset_index(Some(offsets)).build();
            selected.with_pages = Some(Arc::new(arrow_metadata(metadata)?));
        }
        Ok(())
    }

    /// The rows of a row group in pages that may match; `None` where all are, or where some column
    /// that is decoded has no usable index.
    fn pages_of(&self, row_group: usize, file: &FileView<'_>, asked: &[(i32, Leaf)], index: &PageIndex) -> Option<GroupPages> {
        let group = file.metadata.metadata().row_groups().get(row_group)?;
        let rows = u64::try_from(group.num_rows()).ok()?;
        let columns: HashMap<i32, PagedColumn<'_>> = asked
            .iter()
            .filter_map(|(id, leaf)| {
                let chunk = group.columns().get(leaf.index)?;
                let pages = index.pages(chunk, rows)?;
                let statistics = index.statistics(chunk, pages.len())?;
                (pages.len() == statistics.len()).then_some((
                    *id,
                    PagedColumn {
                        leaf: *leaf,
                        pages,
                        statistics,
                    },
                ))
            })
            .collect();
        if columns.is_empty() {
            return None;
        }
        let kept = matching_rows(&self.predicate, &columns, &self.pruning, rows);
        if length(&kept) == rows {
            return None;
        }
        let decoded = file.leaves.iter().map(|leaf| index.pages(group.columns().get(*leaf)?, rows));
        let decoded: Vec<Vec<Page>> = decoded.collect::<Option<_>>()?;
        let is_fetched = |span: &Range<u64>| !intersection(std::slice::from_ref(span), &kept).is_empty();
        let skipped = decoded
            .iter()
            .flat_map(|pages| page_rows(pages, rows))
            .filter(|span| !is_fetched(span))
            .count() as u64;
        // Columns that are not decoded have no pages.
        let mut offsets = vec![offset_index(&[], rows); group.columns().len()];
        for (leaf, pages) in file.leaves.iter().zip(&decoded) {
            if let Some(slot) = offsets.get_mut(*leaf) {
                *slot = offset_index(pages, rows);
            }
        }
        Some(GroupPages {
            rows,
            kept,
            offsets,
            skipped,
        })
    }
}

/// Pages of a row group of which some are left out.
struct GroupPages {
    rows: u64,
    kept: Rows,
    /// By leaf column.
    offsets: Vec<OffsetIndexMetaData>,
    skipped: u64,
}

fn chunk_facts<'a>(file: &'a FileView<'_>, row_group: usize, sources: &'a HashMap<i32, Source>) -> ChunkFacts<'a> {
    ChunkFacts {
        metadata: file.metadata,
        row_group,
        sources,
    }
}

fn leaves_of(ids: &[i32], sources: &HashMap<i32, Source>) -> Vec<(i32, Leaf)> {
    ids.iter()
        .filter_map(|id| match sources.get(id) {
            Some(Source::Leaf(leaf)) => Some((*id, *leaf)),
            _ => None,
        })
        .collect()
}

fn length(rows: &[Range<u64>]) -> u64 {
    rows.iter().map(|r| r.end - r.start).sum()
}
