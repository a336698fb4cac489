//! Judging predicates against what is known of rows: examples, and random rows with random predicates.

use proptest::prelude::*;

use super::*;
use crate::table::reference::{engine_order, holds, predicates};

struct One(ColumnStats);

impl Facts for One {
    fn column(&self, id: i32) -> ColumnStats {
        if id == 1 { self.0.clone() } else { ColumnStats::unknown() }
    }
}

fn term(comparison: Comparison, value: i128) -> Predicate {
    Predicate::Term(1, Test::Compare(comparison, Datum::Number(value)))
}

fn between(lower: i128, upper: i128) -> ColumnStats {
    let stats = ColumnStats {
        may_be_null: false,
        may_be_nan: false,
        ..ColumnStats::unknown()
    };
    stats.with_bounds(Some(Datum::Number(lower)), Some(Datum::Number(upper)))
}

#[test]
fn unknown_decides_nothing() {
    let unknown = One(ColumnStats::unknown());
    for comparison in [Comparison::Eq, Comparison::NotEq, Comparison::Lt, Comparison::GtEq] {
        assert!(term(comparison, 5).may_match(&unknown));
        assert!(!term(comparison, 5).must_match(&unknown));
    }
    assert!(Predicate::Term(1, Test::IsNull).may_match(&unknown));
    assert!(!Predicate::Term(1, Test::NotNull).must_match(&unknown));
}

#[test]
fn bounds_decide_comparisons() {
    let facts = One(between(3, 7));
    for (comparison, value, may, must) in [
        (Comparison::Eq, 2, false, false),
        (Comparison::Eq, 3, true, false),
        (Comparison::Eq, 7, true, false),
        (Comparison::Eq, 8, false, false),
        (Comparison::NotEq, 8, true, true),
        (Comparison::NotEq, 5, true, false),
        (Comparison::Lt, 3, false, false),
        (Comparison::Lt, 4, true, false),
        (Comparison::Lt, 8, true, true),
        (Comparison::LtEq, 2, false, false),
        (Comparison::LtEq, 7, true, true),
        (Comparison::Gt, 7, false, false),
        (Comparison::Gt, 2, true, true),
        (Comparison::GtEq, 7, true, false),
        (Comparison::GtEq, 3, true, true),
    ] {
        assert_eq!(term(comparison, value).may_match(&facts), may, "{comparison:?} {value}");
        assert_eq!(term(comparison, value).must_match(&facts), must, "{comparison:?} {value}");
    }
    let one = One(between(5, 5));
    assert!(!term(Comparison::NotEq, 5).may_match(&one));
    assert!(term(Comparison::Eq, 5).must_match(&one));
}

/// B055
#[test]
fn what_may_hold_null_or_nan_never_matches_as_a_whole() {
    let with_null = One(ColumnStats {
        may_be_null: true,
        ..between(5, 5)
    });
    // x: null, 5
    for test in [term(Comparison::NotEq, 6), term(Comparison::Eq, 5), term(Comparison::Gt, 0)] {
        assert!(test.may_match(&with_null));
        assert!(!test.must_match(&with_null), "{test:?}");
    }
    assert!(!term(Comparison::NotEq, 5).may_match(&with_null));
    assert!(!Predicate::Term(1, Test::NotIn(vec![Datum::Number(9)])).must_match(&with_null));
    assert!(!Predicate::Term(1, Test::NotNull).must_match(&with_null));
    // x: NaN, 5
    let float = |comparison, value| Predicate::Term(1, Test::Compare(comparison, Datum::Float(value)));
    let with_nan = One(ColumnStats {
        may_be_null: false,
        ..ColumnStats::unknown()
    }
    .with_bounds(Some(Datum::Float(5.0)), Some(Datum::Float(5.0))));
    for test in [
        float(Comparison::NotEq, 6.0),
        float(Comparison::Eq, 5.0),
        float(Comparison::Lt, 9.0),
    ] {
        assert!(!test.must_match(&with_nan), "{test:?}");
    }
}

/// B052
#[test]
fn bounds_that_leave_nan_out_do_not_prune_it() {
    let stats = ColumnStats {
        may_be_null: false,
        ..ColumnStats::unknown()
    };
    let with_nan = One(stats.with_bounds(Some(Datum::Float(3.0)), Some(Datum::Float(3.0))));
    let float = |comparison| Predicate::Term(1, Test::Compare(comparison, Datum::Float(5.0)));
    assert!(float(Comparison::Gt).may_match(&with_nan));
    assert!(float(Comparison::GtEq).may_match(&with_nan));
    assert!(float(Comparison::NotEq).may_match(&with_nan));
    assert!(Predicate::Term(1, Test::IsNan).may_match(&with_nan));
    // NaN equals no number.
    assert!(!float(Comparison::Eq).may_match(&with_nan));
}

/// B045
#[test]
fn not_starting_with_a_prefix_needs_both_bounds_to_have_it() {
    let bytes = |text: &str| Some(Datum::Bytes(text.as_bytes().to_vec()));
    let range = |lower, upper| {
        let stats = ColumnStats {
            may_be_nan: false,
            ..ColumnStats::unknown()
        };
        One(stats.with_bounds(bytes(lower), bytes(upper)))
    };
    let not = |prefix: &str| Predicate::Term(1, Test::NotStartsWith(prefix.as_bytes().to_vec()));
    let starts = |prefix: &str| Predicate::Term(1, Test::StartsWith(prefix.as_bytes().to_vec()));
    assert!(!not("ab").may_match(&range("ab", "abz")));
    assert!(not("abc").may_match(&range("ab", "abz")));
    assert!(not("ab").may_match(&range("ab", "ac")));
    assert!(starts("abc").may_match(&range("ab", "ac")));
    assert!(!starts("b").may_match(&range("ab", "ac")));
    assert!(!starts("aa").may_match(&range("ab", "ac")));
    assert!(!starts("abd").may_match(&range("ab", "abc")));
}

