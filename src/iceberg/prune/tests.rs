//! Partition projection against the plain meaning of predicates, and the examples that readers got wrong.

use bytes::Bytes;
use proptest::prelude::*;

use super::source::{datum, literal};
use super::*;
use crate::iceberg::manifest::FieldSummary;
use crate::iceberg::spec::{Literal, PartitionField, PartitionSpec, PrimitiveType, Transform};
use crate::table::reference::{holds, predicates};
use crate::table::{Comparison, Datum, Predicate, Test};

fn spec(transform: &Transform) -> PartitionSpec {
    PartitionSpec {
        spec_id: 0,
        fields: vec![PartitionField {
            source_id: 1,
            source_ids: vec![1],
            field_id: 1000,
            name: "p".to_owned(),
            transform: transform.clone(),
        }],
    }
}

fn projection(transform: &Transform, source: &PrimitiveType) -> PartitionProjection {
    PartitionProjection::new(&spec(transform), &SourceTypes::of(1, source.clone()))
}

fn eq(value: i128) -> Predicate {
    Predicate::Term(1, Test::Compare(Comparison::Eq, Datum::Number(value)))
}

fn compare(comparison: Comparison, value: i128) -> Predicate {
    Predicate::Term(1, Test::Compare(comparison, Datum::Number(value)))
}

#[test]
fn day_partitions_prune_timestamps() {
    const DAY: i128 = 86_400_000_000;
    let projection = projection(&Transform::Day, &PrimitiveType::Timestamp);
    let day = |d: i32| projection.of_values(&[Some(Literal::Int(d))]);
    assert!(eq(10 * DAY).may_match(&day(10)));
    assert!(eq(11 * DAY - 1).may_match(&day(10)));
    assert!(!eq(11 * DAY).may_match(&day(10)));
    assert!(!eq(10 * DAY - 1).may_match(&day(10)));
    assert!(compare(Comparison::Lt, 11 * DAY).must_match(&day(10)));
    assert!(!compare(Comparison::Lt, 11 * DAY - 1).must_match(&day(10)));
    assert!(compare(Comparison::GtEq, 10 * DAY).must_match(&day(10)));
}

/// B041: writers before Iceberg 0.11 truncated toward zero, so -1 ended up in partition 0.
#[test]
fn partitions_before_1970_are_kept_as_either_kind_of_writer_wrote_them() {
    let projection = projection(&Transform::Hour, &PrimitiveType::Timestamp);
    let hour = |h: i32| projection.of_values(&[Some(Literal::Int(h))]);
    for h in [-1, 0] {
        assert!(eq(-1).may_match(&hour(h)), "hour {h}");
    }
    assert!(!eq(-1).may_match(&hour(1)));
    assert!(!eq(-1).may_match(&hour(-2)));
}

#[test]
fn void_and_unknown_transforms_and_foreign_values_tell_nothing() {
    for transform in [Transform::Void, Transform::Unknown("zorder".to_owned())] {
        assert!(projection(&transform, &PrimitiveType::Int).is_empty());
    }
    let projection = projection(&Transform::Identity, &PrimitiveType::Int);
    assert!(eq(5).may_match(&projection.of_values(&[Some(Literal::String("x".to_owned()))])));
    assert!(eq(5).may_match(&projection.of_values(&[])));
    assert!(!eq(5).may_match(&projection.of_values(&[None])));
    assert!(Predicate::Term(1, Test::IsNull).must_match(&projection.of_values(&[None])));
}

/// B044
#[test]
fn a_uuid_is_looked_up_in_its_bucket() {
    let uuid = uuid::Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap();
    let projection = projection(&Transform::Bucket(16), &PrimitiveType::Uuid);
    let is_uuid = Predicate::Term(1, Test::Compare(Comparison::Eq, Datum::Bytes(uuid.as_bytes().to_vec())));
    for bucket in 0..16 {
        assert_eq!(
            is_uuid.may_match(&projection.of_values(&[Some(Literal::Int(bucket))])),
            bucket == 12
        );
    }
}

