"""Flight itself: one schema for announcing, describing and sending; what is unknown is said to be so."""

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import cases
from wire import command, field, parse

QUERIES = [
    "SELECT 1 AS one",
    "SELECT NULL AS n",
    "SELECT 'a' AS s, CAST(1 AS DECIMAL(10, 2)) AS d, TIMESTAMP '2026-01-01 00:00:00' AS t",
    "SELECT * FROM own.default.words",
    "SELECT * FROM own.default.types",
    "SELECT * FROM own.default.empty",
    "SELECT id FROM own.default.words WHERE false",
    "SELECT count(*), sum(id), min(word), max(word) FROM own.default.words",
    "SELECT word, count(*) AS n FROM own.default.words GROUP BY word ORDER BY word",
    "SELECT DISTINCT n % 3 AS m FROM own.other.numbers",
    "SELECT a.id, b.word FROM own.default.words a LEFT JOIN own.default.words b ON a.id = b.id + 1",
    "SELECT id FROM own.default.words UNION ALL SELECT n FROM own.other.numbers WHERE n < 2",
    "SELECT row_number() OVER (ORDER BY id) AS r FROM own.default.words",
    "SELECT CASE WHEN id > 1 THEN word END AS w, id + 1, upper(word) FROM own.default.words",
    "WITH w AS (SELECT id FROM own.default.words) SELECT max(id) FROM w",
    "VALUES (1, 'a'), (2, NULL)",
    "SHOW TABLES",
    "DESCRIBE own.default.words",
    "EXPLAIN SELECT * FROM own.default.words",
]


@pytest.fixture(scope="module")
def client(server):
    with flight.connect(f"grpc+tcp://127.0.0.1:{server.port}") as opened:
        yield opened


def read(client, cmd):
    """The schema and rows that a command sends, with the two announced schemas compared."""
    descriptor = flight.FlightDescriptor.for_command(cmd)
    info = client.get_flight_info(descriptor)
    assert info.endpoints, "no endpoint"
    described = client.get_schema(descriptor).schema
    tables = []
    for endpoint in info.endpoints:
        reader = client.do_get(endpoint.ticket)
        assert info.schema.equals(described, check_metadata=True), f"{info.schema}\n---\n{described}"
        assert info.schema.equals(reader.schema, check_metadata=True), f"{info.schema}\n---\n{reader.schema}"
        tables.append(reader.read_all())
    return pa.concat_tables(tables)


def statement(sql):
    return command("CommandStatementQuery", field(1, sql))


def leaf_types(kind):
    if kind.num_fields:
        for i in range(kind.num_fields):
            yield from leaf_types(kind.field(i).type)
    yield kind


@pytest.mark.parametrize("sql", QUERIES)
def test_announced_described_and_sent_schemas_are_one(client, sql):
    table = read(client, statement(sql))
    for column in table.schema:
        for kind in leaf_types(column.type):
            text = str(kind)
            assert "view" not in text and "dictionary" not in text and "large_" not in text, f"{column.name}: {text}"


