"""Delta tables that the `deltalake` package makes during the test, as the server, deltalake and DuckDB read them.

Every version must have the rows that were written, and random conditions must give the rows that Arrow's own
filter gives, with pruning and without. What deltalake stores otherwise than it was told is left out, and said below.
"""

import datetime
import decimal
import functools
import math
import os
import random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

import canonical
from conftest import ANSWERED
from delete_statements import NAN, ROWS, Statements, literal, random_keys, random_rows
from pruned_and_not import Both

SEED = 20_261_201
CONDITIONS = 40  # for each table


@pytest.fixture(scope="module")
def both(start_server, tmp_path_factory):
    opened = Both(start_server, tmp_path_factory.mktemp("deltalake") / "tables")
    yield opened
    opened.close()


@functools.cache
def duck():
    """DuckDB with its own reader of Delta tables, which comes as a Python package."""
    connection = duckdb.connect()
    packages = os.path.dirname(os.path.dirname(duckdb.__file__))
    connection.execute(f"LOAD '{packages}/duckdb_extension_delta/extensions/v{duckdb.__version__}/delta.duckdb_extension'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def lines(table):
    return canonical.sorted_lines(canonical.table_rows(table))


def same_rows(both, name, version, written=None, by_duckdb=True):
    """All readers have the same rows of a version, by number; `written`: and these are the ones."""
    pruned, full = both.tables(f"SELECT * FROM {{t}}.{name} FOR VERSION AS OF {version}")
    path = str(both.folder / name)
    expected = DeltaTable(path, version=version).to_pyarrow_table()
    assert pruned.column_names == full.column_names == expected.column_names
    assert lines(pruned) == lines(full) == lines(expected)
    if by_duckdb:
        read = duck().execute(f"SELECT * FROM delta_scan('{path}', version => {version})").to_arrow_table()
        assert lines(pruned) == lines(read.select(pruned.column_names))
    if written is not None:
        assert lines(pruned) == lines(written.select(pruned.column_names))
    for table in both.tables(f"SELECT count(*) FROM {{t}}.{name} FOR VERSION AS OF {version}"):
        assert table.column(0).to_pylist() == [expected.num_rows]
    return pruned


def newest(both, name, rows):
    """Without a version the rows are those of the newest one."""
    for table in both.tables(f"SELECT * FROM {{t}}.{name}"):
        assert lines(table) == lines(rows)


# Types.

SMALL = decimal.Decimal("0.01")
BIG = decimal.Decimal("99999999999999999999999999999999999.999")
TYPES = {
    "i8": pa.array([-128, 127, None, 0], pa.int8()),
    "i16": pa.array([-32_768, 32_767, None, 0], pa.int16()),
    "i32": pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32()),
    "i64": pa.array([-(2**63), 2**63 - 1, None, 0], pa.int64()),
    "f32": pa.array([0.1, NAN, None, -0.0], pa.float32()),
    "f64": pa.array([0.1, NAN, None, -math.inf]),
    "b": pa.array([True, False, None, True]),
    "s": pa.array(["", "日本 é\U0001f600", None, "a'b\"c\\n"]),
    "bin": pa.array([b"", b"\x00\xff", None, b"a"]),
    "d": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(1969, 12, 31)]),
    "tz": pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999, None, -1], pa.timestamp("us", "UTC")),
    "ntz": pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999, None, 1], pa.timestamp("us")),
    "n9": pa.array([-SMALL, SMALL, None, decimal.Decimal(0)], pa.decimal128(9, 2)),
    "n38": pa.array([BIG, BIG.copy_negate(), None, SMALL], pa.decimal128(38, 3)),
    "l": pa.array([[1, None], [], None, [2]], pa.list_(pa.int64())),
    "st": pa.array([{"a": 1, "t": ["x"]}, {"a": None, "t": None}, None, {"a": 2, "t": []}], pa.struct([("a", pa.int32()), ("t", pa.list_(pa.string()))])),
    "m": pa.array([[("k", 1)], [], None, [("k", None), ("l", 2)]], pa.map_(pa.string(), pa.int32())),
    "deep": pa.array([[[("k", [{"z": 1}])]], None, [], [[]]], pa.list_(pa.map_(pa.string(), pa.list_(pa.struct([("z", pa.int8())]))))),
}


def test_every_type(both):
    rows = pa.table({"id": pa.array(range(4), pa.int64()), **TYPES})
    write_deltalake(both.folder / "types", rows)
    write_deltalake(both.folder / "types", rows.slice(2, 2), mode="append")
    DeltaTable(both.folder / "types").create_checkpoint()
    same_rows(both, "types", 0, rows)
    newest(both, "types", same_rows(both, "types", 1, pa.concat_tables([rows, rows.slice(2, 2)])))
    for name in TYPES:
        assert sorted(both.column(f"SELECT id FROM {{t}}.types FOR VERSION AS OF 0 WHERE {name} IS NULL")) == ([2] if name != "deep" else [1])


