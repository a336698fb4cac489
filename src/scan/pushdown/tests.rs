//! Which filters become which predicates.

use arrow::datatypes::{Field, Fields};
use datafusion::logical_expr::{cast, col, lit, try_cast};

use super::*;

fn column(id: i32, name: &str, data_type: DataType) -> Arc<Column> {
    let children = match &data_type {
        DataType::Struct(fields) => fields
            .iter()
            .zip(id * 10..)
            .map(|(f, id)| column(id, f.name(), f.data_type().clone()))
            .collect(),
        _ => Vec::new(),
    };
    Arc::new(Column {
        id,
        field: Arc::new(Field::new(name, data_type, true)),
        names: Vec::new(),
        initial_default: None,
        children,
    })
}

fn columns() -> Vec<Arc<Column>> {
    let utc = || Some("UTC".into());
    vec![
        column(1, "i", DataType::Int32),
        column(2, "l", DataType::Int64),
        column(3, "d", DataType::Decimal128(20, 4)),
        column(4, "x", DataType::Float64),
        column(5, "f", DataType::Float32),
        column(6, "s", DataType::Utf8),
        column(7, "b", DataType::Boolean),
        column(8, "date", DataType::Date32),
        column(9, "ts", DataType::Timestamp(TimeUnit::Microsecond, None)),
        column(10, "tz", DataType::Timestamp(TimeUnit::Microsecond, utc())),
        column(
            11,
            "st",
            DataType::Struct(Fields::from(vec![Field::new("a", DataType::Int32, true)])),
        ),
        column(2_147_483_540, "_row_id", DataType::Int64),
    ]
}

fn of(filter: &Expr) -> Predicate {
    predicate([filter], &columns())
}

fn term(id: i32, test: Test) -> Predicate {
    Predicate::Term(id, test)
}

fn compare(id: i32, comparison: Comparison, value: i128) -> Predicate {
    term(id, Test::Compare(comparison, Datum::Number(value)))
}

fn number(value: i128, precision: u8, scale: i8) -> Expr {
    lit(ScalarValue::Decimal128(Some(value), precision, scale))
}

#[test]
fn comparisons_and_their_mirror_images() {
    assert_eq!(of(&col("i").lt(lit(5i32))), compare(1, Comparison::Lt, 5));
    assert_eq!(of(&lit(5i32).lt(col("i"))), compare(1, Comparison::Gt, 5));
    assert_eq!(of(&!col("i").lt(lit(5i32))), compare(1, Comparison::GtEq, 5));
    assert_eq!(
        of(&col("s").eq(lit("ab"))),
        term(6, Test::Compare(Comparison::Eq, Datum::Bytes(b"ab".to_vec())))
    );
    assert_eq!(of(&col("b")), term(7, Test::Compare(Comparison::Eq, Datum::Boolean(true))));
    assert_eq!(of(&!col("b")), term(7, Test::Compare(Comparison::Eq, Datum::Boolean(false))));
    assert_eq!(of(&col("i").is_null()), term(1, Test::IsNull));
    assert_eq!(of(&!col("i").is_null()), term(1, Test::NotNull));
    assert_eq!(of(&col("i").eq(lit(ScalarValue::Int32(None)))), Predicate::False);
}

#[test]
fn what_cannot_be_said_is_left_out() {
    let odd = (col("i") % lit(2i32)).eq(lit(1i32));
    assert_eq!(of(&odd), Predicate::True);
    assert_eq!(of(&odd.clone().and(col("i").eq(lit(5i32)))), compare(1, Comparison::Eq, 5));
    assert_eq!(of(&odd.clone().or(col("i").eq(lit(5i32)))), Predicate::True);
    assert_eq!(of(&!(odd.and(col("i").eq(lit(5i32))))), Predicate::True);
    assert_eq!(of(&col("i").eq(col("l"))), Predicate::True);
    assert_eq!(of(&col("nowhere").eq(lit(5i32))), Predicate::True);
    // A constant of another type than the column's: the engine would have cast one of them.
    assert_eq!(of(&col("i").eq(lit(5i64))), Predicate::True);
    // Columns that no file has as it says.
    assert_eq!(of(&col("_row_id").eq(lit(5i64))), Predicate::True);
}

