"""A warehouse whose server is stopped at places of the code, killed there and started again.

The places are those of `src/crash.rs`; the folder that `SANDUR_STOPS` names says where to stop.
"""

import contextlib
import json
import signal
import sqlite3
import subprocess
import threading
import time

import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as flight

from conftest import binary, connect
from test_embedded_catalog import pyiceberg as pyiceberg_catalog
from wire import field, parse

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
STATES = ["UNKNOWN", "COMMITTED", "NOT_COMMITTED"]
PATIENCE = 60


def message(name, *fields):
    """A message of this project inside `google.protobuf.Any`."""
    return field(1, f"type.googleapis.com/sandur.v1.{name}") + field(2, b"".join(fields))


class Asked:
    """A call on its way, in a thread; what came of it."""

    def __init__(self, call):
        self.answer = self.error = None
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call):
        try:
            self.answer = call()
        except Exception as e:  # noqa: BLE001 - told by `end`
            # Without the frames, whose cursors belong to a server that is gone.
            self.error = e.with_traceback(None)

    def end(self):
        """The error, or nothing when the call was answered."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the call has not ended"
        return self.error


class Lake:
    """The embedded warehouse, the server on it, and pyiceberg beside it."""

    def __init__(self, start_server, folder):
        self.start_server = start_server
        self.warehouse = folder / "warehouse"
        self.stops = folder / "stops"
        self.stops.mkdir()
        self.tables = 0
        self.start()
        self.run("CREATE SCHEMA shop")
        self.pyiceberg = pyiceberg_catalog(self.warehouse)

    def start(self):
        self.server = self.start_server(["--warehouse", str(self.warehouse)], env={"SANDUR_STOPS": str(self.stops)})

    def new_name(self):
        self.tables += 1
        return f"t{self.tables}"

    # stops and kills

    def stop_at(self, place, times=1):
        (self.stops / place).write_text(str(times))

    def wait_for(self, place, asked):
        """Until the server stands at the place."""
        deadline = time.monotonic() + PATIENCE
        while not (self.stops / f"{place}.reached").exists():
            assert time.monotonic() < deadline and asked.error is None and asked.answer is None, (
                f"the server did not come by {place}: {asked.error or asked.answer}"
            )
            time.sleep(0.002)

    def stopped_at(self, place, call, times=1):
        """Sends a request and waits until the server stands at the place; the call that is on its way."""
        self.stop_at(place, times)
        asked = Asked(call)
        self.wait_for(place, asked)
        return asked

    def go_on(self, place):
        (self.stops / f"{place}.reached").unlink()
        (self.stops / place).unlink()

    def kill(self):
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.clear()

    def clear(self):
        for file in self.stops.iterdir():
            file.unlink()

    # the server

    def run(self, sql, parameters=None):
        """Runs a statement; the rows it says it changed."""
        with connect(self.server) as connection, connection.cursor() as cursor:
            if parameters is None:
                cursor.execute(sql)
            else:
                cursor.executemany(sql, parameters)
            return cursor.rowcount

    def rows(self, table):
        """All rows in order; `None` where there is no such table."""
        try:
            with connect(self.server) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM shop.{table} ORDER BY 1")
                return [tuple(row) for row in cursor.fetchall()]
        except adbc_driver_manager.Error as e:
            if e.status_code == adbc_driver_manager.AdbcStatusCode.NOT_FOUND:
                return None
            raise

    def append(self, table, rows, key):
        """Appends by DoPut under an idempotency key: rows and snapshot of the answer."""
        ref = field(2, "shop") + field(3, table)
        descriptor = flight.FlightDescriptor.for_command(message("AppendRows", field(1, ref), field(2, key)))
        data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
        with flight.connect(f"grpc+tcp://127.0.0.1:{self.server.port}") as client:
            writer, reader = client.do_put(descriptor, SCHEMA)
            with writer:
                writer.write_table(data)
                writer.done_writing()
                result = parse(reader.read().to_pybytes())
        return result.get(2, [0])[0], result[3][0]

    def status(self, commit_id=None, key=None):
        """What CommitStatus says of an id or a key: state and snapshot."""
        of = field(1, commit_id) if commit_id else field(2, key)
        with flight.connect(f"grpc+tcp://127.0.0.1:{self.server.port}") as client:
            action = flight.Action("CommitStatus", message("CommitStatus", of))
            (answer,) = client.do_action(action, flight.FlightCallOptions(timeout=PATIENCE))
        result = parse(parse(answer.body.to_pybytes()).get(2, [b""])[0])
        return STATES[result.get(1, [0])[0]], result.get(2, [None])[0]

    # what lies there, as others see it

    def pointer(self, table):
        """The metadata file that the catalog names."""
        with contextlib.closing(sqlite3.connect(self.warehouse / "catalog.db")) as opened:
            found = opened.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = 'shop' AND table_name = ?", (table,)
            )
            return next((location for (location,) in found), None)

    def theirs(self, table):
        """All rows in order, as pyiceberg reads them; `None` where there is no such table."""
        if self.pointer(table) is None:
            return None
        read = self.pyiceberg.load_table(f"shop.{table}").scan().to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in read), key=lambda row: row[0])

    def snapshots(self, table):
        """Commit id and snapshot id, the oldest first; another writer's have no commit id."""
        found = self.pyiceberg.load_table(f"shop.{table}").snapshots()
        return [(s.summary.additional_properties.get("sandur.commit-id"), s.snapshot_id) for s in found]

    def journal_file(self):
        return self.warehouse / "catalog.db-commits.jsonl"

    def journalled(self, table):
        """The ids of commits to the table that were sent since the server started, in order."""
        file = self.journal_file()
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        opened = [line["open"] for line in lines if "open" in line]
        return list(dict.fromkeys(line["entry"]["commit_id"] for line in opened if line["table"] == table))

    def fsck(self, table):
        location = self.pointer(table).removeprefix("file://")
        done = subprocess.run([str(binary()), "fsck", location], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.rstrip().endswith(": 0 findings"), done.stdout + done.stderr
