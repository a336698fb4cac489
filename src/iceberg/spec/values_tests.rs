//! Single values against the examples of the spec (appendices B and D) and bytes computed by hand.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{PrimitiveType, Type};
use super::*;
use crate::error::ErrorKind;

fn t(name: &str) -> Type {
    Type::from_name(name).unwrap()
}

fn p(name: &str) -> PrimitiveType {
    name.parse().unwrap()
}

/// The table "JSON single-value serialization", each row read and written.
#[test]
fn json_examples_of_the_spec() {
    let uuid = [
        0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd, 0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7,
    ];
    for (name, value, literal) in [
        ("boolean", json!(true), Literal::Boolean(true)),
        ("int", json!(34), Literal::Int(34)),
        ("long", json!(34), Literal::Long(34)),
        ("float", json!(1.0), Literal::Float(1.0)),
        ("double", json!(1.0), Literal::Double(1.0)),
        ("decimal(4,2)", json!("14.20"), Literal::Decimal(1420)),
        ("date", json!("2017-11-16"), Literal::Int(17_486)),
        ("time", json!("22:31:08.123456"), Literal::Long(81_068_123_456)),
        (
            "timestamp",
            json!("2017-11-16T22:31:08.123456"),
            Literal::Long(1_510_871_468_123_456),
        ),
        (
            "timestamptz",
            json!("2017-11-16T22:31:08.123456+00:00"),
            Literal::Long(1_510_871_468_123_456),
        ),
        (
            "timestamp_ns",
            json!("2017-11-16T22:31:08.123456789"),
            Literal::Long(1_510_871_468_123_456_789),
        ),
        (
            "timestamptz_ns",
            json!("2017-11-16T22:31:08.123456789+00:00"),
            Literal::Long(1_510_871_468_123_456_789),
        ),
        ("string", json!("iceberg"), Literal::String("iceberg".to_owned())),
        ("uuid", json!("f79c3e09-677c-4bbd-a479-3f349cb785e7"), Literal::Uuid(uuid)),
        ("fixed[4]", json!("000102ff"), Literal::Binary(vec![0, 1, 2, 255])),
        ("binary", json!("000102ff"), Literal::Binary(vec![0, 1, 2, 255])),
    ] {
        assert_eq!(Literal::from_json(&t(name), &value).unwrap(), literal, "{name}");
        assert_eq!(literal.to_json(&t(name)).unwrap(), value, "{name}");
    }
}

#[test]
fn json_values_that_break_their_type_are_refused() {
    for (name, value) in [
        ("boolean", json!("true")),
        ("int", json!(2_147_483_648_i64)),
        ("int", json!(1.0)),
        ("int", json!("1")),
        ("long", json!(9_223_372_036_854_775_808_u64)),
        ("float", json!("1.0")),
        ("float", json!(1e39)),
        ("decimal(4,2)", json!("14.2")),
        ("decimal(4,2)", json!("114.20")),
        ("decimal(4,2)", json!(14.20)),
        ("decimal(4,2)", json!("")),
        ("decimal(4,2)", json!("-.")),
        ("decimal(4,2)", json!("1 .20")),
        ("decimal(4,2)", json!("1e9999999999")),
        ("decimal(38,0)", json!("2E+20")),
        ("date", json!("2017-02-29")),
        ("date", json!(17_486)),
        ("time", json!("22:31:08.1234567")),
        ("timestamp", json!("2017-11-16T22:31:08+00:00")),
        ("timestamptz", json!("2017-11-16T22:31:08-08:00")),
        ("timestamp_ns", json!("2300-01-01T00:00:00")),
        ("uuid", json!("f79c3e09677c4bbda4793f349cb785e7")),
        ("uuid", json!("g79c3e09-677c-4bbd-a479-3f349cb785e7")),
        ("fixed[4]", json!("000102")),
        ("binary", json!("000")),
        ("binary", json!("0x01")),
        ("unknown", json!(1)),
        ("string", Value::Null),
    ] {
        assert_eq!(
            Literal::from_json(&t(name), &value).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{name} {value}"
        );
    }
}

