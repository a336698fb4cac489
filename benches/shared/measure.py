"""Reading a result, and a process's CPU and memory."""

import decimal
import os
import pathlib

from fingerprint import Fingerprint

TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 0.1  # what a process still does right after its last batch counts as well


def drain(batches, fingerprint=False):
    """Reads every batch and drops it; says rows, bytes, batches, and what was asked for of the content.

    A result of one row is returned as `values`, in text, so that engines may differ in type but not in value.
    """
    seen = {"rows": 0, "bytes": 0, "batches": 0}
    taken = Fingerprint() if fingerprint else None
    one = None
    for batch in batches:
        seen["rows"] += batch.num_rows
        seen["bytes"] += batch.nbytes
        seen["batches"] += 1
        if taken:
            taken.add(batch)
        if batch.num_rows == 1:
            one = batch
    if taken:
        seen["fingerprint"] = taken.result()
    if seen["rows"] == 1 and one is not None:
        seen["values"] = [_plain(column[0].as_py()) for column in one.columns]
    return seen


def _plain(value):
    """One spelling for a number of any type: 12, 12.0 and Decimal('12.00') are equal."""
    if isinstance(value, (int, decimal.Decimal)):
        return f"{decimal.Decimal(value).normalize():f}"
    return str(value)


class Process:
    """Figures of a running process of this user, from /proc."""

    def __init__(self, pid):
        self.folder = pathlib.Path("/proc") / str(pid)

    def cpu_seconds(self):
        """User and system time of all its threads since it started."""
        fields = (self.folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def reset_peak(self):
        """Lets the peak start again from what is resident now."""
        (self.folder / "clear_refs").write_text("5")

    def peak_bytes(self):
        """The most that was resident since the last reset."""
        for line in (self.folder / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"{self.folder}/status names no VmHWM")
