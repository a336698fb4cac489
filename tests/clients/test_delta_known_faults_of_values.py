"""Faults that other systems had when they read Delta tables, each retold as a small case: names, statistics, paths, types.

Each docstring begins with the number of the report. Tables are written by hand, and what they must give can be
seen from the test. Every question is asked with pruning and without.
"""

import datetime
import decimal
import json
import math
import urllib.parse
import zlib

import pyarrow as pa
import pytest

from delta_tables import VECTORS, column, mapped, removed
from pruned_and_not import Both

UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def both(start_server, tmp_path_factory):
    opened = Both(start_server, tmp_path_factory.mktemp("values") / "tables")
    yield opened
    opened.close()


def longs(**columns):
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def count(both, name, condition):
    return both.value(f"SELECT count(*) FROM {{t}}.{name} WHERE {condition}")


# MAP


def with_ids(rows, numbers):
    """The rows with the numbers that files of the mode `id` have, under names that say nothing."""
    fields = [
        pa.field(f"x{number}", kind.type, metadata={"PARQUET:field_id": str(number)})
        for kind, number in zip(rows.schema, numbers)
    ]
    return pa.table(rows.columns, schema=pa.schema(fields))


@pytest.mark.parametrize("checkpoint", [False, True], ids=["commits", "checkpoint"])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_partition_values_are_looked_up_by_physical_name(both, mode, checkpoint):
    """B073: the log has {col-1: '7'} for the column BATCH. A logical name that is another column's physical one does not mislead."""
    name = f"mapped_{mode}_{checkpoint}"
    columns = [mapped("BATCH", "integer", 1, "col-1"), mapped("v", "long", 2, "col-2"), mapped("col-1", "long", 3, "v")]
    properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"}
    table = both.create(name, columns, "BATCH", properties=properties, features=("columnMapping",))
    for batch, first in (("7", 10), ("8", 20), (None, 30)):
        rows = longs(**{"col-2": [first, first + 1], "v": [-first, -first - 1]})
        stats = {"numRecords": 2, "minValues": {"col-2": first, "v": -first - 1}, "maxValues": {"col-2": first + 1, "v": -first}, "nullCount": {"col-2": 0, "v": 0}}
        table.append(with_ids(rows, [2, 3]) if mode == "id" else rows, partition={"col-1": batch}, stats=stats)
    if checkpoint:
        table.checkpoint([json.loads(table.commit_file(n).read_text().splitlines()[1]) for n in (1, 2, 3)])
    assert both.rows(f"SELECT batch, v, \"col-1\" FROM {{t}}.{name}") == [(7, 10, -10), (7, 11, -11), (8, 20, -20), (8, 21, -21), (None, 30, -30), (None, 31, -31)]
    assert both.column(f"SELECT batch FROM {{t}}.{name}") == [7, 7, 8, 8, None, None]
    assert both.column(f"SELECT v FROM {{t}}.{name} WHERE batch = 7") == [10, 11]
    assert both.column(f"SELECT batch + 1 FROM {{t}}.{name} WHERE v > 20 AND batch IS NOT NULL") == [9]
    assert both.column(f"SELECT v FROM {{t}}.{name} WHERE batch IS NULL") == [30, 31]
    assert both.column(f"SELECT v FROM {{t}}.{name} WHERE batch <> 7") == [20, 21]
    assert both.column(f"SELECT v FROM {{t}}.{name} WHERE \"col-1\" = -21") == [21]
    assert both.rows(f"SELECT batch, count(*) FROM {{t}}.{name} GROUP BY batch") == [(7, 2), (8, 2), (None, 2)]


