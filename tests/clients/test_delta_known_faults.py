"""Faults that other systems had when they read Delta tables, each retold as a small case: vectors, logs, versions, counts.

Each docstring begins with the number of the report. Tables are written by hand, and what they must give can be
seen from the test. Every question is asked with pruning and without.
"""

import datetime
import json
import os
import shutil

import pyarrow as pa
import pytest

from conftest import connect
from delta_tables import VECTORS, DeltaTable, by_path, column, inline, mapped, removed, with_vector
from pruned_and_not import Both, in_order
from row_checks import read

ID = [column("id", "long")]
DELETES = {"delta.enableDeletionVectors": "true"}
V2 = ("v2Checkpoint",)


@pytest.fixture(scope="module")
def both(start_server, tmp_path_factory):
    opened = Both(start_server, tmp_path_factory.mktemp("faults") / "tables")
    yield opened
    opened.close()


def ids(*numbers):
    return pa.table({"id": pa.array(numbers, pa.int64())})


def with_vectors(both, name, columns=ID, features=VECTORS, **properties):
    return both.create(name, columns, properties=DELETES | properties, features=features)


# DV


@pytest.mark.parametrize("order", [1, -1], ids=["remove_first", "add_first"])
@pytest.mark.parametrize("checkpoint", [False, True], ids=["commits", "checkpoint"])
def test_a_second_vector_replaces_the_first(both, order, checkpoint):
    """B028: the key of a file in the log is its path and its vector, whatever the order of lines."""
    name = f"second_{order}_{checkpoint}".replace("-", "minus")
    table = with_vectors(both, name)
    whole = table.append(ids(*range(10)))
    [first] = table.vectors([5])
    [second] = table.vectors([5, 9])
    once, twice = with_vector(whole, first), with_vector(whole, second)
    table.commit(*[removed(whole), once][::order])
    if checkpoint:
        table.checkpoint([removed(whole), once])
    table.commit(*[removed(once), twice][::order])
    for version, expected in [(1, range(10)), (2, [0, 1, 2, 3, 4, 6, 7, 8, 9]), (3, [0, 1, 2, 3, 4, 6, 7, 8])]:
        assert both.column(f"SELECT id FROM {{t}}.{name} FOR VERSION AS OF {version}") == sorted(expected, key=repr)
        assert both.value(f"SELECT count(*) FROM {{t}}.{name} FOR VERSION AS OF {version}") == len(expected)
    assert both.value(f"SELECT count(*) FROM {{t}}.{name}") == 8


def test_a_condition_on_the_key_gives_a_row_once_beside_a_vector(both):
    """B030: row numbers of skipped pages and row groups count; every id is asked for."""
    table = with_vectors(both, "keys")
    rows = ids(*range(120))
    path = table.write(rows, row_group_size=40, data_page_size=1, write_batch_size=5, write_page_index=True)
    table.commit(table.add_file(path, rows, vector=table.vectors([3, 41, 119])[0]))
    for number in range(120):
        assert both.column(f"SELECT id FROM {{t}}.keys WHERE id = {number}") == ([] if number in (3, 41, 119) else [number])
    assert both.value("SELECT count(*) FROM {t}.keys WHERE id > 38 AND id < 43") == 3


@pytest.mark.parametrize("kept", [[], [250], [0, 99, 100, 299]], ids=["none", "one", "ends"])
def test_rows_past_the_first_row_group_are_deleted(both, kept):
    """B001: a vector of three row groups, all of them or all but some rows. B003: a delete behind skipped groups."""
    name = f"groups_{len(kept)}"
    table = with_vectors(both, name)
    rows = ids(*range(300))
    [most, one] = table.vectors([n for n in range(300) if n not in kept], [250])
    path = table.write(rows, row_group_size=100)
    table.commit(table.add_file(path, rows, vector=most))
    assert sorted(both.column(f"SELECT id FROM {{t}}.{name}")) == kept
    assert both.value(f"SELECT count(*) FROM {{t}}.{name}") == len(kept)
    later = with_vectors(both, f"{name}_later")
    path = later.write(rows, row_group_size=100)
    later.commit(later.add_file(path, rows, vector=later.vectors([250])[0]))
    assert both.value(f"SELECT count(*) FROM {{t}}.{name}_later") == 299
    assert sorted(both.column(f"SELECT id FROM {{t}}.{name}_later WHERE id >= 200 AND id < 252")) == [*range(200, 250), 251]


