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


def test_what_cannot_be_written_says_so_and_changes_nothing(writing):
    for sql, text in [
        ("INSERT INTO shop.t VALUES (NULL, 'x')", "id"),
        ("INSERT INTO shop.t VALUES (1)", "columns"),
        ("INSERT INTO shop.nowhere VALUES (1)", "nowhere"),
        ("DELETE FROM shop.t", "DELETE"),
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