#[test]
fn trees_are_simplified() {
    let a = term(Comparison::Eq, 1);
    assert_eq!(Predicate::and([]), Predicate::True);
    assert_eq!(Predicate::or([]), Predicate::False);
    assert_eq!(Predicate::and([Predicate::True, a.clone()]), a);
    assert_eq!(Predicate::or([Predicate::True, a.clone()]), Predicate::True);
    assert_eq!(Predicate::and([Predicate::False, a.clone()]), Predicate::False);
    assert_eq!(Predicate::or([a, Predicate::Term(7, Test::IsNull)]).field_ids(), [1, 7]);
}

fn numbers() -> impl Strategy<Value = Datum> + Clone {
    (-4i128..5).prop_map(Datum::Number)
}

fn floats() -> impl Strategy<Value = Datum> + Clone {
    prop_oneof![
        Just(f64::NEG_INFINITY),
        Just(-1.5),
        Just(-0.0),
        Just(0.0),
        Just(1.0),
        Just(f64::INFINITY),
        Just(f64::NAN),
        Just(-f64::NAN),
    ]
    .prop_map(Datum::Float)
}

fn texts() -> impl Strategy<Value = Datum> + Clone {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)], 0..4).prop_map(Datum::Bytes)
}

fn uuids() -> impl Strategy<Value = Datum> + Clone {
    (any::<u8>(), any::<u8>()).prop_map(|(a, b)| {
        let mut bytes = vec![0; 16];
        (bytes[0], bytes[8]) = (a, b);
        Datum::Bytes(bytes)
    })
}

/// Statistics of rows as a careful writer gives them; `loose` takes parts away.
fn stats_of(rows: &[Option<Datum>], loose: u8, signed: bool, order: &dyn Fn(&Datum, &Datum) -> Ordering) -> ColumnStats {
    let plain: Vec<&Datum> = rows.iter().flatten().filter(|d| !d.is_nan()).collect();
    let lower = plain.iter().min_by(|a, b| order(a, b)).map(|d| (**d).clone());
    let upper = plain.iter().max_by(|a, b| order(a, b)).map(|d| (**d).clone());
    let stats = ColumnStats {
        may_be_null: loose & 1 != 0 || rows.iter().any(Option::is_none),
        may_be_nan: loose & 2 != 0 || rows.iter().flatten().any(Datum::is_nan),
        may_be_value: loose & 4 != 0 || !plain.is_empty(),
        two_orders: signed,
        ..ColumnStats::unknown()
    };
    stats.with_bounds(lower.filter(|_| loose & 8 == 0), upper.filter(|_| loose & 16 == 0))
}

fn check(rows: &[Option<Datum>], predicate: &Predicate, stats: &ColumnStats) -> Result<(), TestCaseError> {
    let facts = One(stats.clone());
    let matching = rows.iter().filter(|row| holds(predicate, row.as_ref())).count();
    if matching > 0 {
        prop_assert!(predicate.may_match(&facts), "{predicate:?} prunes {rows:?} by {stats:?}");
    }
    if predicate.must_match(&facts) {
        prop_assert_eq!(
            matching,
            rows.len(),
            "{:?} is said to take all of {:?} by {:?}",
            predicate,
            rows,
            stats
        );
    }
    Ok(())
}

fn rows_of(value: impl Strategy<Value = Datum>) -> impl Strategy<Value = Vec<Option<Datum>>> {
    proptest::collection::vec(proptest::option::weighted(0.9, value), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn numbers_are_judged_right(rows in rows_of(numbers()), predicate in predicates(numbers()), loose: u8) {
        check(&rows, &predicate, &stats_of(&rows, loose, false, &engine_order))?;
    }

    #[test]
    fn floats_are_judged_right(rows in rows_of(floats()), predicate in predicates(floats()), loose: u8) {
        check(&rows, &predicate, &stats_of(&rows, loose, false, &engine_order))?;
        // Writers that take both zeros for one may give either as bound.
        let ieee = |a: &Datum, b: &Datum| a.order(b).unwrap_or(Ordering::Equal);
        check(&rows, &predicate, &stats_of(&rows, loose, false, &ieee))?;
    }

    #[test]
    fn texts_are_judged_right(rows in rows_of(texts()), predicate in predicates(texts()), loose: u8) {
        check(&rows, &predicate, &stats_of(&rows, loose, false, &engine_order))?;
    }

    #[test]
    fn uuids_are_judged_right_in_both_orders(rows in rows_of(uuids()), predicate in predicates(uuids()), loose: u8) {
        check(&rows, &predicate, &stats_of(&rows, loose, true, &engine_order))?;
        let signed = |a: &Datum, b: &Datum| {
            let halves = |d: &Datum| match d {
                Datum::Bytes(b) => (i64::from_be_bytes(b[..8].try_into().unwrap()), i64::from_be_bytes(b[8..].try_into().unwrap())),
                _ => unreachable!(),
            };
            halves(a).cmp(&halves(b))
        };
        check(&rows, &predicate, &stats_of(&rows, loose, true, &signed))?;
    }

    #[test]
    fn two_sources_together_still_judge_right(rows in rows_of(numbers()), predicate in predicates(numbers()), a: u8, b: u8) {
        let stats = stats_of(&rows, a, false, &engine_order).and(stats_of(&rows, b, false, &engine_order));
        check(&rows, &predicate, &stats)?;
    }
}