def test_vectors_count_also_when_the_property_is_off(both):
    """B032: a vector in a checkpoint, then enableDeletionVectors=false."""
    table = with_vectors(both, "switched_off")
    added = table.append(ids(1, 2, 3), vector=table.vectors([1])[0])
    table.checkpoint([added])
    table.properties = {"delta.enableDeletionVectors": "false"}
    table.commit(table.metadata())
    assert both.column("SELECT id FROM {t}.switched_off") == [1, 3]
    assert both.value("SELECT count(*) FROM {t}.switched_off") == 2


@pytest.mark.parametrize("slash", ["", "/"], ids=["plain", "slash"])
def test_vectors_are_found_from_a_location_with_and_without_a_slash_at_its_end(start_server, tmp_path, slash):
    """B034: vectors by id, by id below a folder, by absolute path and in the log itself, alone and together."""
    folder = tmp_path / "some tables"
    files = DeltaTable(folder / "t", ID, properties=DELETES, features=VECTORS)
    below = files.vectors([2], prefix="ab")[0]
    files.commit(files.add(ids(0, 1, 2, 3, 4), vector=files.vectors([9], [0])[1]))
    files.commit(files.add(ids(10, 11, 12, 13), vector=below))
    files.commit(files.add(ids(20, 21, 22), vector=inline([1])))
    other = DeltaTable(folder / "u", ID, properties=DELETES, features=VECTORS)
    other.commit(other.add(ids(30, 31, 32), vector=by_path(other, other.vectors([0, 2])[0])))
    entries = "".join(f'[[catalog.c.table]]\nname = "s.{name}"\nformat = "delta"\nlocation = "{folder / name}{slash}"\n' for name in "tu")
    server = start_server([f"{folder / 't'}{slash}"], config='[catalog.c]\ntype = "tables"\n' + entries)
    with connect(server) as connection:
        for name in ("c.s.t", "files.default.t"):
            assert in_order(read(connection, f"SELECT id FROM {name}").to_pylist()) == in_order(ids(1, 2, 3, 4, 10, 11, 13, 20, 22).to_pylist())
        assert read(connection, "SELECT id FROM c.s.u").to_pylist() == [{"id": 31}]


def test_an_older_version_has_its_own_vector(both):
    """B039: 100 rows, then 50, then 30; the second version again with warm caches."""
    table = with_vectors(both, "older")
    whole = table.append(ids(*range(100)))
    half, most = table.vectors(range(50), range(70))
    table.commit(removed(whole), with_vector(whole, half))
    table.commit(removed(with_vector(whole, half)), with_vector(whole, most))
    for version, first in [(1, 0), (2, 50), (3, 70), (2, 50), (1, 0), (3, 70)]:
        assert sorted(both.column(f"SELECT id FROM {{t}}.older FOR VERSION AS OF {version}")) == list(range(first, 100))
        assert both.value(f"SELECT count(*) FROM {{t}}.older FOR VERSION AS OF {version}") == 100 - first
    assert both.value("SELECT min(id) FROM {t}.older") == 70


def test_inline_vectors_of_one_file_are_told_apart(both):
    """B039: vectors in the log have no file of their own, so only their content tells them apart in a cache."""
    table = with_vectors(both, "older_inline")
    whole = table.append(ids(*range(10)))
    table.commit(removed(whole), with_vector(whole, inline([0])))
    table.commit(removed(with_vector(whole, inline([0]))), with_vector(whole, inline([0, 9])))
    for version, last in [(2, 9), (3, 8), (2, 9)]:
        assert both.column(f"SELECT id FROM {{t}}.older_inline FOR VERSION AS OF {version}") == list(range(1, last + 1))


def test_vectors_beyond_small_containers(both):
    """B019: 150 000 rows, all deleted but five on multiples of batch sizes: containers of bits, several of them."""
    kept = [0, 2048, 8192, 65_536, 149_999]
    table = with_vectors(both, "many")
    table.append(ids(*range(150_000)), vector=table.vectors([n for n in range(150_000) if n not in kept])[0])
    assert sorted(both.column("SELECT id FROM {t}.many")) == kept
    assert both.value("SELECT count(*) FROM {t}.many") == 5


