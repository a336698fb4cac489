"""Writing ten million rows: Sandur by INSERT .. SELECT and by AppendRows, beside DuckDB's and pyiceberg's writers.

    benches/run.sh writing [--rows 10000000] [--rounds 3] [--folder DIR]

`benches/README.md` says what is measured. Exit code 0 when all wrote the rows that they were given and the server
keeps its memory limit, else 1.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import lineitem
from measure import SETTLE_SECONDS
from sides import CACHE, Child, Failed, Server, keep

PEAK_LIMIT = 1 << 30  # bytes resident in the server
FILES = 8
PLAIN = pa.schema([field.remove_metadata() for field in lineitem.SCHEMA])
CHECK = "SELECT count(*), sum(l_orderkey), sum(l_extendedprice), min(l_comment), max(l_shipdate) FROM {table}"


def source_at(given):
    """The folder of the source's Parquet files, made when it is not there."""
    folder = pathlib.Path(given.folder or CACHE / "bench" / "writing" / f"{given.rows}-rows").resolve()
    return lineitem.write_files(folder, given.rows, FILES, write_plain)


def write_plain(path, file_number, rows, pool):
    """Writes a Parquet file that knows nothing of field ids."""
    table = lineitem.make_rows(file_number, rows, pool).cast(PLAIN)
    pq.write_table(table, path, compression="zstd", store_decimal_as_integer=True)


def make_catalog(warehouse, source):
    """A catalog that names the source's files as table `bench.source`."""
    (warehouse / "iceberg").mkdir(parents=True)
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}/iceberg")
    catalog.create_namespace("bench")
    # Files are only read below the warehouse.
    here = warehouse / "iceberg" / "bench" / "source" / "data"
    here.mkdir(parents=True)
    files = []
    for file in sorted(source.glob("*.parquet")):
        os.link(file, here / file.name)
        files.append(str(here / file.name))
    catalog.create_table("bench.source", PLAIN).add_files(files)


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, content):
    """A length-delimited field of a protobuf message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def append_rows(schema, table):
    """The command `sandur.v1.AppendRows` as a descriptor."""
    reference = field(2, schema.encode()) + field(3, table.encode())
    message = field(1, b"type.googleapis.com/sandur.v1.AppendRows") + field(2, field(1, reference))
    return flight.FlightDescriptor.for_command(message)


def stream(server, source, table):
    """Sends the source's rows, a file's row groups after the other."""
    client = flight.FlightClient(f"grpc+tcp://127.0.0.1:{server.port}")
    writer, answers = client.do_put(append_rows("bench", table), PLAIN)
    for file in sorted(source.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(65_536):
            writer.write_batch(batch)
    writer.done_writing()
    answers.read()
    writer.close()
    client.close()


class DuckDBWriter(Child):
    """DuckDB, which writes a Parquet file: it commits to no catalog of this kind."""

    name, script = "DuckDB", "../writing/duckdb_writer.py"


class PyIcebergWriter(Child):
    """pyiceberg, which appends what it holds in memory."""

    name, script = "pyiceberg", "../writing/pyiceberg_writer.py"


def timed(process, work):
    process.reset_peak()
    cpu, start = process.cpu_seconds(), time.perf_counter()
    work()
    wall = time.perf_counter() - start
    time.sleep(SETTLE_SECONDS)
    return {"wall": wall, "cpu": process.cpu_seconds() - cpu, "peak": process.peak_bytes()}


def run(given, logs):
    source = source_at(given)
    work = pathlib.Path(tempfile.mkdtemp(prefix="sandur-bench-", dir=CACHE / "bench"))
    figures = {name: [] for name in ("Sandur INSERT .. SELECT", "Sandur AppendRows", "DuckDB COPY", "pyiceberg append")}
    sides = []
    try:
        make_catalog(work / "warehouse", source)
        server = Server(["--warehouse", str(work / "warehouse")], logs)
        sides.append(server)
        sides += [DuckDBWriter(source, logs), PyIcebergWriter(work / "pyiceberg", logs)]
        _, duckdb, pyiceberg = sides
        print(", ".join(f"{side.name} {side.version}" for side in sides) + f"; {given.rows:,} rows, {given.rounds} rounds; "
              f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")  # fmt: skip
        expected = server.ask(CHECK.format(table="iceberg.bench.source"), False)["values"]
        for number in range(given.rounds):
            made = {}

            def insert(table):
                server.update(f"INSERT INTO iceberg.bench.{table} SELECT * FROM iceberg.bench.source")

            for name, table, fill in [
                ("Sandur INSERT .. SELECT", f"i{number}", insert),
                ("Sandur AppendRows", f"a{number}", lambda table: stream(server, source, table)),
            ]:
                server.update(f"CREATE TABLE iceberg.bench.{table} AS SELECT * FROM iceberg.bench.source WHERE false")
                figures[name].append(timed(server.process, lambda: fill(table)))
                made[name] = server.ask(CHECK.format(table=f"iceberg.bench.{table}"), False)["values"]
            out = work / f"duckdb-{number}.parquet"
            figures["DuckDB COPY"].append(timed(duckdb.process, lambda: duckdb.request(write=str(out))))
            made["DuckDB COPY"] = duckdb.request(check=CHECK.format(table=f"read_parquet('{out}')"))["values"]
            out.unlink()
            pyiceberg.request(load=str(source))
            figures["pyiceberg append"].append(timed(pyiceberg.process, lambda: pyiceberg.request(write=f"t{number}")))
            for name, values in made.items():
                if values != expected:
                    raise Failed(f"{name} wrote other rows\n expected {expected}\n    found {values}")
    finally:
        for side in sides:
            side.stop()
        shutil.rmtree(work, ignore_errors=True)
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": {"rows": given.rows, "rounds": given.rounds},
        "versions": {side.name: side.version for side in sides} | {"pyarrow": pa.__version__},
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "load": os.getloadavg()},
        "figures": figures,
    }


def report(result):
    """Prints the table; returns the highest peak of the server in bytes."""
    rows = result["arguments"]["rows"]
    line = "{:<25} {:>22} {:>10} {:>10} {:>9}"
    print()
    print(line.format("writer", "wall s min/median/max", "rows/s", "CPU s", "peak MiB"))
    for name, rounds in result["figures"].items():
        walls = [one["wall"] for one in rounds]
        median = statistics.median(walls)
        print(
            line.format(
                name,
                f"{min(walls):.1f} / {median:.1f} / {max(walls):.1f}",
                f"{rows / median:,.0f}",
                f"{statistics.median(one['cpu'] for one in rounds):.1f}",
                f"{max(one['peak'] for one in rounds) / (1 << 20):.0f}",
            )
        )
    print()
    return max(one["peak"] for name, rounds in result["figures"].items() if name.startswith("Sandur") for one in rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the source is, or is made [default: below the cache]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sandur-bench-") as logs:
        try:
            result = run(given, logs)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    peak = report(result)
    kept = peak <= PEAK_LIMIT
    print(f"peak memory of the server: {peak >> 20} MiB (at most {PEAK_LIMIT >> 20})")
    print("limit kept" if kept else "LIMIT NOT KEPT")
    print(f"written to {keep('writing', result | {'kept': kept, 'limits': {'peak': PEAK_LIMIT}})}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
