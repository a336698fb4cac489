"""Tables by Spark, read by Spark and by Sandur: rows, snapshots and branches, predicates, metadata tables.

Predicates are asked of Spark as aggregates over the whole table (`sum(if(p, ...))`), so that Spark's own pruning has
no part in the answer. Known to differ, and not compared: `readable_metrics` (the same numbers stand in the maps of
counts and bounds beside it).
"""

import datetime
import decimal
import random

import canonical
import pytest
import spark_tables
from pyspark.sql import types

PREDICATES = 40
# Rows that a table must have for its comparison to say something.
LEAST_ROWS = 40


def spark_value(kind, value):
    """A collected value in the canonical form of tests/clients/canonical.py."""
    if value is None:
        return None
    if isinstance(kind, types.StructType):
        return {field.name: spark_value(field.dataType, value[i]) for i, field in enumerate(kind.fields)}
    if isinstance(kind, types.ArrayType):
        return [spark_value(kind.elementType, item) for item in value]
    if isinstance(kind, types.MapType):
        pairs = [[spark_value(kind.keyType, k), spark_value(kind.valueType, v)] for k, v in value.items()]
        return sorted(pairs, key=lambda pair: (isinstance(pair[0], str), pair[0]))
    if isinstance(kind, types.TimestampType):
        return value.isoformat(timespec="microseconds") + "Z"
    if isinstance(kind, types.TimestampNTZType):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return canonical.decimal_text(value)
    if isinstance(value, (bytes, bytearray)):
        return "hex:" + bytes(value).hex()
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return canonical.int_value(value)
    if isinstance(value, float):
        return canonical.float_value(value)
    return value


def spark_rows(spark, query):
    """Names and canonical rows of a query."""
    frame = spark.sql(query)
    fields = frame.schema.fields
    return (
        [field.name for field in fields],
        [[spark_value(field.dataType, row[i]) for i, field in enumerate(fields)] for row in frame.collect()],
    )


