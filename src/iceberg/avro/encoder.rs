//! Writes Avro's primitive encodings (Avro specification 1.12, "Binary encoding"); the other side
//! of [`Cursor`](super::Cursor).

/// Bytes in the making.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// What was written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes as they are: a fixed.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Avro's int and long: zig-zag, seven bits a byte.
    pub fn long(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while rest >= 0x80 {
            self.bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// The number of bytes or items of something that lies in memory.
    pub fn length(&mut self, len: usize) {
        self.long(i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// One byte, 0 or 1.
    pub fn boolean(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// Four bytes, little endian.
    pub fn float(&mut self, value: f32) {
        self.raw(&value.to_le_bytes());
    }

    /// Eight bytes, little endian.
    pub fn double(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// Length and bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.length(value.len());
        self.raw(value);
    }

    /// Length and bytes of UTF-8.
    pub fn string(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// A value of a union of null (first) and another type.
    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.long(0),
            Some(value) => {
                self.long(1);
                write(self, value);
            }
        }
    }

    /// An array in one block.
    pub fn array<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        if items.len() > 0 {
            self.length(items.len());
            items.for_each(|item| write(self, item));
        }
        self.long(0);
    }
}
