"""Spark and the server delete from the same tables in turns, by one SQLite catalog.

After each turn both read exactly the rows that are left and, of version 3, the same ids of these rows; `fsck` finds
nothing after each statement.
"""

import pytest

import delete_turns
from beside import Beside
from delete_checks import live_files, vectors
from delete_turns import FIRST_TURN, PART, SECOND_TURN, SPARKS_TURN, Turns, where

SHAPES = {"unpartitioned": "", "bucket": "bucket(3, id)", "day": "days(ts)"}
MERGE = {"write.delete.mode": "merge-on-read"}
MODES = {
    "mor": MERGE,
    "by-file": MERGE | {"write.delete.granularity": "file"},
    "by-partition": MERGE | {"write.delete.granularity": "partition"},
    "cow": {"write.delete.mode": "copy-on-write"},
    # Spark writes files anew then, the server does not.
    "undeclared": {},
}
OURS = [(2, "mor", "unpartitioned"), (2, "by-file", "bucket"), (2, "by-partition", "day"), (2, "cow", "day")]
OURS += [(3, "mor", "unpartitioned"), (3, "mor", "bucket"), (3, "mor", "day"), (3, "cow", "unpartitioned"), (3, "cow", "bucket")]
SPARKS = [(2, "by-partition", "unpartitioned"), (2, "by-partition", "bucket"), (2, "by-file", "day"), (2, "cow", "bucket")]
SPARKS += [(3, "mor", "unpartitioned"), (3, "mor", "bucket"), (3, "mor", "day"), (3, "cow", "day")]
SPARKS += [(2, "undeclared", "day"), (3, "undeclared", "bucket")]


@pytest.fixture(scope="module")
def writing(spark, start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("deletes") / "warehouse"
    opened = Beside(start_server(["--warehouse", str(warehouse)]), warehouse, spark)
    delete_turns.make_sources(opened)
    yield opened
    opened.close()


def turns_of(writing, cell, who):
    version, mode, shape = cell
    return Turns(writing, f"{who}_{shape}_{mode.replace('-', '_')}_v{version}", version, SHAPES[shape], MODES[mode])


def name_of(cell):
    version, mode, shape = cell
    return f"v{version}-{mode}-{shape}"


@pytest.mark.parametrize("cell", OURS, ids=name_of)
def test_a_table_of_the_server(writing, cell):
    turns = turns_of(writing, cell, "ours")
    turns.create()
    for part in range(3):
        turns.insert(PART * part)
    for number, condition in enumerate(FIRST_TURN, 1):
        turns.delete(condition)
        if number % 6 == 0:
            turns.check_rows()
    in_turns(turns)


@pytest.mark.parametrize("cell", SPARKS, ids=name_of)
def test_a_table_of_spark(writing, cell):
    turns = turns_of(writing, cell, "sparks")
    turns.create_by_spark()
    for part in range(3):
        turns.insert_by_spark(PART * part)
    for condition in SPARKS_TURN:
        turns.delete_by_spark(condition)
    turns.check_rows()
    for condition in FIRST_TURN:
        turns.delete(condition)
    in_turns(turns)


def in_turns(turns):
    """Spark deletes, then the server, then Spark; then all goes, and there are new rows."""
    for condition in SPARKS_TURN:
        turns.delete_by_spark(condition)
    turns.check_files()
    if turns.properties.get("write.delete.mode") == "merge-on-read":
        assert live_files(turns.table())[1]
    turns.check_rows()
    for condition in SECOND_TURN:
        turns.delete(condition)
    turns.check_rows()
    assert turns.rows
    turns.delete_by_spark(where("id % 5 = 0", lambda n, *_: n % 5 == 0))
    turns.delete(where("id % 5 = 1", lambda n, *_: n % 5 == 1))
    turns.check_rows()
    turns.truncate()
    turns.insert(1000, 40)
    turns.delete(where("id % 2 = 0", lambda n, *_: n % 2 == 0))
    turns.delete_by_spark(where("id % 3 = 0", lambda n, *_: n % 3 == 0))
    turns.check_rows()


@pytest.mark.parametrize("by_spark", [False, True], ids=["by-the-server", "by-spark"])
def test_an_upgraded_table(writing, by_spark):
    """From version 1 to 3, with deletes of each version; rows keep their ids from the first commit of version 3 on."""
    turns = Turns(writing, f"upgraded_{by_spark}", 1, SHAPES["bucket"], {})
    turns.create()
    for part in range(3):
        turns.insert(PART * part)
    for condition in FIRST_TURN[:4]:
        turns.delete(condition)
    turns.check_rows()
    turns.upgrade(2, by_spark)
    turns.set("write.delete.mode", "merge-on-read", by_spark)
    for condition in FIRST_TURN[4:7]:
        turns.delete(condition)
    turns.delete_by_spark(SPARKS_TURN[0])
    assert live_files(turns.table())[1]
    turns.check_rows()
    turns.upgrade(3, by_spark)
    turns.check_rows()
    turns.insert(1000, 20)
    turns.check_rows()
    assert turns.row_ids.keys() == turns.rows.keys()
    for condition in FIRST_TURN[7:10]:
        turns.delete(condition)
    turns.check_rows()
    for condition in SPARKS_TURN[1:]:
        turns.delete_by_spark(condition)
    turns.delete(where("id % 10 < 3", lambda n, *_: n % 10 < 3))
    table = turns.table()
    assert vectors(table).keys() == {path for path, _ in live_files(table)[0]}
    turns.check_rows()
    turns.set("write.delete.mode", "copy-on-write", by_spark)
    before, _ = live_files(turns.table())
    turns.delete(where("id % 10 = 4", lambda n, *_: n % 10 == 4))
    data, deletes = live_files(turns.table())
    # Deletes stay only of files that stay, which had no such row.
    assert before.keys() - data.keys() and {(path, None) for path in vectors(turns.table())} <= before.keys() & data.keys()
    counts = [sum(file["record_count"] for file in files.values()) for files in (data, deletes)]
    assert counts[0] - counts[1] == len(turns.rows)
    turns.check_rows()
    turns.delete_by_spark(where("id % 10 = 7", lambda n, *_: n % 10 == 7))
    turns.check_rows()


@pytest.mark.parametrize("version", [2, 3])
def test_spark_compacts_what_the_server_deleted_from(writing, version):
    """Files are written anew without what was deleted; older snapshots have the rows that they had."""
    turns = Turns(writing, f"compacted_v{version}", version, SHAPES["bucket"], MERGE)
    turns.create()
    had = {}
    for part in range(2):
        turns.insert(PART * part)
    for condition in FIRST_TURN[:4]:
        had[turns.table().current_snapshot().snapshot_id] = sorted(turns.rows)
        turns.delete(condition)
    if version == 2:
        turns.call("rewrite_position_delete_files", "'rewrite-all', 'true'")
        turns.check_rows()
        turns.delete(FIRST_TURN[4])
    turns.call("rewrite_data_files", "'rewrite-all', 'true'")
    turns.check_rows()
    for condition in SECOND_TURN[:2]:
        turns.delete(condition)
    turns.check_rows()
    for snapshot, ids in had.items():
        ours = writing.table(f"SELECT id FROM s.{turns.name} FOR VERSION AS OF {snapshot}")
        sparks = writing.spark_table(f"SELECT id FROM iceberg.s.{turns.name} VERSION AS OF {snapshot}")
        assert sorted(ours["id"].to_pylist()) == sorted(sparks["id"].to_pylist()) == ids