def test_physical_names_do_not_count_while_the_mode_is_none(both):
    """B076: the metadata has physicalName 'zzz', the file has the logical name; another column is called zzz."""
    columns = [mapped("a", "long", 1, "zzz"), mapped("zzz", "long", 2, "a"), mapped("p", "long", 3, "q")]
    for mode in ({}, {"delta.columnMapping.mode": "none"}):
        table = both.create(f"unmapped_{len(mode)}", columns, "p", properties=mode)
        table.append(longs(a=[1, 2], zzz=[10, 20]), partition={"p": "5"})
        name = f"{{t}}.unmapped_{len(mode)}"
        assert both.rows(f"SELECT * FROM {name}") == [(1, 10, 5), (2, 20, 5)]
        assert both.rows(f"SELECT zzz FROM {name} WHERE a = 2 AND p = 5") == [(20,)]
        assert both.rows(f"SELECT a FROM {name} WHERE zzz < 15") == [(1,)]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_name_that_was_dropped_and_added_again_has_no_old_values(both, mode):
    """B065: a renamed column keeps its values, one dropped and added again is null in older files and found so."""
    name = f"again_{mode}"
    properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "4"}
    table = both.create(name, [mapped("a", "long", 1, "c1"), mapped("v", "long", 2, "c2")], properties=properties, features=("columnMapping",))
    write = lambda rows, numbers: with_ids(rows, numbers) if mode == "id" else rows  # noqa: E731
    bounds = lambda **of: {"numRecords": 2, "minValues": {k: v[0] for k, v in of.items()}, "maxValues": {k: v[1] for k, v in of.items()}, "nullCount": {k: 0 for k in of}}  # noqa: E731
    table.append(write(longs(c1=[1, 2], c2=[5, 6]), [1, 2]), stats=bounds(c1=(1, 2), c2=(5, 6)))
    table.columns = [mapped("b", "long", 1, "c1"), mapped("v", "long", 4, "c4")]
    table.commit(table.metadata(), table.add(write(longs(c1=[3, 4], c4=[5, 7]), [1, 4]), stats=bounds(c1=(3, 4), c4=(5, 7))))
    assert both.rows(f"SELECT * FROM {{t}}.{name}") == [(1, None), (2, None), (3, 5), (4, 7)]
    assert both.column(f"SELECT b FROM {{t}}.{name} WHERE v IS NULL") == [1, 2]
    assert both.column(f"SELECT b FROM {{t}}.{name} WHERE v = 5") == [3]
    assert both.column(f"SELECT v FROM {{t}}.{name} WHERE b < 3") == [None, None]


# PRUNE