#[test]
fn negation_goes_down_to_the_leaves() {
    let both = col("i").eq(lit(1i32)).and(col("l").gt(lit(2i64)));
    assert_eq!(
        of(&!both),
        Predicate::Or(vec![compare(1, Comparison::NotEq, 1), compare(2, Comparison::LtEq, 2)])
    );
    let between = col("i").between(lit(1i32), lit(3i32));
    assert_eq!(
        of(&between),
        Predicate::And(vec![compare(1, Comparison::GtEq, 1), compare(1, Comparison::LtEq, 3)])
    );
    assert_eq!(
        of(&!between),
        Predicate::Or(vec![compare(1, Comparison::Lt, 1), compare(1, Comparison::Gt, 3)])
    );
    assert_eq!(of(&col("i").eq(lit(1i32)).is_true()), compare(1, Comparison::Eq, 1));
    assert_eq!(of(&col("i").eq(lit(1i32)).is_not_true()), Predicate::True);
    assert_eq!(of(&!col("i").eq(lit(1i32)).is_not_true()), compare(1, Comparison::Eq, 1));
}

#[test]
fn lists_with_null() {
    let list = |negated| col("i").in_list(vec![lit(1i32), lit(ScalarValue::Int32(None))], negated);
    assert_eq!(of(&list(false)), term(1, Test::In(vec![Datum::Number(1)])));
    assert_eq!(of(&list(true)), Predicate::False);
    // NOT (i IN (1, NULL)) is never TRUE either.
    assert_eq!(of(&!list(false)), Predicate::False);
    assert_eq!(of(&!list(true)), term(1, Test::In(vec![Datum::Number(1)])));
    let plain = col("i").in_list(vec![lit(1i32), lit(2i32)], true);
    assert_eq!(of(&plain), term(1, Test::NotIn(vec![Datum::Number(1), Datum::Number(2)])));
}

/// B063
#[test]
fn a_constant_beyond_the_column_s_type_compares_in_the_wider_one() {
    let wide = cast(col("i"), DataType::Int64);
    let limit = 2_147_483_648i64;
    assert_eq!(of(&wide.clone().lt(lit(limit))), compare(1, Comparison::Lt, i128::from(limit)));
    assert_eq!(
        of(&wide.clone().gt(lit(-limit - 1))),
        compare(1, Comparison::Gt, -i128::from(limit) - 1)
    );
    assert_eq!(of(&wide.not_eq(lit(limit))), compare(1, Comparison::NotEq, i128::from(limit)));
}

/// B085
#[test]
fn a_cast_that_narrows_is_never_looked_through() {
    for (expr, to, literal) in [
        (col("d"), DataType::Decimal128(20, 2), number(123, 20, 2)),
        (col("d"), DataType::Decimal128(18, 4), number(123, 18, 4)),
        (col("l"), DataType::Int32, lit(5i32)),
        (col("x"), DataType::Float32, lit(5f32)),
        (col("x"), DataType::Int64, lit(5i64)),
        (col("l"), DataType::Float64, lit(5f64)),
        (col("ts"), DataType::Date32, lit(ScalarValue::Date32(Some(5)))),
        (
            col("ts"),
            DataType::Timestamp(TimeUnit::Millisecond, None),
            lit(ScalarValue::TimestampMillisecond(Some(5), None)),
        ),
        (col("i"), DataType::Utf8, lit("5")),
        (col("s"), DataType::Int32, lit(5i32)),
    ] {
        assert_eq!(
            of(&cast(expr.clone(), to.clone()).eq(literal.clone())),
            Predicate::True,
            "{expr} as {to}"
        );
        assert_eq!(
            of(&try_cast(expr.clone(), to.clone()).gt(literal)),
            Predicate::True,
            "{expr} as {to}"
        );
    }
}

#[test]
fn a_cast_that_widens_adjusts_the_comparison() {
    let wide = || cast(col("d"), DataType::Decimal128(22, 6));
    // 1.2345 in scale 6 is 1.2345 in scale 4
    assert_eq!(of(&wide().lt(number(1_234_500, 22, 6))), compare(3, Comparison::Lt, 12_345));
    // 1.234567 lies between 1.2345 and 1.2346
    for (filter, expected) in [
        (wide().lt(number(1_234_567, 22, 6)), compare(3, Comparison::LtEq, 12_345)),
        (wide().lt_eq(number(1_234_567, 22, 6)), compare(3, Comparison::LtEq, 12_345)),
        (wide().gt(number(1_234_567, 22, 6)), compare(3, Comparison::Gt, 12_345)),
        (wide().gt_eq(number(1_234_567, 22, 6)), compare(3, Comparison::Gt, 12_345)),
        (wide().gt_eq(number(-1_234_567, 22, 6)), compare(3, Comparison::Gt, -12_346)),
        (wide().eq(number(1_234_567, 22, 6)), Predicate::False),
        (wide().not_eq(number(1_234_567, 22, 6)), term(3, Test::NotNull)),
    ] {
        assert_eq!(of(&filter), expected, "{filter}");
    }
    let nanos = |v| lit(ScalarValue::TimestampNanosecond(Some(v), None));
    let in_nanos = cast(col("ts"), DataType::Timestamp(TimeUnit::Nanosecond, None));
    assert_eq!(of(&in_nanos.clone().gt(nanos(-1))), compare(9, Comparison::Gt, -1));
    assert_eq!(of(&in_nanos.eq(nanos(5_000))), compare(9, Comparison::Eq, 5));
    let midnight = cast(col("date"), DataType::Timestamp(TimeUnit::Microsecond, None));
    let noon = lit(ScalarValue::TimestampMicrosecond(Some(43_200_000_000), None));
    assert_eq!(of(&midnight.lt(noon)), compare(8, Comparison::LtEq, 0));
    let double = || cast(col("i"), DataType::Float64);
    assert_eq!(of(&double().gt(lit(1.5f64))), compare(1, Comparison::Gt, 1));
    assert_eq!(of(&double().lt_eq(lit(-1.5f64))), compare(1, Comparison::LtEq, -2));
    // 0 is greater than -0.0 in the engine's order.
    assert_eq!(of(&double().gt(lit(-0.0f64))), compare(1, Comparison::GtEq, 0));
    assert_eq!(of(&double().gt(lit(f64::NAN))), Predicate::True);
    // A null check under a cast is left out.
    assert_eq!(of(&double().is_null()), Predicate::True);
}

