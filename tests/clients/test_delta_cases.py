"""Every question of the collection's Delta tables, put to one running server through ADBC.

One test a question: a table's current rows, or how it must be refused; the rows at each version, by number and by
the time of its commit; the newest version, the files and the properties that the metadata tables list; change
feeds; row ids; variants as JSON; what the table's origin published. Which answer is to be trusted is said in
`delta_cases.py`.
"""

import json

import adbc_driver_manager
import pyarrow.parquet as pq
import pytest

import canonical
import cases
import delta_cases
import delta_published
import questions
from conftest import ABSENT, ANSWERED, DIFFERENT, EXACT, NOT_RUN, UNANSWERED, UNREAD
from delta_cases import Missing
from delta_refusals import check_clean, check_missing_file, check_names, check_version_gone, names_missing_file
from row_checks import check_rows, parse_variants, read

ALL = delta_cases.load_all()
OPENED = [table for table in ALL if table.version is not None]


def of_tables(tables):
    return pytest.mark.parametrize("table", tables, ids=lambda table: table.name)


def refused(connection, sql):
    """The error of a query that must be refused."""
    with pytest.raises(adbc_driver_manager.Error) as caught:
        read(connection, sql)
    return caught.value


# Current rows.


@of_tables([table for table in ALL if table.has_rows])
def test_current_rows(table, connection, record):
    check_known_rows(table, read(connection, f"SELECT * FROM {table.ident}"), table.expected, record, EXACT, table.name)


def check_known_rows(table, found, expected, record, kind, what):
    """As `check_rows`; a case whose expectation is known to be wrong must have other rows."""
    is_known = table.case in cases.known_differences("delta") and expected is table.expected
    try:
        check_rows(table, found, expected)
    except AssertionError:
        if not is_known:
            raise
        record(DIFFERENT, table.name)
    else:
        assert not is_known, "listed as a known difference, but the rows are as expected"
        record(kind, what)


@of_tables([table for table in ALL if table.intent in ("negative", "log_fragment")])
def test_a_table_that_is_not_valid_is_refused(table, connection, record):
    error = refused(connection, f"SELECT * FROM {table.ident}")
    check_names(table, error, delta_cases.NEGATIVE[table.case])
    record(ANSWERED, "refusals of what is no valid Delta table")


@of_tables([table for table in ALL if table.intent == "engine_limitation" and not table.has_rows])
def test_a_table_that_no_engine_reads_gives_rows_or_a_clean_error(table, connection, record):
    try:
        found = read(connection, f"SELECT * FROM {table.ident}")
    except adbc_driver_manager.Error as error:
        check_clean(error)
        record(UNANSWERED, f"{table.name}: refused as by every engine: {error}")
    else:
        record(UNANSWERED, f"{table.name}: read, {found.num_rows} rows, but nothing to compare them with")


LOG_ONLY = [table for table in ALL if table.expected.get("reading") == "data_files_absent_log_only"]


@of_tables([table for table in LOG_ONLY if (table.case, table.place) not in delta_cases.CLONES])
def test_a_table_without_its_data_files_is_refused(table, connection, record):
    sql = f"SELECT * FROM {table.ident}"
    if table.case in delta_cases.ONE_FILE_OR_NONE:
        try:
            assert read(connection, sql).num_rows == 0
        except adbc_driver_manager.Error as error:
            check_missing_file(table, error)
    else:
        check_missing_file(table, refused(connection, sql))
    record(ANSWERED, "refusals for missing data files")


@of_tables([table for table in LOG_ONLY if (table.case, table.place) in delta_cases.CLONES])
def test_a_shallow_clone_has_the_rows_of_its_source(table, connection, record):
    source = delta_cases.CLONES[table.case, table.place]
    source = next(other for other in ALL if (other.case, other.place) == (table.case, source))
    check_rows(source, read(connection, f"SELECT * FROM {table.ident}"), source.expected)
    record(ANSWERED, "shallow clones")


# Older versions.


def check_version(table, version, sql, connection, record, kind):
    answer = table.version_answer(version)
    try:
        found = read(connection, sql)
    except adbc_driver_manager.Error as error:
        check_clean(error)
        if answer is Missing.LOG:
            check_version_gone(table, error)
        elif answer is Missing.FILES:
            check_missing_file(table, error)
        elif answer is None:
            record(UNANSWERED, f"{table.name} at {version}: {error}")
            return
        elif "sha256" not in answer and names_missing_file(table, error):
            record(ABSENT, f"{table.name} at {version}")
            return
        else:
            raise
    else:
        assert not isinstance(answer, Missing), f"{found.num_rows} rows, but {answer.value}"
        if answer is None:
            record(UNANSWERED, f"{table.name} at {version}: read, {found.num_rows} rows, but nothing to compare them with")
            return
        check_known_rows(table, found, answer, record, ANSWERED, kind)
        return
    record(ANSWERED, kind)


