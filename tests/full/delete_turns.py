"""A small table from which Spark and the server delete in turns, and the rows that must be left.

A condition is SQL that both know, and the rows for which it is true as plain Python. NaN is equal to itself and above
all numbers for both, but Iceberg's Java library leaves out files whose bounds are below a number, NaN or not: what Spark
is asked tells NaN from the others. The rows are made of their ids, so that each can be worked out by hand.
"""

import dataclasses
import math
from collections.abc import Callable

import pyarrow as pa
from pyiceberg import types as t

import other_readers
from delete_checks import change, live_files, vectors
from insert_checks import ID, arrow_rows, create, expected_lines, values

FIELDS = [
    ID,
    t.NestedField(2, "k", t.IntegerType(), required=False),
    t.NestedField(3, "x", t.DoubleType(), required=False),
    t.NestedField(4, "s", t.StringType(), required=False),
    t.NestedField(5, "ts", t.TimestampType(), required=False),
]
DAY = 86_400 * 10**6
FIRST = 19_723 * DAY  # 2024-01-01
PART = 150
KEYS = [3, 8, 21, 33]
WORDS = ["alpha", "", "é", "日本", "100%"]


def row(n):
    """The row of an id: its parts of 150 are a file each, where there are no partitions."""
    x = math.nan if n % 13 == 0 else math.inf if n % 41 == 1 else None if n % 17 == 0 else (n % 101 - 50) / 8
    s = None if n % 7 == 3 else f"{WORDS[n % 5]}{n % 23}"
    ts = None if n % 29 == 0 else FIRST + n % 3 * DAY + n * 1_000_001
    return [n, None if n % 11 == 5 else n % 37, x, s, ts]


@dataclasses.dataclass(frozen=True)
class Condition:
    """What stands behind DELETE FROM, with `{t}` for the table and `{keys}` for one of keys; and the rows that go."""

    sql: str
    goes: Callable[..., bool]


def where(sql, goes):
    return Condition(f"DELETE FROM {{t}} WHERE {sql}", goes)


# The columns are id, k, x, s, ts.
FIRST_TURN = [
    where("id = 5", lambda n, *_: n == 5),
    where("k = 7 OR s IS NULL AND id < 60", lambda n, k, x, s, ts: k == 7 or s is None and n < 60),
    where("x = CAST('NaN' AS DOUBLE) AND id % 2 = 0", lambda n, k, x, s, ts: x is not None and math.isnan(x) and n % 2 == 0),
    where("x IS NULL AND k BETWEEN 3 AND 9", lambda n, k, x, s, ts: x is None and k is not None and 3 <= k <= 9),
    where("id = 100000", lambda n, *_: False),
    where("NOT (k < 35)", lambda n, k, *_: k is not None and k >= 35),
    where("s LIKE 'é%' AND id % 3 = 0", lambda n, k, x, s, ts: s is not None and s.startswith("é") and n % 3 == 0),
    where("ts < TIMESTAMP '2024-01-01 00:00:40'", lambda n, k, x, s, ts: ts is not None and ts < FIRST + 40 * 10**6),
    where("x > 5.5 AND id % 2 = 1", lambda n, k, x, s, ts: x is not None and (math.isnan(x) or x > 5.5) and n % 2 == 1),
    where("ts IS NULL AND id > 100", lambda n, k, x, s, ts: ts is None and n > 100),
    where("id IN (1, 2, 3, 151, 301, 302, 9000)", lambda n, *_: n in (1, 2, 3, 151, 301, 302)),
    where("k IN (SELECT k FROM {keys})", lambda n, k, *_: k in KEYS),
    where("id BETWEEN 150 AND 299", lambda n, *_: 150 <= n <= 299),
]
SPARKS_TURN = [
    where("id % 19 = 4", lambda n, *_: n % 19 == 4),
    where("x BETWEEN 5 AND 6 OR isnan(x) AND id % 4 = 1", lambda n, k, x, s, ts: x is not None and (5 <= x <= 6 or math.isnan(x) and n % 4 == 1)),
    where("s LIKE 'alpha%' AND k IN (SELECT k + 1 FROM {keys})", lambda n, k, x, s, ts: (s or "").startswith("alpha") and k is not None and k - 1 in KEYS),
]
SECOND_TURN = [
    where("id % 23 = 6", lambda n, *_: n % 23 == 6),
    Condition("DELETE FROM {t} USING {keys} o WHERE {t}.k = o.k + 2", lambda n, k, *_: k is not None and k - 2 in KEYS),
    Condition("DELETE FROM {t} WHERE id > 310 ORDER BY id LIMIT 4", None),
    where("x < 0 AND s IS NOT NULL AND id % 2 = 1", lambda n, k, x, s, ts: x is not None and x < 0 and s is not None and n % 2 == 1),
]


