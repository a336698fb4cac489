//! Applying a transform to a value (spec "Partition Transforms", appendix B).
//!
//! Everything rounds toward negative infinity, before 1970 too.

use super::civil::civil_from_days;
use super::value_bytes::minimal_big_endian;
use super::{Literal, PrimitiveType, Transform};

impl Transform {
    /// The partition value of a source value of type `source`. `None` where the transform gives
    /// null (void), is not known, or does not take such a value.
    pub fn apply(&self, source: &PrimitiveType, value: &Literal) -> Option<Literal> {
        match self {
            Self::Identity => Some(value.clone()),
            Self::Bucket(count) => bucket(source, value, *count),
            Self::Truncate(width) => truncate(value, *width),
            Self::Year | Self::Month | Self::Day | Self::Hour => time(self, source, value),
            Self::Void | Self::Unknown(_) => None,
        }
    }
}

fn bucket(source: &PrimitiveType, value: &Literal, count: u32) -> Option<Literal> {
    let hash = bucket_hash(source, value)?;
    let count = i32::try_from(count).ok().filter(|n| *n > 0)?;
    Some(Literal::Int((hash & i32::MAX) % count))
}

/// The 32-bit hash of a value (appendix B). `None` for a type that is not hashed.
pub fn bucket_hash(source: &PrimitiveType, value: &Literal) -> Option<i32> {
    use PrimitiveType as P;
    let bytes = match (source, value) {
        (P::TimestampNs | P::TimestamptzNs, Literal::Long(v)) => v.div_euclid(1_000).to_le_bytes().to_vec(),
        (P::Int | P::Long | P::Date, Literal::Int(v)) => i64::from(*v).to_le_bytes().to_vec(),
        (P::Long | P::Time | P::Timestamp | P::Timestamptz, Literal::Long(v)) => v.to_le_bytes().to_vec(),
        (P::Decimal { .. }, Literal::Decimal(v)) => minimal_big_endian(*v),
        (P::String, Literal::String(v)) => v.as_bytes().to_vec(),
        (P::Uuid, Literal::Uuid(v)) => v.to_vec(),
        (P::Fixed(_) | P::Binary, Literal::Binary(v)) => v.clone(),
        _ => return None,
    };
    Some(murmur3(&bytes).cast_signed())
}

/// Murmur3, 32-bit variant for x86, seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let scramble = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let mut hash = 0u32;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        hash = (hash ^ scramble(u32::from_le_bytes(*block)))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0u32, |k, byte| k << 8 | u32::from(*byte));
        hash ^= scramble(rest);
    }
    // The length is part of the hash modulo 2^32.
    #[allow(clippy::cast_possible_truncation)]
    let length = bytes.len() as u32;
    hash ^= length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn truncate(value: &Literal, width: u32) -> Option<Literal> {
    Some(match value {
        // Wraps around below the smallest value, as the reference implementation does.
        Literal::Int(v) => {
            let rest = i64::from(*v).rem_euclid(i64::from(width));
            Literal::Int(v.wrapping_sub(i32::try_from(rest).ok()?))
        }
        Literal::Long(v) => Literal::Long(v.wrapping_sub(v.rem_euclid(i64::from(width)))),
        Literal::Decimal(v) => Literal::Decimal(v.checked_sub(v.rem_euclid(i128::from(width)))?),
        Literal::String(v) => Literal::String(v.chars().take(usize::try_from(width).ok()?).collect()),
        Literal::Binary(v) => Literal::Binary(v.iter().copied().take(usize::try_from(width).ok()?).collect()),
        _ => return None,
    })
}

fn time(transform: &Transform, source: &PrimitiveType, value: &Literal) -> Option<Literal> {
    let (days, hours) = match (source, value) {
        (PrimitiveType::Date, Literal::Int(days)) => (i64::from(*days), None),
        (source, Literal::Long(units)) => {
            let hour = units_per_hour(source)?;
            let hours = units.div_euclid(hour);
            (hours.div_euclid(24), Some(hours))
        }
        _ => return None,
    };
    let (year, month, _) = civil_from_days(days);
    let ordinal = match transform {
        Transform::Year => year - 1970,
        Transform::Month => (year - 1970) * 12 + month - 1,
        Transform::Day => days,
        Transform::Hour => hours?,
        _ => return None,
    };
    i32::try_from(ordinal).ok().map(Literal::Int)
}