VERSIONS = [(table, version) for table in ALL for version in sorted(table.versions)]


@pytest.mark.parametrize(("table", "version"), VERSIONS, ids=lambda value: getattr(value, "name", str(value)))
def test_version_by_number(table, version, connection, record):
    sql = f"SELECT * FROM {table.ident} FOR VERSION AS OF {version}"
    check_version(table, version, sql, connection, record, "Delta versions by number")


AT_TIMES = [
    (table, version, moment)
    for table in delta_cases.timed()
    for version, moment in delta_cases.commit_times(table).items()
    if version in table.versions
]


@pytest.mark.parametrize(("table", "version", "moment"), AT_TIMES, ids=lambda value: getattr(value, "name", str(value)))
def test_version_by_timestamp(table, version, moment, connection, record):
    sql = f"SELECT * FROM {table.timed_ident} FOR TIMESTAMP AS OF {questions.timestamp_literal(moment)}"
    check_version(table, version, sql, connection, record, "Delta versions by timestamp")


@of_tables(delta_cases.timed())
def test_a_time_before_the_first_commit_is_an_error(table, connection):
    moment = min(delta_cases.commit_times(table).values()) - 1
    literal = questions.timestamp_literal(moment)
    check_clean(refused(connection, f"SELECT * FROM {table.timed_ident} FOR TIMESTAMP AS OF {literal}"))


@of_tables([table for table in OPENED if table.versions])
def test_a_version_to_come_is_an_error(table, connection):
    check_clean(refused(connection, f"SELECT * FROM {table.ident} FOR VERSION AS OF {table.version + 1}"))


# Change feeds and row ids.


def feed_versions(table):
    return range(table.doc["cdf"]["from"], table.doc["cdf"]["to"] + 1)


FEEDS = [(table, span) for table in ALL if "cdf" in table.doc for span in ("all", "from", *feed_versions(table))]
FEED_COLUMNS = ["_change_type", "_commit_version", "_commit_timestamp"]


@pytest.mark.parametrize(("table", "span"), FEEDS, ids=lambda value: getattr(value, "name", str(value)))
def test_change_feed(table, span, connection, record):
    feed = table.doc["cdf"]
    first, last = (feed["from"], feed["to"]) if span in ("all", "from") else (span, span)
    bounds = f"{first}" if span == "from" else f"{first}, {last}"
    sql = f"SELECT * FROM table_changes('{delta_cases.CATALOG}.default.{table.name}', {bounds})"
    found = read(connection, sql)
    assert found.column_names[-3:] == FEED_COLUMNS
    moments = found.column("_commit_timestamp")
    assert str(moments.type).startswith("timestamp[") and moments.null_count == 0
    rows = [row for row in feed["rows"] if first <= row[feed["columns"].index("_commit_version")] <= last]
    wanted = {"row_count": len(rows), "columns": feed["columns"], "rows": rows}
    if span in ("all", "from"):
        wanted |= {"schema": feed["schema"], "sha256": feed["sha256"]}
    else:  # the columns are those of the version, so only what both have is compared
        wanted.pop("columns")
        wanted["rows"] = [[row[feed["columns"].index(name)] for name in found.column_names[:-1]] for row in rows]
    check_rows(table, found.drop_columns(["_commit_timestamp"]), wanted)
    record(ANSWERED, "change feeds")


@of_tables([table for table in ALL if "row_tracking" in table.doc])
def test_row_tracking(table, connection, record):
    sql = f"SELECT *, _row_id AS row_id, _row_commit_version AS row_commit_version FROM {table.ident}"
    check_rows(table, read(connection, sql), table.doc["row_tracking"])
    record(ANSWERED, "row tracking")


# Metadata tables.


@of_tables(OPENED)
def test_history(table, connection, record):
    found = read(connection, f"SELECT * FROM {table.metadata_table('history')}")
    rows = {row["version"]: row for row in found.to_pylist()}
    assert len(rows) == found.num_rows
    if table.version not in table.commits:  # the newest version is a checkpoint whose commit is gone
        assert set(rows) <= {table.version}
        return
    assert max(rows) == table.version
    assert set(rows) <= set(table.commits)
    for version in rows:
        assert rows[version]["operation"] == table.commit_info(version).get("operation"), version
    record(ANSWERED, "Delta histories")


@of_tables([table for table in ALL if "timestamps" in table.doc])
def test_times_of_the_history(table, connection, record):
    wanted = {entry["version"]: entry["history_ms"] for entry in table.doc["timestamps"]}
    sql = f"SELECT version, timestamp FROM {table.metadata_table('history')}"
    for version, moment in canonical.table_rows(read(connection, sql)):
        assert moment.removesuffix("Z") == canonical.timestamp_text(wanted.pop(version), "ms")
    assert not wanted
    record(ANSWERED, "in-commit timestamps")


