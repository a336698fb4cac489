//! Conditions that files, row groups and pages can be pruned with, and how they are judged against
//! what is known of the rows.
//!
//! Invariants:
//! - A predicate is inclusive: every row for which the query's condition is TRUE satisfies it. What
//!   cannot be expressed is left out, which is [`Predicate::True`].
//! - [`Predicate::may_match`] is false only when no row can satisfy the predicate,
//!   [`Predicate::must_match`] true only when every row does. What is unknown decides nothing.
//! - Floats are judged so that both views of zero hold (`-0.0` equal to or less than `0.0`) and NaN
//!   may be on either side of everything: the engine compares by total order, bounds leave NaN out.

use std::cmp::Ordering;

use super::{ColumnStats, Facts};

/// A value that is neither null nor of a nested type, in the domain that columns compare in.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    Boolean(bool),
    /// An exact number in the column's own unit: int and long; days of a date; micro- or
    /// nanoseconds of times and timestamps; the unscaled value of a decimal.
    Number(i128),
    /// float and double.
    Float(f64),
    /// Text in UTF-8, uuid, fixed and binary; ordered by unsigned byte.
    Bytes(Vec<u8>),
}

impl Datum {
    /// Order of two values of one column; zeros are equal. `None` for NaN and for values of different kinds.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Whether this is a float zero of either sign.
    fn is_float_zero(&self) -> bool {
        matches!(self, Self::Float(v) if *v == 0.0)
    }

    /// Whether this is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Self::Float(v) if v.is_nan())
    }
}

/// A comparison with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl Comparison {
    /// The comparison that is true where this one is false, nulls aside.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Eq => Self::NotEq,
            Self::NotEq => Self::Eq,
            Self::Lt => Self::GtEq,
            Self::LtEq => Self::Gt,
            Self::Gt => Self::LtEq,
            Self::GtEq => Self::Lt,
        }
    }

    /// The comparison with its sides exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            other => other,
        }
    }
}

/// What is asked of one column. All but [`Test::IsNull`] are not TRUE for null.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    Compare(Comparison, Datum),
    In(Vec<Datum>),
    NotIn(Vec<Datum>),
    IsNull,
    NotNull,
    IsNan,
    /// Neither NaN nor null.
    NotNan,
    StartsWith(Vec<u8>),
    NotStartsWith(Vec<u8>),
}

/// A tree of tests on columns by field id.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Predicate {
    /// No condition.
    #[default]
    True,
    /// No row satisfies the condition.
    False,
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    /// Field id of a top-level or nested struct field, and what is asked of it.
    Term(i32, Test),
}

impl Predicate {
    /// All of `parts`.
    pub fn and(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::True => {}
                Self::False => return Self::False,
                Self::And(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::True,
            1 => kept.swap_remove(0),
            _ => Self::And(kept),
        }
    }

    /// Any of `parts`.
    pub fn or(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::False => {}
                Self::True => return Self::True,
                Self::Or(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::False,
            1 => kept.swap_remove(0),
            _ => Self::Or(kept),
        }
    }

    /// Field ids of the columns, ascending, each once.
    pub fn field_ids(&self) -> Vec<i32> {
        let mut ids = Vec::new();
        self.visit(&mut |id, _| ids.push(id));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Calls `f` with every term.
    pub fn visit(&self, f: &mut dyn FnMut(i32, &Test)) {
        match self {
            Self::True | Self::False => {}
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|p| p.visit(f)),
            Self::Term(id, test) => f(*id, test),
        }
    }

    /// False when no row that `facts` describe can satisfy the predicate.
    pub fn may_match(&self, facts: &dyn Facts) -> bool {
        match self {
            Self::True => true,
            Self::False => false,
            Self::And(parts) => parts.iter().all(|p| p.may_match(facts)),
            Self::Or(parts) => parts.iter().any(|p| p.may_match(facts)),
            Self::Term(id, test) => test.may_match(&facts.column(*id), &|value| facts.may_contain(*id, value)),
        }
    }

    /// True when every row that `facts` describe satisfies the predicate.
    pub fn must_match(&self, facts: &dyn Facts) -> bool {
        match self {
            Self::True => true,
            Self::False => false,
            Self::And(parts) => parts.iter().all(|p| p.must_match(facts)),
            Self::Or(parts) => parts.iter().any(|p| p.must_match(facts)),
            Self::Term(id, test) => test.must_match(&facts.column(*id), &|value| facts.may_contain(*id, value)),
        }
    }
}

impl Test {
    fn may_match(&self, stats: &ColumnStats, may_contain: &dyn Fn(&Datum) -> bool) -> bool {
        match self {
            Self::IsNull => stats.may_be_null,
            Self::NotNull => stats.may_be_value || stats.may_be_nan,
            Self::IsNan => stats.may_be_nan,
            Self::NotNan => stats.may_be_value,
            Self::Compare(comparison, value) => may_compare(*comparison, value, stats, may_contain),
            Self::In(values) => values.iter().any(|v| may_compare(Comparison::Eq, v, stats, may_contain)),
            Self::NotIn(values) => {
                stats.may_be_nan || (stats.may_be_value && stats.only_value().is_none_or(|only| !values.iter().any(|v| same(v, only))))
            }
            Self::StartsWith(prefix) => stats.may_be_value && may_start_with(prefix, stats),
            Self::NotStartsWith(prefix) => stats.may_be_nan || (stats.may_be_value && !all_start_with(prefix, stats)),
        }
    }

