"""kill -9 before and after every step of a DELETE, as test_crashes.py does it to what adds rows.

What is killed, and what must hold afterwards, is in kill_checks.py. Then the delete is sent again: it deletes what is
left to delete, and a file that was written anew is not there beside the old one.
"""

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from crashing import message
from delete_checks import Change, vectors
from kill_checks import AGAIN, LATER, LISTS, MADE, MADE_AGAIN, MANIFESTS, SENT, Keyed
from kill_checks import check, killed_after, killed_again, killed_at, same
from kill_checks import lake_fixture, table_fixture  # noqa: F401 - fixtures
from wire import field

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ROWS = [(1, "a"), (2, "b"), (3, "a"), (4, None), (5, "b"), (6, "c")]


class Delete:
    """Rows of one of two data files, by position delete files."""

    version, mode = 2, "merge-on-read"
    where = "id IN (2, 4)"
    before = ROWS
    after = [row for row in ROWS if row[0] not in (2, 4)]
    # A file of rows like any other, to the writer.
    files = ["finish-data", "finished-data"]
    more = ""

    def prepare(self, lake, table):
        lake.run(
            f"CREATE TABLE shop.{table} (id BIGINT NOT NULL, name STRING) {self.more} "
            f"TBLPROPERTIES ('format-version' = '{self.version}', 'write.delete.mode' = '{self.mode}')"
        )
        for rows in (self.before[:4], self.before[4:]):
            lake.append(table, rows, "")

    def send(self, lake, table):
        return lake.run(f"DELETE FROM shop.{table} WHERE {self.where}")


class Vectors(Delete):
    version = 3
    files = ["create-delete", "created-delete"]


class Second(Vectors):
    """A vector that takes the place of one."""

    before = [row for row in ROWS if row[0] != 1]
    after = [row for row in before if row[0] not in (2, 4)]

    def prepare(self, lake, table):
        lake.run(f"CREATE TABLE shop.{table} (id BIGINT NOT NULL, name STRING) TBLPROPERTIES ('format-version' = '3')")
        lake.append(table, ROWS, "")
        assert lake.run(f"DELETE FROM shop.{table} WHERE id = 1") == 1


class CopyOnWrite(Delete):
    mode = "copy-on-write"
    files = ["part-data", "finish-data", "finished-data"]


class CopyOfVersion3(CopyOnWrite):
    version = 3


class WholeFile(Vectors):
    """The second data file, by metadata alone."""

    where = "id >= 5"
    after = ROWS[:4]
    files = []


class Partitions(Delete):
    """Position deletes of two partitions, which both keep a row: a file for each."""

    where = "id IN (1, 2)"
    before = [(1, "a"), (2, None), *ROWS[2:]]
    after = ROWS[2:]
    more = "PARTITIONED BY (name)"


class All(Delete):
    after = []
    files = []

    def send(self, lake, table):
        return lake.run(f"TRUNCATE TABLE shop.{table}")


class Prepared(Vectors):
    def send(self, lake, table):
        return lake.run(f"DELETE FROM shop.{table} WHERE id = ?", [(2,), (4,)])


class Positions(Keyed, Vectors):
    """Rows by file and position under an idempotency key."""

    def put(self, lake, table):
        """Rows 2 and 4 lie at 1 and 3 of the first file, wherever they are now."""
        if not hasattr(self, "path"):
            self.path = first_file(lake, table)
        ref = field(2, "shop") + field(3, table)
        descriptor = flight.FlightDescriptor.for_command(message("DeletePositions", field(1, ref), field(3, self.key(table))))
        rows = pa.table({"file_path": [self.path] * 2, "pos": pa.array([1, 3], pa.int64())})
        with flight.connect(f"grpc+tcp://127.0.0.1:{lake.server.port}") as client:
            writer, reader = client.do_put(descriptor, rows.schema)
            with writer:
                writer.write_table(rows)
                writer.done_writing()
                done = Change.of(reader.read().to_pybytes())
        return done.rows, done.snapshot_id


def first_file(lake, table):
    """The path of the data file that was added first."""
    snapshots = lake.pyiceberg.load_table(f"shop.{table}").inspect.files()
    [path] = [row["file_path"] for row in snapshots.to_pylist() if row["record_count"] == 4]
    return path


def kills():
    for kind in (Delete, Vectors, CopyOnWrite):
        for place in [*kind.files, *MANIFESTS, *LISTS, *SENT, *MADE]:
            yield kind, place, 1
    for kind in (Second, CopyOfVersion3, Partitions, Positions, Prepared):
        for place in [*kind.files, "created-manifest", "created-metadata", "sql-commit", "sql-committed", "answer"]:
            yield kind, place, 1
    for place in ("finish-data", "finished-data"):
        yield Partitions, place, 2
    yield Second, "created-manifest", 2
    for kind in (WholeFile, All):
        for place in ["created-manifest", "created-manifestlist", "sql-commit", "sql-committed", "answer"]:
            yield kind, place, 1


@pytest.mark.parametrize("kind, place, times", [pytest.param(*k, id=f"{k[0].__name__}-{k[1]}-{k[2]}") for k in kills()])
def test_a_delete_that_is_killed_is_made_or_not(lake, table, kind, place, times):
    change = kind()
    ours, made = killed_at(lake, table, change, place, times)
    afterwards(lake, table, change, ours, made)


@pytest.mark.parametrize("kind", [Delete, Vectors, Second, CopyOnWrite, CopyOfVersion3, WholeFile, Partitions, All, Prepared, Positions])
def test_a_delete_that_was_answered_stays(lake, table, kind):
    change = kind()
    ours, rows = killed_after(lake, table, change)
    assert rows == len(change.before) - len(change.after)
    afterwards(lake, table, change, ours, made=True)


@pytest.mark.parametrize("place", AGAIN + MADE_AGAIN)
@pytest.mark.parametrize("kind", [Delete, CopyOnWrite])
def test_a_delete_that_came_second_is_made_or_not(lake, table, kind, place):
    """pyiceberg adds a row first; the second attempt, or the clean-up after it, is killed."""
    change = kind()
    ours = killed_again(lake, table, change, place)
    afterwards(lake, table, change, ours, made=place in MADE_AGAIN)


def afterwards(lake, table, change, ours, made):
    """What must hold after a restart; then the delete is sent again, where that was not done under its key."""
    check(lake, table, change, ours, made)
    if not isinstance(change, Keyed):
        gone = 0 if made else len(change.before) - len(change.after)
        # The row that was inserted since.
        later = [] if isinstance(change, (All, WholeFile)) else [LATER]
        assert change.send(lake, table) == gone + 1 - len(later)
        same(lake, table, [*change.after, *later])
    vectors(lake.pyiceberg.load_table(f"shop.{table}"))
    lake.fsck(table)
