"""What a delete did, as the server says it and as the table's files show it, and whether all see the same rows after.

Of what is written the bytes are counted from the files themselves. Rows are compared as Arrow tables, NaN equal to NaN.
"""

import dataclasses
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight

import other_readers
import wire

FIELDS = ["verb", "rows", "snapshot_id", "commit_id", "data_files", "bytes", "delete_files", "delete_bytes", "rewritten_files", "removed_files"]


@dataclasses.dataclass
class Change:
    """A `sandur.v1.ChangeResult`."""

    verb: str = ""
    rows: int = 0
    snapshot_id: int | None = None
    commit_id: str = ""
    data_files: int = 0
    bytes: int = 0
    delete_files: int = 0
    delete_bytes: int = 0
    rewritten_files: int = 0
    removed_files: int = 0

    @classmethod
    def of(cls, message):
        fields = {FIELDS[number - 1]: value for number, (value,) in wire.parse(message).items()}
        for name in ("verb", "commit_id"):
            if name in fields:
                fields[name] = fields[name].decode()
        if fields.get("snapshot_id", 0) >= 1 << 63:
            fields["snapshot_id"] -= 1 << 64
        return cls(**fields)

    @property
    def counts(self):
        """Data files, delete files, rewritten files, removed files."""
        return self.data_files, self.delete_files, self.rewritten_files, self.removed_files


def change(writing, sql):
    """Runs a statement and gives what the server says that it did."""
    command = wire.command("CommandStatementQuery", wire.field(1, sql))
    info = writing.flight.get_flight_info(flight.FlightDescriptor.for_command(command))
    done = Change.of(info.app_metadata)
    assert info.endpoints == [] and info.total_records == done.rows
    return done


def delete_positions(writing, name, paths, positions, snapshot=None, key=""):
    """Rows by file and position, through `DeletePositions`."""
    ref = wire.field(2, "s") + wire.field(3, name)
    body = wire.field(1, ref) + (wire.field(2, snapshot) if snapshot is not None else b"") + (wire.field(3, key) if key else b"")
    command = wire.field(1, "type.googleapis.com/sandur.v1.DeletePositions") + wire.field(2, body)
    rows = pa.table({"file_path": pa.array(paths, pa.string()), "pos": pa.array(positions, pa.int64())})
    writer, reader = writing.flight.do_put(flight.FlightDescriptor.for_command(command), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        return Change.of(reader.read().to_pybytes())


class Files:
    """The files below a table's folder, and which of them are new since."""

    def __init__(self, table):
        self.folder = pathlib.Path(other_readers.local(table.location()))
        self.before = self.sizes()

    def sizes(self):
        return {str(file.relative_to(self.folder)): file.stat().st_size for file in self.folder.rglob("*") if file.is_file()}

    def new(self):
        """Path below the table's folder to size."""
        return {name: size for name, size in self.sizes().items() if name not in self.before}


def live_files(table, snapshot=None):
    """The live entries of a snapshot: (data files, delete files), each by path and, of a vector, offset."""
    found = {}, {}
    for manifest, entries in other_readers.manifests(table, snapshot):
        for entry in entries:
            file = entry["data_file"]
            found[manifest.get("content") or 0][file["file_path"], file.get("content_offset")] = file
    return found


def vectors(table):
    """The live deletion vectors: referenced data file to entry; more than one for a file fails."""
    _, deletes = live_files(table)
    named = [(file["referenced_data_file"], file) for file in deletes.values() if file["file_format"].upper() == "PUFFIN"]
    assert len(dict(named)) == len(named), "two deletion vectors for one data file"
    return dict(named)


def summaries(table, since=0):
    """Operation and counts of the table's snapshots, oldest first, from the `since`th on."""
    ordered = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    return [(s.summary.operation.value, dict(s.summary.additional_properties)) for s in ordered[since:]]


def plain_columns(table, schema):
    """Columns of a schema's names and types, NaN as a number of its own, in the order of `id`."""
    table = table.select(schema.names).cast(schema).sort_by("id").combine_chunks()
    columns = []
    for column in table.columns:
        if pa.types.is_floating(column.type):
            nan = pc.fill_null(pc.is_nan(column), False)
            columns += [nan, pc.if_else(nan, 0.0, column)]
        else:
            columns.append(column)
    return columns


def check_same_rows(expected, found, who):
    """Both Arrow tables have the same rows, which `id` tells apart."""
    ids = [set(table["id"].to_pylist()) for table in (expected, found)]
    lost, more = sorted(ids[0] - ids[1]), sorted(ids[1] - ids[0])
    assert not lost and not more, f"{who}: {len(lost)} rows are missing ({lost[:5]}), {len(more)} are too many ({more[:5]})"
    assert found.num_rows == expected.num_rows, f"{who}: rows come twice"
    for number, (a, b) in enumerate(zip(plain_columns(expected, expected.schema), plain_columns(found, expected.schema))):
        assert a.equals(b), f"{who}: column {number} of {expected.schema.names}"


def duck_table(metadata_file):
    """All rows as DuckDB's `iceberg_scan` reads them."""
    return other_readers.duck().execute(f"SELECT * FROM iceberg_scan('{metadata_file}')").to_arrow_table()


def amplification(writing, name, sql, rows):
    """Runs a delete of so many rows; what it did, what was written, and a line about both."""
    table = writing.catalog.load_table(f"s.{name}")
    files = Files(table)
    data, _ = live_files(table)
    size = sum(file["file_size_in_bytes"] for file in data.values()) / sum(file["record_count"] for file in data.values())
    done = change(writing, sql)
    new = files.new()
    row_files = sum(size for path, size in new.items() if path.startswith("data/"))
    metadata = sum(new.values()) - row_files
    assert done.rows == rows
    line = (
        f"{name}: {sql.partition('WHERE ')[2]}: {rows} rows of {size * rows:.0f} bytes; written {row_files} bytes in "
        f"{sum(path.startswith('data/') for path in new)} data and delete files ({row_files / (size * rows):.1f} times the rows), "
        f"{metadata} bytes of metadata"
    )
    return done, new, line
