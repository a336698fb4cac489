//! Every Iceberg case of the collection through the engine: the rows that are right, or a clear
//! error for what is not built. A silent different answer is never right.

use std::collections::BTreeMap;
use std::path::Path;

use sandur::error::ErrorKind;
use serde_json::{Value, json};

use crate::support::cases::{self, Case};
use crate::support::read;

/// Cases that are refused for good: name, words of the error.
const REFUSED: &[(&str, &str)] = &[
    // the writer put a length before each fixed value, against the Avro schema of its own file
    ("icebergjava_fixed_partition", "partition values of type fixed"),
];

/// What reading a case came to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Rows or count as expected.
    Right,
    /// Read, and nothing is stated to compare with.
    NothingStated,
    /// Differs, as `tests/known-differences.md` says.
    KnownDifference,
    /// Refused as not built, or for good.
    Refused(String),
    /// Anything else.
    Wrong(String),
}

fn outcome(case: &Case, known: &[String]) -> Outcome {
    let read = match read::query(case, "SELECT * FROM t") {
        Ok(read) => read,
        Err(e) => {
            let text = e.to_string();
            let for_good = REFUSED.iter().any(|(name, words)| *name == case.name && text.contains(words));
            let refused = for_good || e.kind() == ErrorKind::Unsupported;
            return if refused {
                Outcome::Refused(e.message().to_owned())
            } else {
                Outcome::Wrong(format!("{e:?}"))
            };
        }
    };
    let is_known = known.contains(&case.name);
    match (case.difference(&read), case.status()) {
        (Some(_), _) if is_known => Outcome::KnownDifference,
        (None, _) if is_known => Outcome::Wrong("listed as known difference, but right".to_owned()),
        (Some(difference), _) => Outcome::Wrong(difference),
        (None, "rows" | "count") => Outcome::Right,
        (None, _) => Outcome::NothingStated,
    }
}

/// Case names in the headings `## iceberg/<case>`.
fn known_differences() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/known-differences.md");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.strip_prefix("## iceberg/"));
    names.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn every_case_is_read_right_or_refused_as_not_built() {
    let known = known_differences();
    let mut outcomes: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
    for case in cases::iceberg() {
        outcomes.entry(outcome(&case, &known)).or_default().push(case.name);
    }
    let mut wrong = Vec::new();
    for (outcome, names) in &outcomes {
        println!("{:4} {outcome:?}: {}", names.len(), names.join(" "));
        if let Outcome::Wrong(why) = outcome {
            wrong.push(format!("{}: {why}", names.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Dremio put a list where the format has the length of a Bloom filter in the Parquet footers.
/// The values are those of Iceberg Java 1.11.0.
#[test]
fn a_table_with_mistyped_fields_in_its_footers_is_read() {
    let Some(case) = cases::iceberg_case("dremio_partitionednation") else {
        return;
    };
    let sql = "SELECT regionkey, count(*), sum(n_nationkey), min(n_name), max(n_name), sum(length(n_comment)) \
               FROM t GROUP BY regionkey ORDER BY regionkey";
    let expected = [
        json!([0, 5, 50, "ALGERIA", "MOZAMBIQUE", 310]),
        json!([1, 5, 47, "ARGENTINA", "UNITED STATES", 500]),
        json!([2, 5, 68, "CHINA", "VIETNAM", 352]),
        json!([3, 5, 77, "FRANCE", "UNITED KINGDOM", 347]),
        json!([4, 5, 58, "EGYPT", "SAUDI ARABIA", 348]),
    ];
    let rows = read::query(&case, sql).unwrap().rows;
    assert_eq!(rows.into_iter().map(Value::from).collect::<Vec<_>>(), expected);
}

/// No engine at hand reads this table; the values are those that Impala publishes.
#[test]
fn avro_files_take_the_initial_default_of_a_later_column() {
    let Some(case) = cases::iceberg_case("impala_v3_default_value_avro") else {
        return;
    };
    let rows = read::query(&case, "SELECT * FROM t ORDER BY i").unwrap().rows;
    let rows: Vec<Value> = rows.into_iter().map(Value::from).collect();
    assert_eq!(rows, [json!([1, -1]), json!([2, 2])]);
}
