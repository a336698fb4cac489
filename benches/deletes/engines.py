"""Those who delete, each with fresh tables of its own kind: Sandur and Spark on Iceberg v3, Sail on Delta."""

import os
import pathlib
import socket
import subprocess
import sys
import time

from pyiceberg.catalog.sql import SqlCatalog

from measure import drain
from sides import READY_SECONDS, Child, Failed, FlightSide, Server, free_port
from tables import make_delta, make_iceberg


class IcebergTables:
    """How a commit is seen in an Iceberg table's folder."""

    format = "Iceberg v3"

    @staticmethod
    def is_commit(file):
        return file.name.endswith(".metadata.json")


class SandurDeletes(IcebergTables, Server):
    """The server over its embedded catalog, in which the tables are registered."""

    def __init__(self, work, logs):
        warehouse = work / "sandur"
        self.folder = warehouse / "iceberg" / "bench"
        self.folder.mkdir(parents=True)
        uri = f"sqlite:///{warehouse}/catalog.db"
        self.catalog = SqlCatalog("iceberg", uri=uri, warehouse=f"file://{warehouse}/iceberg")
        self.catalog.create_namespace("bench")
        super().__init__(["--warehouse", str(warehouse)], logs)

    def make(self, name, source):
        metadata = make_iceberg(self.folder / name, source)
        self.catalog.register_table(f"bench.{name}", str(metadata))
        return f"iceberg.bench.{name}"

    def check(self, sql):
        return self.ask(sql, False)["values"]

    def delete(self, table, predicate):
        return self.update(f"DELETE FROM {table} WHERE {predicate}")


class SparkDeletes(IcebergTables, Child):
    """Spark over a Hadoop catalog; what it measures is the Java process. It does not say how many rows it deleted."""

    name, script = "Spark", "../deletes/spark_side.py"
    python = os.environ.get("SANDUR_SPARK_PYTHON")

    def __init__(self, work, logs):
        if not self.python:
            raise Failed("no Spark: start this by benches/run.sh")
        warehouse = work / "spark"
        self.folder = warehouse / "bench"
        super().__init__(warehouse, logs)

    def make(self, name, source):
        make_iceberg(self.folder / name, source)
        return f"spark.bench.{name}"

    def check(self, sql):
        return self.request(sql=sql)["values"]

    def delete(self, table, predicate):
        self.request(sql=f"DELETE FROM {table} WHERE {predicate}")


class SailDeletes(FlightSide):
    """Sail's Flight SQL server over Delta tables with deletion vectors."""

    name, format = "Sail", "Delta"

    def __init__(self, work, logs):
        self.folder = work / "sail"
        program = pathlib.Path(sys.executable).with_name("sail")
        self.version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[-1]
        port = free_port()
        super().__init__([program, "flight", "server", "--port", str(port)], port, logs)

    def _wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError as error:
                if time.monotonic() > deadline or self.child.poll() is not None:
                    raise Failed(f"Sail did not become ready: {error}\n{self.log.read_text()[-4_000:]}") from error
            time.sleep(0.1)

    @staticmethod
    def is_commit(file):
        return file.parent.name == "_delta_log" and file.suffix == ".json"

    def make(self, name, source):
        make_delta(self.folder / name, source)
        self._run(f"CREATE TABLE {name} USING delta LOCATION '{self.folder / name}'")
        return name

    def check(self, sql):
        return self._run(sql)["values"]

    def delete(self, table, predicate):
        seen = self._run(f"DELETE FROM {table} WHERE {predicate}")
        return int(seen["values"][0]) if "values" in seen else None

    def _run(self, sql):
        with self._cursor(sql) as cursor:
            cursor.execute(sql)
            return drain(cursor.fetch_record_batch())
