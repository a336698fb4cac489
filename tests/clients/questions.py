"""What the collection asks of its tables beside the current rows, and which answer to trust.

For each snapshot, branch and tag of a case: the rows it must give, with who says so. The order of trust for a
snapshot is that of the collection's `ORIGINS.md`: an answer worked out for it and confirmed by engines; an entry's
`expected`; the answer of both engines, or of the one that could read it, unless the case is one of those whose
delete files name their data files by another prefix (those engines compared raw strings); the table's expected rows
for its current snapshot; the number of records in the snapshot's summary where nothing was ever deleted. What
is left has no answer to compare with: it is asked all the same, and named at the end of the run.
"""

import dataclasses
import functools
import gzip
import json

RAW_PATHS = "reference evaluator (ours, raw path strings compared)"
ENGINES = ("duckdb 1.5.5", "pyiceberg 0.12.0")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a query must give; `doc` has the keys of `expected.json`: row_count, columns, schema, rows, sha256."""

    doc: dict
    source: str


@functools.cache
def metadata(file):
    """A table's metadata document."""
    data = file.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def snapshot_ids(case):
    """All snapshots that the case asks about, oldest first."""
    ids = [entry["snapshot_id"] for entry in case.doc.get("snapshots", [])]
    return ids + [entry["snapshot_id"] for entry in case.doc.get("time_travel", []) if entry["snapshot_id"] not in ids]


def snapshot_answer(case, snapshot):
    """The `Answer` of one snapshot, or None where nothing is to be trusted."""
    entry = next((e for e in case.doc.get("time_travel", []) if e["snapshot_id"] == snapshot), {})
    summary = next((e for e in case.doc.get("snapshots", []) if e["snapshot_id"] == snapshot), {})
    current = snapshot == case.doc["current_snapshot_id"]
    if "agree" in entry and "row_count" in entry:
        return Answer(entry, "worked out from the statements")
    if "expected" in entry:
        return Answer(entry["expected"], "judged")
    raw = RAW_PATHS in case.doc["engines"] and _deleted(summary) != (0, 0)
    found = {engine: entry[engine] for engine in ENGINES if entry.get(engine, {}).get("ok")}
    if found and not raw and len({result["sha256"] for result in found.values()}) == 1:
        return Answer(next(iter(found.values())), " and ".join(found))
    if current and case.expected["status"] in ("rows", "count", "published_only"):
        return Answer(case.expected, "the table's expected rows")
    if _deleted(summary) == (0, 0) and summary.get("total_records") is not None:
        return Answer({"row_count": int(summary["total_records"])}, "the snapshot's summary")
    return None


def _deleted(summary):
    """Position and equality deletes that a snapshot's summary counts."""
    return tuple(int(summary.get(f"total_{kind}_deletes") or 0) for kind in ("position", "equality"))


def missing_files(case, snapshot):
    """The manifest list of a snapshot where the case lacks it: its origin did not keep all old files."""
    for entry in metadata(case.metadata_file)["snapshots"]:
        if str(entry["snapshot-id"]) == snapshot and "manifest-list" in entry:
            path = entry["manifest-list"]
            name = path.rpartition("/")[2]
            return None if any(case.folder.glob(f"table/**/{name}")) else name
    return None


def snapshot_at(case, snapshot):
    """The timestamp (ms) at which the table's log says that this snapshot was current last, or None."""
    log = metadata(case.metadata_file).get("snapshot-log") or []
    for at, entry in enumerate(log):
        if str(entry["snapshot-id"]) == snapshot:
            moment = entry["timestamp-ms"]
            later = [e for e in log[at + 1 :] if e["timestamp-ms"] <= moment]
            if not later:
                return moment
    return None


def timestamp_literal(moment):
    """A `TIMESTAMP` literal of milliseconds since 1970, in UTC, the zone of every session."""
    import canonical

    return f"TIMESTAMP '{canonical.timestamp_text(moment, 'ms').replace('T', ' ')[:-3]}'"


def refs(case):
    """(name, entry) of each branch and tag that the case asks about."""
    return sorted(case.doc.get("refs", {}).items())


def snapshot_rows(case):
    """What the metadata table `snapshots` must hold, as {id: {column: value}}; a key that is absent is not given."""
    out = {}
    # An id is a long: one beyond its range is shown as the long of the same bits.
    long = lambda text: str(int(text) - (1 << 64)) if int(text) >= 1 << 63 else text
    for entry in case.doc.get("snapshots", []):
        row = {"committed_ms": entry["timestamp_ms"], "operation": entry["operation"], "summary": {}}
        if "parent_snapshot_id" in entry:
            row["parent_id"] = entry["parent_snapshot_id"] and long(entry["parent_snapshot_id"])
        for key in ("total_records", "total_position_deletes", "total_equality_deletes"):
            if entry.get(key) is not None:
                row["summary"][key.replace("_", "-")] = entry[key]
        out[long(entry["snapshot_id"])] = row
    return out
