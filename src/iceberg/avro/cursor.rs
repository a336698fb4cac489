//! Reads Avro's primitive encodings from a slice. Every length is checked against the rest of
//! the slice; every error is `Corrupt`.

use super::NodeId;
use crate::error::{Error, Result};

/// A position in decoded bytes.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

#[cold]
fn truncated() -> Error {
    Error::corrupt("avro value ends too early")
}

#[cold]
fn overflow() -> Error {
    Error::corrupt("avro number has more than 64 bits")
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or_else(truncated)?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or_else(truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    /// A zig-zag number of at most 64 bits: Avro's int and long.
    #[inline]
    pub fn long(&mut self) -> Result<i64> {
        let mut value = 0_u64;
        for (i, byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                return Err(overflow());
            }
            value |= bits << (7 * i);
            if *byte < 0x80 {
                self.rest = self.rest.get(i + 1..).unwrap_or_default();
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        Err(if self.rest.len() < 10 { truncated() } else { overflow() })
    }

    /// A number of at most 32 bits.
    pub fn int(&mut self) -> Result<i32> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| Error::corrupt(format!("avro int {value} has more than 32 bits")))
    }

    /// One byte, 0 or 1.
    pub fn boolean(&mut self) -> Result<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(Error::corrupt(format!("avro boolean is {other}"))),
        }
    }

    /// Four bytes, little endian.
    pub fn float(&mut self) -> Result<f32> {
        self.array().map(f32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    pub fn double(&mut self) -> Result<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// Length and so many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.long()?;
        let len = usize::try_from(len).map_err(|_| Error::corrupt(format!("avro length {len} is negative")))?;
        self.take(len)
    }

    /// Length and so many bytes of UTF-8.
    pub fn string(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|e| Error::corrupt("avro string is not utf-8").with_source(e))
    }

    /// The branch of a union that follows.
    pub(super) fn branch(&mut self, branches: &[NodeId]) -> Result<NodeId> {
        let index = self.long()?;
        usize::try_from(index)
            .ok()
            .and_then(|i| branches.get(i).copied())
            .ok_or_else(|| Error::corrupt(format!("avro union has no branch {index}")))
    }

    /// Number of items of the next block of an array or map and, where the writer gave it, their size in bytes.
    fn block(&mut self) -> Result<Option<(u64, Option<usize>)>> {
        let count = self.long()?;
        if count == 0 {
            return Ok(None);
        }
        if count > 0 {
            return Ok(Some((count.unsigned_abs(), None)));
        }
        let size = self.long()?;
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= self.remaining())
            .ok_or_else(|| Error::corrupt(format!("avro block of {size} bytes where {} are left", self.remaining())))?;
        Ok(Some((count.unsigned_abs(), Some(size))))
    }

    /// Reads the items of an array or map. An item takes at least one byte.
    pub fn items(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while let Some((count, size)) = self.block()? {
            self.check_count(count)?;
            let before = self.remaining();
            for _ in 0..count {
                item(self)?;
            }
            if size.is_some_and(|size| before - self.remaining() != size) {
                return Err(Error::corrupt("avro block has another size than it declares"));
            }
        }
        Ok(())
    }

    /// Passes the items of an array or map; whole blocks at once where their size is known.
    pub(super) fn skip_blocks(&mut self, occupies: bool, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while let Some((count, size)) = self.block()? {
            if let Some(size) = size {
                self.take(size)?;
            } else if occupies {
                self.check_count(count)?;
                for _ in 0..count {
                    item(self)?;
                }
            }
        }
        Ok(())
    }

    fn check_count(&self, count: u64) -> Result<()> {
        if count > self.remaining() as u64 {
            return Err(Error::corrupt(format!(
                "avro block of {count} items where {} bytes are left",
                self.remaining()
            )));
        }
        Ok(())
    }
}
