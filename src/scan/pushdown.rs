//! From the engine's filter expressions to a predicate that prunes.
//!
//! Invariants: the predicate is satisfied by every row for which the filter is TRUE on the decoded
//! rows; what cannot be said so is left out. The engine keeps its own filter.
//!
//! A cast of the column is looked through only where it changes no value and keeps the order: then
//! the constant is brought to the column's unit, rounded down, and the comparison is adjusted to
//! what the rounding lost. A cast that narrows is never looked through.

mod misses;
mod opaque;

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator};

pub use misses::misses;
pub use opaque::Opaque;

use crate::table::{Column, Comparison, Datum, FIRST_RESERVED_ID, HiddenColumn, Predicate, Test};

/// Deepest nesting of conditions that is followed; what lies deeper is left out.
const MAX_DEPTH: usize = 64;

/// The predicate of a conjunction of filters on a table of these columns.
pub fn predicate<'a>(filters: impl IntoIterator<Item = &'a Expr>, columns: &[Arc<Column>]) -> Predicate {
    let converter = Converter { columns };
    let filters = filters.into_iter().map(opaque::seen_through);
    Predicate::and(filters.map(|filter| converter.convert(&filter, true, MAX_DEPTH)))
}

struct Converter<'a> {
    columns: &'a [Arc<Column>],
}