@pytest.mark.parametrize("source", ["commit", "checkpoint", "parsed"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_bounds_of_timestamps_are_cut_to_milliseconds(both, kind, source):
    """B058: 10:00:00.123456 and a maximum of 10:00:00.123; before 1970 too, where the minimum may be cut upwards."""
    name = f"cut_{kind}_{source}"
    zone = "UTC" if kind == "timestamp" else None
    table = both.create(name, [column("id", "long"), column("ts", kind)], features=("timestampNtz",))
    adds = []
    moments = [datetime.datetime(2024, 2, 29, 10, 0, 0, 123_456), datetime.datetime(1955, 3, 4, 10, 0, 0, 123_456)]
    for number, moment in enumerate(moments):
        rows = pa.table({"id": pa.array([number], pa.int64()), "ts": pa.array([moment], pa.timestamp("us", zone))})
        cut = moment.replace(microsecond=123_000)
        text = cut.isoformat(timespec="milliseconds") + ("Z" if zone else "")
        low = text if number == 0 else text.replace(".123", ".124")  # towards zero
        stats = {"numRecords": 1, "minValues": {"id": number, "ts": low}, "maxValues": {"id": number, "ts": text}, "nullCount": {"id": 0, "ts": 0}}
        adds.append(table.append(rows, stats=stats))
    if source != "commit":
        parsed = None
        if source == "parsed":
            bounds = pa.struct([("id", pa.int64()), ("ts", pa.timestamp("us", zone))])
            parsed = pa.struct([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", pa.struct([("id", pa.int64()), ("ts", pa.int64())]))])
            for add, moment in zip(adds, moments):
                bound = {"id": json.loads(add["add"]["stats"])["minValues"]["id"], "ts": moment.replace(microsecond=123_000)}
                add["add"] |= {"stats": None, "stats_parsed": {"numRecords": 1, "minValues": bound, "maxValues": bound, "nullCount": {"id": 0, "ts": 0}}}
        table.checkpoint(adds, parsed_stats=parsed)
    for number, day in enumerate(("2024-02-29", "1955-03-04")):
        at = lambda digits: f"TIMESTAMP '{day} 10:00:00.{digits}{'Z' if zone else ''}'"  # noqa: E731, B023
        if zone:
            at = lambda digits: f"CAST('{day} 10:00:00.{digits}Z' AS TIMESTAMPTZ)"  # noqa: E731, B023
        window = f"ts > CAST('{day} 00:00:00{'Z' if zone else ''}' AS TIMESTAMP{'TZ' if zone else ''}) AND ts < CAST('{day} 20:00:00{'Z' if zone else ''}' AS TIMESTAMP{'TZ' if zone else ''})"
        for condition, expected in [
            (f"ts = {at('123456')}", [number]),
            (f"ts > {at('1232')}", [number]),
            (f"ts >= {at('123456')}", [number]),
            (f"ts <= {at('123456')}", [number]),
            (f"ts < {at('123457')}", [number]),
            (f"ts > {at('123456')}", []),
            (f"ts = {at('123')}", []),
            (f"ts <> {at('123')}", [number]),
            (f"ts BETWEEN {at('1234')} AND {at('1235')}", [number]),
            (f"ts IN ({at('123')}, {at('123456')})", [number]),
        ]:
            assert both.column(f"SELECT id FROM {{t}}.{name} WHERE {condition} AND {window}") == expected, condition


def test_bounds_leave_nan_out(both):
    """B052: x is 3, NaN, 3 with the bounds 3 and 3; NaN is above all numbers and differs from all."""
    table = both.create("nan", [column("x", "double")])
    rows = pa.table({"x": [3.0, math.nan, 3.0]})
    for stats in ({"nullCount": {"x": 0}}, {}):
        table.append(rows, stats={"numRecords": 3, "minValues": {"x": 3.0}, "maxValues": {"x": 3.0}} | stats)
    for condition, expected in [("isnan(x)", 2), ("x > 5", 2), ("x <> 3", 2), ("x >= 3", 6), ("x = 3", 4), ("x < 3", 0), ("NOT (x <= 3)", 2), ("x NOT IN (3)", 2), ("x = CAST('NaN' AS DOUBLE)", 2)]:
        assert count(both, "nan", condition) == expected, condition


def test_bounds_that_are_zero_of_either_sign(both):
    """B052: bounds of 0.0 for -0.0 and the reverse; which rows are equal is the same with pruning and without."""
    table = both.create("zeros", [column("x", "double")])
    for value, bound in [(-0.0, 0.0), (0.0, -0.0)]:
        table.append(pa.table({"x": [value]}), stats={"numRecords": 1, "minValues": {"x": bound}, "maxValues": {"x": bound}, "nullCount": {"x": 0}})
    for condition in ("x = 0.0", "x = -0.0", "x >= 0.0", "x <= -0.0"):
        assert count(both, "zeros", condition) == 2, condition
    assert count(both, "zeros", "x < 0.0") == 0


@pytest.mark.parametrize("stats", [{"numRecords": 2, "minValues": {"x": 1}, "maxValues": {"x": 1}}, {"numRecords": 2}, {}, None, "no JSON {", "[]"], ids=str)
def test_a_count_of_nulls_that_is_missing_is_not_zero(both, stats):
    """B053: x is 1 and null, and the statistics do not count nulls, or are none."""
    name = f"uncounted_{zlib.crc32(str(stats).encode())}"
    both.create(name, [column("x", "long")]).append(longs(x=[1, None]), stats=stats)
    for condition, expected in [("x IS NULL", 1), ("x IS NOT NULL", 1), ("x = 1", 1), ("x <> 1", 0)]:
        assert count(both, name, condition) == expected, condition
    assert both.rows(f"SELECT count(*), count(x) FROM {{t}}.{name}") == [(2, 1)]


def test_counts_of_nulls_with_wide_bounds_say_little(both):
    """B053: beside a vector, a count that was of more rows than are left does not make a column null, nor free of nulls."""
    table = both.create("wide_nulls", [column("x", "long")], features=VECTORS)
    stats = {"numRecords": 3, "minValues": {"x": 1}, "maxValues": {"x": 9}, "nullCount": {"x": 1}, "tightBounds": False}
    table.append(longs(x=[None, 1, 9]), vector=table.vectors([0])[0], stats=stats)
    assert [count(both, "wide_nulls", c) for c in ("x IS NULL", "x IS NOT NULL", "x >= 9", "x > 9")] == [0, 2, 1, 0]
    assert both.rows("SELECT count(x), count(*) FROM {t}.wide_nulls") == [(2, 2)]


def test_bounds_of_texts_that_are_cut(both):
    """B060: bounds of 32 characters; the upper one ends in a character above the next one of the text, or is not there."""
    table = both.create("texts", [column("s", "string")])
    start = "é" * 32
    for rest, upper in [("ab", {"s": start + "\x7f"}), ("éb", {"s": start + "\U0010ffff"}), ("日", {})]:
        table.append(pa.table({"s": [start + rest]}), stats={"numRecords": 1, "minValues": {"s": start}, "maxValues": upper, "nullCount": {"s": 0}})
    for condition, expected in [(f"s = '{start}ab'", 1), (f"s = '{start}éb'", 1), (f"s > '{start}'", 3), (f"s > '{start}a'", 3), ("s LIKE 'é%'", 3), (f"s NOT LIKE '{start}é%'", 2), (f"s < '{start}'", 0), (f"s <> '{start}'", 3)]:
        assert count(both, "texts", condition) == expected, condition


def test_a_literal_is_not_squeezed_into_the_type_that_a_file_has(both):
    """B063: integer became long, float double, a decimal wider; literals beyond the old type."""
    changed = lambda name, old, new: column(name, new, **{"delta.typeChanges": [{"fromType": old, "toType": new}]})  # noqa: E731
    old = [column("x", "integer"), column("f", "float"), column("d", "decimal(4,2)")]
    table = both.create("widened", old, properties={"delta.enableTypeWidening": "true"}, features=("typeWidening",))
    rows = pa.table({"x": pa.array([1, 2, 3], pa.int32()), "f": pa.array([0.1, 2, 3], pa.float32()), "d": pa.array([decimal.Decimal(f"{n}.25") for n in (1, 2, 3)], pa.decimal128(4, 2))})
    table.append(rows, stats={"numRecords": 3, "minValues": {"x": 1, "f": 0.1, "d": 1.25}, "maxValues": {"x": 3, "f": 3, "d": 3.25}, "nullCount": {"x": 0, "f": 0, "d": 0}})
    table.columns = [changed("x", "integer", "long"), changed("f", "float", "double"), changed("d", "decimal(4,2)", "decimal(12,4)")]
    table.commit(table.metadata())
    for condition in ["x < 2147483648", "x > -2147483649", "x <> 2147483648", "f < 1e300", "f > -1e300", "f <> 1e300", "d < 99999999.0000", "d > -99999999.0000", "d <> 1.2501", "x NOT IN (4294967297)"]:
        assert count(both, "widened", condition) == 3, condition
    assert both.column("SELECT x FROM {t}.widened WHERE d = 2.2500 AND x = 2") == [2]
    near = float(pa.scalar(0.1, pa.float32()).as_py())
    assert [count(both, "widened", c) for c in (f"f = CAST('{near!r}' AS DOUBLE)", "f <= CAST('0.1' AS DOUBLE)", "f > CAST('0.1' AS DOUBLE)")] == [1, 0, 3]


def test_a_cast_that_rounds_is_no_bound_of_the_column(both):
    """B085: cast(d as decimal(20,2)) = 1.23 is true for 1.2345, each value in a file with exact bounds."""
    table = both.create("rounded", [column("d", "decimal(20,4)")])
    for text in ("1.2345", "1.2399", "1.25"):
        stats = {"numRecords": 1, "minValues": {"d": float(text)}, "maxValues": {"d": float(text)}, "nullCount": {"d": 0}}
        table.append(pa.table({"d": pa.array([decimal.Decimal(text)], pa.decimal128(20, 4))}), stats=stats)
    assert both.column("SELECT d FROM {t}.rounded WHERE CAST(d AS DECIMAL(20,2)) = 1.23") == [decimal.Decimal("1.2345")]
    assert both.column("SELECT d FROM {t}.rounded WHERE CAST(d AS DECIMAL(20,2)) = 1.24") == [decimal.Decimal("1.2399")]
    assert count(both, "rounded", "CAST(d AS BIGINT) = 1") == 3


# SCHEMA


def test_columns_of_nested_types_that_came_later(both):
    """B066: list, map and struct are null in older files, also where they are asked for by a part."""
    table = both.create("nested", [column("id", "long")])
    table.append(longs(id=[1]))
    listed = {"type": "array", "elementType": "string", "containsNull": True}
    table.columns += [
        column("tags", listed),
        column("m", {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}),
        column("s", {"type": "struct", "fields": [column("a", "integer"), column("l", listed)]}),
    ]
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int32())), ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))]))])
    rows = pa.Table.from_pylist([{"id": 2, "tags": ["x"], "m": [("k", 1)], "s": {"a": 5, "l": []}}], schema)
    table.commit(table.metadata(), table.add(rows, stats={"numRecords": 1, "minValues": {"s": {"a": 5}}, "maxValues": {"s": {"a": 5}}, "nullCount": {"s": {"a": 0}}}))
    assert both.rows("SELECT * FROM {t}.nested") == [(1, None, None, None), (2, ["x"], [("k", 1)], {"a": 5, "l": []})]
    assert both.column("SELECT id FROM {t}.nested WHERE s IS NULL") == [1]
    assert both.column("SELECT id FROM {t}.nested WHERE s['a'] IS NULL") == [1]
    assert both.column("SELECT id FROM {t}.nested WHERE s['a'] = 5") == [2]


