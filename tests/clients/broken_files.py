"""Damaged copies read through one running server: what each gives, and which of it is a fault.

A copy (`damage.Copy`) is refused by name or gives exactly the rows of the undamaged table. Other rows may come only
from bytes that nothing tells to be damaged. A caught panic, another internal error, and a query without an end are
failures.
"""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import re
import tempfile

import pyarrow as pa
import pyarrow.flight as flight

import canonical
import wire
from conftest import BROKEN

COPIES = int(os.environ.get("SANDUR_BROKEN_COPIES") or 1_000)
READERS = 4
SECONDS = 60  # of one call
# The server's own limits are of the clock, so a machine that is busy may miss them; what hangs does so each time.
TRIES = 5
PEAK_BYTES = 2 << 30
FAULT = re.compile(r"panic|unexpectedly|returned internal error", re.IGNORECASE)


@contextlib.contextmanager
def damaged(kinds, tables_of, make_copies, title):
    """Kind to its damaged copies, from a seed of title and kind alone; kinds without tables are left out."""
    with tempfile.TemporaryDirectory(prefix="sandur-broken-") as folder:
        yield {
            kind: make_copies(kind, tables_of(kind), COPIES, pathlib.Path(folder) / kind, random.Random(f"{title} {kind}"))
            for kind in kinds
            if tables_of(kind)
        }


def serve(start_server, copies, whole):
    """One server over all copies as `broken`, and over undamaged tables as `whole`, of which `whole` has the lines."""
    lines = ["[catalog.broken]", 'type = "tables"']
    for made in copies.values():
        for copy in made:
            lines += copy.toml("broken")
    lines += ["[catalog.whole]", 'type = "tables"', *whole]
    return start_server(config="\n".join(lines) + "\n")


def connect(server):
    return flight.connect(f"grpc://127.0.0.1:{server.port}")


def read(client, table):
    """All rows of a table: two calls, since a driver's prepared statement would be twice as many."""
    options = flight.FlightCallOptions(timeout=SECONDS)
    descriptor = flight.FlightDescriptor.for_command(wire.command("CommandStatementQuery", wire.field(1, f"SELECT * FROM {table}")))
    info = client.get_flight_info(descriptor, options)
    return pa.concat_tables([client.do_get(endpoint.ticket, options).read_all() for endpoint in info.endpoints])


def read_patiently(client, table):
    for _ in range(TRIES - 1):
        try:
            return read(client, table)
        except flight.FlightTimedOutError:
            pass
    return read(client, table)


class Rows:
    """What an undamaged table gives. Names of columns are not part of it: the metadata file has no checksum."""

    def __init__(self, case, table):
        self.uuid_columns, self.table = case.uuid_columns, table
        self.lines = self._lines(table)

    def _lines(self, table):
        return canonical.sorted_lines(canonical.table_rows(table, self.uuid_columns))

    def same(self, table):
        return self.table.equals(table) or self._lines(table) == self.lines


def outcome(client, copy, rows):
    """(outcome, the error's text). Outcomes with `!` are failures."""
    try:
        table = read_patiently(client, f"broken.{copy.name}")
    except flight.FlightTimedOutError as error:
        return "no end!", str(error)
    except (pa.ArrowException, flight.FlightError, OSError) as error:
        text = str(error)
        if FAULT.search(text):
            return "a panic or an internal error!", text
        if copy.must_be_unnoticed():
            return "refused for bytes that nothing refers to!", text
        denied = isinstance(error, flight.FlightUnauthorizedError)
        return copy.refusal(text, denied) or "an error that does not name the damaged file!", text
    if rows.same(table):
        return "the original rows", ""
    if copy.is_beyond_notice():
        return "other rows from bytes without a checksum", f"{table.num_rows} rows"
    return "other rows!", f"{table.num_rows} rows"


def check(copies, server, originals, record, named):
    """Reads all copies of a kind. `originals` has each table's `Rows`; with `named` all other rows are reported one by one."""
    kind = copies[0].kind
    clients = [connect(server) for _ in range(READERS)]

    def one(copy):
        return copy, *outcome(clients[copy.at % READERS], copy, originals[copy.original.case.name])

    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        results = list(pool.map(one, copies))
    for client in clients:
        client.close()

    counts = collections.Counter(how for _, how, _ in results)
    record(BROKEN, f"{kind}: {len(results)} copies: " + ", ".join(f"{count} {how}" for how, count in counts.most_common()))
    for copy, how, text in results:
        if how.startswith("other rows") and named:
            record(BROKEN, f"{kind}: other rows: {copy}: {text}")
    failed = [f"{how} {copy}: {text}" for copy, how, text in results if how.endswith("!")]
    assert not failed, f"{len(failed)} of {len(results)}:\n" + "\n".join(failed[:20])
    return counts


def check_alive(server):
    """The server runs, never panicked, and never held more memory than it may."""
    assert server.process.poll() is None, server.tail()
    log = server.log.read_text("utf-8", "replace")
    found = [line for line in log.splitlines() if re.search(r"panic|unexpectedly", line, re.IGNORECASE)]
    assert not found, found[:5]
    status = pathlib.Path(f"/proc/{server.process.pid}/status")
    if status.exists():
        peak = int(re.search(r"^VmHWM:\s*(\d+) kB$", status.read_text(), re.MULTILINE).group(1)) << 10
        assert peak < PEAK_BYTES, f"{peak >> 20} MiB at the peak"