impl Converter<'_> {
    /// A predicate that holds for every row for which `expr` is TRUE, or FALSE where `truth` is false.
    fn convert(&self, expr: &Expr, truth: bool, depth: usize) -> Predicate {
        self.try_convert(expr, truth, depth).unwrap_or(Predicate::True)
    }

    fn try_convert(&self, expr: &Expr, truth: bool, depth: usize) -> Option<Predicate> {
        let depth = depth.checked_sub(1)?;
        Some(match expr {
            Expr::Literal(ScalarValue::Boolean(Some(value)), _) if *value == truth => Predicate::True,
            Expr::Literal(ScalarValue::Boolean(_), _) => Predicate::False,
            Expr::Alias(alias) => self.convert(&alias.expr, truth, depth),
            Expr::Not(inner) => self.convert(inner, !truth, depth),
            Expr::IsTrue(inner) if truth => self.convert(inner, true, depth),
            Expr::IsFalse(inner) if truth => self.convert(inner, false, depth),
            Expr::IsNotTrue(inner) if !truth => self.convert(inner, true, depth),
            Expr::IsNotFalse(inner) if !truth => self.convert(inner, false, depth),
            Expr::IsNull(inner) => self.null_test(inner, truth)?,
            Expr::IsNotNull(inner) => self.null_test(inner, !truth)?,
            Expr::Column(_) => self.compare(expr, Comparison::Eq, &ScalarValue::Boolean(Some(truth)))?,
            Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => {
                let parts = chain(expr, binary.op)?;
                let parts = parts.into_iter().map(|part| self.convert(part, truth, depth));
                // NOT (a AND b) is FALSE where one of both is.
                if (binary.op == Operator::And) == truth {
                    Predicate::and(parts)
                } else {
                    Predicate::or(parts)
                }
            }
            Expr::BinaryExpr(binary) => self.binary(&binary.left, binary.op, &binary.right, truth)?,
            Expr::Between(between) => {
                let (Expr::Literal(low, _), Expr::Literal(high, _)) = (between.low.as_ref(), between.high.as_ref()) else {
                    return None;
                };
                let side = |comparison: Comparison, bound| self.compare(&between.expr, comparison, bound).unwrap_or(Predicate::True);
                if between.negated == truth {
                    Predicate::or([side(Comparison::Lt, low), side(Comparison::Gt, high)])
                } else {
                    Predicate::and([side(Comparison::GtEq, low), side(Comparison::LtEq, high)])
                }
            }
            Expr::InList(list) => self.in_list(&list.expr, &list.list, list.negated != truth)?,
            Expr::Like(like) if !like.case_insensitive && like.escape_char.is_none() => {
                let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
                    return None;
                };
                self.like(&like.expr, text(pattern)?, like.negated != truth)?
            }
            Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                ("starts_with", [column, Expr::Literal(prefix, _)]) => self.starts_with(column, text(prefix)?, truth)?,
                ("isnan", [column]) => {
                    let operand = self.operand(column)?;
                    if operand.kind != Kind::Float {
                        return None;
                    }
                    Predicate::Term(operand.id, if truth { Test::IsNan } else { Test::NotNan })
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    fn binary(&self, left: &Expr, op: Operator, right: &Expr, truth: bool) -> Option<Predicate> {
        let (column, literal, is_swapped) = match (left, right) {
            (Expr::Literal(literal, _), column) => (column, literal, true),
            (column, Expr::Literal(literal, _)) => (column, literal, false),
            _ => return None,
        };
        let comparison = match op {
            Operator::Eq => Comparison::Eq,
            Operator::NotEq => Comparison::NotEq,
            Operator::Lt => Comparison::Lt,
            Operator::LtEq => Comparison::LtEq,
            Operator::Gt => Comparison::Gt,
            Operator::GtEq => Comparison::GtEq,
            // These two are never null.
            Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => {
                let same = (op == Operator::IsNotDistinctFrom) == truth;
                if literal.is_null() {
                    return self.null_test(column, same);
                }
                return Some(if same {
                    self.compare(column, Comparison::Eq, literal)?
                } else {
                    let other = self.compare(column, Comparison::NotEq, literal)?;
                    Predicate::or([other, self.null_test(column, true)?])
                });
            }
            _ => return None,
        };
        let comparison = if is_swapped { comparison.swapped() } else { comparison };
        self.compare(column, if truth { comparison } else { comparison.negated() }, literal)
    }

    fn null_test(&self, column: &Expr, is_null: bool) -> Option<Predicate> {
        let operand = self.operand(column)?;
        // A cast may make null of a value.
        let test = if is_null { Test::IsNull } else { Test::NotNull };
        operand.is_bare.then_some(Predicate::Term(operand.id, test))
    }

    fn compare(&self, column: &Expr, comparison: Comparison, literal: &ScalarValue) -> Option<Predicate> {
        let operand = self.operand(column)?;
        if literal.is_null() {
            return Some(Predicate::False);
        }
        let term = |test| Some(Predicate::Term(operand.id, test));
        match operand.constant(literal)? {
            Constant::Exact(value) if value.is_nan() => match comparison {
                Comparison::Eq => term(Test::IsNan),
                _ => term(Test::NotNull),
            },
            Constant::Exact(value) => term(Test::Compare(comparison, value)),
            Constant::Above(below) => match comparison {
                Comparison::Eq => Some(Predicate::False),
                Comparison::NotEq => term(Test::NotNull),
                Comparison::Lt | Comparison::LtEq => term(Test::Compare(Comparison::LtEq, below)),
                Comparison::Gt | Comparison::GtEq => term(Test::Compare(Comparison::Gt, below)),
            },
            Constant::Zero(zero) => match comparison {
                Comparison::Eq => term(Test::Compare(Comparison::Eq, zero)),
                Comparison::NotEq => term(Test::NotNull),
                Comparison::Lt | Comparison::LtEq => term(Test::Compare(Comparison::LtEq, zero)),
                Comparison::Gt | Comparison::GtEq => term(Test::Compare(Comparison::GtEq, zero)),
            },
        }
    }

    /// The column is in the list, or (`is_in` false) surely not in it.
    fn in_list(&self, column: &Expr, list: &[Expr], is_in: bool) -> Option<Predicate> {
        let operand = self.operand(column)?;
        let (mut values, mut has_null, mut has_nan) = (Vec::with_capacity(list.len()), false, false);
        for item in list {
            let Expr::Literal(literal, _) = item else { return None };
            if literal.is_null() {
                has_null = true;
                continue;
            }
            match operand.constant(literal)? {
                Constant::Exact(value) if value.is_nan() => has_nan = true,
                Constant::Exact(value) => values.push(value),
                // An int never equals -0.0 under the engine's order; leaving it in errs to the safe side.
                Constant::Zero(value) if is_in => values.push(value),
                Constant::Above(_) | Constant::Zero(_) => {}
            }
        }
        Some(match is_in {
            true => {
                let nan = if has_nan {
                    Predicate::Term(operand.id, Test::IsNan)
                } else {
                    Predicate::False
                };
                let rest = if values.is_empty() {
                    Predicate::False
                } else {
                    Predicate::Term(operand.id, Test::In(values))
                };
                Predicate::or([rest, nan])
            }
            // With a null in the list, NOT IN is never TRUE.
            false if has_null => Predicate::False,
            false => Predicate::Term(operand.id, Test::NotIn(values)),
        })
    }

    fn like(&self, column: &Expr, pattern: &str, matches: bool) -> Option<Predicate> {
        if pattern.contains('\\') {
            return None;
        }
        let wildcard = pattern.find(['%', '_']);
        let Some(at) = wildcard else {
            let comparison = if matches { Comparison::Eq } else { Comparison::NotEq };
            return self.compare(column, comparison, &ScalarValue::Utf8(Some(pattern.to_owned())));
        };
        let (prefix, rest) = pattern.split_at(at);
        // What follows the prefix narrows LIKE further, but widens NOT LIKE.
        if !matches && rest != "%" {
            return None;
        }
        self.starts_with(column, prefix, matches)
    }

    fn starts_with(&self, column: &Expr, prefix: &str, matches: bool) -> Option<Predicate> {
        let operand = self.operand(column)?;
        if operand.kind != Kind::Bytes || !is_text(&operand.now) {
            return None;
        }
        let prefix = prefix.as_bytes().to_vec();
        Some(Predicate::Term(
            operand.id,
            if matches {
                Test::StartsWith(prefix)
            } else {
                Test::NotStartsWith(prefix)
            },
        ))
    }

    /// A column, possibly inside structs, possibly under casts that change no value.
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Column(column) => Operand::new(self.column(&column.name)?),
            Expr::ScalarFunction(call) if call.func.name() == "get_field" => Operand::new(self.nested(expr, MAX_DEPTH)?),
            Expr::Cast(cast) => self.operand(&cast.expr)?.cast(cast.field.data_type()),
            Expr::TryCast(cast) => self.operand(&cast.expr)?.cast(cast.field.data_type()),
            _ => None,
        }
    }

    /// A column of the table. A hidden one is not what files and manifests say of its field id.
    fn column(&self, name: &str) -> Option<&Arc<Column>> {
        let own = |c: &&Arc<Column>| HiddenColumn::from_id(c.id).is_none();
        self.columns.iter().filter(own).find(|c| c.field.name() == name)
    }

    /// The column that a chain of struct accesses leads to.
    fn nested(&self, expr: &Expr, depth: usize) -> Option<&Arc<Column>> {
        let depth = depth.checked_sub(1)?;
        match expr {
            Expr::Column(column) => self.column(&column.name),
            Expr::ScalarFunction(call) if call.func.name() == "get_field" => {
                let (base, path) = call.args.split_first()?;
                let mut at = self.nested(base, depth)?;
                for step in path {
                    let (Expr::Literal(name, _), DataType::Struct(_)) = (step, at.field.data_type()) else {
                        return None;
                    };
                    let name = text(name)?;
                    at = at.children.iter().find(|c| c.field.name() == name)?;
                }
                Some(at)
            }
            _ => None,
        }
    }
}

