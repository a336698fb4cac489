"""A change is sent, the server is killed at a place of the code and started again; then what must hold.

What was acknowledged is there once, the change is there as a whole or not at all, CommitStatus says which, pyiceberg
reads the same rows, no file that is named is missing, and the table takes further rows. Every test's table is its
own, the warehouse is one.

A change has the rows `before` and `after` it in order (`None` where there is no table), makes its table with
`prepare`, and `send` gives the rows that the answer says were changed.
"""

import pyarrow as pa
import pytest

from crashing import SCHEMA, Lake

LATER = (99, "later")
THEIRS = (7, "theirs")

# Places in the order in which a change comes by, from its first manifest to the last one before others see it.
MANIFESTS = ["create-manifest", "created-manifest"]
LISTS = ["create-manifestlist", "created-manifestlist", "create-metadata", "created-metadata"]
SENT = ["open-journal", "journal-open", "swap", "sql-commit"]
# From here on it is made.
MADE = ["sql-committed", "swapped", "close-journal", "journal-closed", "answer"]

# The second attempt of a change that another one came before; from the second list on it is made.
AGAIN = ["created-manifestlist", "created-metadata", "journal-open", "sql-commit"]
MADE_AGAIN = ["sql-committed", "journal-closed", "delete-metadata", "delete-manifestlist", "answer"]


@pytest.fixture(scope="module", name="lake")
def lake_fixture(start_server, tmp_path_factory):
    made = Lake(start_server, tmp_path_factory.mktemp("crashes"))
    yield made
    made.clear()


@pytest.fixture(name="table")
def table_fixture(lake):
    """A table's name, and a server that runs and is stopped nowhere."""
    lake.clear()
    if lake.server.process.poll() is not None:
        lake.start()
    return lake.new_name()


class Keyed:
    """A change under an idempotency key; `put` gives rows and snapshot of the answer."""

    def key(self, table):
        return f"key of {table}"

    def send(self, lake, table):
        return self.put(lake, table)[0]


def killed_at(lake, table, change, place, times=1, meanwhile=lambda: None):
    """Kills the server at a place of the change: the ids of its commit, and whether it is made."""
    change.prepare(lake, table)
    known = lake.journalled(table)
    asked = lake.stopped_at(place, lambda: change.send(lake, table), times)
    made = place in MADE
    # Another process sees what will be true afterwards.
    equal("pyiceberg's rows before the kill", lake.theirs(table), change.after if made else change.before)
    return killed(lake, table, asked, known, meanwhile), made


def killed_again(lake, table, change, place):
    """pyiceberg commits first, and the server is killed in what it does thereupon: the ids of the change's commit."""
    change.prepare(lake, table)
    known = lake.journalled(table)
    asked = lake.stopped_at("swap", lambda: change.send(lake, table))
    row = dict(zip(SCHEMA.names, THEIRS, strict=True))
    lake.pyiceberg.load_table(f"shop.{table}").append(pa.Table.from_pylist([row], schema=SCHEMA))
    change.before, change.after = in_order([*change.before, THEIRS]), in_order([*change.after, THEIRS])
    lake.stop_at(place)
    lake.go_on("swap")
    lake.wait_for(place, asked)
    return killed(lake, table, asked, known)


def killed_after(lake, table, change):
    """Kills the server that has answered: the ids of the change's commit, and the rows that the answer says."""
    change.prepare(lake, table)
    known = lake.journalled(table)
    rows = change.send(lake, table)
    return killed(lake, table, None, known), rows


def killed(lake, table, asked=None, known=(), meanwhile=lambda: None):
    """Kills the server and starts it; the ids of the table's commits that were sent since `known`."""
    lake.kill()
    ours = [commit_id for commit_id in lake.journalled(table) if commit_id not in known]
    meanwhile()
    lake.start()
    assert asked is None or asked.end() is not None, "a server that was killed has answered"
    return ours


def check(lake, table, change, ours, made):
    """What must hold after a restart, whatever was killed. `ours` are the ids of the change's commit, if it has any."""
    told = [lake.status(commit_id=commit_id) for commit_id in ours]
    equal("states", [state for state, _ in told], ["COMMITTED" if made else "NOT_COMMITTED"] * len(ours))
    rows = change.after if made else change.before
    same(lake, table, rows)
    if made and ours:
        equal("the last snapshot", lake.snapshots(table)[-1], (ours[0], told[0][1]))
    if isinstance(change, Keyed):
        retry_under_the_key(lake, table, change, told)
        rows = change.after
    elif change.before is None and not made:
        change.send(lake, table)
        same(lake, table, change.after)
        rows = change.after
    if rows is not None:
        equal("rows inserted", lake.run(f"INSERT INTO shop.{table} VALUES (99, 'later')"), 1)
        same(lake, table, [*rows, LATER])
        lake.fsck(table)
    if not isinstance(change, Keyed):
        equal("what CommitStatus says later", [lake.status(commit_id=commit_id) for commit_id in ours], told)


def retry_under_the_key(lake, table, change, told):
    """The same request again: the change is made once, whatever became of the first."""
    key = change.key(table)
    # Nothing is known of a key whose commit was never sent.
    equal("the state of the key", lake.status(key=key), told[0] if told else ("UNKNOWN", None))
    rows, snapshot = change.put(lake, table)
    equal("rows of the retry", rows, abs(len(change.after) - len(change.before)))
    same(lake, table, change.after)
    equal("the state of the key after the retry", lake.status(key=key), ("COMMITTED", snapshot))
    under_the_key = [s for s in lake.snapshots(table) if s[0] == f"key:{key}"]
    equal("snapshots under the key", under_the_key, [(f"key:{key}", snapshot)])


def same(lake, table, rows):
    """The server and pyiceberg have exactly these rows."""
    equal("the server's rows", lake.rows(table), rows)
    equal("pyiceberg's rows", lake.theirs(table), rows)


def in_order(rows):
    return sorted(rows, key=lambda row: row[0])


def equal(what, found, expected):
    """pytest tells the values of an assertion in test files only."""
    assert found == expected, f"{what}: {found}, not {expected}"
