"""Sandur beside DuckDB and deltalake: a Delta table of 100,000 files, opened, asked for one row, and refreshed.

    benches/run.sh delta_log [--rounds 5] [--files 100000] [--folder DIR]

`benches/README.md` says what is measured. Exit code 0 when all give the same rows and Sandur's median wall time is at
most that of the better of the others in every measurement, else 1.
"""

import argparse
import datetime
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import make_table
from measure import SETTLE_SECONDS
from sides import CACHE, Child, DuckDB, Failed, Sandur, keep

LIMIT = 1.0  # times the better peer's median wall time
LOOK_UPS = 5  # a warm round; each asks for another id
SEED_STEP = 7_368_787  # a prime: the ids asked for are spread over the files


class DuckDelta(DuckDB):
    """DuckDB with its delta extension."""

    script = "duckdb_delta_side.py"


class DeltaLake(Child):
    """The `deltalake` package: a table that is kept and updated, asked through its DataFusion."""

    name, script = "deltalake", "deltalake_side.py"


SIDES = [Sandur, DuckDelta, DeltaLake]


class Table:
    """The table, and which rows were asked for."""

    def __init__(self, folder, files):
        self.folder, self.files, self.at = pathlib.Path(folder), files, 0
        if not (self.folder / "_delta_log").exists():
            make_table.make_table(self.folder, files)
        self.version = len(list((self.folder / "_delta_log").glob("*.json"))) - 1
        self.newest = files + self.version + 1 - -(-files // make_table.FILES_A_COMMIT)

    def id(self):
        """An id whose file is there."""
        self.at = (self.at + SEED_STEP) % (self.files * make_table.ROWS_A_FILE)
        file = self.at // make_table.ROWS_A_FILE
        if not (self.folder / make_table.name(file)).exists():
            make_table.write_file(self.folder, file)
        return self.at

    def append(self):
        """A commit of one file more; the id of its first row."""
        self.version += 1
        make_table.append(self.folder, self.version, self.newest)
        self.newest += 1
        return (self.newest - 1) * make_table.ROWS_A_FILE


def ask(side, number):
    """One look-up; fails when it does not give one row with that id."""
    seen = side.ask(f"SELECT id FROM {{table}} WHERE id = {number}", False)
    if seen.get("values") != [str(number)]:
        raise Failed(f"{side.name} differs on id {number}: {seen}")


def timed(side, numbers):
    """Wall and CPU seconds for each of several look-ups."""
    cpu, start = side.process.cpu_seconds(), time.perf_counter()
    for number in numbers:
        ask(side, number)
    wall = time.perf_counter() - start
    time.sleep(SETTLE_SECONDS)
    return {"wall": wall / len(numbers), "cpu": (side.process.cpu_seconds() - cpu) / len(numbers)}


def measure(table, rounds, logs):
    """First open, warm look-ups and the look-up behind a commit, of fresh processes in each round."""
    found = {query: {side.name: [] for side in SIDES} for query in ("first open", "warm", "after one commit")}
    versions = {}
    for _ in range(rounds):
        for kind in SIDES:
            side = kind(table.folder, logs)
            versions[kind.name] = side.version
            try:
                found["first open"][kind.name].append(timed(side, [table.id()]))
                timed(side, [table.id()])
                found["warm"][kind.name].append(timed(side, [table.id() for _ in range(LOOK_UPS)]))
                found["after one commit"][kind.name].append(timed(side, [table.append()]))
            finally:
                side.stop()
    return found, versions


def report(found):
    """Prints the table; returns the wall ratio to the better peer for each measurement."""
    line = "{:<18} {:<10} {:>12} {:>12} {:>10} {:>9}"
    print(line.format("measurement", "engine", "wall ms", "CPU ms", "wall ratio", "CPU ratio"))
    ratios = {}
    for query, sides in found.items():
        medians = {side: {key: statistics.median(one[key] for one in rounds) for key in ("wall", "cpu")} for side, rounds in sides.items()}
        best = {key: min(of[key] for side, of in medians.items() if side != "Sandur") for key in ("wall", "cpu")}
        for side, of in medians.items():
            shown = [f"{of[key] / best[key]:.2f}" if side == "Sandur" else "" for key in ("wall", "cpu")]
            print(line.format(query, side, f"{1000 * of['wall']:.1f}", f"{1000 * of['cpu']:.1f}", *shown).rstrip())
        ratios[query] = medians["Sandur"]["wall"] / best["wall"]
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folder", help="where the table is, or is made [default: below the cache]")
    given = parser.parse_args()
    folder = pathlib.Path(given.folder or CACHE / "bench" / "delta_log" / f"files-{given.files}").resolve()
    print(f"{given.rounds} rounds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="sandur-bench-") as logs:
        try:
            found, versions = measure(Table(folder, given.files), given.rounds, logs)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    ratios = report(found)
    slower = {name: ratio for name, ratio in ratios.items() if ratio > LIMIT}
    result = {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": {"files": given.files, "rounds": given.rounds},
        "versions": versions,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "load": os.getloadavg()},
        "measurements": found,
        "wall_ratios": ratios,
        "limit": LIMIT,
        "kept": not slower,
    }
    for name, ratio in slower.items():
        print(f"LIMIT NOT KEPT: {name}: {ratio:.2f} times the better peer's wall time")
    if not slower:
        print("limits kept: nowhere slower than the better of DuckDB and deltalake")
    print(f"written to {keep('delta_log', result)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