/// The parts of a chain of one operator, without recursion along it.
fn chain(expr: &Expr, op: Operator) -> Option<Vec<&Expr>> {
    let (mut parts, mut open) = (Vec::new(), vec![expr]);
    while let Some(next) = open.pop() {
        match next {
            Expr::BinaryExpr(binary) if binary.op == op => open.extend([binary.right.as_ref(), binary.left.as_ref()]),
            other => parts.push(other),
        }
    }
    Some(parts)
}

/// The domain that a column compares in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Float,
    Bytes,
}

/// A constant in the unit of the column.
enum Constant {
    Exact(Datum),
    /// Between this value and the next one that the column can have.
    Above(Datum),
    /// Zero that came from a float, whose sign the column cannot have.
    Zero(Datum),
}

/// A column under casts.
#[derive(Debug)]
struct Operand {
    id: i32,
    kind: Kind,
    /// Type after the casts.
    now: DataType,
    /// A number of the column times this is the number after the casts.
    factor: i128,
    /// Whole numbers were cast to double.
    as_float: bool,
    is_bare: bool,
}

impl Operand {
    fn new(column: &Arc<Column>) -> Option<Self> {
        use DataType as T;
        let kind = match column.field.data_type() {
            T::Boolean => Kind::Boolean,
            T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Date32 | T::Decimal128(_, _) => Kind::Number,
            T::Time64(TimeUnit::Microsecond) | T::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) => Kind::Number,
            T::Float32 | T::Float64 => Kind::Float,
            T::Utf8 | T::Binary | T::FixedSizeBinary(_) => Kind::Bytes,
            _ => return None,
        };
        (column.id < FIRST_RESERVED_ID).then(|| Self {
            id: column.id,
            kind,
            now: column.field.data_type().clone(),
            factor: 1,
            as_float: false,
            is_bare: true,
        })
    }

    /// The operand under one more cast; `None` where the cast may change a value or the order.
    fn cast(self, to: &DataType) -> Option<Self> {
        use DataType as T;
        let whole_digits = |p: u8, s: i8| i16::from(p) - i16::from(s);
        let step = match (&self.now, to) {
            (from, to) if from == to => Some(1),
            _ if self.as_float => None,
            (T::Int8, T::Int16 | T::Int32 | T::Int64) | (T::Int16, T::Int32 | T::Int64) | (T::Int32, T::Int64) => Some(1),
            (T::Float32, T::Float64) => Some(1),
            (T::Int8 | T::Int16 | T::Int32, T::Float64) if self.factor == 1 => {
                return Some(Self {
                    now: to.clone(),
                    as_float: true,
                    is_bare: false,
                    ..self
                });
            }
            (T::Int8 | T::Int16 | T::Int32, T::Decimal128(p, s)) if *s >= 0 && whole_digits(*p, *s) >= 10 => power_of_ten(*s),
            (T::Int64, T::Decimal128(p, s)) if *s >= 0 && whole_digits(*p, *s) >= 19 => power_of_ten(*s),
            (T::Decimal128(p, s), T::Decimal128(to_p, to_s)) if to_s >= s && whole_digits(*to_p, *to_s) >= whole_digits(*p, *s) => {
                power_of_ten(to_s - s)
            }
            (T::Date32, T::Timestamp(unit, None)) => Some(units_per_second(*unit) * 86_400),
            (T::Timestamp(from, from_zone), T::Timestamp(to, to_zone)) => {
                let keeps_instant = match (from_zone, to_zone) {
                    (None, None) | (Some(_), Some(_)) => true,
                    (Some(zone), None) | (None, Some(zone)) => matches!(zone.as_ref(), "UTC" | "+00:00" | "Z"),
                };
                let (from, to) = (units_per_second(*from), units_per_second(*to));
                (keeps_instant && to >= from).then(|| to / from)
            }
            (T::Time64(TimeUnit::Microsecond), T::Time64(TimeUnit::Nanosecond)) => Some(1_000),
            (T::Utf8 | T::LargeUtf8 | T::Utf8View, T::Utf8 | T::LargeUtf8 | T::Utf8View) => Some(1),
            (T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_), T::Binary | T::LargeBinary | T::BinaryView) => Some(1),
            _ => None,
        }?;
        Some(Self {
            now: to.clone(),
            factor: self.factor.checked_mul(step)?,
            is_bare: false,
            ..self
        })
    }

    /// A constant of the operand's type after the casts, in the unit of the column.
    fn constant(&self, literal: &ScalarValue) -> Option<Constant> {
        let value = datum(literal, &self.now)?;
        if self.as_float {
            let Datum::Float(value) = value else { return None };
            // Far beyond any int; also keeps infinities and NaN out.
            if value.is_nan() || value.abs() > 1e18 {
                return None;
            }
            let below = value.floor();
            #[allow(clippy::cast_possible_truncation)]
            let whole = Datum::Number(below as i128);
            return Some(match value {
                0.0 => Constant::Zero(whole),
                _ if below < value => Constant::Above(whole),
                _ => Constant::Exact(whole),
            });
        }
        Some(match (self.kind, value) {
            (Kind::Number, Datum::Number(v)) => {
                let below = Datum::Number(v.div_euclid(self.factor));
                if v.rem_euclid(self.factor) == 0 {
                    Constant::Exact(below)
                } else {
                    Constant::Above(below)
                }
            }
            (Kind::Boolean, value @ Datum::Boolean(_))
            | (Kind::Float, value @ Datum::Float(_))
            | (Kind::Bytes, value @ Datum::Bytes(_)) => Constant::Exact(value),
            _ => return None,
        })
    }
}

