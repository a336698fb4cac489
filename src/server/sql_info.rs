//! CommandGetSqlInfo: what the server says about itself.
//!
//! Invariants: an unfiltered request is answered with every id that all drivers in use know,
//! and no other; the kind of each value is the one that drivers cast to without looking, which for
//! some ids is not the one the protocol writes (503, 505, 507 and 562 are read as bigint).
//! flight-sql.md 1.7, T5 to T8; ADR `docs/adr/0006-sql-info-ids.md`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int32Builder, Int64Array, ListBuilder, MapBuilder, MapFieldNames, RecordBatch, StringArray,
    StringBuilder, UInt32Array, UnionArray,
};

use super::filter::ESCAPE;
use super::reference::{SQL_INFO, SQL_INFO_VALUES};
use crate::error::Result;

/// Milliseconds without use after which values bound to a prepared statement are forgotten.
pub(super) const HANDLE_TIMEOUT_MS: i32 = 3_600_000;

/// Ids that older JDBC drivers do not know and fail on; sent only when asked for by number.
const LATE_IDS: [u32; 2] = [10, 11];

/// A value, its variants in the order of the union's type ids.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(&'static str),
    Bool(bool),
    BigInt(i64),
    /// An ordinal or a set of bits.
    Int(i32),
    List(&'static [&'static str]),
    Map(Vec<(i32, Vec<i32>)>),
}

use Value::{BigInt, Bool, Int, List, Map, Text};

/// All ids with their values, by id. `writes`: something here can be changed.
fn values(writes: bool) -> Vec<(u32, Value)> {
    let mut values = vec![
        (0, Text("Sandur")),
        (1, Text(env!("CARGO_PKG_VERSION"))),
        (2, Text(arrow::ARROW_VERSION)),
        (3, Bool(!writes)), // read only
        (4, Bool(true)),    // SQL
        (5, Bool(false)),   // Substrait, and its versions
        (6, Text("")),
        (7, Text("")),
        (8, Int(0)),       // transactions: none
        (9, Bool(false)),  // cancel
        (10, Bool(false)), // bulk ingestion, and in transactions
        (11, Bool(false)),
        (100, Int(HANDLE_TIMEOUT_MS)),
        (101, Int(0)),
        (500, Bool(false)), // DDL on catalogs, schemas, tables
        (501, Bool(writes)),
        (502, Bool(writes)),
        (503, BigInt(1)), // identifiers match without regard to case
        (504, Text("\"")),
        (505, BigInt(1)),
        (506, Bool(true)),
        (507, BigInt(0)), // nulls sort high
        (508, List(KEYWORDS)),
        (509, List(NUMERIC_FUNCTIONS)),
        (510, List(STRING_FUNCTIONS)),
        (511, List(SYSTEM_FUNCTIONS)),
        (512, List(DATETIME_FUNCTIONS)),
        (513, Text(ESCAPE_TEXT)),
        (514, Text("")),
        (515, Bool(true)), // column aliases
        (516, Bool(true)), // null || text is null
        (517, Map(conversions())),
        (518, Bool(true)),
        (519, Bool(false)),
        (520, Bool(true)), // expressions in ORDER BY
        (521, Bool(true)),
        (522, Int(0b11)), // GROUP BY unrelated, and beyond SELECT
        (523, Bool(true)),
        (524, Bool(true)),
        (525, Int(0b11)), // minimum and core grammar
        (526, Int(0b11)), // ANSI 92 entry and intermediate level
        (527, Bool(false)),
        (528, Int(0b110)), // limited and full outer joins
        (529, Text("schema")),
        (530, Text("procedure")),
        (531, Text("catalog")),
        (532, Bool(true)),
        (533, Int(0)),
        (534, Int(0)),
        (535, Int(0)),
        (536, Bool(false)),
        (537, Bool(false)),
        (538, Int(0b1111)), // subqueries: comparison, EXISTS, IN, quantified
        (539, Bool(true)),
        (540, Int(0b11)), // UNION, UNION ALL
    ];
    // Lengths and counts without a fixed limit.
    values.extend((541..=561).filter(|id| *id != 556).map(|id| (id, BigInt(0))));
    values.extend([
        (556, Bool(true)),
        (562, BigInt(0)), // no transactions
        (563, Bool(false)),
        (564, Int(0b1)),
        (565, Bool(false)),
        (566, Bool(false)),
        (567, Int(0b10)), // result sets: forward only, read only
        (568, Int(0b10)),
        (569, Int(0b10)),
        (570, Int(0)),
        (571, Int(0)),
        (572, Bool(false)),
        (573, Bool(false)),
        (574, Bool(false)),
        (575, Bool(false)),
        (576, Bool(false)),
    ]);
    values.sort_by_key(|(id, _)| *id);
    values
}

const ESCAPE_TEXT: &str = "\\";
const _: () = assert!(ESCAPE as u32 == ESCAPE_TEXT.as_bytes()[0] as u32);

