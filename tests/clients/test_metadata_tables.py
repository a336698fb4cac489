"""Metadata tables beside pyiceberg's `inspect`, read through ADBC from a running server, over every table
of other writers.

Where pyiceberg is known to differ from Iceberg Java, Java is followed; `normal` and the comments at each
table say where:

- times: pyiceberg gives milliseconds without zone, Java microseconds in UTC
- `operation` of pyiceberg is the text of an enum (`Operation.APPEND`)
- maps: pyiceberg has empty ones where Java has none
- `readable_metrics`: pyiceberg has the top-level columns in table order, without values where they are nested; Java
  has every primitive column, by dotted name, in alphabetical order
- `partitions` of Java adds up files of several specs where the values are equal by field id and the specs have equally
  many fields; pyiceberg goes by the names of the fields. Its totals do not know deletion vectors beside position
  delete files: ours are null there
- pyiceberg leaves files without rows out of `partitions`, and reads double partition values as floats
- `partition_summaries` of Java say "null" where there is no bound
- the struct `partition` of pyiceberg lists the fields of all specs in order of spec and by name
"""

import json
import struct

import pytest

import cases
from conftest import NOT_RUN

pyiceberg_table = pytest.importorskip("pyiceberg.table")
from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: E402

ALL = cases.load_all()


class MappedIO(PyArrowFileIO):
    """File access through the case's path map."""

    def __init__(self, rules):
        super().__init__()
        self.rules = sorted(rules, key=lambda rule: -len(rule[0]))

    def new_input(self, location):
        for recorded, real in self.rules:
            if location.startswith(recorded):
                location = real + location[len(recorded) :].lstrip("/")
                break
        return super().new_input(location.removeprefix("file:"))


def open_table(case):
    """The case as pyiceberg sees it; None where it cannot."""
    from pyiceberg.serializers import FromInputFile
    from pyiceberg.table import StaticTable
    from pyiceberg.catalog.noop import NoopCatalog

    io = MappedIO(case.path_map)
    location = str(case.metadata_file)
    metadata = FromInputFile.table_metadata(io.new_input(location))
    return StaticTable(
        identifier=("static-table", location),
        metadata_location=location,
        metadata=metadata,
        io=io,
        catalog=NoopCatalog("static-table"),
    )


@pytest.fixture(scope="module", params=ALL, ids=lambda case: case.name)
def pair(request):
    """A case with pyiceberg's view of it."""
    case = request.param
    try:
        return case, open_table(case)
    except Exception as error:  # whatever its parser says about a table that it does not know
        return case, error


def ours(connection, case, name, columns):
    """Rows of a metadata table as dicts of these columns."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {case.ident}.{name}")
        return [normal(row) for row in cursor.fetch_arrow_table().to_pylist()]


def theirs(pair, name, record, *arguments):
    """pyiceberg's rows; None, noted, where it fails."""
    case, table = pair
    if isinstance(table, Exception):
        record_failure(record, case, name, table)
        return None
    try:
        return [normal(row) for row in getattr(table.inspect, name)(*arguments).to_pylist()]
    except Exception as error:
        record_failure(record, case, name, error)
        return None


UNREADABLE = []


def record_failure(record, case, name, error):
    UNREADABLE.append((case.name, name, f"{type(error).__name__}: {error}"[:120]))


def normal(value):
    """One spelling of what both mean."""
    import datetime

    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None, microsecond=value.microsecond // 1000 * 1000).isoformat()
    if isinstance(value, dict):
        return {key: normal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(item, tuple) for item in value)
        items = [normal(list(item)) if isinstance(item, tuple) else normal(item) for item in value]
        return sorted(items, key=repr) if pairs else (items or None)
    if isinstance(value, bytes):
        return "hex:" + value.hex()
    return value


def same(left, right, *names):
    """Both have the same rows of these columns, in any order."""
    def lines(rows):
        return sorted(json.dumps([row[name] for name in names], sort_keys=True, default=str) for row in rows)

    assert lines(left) == lines(right)


def test_snapshots(pair, connection, record):
    rows = theirs(pair, "snapshots", record)
    if rows is None:
        return
    names = ["committed_at", "snapshot_id", "parent_id", "operation", "manifest_list", "summary"]
    for row in rows:
        row["operation"] = row["operation"].rpartition(".")[2].lower().replace("none", "") or None
    mine = ours(connection, pair[0], "snapshots", names)
    same(mine, rows, *names)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("history", ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"]),
        (
            "refs",
            ["name", "type", "snapshot_id", "max_reference_age_in_ms", "min_snapshots_to_keep", "max_snapshot_age_in_ms"],
        ),
        ("metadata_log_entries", ["timestamp", "file", "latest_snapshot_id", "latest_schema_id", "latest_sequence_number"]),
    ],
)
def test_tables_of_the_metadata_file(pair, connection, record, name, columns):
    rows = theirs(pair, name, record)
    if rows is None:
        return
    mine = ours(connection, pair[0], name, columns)
    if name == "metadata_log_entries":
        # pyiceberg looks a time up by the log as we do, but takes the first of two entries of one millisecond.
        ambiguous = len({row["timestamp"] for row in rows}) != len(rows)
        columns = columns[:2] if ambiguous else columns
    same(mine, rows, *columns)


MANIFESTS = [
    "content",
    "path",
    "length",
    "partition_spec_id",
    "added_snapshot_id",
    "added_data_files_count",
    "existing_data_files_count",
    "deleted_data_files_count",
    "added_delete_files_count",
    "existing_delete_files_count",
    "deleted_delete_files_count",
    "partition_summaries",
]


