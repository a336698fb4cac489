//! A table as a set of rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::table::{Comparison, Datum, Predicate, Test};

/// A row; the name is its identity, whatever file it is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::iceberg::commit) struct Row {
    pub(in crate::iceberg::commit) name: String,
    pub(in crate::iceberg::commit) p: i32,
    pub(in crate::iceberg::commit) x: i64,
}

/// The rows of a partition whose `x` lies between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::iceberg::commit) struct Region {
    pub(in crate::iceberg::commit) p: i32,
    pub(in crate::iceberg::commit) low: i64,
    pub(in crate::iceberg::commit) high: i64,
}

impl Region {
    /// All of a partition.
    pub(in crate::iceberg::commit) fn partition(p: i32) -> Self {
        Self {
            p,
            low: i64::MIN,
            high: i64::MAX,
        }
    }

    pub(in crate::iceberg::commit) fn has(&self, row: &Row) -> bool {
        row.p == self.p && (self.low..=self.high).contains(&row.x)
    }

    /// Whether rows of a partition with `x` between two numbers may be inside.
    pub(in crate::iceberg::commit) fn meets(&self, p: i32, (low, high): (i64, i64)) -> bool {
        p == self.p && low <= self.high && self.low <= high
    }

    pub(in crate::iceberg::commit) fn predicate(&self) -> Predicate {
        let compare = |id, comparison, value: i128| Predicate::Term(id, Test::Compare(comparison, Datum::Number(value)));
        let mut parts = vec![compare(1, Comparison::Eq, i128::from(self.p))];
        if *self != Self::partition(self.p) {
            parts.push(compare(2, Comparison::GtEq, i128::from(self.low)));
            parts.push(compare(2, Comparison::LtEq, i128::from(self.high)));
        }
        Predicate::and(parts)
    }
}

/// What an operation does to the rows, at the time when it is committed.
#[derive(Debug, Clone, Default)]
pub(in crate::iceberg::commit) struct Effect {
    /// Rows by name.
    pub(in crate::iceberg::commit) removes: BTreeSet<String>,
    /// All rows inside.
    pub(in crate::iceberg::commit) clears: Option<Region>,
    pub(in crate::iceberg::commit) adds: Vec<Row>,
    /// Rows that come of others, by the name of the other: of one that is gone nothing comes.
    pub(in crate::iceberg::commit) updates: Vec<(String, Row)>,
}

/// The rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::iceberg::commit) struct Model(pub(in crate::iceberg::commit) BTreeMap<String, Row>);

impl Model {
    pub(in crate::iceberg::commit) fn apply(&mut self, effect: &Effect) {
        let updates: Vec<&Row> = effect
            .updates
            .iter()
            .filter(|(of, _)| self.0.contains_key(of))
            .map(|(_, row)| row)
            .collect();
        self.0
            .retain(|name, row| !effect.removes.contains(name) && !effect.clears.is_some_and(|region| region.has(row)));
        self.0
            .extend(effect.adds.iter().chain(updates).map(|row| (row.name.clone(), row.clone())));
    }
}