const KEYWORDS: &[&str] = &[
    "ANTI", "DESCRIBE", "EXPLAIN", "ILIKE", "LIMIT", "OFFSET", "QUALIFY", "SEMI", "SHOW", "TABLES", "UNNEST", "USE",
];

const NUMERIC_FUNCTIONS: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "cot", "degrees", "exp", "floor", "ln", "log", "log10", "log2",
    "pi", "power", "radians", "random", "round", "signum", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
];

const STRING_FUNCTIONS: &[&str] = &[
    "ascii",
    "bit_length",
    "btrim",
    "char_length",
    "chr",
    "concat",
    "concat_ws",
    "ends_with",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "octet_length",
    "position",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "substr",
    "substring",
    "translate",
    "trim",
    "upper",
];

const SYSTEM_FUNCTIONS: &[&str] = &["coalesce", "current_catalog", "current_schema", "nullif", "nvl", "version"];

const DATETIME_FUNCTIONS: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "date_bin",
    "date_part",
    "date_trunc",
    "extract",
    "from_unixtime",
    "make_date",
    "now",
    "to_char",
    "to_date",
    "to_timestamp",
];

/// What CAST converts, in the numbers of the protocol's `SqlSupportsConvert`.
fn conversions() -> Vec<(i32, Vec<i32>)> {
    // bigint, bit, char, decimal, float, integer, longvarchar, numeric, real, smallint, tinyint, varchar
    const SCALARS: [i32; 12] = [0, 2, 3, 5, 6, 7, 11, 12, 13, 14, 17, 19];
    // char, longvarchar, varchar
    const TEXTS: [i32; 3] = [3, 11, 19];
    const DATE: i32 = 4;
    const TIME: i32 = 15;
    const TIMESTAMP: i32 = 16;
    // binary, longvarbinary, varbinary
    const BYTES: [i32; 3] = [1, 10, 18];
    let mut map: Vec<(i32, Vec<i32>)> = Vec::new();
    for from in SCALARS {
        let mut to = SCALARS.to_vec();
        if TEXTS.contains(&from) {
            to.extend([DATE, TIME, TIMESTAMP]);
            to.extend(BYTES);
        }
        map.push((from, to));
    }
    for from in BYTES {
        map.push((from, [&BYTES[..], &TEXTS[..]].concat()));
    }
    map.push((DATE, [&[DATE, TIMESTAMP][..], &TEXTS[..]].concat()));
    map.push((TIME, [&[TIME][..], &TEXTS[..]].concat()));
    map.push((TIMESTAMP, [&[DATE, TIME, TIMESTAMP][..], &TEXTS[..]].concat()));
    for (_, to) in &mut map {
        to.sort_unstable();
    }
    map.sort_by_key(|(from, _)| *from);
    map
}

