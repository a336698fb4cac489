"""The collection's tables that this project made with Spark, Flink and Iceberg's Java library: deleted from, and read back.

Copies are laid where their metadata says, below /tmp/wh, and registered in a SQL catalog; nothing is mapped, so others
read them too. Each then loses rows by a few seeded statements, whose rows are known from the table's own rows. A reader
that had the right rows before must have them after; row ids of what stays do not change; older snapshots stay as they
were; `fsck` finds what it found before.
"""

import concurrent.futures
import contextlib
import fcntl
import multiprocessing
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import types

import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import canonical
import cases
import other_readers
from conftest import ANSWERED, NOT_RUN, REFUSED, binary, connect
from delete_checks import delete_positions

WAREHOUSE = pathlib.Path("/tmp/wh")
STATEMENTS = 5


def own():
    return [case for case in cases.load_all() if case.doc.get("origin", {}).get("generator") == "own" and cases.root()]


def test_the_tables_are_there(record):
    if not own():
        record(NOT_RUN, "no table of the collection was deleted from")


@pytest.fixture(scope="module")
def lake(start_server, tmp_path_factory):
    """Copies of all own cases below /tmp/wh, which one run at a time has, and a server whose catalog has them."""
    folder = tmp_path_factory.mktemp("own")
    with open("/tmp/sandur-own-cases.lock", "w") as lock:  # noqa: S108 - a place that all runs know
        fcntl.flock(lock, fcntl.LOCK_EX)
        laid = []
        try:
            uri = f"sqlite:///{folder}/catalog.db"
            catalog = SqlCatalog("own", uri=uri, warehouse=f"file://{WAREHOUSE}")
            catalog.create_namespace("s")
            for case in own():
                place = pathlib.Path(other_readers.local(case.doc["location"]))
                assert place.is_relative_to(WAREHOUSE)
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(case.folder / "table", place)
                laid.append(place)
                register(folder / "catalog.db", case, place / case.metadata_file.relative_to(case.folder / "table"))
            config = f'[catalog.own]\ntype = "sql"\nuri = "sqlite:{folder}/catalog.db"\nwarehouse = "{WAREHOUSE}"\n'
            server = start_server(config=config)
            with connect(server) as connection, flight.connect(server.url) as client:
                yield types.SimpleNamespace(connection=connection, flight=client, catalog=catalog)
        finally:
            for pool in APART:
                pool.shutdown()
            APART.clear()
            for place in laid:
                shutil.rmtree(place, ignore_errors=True)
            with contextlib.suppress(OSError):
                (WAREHOUSE / "cases").rmdir()


def register(database, case, metadata_file):
    """By hand, since pyiceberg does not take each of these tables."""
    with contextlib.closing(sqlite3.connect(database)) as opened, opened:
        opened.execute(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) VALUES ('own', 's', ?, ?, 'TABLE')",
            (case.name, str(metadata_file)),
        )


def table_of(lake, sql):
    with lake.connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


class Rows:
    """The rows of a table: canonical form, where each lies, and values that a condition can ask for."""

    def __init__(self, lake, case):
        self.lake, self.case = lake, case
        lineage = ", _row_id" if case.doc["format_version"] == 3 else ""
        read = table_of(lake, f'SELECT *, _file, _pos{lineage} FROM own.s."{case.name}"')
        self.names = read.column_names[: -3 if lineage else -2]
        self.schema = read.schema
        self.lines = canonical.table_rows(read.select(range(len(self.names))), case.uuid_columns)
        self.places = list(zip(read["_file"].to_pylist(), read["_pos"].to_pylist()))
        self.row_ids = read["_row_id"].to_pylist() if lineage else [None] * read.num_rows
        self.values = {name: read.column(at).to_pylist() for at, name in enumerate(self.names) if self.is_plain(at)}
        assert len(set(self.places)) == read.num_rows

    def is_plain(self, at):
        of = self.schema.field(at).type
        return pa.types.is_int32(of) or pa.types.is_int64(of) or pa.types.is_string(of) or pa.types.is_large_string(of)

    def sorted_lines(self):
        return canonical.sorted_lines(self.lines)

    def by_place(self):
        return {row_id: line for row_id, line in zip(self.row_ids, self.lines)}

    def without(self, numbers):
        """The rows that are left without some."""
        left = object.__new__(Rows)
        left.__dict__ = dict(self.__dict__)
        keep = [n for n in range(len(self.lines)) if n not in numbers]
        left.lines, left.places, left.row_ids = ([part[n] for n in keep] for part in (self.lines, self.places, self.row_ids))
        left.values = {name: [values[n] for n in keep] for name, values in self.values.items()}
        return left


