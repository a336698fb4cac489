"""One row of two files of a thousand deletes a few bytes, or a file is written anew; a whole file is only forgotten.

What each delete wrote is counted from the files and told in the closing report.
"""

import pyarrow as pa
import pytest

import other_readers
from conftest import WRITTEN
from delete_checks import Files, amplification, change, live_files, summaries, vectors
from insert_checks import Writing

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("category", pa.string()), pa.field("note", pa.string())])
ONE = "DELETE FROM s.{} WHERE id = 5"
WHOLE = "DELETE FROM s.{} WHERE category = 'b'"


@pytest.fixture(scope="module")
def writing(start_server, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("experiment") / "warehouse"
    opened = Writing(start_server(["--warehouse", str(warehouse)]), warehouse)
    yield opened
    opened.close()


def two_files(writing, version, mode, what):
    """A table of two data files: ids 0 to 999 of category a, 1000 to 1999 of category b."""
    name = f"{what}_{mode.replace('-', '_')}_v{version}"
    writing.run(
        f"CREATE TABLE s.{name} (id BIGINT NOT NULL, category STRING, note STRING) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}')"
    )
    for start, category in [(0, "a"), (1000, "b")]:
        ids = range(start, start + 1000)
        rows = [list(ids), [category] * 1000, [f"row {n} of many, {n * n}" for n in ids]]
        writing.append_rows(name, pa.table([pa.array(c, f.type) for c, f in zip(rows, ROWS)], schema=ROWS))
    table = writing.catalog.load_table(f"s.{name}")
    data, deletes = live_files(table)
    assert sorted(file["record_count"] for file in data.values()) == [1000, 1000] and not deletes
    return name


def ids_are(writing, name, expected):
    """The server, pyiceberg and DuckDB have exactly these ids, and nothing is wrong with the table."""
    table = writing.catalog.load_table(f"s.{name}")
    expected = sorted(expected)
    assert writing.table(f"SELECT id FROM s.{name} ORDER BY id").column(0).to_pylist() == expected
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    read = other_readers.duck().execute(f"SELECT id FROM iceberg_scan('{table.metadata_location}') ORDER BY id").fetchall()
    assert [row[0] for row in read] == expected
    assert other_readers.fsck(table) == ""
    return table


@pytest.mark.parametrize("version", [1, 2, 3])
def test_copy_on_write_writes_the_rows_that_stay(writing, version, record):
    name = two_files(writing, version, "copy-on-write", "row")
    before = live_files(writing.catalog.load_table(f"s.{name}"))[0]
    done, new, line = amplification(writing, name, ONE.format(name), 1)
    record(WRITTEN, line)
    assert (done.verb, done.counts) == ("DELETE", (1, 0, 1, 0))
    table = ids_are(writing, name, set(range(2000)) - {5})
    [operation, counts] = summaries(table)[-1]
    assert operation == "overwrite"
    assert {key: counts.get(key) for key in ("added-data-files", "deleted-data-files", "added-records", "deleted-records", "total-records")} == {
        "added-data-files": "1",
        "deleted-data-files": "1",
        "added-records": "999",
        "deleted-records": "1000",
        "total-records": "1999",
    }
    after, deletes = live_files(table)
    assert not deletes
    [copy] = [file for key, file in after.items() if key not in before]
    assert copy["record_count"] == 999 and copy["file_size_in_bytes"] == done.bytes
    assert len(after) == 2 and len(after.keys() & before.keys()) == 1
    assert [size for path, size in new.items() if path.startswith("data/")] == [done.bytes]


@pytest.mark.parametrize("version", [2, 3])
def test_merge_on_read_writes_no_row(writing, version, record):
    name = two_files(writing, version, "merge-on-read", "row")
    before = live_files(writing.catalog.load_table(f"s.{name}"))[0]
    done, new, line = amplification(writing, name, ONE.format(name), 1)
    record(WRITTEN, line)
    assert (done.verb, done.counts) == ("DELETE", (0, 1, 0, 0))
    table = ids_are(writing, name, set(range(2000)) - {5})
    [operation, counts] = summaries(table)[-1]
    assert operation == "delete"
    assert "added-data-files" not in counts and "deleted-data-files" not in counts
    assert (counts["added-delete-files"], counts["added-position-deletes"], counts["total-records"]) == ("1", "1", "2000")
    assert (counts.get("added-dvs"), counts.get("added-position-delete-files")) == (("1", None) if version == 3 else (None, "1"))
    after, deletes = live_files(table)
    assert after.keys() == before.keys()
    [delete] = deletes.values()
    assert delete["record_count"] == 1
    [first] = [file["file_path"] for file in after.values() if lowest_id(file) == 0]
    assert delete["referenced_data_file"] == first
    assert len(vectors(table)) == (version == 3)
    sizes = [size for path, size in new.items() if path.startswith("data/")]
    assert sizes == [done.delete_bytes] == [delete["file_size_in_bytes"]]
    assert done.delete_bytes < 2000


def lowest_id(file):
    """The lowest id of a data file, by its entry."""
    return int.from_bytes(other_readers.pairs(file["lower_bounds"])[1], "little")


@pytest.mark.parametrize("version, mode", [(1, "copy-on-write"), (2, "copy-on-write"), (3, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")])
def test_a_whole_file_goes_by_metadata_alone(writing, version, mode, record):
    name = two_files(writing, version, mode, "whole")
    done, new, line = amplification(writing, name, WHOLE.format(name), 1000)
    record(WRITTEN, line)
    assert (done.verb, done.counts, done.bytes, done.delete_bytes) == ("DELETE", (0, 0, 0, 1), 0, 0)
    assert new and all(path.startswith("metadata/") for path in new), new
    table = ids_are(writing, name, range(1000))
    [operation, counts] = summaries(table)[-1]
    assert operation == "delete"
    assert {key: counts.get(key) for key in ("added-data-files", "added-delete-files", "deleted-data-files", "deleted-records", "total-data-files")} == {
        "added-data-files": None,
        "added-delete-files": None,
        "deleted-data-files": "1",
        "deleted-records": "1000",
        "total-data-files": "1",
    }


def test_what_no_row_matches_writes_nothing(writing):
    name = two_files(writing, 2, "merge-on-read", "none")
    files = Files(writing.catalog.load_table(f"s.{name}"))
    for condition in ["id = 5000", "false", "category = NULL", "id < 0 AND category = 'a'"]:
        done = change(writing, f"DELETE FROM s.{name} WHERE {condition}")
        assert (done.rows, done.snapshot_id, done.counts) == (0, None, (0, 0, 0, 0))
    assert files.new() == {}
    assert len(ids_are(writing, name, range(2000)).snapshots()) == 2