DAMAGES = {
    "magic": lambda data: data.replace(b"\xd1\xd3\x39\x64", b"\xd0\xd3\x39\x64"),
    "checksum": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "size": lambda data: data.replace(b"\0\0\0\x24", b"\0\0\0\x25"),
    "version": lambda data: b"\x02" + data[1:],
    "cut": lambda data: data[:-6],
    "empty": lambda data: b"",
}
WRONG = ("offset", "cardinality", "gone")


@pytest.mark.parametrize("damage", [*DAMAGES, *WRONG])
def test_a_damaged_vector_is_an_error(both, damage):
    """B038: never rows that are deleted, whatever byte or number is wrong."""
    table = with_vectors(both, f"damaged_{damage}")
    other, vector = table.vectors([1], [0, 2])
    file = table.vector_file()
    match damage:
        case "offset":
            vector |= {"offset": other["offset"]}
        case "cardinality":
            vector |= {"cardinality": 3}
        case "gone":
            file.unlink()
        case _:
            whole = file.read_bytes()
            file.write_bytes(DAMAGES[damage](whole))
            assert file.read_bytes() != whole
    table.append(ids(1, 2, 3, 4), vector=vector)
    both.refusal(f"SELECT * FROM {{t}}.damaged_{damage}")
    both.refusal(f"SELECT id FROM {{t}}.damaged_{damage} WHERE id = 1")


def test_lists_across_pages_beside_a_vector(both):
    """B089: two rows are left of a column of lists whose pages end elsewhere than those of other columns."""
    table = with_vectors(both, "lists", [column("id", "long"), column("l", {"type": "array", "elementType": "string", "containsNull": True})])
    lists = [[f"{n}-{at}" * 10 for at in range(n % 7)] for n in range(1000)]
    rows = pa.table({"id": pa.array(range(1000), pa.int64()), "l": pa.array(lists, pa.list_(pa.string()))})
    path = table.write(rows, data_page_size=8192, write_batch_size=50, use_dictionary=False, write_page_index=True)
    vector = table.vectors([n for n in range(1000) if n not in (352, 955)])[0]
    table.commit(table.add_file(path, rows, vector=vector, stats={"numRecords": 1000}))
    assert both.rows("SELECT id, l FROM {t}.lists") == [(352, lists[352]), (955, lists[955])]
    assert both.rows("SELECT l FROM {t}.lists WHERE id > 400") == [(lists[955],)]


def test_the_first_rows_by_an_order_beside_a_vector(both):
    """B092: row groups are left out while the answer fills; positions of the vector stay those of the file."""
    table = with_vectors(both, "top")
    rows = ids(*range(400))
    path = table.write(rows, row_group_size=100, data_page_size=1, write_batch_size=10, write_page_index=True)
    table.commit(table.add_file(path, rows, vector=table.vectors([*range(395, 400), *range(300, 350), 5])[0]))
    assert sorted(both.column("SELECT id FROM {t}.top ORDER BY id DESC LIMIT 50")) == [*range(295, 300), *range(350, 395)]
    assert sorted(both.column("SELECT id FROM {t}.top ORDER BY id LIMIT 7")) == [0, 1, 2, 3, 4, 6, 7]
    assert sorted(both.column("SELECT id FROM {t}.top WHERE id >= 150 ORDER BY id DESC LIMIT 3")) == [392, 393, 394]


# COUNT


@pytest.mark.parametrize("wide", [True, False, None], ids=["wide", "said_tight", "unsaid"])
def test_counts_and_bounds_leave_deleted_rows_out(both, wide):
    """B097: 100 rows less 5, the least and the greatest among them; statistics that claim to be tight are not used."""
    table = with_vectors(both, f"counts_{wide}")
    stats = {"numRecords": 100, "minValues": {"id": 0}, "maxValues": {"id": 99}, "nullCount": {"id": 0}}
    if wide is not None:
        stats["tightBounds"] = not wide
    table.append(ids(*range(100)), vector=table.vectors([0, 1, 50, 98, 99])[0], stats=stats)
    name = f"{{t}}.counts_{wide}"
    assert both.rows(f"SELECT count(*), count(id), min(id), max(id) FROM {name}") == [(95, 95, 2, 97)]
    assert both.rows(f"SELECT min(id), max(id) FROM {name}") == [(2, 97)]
    assert both.value(f"SELECT count(*) FROM {name} WHERE id < 2 OR id > 97") == 0
    assert both.value(f"SELECT count(*) FROM {name}") == 95


