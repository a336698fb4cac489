"""What Python's ADBC driver does with a server beside reading a table: metadata, parameters, partitions."""

import concurrent.futures
import pathlib

import adbc_driver_manager
import pyarrow as pa
import pytest

import canonical
import minitable
from conftest import connect


def query(connection, sql, parameters=None):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetch_arrow_table()


def refused(connection, sql):
    """The error of a statement that must fail with a sentence, and not as an internal fault."""
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error) as caught:
        cursor.execute(sql)
        cursor.fetchall()
    error = caught.value
    assert not isinstance(error, adbc_driver_manager.InternalError), f"{sql}: {error}"
    assert len(str(error)) > 20, f"{sql}: {error}"
    return error


def test_rows_without_the_deleted_ones(connection):
    table = query(connection, "SELECT * FROM own.default.words ORDER BY id")
    assert table.to_pylist() == [
        {"id": 0, "word": "zero"},
        {"id": 2, "word": "two"},
        {"id": 4, "word": "four"},
    ]
    assert query(connection, "SELECT count(*) AS n FROM own.default.words").to_pylist() == [{"n": 3}]
    assert query(connection, "SELECT id FROM own.default.words WHERE word IS NULL").num_rows == 0


def test_every_type_arrives_as_it_was_written(connection):
    expected = minitable.types_table()
    table = query(connection, "SELECT * FROM own.default.types ORDER BY id")
    assert table.column_names == expected.column_names
    for field in expected.schema:
        assert canonical.type_text(table.schema.field(field.name).type) == canonical.type_text(field.type), field.name
    assert canonical.table_rows(table) == canonical.table_rows(expected)


def test_an_empty_result_has_its_schema(connection):  # B130
    for sql in ["SELECT * FROM own.default.empty", "SELECT * FROM own.default.words WHERE false"]:
        table = query(connection, sql)
        assert table.num_rows == 0
        assert table.column_names == ["id", "word"]


def test_order_and_number_of_rows_of_a_larger_result(connection):
    table = query(connection, "SELECT n FROM own.other.numbers ORDER BY n DESC")
    assert table.column("n").to_pylist() == list(range(9_999, -1, -1))
    assert query(connection, "SELECT sum(n) AS s FROM own.other.numbers").to_pylist() == [{"s": 49_995_000}]


# -- metadata


def objects(connection, **filters):
    return connection.adbc_get_objects(**filters).read_all().to_pylist()


def test_get_objects_at_every_depth(connection):
    names = [c["catalog_name"] for c in objects(connection, depth="catalogs")]
    assert "own" in names
    assert names == sorted(names)

    [own] = objects(connection, depth="db_schemas", catalog_filter="own")
    assert [s["db_schema_name"] for s in own["catalog_db_schemas"]] == ["default", "other"]

    [own] = objects(connection, depth="tables", catalog_filter="own", db_schema_filter="default")
    [schema] = own["catalog_db_schemas"]
    assert [(t["table_name"], t["table_type"]) for t in schema["db_schema_tables"]] == [
        ("empty", "TABLE"),
        ("types", "TABLE"),
        ("words", "TABLE"),
    ]

    [own] = objects(
        connection, depth="all", catalog_filter="own", db_schema_filter="default", table_name_filter="words"
    )
    [table] = own["catalog_db_schemas"][0]["db_schema_tables"]
    columns = [(c["column_name"], c["ordinal_position"]) for c in table["table_columns"]]
    assert columns == [("id", 1), ("word", 2)]


def test_get_objects_patterns(connection):
    [own] = objects(connection, depth="tables", catalog_filter="own", table_name_filter="%s")
    tables = [t["table_name"] for s in own["catalog_db_schemas"] for t in s["db_schema_tables"]]
    assert tables == ["types", "words", "numbers"]
    [own] = objects(connection, depth="all", catalog_filter="own", table_name_filter="words", column_name_filter="w%")
    columns = [
        c["column_name"]
        for s in own["catalog_db_schemas"]
        for t in s["db_schema_tables"]
        for c in t["table_columns"]
    ]
    assert columns == ["word"]


def test_get_table_schema_is_the_schema_of_its_rows(connection):
    schema = connection.adbc_get_table_schema("types", catalog_filter="own", db_schema_filter="default")
    rows = query(connection, "SELECT * FROM own.default.types LIMIT 0").schema
    assert schema.equals(rows)


def test_table_types_and_info(connection):
    assert "TABLE" in connection.adbc_get_table_types()
    info = connection.adbc_get_info()
    assert "sandur" in info["vendor_name"].lower()
    assert info["vendor_version"]


