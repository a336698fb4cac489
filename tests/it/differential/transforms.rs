//! Partition transforms, worked out for tests from the specification's text ("Partition Transforms",
//! appendix B), with nothing of the crate under test.

use serde_json::{Value, json};

use crate::support::builder::{Scalar, Type};
use crate::support::canonical;

/// A transform that the tables here use.
#[derive(Debug, Clone, PartialEq)]
pub enum Transform {
    Identity,
    Bucket(u32),
    Truncate(u32),
    Year,
    Month,
    Day,
    Hour,
    Void,
}

impl Transform {
    /// As metadata spells it.
    pub fn spelled(&self) -> String {
        match self {
            Self::Identity => "identity".to_owned(),
            Self::Bucket(n) => format!("bucket[{n}]"),
            Self::Truncate(w) => format!("truncate[{w}]"),
            Self::Year => "year".to_owned(),
            Self::Month => "month".to_owned(),
            Self::Day => "day".to_owned(),
            Self::Hour => "hour".to_owned(),
            Self::Void => "void".to_owned(),
        }
    }

    /// Those that take a column of this type.
    pub fn of(of: &Type) -> Vec<Self> {
        let mut all = vec![Self::Identity, Self::Void];
        match of {
            Type::Int | Type::Long | Type::Decimal(..) | Type::String => {
                all.extend([Self::Bucket(4), Self::Bucket(7), Self::Truncate(2), Self::Truncate(10)]);
            }
            Type::Uuid => all.push(Self::Bucket(5)),
            Type::Binary => all.extend([Self::Bucket(3), Self::Truncate(2)]),
            Type::Date => all.extend([Self::Year, Self::Month, Self::Day, Self::Bucket(3)]),
            Type::Timestamp | Type::Timestamptz | Type::TimestampNs | Type::TimestamptzNs => {
                all.extend([Self::Year, Self::Month, Self::Day, Self::Hour, Self::Bucket(4)]);
            }
            _ => {}
        }
        all
    }

    /// The partition value of a cell, in canonical form of the result's type.
    pub fn apply(&self, of: &Type, cell: &Value) -> Value {
        let Some(value) = Scalar::new(of, cell) else { return Value::Null };
        match self {
            Self::Void => Value::Null,
            Self::Identity => cell.clone(),
            Self::Bucket(n) => json!((hash(of, &value) & 0x7fff_ffff) % n),
            Self::Truncate(width) => truncated(of, &value, *width),
            Self::Year => json!(calendar(days(of, &value)).0 - 1970),
            Self::Month => {
                let (year, month) = calendar(days(of, &value));
                json!((year - 1970) * 12 + month - 1)
            }
            Self::Day => json!(canonical::date(days(of, &value))),
            Self::Hour => json!(micros(of, &value).div_euclid(3_600_000_000)),
        }
    }
}

fn long(value: &Scalar) -> i64 {
    match value {
        Scalar::Int(v) => i64::from(*v),
        Scalar::Long(v) => *v,
        other => panic!("{other:?} is no integer"),
    }
}

fn micros(of: &Type, value: &Scalar) -> i64 {
    match of {
        Type::TimestampNs | Type::TimestamptzNs => long(value).div_euclid(1000),
        _ => long(value),
    }
}

fn days(of: &Type, value: &Scalar) -> i64 {
    match of {
        Type::Date => long(value),
        _ => micros(of, value).div_euclid(86_400_000_000),
    }
}

/// Year and month of a day since the epoch, from the printed date.
fn calendar(days: i64) -> (i64, i64) {
    let text = canonical::date(days);
    let mut parts = text.rsplitn(3, '-');
    let (_, month, year) = (parts.next(), parts.next().unwrap(), parts.next().unwrap());
    (year.parse().unwrap(), month.parse().unwrap())
}

fn truncated(of: &Type, value: &Scalar, width: u32) -> Value {
    let floor = |v: i128| v - v.rem_euclid(i128::from(width));
    match (of, value) {
        (Type::Int | Type::Long, v) => canonical::integer(floor(i128::from(long(v)))),
        (Type::Decimal(_, scale), Scalar::Decimal(v)) => json!(decimal(floor(*v), *scale)),
        (_, Scalar::Text(text)) => json!(text.chars().take(width as usize).collect::<String>()),
        (_, Scalar::Bytes(bytes)) => json!(format!("hex:{}", hex(&bytes[..bytes.len().min(width as usize)]))),
        (of, v) => panic!("no truncate of {v:?} as {of:?}"),
    }
}

/// A decimal in canonical form.
pub fn decimal(unscaled: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap();
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let sign = if unscaled < 0 { "-" } else { "" };
    let (whole, rest) = digits.split_at(digits.len() - scale);
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{rest}")
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The 32-bit hash of appendix B.
fn hash(of: &Type, value: &Scalar) -> u32 {
    match (of, value) {
        (Type::TimestampNs | Type::TimestamptzNs, v) => murmur3(&micros(of, v).to_le_bytes()),
        (_, Scalar::Int(_) | Scalar::Long(_)) => murmur3(&long(value).to_le_bytes()),
        (_, v) => murmur3(&v.binary()),
    }
}

/// Murmur3, x86, 32 bits, seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let mix = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut h = 0u32;
    let mut blocks = bytes.chunks_exact(4);
    for block in &mut blocks {
        h ^= mix(u32::from_le_bytes(block.try_into().unwrap()));
        h = h.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let tail = blocks.remainder();
    if !tail.is_empty() {
        let mut k = [0; 4];
        k[..tail.len()].copy_from_slice(tail);
        h ^= mix(u32::from_le_bytes(k));
    }
    h ^= bytes.len() as u32;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// The vectors of appendix B.
#[test]
fn the_hash_is_that_of_the_specification() {
    let of = |of: Type, cell: Value| hash(&of, &Scalar::new(&of, &cell).unwrap()) as i32;
    assert_eq!(of(Type::Int, json!(34)), 2_017_239_379);
    assert_eq!(of(Type::Long, json!(34)), 2_017_239_379);
    assert_eq!(of(Type::Decimal(9, 2), json!("14.20")), -500_754_589);
    assert_eq!(of(Type::Date, json!("2017-11-16")), -653_330_422);
    assert_eq!(of(Type::Timestamp, json!("2017-11-16T22:31:08.000000")), -2_047_944_441);
    assert_eq!(of(Type::TimestampNs, json!("2017-11-16T22:31:08.000001001")), -1_207_196_810);
    assert_eq!(of(Type::String, json!("iceberg")), 1_210_000_089);
    assert_eq!(of(Type::Uuid, json!("f79c3e09-677c-4bbd-a479-3f349cb785e7")), 1_488_055_340);
    assert_eq!(of(Type::Binary, json!("hex:00010203")), -188_683_207);
}

#[test]
fn time_before_the_epoch_is_floored() {
    let day = |cell: &str| Transform::Day.apply(&Type::Timestamp, &json!(cell));
    assert_eq!(day("1969-12-31T23:59:59.999999"), json!("1969-12-31"));
    assert_eq!(
        Transform::Hour.apply(&Type::Timestamp, &json!("1969-12-31T23:59:59.999999")),
        json!(-1)
    );
    assert_eq!(Transform::Year.apply(&Type::Date, &json!("1899-12-31")), json!(-71));
    assert_eq!(Transform::Month.apply(&Type::Date, &json!("1969-11-30")), json!(-2));
    assert_eq!(Transform::Truncate(10).apply(&Type::Int, &json!(-1)), json!(-10));
}