def sql_value(value):
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def conditions(chance, rows):
    """SQL and the numbers of the rows that it is true for, in one condition after the other."""
    name = chance.choice(list(rows.values))
    values = rows.values[name]
    column = '"' + name.replace('"', '""') + '"'
    known = sorted({value for value in values if value is not None})
    shape = chance.randrange(4)
    if not known or shape == 0:
        return f"{column} IS NULL", {n for n, value in enumerate(values) if value is None}
    if shape == 1:
        wanted = chance.choice(known)
        return f"{column} = {sql_value(wanted)}", {n for n, value in enumerate(values) if value == wanted}
    if shape == 2:
        wanted = chance.sample(known, min(2, len(known)))
        return f"{column} IN ({', '.join(map(sql_value, wanted))})", {n for n, value in enumerate(values) if value in wanted}
    limit = known[len(known) * 3 // 4]
    return f"NOT ({column} <= {sql_value(limit)})", {n for n, value in enumerate(values) if value is not None and value > limit}


def read_by_others(lake, case):
    """Who can read the table, with the rows that it has there; who cannot is left out."""
    found = {}
    for who in ("pyiceberg", "DuckDB"):
        try:
            table = lake.catalog.load_table(f"s.{case.name}")
            found[who] = other_readers.by_pyiceberg(table, case.uuid_columns) if who == "pyiceberg" else duckdb_apart(table, case.uuid_columns)
        except Exception:  # noqa: BLE001, S110 - whatever it is that it cannot do
            pass
    return found


def duckdb_apart(table, uuids):
    """DuckDB in a process of its own: some tables of Java end it."""
    if APART:
        pool = APART[0]
    else:
        pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        APART.append(pool)
    try:
        return pool.submit(duckdb_lines, table.metadata_location, uuids).result()
    except Exception:
        # After some errors it answers nothing any more.
        APART.clear()
        pool.shutdown()
        raise


APART = []


def duckdb_lines(metadata_location, uuids):
    return other_readers.by_duckdb(types.SimpleNamespace(metadata_location=metadata_location), uuids)


def findings(case, location):
    done = subprocess.run([str(binary()), "fsck", other_readers.local(location)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {off_by(line.partition(": ")[2]) for line in done.stdout.splitlines()[:-1]}


def off_by(finding):
    """A finding about a total as how far it is off, which stays when rows go."""
    numbers = re.match(r"the summary says (\d+), the files make (\d+) (.*)", finding)
    return f"{int(numbers[1]) - int(numbers[2])} {numbers[3]}" if numbers else finding


def location(lake, case):
    with contextlib.closing(sqlite3.connect(lake.catalog.engine.url.database)) as opened:
        return opened.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", (case.name,)).fetchone()[0]


def delete(lake, case, sql, numbers, rows):
    """Runs a delete of these rows, by SQL or by their positions; a refusal that names a property is told."""
    if sql is not None:
        with lake.connection.cursor() as cursor:
            cursor.execute(f'DELETE FROM own.s."{case.name}" WHERE {sql}')
            return cursor.rowcount
    places = [rows.places[n] for n in sorted(numbers)]
    return delete_positions(lake, case.name, [path for path, _ in places], [position for _, position in places]).rows


@pytest.mark.parametrize("case", own(), ids=lambda case: case.name)
def test_rows_are_deleted_and_read_back(lake, case, record):
    chance = random.Random(case.name)
    rows = Rows(lake, case)
    assert len(rows.lines) == case.expected["row_count"]
    base, start = rows.sorted_lines(), location(lake, case)
    # Equal floats and NaN may be spelled alike only by one of them: who differs before is no judge after.
    judges = [who for who, read in read_by_others(lake, case).items() if read == base]
    before = findings(case, start)
    changed = 0
    for n in range(STATEMENTS):
        if not rows.lines:
            break
        if n == 2 and case.doc["format_version"] > 1:
            sql, numbers = None, set(chance.sample(range(len(rows.lines)), min(2, len(rows.lines))))
        else:
            for _ in range(20):
                sql, numbers = conditions(chance, rows)
                if len(numbers) <= max(1, len(rows.lines) // 3):
                    break
            else:
                continue
        try:
            count = delete(lake, case, sql, numbers, rows)
        except (adbc_driver_manager.Error, pa.ArrowException, flight.FlightError) as e:
            assert "only parquet files are written" in str(e) or "geometry" in str(e) or "geography" in str(e), e
            record(REFUSED, f"{case.name}: {sql or 'DeletePositions'}: {str(e)[:160]}")
            assert Rows(lake, case).sorted_lines() == rows.sorted_lines()
            continue
        assert count == len(numbers), sql
        changed += count > 0
        rows = rows.without(numbers)
        after = Rows(lake, case)
        assert after.sorted_lines() == rows.sorted_lines(), sql
        if case.doc["format_version"] == 3:
            assert after.by_place() == rows.by_place(), "row ids"
        rows = after
    read = read_by_others(lake, case)
    for who in judges:
        assert who in read, f"{who} cannot read the table any more"
        assert read[who] == rows.sorted_lines(), who
    assert findings(case, location(lake, case)) <= before
    if changed and case.doc["current_snapshot_id"] not in (None, -1):
        then = table_of(lake, f'SELECT * FROM own.s."{case.name}" FOR VERSION AS OF {case.doc["current_snapshot_id"]}')
        assert canonical.sorted_lines(canonical.table_rows(then, case.uuid_columns)) == base
    record(ANSWERED, f"rows deleted from tables of other programs, read back by {' and '.join(['Sandur', *judges])}")
