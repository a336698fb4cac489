"""Parquet files of other writers, each behind a table of its own, against what pyarrow reads.

Encodings: every value equal. Broken files: an error that says so or the rows pyarrow reads, and a server
that lives on; never other rows.
"""

import adbc_driver_manager
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import canonical
import cases
import minitable
from conftest import connect

FOLDER = cases.root() / "format" / "parquet" if cases.root() else None
ENCODINGS = sorted(FOLDER.glob("iceberg-encodings/*/*.parquet")) if FOLDER else []
BROKEN = sorted(FOLDER.glob("parquet-testing-bad/*.parquet")) if FOLDER else []


def table_name(file):
    return f"{file.parent.name}_{file.stem}".lower().replace("-", "_")


def table_schema(file):
    """The columns of a file that an Iceberg table can have; what pyarrow cannot open gets a guess."""
    try:
        whole = pq.read_schema(file)
    except (pa.ArrowException, OSError):
        return pa.schema([pa.field("x", pa.int32())])

    def fits(field):
        try:
            minitable.iceberg_type(field.type, lambda: 1)
        except TypeError:
            return False
        return True

    kept = [field.remove_metadata().with_nullable(True) for field in whole if fits(field)]
    return pa.schema(kept or [pa.field("x", pa.int32())])


@pytest.fixture(scope="module")
def parquet(start_server, tmp_path_factory):
    """A connection to a server with one table `parquet.default.<name>` for each file."""
    folder = tmp_path_factory.mktemp("parquet")
    tables = []
    for file in ENCODINGS + BROKEN:
        location = minitable.write_table(folder / table_name(file), table_schema(file), [file])
        tables.append((f"default.{table_name(file)}", location))
    server = start_server(config=minitable.catalog_toml("parquet", tables))
    with connect(server) as connection:
        yield connection


def read(connection, file):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM parquet.default.{table_name(file)}")
        return cursor.fetch_arrow_table()


@pytest.mark.parametrize("file", ENCODINGS, ids=table_name)
def test_every_encoding_gives_pyarrows_values(parquet, file):
    expected = pq.read_table(file)
    table = read(parquet, file)
    uuids = {field.name for field in expected.schema if field.type == pa.uuid()}
    assert table.column_names == expected.column_names
    assert canonical.table_rows(table, uuids) == canonical.table_rows(expected)


@pytest.mark.parametrize("file", BROKEN, ids=table_name)
def test_a_broken_file_is_an_error_or_its_readable_rows(parquet, file):
    try:
        table = read(parquet, file)
    except adbc_driver_manager.Error as error:
        assert "panic" not in str(error), error
    else:
        if table.column_names == ["x"]:
            assert table.column("x").null_count == table.num_rows  # no file has it
            return
        expected = pq.read_table(file, columns=table.column_names)
        assert canonical.table_rows(table) == canonical.table_rows(expected)
    with parquet.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
