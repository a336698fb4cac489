"""Reading a result, and a process's CPU and memory."""

import pathlib
import time

from fingerprint import Fingerprint
from spelling import plain

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
        seen["values"] = [plain(column[0].as_py()) for column in one.columns]
    return seen


class Process:
    """Figures of a running process of this user, from its clock and /proc."""

    def __init__(self, pid):
        self.folder = pathlib.Path("/proc") / str(pid)
        # What clock_getcpuclockid(3) gives: /proc counts in steps of 10 ms, too coarse for one request.
        self.clock = ~pid << 3 | 2

    def cpu_seconds(self):
        """User and system time of all its threads since it started, those that have ended too."""
        return time.clock_gettime(self.clock)

    def reset_peak(self):
        """Lets the peak start again from what is resident now."""
        (self.folder / "clear_refs").write_text("5")

    def peak_bytes(self):
        """The most that was resident since the last reset."""
        for line in (self.folder / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"{self.folder}/status names no VmHWM")
