"""Small Delta tables written by hand as PROTOCOL.md says: Parquet files, JSON commits, deletion vectors, checkpoints.

For what no writer at hand makes, or must not make. No code of the server or of another Delta library is involved, so
an error in one is not repeated here.
"""

import base64
import json
import math
import pathlib
import struct
import uuid
import zlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MAGIC = 1_681_511_377
B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
TO_Z85 = bytes.maketrans(B85, Z85)
FIRST_COMMIT_MS = 1_767_225_600_000  # 2026-01-01
VECTORS = ("deletionVectors",)

STRINGS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILE = [("path", pa.string()), ("partitionValues", STRINGS), ("size", pa.int64()), ("dataChange", pa.bool_()), ("deletionVector", VECTOR)]
ADD = [*FILE, ("modificationTime", pa.int64()), ("stats", pa.string())]
REMOVE = [*FILE, ("deletionTimestamp", pa.int64())]
METADATA = [
    ("id", pa.string()),
    ("format", pa.struct([("provider", pa.string()), ("options", STRINGS)])),
    ("schemaString", pa.string()),
    ("partitionColumns", pa.list_(pa.string())),
    ("configuration", STRINGS),
]
PROTOCOL = [
    ("minReaderVersion", pa.int32()),
    ("minWriterVersion", pa.int32()),
    ("readerFeatures", pa.list_(pa.string())),
    ("writerFeatures", pa.list_(pa.string())),
]
SIDECAR = [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]


def column(name, kind, **metadata):
    """A column of the schema."""
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def mapped(name, kind, number, physical):
    """A column that files have by another name, or by its number."""
    return column(name, kind, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical})


def z85(data):
    return base64.b85encode(data).translate(TO_Z85).decode()


def bitmap(positions):
    """Magic and the 64-bit portable form of a Roaring bitmap, of containers without runs."""
    halves = {}
    for position in sorted(set(positions)):
        halves.setdefault(position >> 32, {}).setdefault(position >> 16 & 0xFFFF, []).append(position & 0xFFFF)
    out = struct.pack("<iQ", MAGIC, len(halves))
    for high, containers in halves.items():
        bodies = [_container(values) for values in containers.values()]
        out += struct.pack("<III", high, 12_346, len(containers))
        out += b"".join(struct.pack("<HH", key, len(values) - 1) for key, values in containers.items())
        at = 8 + 8 * len(containers)
        for body in bodies:
            out += struct.pack("<I", at)
            at += len(body)
        out += b"".join(bodies)
    return out


def _container(values):
    if len(values) <= 4096:
        return struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8192)
    for value in values:
        bits[value >> 3] |= 1 << (value & 7)
    return bytes(bits)


def statistics(rows, wide=False):
    """Statistics of a file as Spark writes them: no bounds of NaN, bounds of texts as they are."""
    stats = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name, values in zip(rows.column_names, rows.columns):
        stats["nullCount"][name] = values.null_count
        if pa.types.is_integer(values.type) or pa.types.is_string(values.type) or pa.types.is_floating(values.type):
            low, high = pc.min_max(values).as_py().values()
            if low is not None and not (isinstance(low, float) and math.isnan(low)):
                stats["minValues"][name], stats["maxValues"][name] = low, high
    return stats | ({"tightBounds": False} if wide else {})