/// B045
#[test]
fn a_prefix_longer_than_the_width_is_not_cut() {
    let projection = projection(&Transform::Truncate(2), &PrimitiveType::String);
    let ab = projection.of_values(&[Some(Literal::String("ab".to_owned()))]);
    let not = |prefix: &str| Predicate::Term(1, Test::NotStartsWith(prefix.as_bytes().to_vec()));
    assert!(not("abc").may_match(&ab));
    assert!(!not("ab").may_match(&ab));
    assert!(!not("a").may_match(&ab));
}

#[test]
fn summaries_without_bounds_or_of_another_spec_tell_nothing() {
    let projection = projection(&Transform::Identity, &PrimitiveType::Long);
    let summary = |lower: Option<i64>, upper: Option<i64>| FieldSummary {
        contains_null: false,
        contains_nan: None,
        lower_bound: lower.map(|v| Bytes::copy_from_slice(&v.to_le_bytes())),
        upper_bound: upper.map(|v| Bytes::copy_from_slice(&v.to_le_bytes())),
    };
    assert!(eq(5).may_match(&projection.of_summaries(&[summary(None, None)])));
    assert!(eq(5).may_match(&projection.of_summaries(&[])));
    assert!(eq(5).may_match(&projection.of_summaries(&[summary(Some(5), Some(9))])));
    assert!(!eq(4).may_match(&projection.of_summaries(&[summary(Some(5), Some(9))])));
    assert!(!Predicate::Term(1, Test::IsNull).may_match(&projection.of_summaries(&[summary(None, None)])));
    // bounds that were written while the column was int
    let narrow = FieldSummary {
        lower_bound: Some(Bytes::copy_from_slice(&5i32.to_le_bytes())),
        upper_bound: Some(Bytes::copy_from_slice(&9i32.to_le_bytes())),
        ..summary(None, None)
    };
    assert!(!eq(4).may_match(&projection.of_summaries(std::slice::from_ref(&narrow))));
    assert!(eq(9).may_match(&projection.of_summaries(&[narrow])));
}