# -- parameters


@pytest.mark.parametrize("mark", ["?", "$1"])
def test_bound_values(connection, mark):
    sql = f"SELECT word FROM own.default.words WHERE id = {mark}"
    assert query(connection, sql, [2]).to_pylist() == [{"word": "two"}]
    assert query(connection, sql, [1]).to_pylist() == []
    sql = f"SELECT id FROM own.default.words WHERE word = {mark}"
    assert query(connection, sql, ["four"]).to_pylist() == [{"id": 4}]
    assert query(connection, sql, [None]).to_pylist() == []


def test_a_bound_string_is_never_sql(connection):
    sql = "SELECT id FROM own.default.words WHERE word = ?"
    assert query(connection, sql, ["x' OR 1 = 1 --"]).num_rows == 0


def test_several_parameters_and_their_types(connection):
    sql = "SELECT id FROM own.default.types WHERE dec = ? AND day < ? AND b = ?"
    import datetime
    import decimal

    values = [decimal.Decimal("-12.50"), datetime.date(1970, 1, 1), True]
    assert query(connection, sql, values).to_pylist() == [{"id": 1}]


def test_a_prepared_statement_runs_again_with_other_values(connection):
    with connection.cursor() as cursor:
        sql = "SELECT word FROM own.default.words WHERE id = ?"
        seen = []
        for value in (0, 4, 2, 3):
            cursor.execute(sql, [value])
            seen.append(cursor.fetchall())
        assert seen == [[("zero",)], [("four",)], [("two",)], []]


def test_a_missing_value_is_an_error(connection):
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error) as caught:
        cursor.execute("SELECT * FROM own.default.words WHERE id = ?")
        cursor.fetchall()
    assert not isinstance(caught.value, adbc_driver_manager.InternalError), caught.value


# -- schemas and partitions


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM own.default.types",
        "SELECT count(*) AS n, min(s) AS s FROM own.default.types",
        "SELECT n, n % 7 AS m FROM own.other.numbers WHERE n < 10 ORDER BY n",
    ],
)
def test_execute_schema_is_the_schema_of_the_result(connection, sql):
    with connection.cursor() as cursor:
        announced = cursor.adbc_execute_schema(sql)
    assert announced.equals(query(connection, sql).schema)


def test_partitions_together_are_the_result(connection):
    sql = "SELECT n FROM own.other.numbers"
    with connection.cursor() as cursor:
        partitions, schema = cursor.adbc_execute_partitions(sql)
    assert partitions
    values = []
    for partition in partitions:
        with connection.cursor() as cursor:
            cursor.adbc_read_partition(partition)
            table = cursor.fetch_arrow_table()
            assert schema is None or table.schema.equals(schema)
            values += table.column("n").to_pylist()
    assert sorted(values) == list(range(10_000))


# -- what is refused

WRITES = [
    "INSERT INTO own.default.words VALUES (9, 'nine')",
    "UPDATE own.default.words SET word = 'x' WHERE id = 0",
    "DELETE FROM own.default.words WHERE id = 0",
    "DELETE FROM own.default.words",
    "MERGE INTO own.default.words w USING own.default.words s ON w.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE own.default.words",
    "CREATE TABLE own.default.fresh (id INT)",
    "CREATE TABLE own.default.fresh AS SELECT 1 AS id",
    "CREATE VIEW own.default.fresh AS SELECT 1 AS id",
    "DROP TABLE own.default.words",
    "CREATE SCHEMA own.fresh",
    "ALTER TABLE own.default.words ADD COLUMN x INT",
]


@pytest.mark.parametrize("sql", WRITES)
def test_writes_are_refused_and_change_nothing(connection, sql):
    refused(connection, sql)
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error):
        cursor.adbc_statement.set_sql_query(sql)
        cursor.adbc_statement.execute_update()
    assert query(connection, "SELECT count(*) AS n FROM own.default.words").to_pylist() == [{"n": 3}]


def test_bulk_ingest_is_refused(connection):
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error) as caught:
        cursor.adbc_ingest("words", pa.table({"id": [1]}), mode="append", catalog_name="own", db_schema_name="default")
    assert not isinstance(caught.value, adbc_driver_manager.InternalError), caught.value


