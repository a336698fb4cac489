"""Changes as Flight calls, sent by hand: what each call does once, what it never does, and what it answers.

The points are those of flight-sql.md 6: 16 (a change runs once), 17 (exact counts), 18 (`is_update`).
"""

import subprocess
import sys
import textwrap
import threading

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from conftest import connect
from other_readers import pyiceberg_catalog
from test_writes import fsck, rows, run, warehouse, writing  # noqa: F401 - fixtures
from wire import command, field, parse

VALUES = pa.schema([pa.field("1", pa.int64()), pa.field("2", pa.string())])


@pytest.fixture
def client(writing):  # noqa: F811
    with flight.connect(f"grpc+tcp://127.0.0.1:{writing.port}") as opened:
        yield opened


def query(sql):
    return flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, sql)))


def put(client, cmd, batches=(), schema=None, options=None):
    """What a DoPut answers with, as the fields of the message in its metadata."""
    schema = schema or (batches[0].schema if batches else pa.schema([]))
    arguments = [options] if options else []
    writer, reader = client.do_put(flight.FlightDescriptor.for_command(cmd), schema, *arguments)
    for batch in batches:
        writer.write_batch(batch)
    writer.done_writing()
    answer = reader.read()
    writer.close()
    return parse(answer.to_pybytes()) if answer is not None else None


def update(client, sql, **options):
    """The count that an update answers with; protobuf leaves out a zero."""
    return put(client, command("CommandStatementUpdate", field(1, sql)), **options).get(1, [0])[0]


def prepare(client, sql):
    body = command("ActionCreatePreparedStatementRequest", field(1, sql))
    [result] = client.do_action(flight.Action("CreatePreparedStatement", body))
    return parse(parse(result.body.to_pybytes())[2][0])


def values(*pairs):
    return pa.record_batch([pa.array([p[0] for p in pairs], pa.int64()), pa.array([p[1] for p in pairs], pa.string())], VALUES)


def prepared_update(client, handle, batches=(), schema=None):
    return put(client, command("CommandPreparedStatementUpdate", field(1, handle)), batches, schema).get(1, [0])[0]


def bind(client, handle, batch):
    """The handle that has the values."""
    return put(client, command("CommandPreparedStatementQuery", field(1, handle)), [batch])[1][0]


def snapshots(server):
    return rows(server, "SELECT count(*) FROM shop.t.snapshots")[0][0]


# -- 17: an update answers with its exact count


def test_an_update_answers_with_the_exact_count_of_rows(writing, client):  # noqa: F811
    assert update(client, "CREATE SCHEMA more") == 0
    assert update(client, "CREATE TABLE more.u (id BIGINT)") == 0
    assert update(client, "INSERT INTO more.u VALUES (1), (2), (3)") == 3
    assert update(client, "INSERT INTO more.u SELECT id + 10 FROM more.u WHERE id > 1") == 2
    assert update(client, "INSERT INTO more.u SELECT id FROM more.u WHERE false") == 0
    assert update(client, "CREATE TABLE more.v AS SELECT * FROM more.u") == 5
    assert update(client, "CREATE TABLE IF NOT EXISTS more.v AS SELECT * FROM more.u") == 0
    assert rows(writing, "SELECT id FROM more.u ORDER BY id") == [(1,), (2,), (3,), (12,), (13,)]
    assert rows(writing, "SELECT count(*) FROM more.v") == [(5,)]
    assert update(client, "DROP TABLE more.u") == 0
    assert update(client, "DROP SCHEMA more CASCADE") == 0


def test_an_update_takes_no_query_and_no_transaction(writing, client):  # noqa: F811
    with pytest.raises(pa.ArrowInvalid):
        update(client, "SELECT 1")
    sql = "INSERT INTO shop.t VALUES (1, 'a')"
    for cmd in [
        command("CommandStatementUpdate", field(1, sql), field(2, b"transaction")),
        command("CommandStatementQuery", field(1, sql), field(2, b"transaction")),
    ]:
        with pytest.raises(pa.ArrowNotImplementedError, match="transactions"):
            put(client, cmd) if b"Update" in cmd else client.get_flight_info(flight.FlightDescriptor.for_command(cmd))
    assert snapshots(writing) == 0


# -- 16: once, by whichever call


