//! Puffin files and deletion-vector blobs, encoded by hand (Puffin spec, `deletion-vector-v1`).
//!
//! Written from the specification alone: nothing of the crate is used, so that a shared
//! misunderstanding cannot hide.

use roaring::RoaringTreemap;
use serde_json::{Map, Value, json};

const PUFFIN_MAGIC: [u8; 4] = *b"PFA1";
const VECTOR_MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];
/// Field id of `_pos`, the field that a vector is about.
const POSITION_FIELD: i32 = 2_147_483_645;

/// What may be wrong with a vector's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Damage {
    #[default]
    None,
    /// One bit of the checksum is turned.
    Checksum,
    /// One bit of the vector's magic is turned, the checksum fits.
    Magic,
    /// The bitmap's last bytes are cut off, length and checksum fit.
    Truncated,
    /// The length prefix claims one byte more than there is.
    Length,
    /// Bitmap keys are not ascending (the first bitmap comes twice), length and checksum fit.
    KeysNotAscending,
}

/// A deletion vector blob: length (big-endian) of what is checked, magic, 64-bit roaring bitmap, CRC-32 (big-endian).
pub fn vector_blob(positions: impl IntoIterator<Item = u64>, run_length: bool, damage: Damage) -> Vec<u8> {
    let mut bitmap: RoaringTreemap = positions.into_iter().collect();
    if run_length {
        bitmap.optimize();
    }
    let mut body = VECTOR_MAGIC.to_vec();
    if damage == Damage::Magic {
        body[0] ^= 1;
    }
    match damage {
        Damage::KeysNotAscending => {
            let mut once = Vec::new();
            bitmap.serialize_into(&mut once).expect("memory");
            assert_eq!(once[..8], 1_u64.to_le_bytes(), "a vector below 2^32 has one bitmap");
            body.extend(2_u64.to_le_bytes());
            body.extend(&once[8..]);
            body.extend(&once[8..]);
        }
        _ => bitmap.serialize_into(&mut body).expect("memory"),
    }
    if damage == Damage::Truncated {
        body.truncate(body.len() - 2);
    }
    let mut checksum = crc32fast::hash(&body);
    if damage == Damage::Checksum {
        checksum ^= 1;
    }
    let length = u32::try_from(body.len()).expect("a small vector") + u32::from(damage == Damage::Length);
    let mut blob = length.to_be_bytes().to_vec();
    blob.extend(body);
    blob.extend(checksum.to_be_bytes());
    blob
}

/// One blob of a Puffin file.
#[derive(Debug, Clone)]
pub struct Blob {
    pub bytes: Vec<u8>,
    pub properties: Map<String, Value>,
}

impl Blob {
    /// A deletion vector for the data file of this recorded path.
    pub fn vector(bytes: Vec<u8>, data_file: &str, cardinality: u64) -> Self {
        let mut properties = Map::new();
        properties.insert("referenced-data-file".to_owned(), json!(data_file));
        properties.insert("cardinality".to_owned(), json!(cardinality.to_string()));
        Self { bytes, properties }
    }
}

/// A Puffin file: its bytes and the offset of each blob.
#[derive(Debug, Clone)]
pub struct PuffinFile {
    pub bytes: Vec<u8>,
    pub offsets: Vec<u64>,
}

/// A file of these blobs in order. `bare` leaves magic and footer out, as one writer once did.
pub fn file(blobs: &[Blob], bare: bool) -> PuffinFile {
    let mut bytes = if bare { Vec::new() } else { PUFFIN_MAGIC.to_vec() };
    let mut offsets = Vec::new();
    let mut described = Vec::new();
    for blob in blobs {
        let offset = bytes.len() as u64;
        offsets.push(offset);
        bytes.extend(&blob.bytes);
        described.push(json!({
            "type": "deletion-vector-v1",
            "fields": [POSITION_FIELD],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": offset,
            "length": blob.bytes.len(),
            "properties": blob.properties,
        }));
    }
    if !bare {
        let footer = json!({"blobs": described, "properties": {"created-by": "table builder"}}).to_string();
        bytes.extend(PUFFIN_MAGIC);
        bytes.extend(footer.as_bytes());
        bytes.extend(u32::try_from(footer.len()).expect("a small footer").to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(PUFFIN_MAGIC);
    }
    PuffinFile { bytes, offsets }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::cases;

    #[test]
    fn a_vector_has_the_bytes_of_the_specification() {
        // one array container with the values 1 and 3
        let expected = [
            0, 0, 0, 36, 0xd1, 0xd3, 0x39, 0x64, // length, magic
            1, 0, 0, 0, 0, 0, 0, 0, // one bitmap
            0, 0, 0, 0, // of key 0
            0x3a, 0x30, 0, 0, 1, 0, 0, 0, // no runs, one container
            0, 0, 1, 0, // key 0, two values
            16, 0, 0, 0, // offset of the container
            1, 0, 3, 0,
        ];
        let blob = vector_blob([3, 1], false, Damage::None);
        assert_eq!(blob[..expected.len()], expected);
        assert_eq!(blob[expected.len()..], crc32fast::hash(&expected[4..]).to_be_bytes());
    }

    #[test]
    fn a_vector_equals_that_of_another_writer() {
        let known: [(&str, Vec<u64>); 2] = [
            ("empty-position-index.bin", vec![]),
            ("small-alternating-values-position-index.bin", vec![1, 3, 5, 7, 9]),
        ];
        let files = cases::format("puffin/iceberg-go-dv");
        for (name, positions) in known {
            let Some(file) = files.iter().find(|f| f.name.ends_with(name)) else {
                continue;
            };
            assert_eq!(
                vector_blob(positions, false, Damage::None),
                std::fs::read(&file.path).unwrap(),
                "{name}"
            );
        }
    }

    #[test]
    fn blobs_lie_where_the_footer_says() {
        let one = Blob::vector(vector_blob([1], false, Damage::None), "/t/a.parquet", 1);
        let two = Blob::vector(vector_blob([2, 5], true, Damage::None), "/t/b.parquet", 2);
        let file = file(&[one.clone(), two.clone()], false);
        assert_eq!(file.offsets, [4, 4 + one.bytes.len() as u64]);
        let end = file.bytes.len();
        assert_eq!(&file.bytes[end - 4..], b"PFA1");
        let length = u32::from_le_bytes(file.bytes[end - 12..end - 8].try_into().unwrap()) as usize;
        let footer: Value = serde_json::from_slice(&file.bytes[end - 12 - length..end - 12]).unwrap();
        let second = &footer["blobs"][1];
        let (offset, length) = (
            second["offset"].as_u64().unwrap() as usize,
            second["length"].as_u64().unwrap() as usize,
        );
        assert_eq!(file.bytes[offset..offset + length], two.bytes);
        assert_eq!(second["properties"]["cardinality"], "2");
    }
}
