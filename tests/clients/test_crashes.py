"""kill -9 before and after every step of a commit (reliability-security.md 4.3, steps 1 to 7; INV-1 to INV-5).

What is killed, and what must hold afterwards, is in kill_checks.py.
"""

import pytest

from crashing import SCHEMA
from kill_checks import AGAIN, LATER, LISTS, MADE, MADE_AGAIN, MANIFESTS, SENT, Keyed
from kill_checks import check, killed, killed_after, killed_again, killed_at, same
from kill_checks import lake_fixture, table_fixture  # noqa: F401 - fixtures

# A cursor whose server is gone cannot be closed, which the driver finds worth a warning.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BASE = [(1, "base")]
# Places in the order in which an INSERT comes by, up to its first list of manifests.
FILES = ["part-data", "finish-data", "finished-data", *MANIFESTS]


def with_base(lake, table, more=""):
    lake.run(f"CREATE TABLE shop.{table} (id BIGINT NOT NULL, name STRING) {more}")
    assert lake.run(f"INSERT INTO shop.{table} VALUES (1, 'base')") == 1


class Insert:
    new = [(10, "a"), (11, None)]
    before, after = BASE, BASE + new
    prepare = staticmethod(with_base)

    def send(self, lake, table):
        return lake.run(f"INSERT INTO shop.{table} VALUES (10, 'a'), (11, NULL)")


class Partitions(Insert):
    """Three data files, each of a partition."""

    new = [(10, "a"), (11, "b"), (12, "c")]
    after = BASE + new

    def prepare(self, lake, table):
        with_base(lake, table, "PARTITIONED BY (name)")

    def send(self, lake, table):
        return lake.run(f"INSERT INTO shop.{table} VALUES (10, 'a'), (11, 'b'), (12, 'c')")


class Prepared(Insert):
    """Values of a prepared statement, which come by DoPut."""

    def send(self, lake, table):
        return lake.run(f"INSERT INTO shop.{table} VALUES (?, ?)", self.new)


class Append(Keyed, Insert):
    """Rows by DoPut with an idempotency key."""

    def put(self, lake, table):
        return lake.append(table, self.new, self.key(table))


class AppendOnce(Append):
    """There is no second attempt."""

    def prepare(self, lake, table):
        with_base(lake, table, "TBLPROPERTIES ('commit.retry.num-retries' = '0')")


class Create:
    before, after = None, []

    def prepare(self, lake, table):
        pass

    def send(self, lake, table):
        return lake.run(f"CREATE TABLE shop.{table} (id BIGINT NOT NULL, name STRING)")


class CreateAs(Create):
    after = [(10, "a"), (11, "b")]

    def send(self, lake, table):
        values = "SELECT column1 AS id, column2 AS name FROM (VALUES (10, 'a'), (11, 'b'))"
        return lake.run(f"CREATE TABLE shop.{table} AS {values}")


class Drop(Insert):
    before, after = BASE, None

    def send(self, lake, table):
        return lake.run(f"DROP TABLE shop.{table}")


def kills():
    """Kind of change, place, how often it comes by before it stops there."""
    for place in FILES + LISTS + SENT + MADE:
        yield Insert, place, 1
    for place, times in [("finish-data", 2), ("finished-data", 2), ("finish-data", 3), ("finished-data", 3)]:
        yield Partitions, place, times
    for place in ["created-manifest", "created-metadata", "sql-commit", "sql-committed", "answer"]:
        yield Partitions, place, 1
    for place in ["created-metadata", "answer"]:
        yield Prepared, place, 1
    for place in ["finished-data", "created-metadata", *SENT, *MADE]:
        yield Append, place, 1
    for place in ["create-metadata", "created-metadata", "sql-commit", "sql-committed", "answer"]:
        yield Create, place, 1
    for place in ["create-metadata", "created-metadata", "finished-data", "created-manifest", "created-manifestlist"]:
        yield CreateAs, place, 1
    yield CreateAs, "created-metadata", 2
    for place in SENT + MADE:
        yield CreateAs, place, 1
    for place in ["sql-commit", "sql-committed", "answer"]:
        yield Drop, place, 1


@pytest.mark.parametrize("kind, place, times", [pytest.param(*k, id=f"{k[0].__name__}-{k[1]}-{k[2]}") for k in kills()])
def test_a_change_that_is_killed_is_made_or_not(lake, table, kind, place, times):
    change = kind()
    ours, made = killed_at(lake, table, change, place, times)
    check(lake, table, change, ours, made)


