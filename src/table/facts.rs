//! What is known of a column's values in a set of rows: a partition, a file, a row group, a page.
//!
//! Invariant: everything here errs to one side only. A flag is false and a bound there only when
//! it is certain; what is not known is [`ColumnStats::unknown`].

use std::cmp::Ordering;

use super::Datum;

/// What is known of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStats {
    pub may_be_null: bool,
    /// Some row may hold NaN; false for columns that are no floats.
    pub may_be_nan: bool,
    /// Some row may hold a value that is neither null nor NaN.
    pub may_be_value: bool,
    /// At most every such value.
    pub lower: Option<Datum>,
    /// At least every such value.
    pub upper: Option<Datum>,
    /// The bounds hold either in the order of unsigned bytes or, as older writers compared uuids,
    /// in that of two signed longs; which one is not known.
    pub two_orders: bool,
}

impl ColumnStats {
    /// Nothing is known.
    pub fn unknown() -> Self {
        Self {
            may_be_null: true,
            may_be_nan: true,
            may_be_value: true,
            lower: None,
            upper: None,
            two_orders: false,
        }
    }

    /// Every row is null.
    pub fn null() -> Self {
        Self {
            may_be_nan: false,
            may_be_value: false,
            ..Self::unknown()
        }
    }

    /// Every row holds this value.
    pub fn only(value: Datum) -> Self {
        let is_nan = value.is_nan();
        Self {
            may_be_null: false,
            may_be_nan: is_nan,
            may_be_value: !is_nan,
            lower: (!is_nan).then(|| value.clone()),
            upper: (!is_nan).then_some(value),
            two_orders: false,
        }
    }

    /// With these bounds, unless they contradict each other or are NaN: then without any.
    #[must_use]
    pub fn with_bounds(mut self, lower: Option<Datum>, upper: Option<Datum>) -> Self {
        let is_nan = |d: &Option<Datum>| d.as_ref().is_some_and(Datum::is_nan);
        let reversed = match (&lower, &upper) {
            (Some(lower), Some(upper)) => !matches!(lower.order(upper), Some(Ordering::Less | Ordering::Equal)),
            _ => false,
        };
        if !is_nan(&lower) && !is_nan(&upper) && (!reversed || self.two_orders) {
            (self.lower, self.upper) = (lower, upper);
        }
        self
    }

    /// What both tell of the same rows.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let pick = |a: Option<Datum>, b: Option<Datum>, keep: Ordering| match (a, b) {
            (Some(a), Some(b)) if b.order(&a) == Some(keep) => Some(b),
            (a, b) => a.or(b),
        };
        // Bounds of an uncertain order do not mix with others.
        if self.two_orders || other.two_orders {
            let flags = (
                self.may_be_null && other.may_be_null,
                self.may_be_nan && other.may_be_nan,
                self.may_be_value && other.may_be_value,
            );
            let base = if self.lower.is_some() { self } else { other };
            return Self {
                may_be_null: flags.0,
                may_be_nan: flags.1,
                may_be_value: flags.2,
                ..base
            };
        }
        Self {
            may_be_null: self.may_be_null && other.may_be_null,
            may_be_nan: self.may_be_nan && other.may_be_nan,
            may_be_value: self.may_be_value && other.may_be_value,
            lower: pick(self.lower, other.lower, Ordering::Greater),
            upper: pick(self.upper, other.upper, Ordering::Less),
            two_orders: false,
        }
    }

    /// The one value that all rows hold that are neither null nor NaN.
    pub(super) fn only_value(&self) -> Option<&Datum> {
        let (Some(lower), Some(upper)) = (&self.lower, &self.upper) else {
            return None;
        };
        (lower.order(upper) == Some(Ordering::Equal)).then_some(lower)
    }

    /// Whether `value` lies within the bounds, in either order where that is open.
    pub(super) fn range_contains(&self, value: &Datum) -> bool {
        let inside = |order: &dyn Fn(&Datum, &Datum) -> Option<Ordering>| {
            let above = self.lower.as_ref().is_none_or(|b| order(b, value) != Some(Ordering::Greater));
            let below = self.upper.as_ref().is_none_or(|b| order(b, value) != Some(Ordering::Less));
            above && below
        };
        inside(&|a, b| a.order(b)) || (self.two_orders && inside(&signed_halves))
    }
}

/// The order of two uuids as two signed longs each.
fn signed_halves(a: &Datum, b: &Datum) -> Option<Ordering> {
    let halves = |d: &Datum| match d {
        Datum::Bytes(bytes) => {
            let (high, low) = bytes.split_at_checked(8)?;
            Some((i64::from_be_bytes(high.try_into().ok()?), i64::from_be_bytes(low.try_into().ok()?)))
        }
        _ => None,
    };
    Some(halves(a)?.cmp(&halves(b)?))
}

/// What is known of a set of rows.
pub trait Facts {
    /// What is known of a column, by field id.
    fn column(&self, field_id: i32) -> ColumnStats;

    /// False only when no row holds this value, which is not NaN.
    fn may_contain(&self, field_id: i32, value: &Datum) -> bool {
        let _ = (field_id, value);
        true
    }
}
