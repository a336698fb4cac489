"""Tables made by Spark SQL: types x partition transforms x evolution steps x deletes, the same in every run.

A table is a list of steps. `insert(n)` adds rows for whatever the schema is by then: each column's value is a hash of
the row's id, the column's name and a seed, so that old files and new ones hold comparable values. Everything else is
Spark SQL with `{t}` for the table. Values stay where Spark and Sandur mean the same by a comparison: no negative
zero; NaN and infinities only where the predicates of test_spark.py do not tell IEEE from Java order.
"""

import dataclasses
import os
import pathlib

import pyspark
from pyspark.sql import SparkSession, types

VERSION = pyspark.__version__
SEED = 20_260_101


def session(warehouse, jar, sqlite):
    """Spark with a Hadoop catalog `spark` below `warehouse`, small enough to run beside other things."""
    catalog = "spark.sql.catalog.spark"
    builder = (
        SparkSession.builder.master("local[1]")
        .appName("sandur-tests")
        .config("spark.jars", jar)
        # Drivers of databases are looked for where the program itself is.
        .config("spark.driver.extraClassPath", sqlite)
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "hadoop")
        .config(f"{catalog}.warehouse", str(warehouse))
        .config(f"{catalog}.cache-enabled", "false")
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS spark.db")
    return spark


COLUMNS = {
    "id": "bigint NOT NULL",
    "b": "boolean",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "s": "string",
    "bin": "binary",
    "dec": "decimal(9, 2)",
    "wide": "decimal(18, 4)",
    "huge": "decimal(38, 10)",
    "day": "date",
    "ts": "timestamp",
    "tsn": "timestamp_ntz",
    "st": "struct<a: int, b: string>",
    "arr": "array<int>",
    "m": "map<string, int>",
}

# Many row groups and pages in small files, and bloom filters, so that each kind of pruning has something to do.
PROPERTIES = {
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.parquet.row-group-size-bytes": "4096",
    "write.parquet.row-group-check-min-record-count": "20",
    "write.parquet.row-group-check-max-record-count": "40",
    "write.parquet.page-row-limit": "10",
    "write.parquet.bloom-filter-enabled.column.s": "true",
    "write.parquet.bloom-filter-enabled.column.i": "true",
    "write.parquet.bloom-filter-enabled.column.id": "true",
}


def value(kind, name, row="id", seed=SEED):
    """SQL for a column's value in the row `row`; about one in eleven is null."""
    h = f"xxhash64({row}, '{name}', {seed})"
    if name == "id":
        return f"cast({row} AS bigint)"
    inner = _value(kind, name, h, row, seed)
    return f"CASE WHEN pmod({h}, 11) = 0 THEN NULL ELSE {inner} END"


def _value(kind, name, h, row, seed):
    if isinstance(kind, types.BooleanType):
        return f"pmod({h}, 2) = 1"
    if isinstance(kind, types.IntegerType):
        return f"cast(pmod({h}, 200) - 100 AS int)"
    if isinstance(kind, types.LongType):
        return f"(pmod({h}, 2000) - 1000) * 10000000019L"
    if isinstance(kind, (types.FloatType, types.DoubleType)):
        to = kind.simpleString()
        finite = f"(pmod({h}, 1000) - 500) / 8 + 0.0625"
        return (
            f"CASE WHEN pmod({h}, 37) = 1 THEN cast('NaN' AS {to}) WHEN pmod({h}, 37) = 2 THEN "
            f"cast('-Infinity' AS {to}) WHEN pmod({h}, 37) = 3 THEN cast('Infinity' AS {to}) "
            f"ELSE cast({finite} AS {to}) END"
        )
    if isinstance(kind, types.StringType):
        first = f"element_at(array('', 'a', 'Bc', 'common prefix, longer than sixteen ', 'é', '日本', '😀'), "
        return f"concat({first} cast(pmod({h}, 7) + 1 AS int)), cast(pmod({h}, 60) AS string))"
    if isinstance(kind, types.BinaryType):
        return f"unhex(substr(hex({h}), 1, cast(pmod({h}, 4) * 2 AS int)))"
    if isinstance(kind, types.DecimalType):
        return f"cast((pmod({h}, 20000) - 10000) / 100 AS {kind.simpleString()})"
    if isinstance(kind, types.DateType):
        return f"date_add(DATE '1970-01-01', cast(pmod({h}, 30) - 15 AS int))"
    micros = f"pmod({h}, 1728000000000) - 864000000000"
    if isinstance(kind, types.TimestampType):
        return f"timestamp_micros({micros})"
    if isinstance(kind, types.TimestampNTZType):
        return f"cast(timestamp_micros({micros}) AS timestamp_ntz)"
    if isinstance(kind, types.StructType):
        fields = [f"'{field.name}', {value(field.dataType, name + field.name, row, seed)}" for field in kind.fields]
        return f"named_struct({', '.join(fields)})"
    if isinstance(kind, types.ArrayType):
        element = value(kind.elementType, name + "e", row, seed)
        return f"slice(array({element}, cast(7 AS int), {element}), 1, cast(pmod({h}, 4) AS int))"
    if isinstance(kind, types.MapType):
        item = value(kind.valueType, name + "v", row, seed)
        return f"map('k', {item}, concat('x', cast(pmod({h}, 5) AS string)), {item})"
    raise TypeError(f"no values for {kind}")


