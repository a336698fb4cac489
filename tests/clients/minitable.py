"""Small Iceberg tables around given Parquet files, written by hand as the table specification says.

For what no writer at hand makes and for what a stranger's clone must show without the collection. The
metadata is plain JSON, manifests are written by `iceberg_files`; no code of the server is involved, so an error in
one is not repeated in the other.
"""

import json
import pathlib
import shutil
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

import iceberg_files

SNAPSHOT_ID = 3_051_729_675_574_597_004
TIMESTAMP_MS = 1_767_225_600_000  # 2026-01-01
FILE_PATH_ID, POS_ID = 2_147_483_546, 2_147_483_545  # reserved field ids of position delete files


def iceberg_type(kind, next_id):
    """The Iceberg type of an Arrow type, as it stands in metadata; `next_id()` gives nested field ids."""
    simple = {
        pa.bool_(): "boolean",
        pa.int32(): "int",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.binary(): "binary",
        pa.date32(): "date",
        pa.time64("us"): "time",
        pa.timestamp("us"): "timestamp",
        pa.timestamp("us", "UTC"): "timestamptz",
    }
    if kind in simple:
        return simple[kind]
    if kind == pa.uuid():
        return "uuid"
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [iceberg_field(field, next_id) for field in kind]}
    if pa.types.is_list(kind):
        return {
            "type": "list",
            "element-id": next_id(),
            "element": iceberg_type(kind.value_type, next_id),
            "element-required": not kind.value_field.nullable,
        }
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "key-id": next_id(),
            "key": iceberg_type(kind.key_type, next_id),
            "value-id": next_id(),
            "value": iceberg_type(kind.item_type, next_id),
            "value-required": not kind.item_field.nullable,
        }
    raise TypeError(f"no Iceberg type for {kind}")


def iceberg_field(field, next_id):
    return {
        "id": next_id(),
        "name": field.name,
        "required": not field.nullable,
        "type": iceberg_type(field.type, next_id),
    }


def name_mapping(fields):
    """The default name mapping of a schema: each name to its id, for files without field ids."""

    def nested(kind):
        if not isinstance(kind, dict):
            return None
        if kind["type"] == "struct":
            return name_mapping(kind["fields"])
        if kind["type"] == "list":
            return [entry(kind["element-id"], "element", kind["element"])]
        return [entry(kind["key-id"], "key", kind["key"]), entry(kind["value-id"], "value", kind["value"])]

    def entry(field_id, name, kind):
        out = {"field-id": field_id, "names": [name]}
        children = nested(kind)
        if children:
            out["fields"] = children
        return out

    return [entry(field["id"], field["name"], field["type"]) for field in fields]


def write_table(folder, schema, data_files=(), position_deletes=None):
    """Writes an unpartitioned v2 table of one snapshot and returns its metadata file.

    `schema`: an Arrow schema. `data_files`: Parquet files, copied below the table's folder, since a table may
    not name files elsewhere. `position_deletes`: pairs of (one of `data_files`, position), which get one delete
    file with a newer sequence number.
    """
    folder = pathlib.Path(folder)
    metadata = folder / "metadata"
    metadata.mkdir(parents=True)
    data = folder / "data"
    data.mkdir()
    copies = {pathlib.Path(file): data / f"{at:05d}-{pathlib.Path(file).name}" for at, file in enumerate(data_files)}
    for file, copy in copies.items():
        shutil.copyfile(file, copy)
    counter = iter(range(1, 10_000))
    fields = [iceberg_field(field, lambda: next(counter)) for field in schema]
    last_column = next(counter) - 1
    table_schema = {"type": "struct", "schema-id": 0, "fields": fields}

    manifests = []
    if copies:
        manifests.append(_write_manifest(metadata, table_schema, 0, 1, list(copies.values())))
    if position_deletes:
        file = data / "deletes.parquet"
        _write_position_deletes(file, [(copies[pathlib.Path(path)], position) for path, position in position_deletes])
        manifests.append(_write_manifest(metadata, table_schema, 1, 2, [file]))

    doc = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, str(folder))),
        "location": str(folder),
        "last-sequence-number": 2 if position_deletes else 1 if copies else 0,
        "last-updated-ms": TIMESTAMP_MS,
        "last-column-id": last_column,
        "current-schema-id": 0,
        "schemas": [table_schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"schema.name-mapping.default": json.dumps(name_mapping(fields))},
        "current-snapshot-id": -1,
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {},
    }
    if manifests:
        manifest_list = iceberg_files.write_manifest_list(
            metadata / "snap-1.avro",
            manifests,
            version=2,
            snapshot=SNAPSHOT_ID,
            parent=None,
            sequence=doc["last-sequence-number"],
        )
        doc["current-snapshot-id"] = SNAPSHOT_ID
        doc["refs"] = {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}}
        doc["snapshots"] = [
            {
                "snapshot-id": SNAPSHOT_ID,
                "sequence-number": doc["last-sequence-number"],
                "timestamp-ms": TIMESTAMP_MS,
                "manifest-list": manifest_list,
                "summary": {"operation": "overwrite" if position_deletes else "append"},
                "schema-id": 0,
            }
        ]
    file = metadata / "v1.metadata.json"
    file.write_text(json.dumps(doc), "utf-8")
    (metadata / "version-hint.text").write_text("1", "utf-8")
    return file


