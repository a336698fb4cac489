//! Casts outside of the plan: of bound values, of results, of rows that are written.
//!
//! Invariant: a value that does not fit is an error, never null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray, make_array};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options, nullif};
use arrow::datatypes::{DataType, FieldRef, Fields, Int64Type, TimeUnit};
use arrow::error::ArrowError;

/// The values in another type.
pub(super) fn strict(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(values, to, &options)
}

/// Whether `agree` holds for all that two nested types are made of: fields of structs by their names (each once, none
/// more or less), elements, keys and values. `None` for types that are not nested alike.
pub(super) fn parts_agree(from: &DataType, to: &DataType, agree: fn(&DataType, &DataType) -> bool) -> Option<bool> {
    use DataType as D;
    match (from, to) {
        (D::Struct(from), D::Struct(to)) => Some(
            from.len() == to.len()
                && to
                    .iter()
                    .all(|to| the_field(from, to.name()).is_some_and(|from| agree(from.data_type(), to.data_type()))),
        ),
        (D::List(from) | D::LargeList(from) | D::FixedSizeList(from, _), D::List(to)) => Some(agree(from.data_type(), to.data_type())),
        (D::Map(from, _), D::Map(to, _)) => match (from.data_type(), to.data_type()) {
            // Keys and values have other names with every writer.
            (D::Struct(from), D::Struct(to)) => {
                let mut each = from.iter().zip(to);
                Some(from.len() == to.len() && each.all(|(from, to)| agree(from.data_type(), to.data_type())))
            }
            _ => Some(false),
        },
        _ => None,
    }
}

/// The one field of a name.
fn the_field<'a>(fields: &'a Fields, name: &str) -> Option<&'a FieldRef> {
    let mut named = fields.iter().filter(|field| field.name() == name);
    named.next().filter(|_| named.next().is_none())
}

/// Whether structs have the same fields, however deep they lie. Others are cast by position, which nobody means.
pub(super) fn have_same_fields(from: &DataType, to: &DataType) -> bool {
    parts_agree(from, to, have_same_fields).unwrap_or(true)
}