class DeltaTable:
    """A table's folder. Version 0 has the schema and no file; each `commit` writes the next one."""

    def __init__(self, folder, columns, partitions=(), properties=None, features=()):
        self.folder = pathlib.Path(folder)
        self.log = self.folder / "_delta_log"
        self.log.mkdir(parents=True)
        self.version = -1
        self.names = 0
        self.columns, self.partitions, self.properties = list(columns), list(partitions), dict(properties or {})
        features = list(features)
        self.protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        if features:
            self.protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
        self.commit({"protocol": self.protocol}, self.metadata())

    def metadata(self):
        """The action that says what the columns and properties are now."""
        return {
            "metaData": {
                "id": str(uuid.uuid5(uuid.NAMESPACE_OID, self.folder.name)),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": self.columns}),
                "partitionColumns": self.partitions,
                "configuration": self.properties,
            }
        }

    def commit(self, *actions):
        """Writes a version; its number."""
        self.version += 1
        info = {"commitInfo": {"timestamp": FIRST_COMMIT_MS + self.version, "operation": "WRITE"}}
        lines = [json.dumps(action, ensure_ascii=False) for action in (info, *actions)]
        self.commit_file().write_text("\n".join(lines) + "\n", "utf-8")
        return self.version

    def commit_file(self, version=None):
        return self.log / f"{self.version if version is None else version:020}.json"

    def write(self, rows, path=None, **options):
        """Writes a data file; its path below the table."""
        self.names += 1
        path = path or f"part-{self.names}.parquet"
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, self.folder / path, **options)
        return path

    def add(self, rows, path=None, **action):
        """Writes a data file and gives the action that adds it."""
        return self.add_file(self.write(rows, path), rows, **action)

    def add_file(self, path, rows, vector=None, partition=None, stats="of the rows", recorded=None):
        """The action that adds a file. `recorded` is the path as the log has it."""
        if stats == "of the rows":
            stats = json.dumps(statistics(rows, vector is not None))
        action = {
            "path": recorded or path,
            "partitionValues": partition or {},
            "size": (self.folder / path).stat().st_size,
            "modificationTime": FIRST_COMMIT_MS,
            "dataChange": True,
        }
        action |= {"stats": stats if stats is None or isinstance(stats, str) else json.dumps(stats)}
        return {"add": action | ({"deletionVector": vector} if vector else {})}

    def append(self, rows, **action):
        """Adds a file in a version of its own; the action."""
        added = self.add(rows, **action)
        self.commit(added)
        return added

    def vectors(self, *positions, prefix=""):
        """Writes vectors into one file; their descriptions by the file's id."""
        self.names += 1
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.folder.name} {self.names}")
        place = self.folder / prefix / f"deletion_vector_{name}.bin"
        place.parent.mkdir(exist_ok=True)
        data, out = b"\x01", []
        for rows in positions:
            vector = bitmap(rows)
            described = {"storageType": "u", "pathOrInlineDv": prefix + z85(name.bytes), "offset": len(data)}
            out.append(described | {"sizeInBytes": len(vector), "cardinality": len(set(rows))})
            data += struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        place.write_bytes(data)
        return out

    def vector_file(self):
        """The only file with vectors."""
        [file] = self.folder.rglob("deletion_vector_*.bin")
        return file

    def checkpoint(self, actions, kind="classic", sidecars=False, hint=True, parsed=None, parsed_stats=None):
        """Writes a checkpoint of the current version with the given live (and removed) files.

        `kind`: `classic`, or for tables of the feature `v2Checkpoint` `json` or `parquet`. `parsed` and `parsed_stats`
        are types for `partitionValues_parsed` and `stats_parsed`, which actions then have.
        """
        add = ADD + ([("partitionValues_parsed", parsed)] if parsed else []) + ([("stats_parsed", parsed_stats)] if parsed_stats else [])
        head = [{"protocol": self.protocol}, self.metadata()]
        name = f"{self.version:020}.checkpoint"
        if kind != "classic":
            name += f".{uuid.uuid5(uuid.NAMESPACE_OID, name)}"
            head.insert(0, {"checkpointMetadata": {"version": self.version}})
        if sidecars:
            (self.log / "_sidecars").mkdir(exist_ok=True)
            files = []
            for number, action in enumerate(actions):
                side = self.log / "_sidecars" / f"{uuid.uuid5(uuid.NAMESPACE_OID, f'{name} {number}')}.parquet"
                _write_actions(side, [action], [("add", pa.struct(add)), ("remove", pa.struct(REMOVE))])
                files.append({"sidecar": {"path": side.name, "sizeInBytes": side.stat().st_size, "modificationTime": FIRST_COMMIT_MS}})
            actions = files
        actions = [*head, *actions]
        if kind == "json":
            (self.log / f"{name}.json").write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
        else:
            kinds = {"protocol": PROTOCOL, "metaData": METADATA, "add": add, "remove": REMOVE}
            if kind == "parquet":
                kinds |= {"checkpointMetadata": [("version", pa.int64())], "sidecar": SIDECAR}
            fields = [(action, pa.struct(parts)) for action, parts in kinds.items()]
            _write_actions(self.log / f"{name}.parquet", actions, fields)
        if hint:
            (self.log / "_last_checkpoint").write_text(json.dumps({"version": self.version, "size": len(actions)}))

    def forget_commits(self, before):
        """Removes the commits before a version."""
        for version in range(before):
            self.commit_file(version).unlink()


def _write_actions(file, actions, fields):
    def pairs(value, kind):
        if pa.types.is_map(kind):
            return value and list(value.items())
        if pa.types.is_struct(kind) and value is not None:
            return {field.name: pairs(value.get(field.name), field.type) for field in kind}
        return value

    schema = pa.schema(fields)
    columns = [pa.array([pairs(action.get(field.name), field.type) for action in actions], field.type) for field in schema]
    pq.write_table(pa.table(columns, schema=schema), file)


def removed(action, **changed):
    """The action that removes what another one added."""
    added = action["add"]
    kept = {key: added[key] for key in ("path", "partitionValues", "size", "deletionVector") if key in added}
    return {"remove": kept | {"deletionTimestamp": FIRST_COMMIT_MS, "dataChange": True} | changed}


def with_vector(action, vector):
    """The action that adds the same file with another vector, or with none."""
    added = {key: value for key, value in action["add"].items() if key != "deletionVector"}
    return {"add": added | ({"deletionVector": vector} if vector else {})}


def by_path(table, vector):
    """The same vector as found by its absolute path."""
    return vector | {"storageType": "p", "pathOrInlineDv": table.vector_file().as_uri()}


def inline(rows):
    """A vector that stands in the log, padded to whole groups of characters."""
    data = bitmap(rows)
    text = z85(data + b"\0" * (-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(set(rows))}
