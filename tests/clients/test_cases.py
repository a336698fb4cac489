"""Every question of the collection of other writers' tables, put to one running server through ADBC.

One test a question: a table's current rows; the rows at each snapshot, by id and by timestamp; branches and tags;
row ids; the list of snapshots and of branches; what the table's origin published. Which answer is to be trusted
is said in `questions.py`. Two tables that break their own format may be refused, clearly and naming the file;
other rows than the expected ones are an error in every case.
"""

import adbc_driver_manager
import pytest

import canonical
import cases
import published
import questions
from conftest import ANSWERED, DIFFERENT, EXACT, NOT_RUN, REFUSED, UNANSWERED, UNREAD, connect
from row_checks import check_rows, parse_variants, read

ALL = cases.load_all()


def canonical_rows(connection, case, sql):
    return canonical.table_rows(read(connection, sql), case.uuid_columns)


def check_refusal(case, error):
    """A refusal must be meant: its status is not an internal fault, and its text names the file."""
    text = str(error).lower()
    assert not isinstance(error, adbc_driver_manager.InternalError), text
    assert "panic" not in text, text
    assert "puffin" in text or ".avro" in text, f"the refusal names no file: {error}"


def ask(case, connection, record, sql):
    """The table that a query gives, or None where the case may be refused and was."""
    try:
        return read(connection, sql)
    except adbc_driver_manager.Error as error:
        if case.name not in cases.ALWAYS_REFUSABLE:
            raise
        check_refusal(case, error)
        record(REFUSED, f"{case.name}: {sql}: {cases.ALWAYS_REFUSABLE[case.name]}")
        return None


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_current_rows(case, connection, record):
    try:
        table = ask(case, connection, record, f"SELECT * FROM {case.ident}")
    except adbc_driver_manager.Error as error:
        if case.name not in cases.known_differences():
            raise
        record(DIFFERENT, f"{case.name}: {error}")
        return
    if table is None:
        return
    try:
        check_rows(case, table, case.expected)
    except AssertionError:
        if case.name not in cases.known_differences():
            raise
        record(DIFFERENT, case.name)
    else:
        assert case.name not in cases.known_differences(), "listed as a known difference, but the rows are right"
        record(EXACT, case.name)


SNAPSHOTS = [(case, snapshot) for case in ALL for snapshot in questions.snapshot_ids(case)]


def check_snapshot(case, snapshot, sql, connection, record):
    answer = questions.snapshot_answer(case, snapshot)
    missing = questions.missing_files(case, snapshot)
    if missing:
        with pytest.raises(adbc_driver_manager.Error, match=missing):
            read(connection, sql)
        record(UNANSWERED, f"{case.name} at {snapshot}: refused, the collection lacks {missing}")
        return
    table = ask(case, connection, record, sql)
    if table is None:
        return
    if answer is None:
        record(UNANSWERED, f"{case.name} at {snapshot}: read, {table.num_rows} rows, but nothing to compare them with")
        return
    same_as_now = answer.doc is case.expected and case.name in cases.known_differences()
    try:
        check_rows(case, table, answer.doc)
    except AssertionError as error:
        if not same_as_now:
            raise AssertionError(f"{sql} ({answer.source}): {error}") from error
        record(DIFFERENT, f"{case.name} at {snapshot}")
    else:
        record(ANSWERED, "snapshots")


@pytest.mark.parametrize(("case", "snapshot"), SNAPSHOTS, ids=lambda value: getattr(value, "name", str(value)))
def test_snapshot_by_id(case, snapshot, connection, record):
    check_snapshot(case, snapshot, f"SELECT * FROM {case.ident} FOR VERSION AS OF {snapshot}", connection, record)


AT_TIMES = [
    (case, snapshot, moment)
    for case, snapshot in SNAPSHOTS
    if (moment := questions.snapshot_at(case, snapshot)) is not None
]


@pytest.mark.parametrize(("case", "snapshot", "moment"), AT_TIMES, ids=lambda value: getattr(value, "name", str(value)))
def test_snapshot_by_timestamp(case, snapshot, moment, connection, record):
    literal = questions.timestamp_literal(moment)
    check_snapshot(case, snapshot, f"SELECT * FROM {case.ident} FOR TIMESTAMP AS OF {literal}", connection, record)


REFS = [(case, name) for case in ALL for name, _ in questions.refs(case)]


@pytest.mark.parametrize("form", ["version", "name"])
@pytest.mark.parametrize(("case", "name"), REFS, ids=lambda value: getattr(value, "name", str(value)))
def test_ref(case, name, form, connection, record):
    entry = case.doc["refs"][name]
    source = f"{case.ident} FOR VERSION AS OF '{name}'" if form == "version" else f'{case.ident}."{entry["type"]}_{name}"'
    check_rows(case, read(connection, f"SELECT * FROM {source}"), entry)
    record(ANSWERED, "branches and tags")


@pytest.mark.parametrize("case", [case for case in ALL if case.doc.get("refs")], ids=lambda case: case.name)
def test_list_of_refs(case, connection, record):
    rows = canonical_rows(connection, case, f"SELECT name, type, snapshot_id FROM {case.metadata_table('refs')}")
    wanted = {name: (entry["type"].upper(), entry["snapshot_id"]) for name, entry in questions.refs(case)}
    assert {name: (kind, str(snapshot)) for name, kind, snapshot in rows} == wanted
    record(ANSWERED, "lists of branches and tags")