def our_rows(connection, query):
    """The same of Sandur's answer."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        answer = cursor.fetch_arrow_table()
    return answer.column_names, canonical.table_rows(answer)


def same_rows(ours, theirs):
    """Both have the same columns in the same order and the same rows in any order."""
    assert ours[0] == theirs[0]
    mine, spark = canonical.sorted_lines(ours[1]), canonical.sorted_lines(theirs[1])
    if mine != spark:
        missing = sorted(set(spark) - set(mine))
        more = sorted(set(mine) - set(spark))
        pytest.fail(f"{len(mine)} rows here, {len(spark)} by Spark; only there: {missing[:3]}; only here: {more[:3]}")


def both(servers):
    return [(name, servers[name]) for name in ("pruning", "plain")]


def test_rows(spark, servers, table, note):
    theirs = spark_rows(spark, f"SELECT * FROM spark.db.{table}")
    assert len(theirs[1]) >= LEAST_ROWS
    for _, connection in both(servers):
        same_rows(our_rows(connection, f"SELECT * FROM spark.db.{table}"), theirs)
    note(f"{table}: {len(theirs[1])} rows as Spark's")


def versions(spark, table):
    """Every snapshot and every branch and tag, as SQL literals."""
    snapshots = spark.sql(f"SELECT snapshot_id FROM spark.db.{table}.snapshots").collect()
    refs = spark.sql(f"SELECT name FROM spark.db.{table}.refs").collect()
    return [str(row.snapshot_id) for row in snapshots] + [f"'{row.name}'" for row in refs]


def test_versions(spark, servers, table, note):
    asked = versions(spark, table)
    assert len(asked) >= 3
    for version in asked:
        query = f"SELECT * FROM spark.db.{table} VERSION AS OF {version}"
        theirs = spark_rows(spark, query)
        for _, connection in both(servers):
            same_rows(our_rows(connection, query), theirs)
    note(f"{table}: {len(asked)} snapshots, branches and tags as Spark's")


class Predicates:
    """Random predicates over the columns that a table has, in a spelling that Spark and Sandur share.

    Constants are values of the table where it has some, so that comparisons hit the edges. A predicate may be null;
    in a count that is the same as false. Floats are compared with `<`, `<=`, `=` alone, and never under NOT: there
    Spark's order, in which NaN is greatest, and IEEE's agree.
    """

    def __init__(self, spark, table, seed):
        self.random = random.Random(seed)
        frame = spark.table(f"spark.db.{table}")
        self.columns = []
        simple = [
            (field.name, field.dataType)
            for field in frame.schema.fields
            if not isinstance(field.dataType, (types.ArrayType, types.MapType, types.StructType))
        ]
        nested = [
            (f"st['{field.name}']", field.dataType)
            for column in frame.schema.fields
            if column.name == "st"
            for field in column.dataType.fields
        ]
        for text, kind in simple + nested:
            rows = spark.sql(f"SELECT DISTINCT {text} AS v FROM spark.db.{table} WHERE {text} IS NOT NULL").collect()
            literals = sorted({literal(kind, row.v) for row in rows} - {None})
            self.columns.append((text, kind, literals or ["NULL"]))

    def one(self, depth=2):
        kind = self.random.random()
        if depth and kind < 0.35:
            joint = self.random.choice(["AND", "OR"])
            return f"({self.one(depth - 1)} {joint} {self.one(depth - 1)})"
        column, kind, literals = self.random.choice(self.columns)
        pick = lambda: self.random.choice(literals)  # noqa: E731
        floating = isinstance(kind, (types.FloatType, types.DoubleType))
        forms = ["null", "compare", "compare", "compare", "between", "in"]
        if isinstance(kind, types.StringType):
            forms += ["like"]
        if isinstance(kind, types.BooleanType):
            forms = ["null", "boolean"]
        if literals == ["NULL"]:
            forms = ["null"]
        form = self.random.choice(forms)
        negated = "NOT " if self.random.random() < 0.25 and (form == "null" or not floating) else ""
        if form == "null":
            return f"{column} IS {negated}NULL"
        if form == "compare":
            operators = ["<", "<=", "="] if floating else ["<", "<=", "=", "<>", ">", ">="]
            text = f"{column} {self.random.choice(operators)} {pick()}"
        elif form == "between":
            text = f"{column} BETWEEN {pick()} AND {pick()}"
        elif form == "in":
            text = f"{column} IN ({', '.join(pick() for _ in range(self.random.randint(1, 5)))})"
        elif form == "like":
            text = f"{column} LIKE '{pick()[1:-1][: self.random.randint(0, 5)]}%'"
        else:
            text = column
        return f"{negated}({text})"


def literal(kind, value):
    """A value as SQL that both understand; None where it has no such form."""
    if isinstance(kind, (types.IntegerType, types.LongType)):
        return str(value)
    if isinstance(kind, types.DecimalType):
        return f"CAST({canonical.decimal_text(value)} AS {kind.simpleString()})"
    if isinstance(kind, (types.FloatType, types.DoubleType)):
        finite = value == value and abs(value) != float("inf")
        name = "FLOAT" if isinstance(kind, types.FloatType) else "DOUBLE"
        return f"CAST({value!r} AS {name})" if finite else None
    if isinstance(kind, types.StringType):
        return f"'{value}'"
    if isinstance(kind, types.BinaryType):
        return f"X'{bytes(value).hex()}'"
    if isinstance(kind, types.DateType):
        return f"DATE '{value.isoformat()}'"
    if isinstance(kind, types.TimestampType):
        return f"TIMESTAMP '{value.isoformat(' ', 'microseconds')}+00:00'"
    if isinstance(kind, types.TimestampNTZType):
        return f"CAST('{value.isoformat(' ', 'microseconds')}' AS timestamp_ntz)"
    return None


def for_sandur(predicate):
    """Standard SQL for what Spark spells its own way."""
    return predicate.replace("AS timestamp_ntz)", "AS TIMESTAMP)").replace("AS FLOAT)", "AS REAL)")


def test_predicates(spark, servers, table, note):
    source = Predicates(spark, table, f"{spark_tables.SEED} {table}")
    predicates = [source.one() for _ in range(PREDICATES)]
    sums = ", ".join(f"sum(if({p}, 1, 0)) AS c{n}, sum(if({p}, id, 0)) AS s{n}" for n, p in enumerate(predicates))
    answer = spark.sql(f"SELECT {sums} FROM spark.db.{table}").collect()[0]
    wrong = []
    for n, predicate in enumerate(predicates):
        for name, connection in servers.items():
            query = f"SELECT count(*) AS c, coalesce(sum(id), 0) AS s FROM spark.db.{table} WHERE {for_sandur(predicate)}"
            try:
                found = tuple(our_rows(connection, query)[1][0])
            except Exception as error:
                found = f"{type(error).__name__}: {error}"[:300]
            if found != (answer[2 * n], answer[2 * n + 1]):
                wrong.append(f"{name}: {predicate}: {found}, Spark has {answer[2 * n], answer[2 * n + 1]}")
    some = sum(1 for n in range(len(predicates)) if answer[2 * n])
    assert some >= PREDICATES // 4, "predicates that choose nothing show nothing"
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])
    note(f"{table}: {len(predicates)} predicates as Spark's, {some} of them choose rows")


METADATA = [
    "snapshots",
    "history",
    "refs",
    "files",
    "data_files",
    "delete_files",
    "entries",
    "manifests",
    "partitions",
    "metadata_log_entries",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "all_entries",
    "all_manifests",
]
# Ours alone: counters that tell deletion vectors from files of position deletes.
NOT_COMPARED = {"readable_metrics"}


def project(names, row, chosen):
    at = dict(zip(names, row))
    return [at[name] for name in chosen]


def common_fields(mine, spark):
    """The struct `data_file` of both with the fields that both have."""
    keys = [set(row) for row in mine[:1] + spark[:1]]
    shared = (set.intersection(*keys) if keys else set()) - NOT_COMPARED
    return [[{k: row[k] for k in shared} for row in rows] for rows in (mine, spark)], shared


@pytest.mark.parametrize("name", METADATA)
def test_metadata_tables(spark, servers, table, name, note):
    names, theirs = spark_rows(spark, f"SELECT * FROM spark.db.{table}.{name}")
    mine_names, mine = our_rows(servers["pruning"], f"SELECT * FROM spark.db.{table}.{name}")
    chosen = [column for column in names if column in mine_names and column not in NOT_COMPARED]
    lacking = set(names) - set(mine_names) - NOT_COMPARED
    assert not lacking, f"columns of Spark's that are not here: {sorted(lacking)}"
    mine = [project(mine_names, row, chosen) for row in mine]
    theirs = [project(names, row, chosen) for row in theirs]
    if "data_file" in chosen:
        at = chosen.index("data_file")
        (left, right), shared = common_fields([row[at] for row in mine], [row[at] for row in theirs])
        assert not theirs or {"file_path", "record_count", "partition", "lower_bounds"} <= shared | {"partition"}
        for row, value in zip(mine, left):
            row[at] = value
        for row, value in zip(theirs, right):
            row[at] = value
    same_columns(chosen, mine, theirs)
    note(f"{table}.{name}: {len(theirs)} rows, {len(chosen)} columns as Spark's")


def same_columns(chosen, mine, theirs):
    """The same rows; where they are not, the message names the columns that differ first."""
    if canonical.sorted_lines(mine) == canonical.sorted_lines(theirs):
        return
    lines = [f"{len(mine)} rows here, {len(theirs)} by Spark"]
    for n, column in enumerate(chosen):
        left = canonical.sorted_lines([[row[n]] for row in mine])
        right = canonical.sorted_lines([[row[n]] for row in theirs])
        if left != right:
            here = sorted(set(left) - set(right))[:2]
            there = sorted(set(right) - set(left))[:2]
            lines.append(f"{column}: only here {here}, only by Spark {there}")
    pytest.fail("\n".join(lines))
