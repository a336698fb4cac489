"""Tables that are filled by INSERT in every way, and everything that is then asked of them.

Rows are read back by the server, by pyiceberg and by DuckDB (`iceberg_scan`); partition values, counts and bounds of
every manifest entry are compared with what tests/clients/expected_entries.py works out of the rows, summaries with
what Iceberg Java writes; `sandur fsck` finds nothing.
"""

import os

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as t
from pyiceberg.transforms import parse_transform

import canonical
import expected_entries
import other_readers
import typed_values
import wire
from conftest import connect

ID = t.NestedField(1, "id", t.LongType(), required=True)
# Spelled as in metadata, with the SQL of each.
TRANSFORMS = {
    "identity": "{}",
    "bucket[4]": "bucket(4, {})",
    "truncate[3]": "truncate(3, {})",
    "year": "year({})",
    "month": "months({})",
    "day": "day({})",
    "hour": "hours({})",
}
NANOSECONDS = (t.TimestampNanoType, t.TimestamptzNanoType)
TOTALS = ["total-records", "total-data-files", "total-files-size", "total-delete-files", "total-position-deletes", "total-equality-deletes"]


class Writing:
    """A server over an empty warehouse, one connection to it, and pyiceberg on the same catalog."""

    def __init__(self, server, warehouse):
        self.connection = connect(server)
        self.flight = flight.FlightClient(server.url)
        self.catalog = other_readers.pyiceberg_catalog(warehouse)
        self.run("CREATE SCHEMA s")

    def close(self):
        self.connection.close()
        self.flight.close()

    def run(self, sql, parameters=None):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.rowcount

    def table(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetch_arrow_table()

    def lines(self, name, uuids=()):
        return canonical.sorted_lines(canonical.table_rows(self.table(f"SELECT * FROM s.{name}"), uuids))

    def append_rows(self, name, rows):
        """Sends an Arrow table by `AppendRows`."""
        named = wire.field(2, "s") + wire.field(3, name)
        command = wire.field(1, "type.googleapis.com/sandur.v1.AppendRows") + wire.field(2, wire.field(1, named))
        writer, reader = self.flight.do_put(flight.FlightDescriptor.for_command(command), rows.schema)
        with writer:
            writer.write_table(rows)
            writer.done_writing()
            assert wire.parse(reader.read().to_pybytes())[2] == [rows.num_rows]


def arrow_rows(fields, rows):
    columns = list(zip(*rows))
    arrays = [typed_values.arrow_array(field.field_type, list(column)) for field, column in zip(fields, columns)]
    return pa.table(arrays, names=[field.name for field in fields])


def values(fields, rows):
    """The rows as SQL."""
    return ", ".join(
        "(" + ", ".join(typed_values.literal(field.field_type, value) for field, value in zip(fields, row)) + ")" for row in rows
    )


WAYS = ("values", "bound", "stream")


def insert(writing, name, fields, rows, ways=WAYS):
    """Inserts by VALUES, by bound parameters and by a stream of rows: an equal share of the rows each."""
    shares = [rows[n :: len(ways)] for n in range(len(ways))]
    for way, share in zip(ways, shares):
        if way == "values":
            assert writing.run(f"INSERT INTO s.{name} VALUES {values(fields, share)}") == len(share)
        elif way == "stream":
            writing.append_rows(name, arrow_rows(fields, share))
        else:
            bound = arrow_rows(fields, share)
            # A parameter of the type that has no values is bound to nothing.
            bound = bound.select([n for n, field in enumerate(bound.schema) if field.type != pa.null()]).to_batches()[0]
            names = ", ".join(bound.schema.names)
            marks = ", ".join("?" * len(bound.schema.names))
            assert writing.run(f"INSERT INTO s.{name} ({names}) VALUES ({marks})", bound) == len(share)
    return shares


def create(writing, name, fields, version, partitions=(), more=""):
    columns = ", ".join(
        f"{field.name} {typed_values.sql_name(field.field_type)}{' NOT NULL' if field.required else ''}" for field in fields
    )
    parts = f"PARTITIONED BY ({', '.join(partitions)})" if partitions else ""
    writing.run(f"CREATE TABLE s.{name} ({columns}) {parts} {more} TBLPROPERTIES ('format-version' = '{version}')")


def uuid_columns(fields):
    return [field.name for field in fields if isinstance(field.field_type, t.UUIDType)]


def expected_lines(fields, rows):
    return canonical.sorted_lines(canonical.table_rows(arrow_rows(fields, rows), uuid_columns(fields)))


def check(writing, name, fields, commits):
    """Everything that can be said of a table whose commits appended these rows."""
    table = writing.catalog.load_table(f"s.{name}")
    rows = [row for commit in commits for row in commit]
    check_rows(writing, table, fields, rows)
    check_entries(writing, table, rows)
    check_summaries(table, [len(commit) for commit in commits])
    assert other_readers.fsck(table) == ""


def check_rows(writing, table, fields, rows):
    name, uuids = table.name()[-1], uuid_columns(fields)
    expected = expected_lines(fields, rows)
    assert writing.lines(name, uuids) == expected
    types = [field.field_type for field in table.schema().fields]
    if any(isinstance(of, NANOSECONDS) for of in types):
        # DuckDB does not know all of these types in metadata; without deletes a table is its files. It has no
        # nanoseconds with a zone, and a column of the type without values is in no file.
        paths = writing.table(f"SELECT file_path FROM s.{name}.files").column(0).to_pylist()
        shown = [n for n, of in enumerate(types) if not isinstance(of, (t.TimestamptzNanoType, t.UnknownType))]
        fields_shown, rows_shown = [fields[n] for n in shown], [[row[n] for n in shown] for row in rows]
        read = other_readers.files_by_duckdb(paths, [field.name for field in fields_shown], uuids)
        assert read == expected_lines(fields_shown, rows_shown)
    else:
        assert other_readers.by_duckdb(table, uuids) == expected
    sources = {field.source_id for spec in table.specs().values() for field in spec.fields if str(field.transform) == "identity"}
    if any(isinstance(table.schema().find_type(source), NANOSECONDS) for source in sources):
        # pyiceberg does not know the type in manifests.
        with pytest.raises(ValueError, match="timestamp-nanos"):
            other_readers.by_pyiceberg(table, uuids)
    else:
        kept = [[as_pyiceberg_reads(of, value) for of, value in zip(types, row)] for row in rows]
        assert other_readers.by_pyiceberg(table, uuids) == expected_lines(fields, kept)


def as_pyiceberg_reads(of, value):
    """pyiceberg takes a list of structs that is null for an empty one."""
    is_list = isinstance(of, t.ListType) and isinstance(of.element_type, t.StructType)
    return [] if is_list and value is None else value


def check_entries(writing, table, rows):
    """Each file's entry says of it what its rows say; all files together hold each row once."""
    fields = [*table.schema().fields]
    by_id = {row[0]: list(row) for row in rows}
    seen, partitions = [], {}
    for manifest, entries in other_readers.manifests(table):
        spec = table.specs()[manifest["partition_spec_id"]]
        tuples = []
        for entry in entries:
            file = entry["data_file"]
            path = other_readers.local(file["file_path"])
            footer = pq.read_metadata(path)
            ids = pq.read_table(path, columns=["id"]).column("id").to_pylist()
            seen += ids
            own = [by_id[number] for number in ids]
            assert (file["record_count"], file["file_size_in_bytes"]) == (len(own), os.path.getsize(path)), path
            if footer.created_by.startswith("sandur"):
                assert file["split_offsets"] == [group_start(footer.row_group(n)) for n in range(footer.num_row_groups)]
                assert set(other_readers.pairs(file["column_sizes"])) >= set(other_readers.pairs(file["value_counts"]))
                check_statistics(fields, file, own)
            tuples.append(check_partition(table, list(file["partition"].values()), spec, own))
            # Specs of equally many fields share the partitions that they agree on, as in Iceberg Java.
            known = ((field.field_id, value) for field, value in zip(spec.fields, tuples[-1]) if value is not None)
            key = len(spec.fields), frozenset((number, expected_entries.plain(value)) for number, value in known)
            partitions[key] = partitions.get(key, 0) + len(own)
        check_manifest(table, manifest, entries, spec, tuples)
    assert sorted(seen) == sorted(by_id)
    listed = writing.table(f"SELECT record_count FROM s.{table.name()[-1]}.partitions").column(0).to_pylist()
    assert sorted(listed) == sorted(partitions.values())


def group_start(group):
    """Where a row group begins in its file."""
    first = group.column(0)
    return min(offset for offset in (first.dictionary_page_offset, first.data_page_offset) if offset)


def check_statistics(fields, file, rows):
    expected = expected_entries.statistics(fields, rows)
    for name in ("value_counts", "null_value_counts", "nan_value_counts"):
        assert other_readers.pairs(file.get(name)) == expected[name], (name, rows)
    for name in ("lower_bounds", "upper_bounds"):
        wanted = {number: expected_entries.plain(value) for number, value in expected[name].items()}
        assert expected_entries.decoded(fields, other_readers.pairs(file.get(name))) == wanted, (name, rows)


def source(table, field):
    """The value of a partition field's column in a row, as a function, and its type."""
    for at, column in enumerate(table.schema().fields):
        for leaf, value_of in expected_entries.leaves(column):
            if leaf.field_id == field.source_id:
                return lambda row: value_of(row[at]), leaf.field_type
    raise AssertionError(f"no column {field.source_id}")


def check_partition(table, values, spec, rows):
    """The partition of a file is that of each of its rows."""
    found = []
    for value, field in zip(values, spec.fields, strict=True):
        value_of, of = source(table, field)
        for row in rows:
            expected = expected_entries.partition_value(str(field.transform), of, value_of(row))
            assert expected_entries.plain(value) == expected_entries.plain(expected), (field, row)
        found.append(expected)
    return found


def check_manifest(table, manifest, entries, spec, tuples):
    counted = [manifest[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    assert counted == [len(entries), 0, 0]
    assert manifest["added_rows_count"] == sum(entry["data_file"]["record_count"] for entry in entries)
    if expected_entries.orders_differ(tuples):
        assert manifest["partitions"] is None
        return
    for n, (field, summary) in enumerate(zip(spec.fields, manifest["partitions"] or [], strict=True)):
        result = field.transform.result_type(source(table, field)[1])
        assert summary == expected_entries.partition_summary(result, [values[n] for values in tuples])


def check_summaries(table, counts):
    """Counts as Iceberg Java keeps them."""
    totals = dict.fromkeys(TOTALS, 0)
    for snapshot, count in zip(table.snapshots(), counts, strict=True):
        assert snapshot.summary.operation.value == "append"
        listed = list(other_readers.manifests(table, snapshot))
        own = [(manifest, entries) for manifest, entries in listed if manifest["added_snapshot_id"] == snapshot.snapshot_id]
        added = [(manifest["partition_spec_id"], entry["data_file"]) for manifest, entries in own for entry in entries]
        size = sum(file["file_size_in_bytes"] for _, file in added)
        totals["total-records"] += count
        totals["total-data-files"] += len(added)
        totals["total-files-size"] += size
        expected = {
            "added-data-files": len(added),
            "added-records": count,
            "added-files-size": size,
            "changed-partition-count": len({(spec, repr(file["partition"])) for spec, file in added}),
            "manifests-created": len(own),
            "manifests-kept": len(listed) - len(own),
            "manifests-replaced": 0,
            **totals,
        }
        counted = {key: int(value) for key, value in snapshot.summary.additional_properties.items() if value.isdigit()}
        assert counted == expected


def fitting(of):
    """The transforms that take a type."""
    for spelled, sql in TRANSFORMS.items():
        if parse_transform(spelled).can_transform(of):
            yield spelled, sql
