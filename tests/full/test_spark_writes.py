"""Spark and the server write the same tables through one SQLite catalog (Spark's is Iceberg's JDBC catalog).

Of the same rows, written by both into equal tables, manifest entries, partition summaries and snapshot summaries say
the same; only what depends on the encoder (sizes) and on the engine (its name and ids) may differ.
"""

import pytest
import spark_tables
from pyiceberg import types as t

import expected_entries
import other_readers
import typed_values
from beside import Beside
from insert_checks import ID, check_rows, create, expected_lines, fitting, uuid_columns, values

# Spark has neither a time of day nor nanoseconds.
TYPES = [of for of in typed_values.VALUES if not isinstance(of, (t.TimeType, *typed_values.V3_ONLY))]
# What an entry says of a file, without sizes.
COMPARED = ["content", "file_format", "record_count", "sort_order_id", "equality_ids", "key_metadata"]
MAPS = ["value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]


@pytest.fixture(scope="module")
def writing(spark, start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("writes") / "warehouse"
    opened = Beside(start_server(["--warehouse", str(warehouse)]), warehouse, spark)
    yield opened
    opened.close()


def shape(of):
    """A column of the type for each transform that takes it, and rows with each of its values."""
    # Iceberg Java 1.10 to 1.12 puts a length before a partition value of type fixed, and expects one, which is no Avro:
    # the server reads both and writes Avro. So no table here is partitioned by such a column itself.
    fit = [sql for spelled, sql in fitting(of) if not (isinstance(of, t.FixedType) and spelled == "identity")]
    transforms = [sql.format(f"c{n}") for n, sql in enumerate(fit, 2)]
    fields = [ID, *(t.NestedField(n, f"c{n}", of, required=False) for n in range(2, max(3, len(transforms) + 2)))]
    cells = [None, *typed_values.VALUES[of]]
    rows = [[n, *(cells[(n + n * at // 2) % len(cells)] for at in range(len(fields) - 1))] for n in range(2 * len(cells) + 4)]
    return transforms, fields, rows


def uncounted(fields):
    """Older versions of Iceberg Java do not count the floats of a struct where the struct is null."""
    if not spark_tables.VERSION.startswith("3."):
        return set()
    structs = [field for field in fields if isinstance(field.field_type, t.StructType)]
    inner = [leaf for field in structs for leaf, _ in expected_entries.leaves(field)]
    return {leaf.field_id for leaf in inner if isinstance(leaf.field_type, (t.FloatType, t.DoubleType))}


def said(table):
    """What the newest snapshot's own manifests say, without what may differ: by partition and rows of each file."""
    entries, lists = [], []
    snapshot = table.current_snapshot()
    for manifest, found in other_readers.manifests(table):
        if manifest["added_snapshot_id"] != snapshot.snapshot_id:
            continue
        same = {key: value for key, value in manifest.items() if not key.endswith(("path", "length", "snapshot_id"))}
        lists.append(dict(sorted(same.items())))
        for entry in found:
            file = entry["data_file"]
            said = {key: file.get(key) for key in COMPARED}
            said |= {key: other_readers.pairs(file.get(key)) for key in MAPS}
            for number in uncounted(table.schema().fields):
                said["value_counts"].pop(number), said["null_value_counts"].pop(number)
            said |= {"partition": file["partition"], "splits": len(file["split_offsets"])}
            said["sizes"] = sorted(other_readers.pairs(file["column_sizes"]))
            said |= {key: entry[key] for key in ("status", "sequence_number", "file_sequence_number") if key in entry}
            entries.append(said)
    return sorted(map(str, lists)) + sorted(str(dict(sorted(said.items()))) for said in entries)


def summary(table):
    """The newest snapshot's summary, without sizes and what names the engine."""
    told = table.current_snapshot().summary
    own = ("spark.", "sandur.", "app-", "engine-", "iceberg-version")
    kept = {key: value for key, value in told.additional_properties.items() if "files-size" not in key and not key.startswith(own)}
    return kept | {"operation": told.operation.value}


def written_by_both(writing, name, fields, version, transforms, rows, more=""):
    """Rows by an INSERT here, the same rows by one of Spark into an equal table; both say the same of them."""
    for maker in ("ours", "sparks"):
        create(writing, f"{name}_{maker}", fields, version, transforms, more)
    writing.run(f"INSERT INTO s.{name}_ours VALUES {values(fields, rows)}")
    expected = expected_lines(fields, rows)
    assert writing.spark_lines(f"{name}_ours") == expected
    writing.spark(f"INSERT INTO iceberg.s.{name}_sparks SELECT * FROM iceberg.s.{name}_ours")
    uuids = uuid_columns(fields)
    assert writing.lines(f"{name}_sparks", uuids) == expected
    ours, sparks = (writing.catalog.load_table(f"s.{name}_{maker}") for maker in ("ours", "sparks"))
    here, there = said(ours), said(sparks)
    if any(isinstance(field.field_type, t.UUIDType) for field in fields):
        # Bounds of uuids depend on the reader; there are none here where that would matter.
        here, there = ([line.partition("'partitions'")[0] for line in lines] for lines in (here, there))
    assert here == there, "\n".join([line for line in here if line not in there] + ["Spark:"] + [line for line in there if line not in here])
    here, there = summary(ours), summary(sparks)
    if not any(key.startswith("manifests-") for key in there):  # older versions do not count them
        here = {key: value for key, value in here.items() if not key.startswith("manifests-")}
    assert here == there


@pytest.mark.parametrize("of", TYPES, ids=typed_values.kind)
def test_both_say_the_same_of_the_same_rows(writing, of, note):
    transforms, fields, rows = shape(of)
    first = TYPES.index(of)
    name = typed_values.kind(of)
    written_by_both(writing, name, fields, 1 + first % 3, [], rows)
    if transforms:
        written_by_both(writing, f"{name}_parts", fields, 1 + (first + 1) % 3, transforms, rows)
    note(f"{name}: {len(rows)} rows, statistics and summaries as Spark's, unpartitioned and by {transforms or 'nothing'}")


@pytest.mark.parametrize("of", TYPES, ids=typed_values.kind)
def test_in_turns(writing, of):
    """Spark appends to a table made here and the server to one of Spark's."""
    transforms, fields, rows = shape(of)
    if isinstance(of, t.DecimalType):
        # pyiceberg does not read the name of a type that stands in a schema for the second time.
        transforms = transforms[:2]
    version = 1 + TYPES.index(of) % 3
    name = f"turns_{typed_values.kind(of)}"
    create(writing, name, fields, version, transforms)
    columns = ", ".join(field.name for field in fields[1:])
    expected = []
    for turn in range(4):
        added = [[row[0] + 1000 * turn, *row[1:]] for row in rows]
        if turn % 2:
            writing.spark(f"INSERT INTO iceberg.s.{name} SELECT id + 1000, {columns} FROM iceberg.s.{name} WHERE id BETWEEN {1000 * (turn - 1)} AND {1000 * turn - 1}")
        else:
            writing.run(f"INSERT INTO s.{name} VALUES {values(fields, added)}")
        expected += added
    lines = expected_lines(fields, expected)
    assert writing.spark_lines(name) == lines
    check_rows(writing, writing.catalog.load_table(f"s.{name}"), fields, expected)
    assert other_readers.fsck(writing.catalog.load_table(f"s.{name}")) == ""
