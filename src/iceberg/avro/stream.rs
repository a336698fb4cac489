//! Container blocks of a file that is read in pieces.
//!
//! Invariants: a block is decoded only when all its bytes are there; how many more are needed is
//! known from the block's own length, which is capped before it is believed.

use super::codec::Decompressor;
use super::container::SYNC_LEN;
use super::{Codec, Cursor, MAX_BLOCK_BYTES};
use crate::error::{Error, Result};

/// Most bytes of a compressed block: what cannot be compressed grows a little.
const MAX_STORED_BYTES: usize = MAX_BLOCK_BYTES + (1 << 20);
/// Two numbers of at most 10 bytes stand before a block.
const MAX_PREFIX: usize = 20;

/// Codec and sync marker of a file, and where its blocks start.
#[derive(Debug, Clone)]
pub struct Framing {
    codec: Codec,
    sync: [u8; SYNC_LEN],
    header_len: usize,
}

/// What the next bytes of a file hold.
#[derive(Debug)]
pub enum Frame<'a> {
    /// A whole block, compressed; `len` bytes with everything around it.
    Block { count: u64, stored: &'a [u8], len: usize },
    /// So many bytes from the start of the block are needed at least.
    Incomplete { needed: usize },
}

/// A decompressed block that is read row by row.
#[derive(Debug, Default)]
pub struct OpenBlock {
    decompressor: Decompressor,
    bytes: Vec<u8>,
    at: usize,
    /// Values not yet read.
    left: u64,
}

impl Framing {
    pub(super) fn new(codec: Codec, sync: [u8; SYNC_LEN], header_len: usize) -> Self {
        Self { codec, sync, header_len }
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Looks at the block that `bytes` start with.
    ///
    /// Errors: `Corrupt` for a count, size or sync marker that cannot be right.
    pub fn frame<'a>(&self, bytes: &'a [u8]) -> Result<Frame<'a>> {
        let mut cursor = Cursor::new(bytes);
        let numbers = cursor.long().and_then(|count| Ok((count, cursor.long()?)));
        let (count, size) = match numbers {
            Ok(numbers) => numbers,
            Err(_) if bytes.len() < MAX_PREFIX => return Ok(Frame::Incomplete { needed: bytes.len() + 1 }),
            Err(e) => return Err(e),
        };
        let count = u64::try_from(count).map_err(|_| Error::corrupt(format!("avro block declares {count} values")))?;
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= MAX_STORED_BYTES)
            .ok_or_else(|| Error::corrupt(format!("avro block declares {size} bytes")))?;
        let len = bytes.len() - cursor.remaining() + size + SYNC_LEN;
        if bytes.len() < len {
            return Ok(Frame::Incomplete { needed: len });
        }
        let stored = cursor.take(size)?;
        if cursor.take(SYNC_LEN)? != self.sync {
            return Err(Error::corrupt("avro block does not end with the sync marker"));
        }
        Ok(Frame::Block { count, stored, len })
    }
}

impl OpenBlock {
    /// Decompresses a block, whose values are then read.
    pub fn open(&mut self, framing: &Framing, count: u64, stored: &[u8]) -> Result<()> {
        let bytes = self.decompressor.decompress(framing.codec, stored)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.at = 0;
        self.left = count;
        Ok(())
    }

    /// Values not yet read.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Reads values until `read` says that it is enough (gives false) or the block ends; each call of
    /// `read` takes one value. A block that ends must have been read to its last byte.
    pub fn read(&mut self, mut read: impl FnMut(&mut Cursor<'_>) -> Result<bool>) -> Result<()> {
        let mut cursor = Cursor::new(self.bytes.get(self.at..).unwrap_or_default());
        let mut more = true;
        while more && self.left > 0 {
            more = read(&mut cursor)?;
            self.left -= 1;
        }
        self.at = self.bytes.len() - cursor.remaining();
        match cursor.remaining() {
            left if left > 0 && self.left == 0 => Err(Error::corrupt(format!("avro block has {left} bytes more than its values take"))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing() -> Framing {
        Framing::new(Codec::Null, [7; SYNC_LEN], 0)
    }

    /// Two longs (1, -1) in a block.
    fn block() -> Vec<u8> {
        let mut bytes = vec![4, 4, 2, 1];
        bytes.extend([7; SYNC_LEN]);
        bytes
    }

    #[test]
    fn a_block_is_seen_once_all_its_bytes_are_there() {
        let bytes = block();
        for len in 0..bytes.len() {
            match framing().frame(&bytes[..len]).unwrap() {
                Frame::Incomplete { needed } => assert!(needed > len && needed <= bytes.len(), "{len}: {needed}"),
                Frame::Block { .. } => panic!("{len} bytes are no block"),
            }
        }
        let Frame::Block { count, stored, len } = framing().frame(&bytes).unwrap() else {
            panic!("a block");
        };
        assert_eq!((count, stored, len), (2, &[2, 1][..], bytes.len()));
    }

    #[test]
    fn values_are_read_in_several_calls() {
        let mut open = OpenBlock::default();
        open.open(&framing(), 2, &[2, 1]).unwrap();
        let mut seen = Vec::new();
        for _ in 0..2 {
            open.read(|cursor| {
                seen.push(cursor.long()?);
                Ok(false)
            })
            .unwrap();
        }
        assert_eq!((seen, open.left()), (vec![1, -1], 0));
    }

    #[test]
    fn wrong_numbers_are_refused() {
        let mut sync = block();
        sync[10] = 8;
        assert!(framing().frame(&sync).is_err());
        assert!(framing().frame(&[1, 4]).is_err(), "a negative count");
        assert!(framing().frame(&[2, 0xfe, 0xff, 0xff, 0xff, 0x0f]).is_err(), "a block of 4 GiB");
        assert!(framing().frame(&[0xff; 25]).is_err(), "a number of more than 64 bits");
        let mut open = OpenBlock::default();
        open.open(&framing(), 1, &[2, 1]).unwrap();
        assert!(open.read(|cursor| cursor.long().map(|_| true)).is_err(), "a byte is left over");
    }
}