/// B042
#[test]
fn only_instants_move_between_zones() {
    let literal = |zone: &str| lit(ScalarValue::TimestampMicrosecond(Some(5), Some(zone.into())));
    let to = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let tokyo = "Asia/Tokyo";
    assert_eq!(of(&col("tz").eq(literal(tokyo))), compare(10, Comparison::Eq, 5));
    assert_eq!(
        of(&cast(col("tz"), to(Some(tokyo))).eq(literal(tokyo))),
        compare(10, Comparison::Eq, 5)
    );
    // Local time of a zone is no instant.
    assert_eq!(of(&cast(col("ts"), to(Some(tokyo))).eq(literal(tokyo))), Predicate::True);
    let local = lit(ScalarValue::TimestampMicrosecond(Some(5), None));
    assert_eq!(
        of(&cast(cast(col("tz"), to(Some(tokyo))), to(None)).eq(local.clone())),
        Predicate::True
    );
    assert_eq!(of(&cast(col("tz"), to(None)).eq(local)), compare(10, Comparison::Eq, 5));
}

/// B052
#[test]
fn nan_is_a_test_of_its_own() {
    assert_eq!(of(&col("x").eq(lit(f64::NAN))), term(4, Test::IsNan));
    assert_eq!(of(&col("x").gt(lit(f64::NAN))), term(4, Test::NotNull));
    let list = col("x").in_list(vec![lit(1f64), lit(f64::NAN)], false);
    assert_eq!(
        of(&list),
        Predicate::Or(vec![term(4, Test::In(vec![Datum::Float(1.0)])), term(4, Test::IsNan)])
    );
    assert_eq!(
        of(&cast(col("f"), DataType::Float64).lt(lit(0.1f64))),
        term(5, Test::Compare(Comparison::Lt, Datum::Float(0.1)))
    );
}

/// B045
#[test]
fn patterns() {
    let starts = |prefix: &str| term(6, Test::StartsWith(prefix.as_bytes().to_vec()));
    assert_eq!(of(&col("s").like(lit("abc%"))), starts("abc"));
    assert_eq!(of(&col("s").like(lit("abc%d"))), starts("abc"));
    assert_eq!(of(&col("s").like(lit("ab_%"))), starts("ab"));
    assert_eq!(of(&col("s").not_like(lit("abc%"))), term(6, Test::NotStartsWith(b"abc".to_vec())));
    assert_eq!(of(&col("s").not_like(lit("abc%d"))), Predicate::True);
    assert_eq!(of(&col("s").not_like(lit("abc_"))), Predicate::True);
    assert_eq!(of(&col("s").like(lit("ab\\%%"))), Predicate::True);
    assert_eq!(of(&col("s").ilike(lit("abc%"))), Predicate::True);
}

#[test]
fn a_long_chain_does_not_exhaust_the_stack() {
    let all = (0..20_000i32).map(|i| col("i").eq(lit(i))).reduce(Expr::or).unwrap();
    assert!(matches!(of(&all), Predicate::Or(parts) if parts.len() == 20_000));
    // Dropping such a chain recurses in the engine's own type.
    std::mem::forget(all);
    let mut deep = col("i").eq(lit(1i32));
    for _ in 0..200 {
        deep = Expr::Not(Box::new(deep));
    }
    assert_eq!(of(&deep), Predicate::True);
}