# PATH

NAMES = ["a b", "a/b", "2023-11-05 00:00:00", "R&D", "x%20y", "ID$", "é", "p?q", "h#i", "a=b", "~t", "a+b", "100%", "q\"u'o", "back\\slash", "日本", "..", "a:b", "[x]{y}", "*"]
HIVE = set('"#%\'*/:=?\\\x7f{[]^') | {chr(n) for n in range(1, 32)}


@pytest.mark.parametrize("escaped", ["hive", "random"])
def test_paths_are_decoded_once(both, escaped):
    """B077: values with characters that folders escape and that URIs escape; each is found by itself."""
    name = f"paths_{escaped}"
    table = both.create(name, [column("id", "long"), column("p", "string")], "p")
    adds = []
    for number, value in enumerate(NAMES):
        folder = "".join(f"%{ord(c):02X}" if c in HIVE else c for c in value) if escaped == "hive" else value.replace("/", "_").replace("..", "dots")
        path = f"p={folder}/part {number}.parquet"
        rows = longs(id=[number])
        table.write(rows, path)
        adds.append(table.add_file(path, rows, partition={"p": value}, recorded=urllib.parse.quote(path, safe="/=" if number % 2 else "/=:@!$&'()*+,;~")))
    table.commit(*adds)
    assert both.rows(f"SELECT id, p FROM {{t}}.{name}") == sorted(enumerate(NAMES), key=repr)
    for number, value in enumerate(NAMES):
        literal = value.replace("'", "''")
        assert both.column(f"SELECT id FROM {{t}}.{name} WHERE p = '{literal}'") == [number], value
    table.commit(*[removed(add) for add in adds[::2]])
    assert both.value(f"SELECT count(*) FROM {{t}}.{name}") == len(NAMES) // 2


