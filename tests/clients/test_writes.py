"""Writing through the built server with stock clients, beside pyiceberg on the same catalog file."""

import random
import signal
import subprocess
import threading
import time

import adbc_driver_manager
import pyarrow as pa
import pytest

from conftest import binary, connect
from other_readers import pyiceberg_catalog

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


@pytest.fixture
def warehouse(tmp_path):
    return tmp_path / "warehouse"


@pytest.fixture
def writing(start_server, warehouse):
    server = start_server(["--warehouse", str(warehouse)])
    run(server, "CREATE SCHEMA shop")
    run(server, "CREATE TABLE shop.t (id BIGINT NOT NULL, name STRING)")
    return server


def run(server, sql, parameters=None):
    """Runs a statement as a cursor does; the rows it says it changed."""
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.rowcount


def rows(server, sql):
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]


def test_every_path_of_a_statement_changes_once_and_counts_exactly(writing):
    assert run(writing, "INSERT INTO shop.t VALUES (1, 'a'), (2, NULL)") == 2
    assert run(writing, "INSERT INTO shop.t VALUES (?, ?)", (3, "c")) == 1
    with connect(writing) as connection, connection.cursor() as cursor:
        # all rows together are one commit
        cursor.executemany("INSERT INTO shop.t VALUES (?, ?)", [(4, "d"), (5, "e"), (6, None)])
        assert cursor.rowcount == 3
        cursor.adbc_statement.set_sql_query("INSERT INTO shop.t SELECT id + 100, name FROM shop.t WHERE id < 3")
        assert cursor.adbc_statement.execute_update() == 2
        # asking for the schema of a change changes nothing
        cursor.adbc_statement.set_sql_query("INSERT INTO shop.t VALUES (1000, 'x')")
        cursor.adbc_statement.execute_schema()
    assert rows(writing, "SELECT count(*), count(DISTINCT id), sum(id) FROM shop.t") == [(8, 8, 224)]
    assert rows(writing, "SELECT count(*) FROM shop.t.snapshots") == [(4,)]


def test_pyiceberg_and_the_server_write_one_table(writing, warehouse):
    catalog = pyiceberg_catalog(warehouse)
    run(writing, "INSERT INTO shop.t VALUES (1, 'a')")
    table = catalog.load_table("shop.t")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": "a"}]
    table.append(pa.table({"id": [2, 3], "name": ["b", None]}, schema=SCHEMA))
    assert run(writing, "INSERT INTO shop.t SELECT id + 10, name FROM shop.t") == 3
    assert sorted(catalog.load_table("shop.t").scan().to_arrow().column("id").to_pylist()) == [1, 2, 3, 11, 12, 13]
    made = catalog.create_table("shop.theirs", schema=SCHEMA)
    made.append(pa.table({"id": [7], "name": ["theirs"]}, schema=SCHEMA))
    assert run(writing, "INSERT INTO shop.theirs VALUES (8, 'ours')") == 1
    assert rows(writing, "SELECT * FROM shop.theirs ORDER BY id") == [(7, "theirs"), (8, "ours")]
    assert len(catalog.load_table("shop.theirs").scan().to_arrow()) == 2
    assert run(writing, "DROP TABLE shop.theirs") == 0
    assert ("shop", "theirs") not in catalog.list_tables("shop")


def test_a_table_is_upgraded_beside_pyiceberg(writing, warehouse):
    catalog = pyiceberg_catalog(warehouse)
    run(writing, "CREATE TABLE shop.old (id BIGINT NOT NULL, name STRING) TBLPROPERTIES ('format-version' = '1')")
    run(writing, "INSERT INTO shop.old VALUES (1, 'a'), (2, NULL)")
    expected = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    for version in [2, 3]:
        assert run(writing, f"ALTER TABLE shop.old SET TBLPROPERTIES ('format-version' = '{version}', 'n' = '{version}')") == 0
        # also before the first commit of the new version
        for _ in range(2):
            table = catalog.load_table("shop.old")
            assert (table.format_version, table.properties["n"]) == (version, str(version))
            assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
            added = {"id": len(expected) + 1, "name": f"v{version}"}
            run(writing, "INSERT INTO shop.old VALUES (?, ?)", tuple(added.values()))
            expected.append(added)
        expected_rows = [(row["id"], row["name"]) for row in expected]
        assert rows(writing, "SELECT * FROM shop.old ORDER BY id") == expected_rows
    with pytest.raises(adbc_driver_manager.Error, match="cannot go back"):
        run(writing, "ALTER TABLE shop.old SET TBLPROPERTIES ('format-version' = '2')")
    ids = rows(writing, "SELECT id, _row_id, _last_updated_sequence_number FROM shop.old ORDER BY id")
    assert len({row_id for _, row_id, _ in ids}) == 6 and all(row_id is not None for _, row_id, _ in ids)
    assert [number for _, _, number in ids] == [0, 0, 1, 2, 3, 4]