#[test]
fn decimals_with_sign_and_exponent() {
    for (name, text, unscaled) in [
        ("decimal(9,2)", "-1.50", -150),
        ("decimal(9,2)", "-0.05", -5),
        ("decimal(9,2)", "1.5E-1", 15),
        ("decimal(9,2)", "+1.500E1", 1_500),
        ("decimal(9,0)", "-7", -7),
        ("decimal(3,3)", "0.001", 1),
        ("decimal(38,0)", "99999999999999999999999999999999999999", 10_i128.pow(38) - 1),
    ] {
        let parsed = Literal::from_json(&t(name), &json!(text));
        assert_eq!(parsed.unwrap(), Literal::Decimal(unscaled), "{text}");
    }
    assert_eq!(Literal::Decimal(-5).to_json(&t("decimal(9,2)")).unwrap(), json!("-0.05"));
    assert_eq!(Literal::Decimal(0).to_json(&t("decimal(3,3)")).unwrap(), json!("0.000"));
    assert!(Literal::Decimal(1000).to_json(&t("decimal(3,0)")).is_err());
}

#[test]
fn floats_are_written_with_their_own_shortest_digits() {
    assert_eq!(Literal::Float(0.34234).to_json(&t("float")).unwrap().to_string(), "0.34234");
    assert!(Literal::Float(f32::NAN).to_json(&t("float")).is_err());
    assert!(Literal::Double(f64::INFINITY).to_json(&t("double")).is_err());
    assert_eq!(Literal::from_json(&t("double"), &json!(7)).unwrap(), Literal::Double(7.0));
}

#[test]
fn values_of_another_type_are_not_written() {
    assert!(Literal::Int(1).to_json(&t("long")).is_err());
    assert!(Literal::Long(1).to_bytes(&p("int")).is_err());
    assert!(Literal::Binary(vec![1]).to_bytes(&p("fixed[2]")).is_err());
}