/// The values in another type where that cuts nothing off numbers, times and dates, however deep they lie; `None` where
/// it does. Text keeps the digits behind the point that it has.
pub(super) fn lossless(values: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>, ArrowError> {
    let cast = strict(values, to)?;
    Ok(keeps(values, &cast)?.then_some(cast))
}

/// Whether values that were cast say what they said before.
fn keeps(values: &ArrayRef, cast: &ArrayRef) -> Result<bool, ArrowError> {
    let (from, to) = (values.data_type(), cast.data_type());
    let is_number = |of: &DataType| of.is_numeric() || of.is_temporal();
    if from == to || values.is_empty() {
        return Ok(true);
    }
    if is_number(from) && is_number(to) {
        // What is cut off is missing on the way back.
        let back = strict(cast, from)?;
        return Ok(not_distinct(&back, values)?.true_count() == values.len());
    }
    if from.is_string() {
        let Some(kept) = digits_kept(to) else { return Ok(true) };
        let texts = strict(values, &DataType::Utf8)?;
        return Ok(texts.as_string::<i32>().iter().flatten().all(|text| fraction_digits(text) <= kept));
    }
    let parts = parts_of(values).into_iter().flatten();
    for (name, part) in parts {
        let parts = parts_of(cast).unwrap_or_default();
        let same = parts.into_iter().find(|(other, _)| *other == name);
        let keeps = match same {
            Some((_, cast)) if cast.len() == part.len() => keeps(&without(&part, values), &cast)?,
            _ => false,
        };
        if !keeps {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a nested array is made of, by the names of a struct's fields.
fn parts_of(values: &ArrayRef) -> Option<Vec<(String, ArrayRef)>> {
    let one = |part: &ArrayRef| Some(vec![(String::new(), Arc::clone(part))]);
    match values.data_type() {
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(values.as_struct().columns());
            Some(parts.map(|(field, part)| (field.name().clone(), Arc::clone(part))).collect())
        }
        DataType::List(_) => one(values.as_list::<i32>().values()),
        DataType::LargeList(_) => one(values.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => one(values.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = values.as_map();
            Some(vec![
                ("key".to_owned(), Arc::clone(map.keys())),
                ("value".to_owned(), Arc::clone(map.values())),
            ])
        }
        _ => None,
    }
}

/// A field's values without those that lie in structs which are null: nobody sees them.
fn without(part: &ArrayRef, of: &ArrayRef) -> ArrayRef {
    let hidden = of
        .as_struct_opt()
        .and_then(StructArray::nulls)
        .map(|nulls| BooleanArray::new(!nulls.inner(), None));
    let seen = hidden.and_then(|hidden| nullif(part, &hidden).ok());
    seen.unwrap_or_else(|| Arc::clone(part))
}

/// Digits behind the point that values of a type keep; `None` for types that have no such bound.
fn digits_kept(to: &DataType) -> Option<i64> {
    let of_unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    match to {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            Some(i64::from(*scale))
        }
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => Some(of_unit(unit)),
        _ => None,
    }
}

/// Digits behind the point of a number or time, without zeros at their end; an exponent moves the point.
fn fraction_digits(text: &str) -> i64 {
    let digits_of = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let (fraction, behind) = rest.split_at(digits_of(rest));
    let exponent = |part: &str| part.split_once(['e', 'E']).and_then(|(_, power)| power.trim().parse::<i64>().ok());
    let power = exponent(behind).or_else(|| exponent(whole)).unwrap_or(0);
    let kept = fraction.trim_end_matches('0').len();
    let mantissa = whole.split(['e', 'E']).next().unwrap_or_default();
    // Of a whole number zeros at the end may come to lie behind the point.
    let zeros = if kept == 0 {
        mantissa.len() - mantissa.trim_end_matches('0').len()
    } else {
        0
    };
    let (kept, zeros) = (i64::try_from(kept).unwrap_or(i64::MAX), i64::try_from(zeros).unwrap_or(0));
    kept.saturating_sub(zeros).saturating_sub(power).max(0)
}

/// Whether a cast between these types cuts moments to a coarser unit.
pub(super) fn cuts_moments(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => steps(*from, *to).is_some(),
        _ => any_part(from, to, cuts_moments),
    }
}

/// Whether something holds for one of the parts that two nested types have in common.
fn any_part(from: &DataType, to: &DataType, holds: fn(&DataType, &DataType) -> bool) -> bool {
    use DataType as D;
    match (from, to) {
        (D::Struct(from), D::Struct(to)) => to.iter().any(|to| {
            let from = the_field(from, to.name());
            from.is_some_and(|from| holds(from.data_type(), to.data_type()))
        }),
        (D::List(from) | D::LargeList(from) | D::FixedSizeList(from, _), D::List(to)) => holds(from.data_type(), to.data_type()),
        (D::Map(from, _), D::Map(to, _)) => match (from.data_type(), to.data_type()) {
            (D::Struct(from), D::Struct(to)) => from.iter().zip(to).any(|(from, to)| holds(from.data_type(), to.data_type())),
            _ => false,
        },
        _ => false,
    }
}

/// How many of the finer unit are one of the coarser.
fn steps(from: TimeUnit, to: TimeUnit) -> Option<i64> {
    let power = |unit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9_u32,
    };
    let more = power(from).checked_sub(power(to)).filter(|more| *more > 0)?;
    Some(10_i64.pow(more))
}

/// Moments as the last ones of the coarser unit before them, in their own type: a cast cuts towards 1970, which is
/// another way before it than after it.
pub(super) fn floored(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    use DataType as D;
    let data = values.to_data();
    let children = |to: &[&DataType]| {
        let floored = data
            .child_data()
            .iter()
            .zip(to)
            .map(|(child, to)| Ok(floored(&make_array(child.clone()), to)?.to_data()));
        let children = floored.collect::<Result<Vec<_>, ArrowError>>()?;
        Ok(make_array(data.clone().into_builder().child_data(children).build()?))
    };
    match (values.data_type(), to) {
        (from, to) if !cuts_moments(from, to) => Ok(Arc::clone(values)),
        (D::Timestamp(from, zone), D::Timestamp(to, _)) => {
            let step = steps(*from, *to).unwrap_or(1);
            let count = strict(values, &D::Int64)?;
            let floor = |moment: i64| {
                moment
                    .checked_sub(moment.rem_euclid(step))
                    .ok_or_else(|| ArrowError::ArithmeticOverflow("a moment is out of range".to_owned()))
            };
            let count: ArrayRef = Arc::new(count.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(floor)?);
            strict(&count, &D::Timestamp(*from, zone.clone()))
        }
        (D::Struct(from), D::Struct(to)) => {
            let to: Vec<&DataType> = from
                .iter()
                .map(|field| the_field(to, field.name()).map_or(field.data_type(), |to| to.data_type()))
                .collect();
            children(&to)
        }
        (D::List(_) | D::LargeList(_) | D::FixedSizeList(..), D::List(to)) => children(&[to.data_type()]),
        (D::Map(from, _), D::Map(to, _)) => {
            // Keys and values have other names with every writer.
            let (D::Struct(from), D::Struct(to)) = (from.data_type(), to.data_type()) else {
                return Ok(Arc::clone(values));
            };
            let named = from
                .iter()
                .zip(to)
                .map(|(from, to)| Arc::new(to.as_ref().clone().with_name(from.name())));
            children(&[&D::Struct(named.collect())])
        }
        _ => Ok(Arc::clone(values)),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ListArray, StringArray, TimestampNanosecondArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, TimestampMicrosecondType};

    use super::*;

    const NANOS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);
    const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

    fn moments(nanos: Vec<i64>) -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from(nanos))
    }

    /// A struct of a list of the values.
    fn inside(values: ArrayRef) -> ArrayRef {
        let element = Arc::new(Field::new("e", values.data_type().clone(), true));
        let list = ListArray::new(Arc::clone(&element), OffsetBuffer::from_lengths([values.len()]), values, None);
        let field = Field::new("l", DataType::List(element), true);
        Arc::new(StructArray::new(vec![field].into(), vec![Arc::new(list)], None))
    }

    fn type_inside(of: DataType) -> DataType {
        let element = Arc::new(Field::new("e", of, true));
        DataType::Struct(vec![Field::new("l", DataType::List(element), true)].into())
    }

    #[test]
    fn what_is_lost_inside_of_lists_and_structs_is_noticed() {
        let micros = type_inside(MICROS);
        assert!(lossless(&inside(moments(vec![-1_000, 5_000])), &micros).unwrap().is_some());
        assert!(lossless(&inside(moments(vec![-1_000, 5_001])), &micros).unwrap().is_none());
        let texts = |texts: Vec<&str>| inside(Arc::new(StringArray::from(texts)));
        let decimal = type_inside(DataType::Decimal128(9, 2));
        assert!(lossless(&texts(vec!["1.20", "3"]), &decimal).unwrap().is_some());
        assert!(lossless(&texts(vec!["1.20", "3.001"]), &decimal).unwrap().is_none());
    }

    #[test]
    fn digits_behind_the_point_are_counted_as_they_are_meant() {
        for (text, digits) in [
            ("1.5", 1),
            ("1.500", 1),
            ("-0.125", 3),
            (".5", 1),
            ("12", 0),
            ("1.5e-3", 4),
            ("1.5E1", 0),
            ("5e-2", 2),
        ] {
            assert_eq!(fraction_digits(text), digits, "{text}");
        }
        assert_eq!(fraction_digits("100e-2"), 0);
        assert_eq!(fraction_digits("2020-01-01T00:00:00.0000001+01:00"), 7);
        assert_eq!(fraction_digits("2020-01-01 00:00:00"), 0);
    }

    #[test]
    fn moments_before_1970_are_floored_as_those_after_it() {
        let micros = |nanos: Vec<i64>| {
            let floored = strict(&floored(&moments(nanos), &MICROS).unwrap(), &MICROS).unwrap();
            floored.as_primitive::<TimestampMicrosecondType>().values().to_vec()
        };
        assert_eq!(
            micros(vec![-1_001, -1_000, -999, -1, 0, 1, 999, 1_000]),
            [-2, -1, -1, -1, 0, 0, 0, 1]
        );
        let nested = floored(&inside(moments(vec![-1, 1])), &type_inside(MICROS)).unwrap();
        assert_eq!(&nested, &inside(moments(vec![-1_000, 0])));
        assert!(!cuts_moments(&MICROS, &NANOS) && !cuts_moments(&NANOS, &NANOS));
    }
}