@pytest.mark.parametrize("escaped", [True, False], ids=["hive", "plain"])
def test_a_tab_in_a_path(both, escaped):
    """B077: the value has a tab, and the file's name has it escaped, as Hive and every writer at hand do it, or as it is.

    A name with a control character is none that an object store takes, so it is refused.
    """
    name = f"tab_{escaped}"
    table = both.create(name, [column("id", "long"), column("p", "string")], "p")
    path = "p=a%09b/x.parquet" if escaped else "p=a\tb/x.parquet"
    table.append(longs(id=[1]), path=path, recorded=urllib.parse.quote(path, safe="/="), partition={"p": "a\tb"})
    question = f"SELECT id, p FROM {{t}}.{name} WHERE p = 'a\tb'"
    if escaped:
        assert both.rows(question) == [(1, "a\tb")]
    else:
        assert "not a usable path" in both.refusal(question)


@pytest.mark.parametrize("checkpoint", [None, "text", "native"])
def test_an_empty_partition_value_is_null(both, checkpoint):
    """B079: '' and null of a text column are both null; so it is in a checkpoint, with and without typed values."""
    name = f"blank_{checkpoint}"
    table = both.create(name, [column("id", "long"), column("p", "string")], "p")
    adds = [table.append(longs(id=[number]), partition={"p": value}) for number, value in enumerate(["", None, "x", " "])]
    if checkpoint:
        for add, value in zip(adds, [None, None, "x", " "]):
            if checkpoint == "native":
                add["add"]["partitionValues_parsed"] = {"p": value}
        table.checkpoint(adds, parsed=pa.struct([("p", pa.string())]) if checkpoint == "native" else None)
    assert both.rows(f"SELECT id, p FROM {{t}}.{name}") == [(0, None), (1, None), (2, "x"), (3, " ")]
    for condition, expected in [("p IS NULL", [0, 1]), ("p IS NOT NULL", [2, 3]), ("p = ''", []), ("p <> ''", [2, 3]), ("p <> 'x'", [3]), ("p <= 'x'", [2, 3]), ("coalesce(p, 'y') = 'y'", [0, 1])]:
        assert both.column(f"SELECT id FROM {{t}}.{name} WHERE {condition}") == expected, condition


