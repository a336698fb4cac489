"""Sandur beside DuckDB on the same table in the same run. `benches/README.md` says what is measured.

    benches/full_scan/run.sh [--rounds 5] [--rows 6000000] [--deleted 0.1] [--files 8] [--folder DIR]

Exit code 0 when both agree on the rows and Sandur keeps the limits, else 1.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pyarrow

import make_table
from common import QUERIES, Process, drain

CPU_LIMIT = 3.0  # times DuckDB's, of the full scan
PEAK_LIMIT = 1 << 30  # bytes resident in the server
READY_SECONDS = 60
ANSWER_SECONDS = 300
SETTLE_SECONDS = 0.1  # what a process still does right after its last batch counts as well

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


class Sandur:
    """A server over the table, asked through ADBC from this process."""

    name = "Sandur"

    def __init__(self, folder, logs):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        program = binary()
        self.log = pathlib.Path(logs) / "server.log"
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
        if not version:
            raise Failed(f"{program} --version says nothing: is it the server?")
        self.version = version[-1]
        self.table = f'files."default"."{folder.name}"'
        with self.log.open("wb") as log:
            self.child = subprocess.Popen(
                [program, "serve", str(folder), "--listen", f"127.0.0.1:{port}"],
                cwd=logs,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.process = Process(self.child.pid)
        try:
            self._wait_until_ready()
            self.connection = flightsql.connect(f"grpc+tcp://127.0.0.1:{port}", autocommit=True)
        except BaseException:
            self.stop()
            raise

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

    def ask(self, sql, fingerprint):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(sql.format(table=self.table))
                return drain(cursor.fetch_record_batch(), fingerprint)
        except (adbc_driver_manager.Error, pyarrow.ArrowException, OSError, ValueError, TypeError) as error:
            raise Failed(f"Sandur: {sql}: {error}\n{self.log.read_text()[-2_000:]}") from error

    def stop(self):
        if hasattr(self, "connection"):
            self.connection.close()
        end(self.child)


class DuckDB:
    """DuckDB in a child process (`duckdb_side.py`)."""

    name = "DuckDB"

    def __init__(self, folder, logs):
        self.log = pathlib.Path(logs) / "duckdb.log"
        with self.log.open("wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, str(HERE / "duckdb_side.py"), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.process = Process(self.child.pid)
        try:
            self.version = self._answer()["version"]
        except BaseException:
            self.stop()
            raise

    def _answer(self):
        if not select.select([self.child.stdout], [], [], ANSWER_SECONDS)[0]:
            raise Failed(f"DuckDB gave no answer within {ANSWER_SECONDS} s")
        line = self.child.stdout.readline()
        answer = json.loads(line) if line else {"error": "ended"}
        if "error" in answer:
            raise Failed(f"DuckDB: {answer['error']}\n{self.log.read_text()[-2_000:]}")
        return answer

    def ask(self, sql, fingerprint):
        self.child.stdin.write(json.dumps({"sql": sql, "fingerprint": fingerprint}) + "\n")
        self.child.stdin.flush()
        return self._answer()

    def stop(self):
        self.child.stdin.close()
        end(self.child)


def end(child):
    """Asks a child to end; kills it when it does not."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        child.wait(timeout=30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def agree(side, sql, by_rows, expected):
    """One untimed call, also the warm-up: what the side found, which must be what was found before."""
    found = side.ask(sql, by_rows)
    content = found["fingerprint"] if by_rows else found["values"]
    if expected is not None and content != expected:
        raise Failed(f"{side.name} differs on {sql}\n expected {expected}\n    found {content}")
    return content


def measure(side, sql):
    """One timed call."""
    side.process.reset_peak()
    own = sum(os.times()[:2])
    cpu, start = side.process.cpu_seconds(), time.perf_counter()
    seen = side.ask(sql, False)
    wall = time.perf_counter() - start
    own = sum(os.times()[:2]) - own
    time.sleep(SETTLE_SECONDS)
    return {
        "cpu": side.process.cpu_seconds() - cpu,
        "wall": wall,
        "peak": side.process.peak_bytes(),
        "client_cpu": own,
        "rows": seen["rows"],
        "bytes": seen["bytes"],
        "batches": seen["batches"],
    }


def spread(rounds, key, scale=1):
    values = [one[key] / scale for one in rounds]
    return min(values), statistics.median(values), max(values)


def table_at(given):
    """The folder of the table, made when it is not there, and what its rows must be."""
    kind = f"{given.rows}-rows-{given.deleted}-deleted-{given.files}-files"
    folder = pathlib.Path(given.folder or CACHE / "bench" / "full_scan" / kind / "lineitem").resolve()
    wanted = make_table.arguments_of(given.rows, given.deleted, given.files)
    if not folder.exists():
        print(f"writing the table to {folder}", file=sys.stderr)
        make_table.make_table(folder, given.rows, given.deleted, given.files)
    properties = make_table.properties(folder) or {}
    if properties.get("bench.arguments") != wanted:
        raise Failed(f"{folder} holds another table ({properties.get('bench.arguments')}): remove it or name another --folder")
    return folder, json.loads(properties["bench.expected"])


