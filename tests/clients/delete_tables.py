"""Tables of a hundred thousand rows that have been written to, deleted from and changed in every way before.

Each is made with its models, which have the rows that must be left.
"""

import dataclasses
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg import types as t
from pyiceberg.transforms import BucketTransform, DayTransform

import hand_commits
import other_readers
from delete_checks import live_files
from delete_statements import ROWS, Models, random_keys, random_rows

PART = 34_000
IDS = 3 * PART
COLUMNS = (
    "id BIGINT NOT NULL, k BIGINT, x DOUBLE, s STRING, d DATE, ts TIMESTAMP, b BOOLEAN, n DECIMAL(9, 2), late INT"
)
# Before its schema changes: other names and types, a column that goes, none that comes.
OLD_COLUMNS = "gone STRING, id BIGINT NOT NULL, k INT, x FLOAT, text STRING, d DATE, ts TIMESTAMP, b BOOLEAN, n DECIMAL(7, 2)"
DEFAULT = 3
LAYOUT = {
    "write.parquet.row-group-size-bytes": "150000",
    "write.parquet.page-size-bytes": "8192",
    "write.parquet.page-row-limit": "2000",
}
SHAPES = ["unpartitioned", "bucket", "day", "evolved_spec", "evolved_schema"]
PARTITIONS = {"bucket": "PARTITIONED BY (bucket(3, k))", "day": "PARTITIONED BY (day(ts))"}


@dataclasses.dataclass(frozen=True)
class Cell:
    version: int
    mode: str
    shape: str

    @property
    def name(self):
        return f"{self.shape}_{'mor' if self.mode == 'merge-on-read' else 'cow'}_v{self.version}"

    def __str__(self):
        return self.name


class Source:
    """The same rows for every table, in three parts."""

    def __init__(self):
        chance = random.Random(20_261_130)
        self.parts = [random_rows(chance, part * PART, PART) for part in range(3)]
        self.keys = random_keys(chance, IDS)


class Made:
    """A table, its models, and the ids of rows that equality deletes took."""

    def __init__(self, writing, cell, source):
        self.writing, self.cell, self.name = writing, cell, cell.name
        self.models = Models(cell.name, source.keys)
        self.parts = source.parts
        self.by_key = set()
        self.version = min(cell.version, 2)
        columns = OLD_COLUMNS if cell.shape == "evolved_schema" else COLUMNS
        properties = LAYOUT | {"format-version": str(self.version), "write.metadata.previous-versions-max": "5"}
        if cell.mode == "copy-on-write":
            # What is written anew is smaller then.
            properties |= {"write.target-file-size-bytes": "120000", "write.parquet.row-group-size-bytes": "60000"}
        properties["write.delete.mode"] = "merge-on-read" if cell.version > 1 else cell.mode
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        writing.run(f"CREATE TABLE s.{cell.name} ({columns}) {PARTITIONS.get(cell.shape, '')} TBLPROPERTIES ({listed})")

    def table(self):
        return self.writing.catalog.load_table(f"s.{self.name}")

    # what happens to it

    def append(self, part):
        self.writing.append_rows(self.name, in_batches(self.parts[part]))
        self.models.insert(self.parts[part])

    def append_old(self):
        """The first part as its columns were then."""
        rows = self.parts[0]
        old = {
            "gone": pa.array(["gone"] * rows.num_rows),
            "id": rows["id"],
            "k": rows["k"].cast(pa.int32()),
            "x": rows["x"].cast(pa.float32()),
            "text": rows["s"],
            **{name: rows[name] for name in ("d", "ts", "b")},
            "n": rows["n"].cast(pa.decimal128(7, 2)),
        }
        self.writing.append_rows(self.name, in_batches(pa.table(old)))
        late = pa.array([DEFAULT if self.cell.version == 3 else None] * rows.num_rows, pa.int32())
        self.models.insert(rows.set_column(ROWS.get_field_index("late"), ROWS.field("late"), late))

    def delete(self, condition, mask):
        """A delete by the server, told apart from those of the random statements."""
        ids = self.models.rows.filter(pc.fill_null(mask(self.models.rows), False))["id"].to_pylist()
        assert ids
        assert self.writing.run(f"DELETE FROM s.{self.name} WHERE {condition}") == len(ids)
        self.models.delete_ids(ids)

    def delete_some(self, k):
        self.delete(f"k = {k}", lambda rows: pc.equal(rows["k"], k))

    def delete_range(self, low, high):
        self.delete(f"id BETWEEN {low} AND {high}", lambda rows: pc.and_(pc.greater_equal(rows["id"], low), pc.less_equal(rows["id"], high)))

    def upgrade(self):
        if self.cell.version == 3 and self.version == 2:
            hand_commits.upgrade(self.writing, self.name, 3)
            self.version = 3

    def evolve_spec(self, change):
        with self.table().update_spec() as spec:
            change(spec)

    def evolve_schema(self):
        """By pyiceberg; in version 3, which has defaults, by hand."""
        if self.version < 3:
            with self.table().update_schema() as schema:
                schema.rename_column("text", "s").delete_column("gone").update_column("k", t.LongType())
                schema.update_column("x", t.DoubleType()).update_column("n", t.DecimalType(9, 2)).add_column("late", t.IntegerType())
            return

        def change(doc):
            fields = [dict(f) for f in doc["schemas"][-1]["fields"] if f["name"] != "gone"]
            types = {"k": "long", "x": "double", "n": "decimal(9, 2)"}
            for field in fields:
                field["type"] = types.get(field["name"], field["type"])
                field["name"] = {"text": "s"}.get(field["name"], field["name"])
            doc["last-column-id"] += 1
            fields.append({"id": doc["last-column-id"], "name": "late", "required": False, "type": "int", "initial-default": DEFAULT})
            doc["schemas"].append({"type": "struct", "schema-id": len(doc["schemas"]), "fields": fields})
            doc["current-schema-id"] = doc["schemas"][-1]["schema-id"]

        hand_commits.swap(self.writing, self.name, change)

    def delete_by_key(self, columns, wanted, like=None, spec_id=0):
        """An equality delete of the keys of these rows; of the partition of a data file, or of all."""
        taken = self.models.rows.filter(pc.is_in(self.models.rows["id"], pa.array(wanted, pa.int64())))
        keys = taken.select(columns).group_by(columns).aggregate([]).combine_chunks()
        in_reach = self.ids_beside(like) if like else self.models.rows["id"].to_pylist()
        of_key = {tuple(row.values()) for row in keys.to_pylist()}
        rows = self.models.rows.select(["id", *(c for c in columns if c != "id")]).to_pylist()
        reach = set(in_reach)
        gone = [row["id"] for row in rows if row["id"] in reach and tuple(row[c] for c in columns) in of_key]
        assert gone
        hand_commits.delete_by_key(self.writing, self.name, keys, spec_id, like)
        self.models.delete_ids(gone)
        self.by_key.update(gone)

    def ids_beside(self, path):
        """The ids of all rows in data files of the same spec and partition."""
        found = {}
        for manifest, entries in other_readers.manifests(self.table()):
            for entry in entries:
                file = entry["data_file"]
                if not file.get("content"):
                    found.setdefault((manifest["partition_spec_id"], repr(file["partition"])), []).append(file["file_path"])
        [paths] = [paths for paths in found.values() if path in paths]
        return [number for of in paths for number in pq.read_table(other_readers.local(of), columns=["id"])["id"].to_pylist()]

    def set_mode(self):
        hand_commits.set_properties(self.writing, self.name, write__delete__mode=self.cell.mode)

    # what is there

    def a_data_file(self):
        """The path of some data file of the current spec, if that has fields."""
        table = self.table()
        if not table.spec().fields:
            return None
        for manifest, entries in other_readers.manifests(table):
            if manifest["partition_spec_id"] == table.spec().spec_id:
                paths = sorted(entry["data_file"]["file_path"] for entry in entries if not entry["data_file"].get("content"))
                if paths:
                    return paths[0]
        return None


