//! Summaries of partition values for the manifest list (spec "Manifest Lists", `field_summary`).
//!
//! Bounds are whole values: a summary is compared with partition values, never with rows.

use std::cmp::Ordering;

use super::partition::PartitionColumn;
use crate::error::Result;
use crate::iceberg::manifest::FieldSummary;
use crate::iceberg::spec::Literal;

/// What is known of the values of one field.
#[derive(Debug, Default, Clone)]
struct Seen {
    null: bool,
    nan: bool,
    lower: Option<Literal>,
    upper: Option<Literal>,
    /// Least and greatest UUID, both halves compared as signed numbers.
    signed: Option<[(i64, i64); 2]>,
}

/// Collects the values of all entries of a manifest.
#[derive(Debug)]
pub(super) struct Summaries(Vec<Seen>);

impl Summaries {
    pub(super) fn new(width: usize) -> Self {
        Self(vec![Seen::default(); width])
    }

    /// Takes the values of an entry in, in the order of the fields.
    pub(super) fn add(&mut self, values: &[Option<Literal>]) {
        for (seen, value) in self.0.iter_mut().zip(values) {
            seen.add(value.as_ref());
        }
    }

    /// The summaries; `None` where no bounds are right for every reader: the reference
    /// implementation compares UUIDs as signed numbers, others as bytes, and bounds by one order
    /// would hide files from a reader that goes by the other.
    pub(super) fn finish(self, columns: &[PartitionColumn]) -> Result<Option<Vec<FieldSummary>>> {
        if self.0.iter().any(Seen::depends_on_order) {
            return Ok(None);
        }
        let summaries = self.0.into_iter().zip(columns).map(|(seen, column)| {
            let bound = |value: Option<Literal>| -> Result<Option<bytes::Bytes>> {
                match (value, &column.primitive) {
                    (Some(value), Some(primitive)) => value.to_bytes(primitive).map(|bytes| Some(bytes.into())),
                    _ => Ok(None),
                }
            };
            Ok(FieldSummary {
                contains_null: seen.null,
                contains_nan: Some(seen.nan),
                lower_bound: bound(seen.lower)?,
                upper_bound: bound(seen.upper)?,
            })
        });
        summaries.collect::<Result<_>>().map(Some)
    }
}

impl Seen {
    /// Whether bounds differ between the two orders of UUIDs.
    fn depends_on_order(&self) -> bool {
        self.signed
            .is_some_and(|signed| [&self.lower, &self.upper].map(|bound| bound.as_ref().and_then(signed_halves)) != signed.map(Some))
    }

    fn add(&mut self, value: Option<&Literal>) {
        let Some(value) = value else {
            self.null = true;
            return;
        };
        if matches!(value, Literal::Float(v) if v.is_nan()) || matches!(value, Literal::Double(v) if v.is_nan()) {
            self.nan = true;
            return;
        }
        if let Some(halves) = signed_halves(value) {
            let [least, greatest] = self.signed.unwrap_or([halves; 2]);
            self.signed = Some([least.min(halves), greatest.max(halves)]);
        }
        if self.lower.as_ref().is_none_or(|lower| value.order(lower) == Ordering::Less) {
            self.lower = Some(value.clone());
        }
        if self.upper.as_ref().is_none_or(|upper| value.order(upper) == Ordering::Greater) {
            self.upper = Some(value.clone());
        }
    }
}

/// The halves of a UUID as signed numbers.
fn signed_halves(value: &Literal) -> Option<(i64, i64)> {
    let Literal::Uuid(bytes) = value else { return None };
    let all = i128::from_be_bytes(*bytes);
    Some(((all >> 64) as i64, all as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[Option<Literal>]) -> Seen {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.add(value.as_ref()));
        seen
    }

    #[test]
    fn nan_and_null_are_no_bounds_and_minus_zero_stands_before_zero() {
        let seen = summary(&[
            Some(Literal::Double(0.0)),
            None,
            Some(Literal::Double(f64::NAN)),
            Some(Literal::Double(-0.0)),
        ]);
        assert!(seen.null && seen.nan);
        assert_eq!((seen.lower, seen.upper), (Some(Literal::Double(-0.0)), Some(Literal::Double(0.0))));
        let nothing = summary(&[None]);
        assert_eq!((nothing.nan, nothing.lower, nothing.upper), (false, None, None));
    }

    #[test]
    fn text_is_compared_by_its_bytes() {
        // U+FF61 and U+1F600: UTF-16 would order them the other way round.
        let texts = ["\u{1F600}", "\u{FF61}"].map(|text| Some(Literal::String(text.to_owned())));
        let seen = summary(&texts);
        assert_eq!((seen.lower, seen.upper), (texts[1].clone(), texts[0].clone()));
    }

    #[test]
    fn bounds_of_uuids_are_given_only_where_both_orders_agree() {
        let uuid = |first: u8, middle: u8| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[8]) = (first, middle);
            Some(Literal::Uuid(bytes))
        };
        assert!(!summary(&[uuid(0x10, 0), uuid(0x20, 0xff)]).depends_on_order());
        assert!(!summary(&[uuid(0x80, 0), uuid(0xff, 0)]).depends_on_order());
        assert!(summary(&[uuid(0x10, 0), uuid(0x90, 0)]).depends_on_order());
        assert!(summary(&[uuid(0x10, 0), uuid(0x10, 0x80)]).depends_on_order());
    }
}