# LOG


@pytest.mark.parametrize("checkpoint", [None, 2, 3], ids=["commits", "checkpoint_of_remove", "checkpoint_of_add"])
def test_a_path_that_is_added_removed_and_added_again_is_live(both, checkpoint):
    """B100: three versions of one path."""
    name = f"again_{checkpoint}"
    table = both.create(name, ID)
    added = table.append(ids(1, 2))
    for version, action in [(2, removed(added)), (3, added)]:
        table.commit(action)
        if checkpoint == version:
            table.checkpoint([action])
    for version, expected in [(1, [1, 2]), (2, []), (3, [1, 2])]:
        assert both.column(f"SELECT id FROM {{t}}.{name} FOR VERSION AS OF {version}") == expected
    assert both.column(f"SELECT id FROM {{t}}.{name}") == [1, 2]


@pytest.mark.parametrize("hint", [True, False], ids=["hint", "no_hint"])
@pytest.mark.parametrize("sidecars", [True, False], ids=["sidecars", "inside"])
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_checkpoints_of_the_second_kind_are_read(both, kind, sidecars, hint):
    """B101: named by a UUID, as JSON or Parquet, with and without sidecars; the commits before them are gone."""
    name = f"v2_{kind}_{sidecars}_{hint}"
    table = with_vectors(both, name, features=(*VECTORS, *V2))
    one = table.append(ids(1, 2, 3), vector=table.vectors([1])[0])
    two = table.append(ids(4))
    gone = table.append(ids(5))
    table.commit(removed(gone))
    expected = [1, 3, 4]
    assert both.column(f"SELECT id FROM {{t}}.{name}") == expected
    table.checkpoint([one, two, removed(gone)], kind, sidecars, hint)
    copy = f"{name}_copy"
    shutil.copytree(table.folder, both.folder / copy)
    assert both.column(f"SELECT id FROM {{t}}.{copy}") == expected
    for version in range(table.version):
        (both.folder / copy / "_delta_log" / f"{version:020}.json").unlink()
    assert both.column(f"SELECT id FROM {{t}}.{copy}") == expected
    table.forget_commits(before=table.version)
    table.commit(removed(two), table.add(ids(6)))
    assert both.column(f"SELECT id FROM {{t}}.{name}") == [1, 3, 6]
    assert both.value(f"SELECT count(*) FROM {{t}}.{name} WHERE id > 2") == 2


def test_versions_behind_a_checkpoint_that_vanished_are_refused(both):
    """B103: the checkpoint and versions 0 to 9 are gone, 10 to 12 are there: no table of three files."""
    for hint in (True, False):
        name = f"vanished_{hint}"
        table = both.create(name, ID)
        added = [table.append(ids(n)) for n in range(1, 10)]
        table.append(ids(10))
        table.checkpoint(added, hint=hint)
        table.append(ids(11))
        table.append(ids(12))
        next(table.log.glob("*.checkpoint.parquet")).unlink()
        table.forget_commits(before=10)
        both.refusal(f"SELECT * FROM {{t}}.{name}")
        both.refusal(f"SELECT count(*) FROM {{t}}.{name}")


def test_a_hint_to_a_checkpoint_that_vanished_does_not_matter_where_all_commits_are_left(both):
    """B103: nothing is lost with the checkpoint, so the rows come from the commits."""
    table = both.create("hinted", ID)
    added = [table.append(ids(n)) for n in range(1, 4)]
    table.checkpoint(added)
    table.append(ids(4))
    next(table.log.glob("*.checkpoint.parquet")).unlink()
    assert both.column("SELECT id FROM {t}.hinted") == [1, 2, 3, 4]


