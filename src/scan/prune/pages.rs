//! Which rows of a row group lie in pages that may match.
//!
//! Pages of different columns begin at different rows, so each term gives ranges of rows, and the
//! tree of the predicate combines them.

use std::collections::HashMap;
use std::ops::Range;

use super::index::{Page, PageStatistics, page_rows};
use super::leaf::Leaf;
use crate::table::{ColumnStats, Facts, Predicate, Pruning, PruningKind};

/// Pages of a column that a predicate asks about.
pub(super) struct PagedColumn<'a> {
    pub(super) leaf: Leaf,
    pub(super) pages: Vec<Page>,
    /// Parallel to `pages`.
    pub(super) statistics: Vec<PageStatistics<'a>>,
}

/// Ranges of rows: ascending, apart from each other, none empty.
pub(super) type Rows = Vec<Range<u64>>;

/// The rows of a row group of `rows` rows that may satisfy `predicate`. A column that is not in
/// `columns` tells nothing.
pub(super) fn matching_rows(predicate: &Predicate, columns: &HashMap<i32, PagedColumn<'_>>, pruning: &Pruning, rows: u64) -> Rows {
    let all = || vec![0..rows];
    match predicate {
        Predicate::True => all(),
        Predicate::False => Vec::new(),
        Predicate::And(parts) => parts.iter().fold(all(), |so_far, part| {
            intersection(&so_far, &matching_rows(part, columns, pruning, rows))
        }),
        Predicate::Or(parts) => parts.iter().fold(Vec::new(), |so_far, part| {
            union(&so_far, &matching_rows(part, columns, pruning, rows))
        }),
        Predicate::Term(id, _) => {
            let Some(column) = columns.get(id) else { return all() };
            let mut kept = Rows::new();
            for (span, statistics) in page_rows(&column.pages, rows).zip(&column.statistics) {
                let facts = OnePage(column.stats(statistics, &span));
                if pruning.may_match(PruningKind::Pages, predicate, &facts) {
                    push(&mut kept, span);
                }
            }
            kept
        }
    }
}

impl PagedColumn<'_> {
    fn stats(&self, page: &PageStatistics<'_>, rows: &Range<u64>) -> ColumnStats {
        let decode = self.leaf.decode;
        // A page of which every value is said to be null has no bounds.
        let is_null = !self.leaf.is_required && (page.is_null || page.nulls.is_some_and(|n| n >= rows.end - rows.start));
        if is_null {
            return ColumnStats::null();
        }
        let stats = ColumnStats {
            may_be_null: !self.leaf.is_required && page.nulls != Some(0),
            may_be_nan: decode.has_nan(),
            ..ColumnStats::unknown()
        };
        stats.with_bounds(decode.bound(page.lower), decode.bound(page.upper))
    }
}

/// A term has one column.
struct OnePage(ColumnStats);

impl Facts for OnePage {
    fn column(&self, _: i32) -> ColumnStats {
        self.0.clone()
    }
}

/// Appends a range that starts at the end of the last one or behind it.
fn push(rows: &mut Rows, span: Range<u64>) {
    match rows.last_mut() {
        _ if span.is_empty() => {}
        Some(last) if last.end >= span.start => last.end = last.end.max(span.end),
        _ => rows.push(span),
    }
}

/// Rows in both.
pub(super) fn intersection(a: &[Range<u64>], b: &[Range<u64>]) -> Rows {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut out = Rows::new();
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        push(&mut out, x.start.max(y.start)..x.end.min(y.end));
        if x.end < y.end {
            a.next();
        } else {
            b.next();
        }
    }
    out
}

/// Rows in either.
fn union(a: &[Range<u64>], b: &[Range<u64>]) -> Rows {
    let mut all: Vec<Range<u64>> = a.iter().chain(b).cloned().collect();
    all.sort_by_key(|r| r.start);
    let mut out = Rows::new();
    for span in all {
        push(&mut out, span);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows_of(bits: &[bool]) -> Rows {
        let mut rows = Rows::new();
        for (i, _) in bits.iter().enumerate().filter(|(_, b)| **b) {
            push(&mut rows, i as u64..i as u64 + 1);
        }
        rows
    }

    proptest! {
        #[test]
        fn ranges_combine_as_sets(pairs in proptest::collection::vec(any::<(bool, bool)>(), 0..40)) {
            let (a, b): (Vec<bool>, Vec<bool>) = pairs.iter().copied().unzip();
            let both: Vec<bool> = pairs.iter().map(|(a, b)| *a && *b).collect();
            let either: Vec<bool> = pairs.iter().map(|(a, b)| *a || *b).collect();
            prop_assert_eq!(intersection(&rows_of(&a), &rows_of(&b)), rows_of(&both));
            prop_assert_eq!(union(&rows_of(&a), &rows_of(&b)), rows_of(&either));
        }
    }
}
