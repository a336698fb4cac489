//! Row sets against a plain ordered set, and the Roaring codecs against hand-made bytes.

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;

use super::{RowSet, deletion_vector, portable};
use crate::error::ErrorKind;

const HIGH: u64 = 1 << 32;

/// Positions in the shapes that matter: scattered, in runs, dense, near 2^32 and beyond it.
fn positions() -> impl Strategy<Value = BTreeSet<u64>> {
    let base = prop_oneof![Just(0), Just(65_000), Just(HIGH - 70_000), Just(HIGH), Just(7 * HIGH + 12_345)];
    let part = (base, 0..4u8, any::<u64>(), 1..3000u64).prop_map(|(base, shape, seed, count)| {
        let mut state = seed | 1;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut set = BTreeSet::new();
        match shape {
            0 => set.extend((0..count).map(|_| base + next(200_000))),
            1 => (0..count / 300 + 1).for_each(|_| {
                let start = base + next(150_000);
                set.extend(start..start + next(5_000) + 1);
            }),
            2 => set.extend((0..count * 4).map(|i| base + i * 2 + next(2))),
            _ => set.extend((0..count % 5).map(|_| base + next(100))),
        }
        set
    });
    prop::collection::vec(part, 0..3).prop_map(|parts| parts.into_iter().flatten().collect())
}

/// A span that cuts through the positions of `model`, or lies beside them.
fn span(model: &BTreeSet<u64>, pick: usize, before: u64, len: u64) -> Range<u64> {
    let around = model.iter().nth(pick % model.len().max(1)).copied().unwrap_or(HIGH);
    let start = around.saturating_sub(before);
    start..start + len
}

fn optimized(set: &RowSet) -> RowSet {
    let mut set = set.clone();
    set.optimize();
    set
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_row_set_answers_like_an_ordered_set(model in positions(), other in positions(), pick: usize, before in 0..90_000u64, len in 0..140_000u64) {
        let set: RowSet = model.iter().copied().collect();
        prop_assert_eq!(set.len(), model.len() as u64);
        prop_assert_eq!(set.is_empty(), model.is_empty());
        prop_assert_eq!(set.max(), model.last().copied());
        prop_assert!(set.iter().eq(model.iter().copied()));

        let rows = span(&model, pick, before, len);
        prop_assert_eq!(set.count_in(rows.clone()), model.range(rows.clone()).count() as u64);
        let from = |start| optimized(&set).iter_from(start).collect::<Vec<_>>();
        for start in [rows.start, rows.end, 0, HIGH] {
            prop_assert!(set.iter_from(start).eq(model.range(start..).copied()), "from {}", start);
            prop_assert!(model.range(start..).eq(&from(start)), "from {}", start);
        }
        prop_assert!(rows.step_by(97).all(|row| set.contains(row) == model.contains(&row)));

        let mut union = optimized(&set);
        union.union_with(&other.iter().rev().copied().collect());
        prop_assert!(union.iter().eq(model.union(&other).copied()));
    }

    #[test]
    fn a_keep_mask_marks_exactly_the_rows_outside_of_the_set(model in positions(), pick: usize, before in 0..90_000u64, len in 0..140_000u64) {
        let set: RowSet = model.iter().copied().collect();
        let rows = span(&model, pick, before, len);
        for set in [optimized(&set), set] {
            let mask = set.keep_mask(rows.clone());
            prop_assert_eq!(mask.len() as u64, len);
            prop_assert_eq!(mask.offset(), 0);
            let wrong = rows.clone().zip(mask.iter()).find(|(row, keep)| *keep == model.contains(row));
            prop_assert_eq!(wrong, None);
        }
    }

    #[test]
    fn serialised_sets_come_back_equal(model in positions()) {
        let set: RowSet = model.iter().copied().collect();
        let bytes = portable::encode_64(&set);
        prop_assert_eq!(&portable::decode_64(&bytes).unwrap(), &set);
        let mut longer = bytes.clone();
        longer.push(0);
        prop_assert_eq!(portable::decode_64(&longer).unwrap_err().kind(), ErrorKind::Corrupt);
        prop_assert_eq!(portable::decode_64_prefix(&longer).unwrap(), (set.clone(), bytes.len()));

        let blob = deletion_vector::encode_blob(&set);
        prop_assert_eq!(&deletion_vector::decode_blob(&blob, Some(set.len())).unwrap(), &set);
        prop_assert_eq!(deletion_vector::decode_blob(&blob, Some(set.len() + 1)).unwrap_err().kind(), ErrorKind::Corrupt);

        let low: RowSet = model.range(..HIGH).copied().collect();
        prop_assert_eq!(&portable::decode_32(&portable::encode_32(&low).unwrap()).unwrap(), &low);
        prop_assert_eq!(portable::encode_32(&set).is_ok(), low == set);
    }

    #[test]
    fn a_changed_vector_is_refused_or_still_a_valid_set(model in positions(), at: prop::sample::Index, flip in 1..=255u8, cut: prop::sample::Index) {
        let set: RowSet = model.iter().copied().collect();
        let mut bytes = portable::encode_64(&set);
        let cut = cut.index(bytes.len());
        prop_assert!(portable::decode_64(&bytes[..cut]).is_err());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(changed) = portable::decode_64(&bytes) {
            prop_assert_eq!(changed.len(), changed.iter().count() as u64);
            prop_assert_eq!(portable::decode_64(&portable::encode_64(&changed)).unwrap(), changed);
        }
    }

    #[test]
    fn a_changed_blob_is_refused(model in positions(), at: prop::sample::Index, flip in 1..=255u8, cut: prop::sample::Index) {
        let set: RowSet = model.iter().copied().collect();
        let mut blob = deletion_vector::encode_blob(&set);
        let cut = cut.index(blob.len());
        prop_assert!(deletion_vector::decode_blob(&blob[..cut], None).is_err());
        let at = at.index(blob.len());
        blob[at] ^= flip;
        prop_assert!(deletion_vector::decode_blob(&blob, None).is_err());
    }

    #[test]
    fn any_bytes_decode_or_fail_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = portable::decode_32(&bytes);
        let _ = portable::decode_64(&bytes);
        let _ = deletion_vector::decode_blob(&bytes, None);
    }
}