/// The answer: the ids asked for, or all that every driver knows. Unknown ids have no row.
pub(super) fn sql_info(ids: &[u32], writes: bool) -> Result<RecordBatch> {
    let values: Vec<(u32, Value)> = values(writes)
        .into_iter()
        .filter(|(id, _)| if ids.is_empty() { !LATE_IDS.contains(id) } else { ids.contains(id) })
        .collect();

    let mut texts: Vec<&str> = Vec::new();
    let mut bools = Vec::new();
    let mut bigints = Vec::new();
    let mut ints = Vec::new();
    let mut lists = ListBuilder::new(StringBuilder::new());
    let names = MapFieldNames {
        entry: "entries".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut maps = MapBuilder::new(Some(names), Int32Builder::new(), ListBuilder::new(Int32Builder::new()));
    let (mut lists_len, mut maps_len) = (0, 0);
    let mut type_ids: Vec<i8> = Vec::new();
    let mut offsets: Vec<usize> = Vec::new();
    for (_, value) in &values {
        let (type_id, offset) = match value {
            Text(text) => {
                texts.push(text);
                (0, texts.len() - 1)
            }
            Bool(bool) => {
                bools.push(*bool);
                (1, bools.len() - 1)
            }
            BigInt(int) => {
                bigints.push(*int);
                (2, bigints.len() - 1)
            }
            Int(int) => {
                ints.push(*int);
                (3, ints.len() - 1)
            }
            List(items) => {
                for item in *items {
                    lists.values().append_value(item);
                }
                lists.append(true);
                lists_len += 1;
                (4, lists_len - 1)
            }
            Map(entries) => {
                for (from, to) in entries {
                    maps.keys().append_value(*from);
                    for to in to {
                        maps.values().values().append_value(*to);
                    }
                    maps.values().append(true);
                }
                maps.append(true)?;
                maps_len += 1;
                (5, maps_len - 1)
            }
        };
        type_ids.push(type_id);
        offsets.push(offset);
    }
    let children: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts)),
        Arc::new(BooleanArray::from(bools)),
        Arc::new(Int64Array::from(bigints)),
        Arc::new(Int32Array::from(ints)),
        Arc::new(lists.finish()),
        Arc::new(maps.finish()),
    ];
    // A few dozen values: offsets are small.
    let offsets: Vec<i32> = offsets.into_iter().filter_map(|o| i32::try_from(o).ok()).collect();
    let union = UnionArray::try_new(SQL_INFO_VALUES.clone(), type_ids.into(), Some(offsets.into()), children)?;
    let ids: UInt32Array = values.iter().map(|(id, _)| *id).collect::<Vec<_>>().into();
    Ok(RecordBatch::try_new(Arc::clone(&SQL_INFO), vec![Arc::new(ids), Arc::new(union)])?)
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Int32Type, Int64Type, UInt32Type};

    use super::*;

    /// Kinds that drivers cast to, by id: `s`tring, `b`ool, bigint `l`, `i`nt32, list `a`, map `m`.
    /// From the JDBC driver's `ArrowDatabaseMetadata` and the ODBC driver's `GetInfoCache`; what
    /// neither reads, from `FlightSql.proto`.
    const KINDS: &[(u32, u32, char)] = &[
        (0, 2, 's'),
        (3, 5, 'b'),
        (6, 7, 's'),
        (8, 8, 'i'),
        (9, 11, 'b'),
        (100, 101, 'i'),
        (500, 502, 'b'),
        (503, 503, 'l'),
        (504, 504, 's'),
        (505, 505, 'l'),
        (506, 506, 'b'),
        (507, 507, 'l'),
        (508, 512, 'a'),
        (513, 514, 's'),
        (515, 516, 'b'),
        (517, 517, 'm'),
        (518, 521, 'b'),
        (522, 522, 'i'),
        (523, 524, 'b'),
        (525, 526, 'i'),
        (527, 527, 'b'),
        (528, 528, 'i'),
        (529, 531, 's'),
        (532, 532, 'b'),
        (533, 535, 'i'),
        (536, 537, 'b'),
        (538, 538, 'i'),
        (539, 539, 'b'),
        (540, 540, 'i'),
        (541, 555, 'l'),
        (556, 556, 'b'),
        (557, 562, 'l'),
        (563, 563, 'b'),
        (564, 564, 'i'),
        (565, 566, 'b'),
        (567, 571, 'i'),
        (572, 576, 'b'),
    ];

    fn ids(batch: &RecordBatch) -> Vec<u32> {
        batch.column(0).as_primitive::<UInt32Type>().values().to_vec()
    }

    #[test]
    fn every_value_has_the_kind_that_drivers_cast_to() {
        let all: Vec<u32> = KINDS.iter().flat_map(|(from, to, _)| *from..=*to).collect();
        let batch = sql_info(&all, false).unwrap();
        assert_eq!(ids(&batch), all);
        let union = batch.column(1).as_union();
        for (row, id) in all.iter().enumerate() {
            let kind = KINDS.iter().find(|(from, to, _)| (from..=to).contains(&id)).unwrap().2;
            let expected = "sbliam".find(kind).unwrap();
            assert_eq!(union.type_id(row), i8::try_from(expected).unwrap(), "id {id}");
        }
    }

    #[test]
    fn an_open_request_has_no_id_that_a_driver_may_not_know() {
        let all = ids(&sql_info(&[], true).unwrap());
        let expected: Vec<u32> = (0..=9).chain([100, 101]).chain(500..=576).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn named_ids_only() {
        let batch = sql_info(&[8, 10_001, 3, 11], false).unwrap();
        assert_eq!(ids(&batch), [3, 8, 11]);
        let union = batch.column(1).as_union();
        assert!(union.value(0).as_boolean().value(0));
        assert_eq!(union.value(1).as_primitive::<Int32Type>().value(0), 0);
        assert_eq!(sql_info(&[99_999], true).unwrap().num_rows(), 0);
    }

    #[test]
    fn a_server_that_writes_is_not_read_only_and_has_ddl() {
        for writes in [false, true] {
            let batch = sql_info(&[3, 500, 501, 502], writes).unwrap();
            let union = batch.column(1).as_union();
            let values: Vec<bool> = (0..4).map(|row| union.value(row).as_boolean().value(0)).collect();
            assert_eq!(values, [!writes, false, writes, writes]);
        }
    }

    #[test]
    fn values_read_back() {
        let batch = sql_info(&[0, 513, 517, 562], true).unwrap();
        let union = batch.column(1).as_union();
        assert_eq!(union.value(0).as_string::<i32>().value(0), "Sandur");
        assert_eq!(union.value(1).as_string::<i32>().value(0), "\\");
        let map = union.value(2);
        let entries = map.as_map().value(0);
        assert_eq!(entries.column_names(), ["key", "value"]);
        // varchar (19) to date (4)
        let row = entries
            .column(0)
            .as_primitive::<Int32Type>()
            .iter()
            .position(|k| k == Some(19))
            .unwrap();
        let to = entries.column(1).as_list::<i32>().value(row);
        assert!(to.as_primitive::<Int32Type>().values().contains(&4));
        assert_eq!(union.value(3).as_primitive::<Int64Type>().value(0), 0);
    }
}
