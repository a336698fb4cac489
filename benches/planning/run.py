"""Sandur beside DuckDB and pyiceberg: finding one row among many files, and opening a table of many commits.

    benches/run.sh planning [--rounds 5] [--files 10000] [--commits 1000] [--folder DIR]

`benches/README.md` says what is measured. Exit code 0 when all give the same rows and Sandur's median wall time is
at most that of the better of the others in every measurement, else 1.
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
from sides import CACHE, DuckDB, Failed, PyIceberg, Sandur, keep

LIMIT = 1.0  # times the better peer's median wall time
LOOK_UPS = 5  # a warm round; each asks for another id
SEED_STEP = 7_368_787  # a prime: the ids asked for are spread over the files


def tables(given):
    """(title, kind, arguments, queries) of each table; a query is `open` or `point`."""
    for manifests in (10, 100):
        arguments = {"files": given.files, "manifests": manifests}
        yield f"{given.files:,} files in {manifests} manifests", "points", arguments, ["point"]
    yield f"{given.commits:,} commits", "commits", {"commits": given.commits}, ["open", "point"]


def table_at(given, kind, arguments):
    """The folder of a table, made when it is not there."""
    name = kind + "".join(f"-{value}-{key}" for key, value in arguments.items())
    folder = (pathlib.Path(given.folder or CACHE / "bench" / "planning") / name).resolve()
    if not folder.exists():
        print(f"writing the table to {folder}", file=sys.stderr)
        make_table.make_table(folder, kind, arguments)
    found = (make_table.properties(folder) or {}).get("bench.arguments")
    if found is None or {"generator": 1, "kind": kind, **arguments} != json.loads(found):
        raise Failed(f"{folder} holds another table ({found}): remove it or name another --folder")
    return folder


def ask(side, query, number):
    """One request; fails when the rows are not those that the generator wrote."""
    if query == "open":
        seen = side.request(column=None) if side.name == "pyiceberg" else side.ask("SELECT * FROM {table} LIMIT 0", False)
        found, wanted = seen["rows"], 0
    else:
        if side.name == "pyiceberg":
            seen = side.request(column="id", value=number)
        else:
            seen = side.ask(f"SELECT * FROM {{table}} WHERE id = {number}", False)
        found, wanted = seen.get("values"), [str(value) for value in make_table.row(number)]
    if found != wanted:
        raise Failed(f"{side.name} differs on {query} {number}\n expected {wanted}\n    found {found}")


def measure(side, query, numbers):
    """Wall and CPU seconds for each of several requests."""
    cpu, start = side.process.cpu_seconds(), time.perf_counter()
    for number in numbers:
        ask(side, query, number)
    wall = time.perf_counter() - start
    time.sleep(SETTLE_SECONDS)
    return {"wall": wall / len(numbers), "cpu": (side.process.cpu_seconds() - cpu) / len(numbers)}


def cold(kinds, folder, query, numbers, rounds, logs):
    """The first request to a process that was started for it; the pages of the files are in memory."""
    found = {kind.name: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            side = kind(folder, logs)
            try:
                found[kind.name].append(measure(side, query, [next(numbers)]))
            finally:
                side.stop()
    return found


def warm(kinds, folder, query, numbers, rounds, logs):
    """Requests to one process, after two that are not counted."""
    sides, found = [], {kind.name: [] for kind in kinds}
    try:
        for kind in kinds:
            sides.append(kind(folder, logs))
            measure(sides[-1], query, [next(numbers), next(numbers)])
        for _ in range(rounds):
            for side in sides:
                found[side.name].append(measure(side, query, [next(numbers) for _ in range(LOOK_UPS)]))
    finally:
        for side in sides:
            side.stop()
    return found


def ids(count):
    """Ids of a table of so many rows, over and over, far from each other."""
    at = 0
    while True:
        at = (at + SEED_STEP) % count
        yield at


def versions(kinds, folder, logs):
    out = {}
    for kind in kinds:
        side = kind(folder, logs)
        out[kind.name] = side.version
        side.stop()
    return out


def run(given, logs):
    print(f"{given.rounds} rounds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    kinds = [DuckDB, PyIceberg] if given.peers_only else [Sandur, DuckDB, PyIceberg]
    figures, named = {}, None
    for title, kind, arguments, queries in tables(given):
        folder = table_at(given, kind, arguments)
        if named is None:
            named = versions(kinds, folder, logs)
            print(", ".join(f"{name} {version}" for name, version in named.items()))
        numbers = ids(make_table.ROWS_A_FILE * (arguments.get("files") or arguments["commits"]))
        for query in queries:
            figures[f"{title}: {query}, cold"] = cold(kinds, folder, query, numbers, given.rounds, logs)
            if query != "open":  # a table that is kept open in Python is not opened again
                figures[f"{title}: {query}, warm"] = warm(kinds, folder, query, numbers, given.rounds, logs)
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": {"files": given.files, "commits": given.commits, "rounds": given.rounds},
        "versions": named | {"pyarrow": pyarrow.__version__},
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "load": os.getloadavg()},
        "measurements": figures,
    }


def report(result):
    """Prints the table; returns the wall ratio to the better peer for each measurement."""
    line = "{:<42} {:<10} {:>24} {:>24} {:>10} {:>9}"
    print()
    print(line.format("measurement", "engine", "wall ms", "CPU ms", "wall ratio", "CPU ratio"))
    print(line.format("", "", "min/median/max", "min/median/max", "", "").rstrip())
    ratios = {}
    for name, found in result["measurements"].items():
        medians = {
            side: {key: statistics.median(one[key] for one in rounds) for key in ("wall", "cpu")}
            for side, rounds in found.items()
        }
        best = {key: min(medians[side][key] for side in medians if side != "Sandur") for key in ("wall", "cpu")}
        for side, rounds in found.items():
            spread = {
                key: " / ".join(
                    f"{1000 * value:.1f}"
                    for value in (min(r[key] for r in rounds), medians[side][key], max(r[key] for r in rounds))
                )
                for key in ("wall", "cpu")
            }
            shown = {}
            if side == "Sandur":
                ratios[name] = medians[side]["wall"] / best["wall"]
                shown = {key: medians[side][key] / best[key] for key in ("wall", "cpu") if best[key]}
            texts = [f"{shown[key]:.2f}" if key in shown else "" for key in ("wall", "cpu")]
            print(line.format(name, side, spread["wall"], spread["cpu"], *texts).rstrip())
    print()
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=1_000)
    parser.add_argument("--folder", help="where the tables are, or are made [default: below the cache]")
    parser.add_argument("--peers-only", action="store_true", help="no server, no limits: the others' figures alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sandur-bench-") as logs:
        try:
            result = run(given, logs)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    ratios = report(result)
    if given.peers_only:
        return 0
    slower = {name: ratio for name, ratio in ratios.items() if ratio > LIMIT}
    result |= {"wall_ratios": ratios, "limit": LIMIT, "kept": not slower}
    for name, ratio in slower.items():
        print(f"LIMIT NOT KEPT: {name}: {ratio:.2f} times the better peer's wall time")
    if not slower:
        print("limits kept: nowhere slower than the better of DuckDB and pyiceberg")
    print(f"written to {keep('planning', result)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
