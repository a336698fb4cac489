//! The binary form of a variant (Parquet `VariantEncoding.md`), read in place.
//!
//! Invariant: every offset, length and count is checked against the bytes at hand before it is
//! used; nothing is allocated.

use crate::error::{Error, Result};

/// The dictionary of field names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metadata<'a> {
    offsets: &'a [u8],
    width: usize,
    names: &'a [u8],
    count: usize,
}

/// One value; containers are read further by their own methods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f32),
    Double(f64),
    Decimal {
        unscaled: i128,
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds, or nanoseconds, since 1970-01-01.
    Timestamp {
        value: i64,
        nanos: bool,
        zoned: bool,
    },
    Binary(&'a [u8]),
    String(&'a str),
    Uuid([u8; 16]),
    Array(Elements<'a>),
    Object(Fields<'a>),
}

/// The elements of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Elements<'a> {
    offsets: &'a [u8],
    width: usize,
    values: &'a [u8],
    pub(super) count: usize,
}

/// The fields of an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fields<'a> {
    ids: &'a [u8],
    id_width: usize,
    offsets: &'a [u8],
    width: usize,
    values: &'a [u8],
    pub(super) count: usize,
}

fn broken(what: &str) -> Error {
    Error::corrupt(format!("a variant is damaged: {what}"))
}

/// Takes bytes from the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.0.split_at_checked(count) {
            Some((head, tail)) => {
                self.0 = tail;
                Ok(head)
            }
            None => Err(broken("it ends too early")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| broken("it ends too early"))
    }

    fn unsigned(&mut self, width: usize) -> Result<usize> {
        Ok(little_endian(self.take(width)?))
    }
}

/// Up to four bytes.
fn little_endian(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// Number `index` of a list of numbers.
fn number_at(list: &[u8], width: usize, index: usize) -> Result<usize> {
    let start = index.checked_mul(width).ok_or_else(|| broken("an index overflows"))?;
    let bytes = list.get(start..start + width).ok_or_else(|| broken("an index is out of range"))?;
    Ok(little_endian(bytes))
}

fn length_of_list(count: usize, width: usize) -> Result<usize> {
    count.checked_mul(width).ok_or_else(|| broken("a count overflows"))
}

impl<'a> Metadata<'a> {
    /// Reads the dictionary's header; names are checked when they are asked for.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor(bytes);
        let [header] = cursor.array::<1>()?;
        if header & 0x0f != 1 {
            return Err(Error::unsupported(format!("variants of version {} cannot be read", header & 0x0f)));
        }
        let width = usize::from(header >> 6) + 1;
        let count = cursor.unsigned(width)?;
        let length = length_of_list(count.checked_add(1).ok_or_else(|| broken("a count overflows"))?, width)?;
        let offsets = cursor.take(length)?;
        Ok(Self {
            offsets,
            width,
            names: cursor.0,
            count,
        })
    }

    /// The name of a field id.
    pub(super) fn name(&self, id: usize) -> Result<&'a str> {
        if id >= self.count {
            return Err(broken("a field id is not in its dictionary"));
        }
        let (start, end) = (
            number_at(self.offsets, self.width, id)?,
            number_at(self.offsets, self.width, id + 1)?,
        );
        let bytes = self
            .names
            .get(start..end)
            .ok_or_else(|| broken("a name lies outside of the dictionary"))?;
        std::str::from_utf8(bytes).map_err(|_| broken("a name is no UTF-8"))
    }
}

impl<'a> Value<'a> {
    /// Reads a value; bytes behind it are left alone. With it, how many bytes stand before its
    /// children (all of them, where it has none).
    pub(super) fn parse(bytes: &'a [u8]) -> Result<(Self, usize)> {
        let mut cursor = Cursor(bytes);
        let [first] = cursor.array::<1>()?;
        let header = first >> 2;
        let value = match first & 3 {
            0 => primitive(header, &mut cursor)?,
            1 => Self::String(text(cursor.take(usize::from(header))?)?),
            2 => Self::Object(Fields::parse(header, &mut cursor)?),
            _ => Self::Array(Elements::parse(header, &mut cursor)?),
        };
        let children = match value {
            Self::Object(fields) => fields.values.len(),
            Self::Array(elements) => elements.values.len(),
            _ => 0,
        };
        Ok((value, bytes.len() - cursor.0.len() - children))
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| broken("a string is no UTF-8"))
}