/// The 32-bit bitmap of one container, with the run cookie and the run flag set.
fn runs_bitmap(cardinality: u16, runs: &[(u16, u16)]) -> Vec<u8> {
    let mut bytes = vec![0x3b, 0x30, 0, 0, 1, 0, 0];
    bytes.extend((cardinality - 1).to_le_bytes());
    bytes.extend((runs.len() as u16).to_le_bytes());
    for (start, more) in runs {
        bytes.extend(start.to_le_bytes());
        bytes.extend(more.to_le_bytes());
    }
    bytes
}

/// The 32-bit bitmap of array containers: each has a key, a declared cardinality and values.
fn array_bitmap(containers: &[(u16, u16, &[u16])]) -> Vec<u8> {
    let mut bytes = vec![0x3a, 0x30, 0, 0];
    bytes.extend((containers.len() as u32).to_le_bytes());
    for (key, cardinality, _) in containers {
        bytes.extend(key.to_le_bytes());
        bytes.extend((cardinality - 1).to_le_bytes());
    }
    bytes.extend(vec![0; containers.len() * 4]);
    bytes.extend(
        containers
            .iter()
            .flat_map(|(_, _, values)| values.iter().flat_map(|v| v.to_le_bytes())),
    );
    bytes
}

fn maps(maps: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = (maps.len() as u64).to_le_bytes().to_vec();
    for (key, map) in maps {
        bytes.extend(key.to_le_bytes());
        bytes.extend(map);
    }
    bytes
}

fn message(bytes: &[u8]) -> String {
    let e = portable::decode_32(bytes).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    e.to_string()
}

#[test]
fn array_containers_must_ascend_and_be_as_long_as_declared() {
    let good = array_bitmap(&[(0, 3, &[1, 5, 9]), (2, 1, &[7])]);
    assert!(portable::decode_32(&good).unwrap().iter().eq([1, 5, 9, 131_079]));
    assert!(message(&array_bitmap(&[(0, 2, &[5, 5])])).contains("array values do not ascend"));
    assert!(message(&array_bitmap(&[(1, 1, &[5]), (1, 1, &[5])])).contains("container key 1 does not ascend"));
    assert!(message(&array_bitmap(&[(0, 3, &[5, 6])])).contains("array values need 6 bytes, 4 are left"));
    assert!(message(&array_bitmap(&[(0, 1, &[5, 6])])).contains("2 bytes follow"));
}

#[test]
fn runs_must_ascend_stay_in_their_container_and_add_up() {
    assert!(
        portable::decode_32(&runs_bitmap(7, &[(10, 3), (20, 2)]))
            .unwrap()
            .iter()
            .eq((10..14).chain(20..23))
    );
    let last = portable::decode_32(&runs_bitmap(2, &[(65_534, 1)])).unwrap();
    assert!(last.iter().eq([65_534, 65_535]));
    for bad in [&[(20, 2), (10, 3)][..], &[(10, 3), (13, 2)], &[(65_534, 2)]] {
        assert!(message(&runs_bitmap(7, bad)).contains("overlaps or leaves"), "{bad:?}");
    }
    assert!(message(&runs_bitmap(6, &[(10, 3), (20, 2)])).contains("6 values are declared, 7 are there"));
    assert!(message(&runs_bitmap(1, &[])).contains("1 values are declared, 0 are there"));
}

#[test]
fn touching_runs_are_one_run() {
    let set = portable::decode_32(&runs_bitmap(7, &[(10, 3), (14, 2)])).unwrap();
    assert!(set.iter().eq(10..17));
    assert_eq!(portable::encode_32(&set).unwrap(), runs_bitmap(7, &[(10, 6)]));
}

