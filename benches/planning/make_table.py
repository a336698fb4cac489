"""Writes the tables of the planning benchmark: many small data files, and many commits.

`points`: one append of `files` data files of ten rows, spread over `manifests` manifests. `commits`: `commits` appends
of one data file each, whose manifests are merged a hundred at a time, as writers do by default. Each data file holds
the next ten ids, so its bounds of `id` belong to it alone; rows follow from the id (`row`).
"""

import datetime
import json
import os
import pathlib
import shutil
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

import iceberg_files

ROWS_A_FILE = 10
MERGE_AT = 100  # the default of commit.manifest.min-count-to-merge
FIRST_MS = 1_767_225_600_000  # 2026-01-01; a commit each minute
FIRST_DAY = datetime.date(2000, 1, 1)


def _field(number, name, kind):
    return pa.field(name, kind, False, metadata={"PARQUET:field_id": str(number)})


SCHEMA = pa.schema(
    [
        _field(1, "id", pa.int64()),
        _field(2, "name", pa.string()),
        _field(3, "amount", pa.int64()),
        _field(4, "day", pa.date32()),
    ]
)
TABLE_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": number, "name": name, "required": True, "type": kind}
        for number, (name, kind) in enumerate([("id", "long"), ("name", "string"), ("amount", "long"), ("day", "date")], 1)
    ],
}


def row(number):
    """The row of an id."""
    return [number, f"item-{number * 7919 % 1_000_003:07}", number * 31 % 10_007, FIRST_DAY + datetime.timedelta(number % 9_000)]


def _data_file(path, at):
    columns = list(zip(*(row(number) for number in range(at * ROWS_A_FILE, (at + 1) * ROWS_A_FILE))))
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA)]
    pq.write_table(pa.table(arrays, schema=SCHEMA), path, compression="zstd")

    def each(value):
        return [{"key": number, "value": value(field.type, values)} for number, (field, values) in enumerate(zip(SCHEMA, columns), 1)]

    return iceberg_files.data_file(
        path,
        ROWS_A_FILE,
        column_sizes=each(lambda kind, values: 64),
        value_counts=each(lambda kind, values: ROWS_A_FILE),
        null_value_counts=each(lambda kind, values: 0),
        lower_bounds=each(lambda kind, values: iceberg_files.bound(kind, min(values))),
        upper_bounds=each(lambda kind, values: iceberg_files.bound(kind, max(values), upper=True)),
        split_offsets=[4],
        sort_order_id=0,
    )


def _snapshot(metadata, number, manifests, files, total):
    snapshot = 4_000_000_000_000_000_000 + number
    parent = snapshot - 1 if number > 1 else None
    path = metadata / f"snap-{snapshot}.avro"
    entry = {
        "snapshot-id": snapshot,
        "sequence-number": number,
        "timestamp-ms": FIRST_MS + 60_000 * number,
        "manifest-list": iceberg_files.write_manifest_list(
            path, manifests, version=2, snapshot=snapshot, parent=parent, sequence=number
        ),
        "summary": {
            "operation": "append",
            "added-data-files": str(files),
            "added-records": str(files * ROWS_A_FILE),
            "total-data-files": str(total),
            "total-records": str(total * ROWS_A_FILE),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
        },
        "schema-id": 0,
    }
    return entry if parent is None else {**entry, "parent-snapshot-id": parent}


def _write_metadata(folder, snapshots, properties):
    newest = snapshots[-1]
    document = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, folder.name)),
        "location": str(folder),
        "last-sequence-number": newest["sequence-number"],
        "last-updated-ms": newest["timestamp-ms"],
        "last-column-id": len(SCHEMA),
        "current-schema-id": 0,
        "schemas": [TABLE_SCHEMA],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": properties,
        "current-snapshot-id": newest["snapshot-id"],
        "refs": {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in snapshots],
        "metadata-log": [
            {"metadata-file": str(folder / "metadata" / f"v{number}.metadata.json"), "timestamp-ms": s["timestamp-ms"]}
            for number, s in list(enumerate(snapshots, 1))[-101:-1]  # writers keep a hundred
        ],
    }
    version = len(snapshots)
    (folder / "metadata" / f"v{version}.metadata.json").write_text(json.dumps(document), "utf-8")
    (folder / "metadata" / "version-hint.text").write_text(str(version), "utf-8")


def _write_points(folder, arguments):
    metadata, data = folder / "metadata", folder / "data"
    files = [_data_file(data / f"{at:05}.parquet", at) for at in range(arguments["files"])]
    size = -(-len(files) // arguments["manifests"])
    manifests = [
        iceberg_files.write_manifest(
            metadata / f"m{at}.avro",
            TABLE_SCHEMA,
            files[at * size : (at + 1) * size],
            version=2,
            snapshot=4_000_000_000_000_000_001,
            sequence=1,
        )
        for at in range(arguments["manifests"])
    ]
    return [_snapshot(metadata, 1, manifests, len(files), len(files))]


def _write_commits(folder, arguments):
    metadata, data = folder / "metadata", folder / "data"
    merged, recent, recent_files, snapshots = [], [], [], []
    for number in range(1, arguments["commits"] + 1):
        numbers = {"version": 2, "snapshot": 4_000_000_000_000_000_000 + number, "sequence": number}
        file = _data_file(data / f"{number - 1:05}.parquet", number - 1)
        recent.append(iceberg_files.write_manifest(metadata / f"a{number}.avro", TABLE_SCHEMA, [file], **numbers))
        recent_files.append((numbers, file))
        if len(recent) == MERGE_AT:
            merged.append(iceberg_files.write_merged_manifest(metadata / f"m{number}.avro", TABLE_SCHEMA, recent_files, **numbers))
            recent, recent_files = [], []
        snapshots.append(_snapshot(metadata, number, merged + recent, 1, number))
    return snapshots


WRITERS = {"points": _write_points, "commits": _write_commits}


def properties(folder):
    """The properties of a table made before, or None."""
    hint = pathlib.Path(folder) / "metadata" / "version-hint.text"
    if not hint.exists():
        return None
    return json.loads((hint.parent / f"v{hint.read_text().strip()}.metadata.json").read_text("utf-8"))["properties"]


def make_table(folder, kind, arguments):
    """Writes a table at a folder that is not there yet; after a failure nothing is left of it."""
    folder = pathlib.Path(os.path.abspath(folder))
    (folder / "data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    try:
        snapshots = WRITERS[kind](folder, arguments)
        _write_metadata(folder, snapshots, {"bench.arguments": json.dumps({"generator": 1, "kind": kind, **arguments}, sort_keys=True)})
    except BaseException:
        shutil.rmtree(folder)
        raise
