"""Changes through the stock JDBC driver, newest and an old one: each is made once, with its count and exact values."""

import datetime
import decimal
import subprocess
import uuid

import pytest

from conftest import connect
from test_jdbc import DRIVERS, PROJECT, version
from test_writes import rows

UTC = datetime.timezone.utc

# Drivers leak the values that they refuse themselves, and say so when the connection is closed.
LEAK = "Memory was leaked by query"


@pytest.fixture(params=DRIVERS, ids=version)
def changes(request, start_server, tmp_path):
    """`changes(group)` runs one group of checks and returns what it printed and what failed."""
    server = start_server(["--warehouse", str(tmp_path / "warehouse")])

    def run(group, zone="UTC"):
        if group != "statements":
            with connect(server) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE SCHEMA IF NOT EXISTS jdbc")
        url = f"jdbc:arrow-flight-sql://127.0.0.1:{server.port}/?useEncryption=false"
        java = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", f"-Duser.timezone={zone}", "-cp", request.param]
        done = subprocess.run(
            [*java, str(PROJECT / "clients/java/Changes.java"), url, group],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        assert lines, done.stderr[-2000:]
        failures = ["\t".join(line[1:]) for line in lines if line[0] == "FAIL"]
        return {line[0]: line[1] for line in lines if line[0] != "FAIL"}, failures

    run.server = server
    return run


def snapshots(changes, table):
    return rows(changes.server, f"SELECT count(*) FROM jdbc.{table}.snapshots")[0][0]


def test_statements_are_made_once_and_tell_their_counts(changes):
    found, failures = changes("statements")
    assert failures == []
    # A tool that is told that all is read-only sends no change.
    assert found["is read-only"] == "false"
    assert found["create schema"] == found["create table"] == found["drop table"] == "0"
    assert found["insert"] == found["insert of a query"] == "2"
    assert found["insert of nothing"] == "0"
    assert found["large insert"] == "1"
    assert found["create table as"] == "5"
    # No result, the count, and nothing after it.
    assert found["execute insert"] == "false 3 none, then false -1"
    assert found["execute create"] == found["execute drop"] == "false 0 none, then false -1"
    assert found["execute select"] == "true -1 8"
    assert found["make and drop a schema"] == "0"
    # The driver complains when the change is made already; it sends it once.
    assert found["query that inserts"].startswith("threw java.sql.SQLException: Statement did not return a result set")
    assert found["insert that fails"].startswith("threw java.sql.SQLException") and "required" in found["insert that fails"]
    # The drivers have no batches of statements: they fail before they send anything.
    assert found["batch of statements"].startswith("threw java.lang.NullPointerException")
    assert rows(changes.server, "SELECT id, name FROM jdbc.t ORDER BY id") == [
        (1, "a"),
        (2, None),
        (11, "a"),
        (12, None),
        (20, "l"),
        (30, "e"),
        (31, "e"),
        (32, "e"),
        (40, "q"),
    ]
    assert snapshots(changes, "t") == 5
    assert rows(changes.server, "SHOW SCHEMAS LIKE 'gone'") == []


MOMENT = datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)
# Column of `jdbc.types`, in order, with what its setter and `setObject` give it.
VALUES = {
    "flag": (True, False),
    "i": (-7, 8),
    "l": (-(2**63), 9),
    "f": (1.5, 2.5),
    "d": (0.1, 0.2),
    "n": (decimal.Decimal("-12.500"), decimal.Decimal("3.125")),
    "s": ("h\u00e9 '\"; \U0001f600", "o"),
    "y": (b"\x00\xffA", b"\x09"),
    "x": (b"\x01\x02\x03", b"\x04\x05\x06"),
    "day": (datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)),
    "tm": (datetime.time(23, 59, 58), datetime.time(0, 0, 1)),
    "ts": (MOMENT, MOMENT),
    "tz": (MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC)),
    "u": ("f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-4000-8000-000000000001"),
}