#[test]
fn bitset_containers_are_counted() {
    let bitset = |cardinality: u16| {
        let mut bytes = array_bitmap(&[(0, cardinality, &[])]);
        bytes.extend([0b0101_0101; 8192]);
        bytes
    };
    assert!(portable::decode_32(&bitset(32_768)).unwrap().iter().eq((0..65_536).step_by(2)));
    assert!(message(&bitset(32_767)).contains("32767 values are declared, 32768 are there"));
}

#[test]
fn declared_counts_are_checked_against_the_bytes() {
    assert!(message(&[0x3a, 0x30, 0, 0, 1, 0, 1, 0]).contains("65537 containers"));
    assert!(message(&[0x3a, 0x30, 0, 0, 0, 0, 1, 0]).contains("container headers need 262144 bytes"));
    assert!(message(&[1, 2, 3, 4]).contains("unknown cookie"));
    let mut many = maps(&[(0, array_bitmap(&[]))]);
    many[7] = 0x7f;
    let e = portable::decode_64(&many).unwrap_err();
    assert!(e.to_string().contains("maps are declared, 12 bytes follow"), "{e}");
}

#[test]
fn keys_of_maps_ascend_and_empty_maps_are_allowed() {
    let one = || array_bitmap(&[(0, 1, &[5])]);
    let set = portable::decode_64(&maps(&[(0, array_bitmap(&[])), (3, one())])).unwrap();
    assert!(set.iter().eq([3 * HIGH + 5]));
    let mut encoded = maps(&[(3, one())]);
    // The offset header: the values begin behind cookie, count, one header and one offset.
    encoded[8 + 4 + 12] = 16;
    assert_eq!(portable::encode_64(&set), encoded);
    for keys in [[3, 3], [3, 2]] {
        assert!(portable::decode_64(&maps(&[(keys[0], one()), (keys[1], one())])).is_err());
    }
}

#[test]
fn a_deletion_vector_is_framed_as_the_puffin_specification_says() {
    let set: RowSet = [1, 3, 5, 7, 9].into_iter().collect();
    let blob = deletion_vector::encode_blob(&set);
    // Length of what follows without the checksum: magic, map count, key, cookie, container count, header, offset, values.
    assert_eq!(blob[..4], (4 + 8 + 4 + 4 + 4 + 4 + 4 + 10u32).to_be_bytes());
    assert_eq!(blob[4..8], [0xd1, 0xd3, 0x39, 0x64]);
    assert_eq!(blob[8..16], 1u64.to_le_bytes());
    assert_eq!(blob[16..20], 0u32.to_le_bytes());
    assert_eq!(blob[36..46], [1, 0, 3, 0, 5, 0, 7, 0, 9, 0]);
    assert_eq!(blob[46..], crc32fast::hash(&blob[4..46]).to_be_bytes());
    assert_eq!(deletion_vector::encode_vector(&set), blob[4..46]);
    assert_eq!(deletion_vector::decode_vector(&blob[4..46], Some(5)).unwrap(), set);
    assert_eq!(deletion_vector::decode_blob(&blob, None).unwrap(), set);
}

#[test]
fn a_deletion_vector_names_what_is_wrong() {
    let blob = deletion_vector::encode_blob(&[1, 3].into_iter().collect());
    let failure = |blob: &[u8], expected| deletion_vector::decode_blob(blob, expected).unwrap_err().to_string();
    assert!(failure(&blob, Some(3)).contains("holds 2 positions, 3 are expected"));
    assert!(failure(&blob[..7], None).contains("too short"));
    assert!(failure(&blob[..blob.len() - 1], None).contains("declares 36 bytes, its blob of 43 bytes holds 35"));
    let mut flipped = blob.clone();
    flipped[40] ^= 1;
    assert!(failure(&flipped, None).contains("checksum"));
    let e = deletion_vector::decode_vector(&blob[5..40], None).unwrap_err();
    assert!(e.to_string().contains("instead of its magic"), "{e}");
    let beyond = deletion_vector::encode_blob(&[1 << 63].into_iter().collect());
    assert!(failure(&beyond, None).contains("above 2^63 - 1"));
}

#[test]
fn runs_are_stored_as_runs() {
    let mut set = RowSet::new();
    set.insert_range(1_000_000..1_075_114);
    // Two run containers: 8 (count) + 4 (key) + 4 + 1 (cookie, flags) + 2 * 4 (headers) + 2 * 6 (one run each).
    assert_eq!(portable::encode_64(&set).len(), 8 + 4 + 5 + 8 + 12);
    assert!(set.memory_size() < 1024);
}

#[test]
fn empty_and_reversed_spans_have_no_rows() {
    let set: RowSet = (0..10_000).collect();
    assert_eq!(set.keep_mask(5..5).len(), 0);
    #[expect(clippy::reversed_empty_ranges)]
    let reversed = 9..5;
    assert_eq!(set.keep_mask(reversed.clone()).len(), 0);
    assert_eq!(set.count_in(reversed), 0);
    assert_eq!(set.keep_mask(u64::MAX - 3..u64::MAX).count_set_bits(), 3);
    assert_eq!(RowSet::new().keep_mask(0..100).count_set_bits(), 100);
}