def test_no_statement_reaches_a_file(connection, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nhidden\n", "utf-8")
    out = tmp_path / "out"
    for sql in [
        f"SELECT * FROM '{secret}'",
        f'SELECT * FROM "{secret}"',
        f"COPY (SELECT 1) TO '{out}/x.csv'",
        f"COPY own.default.words TO '{out}/x.parquet' STORED AS PARQUET",
        f"CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{secret}'",
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM csv_scan('{secret}')",
        f"EXPLAIN COPY (SELECT 1) TO '{out}/x.csv'",
        f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}/x.csv'",
    ]:
        error = refused(connection, sql)
        assert "hidden" not in str(error)
    assert not out.exists()


def test_settings_cannot_be_changed(connection):
    refused(connection, "SET datafusion.execution.batch_size = 1")


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT nope FROM own.default.words", "nope"),
        ("SELECT * FROM own.default.nope", "nope"),
        ("SELECT * FROM nope.default.words", "nope"),
        ("SELEKT 1", "selekt"),
        ("SELECT 1 / 0", "zero"),
        ("SELECT CAST('x' AS INT)", "x"),
    ],
)
def test_errors_name_what_is_wrong(connection, sql, word):
    assert word in str(refused(connection, sql)).lower()


def test_the_connection_lives_on_after_an_error(connection):
    refused(connection, "SELECT nope FROM own.default.words")
    assert query(connection, "SELECT 1 AS one").to_pylist() == [{"one": 1}]


# -- statements that are there


def test_show_describe_explain(connection):
    tables = query(connection, "SHOW TABLES").to_pylist()
    assert any("words" in row.values() for row in tables)
    described = query(connection, "DESCRIBE own.default.words").to_pylist()
    assert [next(iter(row.values())) for row in described] == ["id", "word"]
    plan = query(connection, "EXPLAIN SELECT * FROM own.default.words").to_pylist()
    assert plan


@pytest.mark.parametrize("sql", ["select 1", "SELECT 1;", "-- a comment\nSELECT 1", "/* a */ SELECT 1"])
def test_plain_probes(connection, sql):
    assert query(connection, sql).num_rows == 1


def test_names_match_without_regard_to_case_and_with_both_quotes(connection):
    for sql in [
        "SELECT ID FROM OWN.Default.WORDS",
        'SELECT "id" FROM own."default"."words"',
        "SELECT `id` FROM own.`default`.`words`",
    ]:
        assert query(connection, sql).num_rows == 3, sql


# -- connections


def test_interleaved_statements_of_one_connection(connection):
    with connection.cursor() as first, connection.cursor() as second:
        first.execute("SELECT n FROM own.other.numbers ORDER BY n")
        second.execute("SELECT n FROM own.other.numbers ORDER BY n DESC")
        up, down = first.fetch_record_batch(), second.fetch_record_batch()
        first_up, first_down = up.read_next_batch(), down.read_next_batch()
        assert first_up.column(0)[0].as_py() == 0
        assert first_down.column(0)[0].as_py() == 9_999
        assert first_up.num_rows + up.read_all().num_rows == 10_000
        assert first_down.num_rows + down.read_all().num_rows == 10_000


def test_many_statements_at_once(server):
    def work(at):
        with connect(server) as own:
            for turn in range(5):
                low = (at * 5 + turn) * 100
                sql = f"SELECT count(*) AS c, min(n) AS lo FROM own.other.numbers WHERE n >= {low} AND n < {low + 100}"
                assert query(own, sql).to_pylist() == [{"c": 100, "lo": low}]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(20)))


def test_more_open_results_than_the_server_runs_at_once(server):
    """Results that are open and not read must not keep others from running."""
    with connect(server) as own:
        cursors = [own.cursor() for _ in range(12)]
        for cursor in cursors:
            cursor.execute("SELECT n FROM own.other.numbers")
        assert [len(cursor.fetchall()) for cursor in cursors] == [10_000] * 12
        for cursor in cursors:
            cursor.close()


def test_a_dropped_result_leaves_the_server_well(server):
    with connect(server) as own:
        for _ in range(10):
            with own.cursor() as cursor:
                cursor.execute("SELECT a.n FROM own.other.numbers a CROSS JOIN own.other.numbers b")
                cursor.fetch_record_batch().read_next_batch()
        assert query(own, "SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_user_and_password_are_let_in_while_there_is_no_authentication(server):
    with connect(server, username="somebody", password="anything") as own:
        assert query(own, "SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_what_is_printed_is_only_what_a_user_needs(server):
    """stdout holds the lines to paste; the log goes to stderr."""
    assert server.stdout
    assert not any('"level"' in line or " INFO " in line for line in server.stdout)
    assert pathlib.Path(server.log).is_file()
