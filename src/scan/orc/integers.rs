//! Run-length encoded integers of ORC, both versions (ORC specification, "Run Length Encoding").
//!
//! Read for checking alone: `orc-rust` decodes the values that are used, but panics at runs that
//! no writer makes. A run has at most 512 values, so nothing large is allocated.

use crate::error::{Error, Result};

/// Integers of either version of the encoding, one after the other.
#[derive(Debug)]
pub(super) struct Integers<'a> {
    rest: &'a [u8],
    v2: bool,
    signed: bool,
    run: Vec<u64>,
    at: usize,
}

impl<'a> Integers<'a> {
    /// Reads `bytes`; signed numbers come as their two's complement.
    pub(super) fn new(bytes: &'a [u8], v2: bool, signed: bool) -> Self {
        Self {
            rest: bytes,
            v2,
            signed,
            run: Vec::new(),
            at: 0,
        }
    }

    /// The next number.
    ///
    /// Errors: `Corrupt` when the stream ends, or has a run that `orc-rust` would stumble over.
    pub(super) fn next(&mut self) -> Result<u64> {
        if self.at == self.run.len() {
            self.run.clear();
            self.at = 0;
            if self.v2 {
                self.run_v2()?;
            } else {
                self.run_v1()?;
            }
        }
        let value = self.run.get(self.at).copied().ok_or_else(damaged)?;
        self.at += 1;
        Ok(value)
    }

    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn signed_varint(&mut self) -> Result<i64> {
        Ok(zigzag(self.varint()?).cast_signed())
    }

    /// A number as the stream's sign has it.
    fn number(&self, value: u64) -> u64 {
        if self.signed { zigzag(value) } else { value }
    }

    fn big_endian(&mut self, bytes: usize) -> Result<u64> {
        let mut value = 0u64;
        for _ in 0..bytes {
            value = value << 8 | u64::from(self.byte()?);
        }
        Ok(value)
    }

    /// `count` numbers of so many bits, highest bit first.
    fn packed(&mut self, count: usize, bits: u32) -> Result<Vec<u64>> {
        let bytes = (count as u64 * u64::from(bits)).div_ceil(8);
        let packed = usize::try_from(bytes).ok().and_then(|n| self.rest.split_at_checked(n));
        let (packed, rest) = packed.ok_or_else(damaged)?;
        self.rest = rest;
        let (mut values, mut have, mut buffer) = (Vec::with_capacity(count), 0u32, 0u128);
        for byte in packed {
            buffer = buffer << 8 | u128::from(*byte);
            have += 8;
            while have >= bits && values.len() < count {
                have -= bits;
                let value = (buffer >> have) & ((1u128 << bits) - 1);
                values.push(u64::try_from(value).unwrap_or(u64::MAX));
            }
            buffer &= (1u128 << have) - 1;
        }
        Ok(values)
    }

    fn run_v1(&mut self) -> Result<()> {
        let header = self.byte()?;
        if header < 0x80 {
            let delta = i64::from(self.byte()?.cast_signed());
            let base = self.varint()?;
            let base = self.number(base);
            for i in 0..i64::from(header) + 3 {
                self.run.push(base.wrapping_add_signed(delta * i));
            }
        } else {
            for _ in 0..0x100 - u32::from(header) {
                let value = self.varint()?;
                self.run.push(self.number(value));
            }
        }
        Ok(())
    }

    fn run_v2(&mut self) -> Result<()> {
        let header = self.byte()?;
        let code = (header >> 1) & 0x1f;
        if header >> 6 == 0 {
            let value = self.big_endian(usize::from((header >> 3) & 7) + 1)?;
            let value = self.number(value);
            self.run.resize(usize::from(header & 7) + 3, value);
            return Ok(());
        }
        let count = (usize::from(header & 1) << 8 | usize::from(self.byte()?)) + 1;
        match header >> 6 {
            1 => {
                let values = self.packed(count, width(code))?;
                self.run = values.into_iter().map(|value| self.number(value)).collect();
            }
            2 => self.patched(count, width(code))?,
            _ => {
                let base = self.varint()?;
                let base = self.number(base);
                let first = self.signed_varint()?;
                if first == i64::MIN || (code != 0 && count < 2) {
                    return Err(damaged());
                }
                self.run.push(base);
                if count > 1 {
                    self.run.push(base.wrapping_add_signed(first));
                }
                let deltas = match code {
                    0 => vec![first.unsigned_abs(); count.saturating_sub(2)],
                    _ => self.packed(count.saturating_sub(2), width(code))?,
                };
                let mut last = base.wrapping_add_signed(first);
                for delta in deltas {
                    last = if first < 0 {
                        last.wrapping_sub(delta)
                    } else {
                        last.wrapping_add(delta)
                    };
                    self.run.push(last);
                }
            }
        }
        Ok(())
    }

