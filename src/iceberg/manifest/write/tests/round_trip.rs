//! Random files come back from a manifest as they went in, and from every manifest that they are
//! carried to after that.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

use super::super::ManifestListWriter;
use super::*;
use crate::iceberg::avro::Codec;
use crate::iceberg::manifest::read_manifest_list_in_full;

const CODECS: [Codec; 4] = [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard];

fn number() -> impl Strategy<Value = u64> {
    0..1_u64 << 40
}

fn counts() -> impl Strategy<Value = BTreeMap<i32, u64>> {
    btree_map(0..400_i32, number(), 0..8)
}

fn bounds() -> impl Strategy<Value = BTreeMap<i32, Vec<u8>>> {
    btree_map(0..400_i32, vec(any::<u8>(), 0..20), 0..8)
}

prop_compose! {
    /// A data file of spec 1 that v1 takes too.
    fn file()(
        path in ".{1,40}",
        format in prop::sample::select(vec![FileFormat::Parquet, FileFormat::Avro, FileFormat::Orc]),
        (id, bucket) in (of(any::<i64>()), of(0..4_i32)),
        (record_count, size) in (number(), 1..1_u64 << 40),
        (column_sizes, value_counts, null_value_counts, nan_value_counts) in (counts(), counts(), counts(), counts()),
        (lower_bounds, upper_bounds) in (bounds(), bounds()),
        key_metadata in of(vec(any::<u8>(), 0..4)),
        mut split_offsets in of(vec(0..1_i64 << 40, 0..5)),
        sort_order_id in of(any::<i32>()),
    ) -> DataFile {
        if let Some(offsets) = &mut split_offsets {
            offsets.sort_unstable();
        }
        DataFile {
            file_format: format,
            record_count,
            file_size_in_bytes: size,
            column_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds,
            key_metadata, split_offsets, sort_order_id,
            ..partitioned(&path, id, bucket)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn files_come_back_and_stay_the_same(version in 1..=3_u8, codec in 0..4_usize, files in vec(file(), 1..8), gone in vec(any::<bool>(), 8)) {
        let layout = AvroLayout { codec: CODECS[codec], ..layout() };
        let metadata = table_of(version);
        let number = |n| if version == 1 { 0 } else { n };
        let row_id = |id| (version == 3).then_some(id);

        let mut manifest = ManifestWriter::new(&metadata, 1, ManifestContent::Data, 70, layout).unwrap();
        files.iter().for_each(|file| manifest.add(file).unwrap());
        let (bytes, listed) = manifest.finish("first").unwrap();
        let mut list = ManifestListWriter::new(version, 70, None, number(8), row_id(100), layout).unwrap();
        list.add(&listed).unwrap();
        let written = list.finish().unwrap();
        let lists = read_manifest_list_in_full(&written.bytes, "list").unwrap();
        prop_assert_eq!(&lists, &written.manifests);
        prop_assert_eq!(oracle(&bytes).0.len(), files.len());
        let first = read(version, &bytes, &lists[0]);
        for (entry, file) in first.entries().zip(&files) {
            let same = DataFile { first_row_id: entry.first_row_id(), ..file.clone() };
            prop_assert_eq!(entry.to_data_file(), same);
        }

        let mut next = ManifestWriter::new(&metadata, 1, ManifestContent::Data, 71, layout).unwrap();
        for (entry, gone) in first.entries().zip(&gone) {
            if *gone { next.delete(&entry).unwrap() } else { next.existing(&entry).unwrap() }
        }
        let (bytes, listed) = next.finish("second").unwrap();
        let mut list = ManifestListWriter::new(version, 71, Some(70), number(9), row_id(1 << 50), layout).unwrap();
        list.add(&listed).unwrap();
        let second = read(version, &bytes, &list.finish().unwrap().manifests[0]);
        for ((entry, old), gone) in second.entries().zip(first.entries()).zip(gone) {
            prop_assert_eq!(entry.to_data_file(), old.to_data_file());
            prop_assert_eq!(entry.snapshot_id(), Some(if gone { 71 } else { 70 }));
            prop_assert_eq!((entry.sequence_number(), entry.file_sequence_number()), (number(8), Some(number(8))));
        }
    }
}