def test_a_change_sent_as_a_query_is_made_by_that_call_and_leaves_nothing_to_fetch(writing, client):  # noqa: F811
    info = client.get_flight_info(query("INSERT INTO shop.t VALUES (1, 'a'), (2, NULL)"))
    assert (info.endpoints, info.total_records, info.schema.names) == ([], 2, ["count"])
    assert rows(writing, "SELECT * FROM shop.t ORDER BY id") == [(1, "a"), (2, None)]
    assert snapshots(writing) == 1


def test_two_calls_with_the_same_statement_are_two_statements(writing, client):  # noqa: F811
    for _ in range(2):
        assert client.get_flight_info(query("INSERT INTO shop.t VALUES (1, 'a')")).total_records == 1
    assert update(client, "INSERT INTO shop.t VALUES (1, 'a')") == 1
    assert rows(writing, "SELECT * FROM shop.t") == [(1, "a")] * 3
    assert snapshots(writing) == 3


def test_asking_for_the_schema_of_a_change_or_preparing_it_changes_nothing(writing, client):  # noqa: F811
    sql = "INSERT INTO shop.t VALUES (1, 'a')"
    handle = prepare(client, sql)[1][0]
    prepared = flight.FlightDescriptor.for_command(command("CommandPreparedStatementQuery", field(1, handle)))
    for descriptor in [query(sql), query("CREATE TABLE shop.u (id INT)"), query("DROP TABLE shop.t"), prepared]:
        assert client.get_schema(descriptor).schema.names == ["count"]
    assert snapshots(writing) == 0
    with pytest.raises(pa.ArrowKeyError):
        client.get_schema(query("DROP TABLE shop.u"))


def test_no_ticket_changes_anything_however_often_it_is_redeemed(writing, client):  # noqa: F811
    sql = "INSERT INTO shop.t VALUES (?, ?)"
    handle = bind(client, prepare(client, sql)[1][0], values((1, "a")))
    for ticket in [
        command("CommandPreparedStatementQuery", field(1, handle)),
        command("CommandPreparedStatementUpdate", field(1, handle)),
        command("CommandStatementQuery", field(1, "INSERT INTO shop.t VALUES (1, 'a')")),
        command("CommandStatementUpdate", field(1, "INSERT INTO shop.t VALUES (1, 'a')")),
    ]:
        for _ in range(2):
            with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
                client.do_get(flight.Ticket(ticket)).read_all()
    assert snapshots(writing) == 0
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command("CommandPreparedStatementQuery", field(1, handle))))
    assert (info.endpoints, info.total_records) == ([], 1)
    assert rows(writing, "SELECT * FROM shop.t") == [(1, "a")]


def test_the_ticket_of_a_query_shows_what_was_there_when_it_was_planned(writing, client):  # noqa: F811
    update(client, "INSERT INTO shop.t VALUES (1, 'a')")
    ticket = client.get_flight_info(query("SELECT id FROM shop.t")).endpoints[0].ticket
    update(client, "INSERT INTO shop.t VALUES (2, 'b')")
    for _ in range(2):
        assert client.do_get(ticket).read_all().column("id").to_pylist() == [1]
    assert rows(writing, "SELECT count(*) FROM shop.t") == [(2,)]


# -- 18 and prepared updates


def test_preparing_says_whether_a_statement_changes_something(writing, client):  # noqa: F811
    for sql, is_update in [
        ("INSERT INTO shop.t VALUES (?, ?)", 1),
        ("  -- a comment\n  insert into shop.t select 1, 'a'", 1),
        ("CREATE TABLE shop.u AS SELECT 1 AS a", 1),
        ("DROP TABLE shop.t", 1),
        ("CREATE SCHEMA u", 1),
        ("SELECT * FROM shop.t WHERE id = ?", 0),
        ("EXPLAIN SELECT 1", 0),
    ]:
        answer = prepare(client, sql)
        assert answer.get(4) == [is_update], sql
        assert bool(answer.get(2, [b""])[0]) == (not is_update), sql


def test_a_prepared_update_with_several_batches_is_one_commit_and_counts_all_rows(writing, client):  # noqa: F811
    handle = prepare(client, "INSERT INTO shop.t VALUES (?, ?)")[1][0]
    batches = [values((1, "a"), (2, None)), values(), values((3, "c"), (4, "d"), (5, "e"))]
    assert prepared_update(client, handle, batches) == 5
    assert snapshots(writing) == 1
    # The same statement again, with other values.
    assert prepared_update(client, handle, [values((6, "f"))]) == 1
    assert rows(writing, "SELECT * FROM shop.t ORDER BY id") == [(1, "a"), (2, None), (3, "c"), (4, "d"), (5, "e"), (6, "f")]


