"""Many clients that delete: rows of one file, the same rows, and random statements whose history is replayed.

Two deletes of different rows of one data file both succeed in version 3, in which a commit merges the vectors; of
deletes that overlap each says what it deleted itself, so the counts add up to the rows that went. A history of INSERT
and DELETE is replayed in the order of its snapshots: each statement has to count what it counts when the
statements run one after the other.
"""

import dataclasses
import os
import random
import threading
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import other_readers
from conftest import MERGED
from delete_checks import Change, live_files, summaries, vectors
from insert_checks import Writing
from wire import command, field

CLIENTS = 8
# `make test-full` sets SANDUR_LONG.
STATEMENTS = 200 if os.environ.get("SANDUR_LONG") else 15
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64())])


@pytest.fixture(scope="module")
def writing(start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("concurrent") / "warehouse"
    server = start_server(["--warehouse", str(warehouse)])
    opened = Writing(server, warehouse)
    opened.url = server.url
    yield opened
    opened.close()


@pytest.fixture
def together(writing):
    """Runs a function in a thread for each of some numbers, all at once; what they gave, by number."""

    def run(work, numbers):
        failures, given, gate = [], {}, threading.Barrier(len(numbers))

        def one(number):
            try:
                with flight.connect(writing.url) as client:
                    gate.wait()
                    given[number] = work(client, number)
            except BaseException as e:  # noqa: BLE001 - reported below
                failures.append(e)

        threads = [threading.Thread(target=one, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        return given

    return run


def sent(client, sql):
    """Runs a statement: what the server says that it did."""
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, sql))))
    done = Change.of(info.app_metadata)
    assert done.rows == info.total_records
    return done


def refused(error):
    """Whether a statement was surely not made, since others came first at every attempt."""
    text = str(error)
    return "came first" in text or "run the statement again" in text or "aborted" in text.lower()


def until_made(client, sql):
    """What a statement did, and how often it was refused before."""
    for refusals in range(1000):
        try:
            return sent(client, sql), refusals
        except (pa.ArrowException, flight.FlightError) as e:
            if not refused(e):
                raise
    raise AssertionError(f"refused a thousand times: {sql}")


def one_file(writing, name, version, rows, more=""):
    writing.run(f"CREATE TABLE s.{name} (id BIGINT NOT NULL, v BIGINT) TBLPROPERTIES ('format-version' = '{version}'{more})")
    writing.append_rows(name, pa.table([list(range(rows)), [n % 10 for n in range(rows)]], schema=ROWS))
    table = writing.catalog.load_table(f"s.{name}")
    [(path, _)] = live_files(table)[0]
    return path


def ids_left(writing, name, expected):
    table = writing.catalog.load_table(f"s.{name}")
    assert writing.table(f"SELECT id FROM s.{name} ORDER BY id").column(0).to_pylist() == expected
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    read = other_readers.duck().execute(f"SELECT id FROM iceberg_scan('{table.metadata_location}') ORDER BY id").fetchall()
    assert [row[0] for row in read] == expected
    assert other_readers.fsck(table) == ""
    return table


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_deletes_of_different_rows_of_one_file_all_succeed(writing, together, isolation, record):
    """None is refused, none is lost, and one vector has them all."""
    name, rounds, each = f"different_{isolation}", 5, 4
    path = one_file(writing, name, 3, 1000, f", 'write.delete.isolation-level' = '{isolation}'")

    def work(client, number):
        for n in range(rounds):
            ids = [CLIENTS * (each * n + k) + number for k in range(each)]
            done = sent(client, f"DELETE FROM s.{name} WHERE id IN ({', '.join(map(str, ids))})")
            assert (done.rows, done.counts) == (each, (0, 1, 0, 0))

    began = time.monotonic()
    together(work, range(CLIENTS))
    table = ids_left(writing, name, list(range(CLIENTS * rounds * each, 1000)))
    [(named, vector)] = vectors(table).items()
    assert (named, vector["record_count"]) == (path, CLIENTS * rounds * each)
    assert set(live_files(table)[1]) == {(vector["file_path"], vector["content_offset"])}
    new = summaries(table, 1)
    assert len(new) == CLIENTS * rounds and {operation for operation, _ in new} == {"delete"}
    record(MERGED, f"{CLIENTS} clients, {isolation}: {len(new)} deletes of rows of one file, none refused ({time.monotonic() - began:.1f} s)")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("which", ["WHERE id = (SELECT max(o.id) FROM s.{name} AS o)", "ORDER BY id DESC LIMIT 1"], ids=["max", "limit"])