def without_bounds_as_text(rows):
    """Java writes what has no value as "null", and floats, decimals and binary otherwise than Python does."""
    for row in rows:
        row["partition_summaries"] = [
            {key: value for key, value in summary.items() if key.startswith("contains")}
            | {key: summary[key] for key in ("lower_bound", "upper_bound") if is_plain(summary[key])}
            for summary in row["partition_summaries"] or []
        ]
    return rows


def is_plain(text):
    return isinstance(text, str) and text.lstrip("-").isdigit()


@pytest.mark.parametrize("name", ["manifests", "all_manifests"])
def test_manifests(pair, connection, record, name):
    rows = theirs(pair, name, record)
    if rows is None:
        return
    columns = MANIFESTS + (["reference_snapshot_id", "key_metadata"] if name == "all_manifests" else [])
    mine = ours(connection, pair[0], name, columns)
    same(without_bounds_as_text(mine), without_bounds_as_text(rows), *columns)


FILES = [
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
]


def distinct(rows):
    return list({json.dumps(row, sort_keys=True, default=str): row for row in rows}.values())


@pytest.mark.parametrize("name", ["files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"])
def test_files(pair, connection, record, name):
    rows = theirs(pair, name, record)
    if rows is None:
        return
    mine = ours(connection, pair[0], name, FILES)
    for row in rows:
        row["file_format"] = row["file_format"].upper()
    if name.startswith("all_"):
        # Both list a file as often as manifests name it, but pyiceberg reads a manifest once for each snapshot.
        mine, rows = distinct(mine), distinct([{name: row[name] for name in FILES} for row in rows])
    same(mine, rows, *FILES)


def test_partition_values_and_readable_metrics(pair, connection, record):
    """Columns of primitive type at the top; nested ones are empty in pyiceberg."""
    rows = theirs(pair, "files", record)
    if not rows:
        return
    case, table = pair
    current = {field.source_id for spec in table.specs().values() for field in spec.fields}
    known = {field.field_id for field in table.schema().fields}
    partitioned = bool(rows[0]["partition"]) and current <= known
    columns = ["file_path", "readable_metrics"] + (["partition"] if partitioned else [])
    mine = ours(connection, case, "files", columns)
    primitive = {field.name for field in table.schema().fields if field.field_type.is_primitive}
    for row in [*rows, *mine]:
        row["readable_metrics"] = {k: v for k, v in row["readable_metrics"].items() if k in primitive}
        assert set(row["readable_metrics"]) == primitive
        if partitioned:
            row["partition"] = {k: as_float(v) for k, v in row["partition"].items()}
    same(mine, rows, *columns)


def as_float(value):
    """pyiceberg reads double partition values as floats."""
    return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value


def test_entries(pair, connection, record):
    rows = theirs(pair, "entries", record)
    if rows is None:
        return
    inner = [name for name in FILES if name not in ("spec_id",)]
    columns = ["status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file"]
    mine = ours(connection, pair[0], "entries", columns)
    for some in (mine, rows):
        for row in some:
            row["data_file"] = {name: row["data_file"][name] for name in inner}
            row["data_file"]["file_format"] = row["data_file"]["file_format"].upper()
    same(mine, rows, *columns)


COUNTS = [
    "record_count",
    "file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
]
UPDATED = ["last_updated_at", "last_updated_snapshot_id"]


def as_java_adds_up(rows, table):
    """pyiceberg's rows, added up where Java has one partition; None where one name stands for two fields."""
    known = {field.field_id for field in table.schema().fields}
    specs = {
        spec_id: [(field.field_id, field.name) for field in spec.fields if field.source_id in known]
        for spec_id, spec in table.specs().items()
    }
    fields = {field for spec in specs.values() for field in spec}
    if len({name for _, name in fields}) != len(fields):
        return None
    sums = {}
    for row in rows:
        spec = specs[row["spec_id"]] if "spec_id" in row else []
        values = {field_id: row["partition"][name] for field_id, name in spec if row["partition"][name] is not None}
        key = len(spec), json.dumps(values, sort_keys=True, default=str)
        total = sums.setdefault(key, dict.fromkeys(COUNTS, 0) | dict.fromkeys(UPDATED))
        for name in COUNTS:
            total[name] += row[name]
        if row["last_updated_at"] and row["last_updated_at"] > (total["last_updated_at"] or ""):
            total |= {name: row[name] for name in UPDATED}
    return list(sums.values())


def test_partitions(pair, connection, record):
    rows = theirs(pair, "partitions", record)
    if rows is None:
        return
    case, table = pair
    if any(row["record_count"] == 0 for row in theirs(pair, "files", record) or []):
        return  # files without rows are left out there
    rows = as_java_adds_up(rows, table)
    if rows is None:
        return
    columns = COUNTS + UPDATED
    mine = ours(connection, case, "partitions", columns + ["position_delete_file_count_without_dvs", "dv_count"])
    if any(row["position_delete_file_count_without_dvs"] and row["dv_count"] for row in mine):
        assert any(row["position_delete_record_count"] is None for row in mine)
        columns.remove("position_delete_record_count")
    same(mine, rows, *columns)


def test_what_was_compared(record):
    """Says how many tables pyiceberg could not show, so that a comparison of nothing is seen."""
    total = len(ALL) * 14
    assert len(UNREADABLE) < total // 4, UNREADABLE[:40]
    if cases.root() is None:
        record(NOT_RUN, "metadata tables were compared over the project's own tables alone")
