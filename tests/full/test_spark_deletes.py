"""Spark and the server delete from the same tables in turns, by one SQLite catalog.

After each turn both read exactly the rows that are left and, of version 3, the same ids of these rows; `fsck` finds
nothing after each statement.
"""

import pytest

import delete_turns
from beside import Beside
from delete_turns import FIRST_TURN, PART, PARTITIONS, SECOND_TURN, SPARKS_TURN, Turns, where

MODES = {"mor": "merge-on-read", "cow": "copy-on-write"}
CELLS = [(version, mode, shape) for version in (2, 3) for mode in MODES for shape in PARTITIONS]


@pytest.fixture(scope="module")
def writing(spark, start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("deletes") / "warehouse"
    opened = Beside(start_server(["--warehouse", str(warehouse)]), warehouse, spark)
    delete_turns.keys_table(opened)
    yield opened
    opened.close()


def turns_of(writing, cell, who):
    version, mode, shape = cell
    return Turns(writing, f"{who}_{shape}_{mode}_v{version}", version, MODES.get(mode), shape)


def name_of(cell):
    return "-".join(map(str, cell))


@pytest.mark.parametrize("cell", CELLS, ids=name_of)
def test_a_table_of_the_server(writing, cell):
    turns = turns_of(writing, cell, "ours")
    turns.create()
    # Spark goes by these alone; the server's own mode is the table's.
    turns.set("write.delete.mode", turns.mode)
    for part in range(3):
        turns.insert(PART * part)
    turns.check_rows()
    for number, condition in enumerate(FIRST_TURN, 1):
        turns.delete(condition)
        if number % 6 == 0:
            turns.check_rows()
    in_turns(turns)


@pytest.mark.parametrize("cell", CELLS + [(2, "mor-by-partition", "bucket"), (2, "undeclared", "day"), (3, "undeclared", "day")], ids=name_of)
def test_a_table_of_spark(writing, cell):
    version, mode, shape = cell
    name = f"sparks_{shape}_{mode.replace('-', '_')}_v{version}"
    more = {}
    if mode == "mor-by-partition":
        mode, more = "mor", {"write__delete__granularity": "partition"}
    elif mode == "mor":
        more = {"write__delete__granularity": "file"}
    turns = Turns(writing, name, version, MODES.get(mode), shape)
    turns.create_by_spark(**more)
    for part in range(3):
        turns.insert_by_spark(PART * part)
    for condition in SPARKS_TURN:
        turns.delete_by_spark(condition)
    turns.check_rows()
    for condition in FIRST_TURN:
        turns.delete(condition)
    turns.check_rows()
    in_turns(turns)


def in_turns(turns):
    """Spark deletes, then the server, then Spark; then all goes, and there are new rows."""
    for condition in SPARKS_TURN:
        turns.delete_by_spark(condition)
    turns.check_files()
    turns.check_rows()
    for condition in SECOND_TURN:
        turns.delete(condition)
    turns.check_rows()
    assert turns.rows
    # A file of each kind with deletes of both is deleted from once more by each.
    turns.delete_by_spark(where("id % 5 = 0", lambda n, *_: n % 5 == 0))
    turns.delete(where("id % 5 = 1", lambda n, *_: n % 5 == 1))
    turns.check_rows()
    turns.truncate()
    turns.insert(1000, 40)
    turns.delete(where("id % 2 = 0", lambda n, *_: n % 2 == 0))
    turns.delete_by_spark(where("id % 3 = 0", lambda n, *_: n % 3 == 0))
    turns.check_rows()