def _write_manifest(metadata, table_schema, content, sequence, files):
    entries = [iceberg_files.data_file(file, _row_count(file), content=content) for file in files]
    return iceberg_files.write_manifest(
        metadata / f"manifest-{content}.avro",
        table_schema,
        entries,
        version=2,
        snapshot=SNAPSHOT_ID,
        sequence=sequence,
        content=content,
        explicit=True,
    )


def _row_count(file):
    try:
        return pq.read_metadata(file).num_rows
    except (pa.ArrowException, OSError):
        return 1  # a broken file; whoever reads the table must find that out


def _write_position_deletes(file, pairs):
    pairs = sorted((str(path), position) for path, position in pairs)

    def field(name, kind, field_id):
        return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(field_id)})

    schema = pa.schema([field("file_path", pa.string(), FILE_PATH_ID), field("pos", pa.int64(), POS_ID)])
    columns = [[path for path, _ in pairs], [position for _, position in pairs]]
    pq.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema), file)


def catalog_toml(name, tables):
    """The `[catalog.NAME]` section for (schema.table, metadata file) pairs."""
    lines = [f"[catalog.{name}]", 'type = "tables"']
    for table, location in tables:
        lines += [
            "",
            f"[[catalog.{name}.table]]",
            f"name = {json.dumps(table)}",
            'format = "iceberg"',
            f"location = {json.dumps(str(location))}",
        ]
    return "\n".join(lines) + "\n"


TYPES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("b", pa.bool_()),
        pa.field("i", pa.int32()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("bin", pa.binary()),
        pa.field("fix", pa.binary(4)),
        pa.field("dec", pa.decimal128(12, 2)),
        pa.field("day", pa.date32()),
        pa.field("t", pa.time64("us")),
        pa.field("ts", pa.timestamp("us")),
        pa.field("tz", pa.timestamp("us", "UTC")),
        pa.field("list", pa.list_(pa.field("element", pa.int32()))),
        pa.field("st", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def types_table():
    """Two rows of every type, the second of nulls."""
    rows = [
        {
            "id": 1,
            "b": True,
            "i": -7,
            "f": 1.5,
            "d": 0.1,
            "s": "hé",
            "bin": b"\x00\xff",
            "fix": b"abcd",
            "dec": "-12.50",
            "day": -1,
            "t": 3_723_000_004,
            "ts": -1,
            "tz": 1_767_225_600_000_000,
            "list": [1, None, 3],
            "st": {"x": 4, "y": None},
            "m": [("k", 5)],
        },
        {"id": 2},
    ]

    def column(field):
        values = [row.get(field.name) for row in rows]
        if pa.types.is_decimal(field.type):
            return pa.array(values, pa.string()).cast(field.type)
        if pa.types.is_temporal(field.type):
            plain = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            return pa.array(values, plain).cast(field.type)
        return pa.array(values, field.type)

    return pa.table([column(field) for field in TYPES], schema=TYPES)


WORDS = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("word", pa.string())])


def standard_tables(folder):
    """The tests' own tables, each as (schema.table, metadata file).

    `default.words`: ids 0 to 4, positions 1 and 3 deleted. `default.types`: two rows of every type.
    `default.empty`: no snapshot. `other.numbers`: 10,000 rows, n = 0 to 9,999.
    """
    folder = pathlib.Path(folder)
    data = folder / "files"
    data.mkdir()
    words = data / "words.parquet"
    pq.write_table(
        pa.table([pa.array(range(5), pa.int32()), ["zero", "one", "two", None, "four"]], schema=WORDS), words
    )
    types = data / "types.parquet"
    pq.write_table(types_table(), types)
    numbers = data / "numbers.parquet"
    numbers_schema = pa.schema([pa.field("n", pa.int64())])
    pq.write_table(pa.table([pa.array(range(10_000), pa.int64())], schema=numbers_schema), numbers, row_group_size=1000)
    return [
        ("default.words", write_table(folder / "words", WORDS, [words], [(words, 1), (words, 3)])),
        ("default.types", write_table(folder / "types", TYPES, [types])),
        ("default.empty", write_table(folder / "empty", WORDS)),
        ("other.numbers", write_table(folder / "numbers", numbers_schema, [numbers])),
    ]