class Turns:
    """A table `s.<name>` that both write to; `rows` is what must be in it, by id."""

    def __init__(self, writing, name, version, partitioned, properties):
        self.writing, self.name, self.version = writing, name, version
        self.partitioned, self.properties = partitioned, properties
        self.born = version
        self.rows = {}
        # What rows of tables of version 3 have, once they have it: row id and sequence number.
        self.row_ids = {}

    # how it begins

    def create(self):
        create(self.writing, self.name, FIELDS, self.version, [self.partitioned] if self.partitioned else [])
        for name, value in self.properties.items():
            self.set(name, value)

    def create_by_spark(self):
        properties = self.properties | {"format-version": str(self.version)}
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.writing.spark(
            f"CREATE TABLE iceberg.s.{self.name} (id BIGINT NOT NULL, k INT, x DOUBLE, s STRING, ts TIMESTAMP_NTZ) USING iceberg "
            f"{f'PARTITIONED BY ({self.partitioned})' if self.partitioned else ''} TBLPROPERTIES ({listed})"
        )

    def set(self, name, value, by_spark=False):
        sql = f"s.{self.name} SET TBLPROPERTIES ('{name}' = '{value}')"
        if by_spark:
            self.writing.spark(f"ALTER TABLE iceberg.{sql}")
        else:
            self.writing.run(f"ALTER TABLE {sql}")

    def upgrade(self, version, by_spark=False):
        self.set("format-version", str(version), by_spark)
        self.version = version

    # what happens to it

    def insert(self, first, count=PART):
        added = [row(n) for n in range(first, first + count)]
        assert self.writing.run(f"INSERT INTO s.{self.name} VALUES {values(FIELDS, added)}") == count
        self.rows |= {row[0]: row for row in added}

    def insert_by_spark(self, first, count=PART):
        last = first + count - 1
        self.writing.spark(f"INSERT INTO iceberg.s.{self.name} SELECT * FROM iceberg.s.source WHERE id BETWEEN {first} AND {last}")
        self.rows |= {n: row(n) for n in range(first, first + count)}

    def matched(self, condition):
        if condition.goes is None:  # the first four above 310
            return sorted(n for n in self.rows if n > 310)[:4]
        return [n for n, row in self.rows.items() if condition.goes(*row)]

    def delete(self, condition):
        """A delete by the server: it says how many rows went, and nothing is wrong with the table after."""
        gone = self.matched(condition)
        sql = condition.sql.format(t=f"s.{self.name}", keys="s.keys")
        done = change(self.writing, sql)
        assert done.rows == len(gone), sql
        for n in gone:
            del self.rows[n]
        self.check_files()

    def delete_by_spark(self, condition):
        gone = self.matched(condition)
        self.writing.spark(for_spark(condition.sql.format(t=f"iceberg.s.{self.name}", keys="iceberg.s.keys")))
        for n in gone:
            del self.rows[n]
        assert other_readers.fsck(self.table()) == ""

    def call(self, procedure, options):
        """One of Spark's procedures for keeping a table small."""
        self.writing.spark(f"CALL iceberg.system.{procedure}(table => 's.{self.name}', options => map({options}))")
        assert other_readers.fsck(self.table()) == ""

    def truncate(self):
        done = change(self.writing, f"TRUNCATE TABLE s.{self.name}")
        assert done.rows == len(self.rows)
        self.rows, self.row_ids = {}, {}
        assert live_files(self.table()) == ({}, {})

    # what is so then

    def table(self):
        return self.writing.catalog.load_table(f"s.{self.name}")

    def check_files(self):
        """Live files are what the mode allows, and all rows and deletes are counted."""
        table = self.table()
        assert other_readers.fsck(table) == ""
        data, deletes = live_files(table)
        there = sum(file["record_count"] for file in data.values())
        if self.properties.get("write.delete.mode") == "copy-on-write" or self.version == 1:
            assert not deletes and there == len(self.rows)
        elif self.version == 3:
            found = vectors(table)
            assert found.keys() <= {path for path, _ in data}, "a deletion vector of no live data file"
            if self.born == 3:
                assert len(found) == len(deletes), "a delete file that is no vector"
                assert sum(file["record_count"] for file in found.values()) == there - len(self.rows)

    def check_rows(self):
        """Spark and the server read exactly the rows, and each row has the id that it always had."""
        expected = expected_lines(FIELDS, list(self.rows.values()))
        assert self.writing.lines(self.name) == expected
        assert self.writing.spark_lines(self.name) == expected
        if self.version == 3:
            self.check_row_ids()

    def check_row_ids(self):
        ours = ids_of(self.writing.table(f"SELECT id, _row_id, _last_updated_sequence_number FROM s.{self.name}"))
        assert ours.keys() == self.rows.keys()
        sparks = ids_of(self.writing.spark_table(f"SELECT id, _row_id, _last_updated_sequence_number FROM iceberg.s.{self.name}"))
        assert sparks == ours
        numbers = [number for number, _ in ours.values() if number is not None]
        assert len(set(numbers)) == len(numbers), "a row id comes twice"
        for n, had in self.row_ids.items():
            assert n not in ours or ours[n] == had, f"row {n} had {had} and has {ours[n]}"
        if self.born == 3:
            assert len(numbers) == len(ours), "a row without an id"
        self.row_ids |= {n: has for n, has in ours.items() if has[0] is not None}


def ids_of(table):
    columns = [column.to_pylist() for column in table.columns]
    return {n: (number, sequence) for n, number, sequence in zip(*columns)}


def for_spark(sql):
    """The same SQL with Spark's name of times without a zone."""
    return sql.replace("TIMESTAMP '", "TIMESTAMP_NTZ '")


def make_sources(writing):
    """The table that subqueries ask, and one of all rows that Spark copies."""
    writing.run("CREATE TABLE s.keys (k INT)")
    writing.append_rows("keys", pa.table({"k": pa.array(KEYS, pa.int32())}))
    create(writing, "source", FIELDS, 2)
    writing.append_rows("source", arrow_rows(FIELDS, [row(n) for n in range(3 * PART)]))