def test_values_without_rows_change_nothing(writing, client):  # noqa: F811
    handle = prepare(client, "INSERT INTO shop.t VALUES (?, ?)")[1][0]
    assert prepared_update(client, handle, [values()]) == 0
    assert prepared_update(client, handle, schema=VALUES) == 0
    # Also where values were bound before.
    bind(client, handle, values((1, "a")))
    assert prepared_update(client, handle, [values()]) == 0
    assert snapshots(writing) == 0


def test_values_that_were_bound_before_are_used_once_by_an_update_that_brings_none(writing, client):  # noqa: F811
    """B139: the order of calls of arrow's Rust client, with the new handle and with the old one."""
    sql = "INSERT INTO shop.t VALUES (?, ?)"
    for keeps_old in [False, True]:
        old = prepare(client, sql)[1][0]
        new = bind(client, old, values((1, "a"), (2, "b"), (3, "c")))
        assert prepared_update(client, old if keeps_old else new) == 3
    assert rows(writing, "SELECT id, count(*) FROM shop.t GROUP BY id ORDER BY id") == [(1, 2), (2, 2), (3, 2)]
    # Own values go first.
    handle = bind(client, prepare(client, sql)[1][0], values((7, "no")))
    assert prepared_update(client, handle, [values((8, "yes"))]) == 1
    assert rows(writing, "SELECT id, name FROM shop.t WHERE id > 6") == [(8, "yes")]
    with pytest.raises(pa.ArrowInvalid, match="2 parameters"):
        prepared_update(client, prepare(client, sql)[1][0])


def test_one_bad_row_of_values_keeps_all_out(writing, client):  # noqa: F811
    handle = prepare(client, "INSERT INTO shop.t VALUES (?, ?)")[1][0]
    with pytest.raises(pa.ArrowInvalid, match="id"):
        prepared_update(client, handle, [values((1, "a")), values((2, "b"), (None, "c"))])
    assert snapshots(writing) == 0
    assert prepared_update(client, handle, [values((1, "a"))]) == 1


# -- AppendRows


def append_command(table="t", key=""):
    name = field(2, "shop") + field(3, table)
    body = field(1, name) + (field(2, key) if key else b"")
    return field(1, "type.googleapis.com/sandur.v1.AppendRows") + field(2, body)


def test_appended_rows_are_one_commit_and_once_for_a_key(writing, client):  # noqa: F811
    batch = pa.record_batch({"name": ["a", None], "ID": [1, 2]})
    for _ in range(3):
        answer = put(client, append_command(key="load 1"), [batch, batch.slice(0, 0), batch])
        assert (answer[1], answer[2]) == ([b"INSERT"], [4])
    assert rows(writing, "SELECT id, name, count(*) FROM shop.t GROUP BY id, name ORDER BY id") == [(1, "a", 2), (2, None, 2)]
    assert snapshots(writing) == 1
    assert put(client, append_command(key="load 2"), [batch.slice(0, 0)]).get(2) is None
    assert snapshots(writing) == 1


def test_a_key_is_known_after_its_snapshot_expired(writing, client, warehouse):  # noqa: F811
    first = pa.record_batch({"id": [1, 2], "name": ["a", "b"]})
    put(client, append_command(key="k"), [first])
    run(writing, "INSERT INTO shop.t VALUES (3, 'c')")
    table = pyiceberg_catalog(warehouse).load_table("shop.t")
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    put(client, append_command(key="k"), [first])
    assert rows(writing, "SELECT count(*), sum(id) FROM shop.t") == [(3, 6)]


# -- clients that go away


def test_statements_whose_clients_give_up_are_made_once_or_not_at_all(writing, client, warehouse):  # noqa: F811
    told = set()
    for number in range(40):
        options = flight.FlightCallOptions(timeout=0.001 * (1 + number))
        sql = f"INSERT INTO shop.t VALUES ({number}, 'x')"
        try:
            if number % 2:
                client.get_flight_info(query(sql), options)
            else:
                update(client, sql, options=options)
            told.add(number)
        except (flight.FlightTimedOutError, flight.FlightCancelledError):
            continue
    assert update(client, "INSERT INTO shop.t VALUES (1000, 'last')") == 1
    found = [row[0] for row in rows(writing, "SELECT id FROM shop.t")]
    assert len(found) == len(set(found))
    assert told | {1000} <= set(found) <= set(range(40)) | {1000}
    assert snapshots(writing) == len(found)
    assert fsck(warehouse, "t")[0] == 0


