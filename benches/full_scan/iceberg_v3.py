"""Metadata of a version 3 table: an append, and a commit of deletion vectors when there are any.

Written by hand as the table specification says: metadata as plain JSON, manifests and manifest lists by
`iceberg_files`, which the tests share. Sequence numbers and first row ids of added files are left null in the manifests and inherited, as
other writers do it.
"""

import json
import uuid

import pyarrow as pa

import iceberg_files
from iceberg_files import bound

APPEND_ID, DELETE_ID = 5_113_290_806_184_201_001, 5_113_290_806_184_201_002
APPEND_MS, DELETE_MS = 1_767_225_600_000, 1_767_225_660_000  # 2026-01-01, a minute apart

TYPES = {pa.int64(): "long", pa.int32(): "int", pa.date32(): "date", pa.string(): "string"}


def iceberg_schema(schema):
    """The table schema of an Arrow schema of simple types whose field ids count from 1."""

    def name_of(kind):
        return f"decimal({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else TYPES[kind]

    fields = [
        {"id": field_id, "name": field.name, "required": not field.nullable, "type": name_of(field.type)}
        for field_id, field in enumerate(schema, 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def data_entry(path, parquet, schema):
    """The `data_file` of a Parquet file with one row group, from its own metadata."""
    group = parquet.row_group(0)
    chunks = [(field_id, field.type, group.column(field_id - 1)) for field_id, field in enumerate(schema, 1)]

    def each(value):
        return [{"key": field_id, "value": value(kind, chunk)} for field_id, kind, chunk in chunks]

    more = {
        "column_sizes": each(lambda kind, chunk: chunk.total_compressed_size),
        "value_counts": each(lambda kind, chunk: chunk.num_values),
        "null_value_counts": each(lambda kind, chunk: chunk.statistics.null_count),
        "lower_bounds": each(lambda kind, chunk: bound(kind, chunk.statistics.min)),
        "upper_bounds": each(lambda kind, chunk: bound(kind, chunk.statistics.max, upper=True)),
        "split_offsets": [4],
        "sort_order_id": 0,
    }
    return iceberg_files.data_file(path, parquet.num_rows, **more)


def vector_entry(path, data_file, cardinality, offset, length):
    """The `data_file` of one deletion vector in a Puffin file."""
    return iceberg_files.data_file(
        path,
        cardinality,
        content=1,
        file_format="PUFFIN",
        referenced_data_file=str(data_file),
        content_offset=offset,
        content_size_in_bytes=length,
    )


def write_metadata(folder, schema, data_files, vectors, properties):
    """Writes manifests, lists and `v1.metadata.json`, with vectors also `v2`; returns the newest file."""
    metadata = folder / "metadata"
    table_schema = iceberg_schema(schema)
    rows = sum(entry["record_count"] for entry in data_files)
    deleted = sum(entry["record_count"] for entry in vectors)

    data = _write_manifest(metadata / "append-m0.avro", table_schema, 0, APPEND_ID, 1, data_files)
    data["first_row_id"] = 0

    append = {
        "snapshot-id": APPEND_ID,
        "sequence-number": 1,
        "timestamp-ms": APPEND_MS,
        "manifest-list": _write_list(metadata, APPEND_ID, None, 1, [data], 0),
        "summary": {
            "operation": "append",
            "added-data-files": str(len(data_files)),
            "added-records": str(rows),
            "total-data-files": str(len(data_files)),
            "total-delete-files": "0",
            "total-records": str(rows),
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
        },
        "schema-id": 0,
        "first-row-id": 0,
        "added-rows": rows,
    }

    def document(snapshots, earlier):
        newest = snapshots[-1]
        return {
            "format-version": 3,
            "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, str(folder))),
            "location": str(folder),
            "last-sequence-number": newest["sequence-number"],
            "last-updated-ms": newest["timestamp-ms"],
            "last-column-id": len(schema),
            "current-schema-id": 0,
            "schemas": [table_schema],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {"write.delete.mode": "merge-on-read", **properties},
            "current-snapshot-id": newest["snapshot-id"],
            "next-row-id": rows,
            "refs": {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}},
            "snapshots": snapshots,
            "statistics": [],
            "partition-statistics": [],
            "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in snapshots],
            "metadata-log": [{"metadata-file": str(file), "timestamp-ms": at} for file, at in earlier],
        }

    def write(version, snapshots, earlier):
        file = metadata / f"v{version}.metadata.json"
        file.write_text(json.dumps(document(snapshots, earlier)), "utf-8")
        (metadata / "version-hint.text").write_text(str(version), "utf-8")
        return file

    first = write(1, [append], [])
    if not vectors:
        return first
    deletes = _write_manifest(metadata / "delete-m0.avro", table_schema, 1, DELETE_ID, 2, vectors)
    delete = {
        "snapshot-id": DELETE_ID,
        "parent-snapshot-id": APPEND_ID,
        "sequence-number": 2,
        "timestamp-ms": DELETE_MS,
        "manifest-list": _write_list(metadata, DELETE_ID, APPEND_ID, 2, [data, deletes], rows),
        "summary": {
            "operation": "delete",
            "added-delete-files": str(len(vectors)),
            "added-dvs": str(len(vectors)),
            "added-position-deletes": str(deleted),
            "total-data-files": str(len(data_files)),
            "total-delete-files": str(len(vectors)),
            "total-records": str(rows),
            "total-position-deletes": str(deleted),
            "total-equality-deletes": "0",
        },
        "schema-id": 0,
        "first-row-id": rows,
        "added-rows": 0,
    }
    return write(2, [append, delete], [(first, APPEND_MS)])


def _write_manifest(path, table_schema, content, snapshot, sequence, files):
    return iceberg_files.write_manifest(
        path, table_schema, files, version=3, snapshot=snapshot, sequence=sequence, content=content
    )


def _write_list(metadata, snapshot, parent, sequence, manifests, first_row_id):
    path = metadata / f"snap-{snapshot}.avro"
    return iceberg_files.write_manifest_list(
        path, manifests, version=3, snapshot=snapshot, parent=parent, sequence=sequence, first_row_id=first_row_id
    )
