"""The same tables as other programs read them."""

import functools
import os
import subprocess

import duckdb
import fastavro
from pyiceberg.catalog.sql import SqlCatalog

import canonical
from conftest import binary


def pyiceberg_catalog(warehouse, **properties):
    """pyiceberg on the catalog file of an embedded warehouse."""
    return SqlCatalog(
        "iceberg", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}/iceberg", **properties
    )


@functools.cache
def duck():
    """DuckDB with the extensions that come as Python packages, so nothing is fetched."""
    connection = duckdb.connect()
    packages = os.path.dirname(os.path.dirname(duckdb.__file__))
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{packages}/duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def local(path):
    """A recorded path as one of this machine: Java leaves slashes out."""
    return "/" + path.removeprefix("file:").lstrip("/")


def by_duckdb(table, uuids=()):
    """Canonical rows of a pyiceberg table's current snapshot as DuckDB's `iceberg_scan` reads them, as sorted lines."""
    read = duck().execute(f"SELECT * FROM iceberg_scan('{table.metadata_location}')").to_arrow_table()
    return canonical.sorted_lines(canonical.table_rows(read, uuids))


def files_by_duckdb(paths, columns, uuids=()):
    """Canonical rows of data files as DuckDB's Parquet reader has them."""
    paths = [local(path) for path in paths]
    read = duck().execute(f"SELECT {', '.join(columns)} FROM read_parquet(?, hive_partitioning = false)", [paths]).to_arrow_table()
    return canonical.sorted_lines(canonical.table_rows(read, uuids))


def by_pyiceberg(table, uuids=()):
    return canonical.sorted_lines(canonical.table_rows(table.scan().to_arrow(), uuids))


def avro(path):
    with open(local(path), "rb") as file:
        yield from fastavro.reader(file)


def manifests(table, snapshot=None):
    """The manifests of a snapshot, each with its live entries: (record of the manifest list, entries)."""
    for manifest in avro((snapshot or table.current_snapshot()).manifest_list):
        yield manifest, [entry for entry in avro(manifest["manifest_path"]) if entry["status"] != 2]


def pairs(listed):
    """A map of an entry, which manifests keep as a list of pairs."""
    return {pair["key"]: pair["value"] for pair in listed or []}


def fsck(table):
    """What `sandur fsck` finds wrong with a table."""
    folder = local(table.location())
    done = subprocess.run([str(binary()), "fsck", folder], capture_output=True, text=True, check=False)
    clean = done.returncode == 0 and done.stdout.rstrip().endswith(": 0 findings")
    return "" if clean else done.stdout + done.stderr
