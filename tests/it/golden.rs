//! The golden tables: what other engines wrote, read by the engine, against the rows that are right.
//!
//! `tests/golden/README.md` is the catalogue.

use std::path::Path;

use crate::support::cases::Case;
use crate::support::read;

/// Reads the current rows of a golden table and compares them with its `expected.json`.
fn check(name: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let case = Case::open(&dir).expect("a golden table has an expectation");
    assert!(case.is_own(), "{name} is not the project's own");
    assert_eq!(case.status(), "rows");
    let read = read::query(&case, "SELECT * FROM t").unwrap_or_else(|e| panic!("{e:?}"));
    if let Some(difference) = case.difference(&read) {
        panic!("{name}: {difference}");
    }
}

macro_rules! golden {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

golden! {
    flink_v2_append_types,
    flink_v2_changelog,
    flink_v2_upsert,
    flink_v3_changelog,
    icebergjava_all_types_orc,
    icebergjava_all_types_parquet,
    icebergjava_eq_avro_orc_files,
    icebergjava_eq_key_sets,
    icebergjava_eq_nested_key,
    icebergjava_eq_null_nan,
    icebergjava_eq_partition_evolution,
    icebergjava_eq_types,
    icebergjava_identity_types,
    icebergjava_pos_sorted_multi,
    icebergjava_pos_with_row,
    icebergjava_v3_defaults,
    icebergjava_v3_dv_and_eq,
    icebergjava_v3_geometry,
    icebergjava_v3_nano,
    icebergjava_v3_unknown,
    icebergjava_zero_row_file,
    sample_customers,
    sample_measurements,
    sample_orders,
    spark35_v2_merge_partitioned,
    spark35_v3_dv_partitioned,
    spark_add_files_legacy,
    spark_branches_tags,
    spark_empty_after_delete,
    spark_empty_table,
    spark_identity_types,
    spark_name_mapping_add_files,
    spark_object_storage_paths,
    spark_odd_names,
    spark_parquet_codecs,
    spark_replaced_table,
    spark_schema_evolution_deletes,
    spark_v1_gzip,
    spark_v2_orc_data,
    spark_v2_posdel_file_avro,
    spark_v2_update_merge_mor,
    spark_v3_all_spark_types,
    spark_v3_dv_large_file,
    spark_v3_dv_many_in_puffin,
    spark_v3_dv_over_v2_file_posdel,
    spark_v3_dv_replaced,
    spark_v3_dv_rowgroups,
    spark_v3_leftover_posdel,
    spark_v3_upgraded_lineage,
}

#[test]
fn every_golden_table_is_read_and_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let catalogue = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut found: Vec<String> = std::fs::read_dir(&root)
        .unwrap()
        .filter_map(|e| {
            let e = e.unwrap();
            e.path().is_dir().then(|| e.file_name().into_string().unwrap())
        })
        .collect();
    found.sort();
    assert_eq!(found, NAMES);
    for name in NAMES {
        assert!(catalogue.contains(&format!("| {name} |")), "{name} is not in the catalogue");
    }
}