@dataclasses.dataclass
class insert:
    """Rows of the next `count` ids, by the schema as it is then, into `into` (a branch, say)."""

    count: int
    into: str = "{t}"


@dataclasses.dataclass
class merge:
    """Every `every`th row so far gets new values of `columns`, every `2 * every`th is deleted, `count` rows are new."""

    count: int
    every: int
    columns: tuple


@dataclasses.dataclass
class Table:
    name: str
    partitioned: str
    steps: list
    version: int = 2
    mode: str = "merge-on-read"
    properties: dict = dataclasses.field(default_factory=dict)


def make(spark, table):
    """Makes a table and gives its newest metadata file."""
    t = f"spark.db.{table.name}"
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    properties = {**PROPERTIES, "format-version": str(table.version)}
    properties |= {f"write.{action}.mode": table.mode for action in ("delete", "update", "merge")}
    properties |= table.properties
    pairs = ", ".join(f"'{key}' = '{text}'" for key, text in properties.items())
    partitioned = f"PARTITIONED BY ({table.partitioned})" if table.partitioned else ""
    spark.sql(f"CREATE TABLE {t} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({pairs})")
    next_id = 0
    for step in table.steps:
        if isinstance(step, str):
            spark.sql(step.format(t=t))
            continue
        fields = spark.table(t).schema.fields
        names = ", ".join(field.name for field in fields)
        if isinstance(step, insert):
            values = ", ".join(f"{value(field.dataType, field.name)} AS {field.name}" for field in fields)
            rows = f"SELECT {values} FROM range({next_id}, {next_id + step.count}, 1, 1)"
            spark.sql(f"INSERT INTO {step.into.format(t=t)} {rows}")
        else:
            values = ", ".join(
                f"{value(field.dataType, field.name, seed=SEED + 1)} AS {field.name}" for field in fields
            )
            rows = f"SELECT {values} FROM range(0, {next_id + step.count}, 1, 1)"
            rows += f" WHERE id >= {next_id} OR id % {step.every} = 0"
            changed = ", ".join(f"{name} = n.{name}" for name in step.columns)
            spark.sql(
                f"MERGE INTO {t} o USING ({rows}) n ON o.id = n.id "
                f"WHEN MATCHED AND o.id % {2 * step.every} = 0 THEN DELETE "
                f"WHEN MATCHED THEN UPDATE SET {changed} "
                f"WHEN NOT MATCHED AND n.id >= {next_id} THEN INSERT ({names}) "
                f"VALUES ({', '.join('n.' + field.name for field in fields)})"
            )
        next_id += step.count
    entries = spark.sql(f"SELECT file FROM {t}.metadata_log_entries ORDER BY timestamp, file").collect()
    newest = entries[-1].file.removeprefix("file:")
    folder = pathlib.Path(newest).parent
    return max(folder.glob("v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))


DELETE = "DELETE FROM {t} WHERE id % 7 = 3"
UPDATE = "UPDATE {t} SET i = i + 1, s = concat('u', s) WHERE id % 9 = 4"

ALL = [
    Table("plain", "", [insert(150), insert(100), DELETE, UPDATE, insert(50)]),
    Table("plain_v1", "s", [insert(120), "DELETE FROM {t} WHERE id % 5 = 1", insert(80)], 1, "copy-on-write"),
    Table("vectors", "", [insert(200), DELETE, UPDATE, merge(40, 8, ("i", "s", "d", "st")), DELETE], 3),
    Table("identity", "i", [insert(120), DELETE, merge(20, 6, ("i", "l")), UPDATE]),
    Table("buckets", "bucket(5, id), bucket(3, s)", [insert(200), DELETE, UPDATE, insert(60)]),
    Table("truncated", "truncate(2, s), truncate(1000, wide)", [insert(110), DELETE, UPDATE]),
    Table("days", "days(ts)", [insert(200), DELETE, UPDATE, insert(50)], 3),
    Table("hours", "hours(tsn)", [insert(90), DELETE, merge(10, 5, ("tsn", "s"))]),
    Table("months", "months(day), years(ts)", [insert(220), DELETE, UPDATE], 3),
    Table(
        "evolved",
        "bucket(4, id)",
        [
            insert(100),
            "ALTER TABLE {t} RENAME COLUMN i TO renamed",
            "ALTER TABLE {t} ADD COLUMN added string",
            DELETE,
            insert(80),
            "ALTER TABLE {t} ALTER COLUMN renamed TYPE bigint",
            "ALTER TABLE {t} ALTER COLUMN f TYPE double",
            "ALTER TABLE {t} ALTER COLUMN dec TYPE decimal(18, 2)",
            "ALTER TABLE {t} DROP COLUMN l",
            insert(80),
            "ALTER TABLE {t} ADD COLUMN l string",
            "ALTER TABLE {t} RENAME COLUMN st.a TO aa",
            "ALTER TABLE {t} ADD COLUMN st.c date",
            merge(40, 6, ("renamed", "added", "l")),
        ],
    ),
    Table(
        "specs",
        "s",
        [
            insert(80),
            "ALTER TABLE {t} REPLACE PARTITION FIELD s WITH truncate(1, s)",
            insert(80),
            DELETE,
            "ALTER TABLE {t} ADD PARTITION FIELD days(day)",
            insert(60),
            "ALTER TABLE {t} DROP PARTITION FIELD days(day)",
            UPDATE,
            "ALTER TABLE {t} RENAME COLUMN s TO text",
            insert(40),
            "DELETE FROM {t} WHERE id % 11 = 5",
        ],
        3,
    ),
    Table(
        "branches",
        "truncate(50, i)",
        [
            insert(100),
            "ALTER TABLE {t} CREATE TAG first",
            DELETE,
            "ALTER TABLE {t} CREATE BRANCH side",
            insert(40, "{t}.branch_side"),
            UPDATE,
            "DELETE FROM {t}.branch_side WHERE id % 3 = 0",
            insert(50),
            "ALTER TABLE {t} CREATE TAG last",
        ],
    ),
    Table(
        "upgraded",
        "bucket(3, i)",
        [
            insert(150),
            DELETE,
            "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",
            UPDATE,
            "DELETE FROM {t} WHERE id % 4 = 1",
            insert(50),
        ],
    ),
    Table("avro", "days(day)", [insert(150), DELETE, UPDATE], properties={"write.format.default": "avro"}),
    Table("orc", "bucket(4, l)", [insert(150), DELETE, UPDATE], properties={"write.format.default": "orc"}),
]


def selected():
    """All tables, or those that `$SANDUR_SPARK_TABLES` names."""
    names = os.environ.get("SANDUR_SPARK_TABLES", "").split()
    unknown = set(names) - {table.name for table in ALL}
    assert not unknown, f"no such tables: {unknown}"
    return [table for table in ALL if not names or table.name in names]