# Partitions of every type. Left out: decimals between -1 and 0, whose text deltalake 1.6.6 writes as `0.-5`, and binary
# values, for which it writes escapes as text.
PARTITIONS = {
    "string": pa.array(["a b/c=é%20?#", None, "x", "~'\"\\", " "]),
    "empty": pa.array(["", None, "x", "y", ""]),
    "i8": pa.array([-128, None, 127, 0, 1], pa.int8()),
    "i16": pa.array([-32_768, None, 32_767, 0, 1], pa.int16()),
    "i32": pa.array([-(2**31), None, 2**31 - 1, 0, 1], pa.int32()),
    "i64": pa.array([-(2**63), None, 2**63 - 1, 0, 1], pa.int64()),
    "f32": pa.array([0.1, None, NAN, -0.0, math.inf], pa.float32()),
    "f64": pa.array([0.1, None, NAN, -0.0, -math.inf]),
    "bool": pa.array([True, None, False, True, False]),
    "date": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
    "ts": pa.array([-1, None, 1_709_175_723_456_789, 253_402_300_799_999_999, 0], pa.timestamp("us", "UTC")),
    "ntz": pa.array([-1, None, 1_709_175_723_456_789, 253_402_300_799_999_999, 0], pa.timestamp("us")),
    "decimal": pa.array([decimal.Decimal(text) if text else None for text in ("1.20", None, "0.00", "9999999.99", "0.01")], pa.decimal128(9, 2)),
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partitions_of_every_type(both, kind):
    name, values = f"partitions_by_{kind}", PARTITIONS[kind]
    write_deltalake(both.folder / name, pa.table({"id": pa.array(range(5), pa.int64()), "p": values}), partition_by=["p"])
    # An empty text is null in the log (PROTOCOL.md, "Partition Value Serialization").
    stored = pa.array([None if value == "" else value for value in values.to_pylist()], values.type)
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "p": stored})
    for checkpoint in (False, True):
        if checkpoint:
            DeltaTable(both.folder / name).create_checkpoint()
        same_rows(both, name, 0, rows)
        nulls = [n for n, value in enumerate(stored) if not value.is_valid]
        assert both.column(f"SELECT id FROM {{t}}.{name} WHERE p IS NULL") == nulls
        assert both.column(f"SELECT id FROM {{t}}.{name} WHERE p IS NOT NULL") == [n for n in range(5) if n not in nulls]
        for row, value in enumerate(stored):
            if value.is_valid:
                found = both.column(f"SELECT id FROM {{t}}.{name} WHERE p = {sql_value(value)}")
                assert row in found and set(found) == {n for n in range(5) if repr(stored[n]) == repr(value)}


def sql_value(value):
    """A value of an Arrow type as SQL."""
    if pa.types.is_timestamp(value.type):
        text = canonical.table_rows(pa.table({"v": pa.array([value.as_py()], value.type)}))[0][0]
        return f"CAST('{text}' AS TIMESTAMP{'TZ' if value.type.tz else ''})"
    if pa.types.is_floating(value.type):
        return f"CAST('{value.as_py()!r}' AS {'REAL' if value.type.bit_width == 32 else 'DOUBLE'})"
    return literal(value.as_py())


# Versions and conditions.

TABLES = {
    "plain": [],
    "by_text": ["s"],
    "by_day": ["d"],
    "by_time": ["ts"],
    "by_number": ["x"],
    "by_decimal": ["n"],
    "by_two": ["b", "late"],
}
STATISTICS = {"by_day": {"delta.dataSkippingNumIndexedCols": "2"}, "by_text": {"delta.dataSkippingStatsColumns": "k,x,ts"}}


class Conditions(Statements):
    """Conditions of the table's own columns alone."""

    def leaf(self):
        kinds = [self.comparison] * 6 + [self.in_list] * 3 + [self.between] * 3 + [self.like] * 2 + [self.is_null] * 2
        kinds += [self.decimal, self.truth, self.is_nan, self.columns, self.folded]
        return self.chance.choice(kinds)()


def some_rows(chance, first, partitions):
    """Rows with six values at most in each partition column."""
    rows = random_rows(chance, first, 150)
    for name in partitions:
        values = rows[name].to_pylist()
        few = [values[0], values[1], None, values[2]]
        if name == "n":
            few = [value and abs(value) for value in few]
        if name == "x":
            few = [*few, NAN, 0.0]
        taken = pa.array([few[at % len(few)] for at in range(rows.num_rows)], rows[name].type)
        rows = rows.set_column(rows.column_names.index(name), ROWS.field(name), taken)
    return rows