@pytest.mark.parametrize("case", cases.load_all(), ids=lambda case: case.name)
def test_schemas_of_the_collection_are_one(client, case):
    try:
        read(client, statement(f"SELECT * FROM {case.ident} LIMIT 3"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, flight.FlightError):
        if case.name not in cases.ALWAYS_REFUSABLE:
            raise


def utf8(name, nullable=True):
    return pa.field(name, pa.string(), nullable)


def int32(name, nullable=True):
    return pa.field(name, pa.int32(), nullable)


KEYS = pa.schema(
    [
        utf8("pk_catalog_name"),
        utf8("pk_db_schema_name"),
        utf8("pk_table_name", False),
        utf8("pk_column_name", False),
        utf8("fk_catalog_name"),
        utf8("fk_db_schema_name"),
        utf8("fk_table_name", False),
        utf8("fk_column_name", False),
        int32("key_sequence", False),
        utf8("fk_key_name"),
        utf8("pk_key_name"),
        pa.field("update_rule", pa.uint8(), False),
        pa.field("delete_rule", pa.uint8(), False),
    ]
)
TABLES = [utf8("catalog_name"), utf8("db_schema_name"), utf8("table_name", False), utf8("table_type", False)]
WORDS = (field(1, "own"), field(2, "default"), field(3, "words"))
METADATA = {
    "CommandGetCatalogs": ((), pa.schema([utf8("catalog_name", False)])),
    "CommandGetDbSchemas": ((), pa.schema([utf8("catalog_name"), utf8("db_schema_name", False)])),
    "CommandGetTables": ((), pa.schema(TABLES)),
    "CommandGetTableTypes": ((), pa.schema([utf8("table_type", False)])),
    "CommandGetPrimaryKeys": (
        WORDS,
        pa.schema(
            [
                utf8("catalog_name"),
                utf8("db_schema_name"),
                utf8("table_name", False),
                utf8("column_name", False),
                utf8("key_name"),
                int32("key_sequence", False),
            ]
        ),
    ),
    "CommandGetExportedKeys": (WORDS, KEYS),
    "CommandGetImportedKeys": (WORDS, KEYS),
    "CommandGetCrossReference": (WORDS + (field(4, "own"), field(5, "default"), field(6, "types")), KEYS),
}


@pytest.mark.parametrize("name", METADATA)
def test_metadata_schemas_are_those_of_the_protocol(client, name):
    fields, expected = METADATA[name]
    table = read(client, command(name, *fields))
    assert table.schema.remove_metadata().equals(expected), f"{table.schema}\n---\n{expected}"


def test_tables_with_their_schemas(client):
    cmd = command("CommandGetTables", field(1, "own"), field(3, "w%"), field(5, True))
    table = read(client, cmd)
    assert table.schema.names == ["catalog_name", "db_schema_name", "table_name", "table_type", "table_schema"]
    [row] = table.to_pylist()
    assert (row["catalog_name"], row["db_schema_name"], row["table_name"]) == ("own", "default", "words")
    schema = pa.ipc.read_schema(pa.py_buffer(row["table_schema"]))
    assert schema.names == ["id", "word"]
    assert not schema.field("id").nullable and schema.field("word").nullable
    # A driver reads the type's name from every field without looking whether it is there.
    for column in schema:
        assert (column.metadata or {}).get(b"ARROW:FLIGHT:SQL:TYPE_NAME"), column


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((field(1, "own"),), ["empty", "numbers", "types", "words"]),
        ((field(1, "%"), field(3, "words")), ["words"]),
        ((field(1, "own"), field(2, "oth%")), ["numbers"]),
        ((field(1, "own"), field(3, "w_rds")), ["words"]),
        ((field(1, "own"), field(4, "table")), ["empty", "numbers", "types", "words"]),
        ((field(1, "own"), field(4, "BASE TABLE"), field(3, "words")), ["words"]),
        ((field(1, "own"), field(4, "VIEW")), []),
        ((field(1, "nope"),), []),
        ((field(1, ""),), []),
    ],
)
def test_table_filters(client, fields, expected):
    table = read(client, command("CommandGetTables", *fields))
    assert sorted(table.column("table_name").to_pylist()) == expected


def test_sql_info_has_what_drivers_read(client):
    table = read(client, command("CommandGetSqlInfo"))
    ids = table.column("info_name").to_pylist()
    assert set(range(0, 5)) <= set(ids)
    assert set(range(500, 577)) <= set(ids), sorted(set(range(500, 577)) - set(ids))
    assert max(ids) < 10_000
    values = dict(zip(ids, table.column("value").to_pylist()))
    assert "sandur" in values[0].lower()
    assert values[3] is True, "read only"
    [one] = read(client, command("CommandGetSqlInfo", field(1, 0))).to_pylist()
    assert one["info_name"] == 0


def test_xdbc_types_have_the_protocols_columns(client):
    table = read(client, command("CommandGetXdbcTypeInfo"))
    assert table.num_columns == 19
    assert table.schema.names[:2] == ["type_name", "data_type"]
    assert table.num_rows > 0


# -- prepared statements by hand


