//! Values as JSON text, as Parquet's `VariantEncoding.md` maps them: decimals with all digits of
//! their scale and no exponent, floating point numbers with a fraction, dates, times and
//! timestamps in ISO 8601 form (zoned ones with `+00:00`), binary in base 64, UUIDs with hyphens.
//! JSON has no NaN and no infinities: those are the strings `NaN`, `Infinity` and `-Infinity`.

use std::fmt::Display;
use std::io::Write;

use arrow::temporal_conversions::{date32_to_datetime, time64us_to_time, timestamp_ns_to_datetime, timestamp_us_to_datetime};

use super::binary::{Metadata, Value};
use crate::error::{Error, Result};

/// Deepest nesting of objects and arrays.
pub(super) const MAX_DEPTH: usize = 250;

/// Text in the making. A value has as many bytes to spend as it is long: one that needs more
/// gives some of them twice.
pub(super) struct Writer<'t> {
    text: &'t mut Vec<u8>,
    budget: usize,
}

pub(super) fn too_deep() -> Error {
    Error::corrupt(format!("a variant is nested deeper than {MAX_DEPTH} levels"))
}

fn out_of_range(what: &str) -> Error {
    Error::corrupt(format!("a variant has a {what} out of range"))
}

impl<'t> Writer<'t> {
    /// Appends to `text`.
    pub(super) fn new(text: &'t mut Vec<u8>) -> Self {
        Self { text, budget: 0 }
    }

    /// A value in binary form that may spend `budget` bytes; with it, what is left of them.
    /// Errors: `Corrupt` where it is damaged.
    pub(super) fn value(&mut self, metadata: &Metadata<'_>, bytes: &[u8], budget: usize, depth: usize) -> Result<usize> {
        self.budget = budget;
        self.nested(metadata, bytes, depth)?;
        Ok(self.budget)
    }

    fn nested(&mut self, metadata: &Metadata<'_>, bytes: &[u8], depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let (value, own) = Value::parse(bytes)?;
        self.budget = self
            .budget
            .checked_sub(own)
            .ok_or_else(|| Error::corrupt("a variant is damaged: its parts overlap"))?;
        match value {
            Value::Array(elements) => {
                self.raw("[");
                for index in 0..elements.count {
                    self.comma(index > 0);
                    self.nested(metadata, elements.get(index)?, depth + 1)?;
                }
                self.raw("]");
            }
            Value::Object(fields) => {
                self.raw("{");
                for index in 0..fields.count {
                    let (name, bytes) = fields.get(index, metadata)?;
                    self.comma(index > 0);
                    self.key(name);
                    self.nested(metadata, bytes, depth + 1)?;
                }
                self.raw("}");
            }
            primitive => self.primitive(&primitive)?,
        }
        Ok(())
    }

    /// A value that has no children.
    pub(super) fn primitive(&mut self, value: &Value<'_>) -> Result<()> {
        match *value {
            Value::Null => self.raw("null"),
            Value::Boolean(v) => self.raw(if v { "true" } else { "false" }),
            Value::Integer(v) => self.display(v),
            Value::Float(v) => self.float(f64::from(v), &format!("{v:?}")),
            Value::Double(v) => self.float(v, &format!("{v:?}")),
            Value::Decimal { unscaled, scale } => self.decimal(unscaled, scale),
            Value::Date(days) => {
                let date = date32_to_datetime(days).ok_or_else(|| out_of_range("date"))?;
                self.quoted(date.format("%Y-%m-%d"));
            }
            Value::Time(micros) => {
                let time = time64us_to_time(micros).ok_or_else(|| out_of_range("time"))?;
                self.quoted(time.format("%H:%M:%S%.6f"));
            }
            Value::Timestamp { value, nanos, zoned } => {
                let time = if nanos {
                    timestamp_ns_to_datetime(value)
                } else {
                    timestamp_us_to_datetime(value)
                };
                let time = time.ok_or_else(|| out_of_range("timestamp"))?;
                self.quoted(time.format(match (nanos, zoned) {
                    (false, false) => "%Y-%m-%dT%H:%M:%S%.6f",
                    (false, true) => "%Y-%m-%dT%H:%M:%S%.6f+00:00",
                    (true, false) => "%Y-%m-%dT%H:%M:%S%.9f",
                    (true, true) => "%Y-%m-%dT%H:%M:%S%.9f+00:00",
                }));
            }
            Value::Binary(bytes) => self.base64(bytes),
            Value::String(text) => self.string(text),
            Value::Uuid(bytes) => self.quoted(uuid::Uuid::from_bytes(bytes)),
            Value::Array(_) | Value::Object(_) => return Err(Error::internal("a variant container is no primitive")),
        }
        Ok(())
    }

    /// Text that needs no escapes.
    pub(super) fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    pub(super) fn comma(&mut self, wanted: bool) {
        if wanted {
            self.raw(",");
        }
    }

    /// A field's name with its colon.
    pub(super) fn key(&mut self, name: &str) {
        self.string(name);
        self.raw(":");
    }

    fn display(&mut self, value: impl Display) {
        // Writing to memory does not fail.
        let _ = write!(self.text, "{value}");
    }

    fn quoted(&mut self, value: impl Display) {
        self.raw("\"");
        self.display(value);
        self.raw("\"");
    }

    fn string(&mut self, text: &str) {
        self.raw("\"");
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0x08 => "\\b",
                0x0c => "\\f",
                0..0x20 => "",
                _ => continue,
            };
            self.text.extend_from_slice(text.as_bytes().get(plain..at).unwrap_or_default());
            if escape.is_empty() {
                self.display(format_args!("\\u{byte:04x}"));
            } else {
                self.raw(escape);
            }
            plain = at + 1;
        }
        self.text.extend_from_slice(text.as_bytes().get(plain..).unwrap_or_default());
        self.raw("\"");
    }

    /// `shortest`: the fewest digits that mean the number in its own width.
    fn float(&mut self, value: f64, shortest: &str) {
        if value.is_nan() {
            self.raw("\"NaN\"");
        } else if value.is_infinite() {
            self.raw(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
        } else {
            match shortest.split_once('e') {
                Some((digits, exponent)) if !digits.contains('.') => self.display(format_args!("{digits}.0e{exponent}")),
                _ => self.raw(shortest),
            }
        }
    }

    fn decimal(&mut self, unscaled: i128, scale: u8) {
        let scale = usize::from(scale);
        let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if unscaled < 0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        self.display(format_args!("{sign}{whole}{point}{fraction}"));
    }

    fn base64(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.raw("\"");
        for chunk in bytes.chunks(3) {
            let word = chunk
                .iter()
                .chain(&[0; 2])
                .take(3)
                .fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
            for place in 0..4 {
                let digit = DIGITS.get(word >> (18 - 6 * place) & 63).copied().unwrap_or(b'=');
                self.text.push(if place <= chunk.len() { digit } else { b'=' });
            }
        }
        self.raw("\"");
    }
}