@pytest.mark.parametrize("case", [case for case in ALL if case.doc.get("row_lineage")], ids=lambda case: case.name)
def test_row_lineage(case, connection, record):
    lineage = case.doc["row_lineage"]
    check_rows(case, read(connection, f"{lineage['query']} FROM {case.ident}"), lineage)
    record(ANSWERED, "row lineage")


# A table without a list was not asked for one by any engine.
LISTED = [case for case in ALL if "snapshots" in case.doc or case.doc.get("current_snapshot_id") in (None, -1, "-1")]


@pytest.mark.parametrize("case", LISTED, ids=lambda case: case.name)
def test_list_of_snapshots(case, connection, record):
    rows = canonical_rows(
        connection,
        case,
        "SELECT snapshot_id, parent_id, arrow_cast(committed_at, 'Int64'), operation, summary "
        f"FROM {case.metadata_table('snapshots')}",
    )
    found = {}
    for snapshot, parent, micros, operation, summary in rows:
        found[str(snapshot)] = {
            "parent_id": None if parent is None else str(parent),
            "committed_ms": int(micros) // 1000,
            "operation": operation,
            "summary": dict(summary or []),
        }
    wanted = questions.snapshot_rows(case)
    assert set(found) == set(wanted)
    for snapshot, row in wanted.items():
        assert row["summary"].items() <= found[snapshot]["summary"].items(), snapshot
        there = {key: found[snapshot][key] for key in row if key != "summary"}
        assert there == {key: value for key, value in row.items() if key != "summary"}, snapshot
    record(ANSWERED, "lists of snapshots")


PUBLISHED = [
    (case, at) for case in ALL for at, entry in enumerate(case.doc.get("published", [])) if "rows" in entry
]


@pytest.mark.parametrize(("case", "at"), PUBLISHED, ids=lambda value: getattr(value, "name", str(value)))
def test_published_result(case, at, connection, record):
    entry = case.doc["published"][at]
    question, why = published.translate(case, entry)
    if question is None:
        record(UNREAD, f"{case.name}: {entry['query']}: {why}")
        return
    table = ask(case, connection, record, question.sql)
    if table is None:
        return
    rows = canonical.table_rows(table, case.uuid_columns)
    # The one table with published variants has no schema in its expected.json: its variant column is v.
    variants = [at for at, name in enumerate(table.column_names) if name == "v" and "variant" in case.doc["features"]]
    for at in variants:
        parse_variants(table, rows, at, "variant")
    wanted = question.wanted(entry["rows"])
    assert published.same_rows(wanted, rows, variants), f"{question.sql}\nserver:    {rows[:20]}\npublished: {wanted[:20]}"
    record(ANSWERED, "published results")


# Spellings of one question; `{version}` is a snapshot id, `{moment}` a timestamp, `{tag}` the name of a tag.
FORMS = [
    "t FOR VERSION AS OF {version}",
    "t FOR SYSTEM_VERSION AS OF {version}",
    "t VERSION AS OF {version}",
    "t AT (VERSION => {version})",
    "t FOR VERSION AS OF '{tag}'",
    "t FOR TIMESTAMP AS OF {moment}",
    "t FOR SYSTEM_TIME AS OF {moment}",
    "t TIMESTAMP AS OF {moment}",
    "t AT (TIMESTAMP => {moment})",
]
TRAVELLED = cases.by_name("spark_branches_tags")


@pytest.mark.parametrize("form", FORMS)
def test_every_spelling_of_time_travel_gives_the_same_rows(form, connection):
    tag = TRAVELLED.doc["refs"]["start"]
    moment = questions.timestamp_literal(questions.snapshot_at(TRAVELLED, tag["snapshot_id"]))
    source = form.replace("t ", f"{TRAVELLED.ident} ", 1).format(version=tag["snapshot_id"], moment=moment, tag="start")
    check_rows(TRAVELLED, read(connection, f"SELECT * FROM {source}"), tag)
    one = read(connection, f"SELECT count(*) FROM {source} AS x WHERE x.id >= 0")
    assert one.column(0).to_pylist() == [tag["row_count"]]


@pytest.mark.parametrize(
    "suffix",
    [
        " FOR VERSION AS OF 1",
        " FOR VERSION AS OF 'nothing'",
        " FOR TIMESTAMP AS OF TIMESTAMP '2001-01-01 00:00:00'",
        " AT (VERSION => 1)",
        ".branch_nothing",
        ".tag_dev",
        '."branch_start"',
    ],
)
def test_a_version_that_is_not_there_is_an_error_and_never_the_latest_rows(suffix, connection):
    with pytest.raises(adbc_driver_manager.ProgrammingError):
        read(connection, f"SELECT * FROM {TRAVELLED.ident}{suffix}")


@pytest.mark.parametrize("case", [case for case in ALL if case.name.startswith("sample_")], ids=lambda case: case.name)
def test_table_root_gives_the_same_rows_as_its_newest_metadata_file(case, start_server):
    lines = ["[catalog.root]", 'type = "tables"']
    lines += cases.table_toml("root", f"default.{case.name}", case.folder / "table", case.path_map)
    with connect(start_server(config="\n".join(lines) + "\n")) as connection:
        check_rows(case, read(connection, f'SELECT * FROM root.default."{case.name}"'), case.expected)


def test_collection_is_there(record):
    """Without the collection this file shows nothing, and says so (in CI that is a failure)."""
    if cases.root() is None:
        return
    if len(ALL) < cases.TABLES_IN_COLLECTION:
        record(NOT_RUN, f"{cases.TABLES_IN_COLLECTION - len(ALL)} of {cases.TABLES_IN_COLLECTION} tables are missing")