fn primitive<'a>(kind: u8, cursor: &mut Cursor<'a>) -> Result<Value<'a>> {
    let stamp = |value, nanos, zoned| Value::Timestamp { value, nanos, zoned };
    Ok(match kind {
        0 => Value::Null,
        1 => Value::Boolean(true),
        2 => Value::Boolean(false),
        3 => Value::Integer(i8::from_le_bytes(cursor.array()?).into()),
        4 => Value::Integer(i16::from_le_bytes(cursor.array()?).into()),
        5 => Value::Integer(i32::from_le_bytes(cursor.array()?).into()),
        6 => Value::Integer(i64::from_le_bytes(cursor.array()?)),
        7 => Value::Double(f64::from_le_bytes(cursor.array()?)),
        8..=10 => {
            let [scale] = cursor.array::<1>()?;
            let (unscaled, digits) = match kind {
                8 => (i32::from_le_bytes(cursor.array()?).into(), 9),
                9 => (i64::from_le_bytes(cursor.array()?).into(), 18),
                _ => (i128::from_le_bytes(cursor.array()?), 38),
            };
            if scale > digits {
                return Err(broken("a decimal has an impossible scale"));
            }
            Value::Decimal { unscaled, scale }
        }
        11 => Value::Date(i32::from_le_bytes(cursor.array()?)),
        12 => stamp(i64::from_le_bytes(cursor.array()?), false, true),
        13 => stamp(i64::from_le_bytes(cursor.array()?), false, false),
        14 => Value::Float(f32::from_le_bytes(cursor.array()?)),
        15 | 16 => {
            let length = cursor.unsigned(4)?;
            let bytes = cursor.take(length)?;
            if kind == 15 {
                Value::Binary(bytes)
            } else {
                Value::String(text(bytes)?)
            }
        }
        17 => Value::Time(i64::from_le_bytes(cursor.array()?)),
        18 => stamp(i64::from_le_bytes(cursor.array()?), true, true),
        19 => stamp(i64::from_le_bytes(cursor.array()?), true, false),
        20 => Value::Uuid(cursor.array()?),
        other => return Err(Error::unsupported(format!("variant values of type {other} cannot be read"))),
    })
}

/// Bytes of a count: four where there are many children.
fn count_width(is_large: bool) -> usize {
    if is_large { 4 } else { 1 }
}

impl<'a> Elements<'a> {
    fn parse(header: u8, cursor: &mut Cursor<'a>) -> Result<Self> {
        let width = usize::from(header & 3) + 1;
        let count = cursor.unsigned(count_width(header >> 2 & 1 == 1))?;
        let offsets = cursor.take(length_of_list(count + 1, width)?)?;
        let length = number_at(offsets, width, count)?;
        Ok(Self {
            offsets,
            width,
            values: cursor.take(length)?,
            count,
        })
    }

    /// The bytes of an element.
    pub(super) fn get(&self, index: usize) -> Result<&'a [u8]> {
        let start = number_at(self.offsets, self.width, index)?;
        let end = number_at(self.offsets, self.width, index + 1)?;
        self.values
            .get(start..end)
            .ok_or_else(|| broken("an element lies outside of its array"))
    }
}

impl<'a> Fields<'a> {
    fn parse(header: u8, cursor: &mut Cursor<'a>) -> Result<Self> {
        let (width, id_width) = (usize::from(header & 3) + 1, usize::from(header >> 2 & 3) + 1);
        let count = cursor.unsigned(count_width(header >> 4 & 1 == 1))?;
        let ids = cursor.take(length_of_list(count, id_width)?)?;
        let offsets = cursor.take(length_of_list(count + 1, width)?)?;
        let length = number_at(offsets, width, count)?;
        Ok(Self {
            ids,
            id_width,
            offsets,
            width,
            values: cursor.take(length)?,
            count,
        })
    }

    /// Name and bytes of a field. Values stand in any order, so the bytes may hold others behind it.
    pub(super) fn get(&self, index: usize, metadata: &Metadata<'a>) -> Result<(&'a str, &'a [u8])> {
        let name = metadata.name(number_at(self.ids, self.id_width, index)?)?;
        let start = number_at(self.offsets, self.width, index)?;
        let bytes = self
            .values
            .get(start..)
            .ok_or_else(|| broken("a field lies outside of its object"))?;
        Ok((name, bytes))
    }
}