def prepare(client, sql):
    body = command("ActionCreatePreparedStatementRequest", field(1, sql))
    [result] = client.do_action(flight.Action("CreatePreparedStatement", body))
    return parse(parse(result.body.to_pybytes())[2][0])


def close(client, handle):
    body = command("ActionClosePreparedStatementRequest", field(1, handle))
    return list(client.do_action(flight.Action("ClosePreparedStatement", body)))


def test_a_prepared_statement_announces_its_schemas(client):
    sql = "SELECT id, word FROM own.default.words WHERE id = ? AND word <> ?"
    answer = prepare(client, sql)
    dataset = pa.ipc.read_schema(pa.py_buffer(answer[2][0]))
    parameters = pa.ipc.read_schema(pa.py_buffer(answer[3][0]))
    assert dataset.names == ["id", "word"]
    assert [pa.types.is_integer(parameters.field(0).type), pa.types.is_string(parameters.field(1).type)] == [True, True]
    handle = answer[1][0]
    close(client, handle)
    close(client, handle)  # a driver may close twice, or after the server forgot


def test_a_write_prepares_with_no_dataset_or_not_at_all(client):
    try:
        answer = prepare(client, "DELETE FROM own.default.words")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        assert "read" in str(error).lower() or "select" in str(error).lower(), error
    else:
        assert not answer.get(2) or not answer[2][0] or not pa.ipc.read_schema(pa.py_buffer(answer[2][0])).names


# -- what is not there


@pytest.mark.parametrize(
    "name", ["CommandStatementSubstraitPlan", "CommandNoSuchThing", "TicketStatementQuery", "CommandStatementUpdate"]
)
def test_commands_that_are_not_built_are_unimplemented_with_a_sentence(client, name):
    descriptor = flight.FlightDescriptor.for_command(command(name))
    with pytest.raises(pa.ArrowNotImplementedError) as caught:
        client.get_flight_info(descriptor)
    assert name in str(caught.value)
    with pytest.raises(pa.ArrowNotImplementedError):
        client.get_schema(descriptor)


@pytest.mark.parametrize("action", ["NoSuchAction", "CreatePreparedSubstraitPlan", "BeginTransaction", "BeginSavepoint"])
def test_actions_that_are_not_built_are_unimplemented(client, action):
    with pytest.raises(pa.ArrowNotImplementedError) as caught:
        list(client.do_action(flight.Action(action, command(f"Action{action}Request"))))
    assert action in str(caught.value)


def test_listed_actions_are_those_that_answer(client):
    listed = {action.type for action in client.list_actions()}
    assert {"CreatePreparedStatement", "ClosePreparedStatement"} <= listed
    assert not listed & {"CreatePreparedSubstraitPlan", "BeginTransaction"}


def test_exchange_is_unimplemented(client):
    # The refusal may already be there when the call is made.
    with pytest.raises(pa.ArrowNotImplementedError):
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"x"))
        writer.done_writing()
        reader.read_all()


@pytest.mark.parametrize("raw", [b"", b"\xff\xff\xff", b"\x0a\xff", b"plain words", field(1, "x") + field(2, b"\xff")])
def test_bytes_that_are_no_command_are_refused_as_such(client, raw):
    for call in (
        lambda: client.get_flight_info(flight.FlightDescriptor.for_command(raw)),
        lambda: client.do_get(flight.Ticket(raw)).read_all(),
        lambda: list(client.do_action(flight.Action("CreatePreparedStatement", raw))),
    ):
        with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError)) as caught:
            call()
        assert "panic" not in str(caught.value)


def test_a_forged_ticket_is_refused(client):
    good = client.get_flight_info(flight.FlightDescriptor.for_command(statement("SELECT 1"))).endpoints[0].ticket.ticket
    for at in range(len(good)):
        forged = bytearray(good)
        forged[at] ^= 0x01
        try:
            client.do_get(flight.Ticket(bytes(forged))).read_all()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, flight.FlightError):
            continue
        # Bits that do not change what the ticket says may pass (the type's host name, for example).


def test_a_path_is_no_command(client):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError)):
        client.get_flight_info(flight.FlightDescriptor.for_path("own", "default", "nope"))
