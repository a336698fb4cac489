"""kill -9 before and after every step of a commit (reliability-security.md 4.3, steps 1 to 7; INV-1 to INV-5).

The server is stopped at a place, killed there, and started again. Then: what was acknowledged is there once, the
change is there as a whole or not at all, CommitStatus says which, pyiceberg reads the same rows, no file that is
named is missing, and the table takes further rows. Every test's table is its own, the warehouse is one.
"""

import pyarrow as pa
import pytest

from crashing import SCHEMA, Asked, Lake

# A cursor whose server is gone cannot be closed, which the driver finds worth a warning.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BASE = [(1, "base")]
LATER = (99, "later")

# Places in the order in which an INSERT comes by, up to the last one before others see it.
FILES = ["part-data", "finish-data", "finished-data", "create-manifest", "created-manifest"]
LISTS = ["create-manifestlist", "created-manifestlist", "create-metadata", "created-metadata"]
SENT = ["open-journal", "journal-open", "swap", "sql-commit"]
# From here on it is made.
MADE = ["sql-committed", "swapped", "close-journal", "journal-closed", "answer"]


@pytest.fixture(scope="module")
def lake(start_server, tmp_path_factory):
    made = Lake(start_server, tmp_path_factory.mktemp("crashes"))
    yield made
    made.clear()


@pytest.fixture
def table(lake):
    """A table's name, and a server that runs and is stopped nowhere."""
    lake.clear()
    if lake.server.process.poll() is not None:
        lake.start()
    return lake.new_name()


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


class Append(Insert):
    """Rows by DoPut with an idempotency key."""

    def key(self, table):
        return f"key of {table}"

    def send(self, lake, table):
        return lake.append(table, self.new, self.key(table))[0]


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
    change.prepare(lake, table)
    known = lake.journalled(table)
    lake.stop_at(place, times)
    asked = Asked(lambda: change.send(lake, table))
    lake.wait_for(place, asked)
    # Another process sees what will be true afterwards.
    made = place in MADE
    assert lake.theirs(table) == (change.after if made else change.before)
    ours = killed(lake, table, known)
    assert asked.end() is not None
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

    lake.stop_at(place)
    asked = Asked(lambda: lake.run(alter))
    lake.wait_for(place, asked)
    known = (2, "b") if place in MADE else (1, None)
    assert theirs() == known
    killed(lake, table, lake.journalled(table))
    assert asked.end() is not None
    assert theirs() == known
    same(lake, table, BASE)
    lake.run(alter)
    assert theirs() == (2, "b")
    assert lake.run(f"INSERT INTO shop.{table} VALUES (99, 'later')") == 1
    same(lake, table, [*BASE, LATER])
    lake.fsck(table)


@pytest.mark.parametrize("kind", [Insert, Partitions, Append, Create, CreateAs, Drop])
def test_a_change_that_was_answered_stays(lake, table, kind):
    change = kind()
    change.prepare(lake, table)
    known = lake.journalled(table)
    change.send(lake, table)
    check(lake, table, change, killed(lake, table, known), made=True)


@pytest.mark.parametrize(
    "place",
    ["created-manifestlist", "created-metadata", "journal-open", "sql-commit"]
    + ["sql-committed", "journal-closed", "delete-metadata", "delete-manifestlist", "answer"],
)
def test_a_change_that_came_second_is_made_or_not(lake, table, place):
    """pyiceberg commits first; the second attempt, or the clean-up after it, is killed."""
    change = Append()
    change.prepare(lake, table)
    known = lake.journalled(table)
    asked = second(lake, table, change, place)
    made = place in [*MADE, "delete-metadata", "delete-manifestlist"]
    ours = killed(lake, table, known)
    assert asked.end() is not None
    check(lake, table, change, ours, made)


@pytest.mark.parametrize(
    "place", ["close-journal", "journal-closed", "delete-data", "delete-metadata", "delete-manifest", "delete-manifestlist", "answer"]
)
def test_a_change_that_was_refused_is_not_made(lake, table, place):
    """pyiceberg commits first, and there is no second attempt: what the first one wrote goes, also half way."""
    change = Append()
    with_base(lake, table, "TBLPROPERTIES ('commit.retry.num-retries' = '0')")
    known = lake.journalled(table)
    asked = second(lake, table, change, place)
    ours = killed(lake, table, known)
    assert asked.end() is not None
    assert ours
    check(lake, table, change, ours, made=False)


@pytest.mark.parametrize(
    "place, by, again",
    [("swap", "insert", again) for again in ["settle", "sql-commit", "sql-committed", "settled", "close-journal", "journal-closed"]]
    + [("sql-committed", "status", again) for again in ["settle", "sql-commit", "close-journal", "journal-closed"]],
)
def test_finding_out_may_be_killed_too(lake, table, place, by, again):
    change = Append()
    change.prepare(lake, table)
    known = lake.journalled(table)
    lake.stop_at(place)
    asked = Asked(lambda: change.send(lake, table))
    lake.wait_for(place, asked)
    ours = killed(lake, table, known)
    lake.stop_at(again)
    looks = {
        "status": lambda: lake.status(commit_id=ours[0]),
        "insert": lambda: lake.run(f"INSERT INTO shop.{table} VALUES (50, 'lost')"),
    }
    asked = Asked(looks[by])
    lake.wait_for(again, asked)
    lake.restart()
    assert asked.end() is not None
    check(lake, table, change, ours, place in MADE)


