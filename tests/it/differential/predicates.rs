//! Random predicates: as SQL text for the server, and as a plain evaluation on cells that knows
//! nothing of it (three-valued logic; NaN is above every number and equal to itself).

use std::cmp::Ordering;
use std::fmt::Write;

use serde_json::Value;

use super::dice::Dice;
use super::values::{literal, value};
use crate::support::builder::{Field, Scalar, Schema, Type};

/// A predicate over the columns of a schema, columns by index.
#[derive(Debug, Clone)]
pub enum Predicate {
    Compare(usize, &'static str, Value),
    In(usize, Vec<Value>, bool),
    Between(usize, Value, Value),
    IsNull(usize, bool),
    IsNan(usize),
    /// The pattern is this text and `%`.
    Starts(usize, String, bool),
    Not(Box<Predicate>),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
}

const OPERATORS: &[&str] = &["=", "<>", "<", "<=", ">", ">="];

impl Predicate {
    /// A random one; `cells` are the table's rows, from which half of the literals come.
    pub fn random(dice: &mut Dice, schema: &Schema, rows: &[Vec<Value>], depth: usize) -> Self {
        if depth > 0 && dice.one_in(2) {
            let left = Box::new(Self::random(dice, schema, rows, depth - 1));
            let right = Box::new(Self::random(dice, schema, rows, depth - 1));
            return match dice.below(5) {
                0 => Self::Not(left),
                1 | 2 => Self::And(left, right),
                _ => Self::Or(left, right),
            };
        }
        let column = dice.below(schema.fields.len());
        let of = &schema.fields[column].field_type;
        let mut operand = || {
            let known = (!rows.is_empty()).then(|| rows[dice.below(rows.len())][column].clone());
            match known {
                Some(known) if !known.is_null() && dice.one_in(2) => known,
                _ => {
                    let place = dice.between(-5, 105);
                    value(dice, of, place)
                }
            }
        };
        let (first, second) = (operand(), operand());
        match (dice.below(12), of) {
            (0, _) => Self::IsNull(column, dice.one_in(2)),
            (1, Type::Float | Type::Double) => Self::IsNan(column),
            (2..=4, Type::String) => {
                let length = dice.below(5);
                Self::Starts(column, first.as_str().unwrap().chars().take(length).collect(), dice.one_in(3))
            }
            (5, _) => Self::In(column, vec![first, second], dice.one_in(4)),
            (6, of) if *of != Type::Boolean => Self::Between(column, first, second),
            (_, Type::Boolean) => Self::Compare(column, OPERATORS[dice.below(2)], first),
            _ => Self::Compare(column, OPERATORS[dice.below(OPERATORS.len())], first),
        }
    }

    /// The predicate in SQL.
    pub fn sql(&self, schema: &Schema) -> String {
        let mut out = String::new();
        self.write(&schema.fields, &mut out);
        out
    }

    fn write(&self, fields: &[Field], out: &mut String) {
        let name = |column: &usize| format!("\"{}\"", fields[*column].name);
        let written = |column: &usize, value: &Value| literal(&fields[*column].field_type, value);
        let _ = match self {
            Self::Compare(c, op, v) => write!(out, "{} {op} {}", name(c), written(c, v)),
            Self::In(c, list, not) => {
                let list: Vec<String> = list.iter().map(|v| written(c, v)).collect();
                write!(out, "{} {}IN ({})", name(c), if *not { "NOT " } else { "" }, list.join(", "))
            }
            Self::Between(c, low, high) => write!(out, "{} BETWEEN {} AND {}", name(c), written(c, low), written(c, high)),
            Self::IsNull(c, not) => write!(out, "{} IS {}NULL", name(c), if *not { "NOT " } else { "" }),
            Self::IsNan(c) => write!(out, "isnan({})", name(c)),
            Self::Starts(c, text, not) => write!(out, "{} {}LIKE '{text}%'", name(c), if *not { "NOT " } else { "" }),
            Self::Not(inner) => {
                out.push_str("NOT (");
                inner.write(fields, out);
                out.write_char(')')
            }
            Self::And(left, right) | Self::Or(left, right) => {
                out.push('(');
                left.write(fields, out);
                out.push_str(if matches!(self, Self::And(..)) { " AND " } else { " OR " });
                right.write(fields, out);
                out.write_char(')')
            }
        };
    }

    /// True, false or unknown for a row.
    pub fn eval(&self, schema: &Schema, row: &[Value]) -> Option<bool> {
        let order = |c: &usize, v: &Value| compare(&schema.fields[*c].field_type, &row[*c], v);
        match self {
            Self::Compare(c, op, v) => order(c, v).map(|o| match *op {
                "=" => o.is_eq(),
                "<>" => o.is_ne(),
                "<" => o.is_lt(),
                "<=" => o.is_le(),
                ">" => o.is_gt(),
                _ => o.is_ge(),
            }),
            Self::In(c, list, not) => {
                let found = list.iter().map(|v| order(c, v)).collect::<Option<Vec<_>>>()?;
                Some(found.into_iter().any(Ordering::is_eq) != *not)
            }
            Self::Between(c, low, high) => Some(order(c, low)?.is_ge() && order(c, high)?.is_le()),
            Self::IsNull(c, not) => Some(row[*c].is_null() != *not),
            Self::IsNan(c) => (!row[*c].is_null()).then(|| row[*c] == "NaN"),
            Self::Starts(c, text, not) => row[*c].as_str().map(|s| s.starts_with(text.as_str()) != *not),
            Self::Not(inner) => inner.eval(schema, row).map(|v| !v),
            Self::And(left, right) => match (left.eval(schema, row), right.eval(schema, row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(left, right) => match (left.eval(schema, row), right.eval(schema, row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

fn compare(of: &Type, cell: &Value, with: &Value) -> Option<Ordering> {
    let (cell, with) = (Scalar::new(of, cell)?, Scalar::new(of, with)?);
    Some(match (cell.is_nan(), with.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => cell.order(&with),
    })
}
