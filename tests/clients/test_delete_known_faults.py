"""Faults that other systems had when they deleted rows, each retold as a small case; docs/known-faults.md lists them.

Each test names the number of the report. What must be left is told by hand, and read by the server, pyiceberg and
DuckDB.
"""

import datetime
import threading

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as t

import hand_commits
import other_readers
from conftest import connect
from delete_checks import change, delete_positions, live_files, vectors
from insert_checks import Writing
from wire import command, field

MODES = [(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]
IDS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("k", pa.int64())])


@pytest.fixture(scope="module")
def writing(start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("faults") / "warehouse"
    server = start_server(["--warehouse", str(warehouse)])
    opened = Writing(server, warehouse)
    opened.server = server
    yield opened
    opened.close()


every_mode = pytest.mark.parametrize("version, mode", MODES)
merge_on_read = pytest.mark.parametrize("version", [2, 3])


def create(writing, name, version, mode, columns="id BIGINT NOT NULL, k BIGINT", more="", **properties):
    properties = {"format-version": str(version), "write.delete.mode": mode, **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    writing.run(f"CREATE TABLE s.{name} ({columns}) {more} TBLPROPERTIES ({listed})")
    return name


def named(what, version, mode):
    return f"{what}_{mode.replace('-', '_')}_v{version}"


def left(writing, name, expected, column="id", equality_deletes=False):
    """All readers have these values of a column, and nothing is wrong with the table."""
    table = writing.catalog.load_table(f"s.{name}")
    order = lambda values: sorted(values, key=lambda value: (value is None, value))  # noqa: E731
    expected = order(expected)
    assert order(writing.table(f"SELECT {column} FROM s.{name}").column(0).to_pylist()) == expected
    read = other_readers.duck().execute(f"SELECT {column} FROM iceberg_scan('{table.metadata_location}')").fetchall()
    assert order(row[0] for row in read) == expected
    if not equality_deletes:
        assert order(table.scan().to_arrow()[column].to_pylist()) == expected
    assert other_readers.fsck(table) == ""
    return table


# DML


# B124
@every_mode
def test_rows_whose_condition_is_unknown_stay(writing, version, mode):
    for n, (where, gone) in enumerate([("k = 2", 1), ("k <> 1", 1), ("NOT (k = 1)", 1), ("k NOT IN (1)", 1), ("NOT (k <> 2)", 1), ("k = NULL", 0), ("k NOT IN (1, NULL)", 0)]):
        name = create(writing, f"{named('unknown', version, mode)}_{n}", version, mode)
        writing.run(f"INSERT INTO s.{name} VALUES (1, 1), (2, 2), (3, NULL)")
        assert writing.run(f"DELETE FROM s.{name} WHERE {where}") == gone
        left(writing, name, [1, 3] if gone else [1, 2, 3])


# B125
@every_mode
def test_a_condition_on_the_partition_and_another_column_takes_its_rows_alone(writing, version, mode):
    name = create(writing, named("scores", version, mode), version, mode, "id INT, created TIMESTAMP, score DOUBLE", "PARTITIONED BY (day(created))")
    scores = ["NULL" if n % 7 == 6 else "CAST('NaN' AS DOUBLE)" if n % 7 == 5 else n / 20 for n in range(20)]
    rows = ", ".join(f"({n}, TIMESTAMP '2024-01-0{1 + n % 3} {n:02d}:00:00', {scores[n]})" for n in range(20))
    writing.run(f"INSERT INTO s.{name} VALUES {rows}")
    mine = [n for n in range(20) if n % 3 == 1]
    gone = [n for n in mine if n % 7 < 5 and n / 20 < 0.5]
    where = "created >= TIMESTAMP '2024-01-02 00:00:00' AND created < TIMESTAMP '2024-01-03 00:00:00' AND score < 0.5"
    assert writing.run(f"DELETE FROM s.{name} WHERE {where}") == len(gone)
    left(writing, name, set(range(20)) - set(gone))


# B125
@merge_on_read
def test_a_range_of_identity_partitions_takes_exactly_their_files(writing, version):
    name = create(writing, f"many_days_v{version}", version, "merge-on-read", "id INT, dt DATE", "PARTITIONED BY (dt)")
    first = datetime.date(2023, 12, 1)
    rows = pa.table({"id": pa.array(range(200), pa.int32()), "dt": [None if n % 100 == 99 else first + datetime.timedelta(days=n % 100) for n in range(200)]})
    writing.append_rows(name, rows)
    done = change(writing, f"DELETE FROM s.{name} WHERE dt < DATE '2024-01-01'")
    assert (done.rows, done.counts) == (62, (0, 0, 0, 31))
    left(writing, name, [n for n in range(200) if n % 100 >= 31])


# B055
@every_mode
def test_a_file_that_may_have_nulls_or_nan_does_not_go_as_a_whole(writing, version, mode):
    name = create(writing, named("strict", version, mode), version, mode, "id INT, x DOUBLE, k INT")
    nan = "CAST('NaN' AS DOUBLE)"
    writing.run(f"INSERT INTO s.{name} VALUES (1, NULL, NULL), (2, 5, 5)")
    writing.run(f"INSERT INTO s.{name} VALUES (3, {nan}, 5), (4, 5, 5)")
    for where in ("k <> 5", "x < 5", "NOT (x >= 5)", "x <> 5 AND x < 100"):
        assert writing.run(f"DELETE FROM s.{name} WHERE {where}") == 0
    left(writing, name, [1, 2, 3, 4])
    # NaN is above all numbers and differs from 5.
    assert writing.run(f"DELETE FROM s.{name} WHERE x <> 5") == 1
    left(writing, name, [1, 2, 4])
    assert writing.run(f"DELETE FROM s.{name} WHERE x <= 5") == 2
    left(writing, name, [1])


# What a planner of deletes that knows filters alone gets wrong: the whole table goes, or nothing does.
@every_mode
def test_subqueries_and_folded_conditions_delete_what_they_say(writing, version, mode):
    keys = create(writing, named("keys", version, mode), version, mode, "id BIGINT")
    writing.run(f"INSERT INTO s.{keys} VALUES (2), (NULL), (77)")
    for n, (rest, gone) in enumerate(
        [
            (f"WHERE id IN (SELECT id FROM s.{keys})", [2]),
            (f"WHERE id NOT IN (SELECT id FROM s.{keys})", []),
            (f"WHERE id NOT IN (SELECT id FROM s.{keys} WHERE id IS NOT NULL)", [1, 3]),
            (f"AS a WHERE EXISTS (SELECT 1 FROM s.{keys} AS u WHERE u.id = a.id)", [2]),
            (f"AS a WHERE NOT EXISTS (SELECT 1 FROM s.{keys} AS u WHERE u.id = a.id)", [1, 3]),
            (f"AS a USING s.{keys} AS u WHERE u.id = a.id OR u.id = 77", [1, 2, 3]),
            (f"WHERE id = (SELECT max(id) - 75 FROM s.{keys})", [2]),
            ("WHERE false", []),
            ("WHERE NULL", []),
            ("WHERE 1 = 0 OR id = 3", [3]),
            ("", [1, 2, 3]),
        ]
    ):
        name = create(writing, f"{named('sub', version, mode)}_{n}", version, mode)
        writing.run(f"INSERT INTO s.{name} VALUES (1, 1), (2, 2), (3, NULL)")
        assert writing.run(f"DELETE FROM s.{name} {rest}") == len(gone), rest
        left(writing, name, {1, 2, 3} - set(gone))


# POS


def grouped(writing, name, version, mode, groups=1, **properties):
    """A data file of a hundred rows, or of several row groups of a thousand each; k = id / 20."""
    rows = 100 if groups == 1 else 1000
    sizes = {"write.parquet.row-group-size-bytes": "100", "write.parquet.page-row-limit": "20", "write.parquet.page-size-bytes": "100"}
    create(writing, name, version, mode, **sizes, **properties)
    batches = [
        pa.record_batch([pa.array(range(start, start + rows), pa.int64()), pa.array([n // 20 for n in range(start, start + rows)], pa.int64())], schema=IDS)
        for start in range(0, groups * rows, rows)
    ]
    writing.append_rows(name, pa.Table.from_batches(batches))
    [(path, _)] = live_files(writing.catalog.load_table(f"s.{name}"))[0]
    assert pq.read_metadata(other_readers.local(path)).num_row_groups == groups
    return path


# B001
@merge_on_read
def test_rows_past_the_first_row_group_are_deleted_by_delete_files_of_several_row_groups(writing, version):
    """All but one, so that the data file does not go; then the last."""
    name = f"groups_v{version}"
    path = grouped(writing, name, version, "merge-on-read", groups=3, **{"write.delete.parquet.row-group-size-bytes": "4096"})
    done = delete_positions(writing, name, [path] * 2999, [n for n in range(3000) if n != 2500])
    assert (done.rows, done.delete_files) == (2999, 1)
    [delete] = live_files(left(writing, name, [2500]))[1].values()
    if version == 2:
        assert pq.read_metadata(other_readers.local(delete["file_path"])).num_row_groups > 1
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 2500") == 1
    left(writing, name, [])


# B003
@every_mode
def test_a_delete_in_a_later_row_group_behind_skipped_ones(writing, version, mode):
    name = named("later", version, mode)
    grouped(writing, name, version, mode, groups=3)
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 2500") == 1
    assert writing.run(f"DELETE FROM s.{name} WHERE id > 1000 AND k = 130 AND id < 2602") == 2
    left(writing, name, set(range(3000)) - {2500, 2600, 2601})
    for condition, rows in [("id >= 2000", 997), ("id = 2500", 0), ("id < 1000", 1000), ("id BETWEEN 2499 AND 2501", 2)]:
        assert writing.table(f"SELECT count(*) FROM s.{name} WHERE {condition}").column(0).to_pylist() == [rows]


# B004
@every_mode
def test_a_delete_that_reads_some_pages_takes_the_rows_of_these_pages(writing, version, mode):
    name = named("pages", version, mode)
    grouped(writing, name, version, mode)
    assert writing.run(f"DELETE FROM s.{name} WHERE k = 4") == 20
    left(writing, name, range(80))
    assert writing.run(f"DELETE FROM s.{name} WHERE k = 2 AND id <> 45") == 19
    left(writing, name, [*range(40), 45, *range(60, 80)])


# B005
@every_mode
def test_positions_are_those_of_the_file_also_where_a_column_came_later(writing, version, mode):
    name = create(writing, named("added", version, mode), version, mode, "id BIGINT")
    writing.run(f"INSERT INTO s.{name} VALUES (1), (2), (3), (4), (5)")
    if version < 3:
        with writing.catalog.load_table(f"s.{name}").update_schema() as schema:
            schema.add_column("c", t.StringType())
    else:
        hand_commits.swap(writing, name, add_column)
    writing.run(f"INSERT INTO s.{name} VALUES (6, 'a'), (7, NULL), (8, 'c'), (9, 'd'), (10, 'e')")
    assert writing.run(f"DELETE FROM s.{name} WHERE id IN (3, 8)") == 2
    left(writing, name, [1, 2, 4, 5, 6, 7, 9, 10])
    assert writing.run(f"DELETE FROM s.{name} WHERE c IS NULL AND id > 4") == 2
    left(writing, name, [1, 2, 4, 6, 9, 10])


def add_column(doc):
    doc["last-column-id"] += 1
    new = {"id": doc["last-column-id"], "name": "c", "required": False, "type": "string"}
    doc["schemas"].append({**doc["schemas"][-1], "schema-id": 1, "fields": [*doc["schemas"][-1]["fields"], new]})
    doc["current-schema-id"] = 1


# B009
@merge_on_read
def test_every_way_of_reading_applies_the_deletes(writing, version):
    """The plain query, each endpoint's ticket twice, eight clients at once, a time travel and a prepared statement."""
    name = f"ways_v{version}"
    grouped(writing, name, version, "merge-on-read", groups=3)
    assert writing.run(f"DELETE FROM s.{name} WHERE id % 2 = 1") == 1500
    expected = list(range(0, 3000, 2))
    snapshot = writing.catalog.load_table(f"s.{name}").current_snapshot().snapshot_id
    for sql in (f"SELECT id FROM s.{name}", f"SELECT id FROM s.{name} FOR VERSION AS OF {snapshot}", f"SELECT id FROM s.{name} WHERE k >= 0"):
        info = writing.flight.get_flight_info(flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, sql))))
        for _ in range(2):
            found = [n for endpoint in info.endpoints for n in writing.flight.do_get(endpoint.ticket).read_all().column(0).to_pylist()]
            assert sorted(found) == expected
    seen = []

    def read():
        with connect(writing.server) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM s.{name} WHERE k >= ?", (0,))
            seen.append(sorted(row[0] for row in cursor.fetchall()))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 8


# DV


# B028, B035
def test_a_second_delete_replaces_the_vector(writing):
    name = create(writing, "twice", 3, "merge-on-read")
    writing.run(f"INSERT INTO s.{name} VALUES {', '.join(f'({n}, {n})' for n in range(10))}")
    for n, gone in enumerate([5, 9], start=1):
        assert writing.run(f"DELETE FROM s.{name} WHERE id = {gone}") == 1
        table = left(writing, name, set(range(10)) - {5, 9} if n == 2 else set(range(10)) - {5})
        [vector] = vectors(table).values()
        assert vector["record_count"] == n
        assert len(live_files(table)[1]) == 1
    # A row that is deleted already is not deleted again, and no snapshot is made.
    assert change(writing, f"DELETE FROM s.{name} WHERE id IN (5, 9)").snapshot_id is None


# B030
@merge_on_read
def test_a_condition_on_the_key_gives_a_row_once_beside_deleted_ones(writing, version):
    name = f"key_v{version}"
    grouped(writing, name, version, "merge-on-read")
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 3") == 1
    for n in (0, 2, 3, 4, 19, 20, 21, 39, 40, 99):
        assert writing.table(f"SELECT count(*) FROM s.{name} WHERE id = {n}").column(0).to_pylist() == [int(n != 3)]
    assert [writing.run(f"DELETE FROM s.{name} WHERE id = {n}") for n in (2, 3, 4)] == [1, 0, 1]
    left(writing, name, set(range(100)) - {2, 3, 4})


# B032
def test_vectors_count_also_when_the_table_says_copy_on_write_now(writing):
    name = create(writing, "switched", 3, "merge-on-read")
    writing.run(f"INSERT INTO s.{name} VALUES {', '.join(f'({n}, {n})' for n in range(10))}")
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 5") == 1
    hand_commits.set_properties(writing, name, write__delete__mode="copy-on-write")
    assert len(vectors(left(writing, name, set(range(10)) - {5}))) == 1
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 6") == 1
    assert vectors(left(writing, name, set(range(10)) - {5, 6})) == {}


# B039
def test_an_older_snapshot_has_its_own_vector(writing):
    name = create(writing, "older", 3, "merge-on-read")
    writing.run(f"INSERT INTO s.{name} SELECT value, value FROM generate_series(0, 99)")
    ids = [writing.catalog.load_table(f"s.{name}").current_snapshot().snapshot_id]
    for low, high, rows in [(0, 49, 50), (30, 69, 20)]:
        done = change(writing, f"DELETE FROM s.{name} WHERE id BETWEEN {low} AND {high}")
        assert done.rows == rows
        ids.append(done.snapshot_id)
    for n in (0, 1, 2, 1, 0, 2):
        found = writing.table(f"SELECT count(*), min(id) FROM s.{name} FOR VERSION AS OF {ids[n]}").to_pylist()
        assert list(found[0].values()) == [[100, 0], [50, 50], [30, 70]][n]
    left(writing, name, range(70, 100))


# Rows of position delete files and of a vector of one data file.
def test_position_deletes_of_before_the_upgrade_become_part_of_the_vector(writing):
    name = create(writing, "upgraded", 2, "merge-on-read", more="PARTITIONED BY (k)")
    writing.run(f"INSERT INTO s.{name} SELECT value, 1 FROM generate_series(0, 9)")
    writing.run(f"INSERT INTO s.{name} SELECT value, 1 FROM generate_series(10, 19)")
    # One delete file for both data files of the partition.
    assert change(writing, f"DELETE FROM s.{name} WHERE id IN (1, 11)").counts == (0, 1, 0, 0)
    hand_commits.upgrade(writing, name, 3)
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 2") == 1
    table = left(writing, name, set(range(20)) - {1, 2, 11})
    [vector] = vectors(table).values()
    assert vector["record_count"] == 2
    # The file serves the other data file, until that has a vector, too.
    assert len(live_files(table)[1]) == 2
    assert writing.run(f"DELETE FROM s.{name} WHERE id IN (1, 2, 11, 12)") == 1
    table = left(writing, name, set(range(20)) - {1, 2, 11, 12})
    assert sorted(vector["record_count"] for vector in vectors(table).values()) == [2, 2]


# TXN


# B111
@merge_on_read
def test_a_delete_of_rows_of_a_file_that_was_rewritten_finds_them_in_the_new_file(writing, version):
    """Positions of a snapshot whose file went since are refused; the same delete by SQL finds the rows."""
    name = f"crossed_v{version}"
    path = grouped(writing, name, version, "copy-on-write")
    snapshot = writing.catalog.load_table(f"s.{name}").current_snapshot().snapshot_id
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 0") == 1
    with pytest.raises(pa.ArrowException, match="no longer"):
        delete_positions(writing, name, [path], [1], snapshot)
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 1") == 1
    left(writing, name, range(2, 100))


# B113, B114: a delete whose answer was lost is sent again under its key.
@merge_on_read
def test_a_delete_under_a_key_is_made_once(writing, version):
    name = f"keyed_v{version}"
    path = grouped(writing, name, version, "merge-on-read")
    first = delete_positions(writing, name, [path] * 2, [1, 3], key=name)
    again = delete_positions(writing, name, [path] * 2, [1, 3], key=name)
    assert (first.rows, again.snapshot_id) == (2, first.snapshot_id)
    assert len(left(writing, name, set(range(100)) - {1, 3}).snapshots()) == 2


# B117
@pytest.mark.parametrize("version", [2, 3])
def test_a_rewrite_does_not_bring_back_deleted_rows(writing, version):
    """Rows went by position, by vector and by key; then the file is written anew."""
    name = f"undone_v{version}"
    grouped(writing, name, version, "merge-on-read")
    assert writing.run(f"DELETE FROM s.{name} WHERE id = 1") == 1
    hand_commits.delete_by_key(writing, name, pa.table({"id": pa.array([2, 3])}))
    hand_commits.set_properties(writing, name, write__delete__mode="copy-on-write")
    done = change(writing, f"DELETE FROM s.{name} WHERE id BETWEEN 2 AND 4")
    assert (done.rows, done.counts) == (1, (1, 0, 1, 0))
    table = left(writing, name, [0, *range(5, 100)], equality_deletes=True)
    assert sum(file["record_count"] for file in live_files(table)[0].values()) == 96