    fn patched(&mut self, count: usize, bits: u32) -> Result<()> {
        let (third, fourth) = (self.byte()?, self.byte()?);
        let base_bytes = usize::from(third >> 5) + 1;
        let mut base = self.big_endian(base_bytes)?;
        let sign = 1u64 << (base_bytes * 8 - 1);
        if self.signed && base & sign != 0 {
            base = (base & !sign).wrapping_neg();
        }
        let patch_bits = width(third & 0x1f);
        let gap_bits = u32::from(fourth >> 5) + 1;
        let mut values = self.packed(count, bits)?;
        if patch_bits + gap_bits > 64 {
            return Err(damaged());
        }
        let patches = self.packed(usize::from(fourth & 0x1f), closest(patch_bits + gap_bits))?;
        let (mut at, mut open) = (0usize, true);
        for patch in patches {
            let gap = patch.checked_shr(patch_bits).unwrap_or(0);
            at = at.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            let value = patch & 1u64.checked_shl(patch_bits).map_or(u64::MAX, |bit| bit - 1);
            // A gap of 255 without a patch goes on in the next entry.
            open = gap == 255 && value == 0;
            if let Some(slot) = values.get_mut(at) {
                *slot |= value.checked_shl(bits).unwrap_or(0);
            }
        }
        if open {
            return Err(damaged());
        }
        self.run.extend(values.iter().map(|value| base.wrapping_add(*value)));
        Ok(())
    }
}

fn zigzag(value: u64) -> u64 {
    ((value >> 1).cast_signed() ^ -(value & 1).cast_signed()).cast_unsigned()
}

#[cold]
fn damaged() -> Error {
    Error::corrupt("an orc stream of integers is damaged or ends too early")
}

/// Bits that a code of five bits stands for.
fn width(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The next width that a code stands for.
fn closest(bits: u32) -> u32 {
    (0..32).map(width).find(|width| *width >= bits).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], v2: bool, count: usize) -> Vec<u64> {
        let mut integers = Integers::new(bytes, v2, false);
        let values = (0..count).map(|_| integers.next().unwrap()).collect();
        assert!(integers.next().is_err(), "nothing is left");
        values
    }

    /// The examples of the ORC specification.
    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(all(&[0x61, 0x00, 0x07], false, 100), [7; 100]);
        let down: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(all(&[0x61, 0xff, 0x64], false, 100), down);
        assert_eq!(all(&[0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], false, 5), [2, 3, 6, 7, 11]);
        assert_eq!(all(&[0x0a, 0x27, 0x10], true, 5), [10_000; 5]);
        let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
        assert_eq!(all(&direct, true, 4), [23713, 43806, 57005, 48879]);
        let patched = [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c,
            0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
        ];
        let expected = [
            2030, 2000, 2020, 1_000_000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140, 2150, 2160, 2170, 2180, 2190,
        ];
        assert_eq!(all(&patched, true, 20), expected);
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        assert_eq!(all(&delta, true, 10), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }

    #[test]
    fn signed_runs() {
        let all = |bytes: &[u8], v2, count| {
            let mut integers = Integers::new(bytes, v2, true);
            (0..count).map(|_| integers.next().unwrap().cast_signed()).collect::<Vec<_>>()
        };
        assert_eq!(all(&[0xff, 0x01], false, 1), [-1]);
        assert_eq!(all(&[0x00, 0x02, 0x01], false, 3), [-1, 1, 3]);
        assert_eq!(all(&[0x00, 0x03], true, 3), [-2; 3]);
        assert_eq!(all(&[0xc0, 0x02, 0x01, 0x01], true, 3), [-1, -2, -3]);
    }

    #[test]
    fn runs_that_orc_rust_would_stumble_over_are_refused() {
        for bytes in [
            // a delta run of one value with packed deltas
            &[0xc6, 0x00, 0x02, 0x02][..],
            // a patched run without patches
            &[0x8e, 0x00, 0x2b, 0x20, 0x07, 0xd0, 0x1e][..],
            // packed values cut
            &[0x5e, 0x03, 0x5c, 0xa1][..],
        ] {
            assert!(Integers::new(bytes, true, false).next().is_err(), "{bytes:x?}");
        }
    }
}
