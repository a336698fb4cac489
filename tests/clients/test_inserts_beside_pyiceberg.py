"""Tables that pyiceberg and the server fill in turn, whoever made them, and whose schema pyiceberg changes between."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg import types as t
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform

import other_readers
import typed_values
from insert_checks import (
    ID,
    WAYS,
    Writing,
    arrow_rows,
    as_pyiceberg_reads,
    check_entries,
    check_rows,
    create,
    fitting,
    insert,
    values,
)

# pyiceberg writes versions 1 and 2.
TYPES = [of for of in typed_values.VALUES if not isinstance(of, typed_values.V3_ONLY)]


@pytest.fixture(scope="module")
def writing(start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("beside") / "warehouse"
    opened = Writing(start_server(["--warehouse", str(warehouse)]), warehouse)
    yield opened
    opened.close()


def append(table, fields, rows):
    """pyiceberg appends rows."""
    schema = table.schema().as_arrow()
    plain = arrow_rows(fields, rows)
    columns = [
        pa.ExtensionArray.from_storage(field.type, column.combine_chunks()) if isinstance(field.type, pa.ExtensionType) else column.cast(field.type)
        for field, column in zip(schema, plain.columns)
    ]
    table.append(pa.table(columns, schema=schema))


def fits_pyiceberg(of, spelled, left_out):
    """Whether pyiceberg divides rows of a type by a transform."""
    if isinstance(of, t.UUIDType):
        return spelled != "identity"
    if isinstance(of, t.TimeType):
        return False
    if isinstance(of, t.DecimalType):
        # Its manifests are no Avro where two partition fields have one type with a name.
        return not spelled.startswith(left_out)
    return not (isinstance(of, t.BinaryType) and spelled.startswith("truncate"))


def shape(of, left_out):
    """A column of the type for each transform that takes it, or one column without; rows in four parts."""
    transforms = [(spelled, sql) for spelled, sql in fitting(of) if fits_pyiceberg(of, spelled, left_out)]
    count = max(1, len(transforms))
    fields = [ID, *(t.NestedField(n, f"c{n}", of, required=False) for n in range(2, count + 2))]
    cells = [None, *typed_values.VALUES[of]]
    rows = [[n, *(cells[(n + n * at // 2) % len(cells)] for at in range(count))] for n in range(2 * len(cells) + 8)]
    parts = [rows[n::4] for n in range(4)]
    for part in (parts[0], parts[2]):
        part[:] = [[as_pyiceberg_reads(of if at else ID.field_type, value) for at, value in enumerate(row)] for row in part]
    return transforms, fields, parts


def take_turns(writing, name, fields, parts):
    append(writing.catalog.load_table(f"s.{name}"), fields, parts[0])
    insert(writing, name, fields, parts[1], WAYS[1:])
    append(writing.catalog.load_table(f"s.{name}"), fields, parts[2])
    assert writing.run(f"INSERT INTO s.{name} VALUES {values(fields, parts[3])}") == len(parts[3])
    table = writing.catalog.load_table(f"s.{name}")
    rows = [row for part in parts for row in part]
    check_rows(writing, table, fields, rows)
    check_entries(writing, table, rows)
    assert other_readers.fsck(table) == ""


@pytest.mark.parametrize("of", TYPES, ids=typed_values.kind)
def test_in_turns_in_a_table_made_here(writing, of):
    transforms, fields, parts = shape(of, "identity")
    name, version = f"ours_{typed_values.kind(of)}", 1 + TYPES.index(of) % 2
    create(writing, name, fields, version, [sql.format(f"c{n}") for n, (_, sql) in enumerate(transforms, 2)])
    take_turns(writing, name, fields, parts)


@pytest.mark.parametrize("of", TYPES, ids=typed_values.kind)
def test_in_turns_in_a_table_of_pyiceberg(writing, of):
    transforms, fields, parts = shape(of, "truncate")
    name, version = f"theirs_{typed_values.kind(of)}", 2 - TYPES.index(of) % 2
    spec = [PartitionField(n, 998 + n, parse_transform(spelled), f"p{n}") for n, (spelled, _) in enumerate(transforms, 2)]
    properties = {"format-version": str(version)}
    writing.catalog.create_table(f"s.{name}", Schema(*fields), partition_spec=PartitionSpec(*spec), properties=properties)
    take_turns(writing, name, fields, parts)


def test_schema_changes_of_pyiceberg_between_inserts(writing):
    """Columns by id: added, renamed, promoted, moved, dropped, made optional, inside of structs, too."""
    writing.run(
        "CREATE TABLE s.evolved (id BIGINT NOT NULL, i INT NOT NULL, f FLOAT, d DECIMAL(9, 2), gone STRING, "
        "st STRUCT<a: INT, b: STRING>, l ARRAY<INT>) PARTITIONED BY (truncate(10, i), bucket(2, gone))"
    )
    expected = {}

    def insert(sql, *rows):
        assert writing.run(f"INSERT INTO s.evolved {sql}") == len(rows)
        expected.update((row["id"], row) for row in rows)

    def evolve(change):
        with writing.catalog.load_table("s.evolved").update_schema() as schema:
            change(schema)
        same()

    def same():
        table = writing.catalog.load_table("s.evolved")
        names = [field.name for field in table.schema().fields]
        wanted = sorted(([row.get(name) for name in names] for row in expected.values()), key=lambda row: row[names.index("id")])
        for read in (
            writing.table("SELECT * FROM s.evolved ORDER BY id"),
            table.scan().to_arrow().sort_by("id"),
            other_readers.duck().execute(f"SELECT * FROM iceberg_scan('{table.metadata_location}') ORDER BY id").to_arrow_table(),
        ):
            assert read.column_names == names
            assert [list(row.values()) for row in read.to_pylist()] == wanted
        assert other_readers.fsck(table) == ""

    def rename(row, old, new):
        row[new] = row.pop(old, None)

    insert("VALUES (1, -5, 0.5, 1.25, 'x', named_struct('a', 1, 'b', 'y'), [1, NULL])", {"id": 1, "i": -5, "f": 0.5, "d": Decimal("1.25"), "gone": "x", "st": {"a": 1, "b": "y"}, "l": [1, None]})
    for row in expected.values():
        row["st"]["c"] = None
    evolve(lambda schema: schema.add_column("added", t.StringType()).add_column(("st", "c"), t.DateType()))
    insert("(id, i, added, st) VALUES (2, 2147483647, 'new', named_struct('a', 2, 'b', 'z', 'c', DATE '1969-12-31'))", {"id": 2, "i": 2**31 - 1, "added": "new", "st": {"a": 2, "b": "z", "c": date(1969, 12, 31)}})
    for row in expected.values():
        rename(row, "i", "n")
        row["st"]["first"] = row["st"].pop("a")
        row["st"] = {name: row["st"][name] for name in ("first", "b", "c")}
    evolve(lambda schema: schema.rename_column("i", "n").rename_column("st.a", "first"))
    insert("(id, n, l) VALUES (3, 0, [3])", {"id": 3, "n": 0, "l": [3]})
    evolve(lambda schema: schema.update_column("n", t.LongType()).update_column("f", t.DoubleType()).update_column("d", t.DecimalType(12, 2)))
    insert("(id, n, f, d) VALUES (4, -3000000000, 1e300, 9999999999.99)", {"id": 4, "n": -3_000_000_000, "f": 1e300, "d": Decimal("9999999999.99")})
    evolve(lambda schema: schema.update_column("st.first", t.LongType()).update_column("l.element", t.LongType()).make_column_optional("n"))
    insert("(id, st, l) VALUES (5, named_struct('first', 3000000000, 'b', NULL, 'c', NULL), [3000000000])", {"id": 5, "st": {"first": 3_000_000_000, "b": None, "c": None}, "l": [3_000_000_000]})
    for row in expected.values():
        if row.get("st"):
            del row["st"]["b"]
    evolve(lambda schema: schema.move_first("added").delete_column("st.b"))
    insert("(id, n, added, gone) VALUES (6, 17, '', 'y')", {"id": 6, "n": 17, "added": "", "gone": "y"})
    with writing.catalog.load_table("s.evolved").update_spec() as spec:
        spec.remove_field("gone_bucket")
    for row in expected.values():
        row.pop("gone", None)
    evolve(lambda schema: schema.delete_column("gone"))
    insert("VALUES ('a', 7, 1, 2, 3, named_struct('first', 1, 'c', NULL), [])", {"id": 7, "n": 1, "f": 2, "d": Decimal("3.00"), "added": "a", "st": {"first": 1, "c": None}, "l": []})
    evolve(lambda schema: schema.add_column("gone", t.IntegerType()))
    insert("(id, gone) VALUES (8, 8)", {"id": 8, "gone": 8})
    same()
