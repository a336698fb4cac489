//! Doubles as decimals: the digits that are written, not those of the binary number next to them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use crate::error::{Error, Result};

/// A number's digits as a decimal, rounded half away from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rounded {
    pub(super) unscaled: i128,
    /// Digits were dropped.
    pub(super) is_cut: bool,
}

/// The decimal of a number that is written without exponent; `None` where it has too many digits before the point,
/// and for what is no number.
pub(super) fn rounded(text: &str, precision: u8, scale: i8) -> Option<Rounded> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let wanted = usize::try_from(scale).ok()?;
    let kept: String = fraction.chars().chain(std::iter::repeat('0')).take(wanted).collect();
    let dropped = fraction.get(wanted..).unwrap_or_default();
    let unscaled: i128 = format!("{}{kept}", whole.trim_start_matches('-')).parse().ok()?;
    let unscaled = unscaled.checked_add(i128::from(dropped.starts_with(|digit: char| digit >= '5')))?;
    if unscaled >= 10_i128.checked_pow(u32::from(precision))? {
        return None;
    }
    Some(Rounded {
        unscaled: if text.starts_with('-') { -unscaled } else { unscaled },
        is_cut: dropped.contains(|digit: char| digit != '0'),
    })
}

/// The decimals of an array of numbers.
#[derive(Debug)]
pub(super) struct Decimals {
    /// Rounded.
    pub(super) values: ArrayRef,
    is_cut: bool,
}

impl Decimals {
    /// The values, where none was rounded.
    pub(super) fn exact(self) -> Option<ArrayRef> {
        (!self.is_cut).then_some(self.values)
    }
}

/// Floating-point numbers as decimals.
///
/// Errors: `InvalidInput` for one that has no place in the type.
pub(super) fn of_numbers(numbers: &ArrayRef, precision: u8, scale: i8) -> Result<Decimals> {
    let texts: Vec<Option<String>> = match numbers.data_type() {
        DataType::Float64 => numbers
            .as_primitive::<Float64Type>()
            .iter()
            .map(|n| n.map(|n| n.to_string()))
            .collect(),
        _ => {
            let numbers = cast(numbers, &DataType::Float32)?;
            numbers
                .as_primitive::<Float32Type>()
                .iter()
                .map(|n| n.map(|n| n.to_string()))
                .collect()
        }
    };
    let mut is_cut = false;
    let values = texts.into_iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        let wrong = || Error::invalid(format!("{text} does not fit decimal({precision}, {scale})"));
        let rounded = rounded(&text, precision, scale).ok_or_else(wrong)?;
        is_cut |= rounded.is_cut;
        Ok(Some(rounded.unscaled))
    });
    let values = values
        .collect::<Result<Decimal128Array>>()?
        .with_precision_and_scale(precision, scale)?;
    Ok(Decimals {
        values: Arc::new(values),
        is_cut,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_by_their_written_digits() {
        for (text, unscaled, is_cut) in [
            ("1.005", 101, true),
            ("-1.005", -101, true),
            ("1.004", 100, true),
            ("0.7", 70, false),
            ("-0.0", 0, false),
            ("12", 1200, false),
            ("999.99", 99_999, false),
        ] {
            assert_eq!(rounded(text, 5, 2), Some(Rounded { unscaled, is_cut }), "{text}");
        }
        for text in ["999.995", "1000", "NaN", "inf", "-inf"] {
            assert_eq!(rounded(text, 5, 2), None, "{text}");
        }
    }
}