    fn must_match(&self, stats: &ColumnStats, may_contain: &dyn Fn(&Datum) -> bool) -> bool {
        if let Self::IsNull = self {
            return !stats.may_be_value && !stats.may_be_nan;
        }
        if stats.may_be_null {
            return false;
        }
        match self {
            Self::IsNull => false,
            Self::NotNull => true,
            Self::IsNan => !stats.may_be_value,
            Self::NotNan => !stats.may_be_nan,
            // How NaN compares depends on its sign, so nothing is certain of it.
            _ if stats.may_be_nan => false,
            _ if !stats.may_be_value => true,
            Self::Compare(comparison, value) => must_compare(*comparison, value, stats, may_contain),
            Self::In(values) => stats.only_value().is_some_and(|only| values.iter().any(|v| same(v, only))),
            Self::NotIn(values) => values.iter().all(|v| must_compare(Comparison::NotEq, v, stats, may_contain)),
            Self::StartsWith(prefix) => all_start_with(prefix, stats),
            Self::NotStartsWith(prefix) => !may_start_with(prefix, stats),
        }
    }
}

/// The same value beyond doubt: zeros are not, since their signs may differ.
fn same(a: &Datum, b: &Datum) -> bool {
    a.order(b) == Some(Ordering::Equal) && !a.is_float_zero()
}

fn may_compare(comparison: Comparison, value: &Datum, stats: &ColumnStats, may_contain: &dyn Fn(&Datum) -> bool) -> bool {
    if comparison == Comparison::Eq {
        return if value.is_nan() {
            stats.may_be_nan
        } else {
            stats.may_be_value && stats.range_contains(value) && may_contain(value)
        };
    }
    if stats.may_be_nan || value.is_nan() {
        return stats.may_be_nan || stats.may_be_value;
    }
    if !stats.may_be_value {
        return false;
    }
    // -0.0 may be less than 0.0
    let strict = !value.is_float_zero();
    let below = |bound: &Option<Datum>, strict: bool| match bound.as_ref().and_then(|b| b.order(value)) {
        Some(Ordering::Greater) => false,
        Some(Ordering::Equal) => !strict,
        _ => true,
    };
    let above = |bound: &Option<Datum>, strict: bool| match bound.as_ref().and_then(|b| b.order(value)) {
        Some(Ordering::Less) => false,
        Some(Ordering::Equal) => !strict,
        _ => true,
    };
    match comparison {
        Comparison::NotEq => stats.only_value().is_none_or(|only| !same(only, value)),
        _ if stats.two_orders => true,
        Comparison::Lt => below(&stats.lower, strict),
        Comparison::LtEq => below(&stats.lower, false),
        Comparison::Gt => above(&stats.upper, strict),
        Comparison::GtEq => above(&stats.upper, false),
        Comparison::Eq => true,
    }
}

/// For rows that are neither null nor NaN.
fn must_compare(comparison: Comparison, value: &Datum, stats: &ColumnStats, may_contain: &dyn Fn(&Datum) -> bool) -> bool {
    if value.is_nan() {
        return false;
    }
    let order = |bound: &Option<Datum>| bound.as_ref().and_then(|b| b.order(value));
    let or_equal = !value.is_float_zero();
    match comparison {
        Comparison::Eq => stats.only_value().is_some_and(|only| same(only, value)),
        Comparison::NotEq => !stats.range_contains(value) || !may_contain(value),
        _ if stats.two_orders => false,
        Comparison::Lt => order(&stats.upper) == Some(Ordering::Less),
        Comparison::Gt => order(&stats.lower) == Some(Ordering::Greater),
        Comparison::LtEq => match order(&stats.upper) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => or_equal,
            _ => false,
        },
        Comparison::GtEq => match order(&stats.lower) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => or_equal,
            _ => false,
        },
    }
}

/// False when no value between the bounds starts with `prefix`.
fn may_start_with(prefix: &[u8], stats: &ColumnStats) -> bool {
    if stats.two_orders {
        return true;
    }
    let from_below = match &stats.lower {
        Some(Datum::Bytes(lower)) => {
            let common = lower.len().min(prefix.len());
            lower.get(..common) <= prefix.get(..common)
        }
        _ => true,
    };
    let from_above = match &stats.upper {
        Some(Datum::Bytes(upper)) => upper.as_slice() >= prefix,
        _ => true,
    };
    from_below && from_above
}

/// True when every value between the bounds starts with `prefix`.
fn all_start_with(prefix: &[u8], stats: &ColumnStats) -> bool {
    let starts = |bound: &Option<Datum>| matches!(bound, Some(Datum::Bytes(b)) if b.starts_with(prefix));
    !stats.two_orders && starts(&stats.lower) && starts(&stats.upper)
}

#[cfg(test)]
#[path = "predicate_tests.rs"]
mod tests;