def test_what_cannot_be_written_says_so_and_changes_nothing(writing):
    for sql, text in [
        ("INSERT INTO shop.t VALUES (NULL, 'x')", "id"),
        ("INSERT INTO shop.t VALUES (1)", "columns"),
        ("INSERT INTO shop.nowhere VALUES (1)", "nowhere"),
        ("UPDATE shop.t SET id = 1", "UPDATE"),
        ("CREATE TABLE shop.t (a INT)", "exists"),
        ("CREATE TABLE shop.u (a INT) LOCATION '/etc/sandur'", "warehouse"),
    ]:
        with pytest.raises(adbc_driver_manager.Error, match=text):
            run(writing, sql)
    assert rows(writing, "SELECT count(*) FROM shop.t.snapshots") == [(0,)]


def test_a_killed_server_loses_and_doubles_nothing(start_server, warehouse):
    chance = random.Random(7)
    server = start_server(["--warehouse", str(warehouse)])
    run(server, "CREATE SCHEMA shop")
    run(server, "CREATE TABLE shop.t (id BIGINT NOT NULL, name STRING)")
    acknowledged, tried = set(), 0
    for _ in range(6):
        stop = threading.Event()

        def write(server=server, stop=stop):
            nonlocal tried
            while not stop.is_set():
                number, tried = tried, tried + 1
                try:
                    assert run(server, f"INSERT INTO shop.t VALUES ({number}, 'x')") == 1
                except adbc_driver_manager.Error:
                    return
                acknowledged.add(number)

        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(chance.uniform(0.3, 1.5))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        stop.set()
        writer.join()
        server = start_server(["--warehouse", str(warehouse)])
        found = [row[0] for row in rows(server, "SELECT id FROM shop.t")]
        assert len(found) == len(set(found))
        assert acknowledged <= set(found) <= set(range(tried))
    assert acknowledged
    # every file that the table names is there, for others too
    assert len(pyiceberg_catalog(warehouse).load_table("shop.t").scan().to_arrow()) == len(found)