def written_versions(folder, chance, partitions, name):
    """Makes a table of several versions; the rows that each must have."""
    versions, rows = [], ROWS.empty_table()
    writer = WriterProperties(max_row_group_size=40, data_page_size_limit=200, write_batch_size=16)
    first = 0
    for step in ("append", "append", "delete", "append", "overwrite", "replace", "append", "compact", "checkpoint", "delete", "append"):
        match step:
            case "append" | "overwrite":
                more = some_rows(chance, first, partitions)
                first += more.num_rows
                rows = pa.concat_tables([rows, more]) if step == "append" else pa.concat_tables([more])
                write_deltalake(folder, more, mode=step, partition_by=partitions or None, writer_properties=writer, configuration=STATISTICS.get(name) if not versions else None)
            case "replace":  # what a condition is true for
                more = some_rows(chance, first, partitions)
                more = more.filter(pc.equal(more["b"], True))
                first += 150
                kept = rows.filter(pc.invert(pc.fill_null(rows["b"], False)))
                rows = pa.concat_tables([kept, more])
                write_deltalake(folder, more, mode="overwrite", predicate="b = true", writer_properties=writer)
            case "delete":
                DeltaTable(folder).delete("k < 60 OR late = 3", writer_properties=writer)
                gone = pc.or_kleene(pc.less(rows["k"], 60), pc.equal(rows["late"], 3))
                rows = rows.filter(pc.invert(pc.fill_null(gone, False)))
            case "compact":
                DeltaTable(folder).optimize.compact(writer_properties=writer)
            case "checkpoint":
                DeltaTable(folder).create_checkpoint()
                continue
        versions.append(rows)
    return versions


def as_stored(rows, partitions):
    """An empty text in a partition column is null."""
    if "s" not in partitions:
        return rows
    values = [value or None for value in rows["s"].to_pylist()]
    return rows.set_column(rows.column_names.index("s"), "s", pa.array(values, pa.string()))


@pytest.fixture(scope="module", params=TABLES)
def made(request, both):
    """(table, rows of each version)"""
    name, partitions = request.param, TABLES[request.param]
    versions = written_versions(both.folder / name, random.Random(f"{SEED} {name}"), partitions, name)
    versions = [as_stored(rows, partitions) for rows in versions]
    assert DeltaTable(both.folder / name).version() == len(versions) - 1
    return name, versions


def test_every_version_has_the_rows_that_were_written(both, made):
    name, versions = made
    for version, rows in enumerate(versions):
        same_rows(both, name, version, rows)
    newest(both, name, versions[-1])


def test_random_conditions_give_the_rows_that_a_filter_gives(both, made, record):
    name, versions = made
    chance = random.Random(f"{SEED} conditions {name}")
    conditions = Conditions(chance, random_keys(chance, 10), 1000)
    for number in range(CONDITIONS):
        condition = conditions.tree()
        version = len(versions) - 1 if number % 4 else chance.randrange(len(versions))
        rows = versions[version]
        expected = rows.filter(pc.fill_null(condition.mask(rows), False))["id"].to_pylist()
        where = condition.sql.replace("{t}", "")
        at = f"FOR VERSION AS OF {version}" if number % 4 == 0 else ""
        found = both.column(f"SELECT id FROM {{t}}.{name} {at} WHERE {where}")
        assert sorted(found) == sorted(expected), where
        if number % 5 == 0:
            assert both.value(f"SELECT count(*) FROM {{t}}.{name} {at} WHERE {where}") == len(expected), where
        record(ANSWERED, "random conditions on tables of deltalake")


def test_commits_of_another_writer_are_seen_by_the_next_query(both):
    """The server has the table in its caches, and the log grows beside it, past a checkpoint and a clean-up of versions."""
    folder = both.folder / "growing"
    for number in range(12):
        write_deltalake(folder, pa.table({"id": pa.array([number], pa.int64())}), mode="append")
        assert both.rows("SELECT count(*), min(id), max(id) FROM {t}.growing") == [(number + 1, 0, number)]
        if number == 6:
            DeltaTable(folder).create_checkpoint()
    DeltaTable(folder).delete("id < 11")
    assert both.column("SELECT id FROM {t}.growing") == [11]
    write_deltalake(folder, pa.table({"id": pa.array([1], pa.int64()), "new": ["x"]}), mode="overwrite", schema_mode="overwrite")
    assert both.rows("SELECT * FROM {t}.growing") == [(1, "x")]
    assert both.rows("SELECT * FROM {t}.growing FOR VERSION AS OF 2") == [(0,), (1,), (2,)]