/// Units of a timestamp type in an hour.
pub(in crate::iceberg) fn units_per_hour(source: &PrimitiveType) -> Option<i64> {
    use PrimitiveType as P;
    match source {
        P::Timestamp | P::Timestamptz => Some(3_600_000_000),
        P::TimestampNs | P::TimestamptzNs => Some(3_600_000_000_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::civil::{parse_date, parse_time, parse_timestamp};
    use super::*;

    fn uuid(text: &str) -> Literal {
        Literal::Uuid(uuid::Uuid::parse_str(text).unwrap().into_bytes())
    }

    #[test]
    fn hashes_of_appendix_b() {
        use PrimitiveType as P;
        let decimal = P::Decimal { precision: 9, scale: 2 };
        let ts = |text, digits| Literal::Long(parse_timestamp(text, digits).unwrap());
        for (source, value, hash) in [
            (P::Int, Literal::Int(34), 2_017_239_379),
            (P::Long, Literal::Long(34), 2_017_239_379),
            (decimal, Literal::Decimal(1420), -500_754_589),
            (P::Date, Literal::Int(parse_date("2017-11-16").unwrap()), -653_330_422),
            (P::Time, Literal::Long(parse_time("22:31:08", 6).unwrap()), -662_762_989),
            (P::Timestamp, ts("2017-11-16T22:31:08", 6), -2_047_944_441),
            (P::Timestamptz, ts("2017-11-16T22:31:08.000001", 6), -1_207_196_810),
            (P::TimestampNs, ts("2017-11-16T22:31:08", 9), -2_047_944_441),
            (P::TimestamptzNs, ts("2017-11-16T22:31:08.000001001", 9), -1_207_196_810),
            (P::String, Literal::String("iceberg".to_owned()), 1_210_000_089),
            (P::Uuid, uuid("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1_488_055_340),
            (P::Fixed(4), Literal::Binary(vec![0, 1, 2, 3]), -188_683_207),
            (P::Binary, Literal::Binary(vec![0, 1, 2, 3]), -188_683_207),
        ] {
            assert_eq!(bucket_hash(&source, &value), Some(hash), "{source} {value:?}");
        }
        assert_eq!(bucket_hash(&P::Double, &Literal::Double(1.0)), None);
    }

    /// B044
    #[test]
    fn a_uuid_goes_to_the_bucket_of_its_big_endian_bytes() {
        let value = uuid("f79c3e09-677c-4bbd-a479-3f349cb785e7");
        assert_eq!(Transform::Bucket(16).apply(&PrimitiveType::Uuid, &value), Some(Literal::Int(12)));
    }

    #[test]
    fn truncation_rounds_down() {
        let truncate = |width, value| Transform::Truncate(width).apply(&PrimitiveType::Int, &value).unwrap();
        assert_eq!(truncate(10, Literal::Int(1)), Literal::Int(0));
        assert_eq!(truncate(10, Literal::Int(-1)), Literal::Int(-10));
        assert_eq!(truncate(10, Literal::Int(-10)), Literal::Int(-10));
        assert_eq!(truncate(10, Literal::Long(-11)), Literal::Long(-20));
        assert_eq!(truncate(50, Literal::Decimal(1065)), Literal::Decimal(1050));
        assert_eq!(truncate(50, Literal::Decimal(-1)), Literal::Decimal(-50));
        assert_eq!(
            truncate(3, Literal::String("iceberg".to_owned())),
            Literal::String("ice".to_owned())
        );
        assert_eq!(truncate(2, Literal::String("🦀é€".to_owned())), Literal::String("🦀é".to_owned()));
        assert_eq!(truncate(2, Literal::Binary(vec![1, 2, 3])), Literal::Binary(vec![1, 2]));
        // The reference implementation wraps around.
        assert_eq!(truncate(10, Literal::Int(i32::MIN)), Literal::Int(i32::MIN.wrapping_sub(2)));
    }

    /// B041
    #[test]
    fn times_before_1970_round_down_too() {
        let all = |text: &str| {
            let value = Literal::Long(parse_timestamp(text, 6).unwrap());
            [Transform::Year, Transform::Month, Transform::Day, Transform::Hour].map(|t| match t.apply(&PrimitiveType::Timestamp, &value) {
                Some(Literal::Int(v)) => v,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(all("1970-01-01T00:00:01"), [0, 0, 0, 0]);
        assert_eq!(all("1969-12-31T23:59:59"), [-1, -1, -1, -1]);
        assert_eq!(all("1899-12-31T01:00:00"), [-71, -841, -25_568, -613_631]);
        assert_eq!(all("2017-11-16T22:31:08"), [47, 574, 17_486, 419_686]);
        let nanos = Literal::Long(-1);
        assert_eq!(Transform::Day.apply(&PrimitiveType::TimestampNs, &nanos), Some(Literal::Int(-1)));
        assert_eq!(
            Transform::Month.apply(&PrimitiveType::Date, &Literal::Int(-1)),
            Some(Literal::Int(-1))
        );
        assert_eq!(Transform::Hour.apply(&PrimitiveType::Date, &Literal::Int(1)), None);
    }
}