@pytest.mark.parametrize("crc", [False, True], ids=["alone", "beside_crc"])
@pytest.mark.parametrize("damage", ["cut", "empty", "gap"])
def test_a_broken_commit_is_an_error(both, damage, crc):
    """B103: a commit that is cut, empty or gone, whatever a checksum file says; not the versions before it."""
    name = f"broken_{damage}_{crc}"
    table = both.create(name, ID)
    for number in range(1, 5):
        table.append(ids(number))
    if crc:
        sums = {"tableSizeBytes": 1, "numFiles": 4, "numMetadata": 1, "numProtocol": 1, "protocol": table.protocol, "metadata": table.metadata()["metaData"]}
        (table.log / f"{table.version:020}.crc").write_text(json.dumps(sums), "utf-8")
    file = table.commit_file(3 if damage == "gap" else None)
    if damage == "gap":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-40] if damage == "cut" else b"")
    both.refusal(f"SELECT * FROM {{t}}.{name}")
    both.refusal(f"SELECT count(*) FROM {{t}}.{name}")


@pytest.mark.parametrize("known_by", ["rows", "columns"])
def test_a_log_that_is_cleaned_while_the_server_knows_the_table(both, known_by):
    """A checkpoint takes the place of the commits that the newest version was read from; then the columns change."""
    name = f"cleaned_{known_by}"
    table = both.create(name, [column("id", "long")], properties={"delta.enableChangeDataFeed": "true"})
    adds = [table.append(ids(number)) for number in range(4)]
    asked = f"SELECT id FROM {{t}}.{name}"
    if known_by == "rows":
        assert both.column(asked) == [0, 1, 2, 3]
    else:
        both.rows(f"DESCRIBE DETAIL {{t}}.{name}")
    table.checkpoint(adds)
    table.forget_commits(before=table.version)
    assert both.column(asked) == [0, 1, 2, 3]
    assert both.value(f"SELECT count(*) FROM {{t}}.{name} FOR VERSION AS OF {table.version}") == 4
    table.columns.append(column("more", "long"))
    table.commit(table.metadata(), table.add(ids(4)))
    assert both.column(asked) == [0, 1, 2, 3, 4]
    assert both.rows(f"SELECT version FROM {{t}}.\"{name}$history\"") == [(4,), (5,)]
    oldest = f"the oldest one that is left is {table.version - 1}"
    assert oldest in both.refusal(f"SELECT * FROM {{t}}.{name} FOR VERSION AS OF 2")
    assert oldest in both.refusal(f"SELECT * FROM table_changes('{{t}}.{name}', 2)")
    assert oldest in both.refusal(f"SELECT * FROM {{t}}.{name} FOR TIMESTAMP AS OF '1990-01-01 00:00:00Z'")


def test_a_commit_that_was_left_below_the_first_checkpoint_is_no_version(both):
    table = both.create("left_over", [column("id", "long")])
    adds = [table.append(ids(number)) for number in range(3)]
    table.checkpoint(adds)
    for version in (0, 1):
        table.commit_file(version).unlink()
    assert both.column("SELECT id FROM {t}.left_over") == [0, 1, 2]
    assert "the oldest one that is left is 3" in both.refusal("SELECT * FROM {t}.left_over FOR VERSION AS OF 2")


# TT


def test_changes_have_the_times_that_versions_are_asked_for_by(both):
    """Files that are older than the commit before theirs count as a millisecond younger than it."""
    table = both.create("times", [column("id", "long")], properties={"delta.enableChangeDataFeed": "true"})
    for number, seconds in enumerate((10, 5, 20)):
        table.append(ids(number))
        os.utime(table.commit_file(), (seconds, seconds))
    os.utime(table.commit_file(0), (1, 1))
    moment = lambda seconds, millis=0: datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc) + datetime.timedelta(milliseconds=millis)  # noqa: E731
    times = [(0, moment(10)), (1, moment(10, 1)), (2, moment(20))]
    assert both.rows("SELECT id, _commit_timestamp FROM table_changes('{t}.times', 1)") == times
    assert both.rows("SELECT version - 1, timestamp FROM {t}.\"times$history\" WHERE version > 0") == times
    assert both.column("SELECT id FROM {t}.times FOR TIMESTAMP AS OF '1970-01-01 00:00:10.001Z'") == [0, 1]
    assert both.column("SELECT id FROM {t}.times FOR TIMESTAMP AS OF '1970-01-01 00:00:10.000Z'") == [0]


