"""Manifests and manifest lists, written with fastavro as the table specification says.

For the tests' small tables and the benchmarks' large ones. No code of the server is involved, so an error in one is
not repeated in the other.
"""

import datetime
import json

import fastavro
import pyarrow as pa


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
        _optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}),
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


def data_file(path, record_count, *, content=0, file_format="PARQUET", size=None, **more):
    """The `data_file` of a manifest entry; `more` are its optional fields by name."""
    return {
        "content": content,
        "file_path": str(path),
        "file_format": file_format,
        "partition": {},
        "record_count": record_count,
        "file_size_in_bytes": path.stat().st_size if size is None else size,
        **more,
    }


def bound(kind, value, upper=False):
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



def write_manifest(path, table_schema, files, *, version, snapshot, sequence, content=0, explicit=False, spec=None, partition=None):
    """Writes a manifest of files that one snapshot adds; returns what a list says of it.

    `explicit`: the sequence number stands in each entry; else it is inherited from the list. Of a partitioned table
    `spec` is the partition spec as in metadata, and `partition` the Avro record of its values.
    """
    numbers = {"sequence_number": sequence, "file_sequence_number": sequence} if explicit else {}
    entries = [{"status": 1, "snapshot_id": snapshot, **numbers, "data_file": file} for file in files]
    return _write(path, table_schema, entries, version, snapshot, sequence, content, spec, partition)


def write_merged_manifest(path, table_schema, files, *, version, snapshot, sequence):
    """Writes a manifest that takes over data files of earlier commits: (keyword arguments of theirs, file) pairs.

    What the snapshot itself added stays an added file.
    """
    entries = [
        {
            "status": 1 if numbers["snapshot"] == snapshot else 0,
            "snapshot_id": numbers["snapshot"],
            "sequence_number": numbers["sequence"],
            "file_sequence_number": numbers["sequence"],
            "data_file": file,
        }
        for numbers, file in files
    ]
    return _write(path, table_schema, entries, version, snapshot, sequence, 0)


def _entry_schema(partition):
    """The schema of entries with these partition values."""
    if partition is None:
        return ENTRY_SCHEMA
    fields = [{**f, "type": partition} if f["name"] == "partition" else f for f in DATA_FILE["fields"]]
    of_file = {**DATA_FILE, "fields": fields}
    entry = {**MANIFEST_ENTRY, "fields": [{**f, "type": of_file} if f["name"] == "data_file" else f for f in MANIFEST_ENTRY["fields"]]}
    return fastavro.parse_schema(entry)


def _write(path, table_schema, entries, version, snapshot, sequence, content, spec=None, partition=None):
    spec = spec or {"spec-id": 0, "fields": []}
    header = {
        "schema": json.dumps(table_schema),
        "schema-id": str(table_schema.get("schema-id", 0)),
        "partition-spec": json.dumps(spec["fields"]),
        "partition-spec-id": str(spec["spec-id"]),
        "format-version": str(version),
        "content": "deletes" if content else "data",
    }
    with path.open("wb") as out:
        fastavro.writer(out, _entry_schema(partition), entries, metadata=header, codec="deflate")
    files = [[entry["data_file"] for entry in entries if entry["status"] == status] for status in (1, 0)]
    rows = [sum(file["record_count"] for file in part) for part in files]
    return {
        "manifest_path": str(path),
        "manifest_length": path.stat().st_size,
        "partition_spec_id": spec["spec-id"],
        "content": content,
        "sequence_number": sequence,
        "min_sequence_number": min([sequence, *(entry.get("sequence_number") or sequence for entry in entries)]),
        "added_snapshot_id": snapshot,
        "added_files_count": len(files[0]),
        "existing_files_count": len(files[1]),
        "deleted_files_count": 0,
        "added_rows_count": rows[0],
        "existing_rows_count": rows[1],
        "deleted_rows_count": 0,
        "partitions": None if spec["fields"] else [],
    }


def write_manifest_list(path, manifests, *, version, snapshot, parent, sequence, **more):
    """Writes the manifest list of a snapshot; `more` goes into its header. Returns its path as text."""
    header = {
        "snapshot-id": str(snapshot),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(sequence),
        "format-version": str(version),
        **{key.replace("_", "-"): str(value) for key, value in more.items()},
    }
    with path.open("wb") as out:
        fastavro.writer(out, LIST_SCHEMA, manifests, metadata=header, codec="deflate")
    return str(path)


ENTRY_SCHEMA = fastavro.parse_schema(MANIFEST_ENTRY)
LIST_SCHEMA = fastavro.parse_schema(MANIFEST_FILE)
