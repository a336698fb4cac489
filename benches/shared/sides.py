"""The engines side by side: each a process of its own that answers one request at a time.

A `FlightSide` is a server asked through ADBC from this process, a `Child` reads a JSON line and answers with one
(`duckdb_side.py`, `pyiceberg_side.py`).
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pyarrow

from measure import Process, drain

READY_SECONDS = 60
ANSWER_SECONDS = 300

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("SANDUR_CACHE") or pathlib.Path.home() / ".cache/sandur")


class Failed(Exception):
    """The run cannot give figures; the text says why."""


def binary():
    """The server to measure: `$SANDUR_BIN`, else the release build below the Cargo target folder."""
    named = os.environ.get("SANDUR_BIN")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "target")
    found = pathlib.Path(named) if named else target / "release" / "sandur"
    if not found.exists():
        raise Failed(f"no server at {found}: build it with `cargo build --release --bin sandur`, or set SANDUR_BIN")
    return found.resolve()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class FlightSide:
    """A server in a child process, asked through ADBC from this process."""

    name = table = connection = None

    def __init__(self, command, port, logs):
        self.port = port
        self.log = pathlib.Path(logs) / f"{self.name}.log"
        with self.log.open("wb") as log:
            self.child = subprocess.Popen(
                command, cwd=logs, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        self.process = Process(self.child.pid)
        try:
            self._wait_until_ready()
            self.connection = flightsql.connect(f"grpc+tcp://127.0.0.1:{port}", autocommit=True)
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self):
        raise NotImplementedError

    def ask(self, sql, fingerprint):
        with self._cursor(sql) as cursor:
            cursor.execute(sql.format(table=self.table))
            return drain(cursor.fetch_record_batch(), fingerprint)

    @contextlib.contextmanager
    def _cursor(self, sql):
        try:
            with self.connection.cursor() as cursor:
                yield cursor
        except (adbc_driver_manager.Error, pyarrow.ArrowException, OSError, ValueError, TypeError) as error:
            raise Failed(f"{self.name}: {sql}: {error}\n{self.log.read_text()[-2_000:]}") from error

    def stop(self):
        if self.connection:
            self.connection.close()
        end(self.child)


class Server(FlightSide):
    """Sandur with these arguments."""

    name = "Sandur"

    def __init__(self, arguments, logs):
        program, port = binary(), free_port()
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
        if not version:
            raise Failed(f"{program} --version says nothing: is it the server?")
        self.version = version[-1]
        super().__init__([program, "serve", *arguments, "--listen", f"127.0.0.1:{port}"], port, logs)

    def _wait_until_ready(self):
        deadline, printed = time.monotonic() + READY_SECONDS, b""
        while b"ready" not in printed.split(b"\n"):
            left = deadline - time.monotonic()
            more = b""
            if left > 0 and select.select([self.child.stdout], [], [], left)[0]:
                more = os.read(self.child.stdout.fileno(), 65_536)
            if not more:
                raise Failed(f"the server did not become ready:\n{printed.decode()}{self.log.read_text()[-4_000:]}")
            printed += more

    def update(self, sql):
        """Runs a statement that changes something; returns how many rows it says it changed."""
        with self._cursor(sql) as cursor:
            cursor.execute(sql)
            return cursor.rowcount


class Sandur(Server):
    """A server over one table."""

    def __init__(self, folder, logs):
        self.table = f'files."default"."{folder.name}"'
        super().__init__([str(folder)], logs)


class Child:
    """An engine in a child process of Python."""

    name = script = None
    python = sys.executable

    def __init__(self, folder, logs):
        self.log = pathlib.Path(logs) / f"{self.name}.log"
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                [self.python, str(HERE / self.script), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.process = Process(self.child.pid)
        try:
            hello = self._answer()
            self.version = hello["version"]
            self.process = Process(hello.get("pid", self.child.pid))  # where the work is done
        except BaseException:
            self.stop()
            raise

    def _answer(self):
        if not select.select([self.child.stdout], [], [], ANSWER_SECONDS)[0]:
            raise Failed(f"{self.name} gave no answer within {ANSWER_SECONDS} s")
        line = self.child.stdout.readline()
        answer = json.loads(line) if line else {"error": "ended"}
        if "error" in answer:
            raise Failed(f"{self.name}: {answer['error']}\n{self.log.read_text()[-2_000:]}")
        return answer

    def request(self, **what):
        self.child.stdin.write(json.dumps(what) + "\n")
        self.child.stdin.flush()
        return self._answer()

    def ask(self, sql, fingerprint):
        return self.request(sql=sql, fingerprint=fingerprint)

    def stop(self):
        self.child.stdin.close()
        end(self.child)


class DuckDB(Child):
    """DuckDB (`duckdb_side.py`)."""

    name, script = "DuckDB", "duckdb_side.py"


class PyIceberg(Child):
    """pyiceberg (`pyiceberg_side.py`), which has no SQL: it takes a column and the value to look up."""

    name, script = "pyiceberg", "pyiceberg_side.py"


def end(child):
    """Asks a child to end; kills it when it does not."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        child.wait(timeout=30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def keep(name, result):
    """Writes a result below `benches/results`; returns where, from the project's folder."""
    results = HERE.parent / "results"
    results.mkdir(exist_ok=True)
    stamp = result["time"].replace(":", "").replace("+0000", "Z")
    file = results / f"{name}-{stamp}.json"
    file.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return file.relative_to(HERE.parents[1])
