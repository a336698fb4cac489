//! Which source values a range of partition values can stand for (spec "Partition Transforms").
//!
//! The range that comes out holds every such value, also as writers that erred wrote them: values
//! before 1970 that were truncated toward zero, and numbers that wrapped around when truncated.

use std::cmp::Ordering;

use super::source::datum;
use crate::iceberg::spec::{Literal, PrimitiveType, Transform, days_from_civil, units_per_hour};
use crate::table::Datum;

/// Lower and upper bound of the source values whose partition value lies between `lower` and
/// `upper`; `None` is no bound. `source` is the type that the source values are read as.
pub(super) fn source_range(
    transform: &Transform,
    source: &PrimitiveType,
    lower: Option<&Literal>,
    upper: Option<&Literal>,
) -> (Option<Datum>, Option<Datum>) {
    match transform {
        Transform::Identity => (lower.and_then(|v| datum(source, v)), upper.and_then(|v| datum(source, v))),
        Transform::Truncate(width) => truncated(source, *width, lower, upper),
        Transform::Year | Transform::Month | Transform::Day | Transform::Hour => {
            let ordinal = |value: Option<&Literal>| match value {
                Some(Literal::Int(v)) => Some(i64::from(*v)),
                _ => None,
            };
            let exact = *transform == Transform::Day && *source == PrimitiveType::Date;
            // Old writers truncated toward zero: -1 may have become 0.
            let first = ordinal(lower).map(|p| if p <= 0 && !exact { p - 1 } else { p });
            let start = first.and_then(|p| start_of(transform, source, p));
            let end = ordinal(upper).and_then(|p| start_of(transform, source, p + 1));
            (start.map(Datum::Number), end.map(|e| Datum::Number(e - 1)))
        }
        // A bucket is no range.
        Transform::Bucket(_) | Transform::Void | Transform::Unknown(_) => (None, None),
    }
}

/// The first source value of a year, month, day or hour counted from 1970.
fn start_of(transform: &Transform, source: &PrimitiveType, ordinal: i64) -> Option<i128> {
    let days = match transform {
        Transform::Year => days_from_civil(1970 + ordinal, 1, 1),
        Transform::Month => days_from_civil(1970 + ordinal.div_euclid(12), ordinal.rem_euclid(12) + 1, 1),
        Transform::Day => ordinal,
        Transform::Hour => return Some(i128::from(ordinal) * i128::from(units_per_hour(source)?)),
        _ => return None,
    };
    if *source == PrimitiveType::Date {
        return Some(i128::from(days));
    }
    Some(i128::from(days) * 24 * i128::from(units_per_hour(source)?))
}

fn truncated(source: &PrimitiveType, width: u32, lower: Option<&Literal>, upper: Option<&Literal>) -> (Option<Datum>, Option<Datum>) {
    let start = lower.and_then(|v| datum(source, v));
    let end = upper.and_then(|v| datum(source, v)).and_then(|last| match last {
        Datum::Number(v) => v.checked_add(i128::from(width) - 1).map(Datum::Number),
        Datum::Bytes(v) => last_with_prefix(source, width, v).map(Datum::Bytes),
        _ => None,
    });
    if may_have_wrapped(source, width, start.as_ref(), end.as_ref()) {
        return (None, None);
    }
    (start, end)
}

/// At least every value that is cut to `prefix`.
fn last_with_prefix(source: &PrimitiveType, width: u32, mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    // Shorter than any unit that writers have cut by: nothing was cut.
    if usize::try_from(width).is_ok_and(|width| prefix.len() < width) {
        return Some(prefix);
    }
    if *source == PrimitiveType::String {
        // No text has this byte, so every text with the prefix comes before.
        prefix.push(0xff);
        return Some(prefix);
    }
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return Some(prefix);
        }
    }
    None
}

/// The smallest ints and longs are truncated to values at the upper end. A column that is long now
/// may have been int when the value was written.
fn may_have_wrapped(source: &PrimitiveType, width: u32, start: Option<&Datum>, end: Option<&Datum>) -> bool {
    let widest: &[i128] = match source {
        PrimitiveType::Int => &[i32::MAX as i128],
        PrimitiveType::Long => &[i32::MAX as i128, i64::MAX as i128],
        _ => return false,
    };
    // The arithmetic of some writers overflows beyond this width.
    if width > 1 << 30 {
        return true;
    }
    widest.iter().any(|max| {
        let (from, to) = (Datum::Number(max - i128::from(width) + 1), Datum::Number(max + i128::from(width)));
        let starts_behind = start.is_some_and(|s| s.order(&to) == Some(Ordering::Greater));
        let ends_before = end.is_some_and(|e| e.order(&from) == Some(Ordering::Less));
        !starts_behind && !ends_before
    })
}