/// Values of a type, many of them near each other and at the ends of the range.
fn values(source: &PrimitiveType) -> BoxedStrategy<Literal> {
    use PrimitiveType as P;
    let int = || prop_oneof![4 => -40..40i32, 1 => any::<i32>(), 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
    let long = || prop_oneof![4 => -40..40i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    // around 1970 in hours of a few years, on and beside their borders
    let micros = || {
        prop_oneof![
            4 => (-20_000i64..20_000, -1..2i64).prop_map(|(hour, off)| hour * 3_600_000_000 + off),
            1 => -5_000_000_000..5_000_000_000i64,
            1 => -3_000_000_000_000_000_000..3_000_000_000_000_000_000i64,
        ]
    };
    let nanos = || {
        prop_oneof![
            4 => (-20_000i64..20_000, -1..2i64).prop_map(|(hour, off)| hour * 3_600_000_000_000 + off),
            1 => any::<i64>(),
        ]
    };
    let text = || proptest::collection::vec(prop_oneof![Just('a'), Just('b'), Just('é'), Just('🦀'), Just('\0')], 0..5);
    let bytes = |n: std::ops::Range<usize>| proptest::collection::vec(prop_oneof![Just(0u8), Just(b'a'), Just(0xff)], n);
    match source {
        P::Int => int().prop_map(Literal::Int).boxed(),
        P::Date => (-800_000..800_000i32).prop_map(Literal::Int).boxed(),
        P::Long => long().prop_map(Literal::Long).boxed(),
        P::Time => (0..86_400_000_000i64).prop_map(Literal::Long).boxed(),
        P::Timestamp | P::Timestamptz => micros().prop_map(Literal::Long).boxed(),
        P::TimestampNs | P::TimestamptzNs => nanos().prop_map(Literal::Long).boxed(),
        P::Decimal { .. } => long().prop_map(|v| Literal::Decimal(i128::from(v))).boxed(),
        P::String => text().prop_map(|c| Literal::String(c.into_iter().collect())).boxed(),
        P::Uuid => bytes(16..17).prop_map(|b| Literal::Uuid(b.try_into().unwrap())).boxed(),
        P::Fixed(n) => bytes(*n as usize..*n as usize + 1).prop_map(Literal::Binary).boxed(),
        P::Binary => bytes(0..5).prop_map(Literal::Binary).boxed(),
        P::Boolean => any::<bool>().prop_map(Literal::Boolean).boxed(),
        P::Double => prop_oneof![Just(-0.0), Just(0.0), Just(1.0), Just(f64::NAN), Just(-f64::NAN), Just(-2.5)]
            .prop_map(Literal::Double)
            .boxed(),
        other => panic!("no values of {other}"),
    }
}

fn cases() -> Vec<(Transform, PrimitiveType)> {
    use PrimitiveType as P;
    let types = [
        P::Boolean,
        P::Int,
        P::Long,
        P::Double,
        P::Decimal { precision: 20, scale: 2 },
        P::Date,
        P::Time,
        P::Timestamp,
        P::Timestamptz,
        P::TimestampNs,
        P::TimestamptzNs,
        P::String,
        P::Uuid,
        P::Fixed(3),
        P::Binary,
    ];
    let transforms = [
        Transform::Identity,
        Transform::Bucket(4),
        Transform::Bucket(1),
        Transform::Truncate(1),
        Transform::Truncate(2),
        Transform::Truncate(10),
        Transform::Truncate((1 << 31) - 1),
        Transform::Year,
        Transform::Month,
        Transform::Day,
        Transform::Hour,
        Transform::Void,
        Transform::Unknown("zorder".to_owned()),
    ];
    let pairs = transforms.iter().flat_map(|t| types.iter().map(move |p| (t.clone(), p.clone())));
    let known = |t: &Transform, p: &PrimitiveType| {
        matches!(t, Transform::Void | Transform::Unknown(_)) || t.result_type(&crate::iceberg::spec::Type::Primitive(p.clone())).is_some()
    };
    pairs.filter(|(t, p)| known(t, p)).collect()
}

/// What a writer that truncates toward zero makes of values before 1970.
fn toward_zero(transform: &Transform, floored: &Literal, value: &Literal, _: &PrimitiveType) -> Option<Literal> {
    let is_time = matches!(transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour);
    let (true, Literal::Int(ordinal)) = (is_time, floored) else {
        return None;
    };
    let before_1970 = match value {
        Literal::Int(days) => *days < 0 && *transform != Transform::Day,
        Literal::Long(units) => *units < 0,
        _ => false,
    };
    before_1970.then(|| Literal::Int(ordinal + 1))
}

type Case = (Transform, PrimitiveType, Vec<Option<Literal>>, Predicate);

fn one_case() -> impl Strategy<Value = Case> {
    let all = cases();
    (0..all.len()).prop_flat_map(move |i| {
        let (transform, source) = all[i].clone();
        let rows = proptest::collection::vec(proptest::option::weighted(0.9, values(&source)), 1..4);
        let constant = {
            let source = source.clone();
            values(&source).prop_map(move |v| datum(&source, &v).unwrap())
        };
        // `BoxedStrategy` is cheap to clone.
        let predicate = predicates(constant.boxed());
        (Just(transform), Just(source), rows, predicate)
    })
}

fn row(source: &PrimitiveType, value: &Option<Literal>) -> Option<Datum> {
    value.as_ref().map(|v| datum(source, v).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn a_partition_that_holds_a_matching_row_is_kept((transform, source, rows, predicate) in one_case()) {
        let projection = projection(&transform, &source);
        for value in &rows {
            let partition = value.as_ref().and_then(|v| transform.apply(&source, v));
            let mut spellings = vec![partition.clone()];
            if let (Some(floored), Some(value)) = (&partition, value) {
                spellings.extend(toward_zero(&transform, floored, value, &source).map(Some));
            }
            let datum = row(&source, value);
            for partition in spellings {
                let facts = projection.of_values(std::slice::from_ref(&partition));
                let holds = holds(&predicate, datum.as_ref());
                if holds {
                    prop_assert!(predicate.may_match(&facts), "{transform} of {source}: {predicate:?} prunes {value:?} in {partition:?}");
                }
                if predicate.must_match(&facts) {
                    prop_assert!(holds, "{transform} of {source}: {predicate:?} takes all of {partition:?}, but not {value:?}");
                }
            }
        }
    }

    #[test]
    fn a_manifest_that_holds_a_matching_row_is_kept((transform, source, rows, predicate) in one_case()) {
        let projection = projection(&transform, &source);
        let partitions: Vec<Option<Literal>> = rows.iter().map(|v| v.as_ref().and_then(|v| transform.apply(&source, v))).collect();
        let result = transform.result_type(&crate::iceberg::spec::Type::Primitive(source.clone()));
        let is_nan = |l: &Literal| matches!(l, Literal::Double(v) if v.is_nan());
        let of = result.unwrap_or(PrimitiveType::Int);
        let mut plain: Vec<&Literal> = partitions.iter().flatten().filter(|l| !is_nan(l)).collect();
        plain.sort_by(|a, b| datum(&of, a).unwrap().order(&datum(&of, b).unwrap()).unwrap());
        let bytes = |l: Option<&&Literal>| l.map(|l| Bytes::from(l.to_bytes(&of).unwrap()));
        let summary = FieldSummary {
            contains_null: partitions.iter().any(Option::is_none),
            contains_nan: Some(partitions.iter().flatten().any(is_nan)),
            lower_bound: bytes(plain.first()),
            upper_bound: bytes(plain.last()),
        };
        let facts = projection.of_summaries(&[summary]);
        let matching = rows.iter().filter(|v| holds(&predicate, row(&source, v).as_ref())).count();
        if matching > 0 {
            prop_assert!(predicate.may_match(&facts), "{transform} of {source}: {predicate:?} prunes {rows:?}");
        }
        if predicate.must_match(&facts) {
            prop_assert_eq!(matching, rows.len());
        }
    }
}

#[test]
fn values_and_constants_convert_both_ways() {
    for (source, value) in [
        (PrimitiveType::Int, Literal::Int(-7)),
        (PrimitiveType::Long, Literal::Long(1 << 40)),
        (PrimitiveType::Date, Literal::Int(17_486)),
        (PrimitiveType::Decimal { precision: 9, scale: 2 }, Literal::Decimal(1420)),
        (PrimitiveType::String, Literal::String("é".to_owned())),
        (PrimitiveType::Uuid, Literal::Uuid([7; 16])),
        (PrimitiveType::Binary, Literal::Binary(vec![0, 255])),
    ] {
        assert_eq!(literal(&source, &datum(&source, &value).unwrap()), Some(value));
    }
    // A constant beyond the column's type has no value of it.
    assert_eq!(literal(&PrimitiveType::Int, &Datum::Number(1 << 40)), None);
    assert_eq!(datum(&PrimitiveType::Date, &Literal::Long(0)), None);
}

#[test]
fn equality_prunes_partitions_of_every_transform() {
    // For each transform a value and one of another partition.
    let day = 86_400_000_000;
    for (transform, a, b) in [
        (Transform::Identity, 5, 6),
        (Transform::Bucket(16), 5, 6),
        (Transform::Truncate(10), 5, 10),
        (Transform::Year, 400 * day, 800 * day),
        (Transform::Month, 40 * day, 80 * day),
        (Transform::Day, day, 2 * day),
        (Transform::Hour, day, day + 3_600_000_000),
    ] {
        let is_time = !matches!(transform, Transform::Identity | Transform::Bucket(_) | Transform::Truncate(_));
        let source = if is_time { PrimitiveType::Timestamp } else { PrimitiveType::Long };
        let projection = projection(&transform, &source);
        let facts = projection.of_values(&[transform.apply(&source, &Literal::Long(a))]);
        assert!(eq(i128::from(a)).may_match(&facts), "{transform}");
        assert!(!eq(i128::from(b)).may_match(&facts), "{transform}");
    }
}
