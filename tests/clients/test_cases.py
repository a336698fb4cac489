"""Every table of other writers, read through ADBC from a running server: exactly the expected rows.

A table of a kind that the server need not read yet may be refused, clearly and naming what it is; other
rows than the expected ones are an error in every case. What the origin of a table published about its
current snapshot is compared as well.
"""

import adbc_driver_manager
import pytest

import canonical
import cases
import published
from conftest import DIFFERENT, EXACT, NOT_RUN, REFUSED, UNREAD

ALL = cases.load_all()


def read(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


def check_refusal(case, error):
    """A refusal must be meant: its status is not an internal fault, and its text names the thing."""
    text = str(error).lower()
    assert not isinstance(error, adbc_driver_manager.InternalError), text
    assert "panic" not in text, text
    if case.name in cases.ALWAYS_REFUSABLE:
        assert "puffin" in text or ".avro" in text, f"the refusal names no file: {error}"
        return
    assert isinstance(error, adbc_driver_manager.NotSupportedError), f"not a refusal: {error}"
    words = case.not_asked()
    assert any(word in text for word in words), f"the refusal names none of {words}: {error}"


def check_rows(case, table):
    expected = case.expected
    assert table.num_rows == expected["row_count"]
    if case.columns is not None:
        assert table.column_names == case.columns
    for name, kind in expected.get("schema", []):
        field = table.schema.field(name)
        assert canonical.same_type(kind, field.type), f"column {name}: {field.type} instead of {kind}"
    rows = canonical.table_rows(table, case.uuid_columns)
    kinds = dict(expected.get("schema", []))
    rows = [[canonical.with_variants(kinds.get(n, ""), v) for n, v in zip(table.column_names, row)] for row in rows]
    if expected["status"] == "published_only" and "rows" in expected:
        assert published.same_rows(expected["rows"], rows), rows[:20]
        return
    if "rows" in expected:
        assert canonical.sorted_lines(rows) == canonical.sorted_lines(expected["rows"])
    if "sha256" in expected:
        assert canonical.sha256(table.column_names, rows) == expected["sha256"]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_current_rows(case, connection, record):
    may_refuse = bool(case.not_asked()) or case.name in cases.ALWAYS_REFUSABLE
    try:
        table = read(connection, f"SELECT * FROM {case.ident}")
    except adbc_driver_manager.Error as error:
        if case.name in cases.known_differences():
            record(DIFFERENT, f"{case.name}: {error}")
            return
        if not may_refuse:
            raise
        check_refusal(case, error)
        record(REFUSED, f"{case.name}: {', '.join(case.not_asked()) or cases.ALWAYS_REFUSABLE[case.name]}")
        return
    try:
        check_rows(case, table)
    except AssertionError:
        if case.name not in cases.known_differences():
            raise
        record(DIFFERENT, case.name)
    else:
        assert case.name not in cases.known_differences(), "listed as a known difference, but the rows are right"
        record(EXACT, case.name)


PUBLISHED = [
    (case, at) for case in ALL for at, entry in enumerate(case.doc.get("published", [])) if "rows" in entry
]


@pytest.mark.parametrize(("case", "at"), PUBLISHED, ids=lambda value: getattr(value, "name", str(value)))
def test_published_result(case, at, connection, record):
    entry = case.doc["published"][at]
    sql, why = published.translate(case, entry)
    if sql is None:
        record(UNREAD, f"{case.name}: {entry['query']}: {why}")
        return
    try:
        table = read(connection, sql)
    except adbc_driver_manager.Error as error:
        if not case.not_asked() and case.name not in cases.ALWAYS_REFUSABLE:
            raise
        check_refusal(case, error)
        return
    rows = canonical.table_rows(table, case.uuid_columns)
    assert published.same_rows(entry["rows"], rows), f"{sql}\nserver:    {rows[:20]}\npublished: {entry['rows'][:20]}"


@pytest.mark.parametrize("case", [case for case in ALL if "row_lineage" in case.doc], ids=lambda case: case.name)
def test_row_lineage(case, connection):
    lineage = case.doc["row_lineage"]
    table = read(connection, f"{lineage['query']} FROM {case.ident}")
    assert table.column_names == lineage["columns"]
    assert canonical.sha256(table.column_names, canonical.table_rows(table)) == lineage["sha256"]


@pytest.mark.parametrize("case", [case for case in ALL if case.name.startswith("sample_")], ids=lambda case: case.name)
def test_table_root_gives_the_same_rows_as_its_newest_metadata_file(case, start_server):
    rules = ", ".join(
        f"{{ from = {cases.toml_string(recorded)}, to = {cases.toml_string(real)} }}" for recorded, real in case.path_map
    )
    config = (
        '[catalog.root]\ntype = "tables"\n[[catalog.root.table]]\n'
        f'name = "default.{case.name}"\nformat = "iceberg"\n'
        f"location = {cases.toml_string(str(case.folder / 'table'))}\npath_map = [{rules}]\n"
    )
    from conftest import connect

    with connect(start_server(config=config)) as connection:
        check_rows(case, read(connection, f'SELECT * FROM root.default."{case.name}"'))


def test_collection_is_there(record):
    """Without the collection this file shows nothing, and says so (in CI that is a failure)."""
    if cases.root() is None:
        return
    if len(ALL) < cases.TABLES_IN_COLLECTION:
        record(NOT_RUN, f"{cases.TABLES_IN_COLLECTION - len(ALL)} of {cases.TABLES_IN_COLLECTION} tables are missing")