def fsck(warehouse, name):
    """What `sandur fsck` says of a table of the warehouse, and its exit code."""
    folder = warehouse / "iceberg" / "shop" / name
    done = subprocess.run([str(binary()), "fsck", str(folder)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_fsck_finds_nothing_wrong_until_a_file_is_gone(writing, warehouse):
    for n in range(3):
        run(writing, f"INSERT INTO shop.t VALUES ({n}, 'x')")
    pyiceberg_catalog(warehouse).load_table("shop.t").append(pa.table({"id": [9], "name": ["py"]}, schema=SCHEMA))
    code, text = fsck(warehouse, "t")
    assert (code, text.splitlines()[-1]) == (0, "4 snapshots, 4 manifests, 4 files: 0 findings"), text
    files = sorted((warehouse / "iceberg" / "shop" / "t" / "data").glob("*.parquet"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes() + b"x")
    code, text = fsck(warehouse, "t")
    assert code == 1
    lines = text.splitlines()
    assert len(lines) == 3 and "is missing" in text and "bytes, its entry says" in text, text


POINTS = "CREATE TABLE shop.p (id INT, s STRUCT<x INT, y INT>, l ARRAY<STRUCT<x INT, y INT>>, m MAP<STRING, STRUCT<x INT, y INT>>)"


def one_struct(*fields):
    """A column `s` of one struct with these (name, value) fields."""
    arrays = [pa.array([value], pa.int32()) for _, value in fields]
    return pa.StructArray.from_arrays(arrays, names=[name for name, _ in fields])


def test_fields_of_structs_go_to_the_fields_of_their_names(writing):
    run(writing, POINTS)
    for sql in [
        "INSERT INTO shop.p VALUES (1, {x: 10, y: 20}, [{y: 20, x: 10}], MAP {'k': {x: 10, y: 20}})",
        "INSERT INTO shop.p (id, s) SELECT 2, {y: id + 19, x: id + 9} FROM shop.p",
        "INSERT INTO shop.p (id, l) SELECT 3, [{y: id + 19, x: id + 9}] FROM shop.p WHERE id = 1",
        "INSERT INTO shop.p (id, m) SELECT 4, MAP {'k': {y: id + 19, x: id + 9}} FROM shop.p WHERE id = 1",
    ]:
        assert run(writing, sql) == 1
    assert run(writing, "INSERT INTO shop.p (id, s) VALUES (5, ?)", pa.record_batch([one_struct(("y", 20), ("x", 10))], names=["1"])) == 1
    assert rows(writing, "SELECT count(*) FROM shop.p WHERE coalesce(s['x'], l[1]['x'], m['k']['x']) = 10") == [(5,)]
    assert rows(writing, "SELECT count(*) FROM shop.p WHERE coalesce(s['y'], l[1]['y'], m['k']['y']) = 20") == [(5,)]
    for sql in [
        "INSERT INTO shop.p (id, s) SELECT 9, {x: id, q: id} FROM shop.p",
        "INSERT INTO shop.p (id, s) VALUES (9, {x: 20, q: 10})",
        "INSERT INTO shop.p (id, l) SELECT 9, [{x: id, q: id}] FROM shop.p",
        "INSERT INTO shop.p (id, m) SELECT 9, MAP {'k': {x: id, q: id}} FROM shop.p",
        "INSERT INTO shop.p (id, s) VALUES (9, {x: 20})",
    ]:
        with pytest.raises(adbc_driver_manager.Error):
            run(writing, sql)
    for fields in [(("q", 1), ("x", 2)), (("x", 1), ("x", 2)), (("Y", 1), ("X", 2))]:
        with pytest.raises(adbc_driver_manager.Error):
            run(writing, "INSERT INTO shop.p (id, s) VALUES (9, ?)", pa.record_batch([one_struct(*fields)], names=["1"]))
    assert rows(writing, "SELECT count(*) FROM shop.p") == [(5,)]


def test_numbers_keep_every_digit(writing):
    run(writing, "CREATE TABLE shop.d (id INT, a DECIMAL(38, 0), b DECIMAL(38, 2), c ARRAY<DECIMAL(38, 0)>)")
    large = ["18446744073709551617", "-9223372036854775809", "12345678901234567890123456789012345678"]
    for at, number in enumerate(large):
        small = number[:20]
        run(writing, f"INSERT INTO shop.d VALUES ({at}, {number}, {small}, [{number}])")
        [(a, b, c)] = rows(writing, f"SELECT CAST(a AS STRING), CAST(b AS STRING), CAST(c[1] AS STRING) FROM shop.d WHERE id = {at}")
        assert (a, b, c) == (number, small + ".00", number)
    run(writing, "CREATE TABLE shop.i (v BIGINT)")
    run(writing, "INSERT INTO shop.i VALUES (-9223372036854775808), (9223372036854775807)")
    assert rows(writing, "SELECT min(v), max(v) FROM shop.i WHERE v IN (-9223372036854775808, 9223372036854775807)") == [(-(2**63), 2**63 - 1)]


def test_bound_values_are_not_cut(writing):
    run(writing, "CREATE TABLE shop.b (i INT, f FLOAT, d DATE, at TIMESTAMP)")
    for value in (1.5, -0.99):
        with pytest.raises(adbc_driver_manager.Error):
            run(writing, "INSERT INTO shop.b (i) VALUES (?)", (value,))
    late = pa.record_batch([pa.array([-1], pa.timestamp("ns"))], names=["1"])
    with pytest.raises(adbc_driver_manager.Error):
        run(writing, "INSERT INTO shop.b (at) VALUES (?)", late)
    assert run(writing, "INSERT INTO shop.b VALUES (?, ?, ?, ?)", (7, 0.1, "2024-02-29", "2024-02-29 01:02:03.000004")) == 1
    assert rows(writing, "SELECT i, CAST(f AS STRING), CAST(d AS STRING), CAST(at AS STRING) FROM shop.b") == [
        (7, "0.1", "2024-02-29", "2024-02-29T01:02:03.000004")
    ]


def test_columns_without_names_go_by_their_positions(writing):
    run(writing, "CREATE TABLE shop.n (a INT, b INT, c STRING, d STRING)")
    assert run(writing, "INSERT INTO shop.n SELECT 2, 2, NULL, NULL") == 1
    assert run(writing, "INSERT INTO shop.n (a, b) SELECT a, a FROM shop.n UNION ALL SELECT 3, 3") == 2
    assert sorted(rows(writing, "SELECT a, b FROM shop.n")) == [(2, 2), (2, 2), (3, 3)]
    # two casts of one column below the SELECT list
    deeper = "INSERT INTO shop.n (a, b) SELECT * FROM (SELECT CAST(a AS INT), CAST(a AS BIGINT) FROM shop.n WHERE a = 3) AS c"
    assert run(writing, deeper) == 1
    # sides that are matched by name keep their names: `b` and `a` are not exchanged
    by_name = "INSERT INTO shop.n (a, b) SELECT a, b FROM shop.n WHERE a = 3 UNION BY NAME SELECT 20 AS b, 10 AS a"
    assert run(writing, by_name) == 2
    assert rows(writing, "SELECT a, b FROM shop.n WHERE a = 10") == [(10, 20)]
    with pytest.raises(adbc_driver_manager.Error):
        run(writing, "INSERT INTO shop.n (a, b, c) SELECT a, 1, 1 FROM shop.n UNION BY NAME SELECT 20 AS b, 10 AS a, 'x' AS c")
    dictionary = pa.record_batch([pa.array(["x", "y", "x"]).dictionary_encode()], names=["1"])
    assert run(writing, "INSERT INTO shop.n (a, c) VALUES (9, ?)", dictionary) == 3
    assert rows(writing, "SELECT count(*) FROM shop.n WHERE c = 'x'") == [(2,)]
