"""The comparison itself: the collection's own rows must give the collection's own hashes."""

import json
import math

import canonical
import pyarrow as pa
import pytest

import cases
import published
import variant


def with_rows():
    return [case for case in cases.load_all() if "rows" in case.expected]


@pytest.mark.parametrize("case", with_rows(), ids=lambda case: case.name)
def test_hash_of_the_listed_rows_is_the_recorded_hash(case):
    if "sha256" not in case.expected:
        assert len(case.expected["rows"]) == case.expected["row_count"]
        return
    assert canonical.sha256(case.columns, case.expected["rows"]) == case.expected["sha256"]


def one(kind, value):
    return canonical.array_values(pa.array([value, None], kind))


def test_numbers():
    assert one(pa.int64(), 2**53 - 1) == [2**53 - 1, None]
    assert one(pa.int64(), -(2**53)) == ["-9007199254740992", None]
    assert one(pa.float32(), 0.1) == [0.10000000149011612, None]
    assert one(pa.float64(), float("-inf")) == ["-Infinity", None]
    assert one(pa.decimal128(38, 10), pa.scalar("-0.0000000001").cast(pa.decimal128(38, 10)).as_py()) == [
        "-0.0000000001",
        None,
    ]


def test_instants_before_1970_and_before_year_1_floor():
    assert one(pa.timestamp("us"), -1) == ["1969-12-31T23:59:59.999999", None]
    assert one(pa.timestamp("us", "UTC"), -62135596800000000) == ["0001-01-01T00:00:00.000000Z", None]
    assert one(pa.timestamp("ns"), 1) == ["1970-01-01T00:00:00.000000001", None]
    assert one(pa.date32(), -719162) == ["0001-01-01", None]
    assert one(pa.date32(), -141427) == ["1582-10-15", None]
    assert one(pa.date32(), 19782) == ["2024-02-29", None]
    assert one(pa.time64("us"), 86_399_999_999) == ["23:59:59.999999", None]


def test_nested_values_keep_nulls_apart_from_empty():
    kind = pa.struct([("a", pa.list_(pa.struct([("b", pa.int32())]))), ("m", pa.map_(pa.string(), pa.int32()))])
    array = pa.array(
        [{"a": [{"b": 1}, None], "m": [("z", 1), ("a", 2)]}, None, {"a": None, "m": []}, {"a": [], "m": None}], kind
    )
    expected = [
        {"a": [{"b": 1}, None], "m": [["a", 2], ["z", 1]]},
        None,
        {"a": None, "m": []},
        {"a": [], "m": None},
    ]
    assert canonical.array_values(array) == expected
    assert canonical.array_values(array.slice(1)) == expected[1:]
    assert canonical.array_values(array.slice(3)) == expected[3:]


def test_binary_and_uuid():
    raw = bytes(range(16))
    assert one(pa.binary(), b"\x00\xff") == ["hex:00ff", None]
    assert one(pa.binary(16), raw) == ["hex:" + raw.hex(), None]
    assert canonical.array_values(pa.array([raw], pa.binary(16)), is_uuid=True) == [
        "00010203-0405-0607-0809-0a0b0c0d0e0f"
    ]
    assert json.dumps(canonical.array_values(pa.array([raw], pa.uuid()))) == json.dumps(
        ["00010203-0405-0607-0809-0a0b0c0d0e0f"]
    )


def variant_files():
    folder = cases.root() and cases.root() / "format" / "parquet" / "parquet-testing-variant"
    return sorted(folder.glob("*.value")) if folder else []


@pytest.mark.parametrize("file", variant_files(), ids=lambda file: file.stem)
def test_variants_decode_as_their_published_dictionary_says(file):
    text = (file.parent / "data_dictionary.json").read_text("utf-8").strip()
    wanted = json.loads(text.removesuffix("}").rstrip().removesuffix(",") + "}").get(file.stem, ...)
    found = variant.decode(file.with_suffix(".metadata").read_bytes(), file.read_bytes())
    if wanted is ...:  # the dictionary does not name it
        assert isinstance(found, str) and len(found) > 63
        return
    if isinstance(wanted, (int, float)) and isinstance(found, str):  # as text where digits would be lost
        found = type(wanted)(found)
    if file.stem == "primitive_time":  # spelled 12:33:54:123456 there
        wanted = wanted[:8] + "." + wanted[9:]
    if isinstance(wanted, str) and published.same_variant(json.dumps(wanted), found):
        return
    assert found == wanted or (isinstance(wanted, float) and math.isclose(found, wanted, rel_tol=1e-7))


def test_a_variant_column_is_read_from_its_storage():
    storage = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x09ok"}, None], VARIANT)
    assert canonical.array_values(storage) == ["ok", None]
    assert canonical.same_type("variant", VARIANT)
    assert canonical.same_type("struct<a: variant>", pa.struct([("a", VARIANT)]))


VARIANT = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())])