def test_bound_values_of_each_type_arrive_as_they_are(changes):
    found, failures = changes("values")
    assert failures == []
    for column in VALUES:
        assert (found[f"set {column}"], found[f"null {column}"], found[f"object {column}"]) == ("1", "1", "1")
    assert found["all at once"] == "15 1"
    for column, (by_setter, by_object) in VALUES.items():
        got = dict(rows(changes.server, f"SELECT kind, {column} FROM jdbc.types WHERE {column} IS NOT NULL"))
        wanted = {"set": by_setter, "object": by_object, "all": by_setter}
        if column == "u":
            wanted = {kind: uuid.UUID(value) for kind, value in wanted.items()}
        assert got == wanted, column
    assert rows(changes.server, "SELECT kind, count(*) FROM jdbc.types GROUP BY kind ORDER BY kind") == [
        ("all", 1),
        ("null", 14),
        ("object", 14),
        ("set", 14),
    ]
    assert snapshots(changes, "types") == 43


def test_moments_of_a_program_in_another_zone(changes):
    found, failures = changes("zones", "America/Vancouver")
    assert failures == []
    assert (found["plain"], found["with a calendar"]) == ("1", "1")
    stored = {kind: (ts, tz) for kind, ts, tz in rows(changes.server, "SELECT kind, ts, tz FROM jdbc.z")}
    assert stored["calendar"] == (MOMENT, MOMENT.replace(tzinfo=UTC))
    # What the clock on the wall shows. The drivers send that for a column with a zone too, eight hours before the moment,
    # and no server can tell; with a calendar they do not.
    wall = MOMENT - datetime.timedelta(hours=8)
    assert stored["plain"] == (wall, wall.replace(tzinfo=UTC))


def test_a_prepared_change_is_made_once_for_each_call(changes):
    found, failures = changes("prepared")
    assert failures == []
    assert found["again with other values"] == "1 1 1 "
    assert found["two at once"] == "1 1"
    assert found["without values"] == "2"
    assert found["a query's condition"] == "1"
    assert found["a null that must not be"].startswith("threw java.sql.SQLException: a required column is null")
    assert found["after an error"] == "1"
    assert found["made by prepared statements"] == "1"
    # Both drivers take what was prepared for a query, whatever they were told, and have no count for it then.
    assert found["execute"] == "true -1"
    assert found["query that inserts"] == "a result"
    assert rows(changes.server, "SELECT id, name FROM jdbc.p ORDER BY id") == [
        (1, "n1"),
        (2, "n2"),
        (3, "n3"),
        (10, None),
        (20, "one"),
        (21, "two"),
        (30, "q"),
        (50, "after"),
        (101, "n1"),
        (102, "n2"),
        (203, "n3"),
    ]
    assert snapshots(changes, "p") == 10


def test_a_batch_is_one_commit(changes):
    found, failures = changes("batches")
    assert failures == []
    # The drivers send a batch in one call and pass its one answer on.
    assert found["three"] == "[3]"
    assert found["again"] == "[2][2]"
    assert found["many"] == "1 10000"
    assert found["one that fails"].startswith("threw ") and "required" in found["one that fails"]
    assert rows(changes.server, "SELECT id, name FROM jdbc.b WHERE id < 1000 ORDER BY id") == [
        (1, "b1"),
        (2, None),
        (3, "b3"),
        (11, "again"),
        (12, "again"),
        (21, "again"),
        (22, "again"),
    ]
    assert rows(changes.server, "SELECT count(*), min(id), max(id), count(DISTINCT id) FROM jdbc.b WHERE id > 999") == [
        (10_000, 1000, 10_999, 10_000)
    ]
    assert snapshots(changes, "b") == 4


def test_what_the_drivers_refuse_is_not_sent(changes):
    found, failures = changes("refused")
    assert [failure for failure in failures if LEAK not in failure] == []
    for name in ("text for a number", "another scale", "a value is missing"):
        assert found[name].startswith("threw java.sql.SQLException"), name
    assert "scale must equal" in found["another scale"]
    assert snapshots(changes, "r") == 0
