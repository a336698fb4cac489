"""Commits that no writer at hand makes, as another program beside the server would make them.

A table's newest metadata is changed as JSON and swapped in the catalog file: for tables of version 3, which
pyiceberg does not change, and for equality deletes, which it does not write.
"""

import contextlib
import json
import pathlib
import random
import sqlite3
import time
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

import iceberg_files
import other_readers
from minitable import iceberg_type

NAN = float("nan")


def swap(writing, name, change):
    """Changes the metadata of `s.<name>` as `change` does with its JSON, in one commit."""
    table = writing.catalog.load_table(f"s.{name}")
    old = table.metadata_location
    doc = json.loads(pathlib.Path(other_readers.local(old)).read_text("utf-8"))
    doc.setdefault("metadata-log", []).append({"timestamp-ms": doc["last-updated-ms"], "metadata-file": old})
    doc["last-updated-ms"] = max(int(time.time() * 1000), doc["last-updated-ms"] + 1)
    change(doc)
    folder, _, last = old.rpartition("/")
    new = f"{folder}/{int(last.split('-')[0]) + 1:05d}-{uuid.uuid4()}.metadata.json"
    pathlib.Path(other_readers.local(new)).write_text(json.dumps(doc), "utf-8")
    database = writing.catalog.engine.url.database
    with contextlib.closing(sqlite3.connect(database, timeout=30)) as opened, opened:
        changed = opened.execute(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
            "WHERE table_namespace = 's' AND table_name = ? AND metadata_location = ?",
            (new, old, name, old),
        )
        assert changed.rowcount == 1
    return new


def set_properties(writing, name, **properties):
    """Sets properties, `_` for `-` and `__` for `.`."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    swap(writing, name, lambda doc: doc["properties"].update(named))


def upgrade(writing, name, version):
    def change(doc):
        doc["format-version"] = version
        if version >= 2:
            doc.setdefault("last-sequence-number", 0)
        if version == 3:
            doc["next-row-id"] = 0

    swap(writing, name, change)


def partition_record(manifest_path):
    """The Avro record of the partition values in a manifest."""
    import fastavro

    with open(other_readers.local(manifest_path), "rb") as file:
        schema = fastavro.reader(file).writer_schema
    [of_file] = [field["type"] for field in schema["fields"] if field["name"] == "data_file"]
    [partition] = [field["type"] for field in of_file["fields"] if field["name"] == "partition"]
    return partition


def delete_by_key(writing, name, keys, spec_id=0, like=None):
    """Commits an equality delete file of these keys, an Arrow table whose columns are the key.

    Without `like` the spec is unpartitioned, so that all older rows are meant; else those of the partition of a data
    file, which `like` names by its path.
    """
    table = writing.catalog.load_table(f"s.{name}")
    snapshot = table.current_snapshot()
    partition, values = None, {}
    for manifest, entries in other_readers.manifests(table):
        for entry in entries:
            if entry["data_file"]["file_path"] == like:
                spec_id, values = manifest["partition_spec_id"], entry["data_file"]["partition"]
                partition = partition_record(manifest["manifest_path"])
    assert (like is None) == (partition is None)
    ids = [table.schema().find_field(column).field_id for column in keys.schema.names]
    fields = [pa.field(f.name, f.type, metadata={"PARQUET:field_id": str(number)}) for f, number in zip(keys.schema, ids)]
    folder = pathlib.Path(other_readers.local(table.location()))
    file = folder / "data" / f"eq-{uuid.uuid4()}.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), file)
    new_id = random.randrange(1 << 62)
    columns = [{"id": f.field_id, "name": f.name, "required": f.required, "type": str(f.field_type)} for f in table.schema().fields]
    spec = {"spec-id": spec_id, "fields": [json.loads(f.model_dump_json()) for f in table.specs()[spec_id].fields]}

    def change(doc):
        sequence = doc["last-sequence-number"] + 1
        entry = iceberg_files.data_file(file, keys.num_rows, content=2, partition=values, equality_ids=ids)
        manifest = iceberg_files.write_manifest(
            folder / "metadata" / f"eq-{uuid.uuid4()}.avro",
            {"type": "struct", "schema-id": doc["current-schema-id"], "fields": columns},
            [entry],
            version=doc["format-version"],
            snapshot=new_id,
            sequence=sequence,
            content=1,
            spec=spec,
            partition=partition,
        )
        listed = [*other_readers.avro(snapshot.manifest_list), manifest]
        summary = {"operation": "delete", "added-delete-files": "1", "added-equality-delete-files": "1", "added-equality-deletes": str(keys.num_rows)}
        totals = {key: int(value) for key, value in snapshot.summary.additional_properties.items() if key.startswith("total-")}
        for key, more in [("delete-files", 1), ("equality-deletes", keys.num_rows), ("files-size", file.stat().st_size)]:
            totals[f"total-{key}"] += more
        add_snapshot(doc, new_id, sequence, folder, listed, summary | {key: str(value) for key, value in totals.items()})

    swap(writing, name, change)
    return file


def add_snapshot(doc, new_id, sequence, folder, listed, summary):
    """A snapshot of these manifests, which add no rows, as the newest one of main."""
    parent = doc["current-snapshot-id"]
    more = {"first_row_id": doc["next-row-id"]} if doc["format-version"] == 3 else {}
    path = folder / "metadata" / f"snap-{new_id}.avro"
    manifest_list = iceberg_files.write_manifest_list(
        path, listed, version=doc["format-version"], snapshot=new_id, parent=parent, sequence=sequence, **more
    )
    snapshot = {
        "snapshot-id": new_id,
        "parent-snapshot-id": parent,
        "sequence-number": sequence,
        "timestamp-ms": doc["last-updated-ms"],
        "manifest-list": manifest_list,
        "summary": summary,
        "schema-id": doc["current-schema-id"],
    }
    if doc["format-version"] == 3:
        snapshot |= {"first-row-id": doc["next-row-id"], "added-rows": 0}
    doc["snapshots"].append(snapshot)
    doc["current-snapshot-id"] = new_id
    doc["last-sequence-number"] = sequence
    doc.setdefault("snapshot-log", []).append({"timestamp-ms": doc["last-updated-ms"], "snapshot-id": new_id})
    doc["refs"]["main"] = {"snapshot-id": new_id, "type": "branch"}


def without_equality_deletes(table, folder):
    """Metadata of the table's current snapshot without its equality delete files, for readers that take none."""
    original = pathlib.Path(other_readers.local(table.metadata_location))
    doc = json.loads(original.read_text("utf-8"))
    if doc["format-version"] == 1:
        return original
    snapshot = next(s for s in doc["snapshots"] if s["snapshot-id"] == doc["current-snapshot-id"])
    listed = [manifest for manifest, entries in other_readers.manifests(table) if not any(e["data_file"].get("content") == 2 for e in entries)]
    list_file = folder / f"snap-{uuid.uuid4()}.avro"
    more = {"first_row_id": 0} if doc["format-version"] == 3 else {}
    snapshot["manifest-list"] = iceberg_files.write_manifest_list(
        list_file,
        listed,
        version=doc["format-version"],
        snapshot=snapshot["snapshot-id"],
        parent=None,
        sequence=snapshot["sequence-number"],
        **more,
    )
    file = folder / f"{uuid.uuid4()}.metadata.json"
    file.write_text(json.dumps(doc), "utf-8")
    return file


__all__ = ["delete_by_key", "iceberg_type", "set_properties", "swap", "upgrade", "without_equality_deletes"]
