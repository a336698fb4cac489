"""Damaged files of Iceberg tables read through one running server: refused by name, or exactly the original rows.

A thousand truncated and bit-flipped copies of each kind of file, from fixed seeds. Other rows than the original ones
may come only from bytes that have no checksum and that still are what the format asks for (`damage.is_beyond_notice`);
they are counted and printed. A caught panic is a failure, and the server must be alive at the end.
"""

import pytest

import cases
import damage
from broken_files import Rows, check, check_alive, connect, damaged, read_patiently, serve
from conftest import NOT_RUN

# Of these every copy with other rows is named at the end of the run: they decide about whole files.
NAMED = {"metadata", "manifest"}


def tables_of(kind):
    return [case for case in map(cases.by_name, damage.TABLES[kind]) if case is not None]


@pytest.fixture(scope="module")
def copies():
    with damaged(damage.KINDS, tables_of, damage.make_copies, "broken") as made:
        yield made


@pytest.fixture(scope="module")
def broken_server(copies, start_server):
    lines = []
    for name, case in {case.name: case for kind in copies for case in tables_of(kind)}.items():
        lines += cases.table_toml("whole", f"default.{name}", case.metadata_file, case.path_map)
    return serve(start_server, copies, lines)


@pytest.mark.parametrize("kind", damage.KINDS)
def test_damaged_files_are_refused_by_name_or_give_the_original_rows(kind, copies, broken_server, record):
    if kind not in copies:
        record(NOT_RUN, f"damaged {kind} files: no table with {kind} files without the collection")
        return
    client = connect(broken_server)
    originals = {case.name: Rows(case, read_patiently(client, f'whole.default."{case.name}"')) for case in tables_of(kind)}
    client.close()
    counts = check(copies[kind], broken_server, originals, record, named=kind in NAMED)
    seen = sum(count for how, count in counts.items() if how.startswith("refused"))
    assert seen > 0 and seen + counts["the original rows"] > len(copies[kind]) * 3 // 4


def test_the_server_lives_and_never_panicked(copies, broken_server):
    check_alive(broken_server)
    client = connect(broken_server)
    case = tables_of(next(iter(copies)))[0]
    assert read_patiently(client, f'whole.default."{case.name}"').num_rows == case.expected["row_count"]
    client.close()
