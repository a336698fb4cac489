"""The tables that rows are deleted from: the same Parquet files for all, named by Iceberg's metadata or Delta's log.

The files are written once. A fresh table is a folder of hard links to them and metadata of its own, so it costs
nothing to give each measurement one. Which rows a predicate names, and what is left, is computed here from the files.
"""

import json
import os
import pathlib
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import iceberg_v3
import lineitem
from sides import CACHE
from spelling import plain

FILES = 8
CHECK = "SELECT count(*), sum(l_orderkey), sum(l_linenumber), sum(l_extendedprice) FROM {table}"
ROW_STEP = 7_368_787  # a prime: the rows deleted one at a time are spread over the files
SHARE = 10  # one row in so many

DELTA_TYPES = {pa.int64(): "long", pa.int32(): "integer", pa.date32(): "date", pa.string(): "string"}


def source_at(given):
    """The folder of the Parquet files, made when it is not there."""
    folder = pathlib.Path(given.folder or CACHE / "bench" / "deletes" / f"{given.rows}-rows").resolve()
    return lineitem.write_files(folder, given.rows, FILES)


class Rows:
    """What stands in the files, in the columns that predicates and checks are about."""

    def __init__(self, source):
        self.table = pq.read_table(source, columns=["l_orderkey", "l_linenumber", "l_extendedprice"])
        self.keys = self.table["l_orderkey"].to_numpy()
        self.lines = self.table["l_linenumber"].to_numpy()

    def all(self):
        """What `CHECK` finds in a fresh table."""
        return self._values(self.table)

    def one(self, number):
        """A predicate for the `number`th of the rows to delete, and what `without` says about it."""
        at = (number + 1) * ROW_STEP % len(self.keys)
        key, line = int(self.keys[at]), int(self.lines[at])
        return f"l_orderkey = {key} AND l_linenumber = {line}", *self._without((self.keys == key) & (self.lines == line))

    def spread(self, number):
        """A predicate for a tenth of the rows: integers only, so every engine means the same by it."""
        rest = number % SHARE
        mask = (self.keys + 3 * self.lines) % SHARE == rest
        return f"(l_orderkey + 3 * l_linenumber) % {SHARE} = {rest}", *self._without(mask)

    def _without(self, mask):
        """How many rows go, and what `CHECK` finds in the others."""
        return int(np.count_nonzero(mask)), self._values(self.table.filter(pa.array(~mask)))

    @staticmethod
    def _values(table):
        return [plain(table.num_rows)] + [plain(pc.sum(column).as_py()) for column in table.columns]


def _link(source, folder):
    folder.mkdir(parents=True)
    for file in sorted(source.glob("*.parquet")):
        os.link(file, folder / file.name)
        yield folder / file.name


def make_iceberg(folder, source):
    """A fresh Iceberg v3 table with merge-on-read deletes; returns its metadata file."""
    (folder / "metadata").mkdir(parents=True)
    entries = [
        iceberg_v3.data_entry(file, pq.read_metadata(file), lineitem.SCHEMA) for file in _link(source, folder / "data")
    ]
    return iceberg_v3.write_metadata(folder, lineitem.SCHEMA, entries, [], {})


def make_delta(folder, source):
    """A fresh Delta table with deletion vectors."""

    def named(kind):
        return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else DELTA_TYPES[kind]

    fields = [{"name": f.name, "type": named(f.type), "nullable": f.nullable, "metadata": {}} for f in lineitem.SCHEMA]
    features = ["deletionVectors"]
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
        {
            "metaData": {
                "id": str(uuid.uuid5(uuid.NAMESPACE_URL, str(folder))),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {"delta.enableDeletionVectors": "true"},
                "createdTime": iceberg_v3.APPEND_MS,
            }
        },
    ]
    for file in _link(source, folder):
        add = {
            "path": file.name,
            "partitionValues": {},
            "size": file.stat().st_size,
            "modificationTime": iceberg_v3.APPEND_MS,
            "dataChange": True,
            "stats": _delta_stats(pq.read_metadata(file)),
        }
        actions.append({"add": add})
    log = folder / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")


def _delta_stats(parquet):
    """Bounds of every column, so that Delta skips files by as much as Iceberg does."""
    group = parquet.row_group(0)
    chunks = {name: group.column(place).statistics for place, name in enumerate(lineitem.SCHEMA.names)}

    def written(value):
        return value if isinstance(value, (int, str)) else float(value) if hasattr(value, "as_tuple") else str(value)

    return json.dumps(
        {
            "numRecords": parquet.num_rows,
            "minValues": {name: written(statistics.min) for name, statistics in chunks.items()},
            "maxValues": {name: written(statistics.max) for name, statistics in chunks.items()},
            "nullCount": {name: statistics.null_count for name, statistics in chunks.items()},
        }
    )
