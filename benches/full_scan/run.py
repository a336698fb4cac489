"""Sandur beside DuckDB on the same table in the same run. `benches/README.md` says what is measured.

    benches/run.sh full_scan [--rounds 5] [--rows 6000000] [--deleted 0.1] [--files 8] [--folder DIR]

Exit code 0 when both agree on the rows and Sandur keeps the limits, else 1.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import pyarrow

import make_table
from measure import SETTLE_SECONDS
from queries import QUERIES
from sides import CACHE, DuckDB, Failed, Sandur, keep

CPU_LIMIT = 3.0  # times DuckDB's, of the full scan
PEAK_LIMIT = 1 << 30  # bytes resident in the server


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
    print(f"written to {keep('full-scan', result)}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
