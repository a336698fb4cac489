"""The Delta collection's answers as they are taken here, without a server: their hashes, forms and names."""

import collections
import json

import pytest

import canonical
import cases
import delta_cases
import delta_published
import pyarrow as pa

ALL = delta_cases.load_all()


@pytest.mark.parametrize("table", [table for table in ALL if "rows" in table.expected], ids=lambda table: table.name)
def test_hash_of_the_listed_rows_is_the_recorded_hash(table):
    expected = table.part["expected"]
    columns = [name for name, _ in expected["schema"]]
    assert expected.get("columns", columns) == columns
    assert canonical.sha256(columns, expected["rows"]) == expected["sha256"]
    assert len(table.expected["rows"]) == expected["row_count"]


@pytest.mark.parametrize("key", ["cdf", "row_tracking"])
def test_hashes_of_change_feeds_and_row_ids(key):
    for table in ALL:
        if key in table.doc:
            answer = table.doc[key]
            assert canonical.sha256(answer["columns"], answer["rows"]) == answer["sha256"]
    ends = {table.version == table.doc["cdf"]["to"] for table in ALL if "cdf" in table.doc}
    assert ends <= {True}, "a feed without an end is taken to end where the listed one does"


def test_rows_published_in_another_zone_are_what_engines_read_in_utc():
    for table in ALL:
        if table.case in delta_cases.PUBLISHED_IN_OTHER_ZONE:
            hashes = {engine["sha256"] for engine in table.part["engines"].values()}
            assert hashes == {canonical.sha256(table.expected["columns"], table.expected["rows"])}


def test_stored_variants_are_their_json():
    for table in ALL:
        if "to_json(v) by id" in table.doc:
            wanted = {int(row): text and json.loads(text) for row, text in table.doc["to_json(v) by id"].items()}
            assert {row[0]: row[1] for row in table.expected["rows"]} == wanted


def test_every_table_that_must_be_refused_has_a_cause():
    if cases.root():
        invalid = {table.case for table in ALL if table.intent in ("negative", "log_fragment")}
        assert invalid == set(delta_cases.NEGATIVE)


def test_names_differ_by_more_than_case():
    counts = collections.Counter(table.name.lower() for table in ALL)
    assert not [name for name, count in counts.items() if count > 1 or "." in name]


def test_years_of_four_digits_and_a_sign():
    assert delta_cases.comparable({"rows": [["us:-62198755200000000", "us: no"]]})["rows"] == [
        ["-0001-01-01T00:00:00.000000", "us: no"]
    ]


def test_variants_as_text_in_nested_columns():
    stored = "struct<metadata: binary_view not null, value: binary_view not null>"
    kind = canonical.plain_type(f"map<string, list<element: struct<a: int32, v: {stored}>>>")
    assert kind == "map<string, list<struct<a: int32, v: variant>>>"
    text = pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int32()), ("v", pa.string())])))
    assert canonical.same_type(kind, text)
    assert canonical.with_variants(kind, [["k", [{"a": 1, "v": "[2]"}, None]], ["l", None]]) == [
        ["k", [{"a": 1, "v": [2]}, None]],
        ["l", None],
    ]


VALUES = {
    "VALUES 1, -2.5": [["1"], ["-2.5"]],
    "VALUES (1, 'a (b), c'), (2,NULL)": [["1", "a (b), c"], ["2", None]],
    "VALUES BIGINT '5', varchar 'it''s', true": [["5"], ["it's"], ["true"]],
    "VALUES (CAST('1.20' AS DECIMAL (5,2)), DATE '2020-08-21')": [["1.20", "2020-08-21"]],
    "VALUES TIMESTAMP '2020-10-21 01:00:00.123 UTC'": [["2020-10-21T01:00:00.123000Z"]],
    "VALUES TIMESTAMP '-9999-12-31 23:59:59.999999'": [["-9999-12-31T23:59:59.999999"]],
    "VALUES (3, JSON 'null', NULL)": [["3", delta_published.JSON_NULL, None]],
}


@pytest.mark.parametrize("values", VALUES)
def test_values_lists(values):
    assert delta_published.rows(values) == VALUES[values]


def test_json_null_is_not_null():
    wanted = [["3", delta_published.JSON_NULL, None]]
    columns = {"id": [3], "x": pa.array(["null"]), "y": pa.array([None], pa.string())}
    assert delta_published.same_rows(wanted, pa.table(columns))
    assert not delta_published.same_rows(wanted, pa.table(columns | {"x": pa.array([None], pa.string())}))
