"""Damaged files read through one running server: refused by name, or exactly the rows of the undamaged table.

A thousand truncated and bit-flipped copies of each kind of file, from fixed seeds. Other rows than the original ones
may come only from bytes that have no checksum and that still are what the format asks for (`damage.is_beyond_notice`);
they are counted and printed. A caught panic is a failure, and the server must be alive at the end.
"""

import collections
import concurrent.futures
import os
import pathlib
import random
import re
import tempfile

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import canonical
import cases
import damage
import wire
from conftest import BROKEN, NOT_RUN

COPIES = int(os.environ.get("SANDUR_BROKEN_COPIES") or 1_000)
READERS = 4
# Of these every copy with other rows is named at the end of the run: they decide about whole files.
NAMED = {"metadata", "manifest"}
PANIC = re.compile(r"panic|unexpectedly", re.IGNORECASE)


def tables_of(kind):
    return [case for case in map(cases.by_name, damage.TABLES[kind]) if case is not None]


@pytest.fixture(scope="module")
def copies():
    """Kind to its damaged copies, from a seed of the kind alone."""
    out = {}
    with tempfile.TemporaryDirectory(prefix="sandur-broken-") as folder:
        for kind in damage.KINDS:
            if tables_of(kind):
                source = random.Random(f"broken {kind}")
                out[kind] = damage.make_copies(kind, tables_of(kind), COPIES, pathlib.Path(folder) / kind, source)
        yield out


@pytest.fixture(scope="module")
def broken_server(copies, start_server):
    """One server over all copies, and over the undamaged tables under their own names."""
    lines = ["[catalog.broken]", 'type = "tables"']
    for kind, made in copies.items():
        for at, copy in enumerate(made):
            lines += copy.toml("broken", f"{kind}.t{at}")
    whole = {case.name: case for kind in copies for case in tables_of(kind)}
    lines += ["[catalog.whole]", 'type = "tables"']
    for name, case in whole.items():
        lines += cases.table_toml("whole", f"default.{name}", case.metadata_file, case.path_map)
    return start_server(config="\n".join(lines) + "\n")


def read(client, table):
    """All rows of a table: two calls, since a driver's prepared statement would be twice as many."""
    descriptor = flight.FlightDescriptor.for_command(wire.command("CommandStatementQuery", wire.field(1, f"SELECT * FROM {table}")))
    info = client.get_flight_info(descriptor)
    return pa.concat_tables([client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints])


class Original:
    """What an undamaged table gives. Names of columns are not part of it: the metadata file has no checksum."""

    def __init__(self, case, table):
        self.uuid_columns, self.table = case.uuid_columns, table
        self.lines = self._lines(table)

    def _lines(self, table):
        return canonical.sorted_lines(canonical.table_rows(table, self.uuid_columns))

    def same(self, table):
        return self.table.equals(table) or self._lines(table) == self.lines


def outcome(client, kind, at, copy, original):
    """(outcome, the error's text). Outcomes with `!` are failures."""
    try:
        table = read(client, f"broken.{kind}.t{at}")
    except (pa.ArrowException, flight.FlightError, OSError) as error:
        text = str(error)
        if PANIC.search(text):
            return "a panic!", text
        if copy.place.name in text and not isinstance(error, flight.FlightUnauthorizedError):
            return "refused", text
        # A flipped bit in a path: the error names the file that is to be read now and is not there.
        named = re.search(r"\bfile: (.+?)(, \w|\))", text)
        if kind in ("metadata", "manifest") and named and not pathlib.Path(named.group(1)).exists():
            return "refused, naming the path that the damage made", text
        return "an error that names no file!", text
    if original.same(table):
        return "the original rows", ""
    if copy.is_beyond_notice(kind):
        return "other rows from bytes without a checksum", f"{table.num_rows} rows"
    return "other rows!", f"{table.num_rows} rows"


@pytest.mark.parametrize("kind", damage.KINDS)
def test_damaged_files_are_refused_by_name_or_give_the_original_rows(kind, copies, broken_server, record):
    if kind not in copies:
        record(NOT_RUN, f"damaged {kind} files: no table with {kind} files without the collection")
        return
    clients = [flight.connect(f"grpc://127.0.0.1:{broken_server.port}") for _ in range(READERS)]
    originals = {
        case.name: Original(case, read(clients[0], f'whole.default."{case.name}"')) for case in tables_of(kind)
    }

    def one(at):
        copy = copies[kind][at]
        return copy, *outcome(clients[at % READERS], kind, at, copy, originals[copy.original.case.name])

    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        results = list(pool.map(one, range(len(copies[kind]))))
    for client in clients:
        client.close()

    counts = collections.Counter(how for _, how, _ in results)
    record(BROKEN, f"{kind}: {len(results)} copies: " + ", ".join(f"{count} {how}" for how, count in counts.most_common()))
    for copy, how, text in results:
        if how.startswith("other rows") and kind in NAMED:
            record(BROKEN, f"{kind}: other rows: {copy}: {text}")
    failed = [f"{how} {copy}: {text}" for copy, how, text in results if how.endswith("!")]
    assert not failed, f"{len(failed)} of {len(results)}:\n" + "\n".join(failed[:20])
    seen = sum(count for how, count in counts.items() if how.startswith("refused"))
    assert seen > 0 and seen + counts["the original rows"] > len(results) * 3 // 4


def test_the_server_lives_and_never_panicked(copies, broken_server):
    assert broken_server.process.poll() is None, broken_server.tail()
    log = broken_server.log.read_text("utf-8", "replace")
    assert not PANIC.search(log), [line for line in log.splitlines() if PANIC.search(line)][:5]
    client = flight.connect(f"grpc://127.0.0.1:{broken_server.port}")
    case = tables_of(next(iter(copies)))[0]
    assert read(client, f'whole.default."{case.name}"').num_rows == case.expected["row_count"]
    client.close()
