"""The embedded warehouse as pyiceberg sees it: one SQLite file, tables of both."""

import contextlib
import sqlite3

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import canonical
import test_printed_lines
from conftest import connect
from other_readers import pyiceberg_catalog as pyiceberg

# Where a sample table lay when it was written; it is carried as a copy.
RECORDED = "/tmp/wh/cases/sample_"


def rows(server, sql):
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def dump(file):
    with contextlib.closing(sqlite3.connect(file)) as opened:
        return list(opened.iterdump())


def journal_mode(file):
    with contextlib.closing(sqlite3.connect(file)) as opened:
        return opened.execute("PRAGMA journal_mode").fetchone()[0]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    return tmp_path_factory.mktemp("embedded") / "warehouse"


@pytest.fixture(scope="module")
def started(start_server, warehouse):
    return start_server(["--sample", "--warehouse", str(warehouse)])


def test_pyiceberg_opens_the_file_and_finds_the_sample(started, warehouse):
    catalog = pyiceberg(warehouse)
    assert catalog.list_namespaces() == [("sample",)]
    assert sorted(catalog.list_tables("sample")) == [("sample", name) for name in ("customers", "measurements", "orders")]
    assert journal_mode(warehouse / "catalog.db") == "wal"


@pytest.mark.parametrize("name", ["orders", "measurements"])
def test_pyiceberg_reads_the_tables_that_the_server_made(started, warehouse, name):
    expected = test_printed_lines.sample(name)
    read = pyiceberg(warehouse).load_table(f"sample.{name}").scan().to_arrow()
    assert read.column_names == expected["columns"]
    assert canonical.sha256(read.column_names, canonical.table_rows(read)) == expected["sha256"]


def test_pyiceberg_sees_the_registered_table(started, warehouse):
    # its files are named where another program once wrote them, and pyiceberg reads no equality deletes
    table = pyiceberg(warehouse).load_table("sample.customers")
    assert [field.name for field in table.schema().fields] == test_printed_lines.sample("customers")["columns"]
    assert table.location().startswith(RECORDED)


def test_tables_of_pyiceberg_are_served_at_once(started, warehouse):
    catalog = pyiceberg(warehouse)
    catalog.create_namespace("Made.by_pyiceberg", {"owner": "me"})
    data = pa.table({"id": [1, 2, 3], "word": ["a", None, "c"]})
    table = catalog.create_table("Made.by_pyiceberg.t", data.schema)
    assert rows(started, 'SELECT * FROM iceberg."Made.by_pyiceberg".t') == []
    table.append(data)
    assert sorted(rows(started, 'SELECT * FROM iceberg."made.by_PYICEBERG".T')) == [(1, "a"), (2, None), (3, "c")]
    table.append(data)
    table.delete("id = 2")
    assert rows(started, 'SELECT count(*), sum(id) FROM iceberg."Made.by_pyiceberg".t') == [(4, 8)]
    names = {(row[1], row[2]) for row in rows(started, "SELECT * FROM information_schema.tables")}
    assert ("Made.by_pyiceberg", "t") in names and ("sample", "orders") in names
    catalog.rename_table("Made.by_pyiceberg.t", "Made.by_pyiceberg.u")
    assert rows(started, 'SELECT count(*) FROM iceberg."Made.by_pyiceberg".u') == [(4,)]
    catalog.drop_table("Made.by_pyiceberg.u")
    with pytest.raises(Exception, match="does not exist"):
        rows(started, 'SELECT * FROM iceberg."Made.by_pyiceberg".u')


def test_recorded_folders_inside_of_the_warehouse_are_read(started, warehouse):
    catalog = pyiceberg(warehouse)
    catalog.create_namespace_if_not_exists("spread")
    data = pa.table({"id": [1, 2, 3]})
    properties = {"write.data.path": f"file://{warehouse}/iceberg/elsewhere/data"}
    catalog.create_table("spread.data", data.schema, properties=properties).append(data)
    assert list((warehouse / "iceberg/elsewhere/data").rglob("*.parquet"))
    assert rows(started, "SELECT sum(id) FROM iceberg.spread.data") == [(6,)]
    properties = {"write.metadata.path": f"file://{warehouse}/iceberg/elsewhere/metadata"}
    catalog.create_table("spread.meta", data.schema, properties=properties).append(data)
    assert rows(started, "SELECT sum(id) FROM iceberg.spread.meta") == [(6,)]


def test_a_table_outside_of_the_warehouse_is_refused_by_name(started, warehouse, tmp_path):
    catalog = pyiceberg(warehouse)
    catalog.create_namespace_if_not_exists("spread")
    data = pa.table({"id": [1, 2, 3]})
    catalog.create_table("spread.outside", data.schema, location=f"file://{tmp_path}/outside").append(data)
    with pytest.raises(Exception, match="iceberg.spread.outside") as refused:
        rows(started, "SELECT * FROM iceberg.spread.outside")
    assert "warehouse" in str(refused.value) and str(tmp_path) not in str(refused.value)
    # metadata inside, files outside
    properties = {"write.data.path": f"file://{tmp_path}/data"}
    catalog.create_table("spread.data_outside", data.schema, properties=properties).append(data)
    with pytest.raises(Exception, match="allowed folders"):
        rows(started, "SELECT * FROM iceberg.spread.data_outside")


def test_a_second_server_reads_and_says_that_it_does_not_write(start_server, started, warehouse):
    second = start_server(["--sample", "--warehouse", str(warehouse)])
    assert "another Sandur server" in second.log.read_text("utf-8")
    assert "another Sandur server" not in started.log.read_text("utf-8")
    expected = [(len(test_printed_lines.sample("orders")["rows"]),)]
    for server in (started, second):
        assert rows(server, "SELECT count(*) FROM iceberg.sample.orders") == expected


def test_a_restart_changes_nothing_in_the_catalog(start_server, tmp_path):
    warehouse = tmp_path / "warehouse"
    first = start_server(["--sample", "--warehouse", str(warehouse)])
    before = dump(warehouse / "catalog.db")
    assert first.stop() == 0
    assert sorted(path.name for path in warehouse.iterdir()) == [
        "catalog.db",
        "catalog.db-commits.jsonl",
        "catalog.db.sandur-lock",
        "delta",
        "iceberg",
    ]
    second = start_server(["--sample", "--warehouse", str(warehouse)])
    assert dump(warehouse / "catalog.db") == before
    # what was dropped stays dropped where no sample is asked for
    second.stop()
    catalog = pyiceberg(warehouse)
    catalog.drop_table("sample.orders")
    third = start_server(["--warehouse", str(warehouse)])
    with pytest.raises(Exception, match="does not exist"):
        rows(third, "SELECT * FROM iceberg.sample.orders")
    assert rows(third, "SELECT count(*) FROM iceberg.sample.customers") == [(23,)]


def test_a_file_of_pyiceberg_is_a_configured_catalog(start_server, tmp_path):
    catalog = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/own.db", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("s")
    data = pa.table({"id": [1, 2, 3]})
    table = catalog.create_table("s.t", data.schema)
    table.append(data)
    config = f"""
    [catalog.lake]
    type = "sql"
    uri = "sqlite:///{tmp_path}/own.db"
    warehouse = "{tmp_path}/wh"
    catalog_name = "default"
    """
    server = start_server(config=config)
    assert rows(server, "SELECT sum(id) FROM lake.s.t") == [(6,)]
    table.append(data)
    assert rows(server, "SELECT sum(id) FROM lake.s.t") == [(12,)]
    assert journal_mode(tmp_path / "own.db") == "delete"
