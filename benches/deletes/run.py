"""DELETE of one row and of a tenth of the rows: Sandur and Spark on Iceberg v3, Sail on Delta with deletion vectors.

    benches/run.sh deletes [--rows 6000000] [--rounds 5] [--folder DIR]

`benches/README.md` says what is measured. Exit code 0 when all deleted the rows that were named and no others, and
Sandur keeps the limits, else 1.
"""

import argparse
import datetime
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile
import time

import pyarrow

from engines import SailDeletes, SandurDeletes, SparkDeletes
from measure import SETTLE_SECONDS
from sides import CACHE, Failed, keep
from tables import CHECK, FILES, Rows, source_at

ONE, SPREAD = "one row", "a tenth, spread"
WALL_LIMITS = {ONE: 0.040, SPREAD: 0.2}  # seconds, on an idle machine
BYTES_LIMITS = {ONE: 16_000}
IDLE = 0.1  # a machine is idle when others had at most this share of its processors
WARM_UPS = 2  # rounds that are not counted


class Others:
    """How much of the processors others had while something was measured; theirs too that the host took away."""

    def __init__(self):
        self.wall = self.busy = 0.0

    @staticmethod
    def all_seconds():
        """User, nice, system, interrupts and stolen time of all processors."""
        with open("/proc/stat", encoding="ascii") as lines:
            fields = [int(field) for field in lines.readline().split()[1:9]]
        return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")

    def add(self, wall, busy):
        self.wall += wall
        self.busy += busy

    def share(self):
        return max(0.0, self.busy / (self.wall * os.cpu_count()))


def sizes(folder):
    """The size of every file; not Hadoop's checksum files, which are no part of a table."""
    return {
        file: file.stat().st_size
        for file in pathlib.Path(folder).rglob("*")
        if file.is_file() and not (file.name.startswith(".") and file.name.endswith(".crc"))
    }


def same(side, what, found, expected):
    if found != expected:
        raise Failed(f"{side.name}: {what}: expected {expected}, found {found}")


def measure(side, name, source, rows, predicate, deleted, left, others):
    """One timed DELETE from a fresh table, whose rows are checked before and after."""
    table = side.make(name, source)
    same(side, "rows of a fresh table", side.check(CHECK.format(table=table)), rows)
    folder = side.folder / name
    before = sizes(folder)

    own, machine = time.process_time(), others.all_seconds()
    cpu, start = side.process.cpu_seconds(), time.perf_counter()
    said = side.delete(table, predicate)
    wall = time.perf_counter() - start
    time.sleep(SETTLE_SECONDS)
    cpu, whole = side.process.cpu_seconds() - cpu, time.perf_counter() - start
    others.add(whole, others.all_seconds() - machine - cpu - (time.process_time() - own))

    new = {file: size for file, size in sizes(folder).items() if file not in before}
    if said is not None:
        same(side, f"rows deleted by {predicate}", said, deleted)
    same(side, f"rows left by {predicate}", side.check(CHECK.format(table=table)), left)
    same(side, "commits", sum(side.is_commit(file) for file in new), 1)
    same(side, "data files written", [file.name for file in new if file.suffix == ".parquet"], [])
    return {"wall": wall, "cpu": cpu, "bytes": sum(new.values()), "files": len(new), "deleted": deleted}


def run(given, logs):
    source = source_at(given)
    rows = Rows(source)
    everything = rows.all()
    work = pathlib.Path(tempfile.mkdtemp(prefix="sandur-bench-", dir=CACHE / "bench"))
    kinds = [SailDeletes, SparkDeletes] if given.peers_only else [SandurDeletes, SailDeletes, SparkDeletes]
    sides, others = [], Others()
    figures = {what: {kind.name: [] for kind in kinds} for what in (ONE, SPREAD)}
    try:
        for kind in kinds:
            sides.append(kind(work, logs))
        print(", ".join(f"{side.name} {side.version} ({side.format})" for side in sides) + f"; {given.rows:,} rows in "
              f"{FILES} files, {given.rounds} rounds; {os.cpu_count()} cores")  # fmt: skip
        for number in range(WARM_UPS + given.rounds):
            if number == WARM_UPS:
                others = Others()
            for what, choose in [(ONE, rows.one), (SPREAD, rows.spread)]:
                predicate, deleted, left = choose(number)
                for side in sides:
                    name = f"t{number}_{'one' if what == ONE else 'spread'}"
                    figure = measure(side, name, source, everything, predicate, deleted, left, others)
                    if number >= WARM_UPS:
                        figures[what][side.name].append(figure)
    finally:
        for side in sides:
            side.stop()
        shutil.rmtree(work, ignore_errors=True)
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": {"rows": given.rows, "rounds": given.rounds},
        "versions": {side.name: side.version for side in sides} | {"pyarrow": pyarrow.__version__},
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "load": os.getloadavg(),
            "others": others.share(),
        },
        "figures": figures,
    }


def median(rounds, key):
    return statistics.median(one[key] for one in rounds)


def report(result):
    """Prints the table."""
    line = "{:<16} {:<7} {:>26} {:>26} {:>9} {:>6}"
    print()
    print(line.format("DELETE", "engine", "wall ms min/median/max", "CPU ms min/median/max", "bytes", "files"))
    for what, found in result["figures"].items():
        for side, rounds in found.items():
            spread = {
                key: " / ".join(
                    f"{1000 * value:.1f}"
                    for value in (min(r[key] for r in rounds), median(rounds, key), max(r[key] for r in rounds))
                )
                for key in ("wall", "cpu")
            }
            sums = [f"{max(r[key] for r in rounds):,}" for key in ("bytes", "files")]
            print(line.format(what, side, spread["wall"], spread["cpu"], *sums))
    print()
    print(f"others had {100 * result['machine']['others']:.0f} % of the processors while this was measured")


def misses(result):
    """What Sandur does not keep, as texts. Its wall time is a limit on an idle machine, else its CPU beside the others'."""
    idle = result["machine"]["others"] <= IDLE
    for what, found in result["figures"].items():
        ours = found["Sandur"]
        if what in BYTES_LIMITS and (size := max(one["bytes"] for one in ours)) > BYTES_LIMITS[what]:
            yield f"{what}: {size:,} bytes, at most {BYTES_LIMITS[what]:,}"
        if idle and (wall := median(ours, "wall")) > WALL_LIMITS[what]:
            yield f"{what}: {1000 * wall:.1f} ms, at most {1000 * WALL_LIMITS[what]:.0f}"
        if not idle:
            cpu = median(ours, "cpu")
            for side, rounds in found.items():
                if side != "Sandur" and cpu >= median(rounds, "cpu"):
                    yield f"{what}: {1000 * cpu:.1f} ms of CPU, {side} {1000 * median(rounds, 'cpu'):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where the rows are, or are written [default: below the cache]")
    parser.add_argument("--peers-only", action="store_true", help="no server, no limits: the others' figures alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sandur-bench-") as logs:
        try:
            result = run(given, logs)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    report(result)
    if given.peers_only:
        return 0
    missed = list(misses(result))
    for text in missed:
        print(f"LIMIT NOT KEPT: {text}")
    if not missed:
        print("limits kept")
    limits = {"wall": WALL_LIMITS, "bytes": BYTES_LIMITS, "idle": IDLE}
    print(f"written to {keep('deletes', result | {'kept': not missed, 'missed': missed, 'limits': limits})}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