def make(writing, cell, source):
    """A table of the cell with all that comes before, ready for deletes in the cell's mode."""
    made = Made(writing, cell, source)
    old = cell.version > 1
    made.append_old() if cell.shape == "evolved_schema" else made.append(0)
    if old:
        made.delete_some(77)
        made.delete_range(1000, 1040)
    if cell.shape == "evolved_schema":
        made.upgrade()
        made.evolve_schema()
    if cell.shape == "evolved_spec":
        made.evolve_spec(lambda spec: spec.add_field("k", BucketTransform(2), "k_bucket"))
    made.append(1)
    if old:
        hand_commits.set_properties(writing, cell.name, write__delete__granularity="file")
        made.delete_some(78)
        made.delete_range(PART - 20, PART + 19)
        like = made.a_data_file()
        chance = random.Random(cell.name)
        rows = made.models.rows
        made.delete_by_key(["id"], chance.sample(rows["id"].to_pylist(), 400), like)
        reach = pc.is_in(rows["id"], pa.array(made.ids_beside(like) if like else rows["id"], pa.int64()))
        # DuckDB takes rows with a null in one column of a longer key for deleted ones, so no other row has these ids.
        made.delete_by_key(["id", "k"], rows.filter(pc.and_(reach, pc.is_valid(rows["k"])))["id"].to_pylist()[:600:20], like)
        made.delete_by_key(["d"], rows.filter(pc.is_null(rows["d"]))["id"].to_pylist()[:1], like)
        if cell.shape == "evolved_spec":
            # Under the spec without fields: of all partitions, those of other specs too.
            made.delete_by_key(["id"], chance.sample(made.models.rows["id"].to_pylist(), 30))
    if cell.shape == "evolved_spec":
        made.evolve_spec(lambda spec: spec.remove_field("k_bucket").add_field("ts", DayTransform(), "ts_day"))
    made.upgrade()
    made.append(2)
    if old:
        made.delete_range(2 * PART - 10, 2 * PART + 9)
        made.delete_some(80)
    made.set_mode()
    return made


def in_batches(rows):
    """A stream ends a row group at the end of a batch only."""
    return pa.Table.from_batches(rows.combine_chunks().to_batches(max_chunksize=2500))


def row_groups(table):
    """The number of row groups of each data file."""
    data, _ = live_files(table)
    return [pq.read_metadata(other_readers.local(path)).num_row_groups for path, _ in data]
