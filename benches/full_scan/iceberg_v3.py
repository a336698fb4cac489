"""Metadata of a version 3 table with two snapshots: an append, and a commit of deletion vectors.

Written by hand as the table specification says: metadata as plain JSON, manifests and manifest lists with
fastavro. Sequence numbers and first row ids of added files are left null in the manifests and inherited, as
other writers do it.
"""

import datetime
import json
import uuid

import fastavro
import pyarrow as pa

APPEND_ID, DELETE_ID = 5_113_290_806_184_201_001, 5_113_290_806_184_201_002
APPEND_MS, DELETE_MS = 1_767_225_600_000, 1_767_225_660_000  # 2026-01-01, a minute apart

TYPES = {pa.int64(): "long", pa.int32(): "int", pa.date32(): "date", pa.string(): "string"}


def _field(field_id, name, kind):
    return {"name": name, "type": kind, "field-id": field_id}


def _optional(field_id, name, kind):
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _map(key_id, value_id, value):
    """A map with int keys: in manifests an array of pairs."""
    pair = [_field(key_id, "key", "int"), _field(value_id, "value", value)]
    record = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": pair}
    return {"type": "array", "logicalType": "map", "items": record}


DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": []}),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _map(129, 130, "bytes")),
        _optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
        _optional(140, "sort_order_id", "int"),
        _optional(142, "first_row_id", "long"),
        _optional(143, "referenced_data_file", "string"),
        _optional(144, "content_offset", "long"),
        _optional(145, "content_size_in_bytes", "long"),
    ],
}
MANIFEST_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        _field(0, "status", "int"),
        _optional(1, "snapshot_id", "long"),
        _optional(3, "sequence_number", "long"),
        _optional(4, "file_sequence_number", "long"),
        _field(2, "data_file", DATA_FILE),
    ],
}
PARTITION_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
}
MANIFEST_FILE = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long"),
        _field(504, "added_files_count", "int"),
        _field(505, "existing_files_count", "int"),
        _field(506, "deleted_files_count", "int"),
        _field(512, "added_rows_count", "long"),
        _field(513, "existing_rows_count", "long"),
        _field(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", {"type": "array", "items": PARTITION_SUMMARY, "element-id": 508}),
        _optional(519, "key_metadata", "bytes"),
        _optional(520, "first_row_id", "long"),
    ],
}


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

    return {
        "content": 0,
        "file_path": str(path),
        "file_format": "PARQUET",
        "partition": {},
        "record_count": parquet.num_rows,
        "file_size_in_bytes": path.stat().st_size,
        "column_sizes": each(lambda kind, chunk: chunk.total_compressed_size),
        "value_counts": each(lambda kind, chunk: chunk.num_values),
        "null_value_counts": each(lambda kind, chunk: chunk.statistics.null_count),
        "lower_bounds": each(lambda kind, chunk: _bound(kind, chunk.statistics.min)),
        "upper_bounds": each(lambda kind, chunk: _bound(kind, chunk.statistics.max, upper=True)),
        "split_offsets": [4],
        "sort_order_id": 0,
    }


def vector_entry(path, data_file, cardinality, offset, length):
    """The `data_file` of one deletion vector in a Puffin file."""
    return {
        "content": 1,
        "file_path": str(path),
        "file_format": "PUFFIN",
        "partition": {},
        "record_count": cardinality,
        "file_size_in_bytes": path.stat().st_size,
        "referenced_data_file": str(data_file),
        "content_offset": offset,
        "content_size_in_bytes": length,
    }


def _bound(kind, value, upper=False):
    """A bound in the specification's single-value form; strings are cut to 16 characters."""
    if kind == pa.string():
        cut = value[:16]
        if upper and len(value) > 16:
            cut = cut[:-1] + chr(ord(cut[-1]) + 1)  # the text is ASCII below 0x7f
        return cut.encode()
    if pa.types.is_decimal(kind):  # the unscaled value, big-endian, in as few bytes as possible
        unscaled = int(value.scaleb(kind.scale))
        return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    if kind == pa.date32():
        return (value - datetime.date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)
    return value.to_bytes(kind.bit_width // 8, "little", signed=True)


def write_metadata(folder, schema, data_files, vectors, properties):
    """Writes manifests, lists and `v1`, `v2.metadata.json` for entries made above; returns the newest file."""
    metadata = folder / "metadata"
    table_schema = iceberg_schema(schema)
    rows = sum(entry["record_count"] for entry in data_files)
    deleted = sum(entry["record_count"] for entry in vectors)

    data = _write_manifest(metadata / "append-m0.avro", table_schema, 0, APPEND_ID, 1, data_files)
    deletes = _write_manifest(metadata / "delete-m0.avro", table_schema, 1, DELETE_ID, 2, vectors)
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

    first, second = metadata / "v1.metadata.json", metadata / "v2.metadata.json"
    first.write_text(json.dumps(document([append], [])), "utf-8")
    second.write_text(json.dumps(document([append, delete], [(first, APPEND_MS)])), "utf-8")
    (metadata / "version-hint.text").write_text("2", "utf-8")
    return second


def _write_manifest(path, table_schema, content, snapshot, sequence, files):
    """Writes a manifest of added files; returns what a manifest list says of it."""
    header = {
        "schema": json.dumps(table_schema),
        "schema-id": "0",
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": "3",
        "content": "deletes" if content else "data",
    }
    entries = [{"status": 1, "snapshot_id": snapshot, "data_file": file} for file in files]
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(MANIFEST_ENTRY), entries, metadata=header, codec="deflate")
    return {
        "manifest_path": str(path),
        "manifest_length": path.stat().st_size,
        "partition_spec_id": 0,
        "content": content,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": snapshot,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(file["record_count"] for file in files),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [],
    }


def _write_list(metadata, snapshot, parent, sequence, manifests, first_row_id):
    path = metadata / f"snap-{snapshot}.avro"
    header = {
        "snapshot-id": str(snapshot),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(sequence),
        "first-row-id": str(first_row_id),
        "format-version": "3",
    }
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(MANIFEST_FILE), manifests, metadata=header, codec="deflate")
    return str(path)