@pytest.mark.parametrize("kind", ["string", "long", "integer", "short", "byte", "double", "float", "boolean", "date", "timestamp", "timestamp_ntz", "decimal(9,2)", "binary"])
def test_an_empty_partition_value_is_null_of_every_type(both, kind):
    """B083: an empty text, null and a value that is not there."""
    name = "blank_" + "".join(c for c in kind if c.isalnum())
    table = both.create(name, [column("id", "long"), column("p", kind)], "p", features=("timestampNtz",))
    for number, partition in enumerate([{"p": ""}, {"p": None}, {}]):
        table.append(longs(id=[number]), partition=partition)
    assert both.rows(f"SELECT id, p FROM {{t}}.{name} WHERE p IS NULL") == [(0, None), (1, None), (2, None)]
    assert both.value(f"SELECT count(p) FROM {{t}}.{name}") == 0
    assert both.column(f"SELECT id FROM {{t}}.{name} WHERE p IS NOT NULL") == []


def test_names_and_folders_that_a_url_would_spell_otherwise(both, start_server, tmp_path):
    """B082: a partition column 'data#1', a table's folder with a blank, a plus, a percent sign and a question mark."""
    other = Both(start_server, tmp_path / "a b+c%20d?e#f")
    table = other.create("t", [column("id", "long"), column("data#1", "string")], "data#1", features=VECTORS)
    table.append(longs(id=[1, 2]), path="data%231=x/a.parquet", recorded="data%25231=x/a.parquet", partition={"data#1": "x"}, vector=table.vectors([0])[0])
    assert other.rows('SELECT * FROM {t}.t WHERE "data#1" = \'x\'') == [(2, "x")]
    other.close()


