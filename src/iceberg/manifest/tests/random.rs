//! Random entries in every layout and codec come back as they went in; random damage never
//! does worse than an error.

use apache_avro::{Codec, DeflateSettings, ZstandardSettings};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::super::{Manifest, ManifestFile, read_manifest_list};
use super::writer::{Entry, Style, text};
use super::{listed, parse, table};
use crate::iceberg::spec::Literal;

fn codecs() -> [Codec; 4] {
    [
        Codec::Null,
        Codec::Deflate(DeflateSettings::default()),
        Codec::Snappy,
        Codec::Zstandard(ZstandardSettings::default()),
    ]
}

fn style() -> impl Strategy<Value = Style> {
    any::<[bool; 5]>().prop_map(|[null_last, reverse, narrow, wide, blocks]| Style {
        null_last,
        reverse,
        narrow,
        wide,
        blocks,
    })
}

/// Counts that fit an int, so that every layout can hold them.
fn counts() -> impl Strategy<Value = Option<Vec<(i32, i64)>>> {
    of(proptest::collection::btree_map(0..400_i32, 0..i64::from(i32::MAX), 0..12).prop_map(|map| map.into_iter().collect()))
}

fn bounds() -> impl Strategy<Value = Option<Vec<(i32, Vec<u8>)>>> {
    of(proptest::collection::btree_map(0..400_i32, vec(any::<u8>(), 0..20), 0..12).prop_map(|map| map.into_iter().collect()))
}

fn number() -> impl Strategy<Value = i64> {
    0..i64::from(i32::MAX)
}

prop_compose! {
    fn entry()(
        (status, snapshot_id, sequence_number) in (0..3_i32, of(number()), number()),
        path in ".{1,60}",
        format in prop::sample::select(vec!["parquet", "PARQUET", "Avro", "ORC"]),
        partition in (of(any::<i32>()), of(any::<i32>())),
        (record_count, file_size) in (number(), number()),
        (column_sizes, value_counts, null_value_counts, nan_value_counts) in (counts(), counts(), counts(), counts()),
        (lower_bounds, upper_bounds) in (bounds(), bounds()),
        key_metadata in of(vec(any::<u8>(), 0..4)),
        split_offsets in of(vec(number(), 0..5)),
        equality_ids in of(vec(0..400_i32, 0..4)),
        (sort_order_id, referenced) in (of(any::<i32>()), of(".{0,20}")),
        (content_offset, content_size) in (of(number()), of(number())),
    ) -> (Entry, (Option<i32>, Option<i32>)) {
        let entry = Entry {
            status, snapshot_id, sequence_number: Some(sequence_number), file_sequence_number: None,
            content: 0, path, format: format.to_owned(), partition: Vec::new(), record_count, file_size,
            column_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds,
            key_metadata, split_offsets, equality_ids, sort_order_id, first_row_id: None, referenced,
            content_offset, content_size,
        };
        (entry, partition)
    }
}

fn write(style: Style, codec: Codec, entries: &[(Entry, (Option<i32>, Option<i32>))]) -> Vec<u8> {
    let rows = entries.iter().map(|(entry, (id, bucket))| {
        let partition = vec![style.long(1000, id.map(i64::from)), style.int(1001, *bucket)];
        Entry {
            partition,
            ..entry.clone()
        }
        .row(style, &[])
    });
    style.container(&[("format-version", "2")], codec, rows.collect())
}

fn listed_spec_1() -> ManifestFile {
    ManifestFile {
        partition_spec_id: Some(1),
        ..listed()
    }
}

fn as_counts(pairs: Option<&Vec<(i32, i64)>>) -> Vec<(i32, u64)> {
    pairs.into_iter().flatten().map(|(id, count)| (*id, *count as u64)).collect()
}

fn as_bounds(pairs: Option<&Vec<(i32, Vec<u8>)>>) -> Vec<(i32, &[u8])> {
    pairs.into_iter().flatten().map(|(id, bytes)| (*id, bytes.as_slice())).collect()
}

