"""Column types with the values that go wrong most easily, as SQL, as Arrow and as plain numbers.

A value is what Iceberg stores: a date is days, a time or timestamp is its units since the epoch, a decimal is
a Decimal, a uuid and what is binary are bytes, a struct or map is a dict, a list is a list. Nothing of the
server is involved.
"""

import decimal
import json
import re
import struct
import uuid

import pyarrow as pa
from pyiceberg import types as t

import canonical

DAY = 86_400 * 10**6
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
NANOSECONDS = 2**63 - 1
LONG = "a text that is longer than sixteen characters"


def _decimals(precision, scale):
    most = decimal.Decimal(10**precision - 1).scaleb(-scale, decimal.Context(prec=60))
    small = [decimal.Decimal(n).scaleb(-scale) for n in (0, 1, -1, 128, -129)]
    return [most, most.copy_negate(), *(value for value in small if abs(value) <= most)]


def _timestamps(per_second, first, last):
    hour = 3600 * per_second
    return [first, last, 0, -1, -hour, -hour - 1, 24 * hour, -24 * hour - 1, 1_709_209_800 * per_second + 123_456]


def _single(value):
    """The nearest number of 32 bits."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


FLOATS = ["NaN", "Infinity", "-Infinity", "-0.0", "0.0", "0.1", "-1.5"]

# Each type with its values beside null.
VALUES = {
    t.BooleanType(): [True, False],
    t.IntegerType(): [-(2**31) + 8, 2**31 - 1, 0, -1, 1, 9, 10, -10, -11],
    t.LongType(): [-(2**63) + 8, 2**63 - 1, 0, -1, 1, 34, 2**53 + 1, -(2**53) - 1],
    t.FloatType(): [_single(float(text)) for text in [*FLOATS, "3.4028234663852886e38", "1e-45"]],
    t.DoubleType(): [float(text) for text in [*FLOATS, "1.7976931348623157e308", "5e-324"]],
    t.DecimalType(9, 2): _decimals(9, 2),
    t.DecimalType(18, 3): _decimals(18, 3),
    t.DecimalType(38, 10): _decimals(38, 10),
    t.DecimalType(38, 38): _decimals(38, 38),
    t.DecimalType(1, 0): _decimals(1, 0),
    t.DateType(): [FIRST_DAY, LAST_DAY, 0, -1, -31, -366, 11_016, -141_428],
    t.TimeType(): [0, DAY - 1, 1, 45_296_000_001],
    t.TimestampType(): _timestamps(10**6, FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1),
    t.TimestamptzType(): _timestamps(10**6, FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1),
    t.TimestampNanoType(): _timestamps(10**9, -NANOSECONDS, NANOSECONDS),
    t.TimestamptzNanoType(): _timestamps(10**9, -NANOSECONDS, NANOSECONDS),
    t.StringType(): ["", "a", "ab", "a'b\"c", LONG, "日本語のとても長い文字列はどこで切られるのか", "\U0001f980" * 20, "zz\U0010ffff" * 9, "\uffff", "\U0010ffff"],
    t.UUIDType(): [bytes(16), b"\xff" * 16, b"\x7f" + bytes(15), b"\x80" + bytes(14) + b"\x01", uuid.UUID(int=2**64).bytes],
    t.FixedType(5): [bytes(5), b"\xff" * 5, b"\x80\x00\x00\x00\x01", b"abcde"],
    t.FixedType(20): [bytes(20), b"\xff" * 20, bytes(range(20))],
    t.BinaryType(): [b"", b"\x00", b"\xff" * 20, b"\x80" * 20, bytes(range(40)), b"\x7f\xff" * 10],
}
V3_ONLY = (t.TimestampNanoType, t.TimestamptzNanoType, t.UnknownType)


def _field(number, name, of, required=False):
    return t.NestedField(number, name, of, required=required)


STRUCT = t.StructType(
    _field(101, "a", t.IntegerType()),
    _field(102, "b", t.StructType(_field(103, "c", t.StringType()), _field(104, "d", t.DoubleType()))),
)
NESTED = {
    STRUCT: [
        {"a": 7, "b": {"c": LONG, "d": float("nan")}},
        {"a": -7, "b": {"c": None, "d": -0.0}},
        {"a": None, "b": None},
        {"a": 0, "b": {"c": "", "d": 1e300}},
    ],
    t.ListType(111, t.IntegerType(), False): [[1, None, -3], [], [2**31 - 1]],
    t.ListType(121, t.StructType(_field(122, "x", t.DoubleType()), _field(123, "y", t.StringType())), False): [
        [{"x": float("nan"), "y": LONG}, None, {"x": None, "y": None}],
        [],
    ],
    t.MapType(131, t.StringType(), 132, t.IntegerType(), False): [{"k": 1, LONG: None}, {}, {"": -1}],
    t.MapType(141, t.IntegerType(), 142, t.ListType(143, t.DateType(), False), False): [{1: [0, None], 2: None, -3: []}, {}],
}
VALUES |= NESTED


def sql_name(of):
    """The type in CREATE TABLE."""
    match of:
        case t.StructType():
            return "STRUCT<" + ", ".join(f"{field.name}: {sql_name(field.field_type)}" for field in of.fields) + ">"
        case t.ListType():
            return f"ARRAY<{sql_name(of.element_type)}>"
        case t.MapType():
            return f"MAP<{sql_name(of.key_type)}, {sql_name(of.value_type)}>"
        case t.DecimalType():
            return f"DECIMAL({of.precision}, {of.scale})"
        case t.FixedType():
            return f"FIXED({len(of)})"
    names = {t.IntegerType(): "INT", t.LongType(): "BIGINT"}
    return names.get(of, str(of).upper())


ARROW = {
    t.BooleanType(): pa.bool_(),
    t.IntegerType(): pa.int32(),
    t.LongType(): pa.int64(),
    t.FloatType(): pa.float32(),
    t.DoubleType(): pa.float64(),
    t.DateType(): pa.date32(),
    t.TimeType(): pa.time64("us"),
    t.TimestampType(): pa.timestamp("us"),
    t.TimestamptzType(): pa.timestamp("us", "UTC"),
    t.TimestampNanoType(): pa.timestamp("ns"),
    t.TimestamptzNanoType(): pa.timestamp("ns", "UTC"),
    t.StringType(): pa.string(),
    t.UUIDType(): pa.binary(16),
    t.BinaryType(): pa.binary(),
    t.UnknownType(): pa.null(),
}


def arrow_type(of):
    match of:
        case t.StructType():
            return pa.struct([(field.name, arrow_type(field.field_type)) for field in of.fields])
        case t.ListType():
            return pa.list_(arrow_type(of.element_type))
        case t.MapType():
            return pa.map_(arrow_type(of.key_type), arrow_type(of.value_type))
        case t.DecimalType():
            return pa.decimal128(of.precision, of.scale)
        case t.FixedType():
            return pa.binary(len(of))
    return ARROW[of]


def arrow_array(of, values):
    def plain(of, value):
        if value is None:
            return None
        match of:
            case t.StructType():
                return {field.name: plain(field.field_type, value[field.name]) for field in of.fields}
            case t.ListType():
                return [plain(of.element_type, item) for item in value]
            case t.MapType():
                return [(plain(of.key_type, k), plain(of.value_type, v)) for k, v in value.items()]
        return value

    return pa.array([plain(of, value) for value in values], arrow_type(of))


def canonical_value(of, value):
    """A value as tests/clients/canonical.py writes it."""
    return canonical.array_values(arrow_array(of, [value]), isinstance(of, t.UUIDType))[0]


def literal(of, value):
    """A value in a VALUES row, as people write it."""
    if value is None:
        return "NULL"
    match of:
        case t.StructType():
            parts = (f"'{field.name}', {literal(field.field_type, value[field.name])}" for field in of.fields)
            return f"named_struct({', '.join(parts)})"
        case t.ListType():
            return f"[{', '.join(literal(of.element_type, item) for item in value)}]"
        case t.MapType():
            pairs = (f"{literal(of.key_type, k)}: {literal(of.value_type, v)}" for k, v in value.items())
            return f"MAP {{{', '.join(pairs)}}}"
        case t.BooleanType():
            return str(value).upper()
        case t.FloatType() | t.DoubleType():
            return f"CAST('{value!r}' AS {sql_name(of)})"
        case t.DecimalType():
            return canonical.decimal_text(value)
        case t.DateType():
            return f"DATE '{canonical.date_text(value)}'"
        case t.TimeType():
            return f"TIME '{canonical.time_text(value, 'us')}'"
        case t.TimestampType() | t.TimestampNanoType():
            return f"TIMESTAMP '{_timestamp(of, value)}'"
        case t.TimestamptzType() | t.TimestamptzNanoType():
            return f"TIMESTAMPTZ '{_timestamp(of, value)}Z'"
        case t.StringType():
            return "'" + value.replace("'", "''") + "'"
        case t.UUIDType():
            return f"'{uuid.UUID(bytes=value)}'"
        case t.FixedType() | t.BinaryType():
            return f"X'{value.hex()}'"
    return json.dumps(value)


def _timestamp(of, value):
    unit = "ns" if isinstance(of, (t.TimestampNanoType, t.TimestamptzNanoType)) else "us"
    return canonical.timestamp_text(value, unit).replace("T", " ")


def rows(of):
    """Numbered values of a type: each of them, one twice, null first and last."""
    cells = [None, *VALUES[of], VALUES[of][0], None]
    return list(enumerate(cells, 1))


def kind(of):
    """A short name for a type, unique among the types here."""
    first = "_".join(re.findall("[a-z0-9]+", str(of).partition("<")[0]))
    nested = [other for other in NESTED if type(other) is type(of)]
    return f"{first}{nested.index(of) + 1}" if nested else first