@pytest.mark.parametrize(
    "place", ["create-metadata", "created-metadata", "swap", "sql-commit", "sql-committed", "swapped", "answer"]
)
def test_a_change_of_properties_that_is_killed_is_made_or_not(lake, table, place):
    with_base(lake, table, "TBLPROPERTIES ('format-version' = '1')")
    alter = f"ALTER TABLE shop.{table} SET TBLPROPERTIES ('a' = 'b', 'format-version' = '2')"

    def theirs():
        loaded = lake.pyiceberg.load_table(f"shop.{table}")
        return loaded.format_version, loaded.properties.get("a")

    asked = lake.stopped_at(place, lambda: lake.run(alter))
    then = (2, "b") if place in MADE else (1, None)
    assert theirs() == then
    killed(lake, table, asked)
    assert theirs() == then
    same(lake, table, BASE)
    lake.run(alter)
    assert theirs() == (2, "b")
    assert lake.run(f"INSERT INTO shop.{table} VALUES (99, 'later')") == 1
    same(lake, table, [*BASE, LATER])
    lake.fsck(table)


@pytest.mark.parametrize("kind", [Insert, Partitions, Append, Create, CreateAs, Drop])
def test_a_change_that_was_answered_stays(lake, table, kind):
    change = kind()
    ours, _ = killed_after(lake, table, change)
    check(lake, table, change, ours, made=True)


@pytest.mark.parametrize("place", AGAIN + MADE_AGAIN)
def test_a_change_that_came_second_is_made_or_not(lake, table, place):
    """pyiceberg commits first; the second attempt, or the clean-up after it, is killed."""
    change = Append()
    ours = killed_again(lake, table, change, place)
    check(lake, table, change, ours, made=place in MADE_AGAIN)


@pytest.mark.parametrize(
    "place", ["close-journal", "journal-closed", "delete-data", "delete-metadata", "delete-manifest", "delete-manifestlist", "answer"]
)
def test_a_change_that_was_refused_is_not_made(lake, table, place):
    """pyiceberg commits first, and there is no second attempt: what the first one wrote goes, also half way."""
    change = AppendOnce()
    ours = killed_again(lake, table, change, place)
    assert ours
    check(lake, table, change, ours, made=False)


@pytest.mark.parametrize(
    "place, by, again",
    [("swap", "insert", again) for again in ["settle", "sql-commit", "sql-committed", "settled", "close-journal", "journal-closed"]]
    + [("sql-committed", "status", again) for again in ["settle", "sql-commit", "close-journal", "journal-closed"]],
)
def test_finding_out_may_be_killed_too(lake, table, place, by, again):
    change = Append()
    ours, made = killed_at(lake, table, change, place)
    looks = {
        "status": lambda: lake.status(commit_id=ours[0]),
        "insert": lambda: lake.run(f"INSERT INTO shop.{table} VALUES (50, 'lost')"),
    }
    killed(lake, table, lake.stopped_at(again, looks[by]))
    check(lake, table, change, ours, made)


def test_a_line_of_the_journal_that_was_cut_is_a_commit_that_was_not_sent(lake, table):
    change = Append()

    def cut():
        with lake.journal_file().open("r+b") as journal:
            journal.truncate(lake.journal_file().stat().st_size - 20)

    ours, _ = killed_at(lake, table, change, "journal-open", meanwhile=cut)
    assert ours == [f"key:{change.key(table)}"]
    check(lake, table, change, [], made=False)


@pytest.mark.parametrize("place", ["journal-open", "sql-committed"])
@pytest.mark.parametrize("kind", [Append, CreateAs])
def test_another_table_may_take_the_name_of_one_whose_commit_is_open(lake, table, kind, place):
    """Nobody asks for the commit before its table has gone: the next one under its name is not held up."""
    (commit_id,), made = killed_at(lake, table, kind(), place)
    lake.run(f"DROP TABLE IF EXISTS shop.{table}")
    with_base(lake, table)
    same(lake, table, BASE)
    state, _ = lake.status(commit_id=commit_id)
    assert state == ("COMMITTED" if made else "NOT_COMMITTED")


def test_another_writer_may_replace_the_table_of_an_open_commit(lake, table):
    (commit_id,), _ = killed_at(lake, table, Append(), "sql-committed")
    lake.pyiceberg.drop_table(f"shop.{table}")
    lake.pyiceberg.create_table(f"shop.{table}", SCHEMA)
    assert lake.run(f"INSERT INTO shop.{table} VALUES (1, 'base')") == 1
    same(lake, table, BASE)
    # The table that could tell is gone.
    assert lake.status(commit_id=commit_id) == ("UNKNOWN", None)