def test_an_older_version_has_its_own_columns(both):
    """B105: a column is renamed, another added and one dropped; an older version has the names and conditions of its time."""
    before = [mapped("id", "long", 1, "col-1"), mapped("c", "long", 2, "col-2"), mapped("e", "long", 3, "col-3")]
    after = [mapped("id", "long", 1, "col-1"), mapped("d", "long", 2, "col-2"), mapped("f", "string", 4, "col-4")]
    table = both.create("renamed", before, properties={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4"}, features=("columnMapping",))
    number = lambda *values: pa.array(values, pa.int64())  # noqa: E731
    table.append(pa.table({"col-1": number(1, 2), "col-2": number(1, 7), "col-3": number(5, 6)}))
    table.columns = after
    table.commit(table.metadata(), table.add(pa.table({"col-1": number(3), "col-2": number(1), "col-4": ["x"]})))
    assert both.rows("SELECT * FROM {t}.renamed") == [(1, 1, None), (2, 7, None), (3, 1, "x")]
    assert both.column("SELECT id FROM {t}.renamed WHERE d = 1") == [1, 3]
    for _ in range(2):
        assert both.rows("SELECT * FROM {t}.renamed FOR VERSION AS OF 1") == [(1, 1, 5), (2, 7, 6)]
        assert both.column("SELECT id FROM {t}.renamed FOR VERSION AS OF 1 WHERE c = 1 AND e = 5") == [1]
        both.refusal("SELECT d FROM {t}.renamed FOR VERSION AS OF 1")
        both.refusal("SELECT c FROM {t}.renamed")


def test_changes_never_give_null_for_what_a_file_was_not_partitioned_by(both):
    """A file of another partitioning says nothing of the column that the table is partitioned by at the end of a range."""
    columns = [column("id", "long"), column("a", "long"), column("b", "long")]
    table = both.create("anew", columns, "a", properties={"delta.enableChangeDataFeed": "true"})
    rows = pa.table({"id": pa.array([1], pa.int64()), "b": pa.array([7], pa.int64())})
    older = table.append(rows, partition={"a": "5"})
    table.partitions = ["b"]
    newer = table.add(pa.table({"id": pa.array([2], pa.int64()), "a": pa.array([5], pa.int64())}), partition={"b": "8"})
    table.commit(table.metadata(), removed(older), newer)
    changed = "SELECT id, a, b, _change_type FROM table_changes('{t}.anew', %s) ORDER BY id"
    assert both.rows("SELECT id, a, b FROM {t}.anew") == [(2, 5, 8)]
    assert both.rows(changed % "1, 1") == [(1, 5, 7, "insert")]
    for versions in ("1, 2", "2, 2"):
        assert "partitioned otherwise" in both.refusal(changed % versions)


# EMPTY


def test_a_table_without_data_has_no_rows_and_its_columns(both):
    """B128: before the first file, and after the last one went. B130: the schema comes with no rows too."""
    table = both.create("empty", [column("id", "long"), column("d", "decimal(7,2)"), column("p", "date")], "p")
    added = table.add(ids(1, 2), partition={"p": "2024-02-29"})
    table.commit(added)
    table.commit(removed(added))
    for at in ("FOR VERSION AS OF 0", "FOR VERSION AS OF 2", "", "FOR VERSION AS OF 1"):
        for result in both.tables(f"SELECT * FROM {{t}}.empty {at}"):
            assert [(field.name, str(field.type)) for field in result.schema] == [("id", "int64"), ("d", "decimal128(7, 2)"), ("p", "date32[day]")]
            assert result.num_rows == (2 if at.endswith("1") else 0)
        assert both.value(f"SELECT count(*) FROM {{t}}.empty {at}") == (2 if at.endswith("1") else 0)
    assert [result.num_rows for result in both.tables("SELECT 1 FROM {t}.empty FOR VERSION AS OF 1")] == [2, 2]
    assert [result.schema.names for result in both.tables("SELECT * FROM {t}.empty FOR VERSION AS OF 1 WHERE false")] == [["id", "d", "p"]] * 2
