"""DELETE in every write mode, version and shape of table, beside two models and two other readers.

Each table has more than a hundred thousand rows with nulls and NaN, three or more data files of several row groups and
pages, and deletes of every kind from before. Random statements are put to the server, to DuckDB's tables in memory
and to an Arrow table (tests/clients/delete_statements.py): each has to delete as many rows as both say. `fsck` looks
after every tenth statement and at the end; then the server, DuckDB's `iceberg_scan` and pyiceberg have exactly the rows
of the models. pyiceberg takes no equality deletes, and DuckDB ends with an error where they are of a partition and some
partition is null: then they read the snapshot without these, and what they deleted is taken off.
"""

import os
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.table import StaticTable

import hand_commits
import other_readers
from delete_checks import change, check_same_rows, duck_table, live_files, summaries, vectors
from delete_statements import Statements, statement
from delete_tables import IDS, SHAPES, Cell, Source, make, row_groups
from insert_checks import Writing

# `make test-full` sets SANDUR_LONG.
STATEMENTS = 200 if os.environ.get("SANDUR_LONG") else 40
LOOK_EVERY = 10
CELLS = [Cell(version, mode, shape) for version in (2, 3) for mode in ("merge-on-read", "copy-on-write") for shape in SHAPES]
CELLS += [Cell(1, "copy-on-write", shape) for shape in ("day", "evolved_schema")]


@pytest.fixture(scope="module")
def source():
    return Source()


@pytest.fixture(scope="module")
def writing(start_server, tmp_path_factory, source):
    warehouse = tmp_path_factory.mktemp("deletes") / "warehouse"
    opened = Writing(start_server(["--warehouse", str(warehouse)]), warehouse)
    opened.run("CREATE TABLE s.keys (g BIGINT, id BIGINT, k BIGINT, v DOUBLE, s STRING)")
    opened.append_rows("keys", source.keys)
    yield opened
    opened.close()


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_random_deletes_leave_the_rows_of_the_models(writing, source, cell, tmp_path):
    made = make(writing, cell, source)
    assert sum(part.num_rows for part in made.parts) >= 100_000
    table = made.table()
    assert len(row_groups(table)) >= 3 and max(row_groups(table)) > 1
    check_counts(made)
    ids = row_ids(made)
    before, commits = len(table.snapshots()), 0
    chance = random.Random(f"random deletes of {cell}")
    statements = Statements(chance, source.keys, IDS, cell.shape)
    for number in range(1, STATEMENTS + 1):
        commits += run_one(made, chance, statements) > 0
        if number % LOOK_EVERY == 0:
            check_counts(made)
            assert other_readers.fsck(made.table()) == ""
    table = made.table()
    check_snapshots(made, table, before, commits)
    check_everywhere(made, table, tmp_path)
    check_row_ids(made, ids)
    # What is left goes too.
    done = change(writing, f"DELETE FROM s.{made.name} WHERE true")
    assert (done.rows, done.data_files, done.delete_files, done.rewritten_files) == (made.models.rows.num_rows, 0, 0, 0)
    table = made.table()
    assert live_files(table) == ({}, {})
    made.models.delete_ids(made.models.rows["id"].to_pylist())
    check_everywhere(made, table, tmp_path)
    made.models.close()
    writing.run(f"DROP TABLE s.{made.name}")


def run_one(made, chance, statements):
    """One random statement: as many rows as both models say."""
    condition = statements.next(made.models.rows)
    sql = statement(chance, made.name, condition)
    by_arrow, by_duckdb = made.models.delete(condition, sql)
    assert by_arrow == by_duckdb, f"the models differ: {sql}"
    if condition.parameters is None:
        found = made.writing.run(sql)
    else:
        with made.writing.connection.cursor() as cursor:
            cursor.executemany(sql, condition.parameters)
            found = cursor.rowcount
    assert found == by_arrow, f"{sql} {condition.parameters or ''}"
    return found


def check_counts(made):
    """The rows that are left, by count and sums."""
    rows = made.models.rows
    read = made.writing.table(f"SELECT count(*), sum(id), sum(k), count(x), count(late), sum(late) FROM s.{made.name}")
    expected = [rows.num_rows, pc.sum(rows["id"]), pc.sum(rows["k"]), pc.count(rows["x"]), pc.count(rows["late"]), pc.sum(rows["late"])]
    assert list(read.to_pylist()[0].values()) == [value.as_py() if isinstance(value, pa.Scalar) else value for value in expected]


def row_ids(made):
    if made.cell.version < 3:
        return None
    read = made.writing.table(f"SELECT id, _row_id FROM s.{made.name}")
    return dict(zip(read["id"].to_pylist(), read["_row_id"].to_pylist()))


def check_row_ids(made, before):
    """Rows keep their ids, also where they were written anew."""
    if before is None:
        return
    after = row_ids(made)
    assert None not in before.values() and len(set(before.values())) == len(before)
    assert after == {number: before[number] for number in made.models.rows["id"].to_pylist()}


def check_snapshots(made, table, before, commits):
    """One snapshot for each statement that deleted rows, of the kind that the mode is."""
    new = summaries(table, before)
    assert len(new) == commits
    for operation, counts in new:
        if made.cell.mode == "merge-on-read":
            assert operation == "delete" and "added-data-files" not in counts
            assert ("added-position-delete-files" if made.cell.version == 3 else "added-dvs") not in counts
        else:
            assert "added-delete-files" not in counts
            assert operation == ("overwrite" if "added-data-files" in counts else "delete")
    vectors(table)
    if made.cell.version == 1:
        assert live_files(table)[1] == {}


def check_everywhere(made, table, folder):
    """The server, DuckDB and pyiceberg have the rows of the models."""
    rows = made.models.rows
    assert sorted(rows["id"].to_pylist()) == [row[0] for row in made.models.duck.execute(f"SELECT id FROM s.{made.name} ORDER BY id").fetchall()]
    check_same_rows(rows, made.writing.table(f"SELECT * FROM s.{made.name}"), "the server")
    without = hand_commits.without_equality_deletes(table, folder)
    by_key = pa.array(sorted(made.by_key), pa.int64())
    theirs = StaticTable.from_metadata(str(without)).scan().to_arrow()
    check_same_rows(rows, theirs.filter(pc.invert(pc.is_in(theirs["id"], by_key))), "pyiceberg")
    if len(table.specs()) == 1 and not table.spec().fields:
        check_same_rows(rows, duck_table(table.metadata_location), "DuckDB")
    elif (made.cell.version, made.cell.mode, made.cell.shape) != (3, "merge-on-read", "evolved_spec"):
        theirs = duck_table(without)
        theirs = theirs.filter(pc.invert(pc.is_in(theirs["id"], by_key)))
        if table.metadata.format_version == 3:
            rows, theirs = outside_null_partitions(rows), outside_null_partitions(theirs)
        check_same_rows(rows, theirs, "DuckDB")
    assert other_readers.fsck(table) == ""


def outside_null_partitions(rows):
    """DuckDB 1.5.5 takes another file's vector for a data file whose partition is null, and under several specs also else."""
    return rows.filter(pc.and_(pc.is_valid(rows["k"]), pc.is_valid(rows["ts"])))