fn power_of_ten(exponent: i8) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

fn units_per_second(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn text(literal: &ScalarValue) -> Option<&str> {
    literal.try_as_str().flatten()
}

/// A constant of type `of`; `None` for null, and for a constant of another type.
fn datum(literal: &ScalarValue, of: &DataType) -> Option<Datum> {
    use DataType as T;
    use ScalarValue as S;
    let number = |v: &Option<i64>| v.map(|v| Datum::Number(i128::from(v)));
    let zones_agree = |a: &Option<Arc<str>>, b: &Option<Arc<str>>| a.is_some() == b.is_some();
    match (literal, of) {
        (S::Boolean(v), T::Boolean) => v.map(Datum::Boolean),
        (S::Int8(v), T::Int8) => v.map(|v| Datum::Number(i128::from(v))),
        (S::Int16(v), T::Int16) => v.map(|v| Datum::Number(i128::from(v))),
        (S::Int32(v), T::Int32) | (S::Date32(v), T::Date32) => v.map(|v| Datum::Number(i128::from(v))),
        (S::Int64(v), T::Int64)
        | (S::Time64Microsecond(v), T::Time64(TimeUnit::Microsecond))
        | (S::Time64Nanosecond(v), T::Time64(TimeUnit::Nanosecond)) => number(v),
        (S::TimestampSecond(v, zone), T::Timestamp(TimeUnit::Second, to)) if zones_agree(zone, to) => number(v),
        (S::TimestampMillisecond(v, zone), T::Timestamp(TimeUnit::Millisecond, to)) if zones_agree(zone, to) => number(v),
        (S::TimestampMicrosecond(v, zone), T::Timestamp(TimeUnit::Microsecond, to)) if zones_agree(zone, to) => number(v),
        (S::TimestampNanosecond(v, zone), T::Timestamp(TimeUnit::Nanosecond, to)) if zones_agree(zone, to) => number(v),
        (S::Decimal128(v, _, scale), T::Decimal128(_, to)) if scale == to => v.map(Datum::Number),
        (S::Float32(v), T::Float32) => v.map(|v| Datum::Float(f64::from(v))),
        (S::Float64(v), T::Float64) => v.map(Datum::Float),
        (S::Utf8(_) | S::LargeUtf8(_) | S::Utf8View(_), of) if is_text(of) => text(literal).map(|v| Datum::Bytes(v.as_bytes().to_vec())),
        (S::Binary(v) | S::LargeBinary(v) | S::BinaryView(v), T::Binary | T::LargeBinary | T::BinaryView) => {
            v.as_ref().map(|v| Datum::Bytes(v.clone()))
        }
        (S::FixedSizeBinary(size, v), T::FixedSizeBinary(to)) if size == to => v.as_ref().map(|v| Datum::Bytes(v.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