def test_an_upload_that_breaks_off_appends_nothing(writing, client, warehouse):  # noqa: F811
    program = textwrap.dedent(
        f"""
        import os, sys
        sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
        import pyarrow as pa
        import pyarrow.flight as flight
        from test_flight_changes import append_command
        client = flight.connect("grpc+tcp://127.0.0.1:{writing.port}")
        batch = pa.record_batch({{"id": list(range(1000)), "name": ["x"] * 1000}})
        writer, _ = client.do_put(flight.FlightDescriptor.for_command(append_command()), batch.schema)
        for _ in range(20):
            writer.write_batch(batch)
        os._exit(9)
        """
    )
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    options = flight.FlightCallOptions(timeout=0.5)
    batch = pa.record_batch({"id": [1], "name": ["x"]})
    writer, reader = client.do_put(flight.FlightDescriptor.for_command(append_command()), batch.schema, options)
    writer.write_batch(batch)
    with pytest.raises((flight.FlightTimedOutError, flight.FlightCancelledError)):
        assert reader.read() is None
        writer.close()
    assert put(client, append_command(), [batch]).get(2) == [1]
    assert rows(writing, "SELECT id FROM shop.t") == [(1,)]
    assert snapshots(writing) == 1
    assert fsck(warehouse, "t")[0] == 0


def test_statements_at_once_on_one_connection_are_each_made_once(writing, client):  # noqa: F811
    failures = []

    def insert(writer):
        try:
            for n in range(5):
                sql = f"INSERT INTO shop.t VALUES ({writer * 10 + n}, 'x')"
                count = update(client, sql) if n % 2 else client.get_flight_info(query(sql)).total_records
                assert count == 1
        except BaseException as e:  # noqa: BLE001 - reported below
            failures.append(e)

    threads = [threading.Thread(target=insert, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert rows(writing, "SELECT count(*), count(DISTINCT id) FROM shop.t") == [(30, 30)]
    assert snapshots(writing) == 30


# -- the same through ADBC


def test_a_cursor_binds_chunks_and_no_rows_at_all(writing):  # noqa: F811
    chunks = pa.Table.from_batches([values((1, "a"), (2, "b")), values(), values((3, None))])
    with connect(writing) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO shop.t VALUES (?, ?)", chunks)
        assert cursor.rowcount == 3
        cursor.executemany("INSERT INTO shop.t VALUES (?, ?)", chunks.slice(0, 0))
        assert cursor.rowcount == 0
        cursor.execute("INSERT INTO shop.t VALUES (?, ?)", chunks.slice(0, 2))
        assert cursor.rowcount == 2
    assert rows(writing, "SELECT id, name, count(*) FROM shop.t GROUP BY id, name ORDER BY id") == [
        (1, "a", 2),
        (2, "b", 2),
        (3, None, 1),
    ]
    assert run(writing, "INSERT INTO shop.t VALUES (9, 'z')") == 1
    assert snapshots(writing) == 3


def test_a_cursor_changes_when_it_executes_and_at_no_other_time(writing):  # noqa: F811
    sql = "INSERT INTO shop.t VALUES (?, ?)"
    with connect(writing) as connection, connection.cursor() as cursor:
        assert cursor.adbc_prepare(sql).types == [pa.int64(), pa.string()]
        assert snapshots(writing) == 0
        cursor.execute(sql, (1, "a"))
        # Looking for rows of a change finds none and makes it no second time.
        assert cursor.rowcount == 1
        assert cursor.fetchall() == []
        cursor.execute("INSERT INTO shop.t VALUES (2, 'b')")
        assert cursor.fetch_arrow_table().num_rows == 0
        partitions, _ = cursor.adbc_execute_partitions("INSERT INTO shop.t VALUES (3, 'c')")
        assert partitions == []
    assert rows(writing, "SELECT id FROM shop.t ORDER BY id") == [(1,), (2,), (3,)]
    assert snapshots(writing) == 3
