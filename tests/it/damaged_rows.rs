//! Truncated and bit-flipped copies of Avro and ORC data files: each is refused with an error that
//! names the file, or shows the rows of the original. No copy makes a decoder panic. Avro headers
//! and ORC files have no checksums, so a flipped bit there can change a value: those are counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use datafusion::prelude::{SessionConfig, SessionContext};
use sandur::cache::Caches;
use sandur::error::{Error, ErrorKind};
use sandur::iceberg::TableLoader;
use sandur::io::Storage;
use sandur::runtime::DecodePool;
use sandur::scan::{LakeTableProvider, ScanContext};
use sandur::sql::from_datafusion;
use sandur::table::{AsOf, Table, TableIdent, TableLocation};
use serde_json::{Value, json};

use crate::support::builder::{Codec, DataFile, PositionDeletes, RowFormat, Schema, TableBuilder, TestTable, Type, optional, required};
use crate::support::canonical;

/// Panics in the decoders since the process started.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics by where they are, beside what other tests of this process do.
fn count_panics() -> usize {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let file = info.location().map(|at| at.file().replace('\\', "/")).unwrap_or_default();
            if ["orc-rust", "src/scan/", "iceberg/avro", "lz4_flex", "flate2", "snap"]
                .iter()
                .any(|part| file.contains(part))
            {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            before(info);
        }));
    });
    PANICS.load(Ordering::Relaxed)
}

/// Reads the table with caches of its own.
async fn read(table: &TestTable, pool: &Arc<DecodePool>) -> Result<Vec<String>, Error> {
    let caches = Arc::new(Caches::new(1 << 20, 1 << 20));
    let loader = TableLoader::new(Arc::new(Storage::default()), Arc::clone(&caches), Arc::clone(pool));
    let location = TableLocation {
        root: table.dir().to_str().unwrap().to_owned(),
        metadata_file: None,
        path_map: table.path_map(),
        ..TableLocation::default()
    };
    let loaded = loader.newest(&TableIdent::new("c", "s", "t"), &location).await?;
    let snapshot = loaded.snapshot(&AsOf::Latest).await?;
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let scan = Arc::new(ScanContext::new(caches, Arc::clone(pool)));
    session
        .register_table("t", Arc::new(LakeTableProvider::new(snapshot, scan)))
        .unwrap();
    let frame = session.sql("SELECT * FROM t").await.map_err(from_datafusion)?;
    let batches = frame.collect().await.map_err(from_datafusion)?;
    let rows: Vec<Vec<Value>> = batches.iter().flat_map(canonical::rows).collect();
    Ok(canonical::sorted_lines(&rows))
}

/// A row of a little of everything that both formats hold.
fn table(format: RowFormat) -> TestTable {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "s", Type::String),
        optional(3, "d", Type::Double),
        optional(4, "ts", Type::Timestamp),
        optional(5, "i", Type::Int),
        optional(6, "bo", Type::Boolean),
    ]);
    let row = |i: i64| match i % 7 {
        0 => json!([i, null, null, null, null, null]),
        _ => json!([
            i * i * 1_000_003,
            format!("text {}", i % 13),
            i as f64 / 3.0,
            format!("20{:02}-05-06T07:08:09.{:06}", i % 90, i * 37),
            i,
            i % 2 == 0
        ]),
    };
    let mut table = TableBuilder::temp(schema).create();
    let rows = (0..400).map(row);
    table.append(DataFile::named("F").stored_as(format).rows_from(rows).row_group_rows(150));
    table.delete_positions(PositionDeletes::named("P").rows("F", [3, 149, 150, 399]));
    table
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % end as u64).unwrap()
    }
}

/// What damaged copies came to.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    refused: usize,
    equal: usize,
    /// Other rows than the original's.
    different: usize,
}

/// Reads copies of the file `F` of the table, each made by `damage` from a number.
async fn damaged(table: &TestTable, copies: usize, damage: impl Fn(&mut Numbers, &mut Vec<u8>)) -> Outcome {
    let panics = count_panics();
    let pool = Arc::new(DecodePool::new(1).unwrap());
    let path = table.real_path("F");
    let original = std::fs::read(&path).unwrap();
    let expected = read(table, &pool).await.unwrap();
    let mut outcome = Outcome::default();
    for copy in 0..copies {
        let mut numbers = Numbers(copy as u64 * 7919 + 1);
        let mut bytes = original.clone();
        damage(&mut numbers, &mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        match read(table, &pool).await {
            Ok(rows) if rows == expected => outcome.equal += 1,
            Ok(_) => outcome.different += 1,
            Err(error) => {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(error.to_string().contains(name), "copy {copy}: {error}");
                let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::ResourceExhausted];
                assert!(kinds.contains(&error.kind()), "copy {copy}: {error:?}");
                outcome.refused += 1;
            }
        }
    }
    std::fs::write(&path, &original).unwrap();
    assert_eq!(read(table, &pool).await.unwrap(), expected, "the original is still read");
    assert_eq!(count_panics(), panics, "decoders panicked");
    println!("{} copies of {}: {outcome:?}", copies, path.display());
    outcome
}

fn truncate(numbers: &mut Numbers, bytes: &mut Vec<u8>) {
    bytes.truncate(numbers.below(bytes.len()));
}

/// Flips up to three bits from `start` on.
fn flip(numbers: &mut Numbers, bytes: &mut [u8], start: usize) {
    for _ in 0..=numbers.below(3) {
        let at = start + numbers.below(bytes.len() - start);
        bytes[at] ^= 1 << numbers.below(8);
    }
}

#[tokio::test]
async fn cut_files_are_refused() {
    for format in [RowFormat::Avro(Codec::Null), RowFormat::Avro(Codec::Snappy), RowFormat::Orc] {
        let table = table(format);
        let outcome = damaged(&table, 150, truncate).await;
        assert_eq!(outcome.refused, 150, "{format:?}: {outcome:?}");
    }
}

/// Snappy blocks of Avro have a checksum; what frames them is checked.
#[tokio::test]
async fn flipped_bits_in_checked_avro_blocks_are_refused() {
    let table = table(RowFormat::Avro(Codec::Snappy));
    let path = table.real_path("F");
    let bytes = std::fs::read(path).unwrap();
    let header = bytes.windows(16).position(|w| w == b"sandur-test-sync").unwrap() + 16;
    let outcome = damaged(&table, 300, |numbers, bytes| flip(numbers, bytes, header)).await;
    assert_eq!(outcome.different, 0, "{outcome:?}");
    assert!(outcome.refused > 250, "{outcome:?}");
}

#[tokio::test]
async fn flipped_bits_never_make_a_decoder_panic() {
    for format in [RowFormat::Avro(Codec::Null), RowFormat::Avro(Codec::Zstd), RowFormat::Orc] {
        let outcome = damaged(&table(format), 300, |numbers, bytes| flip(numbers, bytes, 0)).await;
        assert!(outcome.refused > 30, "{outcome:?}");
    }
}
