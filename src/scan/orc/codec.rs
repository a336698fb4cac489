//! Compressed ORC streams: chunks of a three-byte header and bytes, each decompressed within the
//! file's own block size, all of them within a limit that the caller gives.

use std::io::Read;

use crate::error::{Error, Result};

/// Block size where the file states none.
const DEFAULT_BLOCK: u64 = 256 << 10;
/// Largest block size that is believed.
const MAX_BLOCK: u64 = 64 << 20;
/// log2 of the largest zstd window: that of the largest block.
const ZSTD_WINDOW_LOG: u32 = 26;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Zlib,
    Snappy,
    Lz4,
    Zstd,
}

/// How the streams of a file are compressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codec {
    kind: Kind,
    /// Bytes of a decompressed chunk at most.
    block: usize,
}

fn bad(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::corrupt("an orc stream does not decompress").with_source(e)
}

impl Codec {
    /// From the postscript.
    ///
    /// Errors: `Unsupported` for another codec, `Corrupt` for a block size that is too large.
    pub(super) fn new(kind: i32, block: Option<u64>) -> Result<Self> {
        let kind = match kind {
            0 => Kind::None,
            1 => Kind::Zlib,
            2 => Kind::Snappy,
            3 => {
                return Err(Error::unsupported(
                    "orc codec lzo is not supported; rewrite the file with zlib or zstd",
                ));
            }
            4 => Kind::Lz4,
            5 => Kind::Zstd,
            other => {
                return Err(Error::unsupported(format!(
                    "orc codec number {other} is not supported; rewrite the file with zlib or zstd"
                )));
            }
        };
        let block = block.unwrap_or(DEFAULT_BLOCK);
        let checked = usize::try_from(block).ok().filter(|_| block <= MAX_BLOCK);
        let block = checked.ok_or_else(|| Error::corrupt(format!("orc compression block size is {block}")))?;
        Ok(Self { kind, block })
    }

    /// Appends the decompressed stream to `out`, which may hold `limit` bytes in all.
    ///
    /// Errors: `Corrupt` for chunks that do not decompress within the block size,
    /// `ResourceExhausted` at the limit.
    pub(super) fn decompress(self, mut stream: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<()> {
        if self.kind == Kind::None {
            room(out, stream.len(), limit)?;
            out.extend_from_slice(stream);
            return Ok(());
        }
        while !stream.is_empty() {
            let cut = || Error::corrupt("an orc stream ends within a compressed chunk");
            let (header, rest) = stream.split_first_chunk::<3>().ok_or_else(cut)?;
            let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            let length = usize::try_from(header >> 1).map_err(|_| cut())?;
            let (chunk, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
            stream = rest;
            if header & 1 == 1 {
                room(out, chunk.len(), limit)?;
                out.extend_from_slice(chunk);
            } else {
                room(out, 1, limit)?;
                self.chunk(chunk, out)?;
                room(out, 0, limit)?;
            }
        }
        Ok(())
    }

    fn chunk(self, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let most = self.block as u64 + 1;
        match self.kind {
            Kind::None => out.extend_from_slice(chunk),
            Kind::Zlib => {
                let decoder = flate2::read::DeflateDecoder::new(chunk);
                decoder.take(most).read_to_end(out).map_err(bad)?;
            }
            Kind::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(chunk).map_err(bad)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(bad)?;
                decoder.take(most).read_to_end(out).map_err(bad)?;
            }
            Kind::Snappy => {
                let length = snap::raw::decompress_len(chunk).map_err(bad)?;
                if length > self.block {
                    return Err(self.too_large());
                }
                out.resize(start + length, 0);
                let slot = out.get_mut(start..).unwrap_or_default();
                let written = snap::raw::Decoder::new().decompress(chunk, slot).map_err(bad)?;
                out.truncate(start + written);
            }
            Kind::Lz4 => {
                // A byte gives at most 255.
                let room = self.block.min(chunk.len().saturating_mul(255).saturating_add(16));
                out.resize(start + room, 0);
                let slot = out.get_mut(start..).unwrap_or_default();
                let written = lz4_flex::block::decompress_into(chunk, slot).map_err(bad)?;
                out.truncate(start + written);
            }
        }
        if out.len() - start > self.block {
            return Err(self.too_large());
        }
        Ok(())
    }

    fn too_large(self) -> Error {
        Error::corrupt(format!("an orc chunk is larger than the file's block size of {} bytes", self.block))
    }
}

fn room(out: &[u8], more: usize, limit: usize) -> Result<()> {
    if out.len().saturating_add(more) > limit {
        return Err(Error::resource_exhausted(format!(
            "an orc stripe or footer takes more than {limit} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// A chunk with its header.
    fn chunk(original: bool, bytes: &[u8]) -> Vec<u8> {
        let header = ((bytes.len() as u32) << 1 | u32::from(original)).to_le_bytes();
        [&header[..3], bytes].concat()
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::DeflateEncoder::new(bytes, flate2::Compression::best())
            .read_to_end(&mut out)
            .unwrap();
        out
    }

    #[test]
    fn chunks_of_every_codec_are_read() {
        let text = b"orc orc orc orc orc orc orc orc";
        let compressed = [
            (1, deflated(text)),
            (2, snap::raw::Encoder::new().compress_vec(text).unwrap()),
            (4, lz4_flex::block::compress(text)),
            (5, zstd::encode_all(&text[..], 3).unwrap()),
        ];
        for (kind, bytes) in compressed {
            let codec = Codec::new(kind, Some(64)).unwrap();
            let stream = [chunk(false, &bytes), chunk(true, b"!")].concat();
            let mut out = Vec::new();
            codec.decompress(&stream, &mut out, 1000).unwrap();
            assert_eq!(out, [&text[..], b"!"].concat(), "{kind}");
            let small = Codec::new(kind, Some(8)).unwrap();
            assert!(
                small.decompress(&stream, &mut Vec::new(), 1000).is_err(),
                "{kind}: larger than a block"
            );
            assert!(
                codec.decompress(&stream[..stream.len() - 2], &mut Vec::new(), 1000).is_err(),
                "{kind}: cut"
            );
        }
    }

    #[test]
    fn a_bomb_is_stopped() {
        let codec = Codec::new(1, Some(1 << 20)).unwrap();
        let bomb = chunk(false, &deflated(&vec![0; 1 << 20]));
        let many = bomb.repeat(10);
        let error = codec.decompress(&many, &mut Vec::new(), 4 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceExhausted);
    }

    #[test]
    fn unknown_codecs_are_refused_by_name() {
        assert_eq!(Codec::new(3, None).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(Codec::new(3, None).unwrap_err().to_string().contains("lzo"));
        assert_eq!(Codec::new(9, None).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Codec::new(1, Some(1 << 40)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