@of_tables(OPENED)
def test_files(table, connection, record):
    found = read(connection, f"SELECT * FROM {table.metadata_table('files')}")
    if table.case in delta_cases.ONE_FILE_OR_NONE and found.num_rows == 0:
        return
    assert found.num_rows == table.part["active_files"]
    if "active_file_paths" in table.part:
        paths = [delta_cases.listed_path(path) for path in found.column("file_path").to_pylist()]
        assert sorted(paths) == sorted(table.part["active_file_paths"])
    vectors = [vector for vector in found.column("deletion_vector").to_pylist() if vector]
    if "active_files_with_dv" in table.part:
        assert len(vectors) == table.part["active_files_with_dv"]
    for key, kind in (("dv_inline", "i"), ("dv_absolute", "p")):  # counted over the whole log
        if key in table.part:
            assert 1 <= [vector["storageType"] for vector in vectors].count(kind) <= table.part[key], key
    counts = found.column("record_count").to_pylist()
    if table.has_rows and None not in counts:
        assert sum(counts) - sum(vector["cardinality"] for vector in vectors) == table.expected["row_count"]
    record(ANSWERED, "lists of Delta files")


@of_tables([table for table in OPENED if "active_files_with_dv" in table.part])
def test_delete_files(table, connection, record):
    found = read(connection, f"SELECT * FROM {table.metadata_table('delete_files')}")
    assert found.num_rows == table.part["active_files_with_dv"]
    record(ANSWERED, "lists of deletion vectors")


@of_tables([table for table in OPENED if table.configuration is not None])
def test_properties(table, connection, record):
    found = read(connection, f"SELECT key, value FROM {table.metadata_table('properties')}")
    properties = dict(zip(*(column.to_pylist() for column in found.columns)))
    assert table.configuration.items() <= properties.items()
    record(ANSWERED, "Delta properties")


@of_tables([table for table in OPENED if "protocol" in table.part])
def test_detail(table, connection, record):
    (detail,) = read(connection, f"DESCRIBE DETAIL {table.ident}").to_pylist()
    protocol = table.part["protocol"]
    assert detail["format"] == "delta"
    assert {key: detail[key] for key in ("minReaderVersion", "minWriterVersion")} == {
        key: protocol[key] for key in ("minReaderVersion", "minWriterVersion")
    }
    features = {*protocol.get("readerFeatures", []), *protocol.get("writerFeatures", [])}
    assert features <= set(detail["tableFeatures"] or [])
    assert detail["partitionColumns"] == table.part["partition_columns"]
    assert table.configuration.items() <= dict(detail["properties"]).items()
    if table.case not in delta_cases.ONE_FILE_OR_NONE:
        assert detail["numFiles"] == table.part["active_files"]
    record(ANSWERED, "Delta details")


# Second sources of rows.


@of_tables([table for table in ALL if "to_json(v) by id" in table.doc])
def test_variants_as_json(table, connection, record):
    found = read(connection, f"SELECT id, v FROM {table.ident}")
    rows = canonical.table_rows(found)
    parse_variants(found, rows, 1, "variant")
    wanted = {int(row): text and json.loads(text) for row, text in table.doc["to_json(v) by id"].items()}
    assert dict(map(tuple, rows)) == wanted
    record(ANSWERED, "variants as JSON")


PUBLISHED = [(table, at) for table in ALL for at in range(len(table.doc.get("published", [])))]


@pytest.mark.parametrize(("table", "at"), PUBLISHED, ids=lambda value: getattr(value, "name", str(value)))
def test_published_result(table, at, connection, record):
    entry = table.doc["published"][at]
    sql, why = delta_published.translate(table, entry)
    if sql is None:
        record(UNREAD, f"{table.name}: {entry['query']}: {why}")
        return
    found = read(connection, sql)
    wanted = delta_published.rows(entry["trino_values"])
    assert delta_published.same_rows(wanted, found), f"{sql}\nserver: {found.slice(0, 20)}\npublished: {wanted[:20]}"
    record(ANSWERED, "published results")


@of_tables([table for table in ALL if table.published_folder])
def test_published_rows(table, connection, record):
    wanted = pq.read_table(table.published_folder)
    found = read(connection, f"SELECT * FROM {table.ident}")
    order = [(name, "ascending") for name in wanted.column_names]
    assert found.column_names == wanted.column_names
    assert found.cast(wanted.schema).sort_by(order).equals(wanted.sort_by(order))
    record(ANSWERED, "published results")


def test_collection_is_there(record):
    """Without the collection this file shows nothing, and says so (in CI that is a failure)."""
    wanted = cases.DELTA_TABLES_IN_COLLECTION
    if cases.root() and len(ALL) < wanted:
        record(NOT_RUN, f"{wanted - len(ALL)} of {wanted} Delta tables are missing")