def test_a_line_of_the_journal_that_was_cut_is_a_commit_that_was_not_sent(lake, table):
    change = Append()
    change.prepare(lake, table)
    known = lake.journalled(table)
    lake.stop_at("journal-open")
    asked = Asked(lambda: change.send(lake, table))
    lake.wait_for("journal-open", asked)
    ours = killed(lake, table, known, start=False)
    assert ours == [f"key:{change.key(table)}"]
    with lake.journal_file().open("r+b") as journal:
        journal.truncate(lake.journal_file().stat().st_size - 20)
    lake.start()
    check(lake, table, change, [], made=False)


@pytest.mark.parametrize("place", ["journal-open", "sql-committed"])
@pytest.mark.parametrize("kind", [Append, CreateAs])
def test_another_table_may_take_the_name_of_one_whose_commit_is_open(lake, table, kind, place):
    """Nobody asks for the commit before its table has gone: the next one under its name is not held up."""
    change = kind()
    change.prepare(lake, table)
    known = lake.journalled(table)
    lake.stop_at(place)
    asked = Asked(lambda: change.send(lake, table))
    lake.wait_for(place, asked)
    (commit_id,) = killed(lake, table, known)
    made = place in MADE
    lake.run(f"DROP TABLE IF EXISTS shop.{table}")
    with_base(lake, table)
    same(lake, table, BASE)
    state, _ = lake.status(commit_id=commit_id)
    assert state == ("COMMITTED" if made else "NOT_COMMITTED")


def test_another_writer_may_replace_the_table_of_an_open_commit(lake, table):
    change = Append()
    change.prepare(lake, table)
    known = lake.journalled(table)
    lake.stop_at("sql-committed")
    asked = Asked(lambda: change.send(lake, table))
    lake.wait_for("sql-committed", asked)
    (commit_id,) = killed(lake, table, known)
    lake.pyiceberg.drop_table(f"shop.{table}")
    lake.pyiceberg.create_table(f"shop.{table}", SCHEMA)
    assert lake.run(f"INSERT INTO shop.{table} VALUES (1, 'base')") == 1
    same(lake, table, BASE)
    # The table that could tell is gone.
    assert lake.status(commit_id=commit_id) == ("UNKNOWN", None)


def second(lake, table, change, place):
    """Sends the change, lets pyiceberg come first, and waits until the server stands at the place."""
    lake.stop_at("swap")
    asked = Asked(lambda: change.send(lake, table))
    lake.wait_for("swap", asked)
    theirs = lake.pyiceberg.load_table(f"shop.{table}")
    theirs.append(pa.Table.from_pylist([{"id": 5, "name": "theirs"}], schema=SCHEMA))
    change.before, change.after = [*BASE, (5, "theirs")], [*BASE, (5, "theirs"), *change.new]
    lake.stop_at(place)
    lake.go_on("swap")
    lake.wait_for(place, asked)
    return asked


def killed(lake, table, known, start=True):
    """Kills the server; the ids of the table's commits that were sent since `known`."""
    lake.kill()
    ours = [commit_id for commit_id in lake.journalled(table) if commit_id not in known]
    if start:
        lake.start()
    return ours


def check(lake, table, change, ours, made):
    """What must hold after a restart, whatever was killed. `ours` are the ids of the change's commit, if it has any."""
    told = [lake.status(commit_id=commit_id) for commit_id in ours]
    assert [state for state, _ in told] == ["COMMITTED" if made else "NOT_COMMITTED"] * len(ours)
    same(lake, table, change.after if made else change.before)
    if made and ours:
        assert lake.snapshots(table)[-1] == (ours[0], told[0][1])
    if isinstance(change, Append):
        retry_under_the_key(lake, table, change, told)
    elif change.before is None and not made:
        change.send(lake, table)
        same(lake, table, change.after)
    rows = lake.rows(table)
    if rows is not None:
        assert lake.run(f"INSERT INTO shop.{table} VALUES (99, 'later')") == 1
        same(lake, table, [*rows, LATER])
        lake.fsck(table)
    if not isinstance(change, Append):
        assert [lake.status(commit_id=commit_id) for commit_id in ours] == told


def retry_under_the_key(lake, table, change, told):
    """The same request again: the rows are there once, whatever became of the first."""
    key = change.key(table)
    # Nothing is known of a key whose commit was never sent.
    assert lake.status(key=key) == (told[0] if told else ("UNKNOWN", None))
    rows, snapshot = lake.append(table, change.new, key)
    assert rows == len(change.new)
    same(lake, table, change.after)
    assert lake.status(key=key) == ("COMMITTED", snapshot)
    assert [s for s in lake.snapshots(table) if s[0] == f"key:{key}"] == [(f"key:{key}", snapshot)]


def same(lake, table, rows):
    """The server and pyiceberg have exactly these rows."""
    assert lake.rows(table) == rows
    assert lake.theirs(table) == rows
