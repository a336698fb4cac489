//! Random cells and literals of each type, drawn so that files and pages differ in range and that
//! predicates hit edges: nulls, NaN, times before 1970, common prefixes, characters beyond ASCII.

use serde_json::{Value, json};

use super::dice::Dice;
use super::transforms::{decimal, hex};
use crate::support::builder::Type;
use crate::support::canonical;

/// Types of the columns that predicates are about.
pub const TYPES: &[Type] = &[
    Type::Int,
    Type::Long,
    Type::Float,
    Type::Double,
    Type::Decimal(9, 2),
    Type::Decimal(18, 3),
    Type::Decimal(30, 4),
    Type::Date,
    Type::Timestamp,
    Type::Timestamptz,
    Type::TimestampNs,
    Type::TimestamptzNs,
    Type::String,
    Type::Binary,
    Type::Uuid,
    Type::Boolean,
];

const LETTERS: &[&str] = &["a", "b", "z", "é", "ß", "𝄞", "A", "0"];

/// A cell whose value lies around `center`, a number from 0 to 99.
pub fn cell(dice: &mut Dice, of: &Type, center: i64, nulls_in: usize) -> Value {
    if nulls_in > 0 && dice.one_in(nulls_in) {
        return Value::Null;
    }
    let near = center + dice.between(-3, 3);
    value(dice, of, near)
}

/// A value at a place of the type's range: equal places give near values.
pub fn value(dice: &mut Dice, of: &Type, place: i64) -> Value {
    match of {
        Type::Boolean => json!(place % 2 == 0),
        Type::Int => json!(place * 7 - 300),
        Type::Long => canonical::integer(i128::from(place - 50) * 3_000_000_000),
        Type::Float | Type::Double => {
            if dice.one_in(12) {
                return json!(*dice.pick(&["NaN", "Infinity", "-Infinity"]));
            }
            canonical::float((place - 50) as f64 * 0.25)
        }
        Type::Decimal(_, scale) => json!(decimal(i128::from(place - 50) * 1_234_567, *scale)),
        Type::Date => json!(canonical::date((place - 50) * 11 + dice.between(0, 2))),
        Type::Timestamp => json!(canonical::timestamp(micros(dice, place), 6, false)),
        Type::Timestamptz => json!(canonical::timestamp(micros(dice, place), 6, true)),
        Type::TimestampNs => json!(canonical::timestamp(micros(dice, place) * 1000 + dice.between(0, 999), 9, false)),
        Type::TimestamptzNs => json!(canonical::timestamp(micros(dice, place) * 1000 + dice.between(0, 999), 9, true)),
        Type::String => {
            let first = LETTERS[place.rem_euclid(LETTERS.len() as i64) as usize];
            let mut text = format!("{first}{:02}", place.rem_euclid(100));
            for _ in 0..dice.below(3) {
                text.push_str(LETTERS[dice.below(LETTERS.len())]);
            }
            json!(text)
        }
        Type::Binary => {
            let mut bytes = vec![place.rem_euclid(256) as u8];
            for _ in 0..dice.below(3) {
                bytes.push(*dice.pick(&[0, 1, 0x7f, 0x80, 0xff]));
            }
            json!(format!("hex:{}", hex(&bytes)))
        }
        Type::Uuid => {
            let number = (place.rem_euclid(256) as u128) << 120 | u128::from(place.unsigned_abs());
            json!(uuid::Uuid::from_u128(number).to_string())
        }
        other => panic!("no values of {other:?}"),
    }
}

fn micros(dice: &mut Dice, place: i64) -> i64 {
    (place - 50) * 40_000_000_000 + dice.between(0, 3) * 999_999
}

/// The value as an SQL literal of the column's type.
pub fn literal(of: &Type, value: &Value) -> String {
    let text = || value.as_str().unwrap().trim_end_matches('Z').replace('T', " ");
    match of {
        Type::Float | Type::Double => match value {
            Value::String(special) => format!("CAST('{special}' AS DOUBLE)"),
            number => format!("CAST({} AS DOUBLE)", canonical::dumps(number)),
        },
        Type::Decimal(p, s) => format!("CAST('{}' AS DECIMAL({p}, {s}))", text()),
        Type::Date => format!("DATE '{}'", text()),
        Type::Timestamp | Type::TimestampNs => format!("TIMESTAMP '{}'", text()),
        Type::Timestamptz | Type::TimestamptzNs => format!("TIMESTAMPTZ '{}Z'", text()),
        Type::String | Type::Uuid => format!("'{}'", value.as_str().unwrap().replace('\'', "''")),
        Type::Binary => format!("X'{}'", value.as_str().unwrap().trim_start_matches("hex:")),
        _ => match value {
            Value::String(digits) => digits.clone(),
            other => canonical::dumps(other),
        },
    }
}
