"""Damaged files of Delta tables read through one running server: refused by name, or exactly the original rows.

A thousand truncated and bit-flipped copies of each kind of file, from fixed seeds. Deletion vectors have checksums,
so their damage never gives other rows; commits have none but what a version's checksum file counts, and Parquet
checkpoints only those of their pages and the hint's count, so that what still is valid may
(`delta_damage.Copy.is_beyond_notice`): it is counted and printed. A caught panic and a query
without an end are failures; the server must be alive at the end, within its memory.
"""

import pytest

import cases
import delta_cases
import delta_damage
from broken_files import Rows, check, check_alive, connect, damaged, read_patiently, serve
from conftest import NOT_RUN
from row_checks import check_rows


def tables_of(kind):
    return [table for table in map(delta_cases.by_name, delta_damage.TABLES[kind]) if table is not None]


@pytest.fixture(scope="module")
def copies():
    with damaged(delta_damage.KINDS, tables_of, delta_damage.make_copies, "broken delta") as made:
        yield made


@pytest.fixture(scope="module")
def broken_server(copies, start_server):
    lines = []
    for name, table in {table.name: table for kind in copies for table in tables_of(kind)}.items():
        lines += cases.table_toml("whole", f"default.{name}", table.location, table.path_map, "delta")
    return serve(start_server, copies, lines)


def whole(client, table):
    """The rows of an undamaged table, which are those of its writer."""
    found = read_patiently(client, f'whole.default."{table.name}"')
    check_rows(table, found, table.expected)
    return Rows(table, found)


@pytest.mark.parametrize("kind", delta_damage.KINDS)
def test_damaged_files_are_refused_by_name_or_give_the_original_rows(kind, copies, broken_server, record):
    if kind not in copies:
        record(NOT_RUN, f"damaged Delta {kind} files: no table with {kind} files without the collection")
        return
    client = connect(broken_server)
    originals = {table.name: whole(client, table) for table in tables_of(kind)}
    client.close()
    counts = check(copies[kind], broken_server, originals, record, named=False)
    seen = sum(count for how, count in counts.items() if how.startswith("refused"))
    assert seen > len(copies[kind]) // 4


def test_the_server_lives_and_never_panicked(copies, broken_server):
    if not copies:
        return
    check_alive(broken_server)
    client = connect(broken_server)
    whole(client, tables_of("vector")[0])
    client.close()