/// Forms of the table "Binary single-value serialization".
#[test]
fn binary_forms() {
    let uuid = [
        0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd, 0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7,
    ];
    for (name, literal, bytes) in [
        ("boolean", Literal::Boolean(false), vec![0]),
        ("boolean", Literal::Boolean(true), vec![1]),
        ("int", Literal::Int(34), vec![34, 0, 0, 0]),
        ("int", Literal::Int(-2), vec![0xfe, 0xff, 0xff, 0xff]),
        ("long", Literal::Long(34), vec![34, 0, 0, 0, 0, 0, 0, 0]),
        ("float", Literal::Float(-4.5), vec![0, 0, 0x90, 0xc0]),
        ("double", Literal::Double(6.0), vec![0, 0, 0, 0, 0, 0, 0x18, 0x40]),
        ("date", Literal::Int(17_486), vec![0x4e, 0x44, 0, 0]),
        ("time", Literal::Long(256), vec![0, 1, 0, 0, 0, 0, 0, 0]),
        ("timestamp", Literal::Long(-1), vec![0xff; 8]),
        ("timestamptz", Literal::Long(1), vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("timestamp_ns", Literal::Long(1), vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("timestamptz_ns", Literal::Long(-1), vec![0xff; 8]),
        ("string", Literal::String("é".to_owned()), vec![0xc3, 0xa9]),
        ("uuid", Literal::Uuid(uuid), uuid.to_vec()),
        ("fixed[2]", Literal::Binary(vec![1, 2]), vec![1, 2]),
        ("binary", Literal::Binary(Vec::new()), Vec::new()),
        // 14.20 is 1420 = 0x058c; -1.28 is one byte, 1.28 needs two.
        ("decimal(9,2)", Literal::Decimal(1420), vec![0x05, 0x8c]),
        ("decimal(9,2)", Literal::Decimal(-128), vec![0x80]),
        ("decimal(9,2)", Literal::Decimal(128), vec![0x00, 0x80]),
        ("decimal(9,2)", Literal::Decimal(-129), vec![0xff, 0x7f]),
        ("decimal(9,2)", Literal::Decimal(0), vec![0]),
        ("decimal(9,2)", Literal::Decimal(-1), vec![0xff]),
    ] {
        assert_eq!(literal.to_bytes(&p(name)).unwrap(), bytes, "{name} {literal:?}");
        assert_eq!(Literal::from_bytes(&p(name), &bytes).unwrap(), literal, "{name} {bytes:?}");
    }
}

/// The table "Length of bounds" of the section on schema evolution.
#[test]
fn bounds_written_before_a_promotion() {
    assert_eq!(
        Literal::from_bytes(&p("long"), &[0xfe, 0xff, 0xff, 0xff]).unwrap(),
        Literal::Long(-2)
    );
    assert_eq!(
        Literal::from_bytes(&p("double"), &[0, 0, 0x90, 0xc0]).unwrap(),
        Literal::Double(-4.5)
    );
    let day = 17_486_i32.to_le_bytes();
    assert_eq!(
        Literal::from_bytes(&p("timestamp"), &day).unwrap(),
        Literal::Long(1_510_790_400_000_000)
    );
    assert_eq!(
        Literal::from_bytes(&p("timestamp_ns"), &day).unwrap(),
        Literal::Long(1_510_790_400_000_000_000)
    );
    assert!(Literal::from_bytes(&p("timestamptz"), &day).is_err());
    assert!(Literal::from_bytes(&p("time"), &day).is_err());
    // 2300-01-01 does not fit nanoseconds.
    assert!(Literal::from_bytes(&p("timestamp_ns"), &120_530_i32.to_le_bytes()).is_err());
}

#[test]
fn decimals_of_any_width() {
    let decimal = p("decimal(38,2)");
    let read = |bytes: &[u8]| Literal::from_bytes(&decimal, bytes).ok();
    assert_eq!(
        read(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0x8c]),
        Some(Literal::Decimal(1420))
    );
    assert_eq!(read(&[0xff; 20]), Some(Literal::Decimal(-1)));
    assert_eq!(read(&[0xff, 0xff, 0x80]), Some(Literal::Decimal(-128)));
    let mut too_wide = [0; 17];
    too_wide[0] = 1;
    assert_eq!(read(&too_wide), None);
    // The 17th byte is a sign, the 16 below it hold a value with the other sign.
    too_wide[0] = 0;
    too_wide[1] = 0x80;
    assert_eq!(read(&too_wide), None);
    assert_eq!(read(&[]), None);
}

#[test]
fn lengths_that_a_type_cannot_have_are_refused() {
    for (name, length) in [
        ("boolean", 0),
        ("boolean", 2),
        ("int", 8),
        ("int", 3),
        ("long", 5),
        ("float", 8),
        ("double", 7),
        ("uuid", 15),
        ("date", 8),
    ] {
        let error = Literal::from_bytes(&p(name), &vec![0; length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}");
    }
    assert!(Literal::from_bytes(&p("string"), &[0xff]).is_err());
    assert_eq!(Literal::from_bytes(&p("unknown"), &[]).unwrap_err().kind(), ErrorKind::Unsupported);
    // Bounds of long fixed columns are cut to a prefix.
    assert_eq!(
        Literal::from_bytes(&p("fixed[32]"), &[7; 16]).unwrap(),
        Literal::Binary(vec![7; 16])
    );
}

fn any_primitive() -> impl Strategy<Value = PrimitiveType> {
    prop::sample::select(vec![
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "decimal(9,2)",
        "decimal(38,10)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "fixed[4]",
        "binary",
        "unknown",
        "geometry",
        "geography",
    ])
    .prop_map(p)
}

proptest! {
    #[test]
    fn any_decimal_takes_the_fewest_bytes_and_comes_back(value: i128, shift in 0_u32..127) {
        let value = value >> shift;
        let decimal = p("decimal(38,0)");
        let bytes = Literal::Decimal(value).to_bytes(&decimal).unwrap();
        prop_assert_eq!(Literal::from_bytes(&decimal, &bytes).unwrap(), Literal::Decimal(value));
        if let [first, rest @ ..] = bytes.as_slice() && let Some(second) = rest.first() {
            let redundant = (*first == 0 && second & 0x80 == 0) || (*first == 0xff && second & 0x80 != 0);
            prop_assert!(!redundant, "{:?}", bytes);
        }
    }

    #[test]
    fn foreign_bytes_never_panic_and_what_reads_comes_back(primitive in any_primitive(), bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Ok(literal) = Literal::from_bytes(&primitive, &bytes) {
            if let Ok(written) = literal.to_bytes(&primitive) {
                let again = Literal::from_bytes(&primitive, &written).unwrap();
                prop_assert_eq!(&again, &literal);
            }
            let logical = Type::Primitive(primitive);
            if let Ok(text) = literal.to_json(&logical) {
                prop_assert_eq!(Literal::from_json(&logical, &text).unwrap(), literal);
            }
        }
    }

    #[test]
    fn any_double_comes_back_from_json(value: f64, float: f32) {
        let text = Literal::Double(value).to_json(&t("double")).unwrap().to_string();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(Literal::from_json(&t("double"), &parsed).unwrap(), Literal::Double(value));
        let text = Literal::Float(float).to_json(&t("float")).unwrap().to_string();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(Literal::from_json(&t("float"), &parsed).unwrap(), Literal::Float(float));
    }
}