fn assert_same(manifest: &Manifest, entries: &[(Entry, (Option<i32>, Option<i32>))]) {
    assert_eq!(manifest.len(), entries.len());
    for (ours, (entry, (id, bucket))) in manifest.entries().zip(entries) {
        assert_eq!(ours.status() as i32, entry.status);
        assert_eq!(ours.snapshot_id(), entry.snapshot_id.or(Some(77)));
        assert_eq!(Some(ours.sequence_number()), entry.sequence_number);
        assert_eq!(ours.file_sequence_number(), (entry.status == 1).then_some(5));
        assert_eq!(ours.file_path(), entry.path);
        assert_eq!(ours.file_format().as_str(), entry.format.to_lowercase());
        let partition = [id.map(|v| Literal::Long(v.into())), bucket.map(Literal::Int)];
        assert_eq!(ours.partition().as_ref(), partition);
        assert_eq!(ours.record_count(), entry.record_count as u64);
        assert_eq!(ours.file_size_in_bytes(), entry.file_size as u64);
        assert_eq!(
            ours.value_counts().iter().collect::<Vec<_>>(),
            as_counts(entry.value_counts.as_ref())
        );
        assert_eq!(
            ours.null_value_counts().iter().collect::<Vec<_>>(),
            as_counts(entry.null_value_counts.as_ref())
        );
        assert_eq!(
            ours.nan_value_counts().iter().collect::<Vec<_>>(),
            as_counts(entry.nan_value_counts.as_ref())
        );
        assert_eq!(ours.lower_bounds().collect::<Vec<_>>(), as_bounds(entry.lower_bounds.as_ref()));
        assert_eq!(ours.upper_bounds().collect::<Vec<_>>(), as_bounds(entry.upper_bounds.as_ref()));
        assert_eq!(ours.has_key_metadata(), entry.key_metadata.is_some());
        assert_eq!(ours.split_offsets(), entry.split_offsets.as_deref());
        assert_eq!(ours.equality_ids(), entry.equality_ids.as_deref());
        assert_eq!(ours.sort_order_id(), entry.sort_order_id);
        assert_eq!(ours.referenced_data_file(), entry.referenced.as_deref());
        assert_eq!(ours.content_offset().map(u64::cast_signed), entry.content_offset);
        assert_eq!(ours.content_size_in_bytes().map(u64::cast_signed), entry.content_size);
    }
}

/// A change of one place of a file.
#[derive(Debug, Clone)]
enum Damage {
    Cut(prop::sample::Index),
    Set(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    /// The largest number that fits ten bytes.
    Huge(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        at().prop_map(Damage::Cut),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        at().prop_map(Damage::Remove),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        at().prop_map(Damage::Huge),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let len = bytes.len();
    match damage {
        Damage::Cut(at) => bytes.truncate(at.index(len)),
        Damage::Set(at, byte) => bytes[at.index(len)] = *byte,
        Damage::Remove(at) => drop(bytes.remove(at.index(len))),
        Damage::Insert(at, byte) => bytes.insert(at.index(len), *byte),
        Damage::Huge(at) => {
            let at = at.index(len);
            let huge = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
            bytes.splice(at..=at, huge);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn entries_come_back_as_written(style in style(), codec in 0..4_usize, entries in vec(entry(), 1..12)) {
        let bytes = write(style, codecs()[codec], &entries);
        assert_same(&parse(&bytes, &listed_spec_1()), &entries);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn damaged_manifests_give_a_manifest_or_an_error(
        style in style(), codec in 0..4_usize, entries in vec(entry(), 1..4), damages in vec(vec(damage(), 1..4), 100),
    ) {
        let whole = write(style, codecs()[codec], &entries);
        for damages in damages {
            let mut bytes = whole.clone();
            damages.iter().for_each(|damage| apply(&mut bytes, damage));
            if let Ok(manifest) = Manifest::parse(&bytes, &listed_spec_1(), &table()) {
                prop_assert!(manifest.memory_size() < 1 << 20);
                let bounds: usize = manifest.entries().map(|entry| entry.lower_bounds().count()).sum();
                prop_assert!(bounds < 1000);
            }
        }
    }

    #[test]
    fn damaged_lists_give_a_list_or_an_error(codec in 0..4_usize, damages in vec(vec(damage(), 1..4), 100)) {
        let style = Style::default();
        let columns = vec![text(500, Some("file:/t/m.avro")).required(), style.int(502, Some(0)), style.long(503, Some(1))];
        let whole = style.container(&[], codecs()[codec], vec![style.record("manifest_file", columns); 3]);
        for damages in damages {
            let mut bytes = whole.clone();
            damages.iter().for_each(|damage| apply(&mut bytes, damage));
            let _ = read_manifest_list(&bytes, "list").map(|manifests| manifests.len());
        }
    }
}