def test_a_file_that_is_listed_in_two_spellings_is_refused(both):
    table = both.create("two_spellings", [column("x", "long")])
    rows = longs(x=[1])
    path = table.write(rows, path="a b.parquet")
    table.commit(table.add_file(path, rows, recorded="a%20b.parquet"))
    assert both.column("SELECT x FROM {t}.two_spellings") == [1]
    table.commit(table.add_file(path, rows, recorded="a b.parquet"))
    assert "twice" in both.refusal("SELECT x FROM {t}.two_spellings")


# TYPE


def test_int96_timestamps_of_every_century(both):
    """B084: years 1, 3332 and 9999 in INT96 and null, exact to the microsecond."""
    moments = [datetime.datetime(3332, 12, 14, 11, 33, 10, 965_000), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 1), None]
    table = both.create("int96", [column("id", "long"), column("ts", "timestamp")])
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "ts": pa.array(moments, pa.timestamp("us", "UTC"))})
    path = table.write(rows, use_deprecated_int96_timestamps=True)
    table.commit(table.add_file(path, rows, stats={"numRecords": 5}))
    assert both.rows("SELECT id, ts FROM {t}.int96") == [(n, m and m.replace(tzinfo=UTC)) for n, m in enumerate(moments)]
    assert both.column("SELECT id FROM {t}.int96 WHERE ts = CAST('3332-12-14 11:33:10.965Z' AS TIMESTAMPTZ)") == [0]
    assert both.column("SELECT id FROM {t}.int96 WHERE ts < CAST('1970-01-01 00:00:00Z' AS TIMESTAMPTZ)") == [2, 3]


@pytest.mark.parametrize("text, value", [("0E-10", "0"), ("1E-8", "0.00000001"), ("-1.5E-7", "-0.00000015")])
def test_decimal_partition_values_with_an_exponent(both, text, value):
    """As Java writes decimals whose first digit is far behind the point."""
    name = f"exponent_{len(text)}"
    both.create(name, [column("id", "long"), column("p", "decimal(20,10)")], "p").append(longs(id=[1]), partition={"p": text})
    assert both.rows(f"SELECT id, p FROM {{t}}.{name}") == [(1, decimal.Decimal(value))]
    assert both.column(f"SELECT id FROM {{t}}.{name} WHERE p = {decimal.Decimal(value):f}") == [1]
    assert both.column(f"SELECT id FROM {{t}}.{name} WHERE p <> {decimal.Decimal(value):f}") == []


def test_a_file_may_spell_a_column_in_other_case(both):
    """Files of a table that was converted to Delta; statistics are by the table's spelling. The exact name goes first."""
    struct = {"type": "struct", "fields": [column("Inner", "long")]}
    table = both.create("spelled", [column("Value", "long"), column("S", struct)])
    inner = lambda name, value: pa.array([{name: value}], pa.struct([(name, pa.int64())]))  # noqa: E731
    stats = {"numRecords": 1, "minValues": {"Value": 7}, "maxValues": {"Value": 7}, "nullCount": {"Value": 0}}
    table.append(pa.table({"value": pa.array([7], pa.int64()), "s": inner("inner", 8)}), stats=stats)
    table.append(pa.table({"VALUE": pa.array([1], pa.int64()), "Value": pa.array([9], pa.int64()), "S": inner("INNER", 10)}))
    assert both.rows("SELECT \"Value\", \"S\"['Inner'] FROM {t}.spelled") == [(7, 8), (9, 10)]
    assert both.value('SELECT count(*) FROM {t}.spelled WHERE "Value" = 7') == 1
    assert both.column('SELECT "Value" FROM {t}.spelled WHERE "Value" IS NOT NULL') == [7, 9]
    assert both.column("SELECT \"Value\" FROM {t}.spelled WHERE \"S\"['Inner'] > 8") == [9]
    table.append(pa.table({"VALUE": pa.array([1], pa.int64()), "value": pa.array([2], pa.int64())}), stats=None)
    assert "case" in both.refusal('SELECT "Value" FROM {t}.spelled')
