"""Many writers of one table: eight through one server, pyiceberg as a ninth on the same catalog file, readers beside.

The history that comes of it is replayed: each snapshot follows the one before and is exactly one append of one writer,
each writer's appends are there once and in its order, and what a reader saw is a prefix of the history.
"""

import collections
import os
import threading
import time

import adbc_driver_manager
import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from conftest import connect
from test_embedded_catalog import pyiceberg as pyiceberg_catalog

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("writer", pa.int64())])
WRITERS = 8
THEIRS = WRITERS
# `make test-full` sets SANDUR_LONG.
APPENDS = 200 if os.environ.get("SANDUR_LONG") else 20


def ids(writer, n):
    """The two rows of a writer's append: one read without the other is half a commit."""
    first = 2 * (writer * 1000 + n)
    return [first, first + 1]


def refused(cursor, sql):
    """Whether an INSERT of two rows was surely not made, since others came first at every attempt."""
    try:
        cursor.execute(sql)
    except adbc_driver_manager.OperationalError as e:
        if "other commits to the table came first" in str(e) and "Aborted" in str(e):
            return True
        raise
    assert cursor.rowcount == 2
    return False


class Reads:
    """What one reader saw: the ids of each read, one after the other."""

    def __init__(self):
        self.seen = []

    def read(self, rows):
        """Reads once, and leaves the machine to the writers for twice as long."""
        began = time.monotonic()
        ids = sorted(rows())
        if not self.seen or self.seen[-1] != ids:
            self.seen.append(ids)
        time.sleep(0.1 + 2 * (time.monotonic() - began))


@pytest.fixture
def raced(start_server, tmp_path):
    """The warehouse after the race, its server, and what the readers saw."""
    warehouse = tmp_path / "warehouse"
    server = start_server(["--warehouse", str(warehouse)])
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA shop")
        cursor.execute("CREATE TABLE shop.t (id BIGINT NOT NULL, writer BIGINT)")
    writing, failures = threading.Event(), []
    writing.set()

    def ours(writer):
        with connect(server) as connection, connection.cursor() as cursor:
            for n in range(APPENDS):
                a, b = ids(writer, n)
                again = True
                while again:
                    again = refused(cursor, f"INSERT INTO shop.t VALUES ({a}, {writer}), ({b}, {writer})")

    def theirs():
        catalog = pyiceberg_catalog(warehouse)
        for n in range(APPENDS):
            rows = pa.table({"id": ids(THEIRS, n), "writer": [THEIRS, THEIRS]}, schema=SCHEMA)
            while True:
                try:
                    catalog.load_table("shop.t").append(rows)
                    break
                except CommitFailedException:
                    continue

    def read(reads):
        with connect(server) as connection, connection.cursor() as cursor:
            while writing.is_set():
                reads.read(lambda: [row[0] for row in cursor.execute("SELECT id FROM shop.t").fetchall()])

    def read_theirs(reads):
        catalog = pyiceberg_catalog(warehouse)
        while writing.is_set():
            reads.read(lambda: catalog.load_table("shop.t").scan().to_arrow()["id"].to_pylist())

    def guarded(work, *arguments):
        try:
            work(*arguments)
        except BaseException as e:  # noqa: BLE001 - reported below
            failures.append(e)

    def started(work, *arguments):
        thread = threading.Thread(target=guarded, args=(work, *arguments))
        thread.start()
        return thread

    reads = [Reads() for _ in range(3)]
    readers = [started(read, reads[0]), started(read, reads[1]), started(read_theirs, reads[2])]
    writers = [started(ours, writer) for writer in range(WRITERS)] + [started(theirs)]
    for thread in writers:
        thread.join()
    writing.clear()
    for thread in readers:
        thread.join()
    assert not failures, failures
    return server, pyiceberg_catalog(warehouse).load_table("shop.t"), reads


def test_the_history_of_many_writers_is_one_append_after_the_other(raced):
    server, table, reads = raced
    commits = (WRITERS + 1) * APPENDS
    snapshots = table.snapshots()
    assert len(snapshots) == commits
    assert [s.parent_snapshot_id for s in snapshots] == [None] + [s.snapshot_id for s in snapshots[:-1]]
    assert table.current_snapshot() == snapshots[-1]
    assert [s.sequence_number for s in snapshots] == list(range(1, commits + 1))
    for at, snapshot in enumerate(snapshots, start=1):
        summary = snapshot.summary
        assert summary.operation.value == "append"
        counts = [summary[name] for name in ("added-data-files", "added-records", "total-data-files", "total-records")]
        assert counts == ["1", "2", str(at), str(2 * at)], f"snapshot {at}"

    # Each snapshot's one file, by the bounds of its ids.
    files = table.inspect.entries().to_pylist()
    assert len(files) == commits and {file["status"] for file in files} <= {0, 1}
    of_snapshot = {file["snapshot_id"]: file["readable_metrics"]["id"] for file in files}
    bounds = [of_snapshot[s.snapshot_id] for s in snapshots]
    history = [[bound["lower_bound"], bound["upper_bound"]] for bound in bounds]
    of_writer = collections.defaultdict(list)
    for rows in history:
        of_writer[rows[0] // 2000].append(rows)
    assert of_writer == {writer: [ids(writer, n) for n in range(APPENDS)] for writer in range(WRITERS + 1)}

    whole = sorted(row for rows in history for row in rows)
    for seen in (r.seen for r in reads):
        assert [len(rows) for rows in seen] == sorted(len(rows) for rows in seen), "a later read has fewer rows"
        for rows in seen:
            assert rows == sorted(row for step in history[: len(rows) // 2] for row in step)
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM shop.t ORDER BY id")
        assert [row[0] for row in cursor.fetchall()] == whole
        cursor.execute("SELECT count(*), count(DISTINCT id), count(DISTINCT writer) FROM shop.t")
        assert tuple(cursor.fetchone()) == (2 * commits, 2 * commits, WRITERS + 1)