def test_deletes_of_the_last_row_each_take_one(writing, together, version, which, record):
    """Which row is the last depends on the rows that are there: nobody may count the row that another took."""
    name, rounds = f"last_{'max' if 'max' in which else 'limit'}_v{version}", 3
    one_file(writing, name, version, 100)

    def work(client, _):
        return [until_made(client, f"DELETE FROM s.{name} {which.format(name=name)}")[0].rows for _ in range(rounds)]

    given = together(work, range(CLIENTS))
    assert given == {n: [1] * rounds for n in range(CLIENTS)}
    ids_left(writing, name, list(range(100 - CLIENTS * rounds)))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_deletes_that_overlap_count_each_row_once(writing, together, version, mode, record):
    """Client n deletes 150 rows from 50 n on: whoever comes second counts what was left."""
    name = f"overlap_{mode[:4]}_v{version}"
    one_file(writing, name, version, 1000, f", 'write.delete.mode' = '{mode}'")
    given = together(lambda client, n: until_made(client, f"DELETE FROM s.{name} WHERE id BETWEEN {50 * n} AND {50 * n + 149}"), range(CLIENTS))
    gone = 50 * (CLIENTS - 1) + 150
    assert sum(done.rows for done, _ in given.values()) == gone
    table = ids_left(writing, name, list(range(gone, 1000)))
    made = [done for done, _ in given.values() if done.snapshot_id is not None]
    by_snapshot = {done.snapshot_id: done.rows for done in made}
    # In the order of the snapshots each deleted what none before had.
    left, number_of = set(range(1000)), {done.snapshot_id: n for n, (done, _) in given.items()}
    for snapshot in sorted(table.snapshots(), key=lambda s: s.sequence_number)[1:]:
        n = number_of[snapshot.snapshot_id]
        mine = left & set(range(50 * n, 50 * n + 150))
        assert by_snapshot[snapshot.snapshot_id] == len(mine)
        left -= mine
    refusals = sum(refusals for _, refusals in given.values())
    if (version, mode) == (3, "merge-on-read"):
        assert refusals == 0 and len(vectors(table)) == 1
    record(MERGED, f"{CLIENTS} clients, overlapping, {mode} in version {version}: refused and sent again {refusals} times")


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_whole_files_meet_deletes_of_their_rows(writing, together, version):
    """Half of the clients delete rows of all of four files, the others a file each."""
    name = f"whole_v{version}"
    one_file(writing, name, version, 100)
    for start in (100, 200, 300):
        writing.append_rows(name, pa.table([list(range(start, start + 100)), [start // 100] * 100], schema=ROWS))

    def work(client, n):
        where = f"id % 10 = {n}" if n < 4 else f"id BETWEEN {100 * (n - 4)} AND {100 * (n - 4) + 99}"
        return until_made(client, f"DELETE FROM s.{name} WHERE {where}")[0].rows

    given = together(work, range(CLIENTS))
    assert sum(given.values()) == 400
    assert live_files(ids_left(writing, name, [])) == ({}, {})


@dataclasses.dataclass
class Sent:
    """A statement that was answered, and what it does to rows (id to v) when it runs alone."""

    sql: str
    run: object
    done: Change = None
    # Snapshots that were known before it was sent, and the newest one after it was answered.
    before: tuple = ()
    after: int | None = None


def keeping(condition):
    """A delete in a model: the number of rows that went."""

    def run(rows):
        gone = [number for number, v in rows.items() if condition(number, v, rows)]
        for number in gone:
            del rows[number]
        return len(gone)

    return run


def random_statement(chance, name, client, n):
    first = 1000 * (STATEMENTS * client + n)
    shape = chance.randrange(10)
    if shape < 4:
        new = {first + k: chance.choice([None, *range(10)]) for k in range(3)}
        listed = ", ".join(f"({number}, {'NULL' if v is None else v})" for number, v in new.items())

        def run(rows):
            rows.update(new)
            return len(new)

        return Sent(f"INSERT INTO s.{name} VALUES {listed}", run)
    a, b = sorted(chance.sample(range(10), 2))
    if shape == 4:
        where, condition = f"v = {a}", lambda number, v, rows: v == a
    elif shape == 5:
        where, condition = f"v BETWEEN {a} AND {b} AND id % 3 = 0", lambda number, v, rows: v is not None and a <= v <= b and number % 3 == 0
    elif shape == 6:
        where, condition = "v IS NULL", lambda number, v, rows: v is None
    elif shape == 7:
        where, condition = f"NOT (v <> {b}) OR id = {first}", lambda number, v, rows: v == b or number == first
    elif shape == 8:
        last = [f"id = (SELECT max(o.id) FROM s.{name} AS o)", "true ORDER BY id DESC LIMIT 1"]
        where, condition = chance.choice(last), lambda number, v, rows: number == max(rows)
    else:
        low = 1000 * STATEMENTS * chance.randrange(CLIENTS)
        high = low + 1000 * chance.randrange(1, STATEMENTS + 1)
        where, condition = f"id >= {low} AND id < {high} AND v < {b}", lambda number, v, rows: low <= number < high and v is not None and v < b
    # What is asked of all rows is asked of them as they were.
    return Sent(f"DELETE FROM s.{name} WHERE {where}", lambda rows: keeping(lambda number, v, _, then=dict(rows): condition(number, v, then))(rows))


@pytest.mark.parametrize("version", [2, 3])
def test_a_history_of_inserts_and_deletes_replays_one_after_the_other(writing, together, version, record):
    name = f"history_v{version}"
    writing.run(f"CREATE TABLE s.{name} (id BIGINT NOT NULL, v BIGINT) TBLPROPERTIES ('format-version' = '{version}')")
    known, all_sent, refusals, busy, seen = [], [], [0], threading.Event(), [[] for _ in range(3)]
    busy.set()

    def write(client, number):
        chance = random.Random(f"client {number} of version {version}")
        for n in range(STATEMENTS):
            statement = random_statement(chance, name, number, n)
            while statement.done is None:
                statement.before = tuple(known[-1:])
                try:
                    statement.done = sent(client, statement.sql)
                except (pa.ArrowException, flight.FlightError) as e:
                    if not refused(e):
                        raise
                    refusals[0] += 1
            if statement.done.snapshot_id is not None:
                known.append(statement.done.snapshot_id)
            else:
                statement.after = writing.catalog.load_table(f"s.{name}").metadata.current_snapshot_id
            all_sent.append(statement)

    def read(number):
        def rows():
            if number == 2:
                return writing.catalog.load_table(f"s.{name}").scan().to_arrow()
            info = client.get_flight_info(flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, f"SELECT id, v FROM s.{name}"))))
            return client.do_get(info.endpoints[0].ticket).read_all()

        with flight.connect(writing.url) as client:
            while busy.is_set():
                began = time.monotonic()
                found = rows()
                seen[number].append(dict(zip(found["id"].to_pylist(), found["v"].to_pylist())))
                time.sleep(0.1 + 2 * (time.monotonic() - began))

    failures = []

    def guarded(number):
        try:
            read(number)
        except BaseException as e:  # noqa: BLE001 - reported below
            failures.append(e)

    readers = [threading.Thread(target=guarded, args=(number,)) for number in range(3)]
    for reader in readers:
        reader.start()
    try:
        together(write, range(CLIENTS))
    finally:
        busy.clear()
        for reader in readers:
            reader.join()
    assert not failures, failures

    table = writing.catalog.load_table(f"s.{name}")
    states, place = replay(table, all_sent)
    for statement in all_sent:
        if statement.done.snapshot_id is None:
            check_nothing(statement, states, place)
    for reads in seen:
        at = 0
        for rows in reads:
            later = [n for n in range(at, len(states)) if states[n] == rows]
            assert later, "a reader saw what no snapshot holds, or an older one than before"
            at = later[0]
    ids_left(writing, name, sorted(states[-1]))
    vectors(table)
    record(
        MERGED,
        f"version {version}: {len(all_sent)} statements of {CLIENTS} clients made {len(place)} snapshots; refused and sent again "
        f"{refusals[0]} times; {sum(map(len, seen))} reads",
    )


def replay(table, all_sent):
    """The rows after each snapshot, the empty table first; and the place of each snapshot."""
    of_snapshot = {statement.done.snapshot_id: statement for statement in all_sent if statement.done.snapshot_id is not None}
    ordered = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number)
    assert {snapshot.snapshot_id for snapshot in ordered} == set(of_snapshot)
    assert [s.parent_snapshot_id for s in ordered] == [None] + [s.snapshot_id for s in ordered[:-1]]
    rows, states, place = {}, [{}], {}
    for snapshot in ordered:
        statement = of_snapshot[snapshot.snapshot_id]
        count = statement.run(rows)
        assert count == statement.done.rows, f"{statement.sql} says {statement.done.rows}, alone it is {count}"
        states.append(dict(rows))
        place[snapshot.snapshot_id] = len(states) - 1
    return states, place


def check_nothing(statement, states, place):
    """A delete of no rows: there was a time between its beginning and its end at which no row matched."""
    assert statement.done.rows == 0
    first = place[statement.before[0]] if statement.before else 0
    last = place[statement.after] if statement.after is not None else 0
    assert any(statement.run(dict(states[n])) == 0 for n in range(min(first, last), last + 1)), statement.sql
