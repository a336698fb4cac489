//! The plain meaning of tests on rows, and random ones, for property tests of everything that judges.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Comparison, Datum, Predicate, Test};

/// Order of two values as the engine compares decoded rows: floats by total order.
pub(crate) fn engine_order(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Float(a), Datum::Float(b)) => a.total_cmp(b),
        (a, b) => a.order(b).expect("values of one kind"),
    }
}

/// Whether a test is TRUE for a row.
pub(crate) fn is_true(test: &Test, row: Option<&Datum>) -> bool {
    let Some(row) = row else { return *test == Test::IsNull };
    match test {
        Test::IsNull => false,
        Test::NotNull => true,
        Test::IsNan => row.is_nan(),
        Test::NotNan => !row.is_nan(),
        Test::Compare(comparison, value) => {
            let order = engine_order(row, value);
            match comparison {
                Comparison::Eq => order == Ordering::Equal,
                Comparison::NotEq => order != Ordering::Equal,
                Comparison::Lt => order == Ordering::Less,
                Comparison::LtEq => order != Ordering::Greater,
                Comparison::Gt => order == Ordering::Greater,
                Comparison::GtEq => order != Ordering::Less,
            }
        }
        Test::In(values) => values.iter().any(|v| engine_order(row, v) == Ordering::Equal),
        Test::NotIn(values) => values.iter().all(|v| engine_order(row, v) != Ordering::Equal),
        Test::StartsWith(prefix) => matches!(row, Datum::Bytes(b) if b.starts_with(prefix)),
        Test::NotStartsWith(prefix) => !matches!(row, Datum::Bytes(b) if b.starts_with(prefix)),
    }
}

/// Whether a predicate on one column is TRUE for a row.
pub(crate) fn holds(predicate: &Predicate, row: Option<&Datum>) -> bool {
    match predicate {
        Predicate::True => true,
        Predicate::False => false,
        Predicate::And(parts) => parts.iter().all(|p| holds(p, row)),
        Predicate::Or(parts) => parts.iter().any(|p| holds(p, row)),
        Predicate::Term(_, test) => is_true(test, row),
    }
}

/// Predicates on column 1 with constants from `value`.
pub(crate) fn predicates(value: impl Strategy<Value = Datum> + Clone + 'static) -> impl Strategy<Value = Predicate> {
    let comparison = prop_oneof![
        Just(Comparison::Eq),
        Just(Comparison::NotEq),
        Just(Comparison::Lt),
        Just(Comparison::LtEq),
        Just(Comparison::Gt),
        Just(Comparison::GtEq),
    ];
    let prefix = value.clone().prop_map(|v| match v {
        Datum::Bytes(mut b) => {
            b.truncate(3);
            b
        }
        _ => vec![b'a'],
    });
    let list = || proptest::collection::vec(value.clone(), 0..4);
    let test = prop_oneof![
        6 => (comparison, value.clone()).prop_map(|(c, v)| Test::Compare(c, v)),
        1 => list().prop_map(Test::In),
        1 => list().prop_map(Test::NotIn),
        1 => prop_oneof![Just(Test::IsNull), Just(Test::NotNull), Just(Test::IsNan), Just(Test::NotNan)],
        1 => prefix.clone().prop_map(Test::StartsWith),
        1 => prefix.prop_map(Test::NotStartsWith),
    ];
    test.prop_map(|t| Predicate::Term(1, t)).prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..3).prop_map(Predicate::and),
            proptest::collection::vec(inner, 1..3).prop_map(Predicate::or),
        ]
    })
}