def run(given, logs):
    folder, expected = table_at(given)
    print(f"table: {given.rows:,} rows, {given.rows - expected['rows']:,} deleted by deletion vectors, "
          f"{given.files} data files")  # fmt: skip
    kinds = [DuckDB] if given.duckdb_only else [Sandur, DuckDB]
    sides, figures, peak = [], {}, 0
    try:
        for kind in kinds:
            sides.append(kind(folder, logs))
        print(", ".join(f"{side.name} {side.version}" for side in sides) + f"; {given.rounds} rounds; "
              f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")  # fmt: skip
        for name, sql, by_rows in QUERIES:
            # What the generator knows; else the first side's answer is what the second's must be.
            content = {"full": expected, "count": [str(expected["rows"])]}.get(name)
            for side in sides:
                content = agree(side, sql, by_rows, content)
                side.ask(sql, False)
                peak = max(peak, side.process.peak_bytes()) if side.name == "Sandur" else peak
            rounds = {side.name: [] for side in sides}
            for _ in range(given.rounds):
                for side in sides:
                    rounds[side.name].append(measure(side, sql))
            for side, done in rounds.items():
                if len({one["rows"] for one in done}) != 1:
                    raise Failed(f"{side} gave different row counts for {sql}")
                if side == "Sandur":
                    peak = max(peak, *(one["peak"] for one in done))
            figures[name] = rounds
    finally:
        for side in sides:
            side.stop()
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": {"rows": given.rows, "deleted": given.deleted, "files": given.files, "rounds": given.rounds},
        "live_rows": expected["rows"],
        "versions": {side.name: side.version for side in sides} | {"pyarrow": pyarrow.__version__},
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "load": os.getloadavg()},
        "queries": figures,
        "server_peak": peak,
    }


def report(result):
    """Prints the table; returns the CPU ratio of the full scan, or None without a server."""
    line = "{:<15} {:<7} {:>20} {:>20} {:>8} {:>10} {:>9}"
    print()
    print(line.format("query", "engine", "CPU s", "wall s", "peak MiB", "Mrows/CPU s", "CPU ratio"))
    print(line.format("", "", "min/median/max", "min/median/max", "", "", "").rstrip())
    gate = None
    for name, rounds in result["queries"].items():
        medians = {side: spread(done, "cpu")[1] for side, done in rounds.items()}
        for side, done in rounds.items():
            ratio = medians["Sandur"] / medians["DuckDB"] if side == "Sandur" and medians["DuckDB"] else None
            if name == "full" and ratio is not None:
                gate = ratio
            rate = done[0]["rows"] / medians[side] / 1e6 if done[0]["rows"] > 1 and medians[side] else None
            print(
                line.format(
                    name,
                    side,
                    "{:.2f} / {:.2f} / {:.2f}".format(*spread(done, "cpu")),
                    "{:.2f} / {:.2f} / {:.2f}".format(*spread(done, "wall")),
                    f"{spread(done, 'peak', 1 << 20)[2]:.0f}",
                    f"{rate:.2f}" if rate else "",
                    f"{ratio:.2f}" if ratio is not None else "",
                ).rstrip()
            )
    print()
    if gate is not None:
        client = spread(result["queries"]["full"]["Sandur"], "client_cpu")[1]
        print(f"client of the full scan (ADBC, this process): {client:.2f} CPU s, not part of either side's figure")
    return gate


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--deleted", type=float, default=0.1)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--folder", help="where the table is, or is made [default: below the cache]")
    parser.add_argument("--duckdb-only", action="store_true", help="no server, no limits: DuckDB's figures alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sandur-bench-") as logs:
        try:
            result = run(given, logs)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    ratio = report(result)
    kept = True
    if ratio is not None:
        kept = ratio <= CPU_LIMIT and result["server_peak"] <= PEAK_LIMIT
        result |= {"cpu_ratio": ratio, "limits": {"cpu_ratio": CPU_LIMIT, "peak": PEAK_LIMIT}, "kept": kept}
        print(f"CPU of the full scan: {ratio:.2f} times DuckDB's (at most {CPU_LIMIT:g})")
        print(f"peak memory of the server: {result['server_peak'] / (1 << 20):.0f} MiB (at most {PEAK_LIMIT >> 20})")
        print("limits kept" if kept else "LIMITS NOT KEPT")
    results = HERE.parent / "results"
    results.mkdir(exist_ok=True)
    stamp = result["time"].replace(":", "").replace("+0000", "Z")
    file = results / f"full-scan-{stamp}.json"
    file.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"written to {file.relative_to(HERE.parents[1])}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
