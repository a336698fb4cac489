"""INSERT of every type under every partition transform, format version and way in, against other programs."""

import itertools

import pyarrow.parquet as pq
import pytest
from pyiceberg import types as t
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.transforms import BucketTransform, TruncateTransform, VoidTransform, YearTransform

import other_readers
import typed_values
from insert_checks import ID, WAYS, Writing, check, create, fitting, insert

@pytest.fixture(scope="module")
def writing(start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("inserts") / "warehouse"
    opened = Writing(start_server(["--warehouse", str(warehouse)]), warehouse)
    yield opened
    opened.close()


@pytest.mark.parametrize("of", typed_values.VALUES, ids=typed_values.kind)
def test_every_type_under_every_transform(writing, of):
    fields = [ID, t.NestedField(2, "v", of, required=False)]
    first = list(typed_values.VALUES).index(of)
    versions = itertools.cycle([3] if isinstance(of, typed_values.V3_ONLY) else [1 + (first + n) % 3 for n in range(3)])
    for spelled, sql in [("none", None), *fitting(of)]:
        version = next(versions)
        name = f"{typed_values.kind(of)}_{spelled.split('[')[0]}_v{version}"
        create(writing, name, fields, version, [sql.format("v")] if sql else ())
        ways = WAYS if not sql else ("values", WAYS[1 + version % 2])
        check(writing, name, fields, insert(writing, name, fields, typed_values.rows(of), ways))


# Of those that pyiceberg makes tables of.
VOIDABLE = [of for of in typed_values.VALUES if of.is_primitive and not isinstance(of, typed_values.V3_ONLY)]


@pytest.mark.parametrize("of", VOIDABLE, ids=typed_values.kind)
def test_every_type_under_a_void_field(writing, of):
    """SQL declares no such field; pyiceberg leaves them behind where it takes a field away in version 1."""
    fields = [ID, t.NestedField(2, "v", of, required=False)]
    version = 1 + VOIDABLE.index(of) % 2
    name = f"{typed_values.kind(of)}_void_v{version}"
    spec = PartitionSpec(PartitionField(2, 1000, VoidTransform(), "nothing"))
    writing.catalog.create_table(f"s.{name}", Schema(*fields), partition_spec=spec, properties={"format-version": str(version)})
    check(writing, name, fields, insert(writing, name, fields, typed_values.rows(of), WAYS[:2]))


def all_types(version):
    """A column of each type, and rows that hold each value of each type."""
    types = [of for of in typed_values.VALUES if version == 3 or not isinstance(of, typed_values.V3_ONLY)]
    if version == 3:
        types.append(t.UnknownType())
    fields = [ID, *(t.NestedField(number, f"c{number}", of, required=False) for number, of in enumerate(types, 2))]
    cells = [[None, *typed_values.VALUES.get(of, [])] for of in types]
    longest = max(map(len, cells))
    return fields, [[n, *(column[n % len(column)] for column in cells)] for n in range(longest)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_types_in_one_table(writing, version):
    fields, rows = all_types(version)
    fields = numbered(fields)
    create(writing, f"wide_v{version}", fields, version)
    check(writing, f"wide_v{version}", fields, insert(writing, f"wide_v{version}", fields, rows))


def numbered(fields):
    """The fields with the ids that a new table gives them: columns first, then level by level what is inside."""
    return list(assign_fresh_schema_ids(Schema(*fields)).fields)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_several_partition_fields_and_an_order(writing, version):
    struct = t.StructType(t.NestedField(6, "inner", t.IntegerType(), required=False))
    types = [t.StringType(), t.TimestamptzType(), t.DecimalType(9, 2), struct]
    fields = [ID, *(t.NestedField(n, f"c{n}", of, required=False) for n, of in enumerate(types, 2))]
    fields[4] = t.NestedField(5, "st", struct, required=False)
    cells = [[None, *typed_values.VALUES[of]] for of in types[:3]] + [[None, {"inner": None}, {"inner": -7}, {"inner": 8}]]
    rows = [[n, *(column[(n * (at + 3) // 2) % len(column)] for at, column in enumerate(cells))] for n in range(40)]
    name = f"several_v{version}"
    partitions = ["truncate(2, c2)", "year(c3)", "c4", "bucket(3, st.inner)"]
    create(writing, name, fields, version, partitions, "WRITE ORDERED BY c2 DESC NULLS FIRST, id")
    check(writing, name, fields, insert(writing, name, fields, rows))
    for _, entries in other_readers.manifests(writing.catalog.load_table(f"s.{name}")):
        for entry in entries:
            file = entry["data_file"]
            read = pq.read_table(other_readers.local(file["file_path"])).to_pylist()
            last_first = sorted(read, key=lambda row: row["id"])
            last_first.sort(key=lambda row: "" if row["c2"] is None else row["c2"], reverse=True)
            last_first.sort(key=lambda row: row["c2"] is not None)
            assert (file["sort_order_id"], read) == (1, last_first)


@pytest.mark.parametrize("version", [1, 2])  # pyiceberg changes no table of version 3
def test_partition_specs_change_between_inserts(writing, version):
    fields = [ID, t.NestedField(2, "s", t.StringType(), required=False), t.NestedField(3, "d", t.DateType(), required=False)]
    texts, days = typed_values.VALUES[t.StringType()], typed_values.VALUES[t.DateType()]
    name = f"specs_v{version}"
    create(writing, name, fields, version)
    changes = [
        lambda spec: spec.add_field("s", BucketTransform(4), "s_bucket"),
        lambda spec: spec.add_field("d", YearTransform(), "d_year"),
        lambda spec: spec.remove_field("s_bucket"),
        lambda spec: spec.add_field("s", TruncateTransform(1), "s_start").rename_field("d_year", "years"),
        lambda spec: spec.remove_field("years").remove_field("s_start"),
        lambda spec: spec.add_identity("d"),
    ]
    commits = []
    for n, change in enumerate([None, *changes]):
        if change:
            with writing.catalog.load_table(f"s.{name}").update_spec() as spec:
                change(spec)
        rows = [[100 * n + k, texts[k % len(texts)] if k else None, days[k * 3 % len(days)] if k != 1 else None] for k in range(6)]
        commits += insert(writing, name, fields, rows, ("values", WAYS[1 + n % 2]))
    check(writing, name, fields, commits)
    # In version 2 the spec without fields comes back; in version 1 a field that was removed stays as void.
    assert len(writing.catalog.load_table(f"s.{name}").specs()) == {1: 7, 2: 6}[version]
