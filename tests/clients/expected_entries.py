"""What a manifest entry has to say of a data file, worked out of the file's rows alone.

Bounds and counts as Iceberg Java writes them by default (`truncate(16)`): text and binary cut to 16 characters or
bytes, the upper bound rounded up; NaN in no bound; -0.0 below 0.0; no bounds inside of lists and maps. Partition
values come from pyiceberg's transforms, encoded values from pyiceberg's conversions.
"""

import datetime
import math
import struct
import uuid

from pyiceberg import types as t
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.transforms import parse_transform

CUT = 16


def leaves(field, value_of=lambda row: row):
    """Fields with statistics: (field, function from a row's value to the leaf's). Nothing below lists and maps."""
    if isinstance(field.field_type, t.StructType):
        for inner in field.field_type.fields:

            def of(row, name=inner.name):
                outer = value_of(row)
                return None if outer is None else outer[name]

            yield from leaves(inner, of)
    elif not isinstance(field.field_type, (t.ListType, t.MapType, t.UnknownType)):
        yield field, value_of


def sort_key(of, value):
    """An order in which -0.0 comes before 0.0."""
    if isinstance(of, (t.FloatType, t.DoubleType)):
        return value, math.copysign(1, value)
    return value


def cut(of, value, up):
    """A bound of at most 16 characters or bytes; None where none lies above."""
    if not isinstance(of, (t.StringType, t.BinaryType)) or len(value) <= CUT:
        return value
    value = value[:CUT]
    if not up:
        return value
    is_text = isinstance(value, str)
    numbers = [ord(c) for c in value] if is_text else list(value)
    while numbers:
        last = numbers.pop() + 1
        if is_text and last == 0xD800:
            last = 0xE000
        if last <= (0x10FFFF if is_text else 0xFF):
            numbers.append(last)
            return "".join(map(chr, numbers)) if is_text else bytes(numbers)
    return None


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def statistics(fields, rows):
    """Value, null and NaN counts and bounds by field id; `rows` are lists of values in the order of `fields`."""
    found = {"value_counts": {}, "null_value_counts": {}, "nan_value_counts": {}, "lower_bounds": {}, "upper_bounds": {}}
    for at, column in enumerate(fields):
        for field, value_of in leaves(column):
            of, number = field.field_type, field.field_id
            values = [value_of(row[at]) for row in rows]
            present = [value for value in values if value is not None]
            ordered = sorted((value for value in present if not is_nan(value)), key=lambda value: sort_key(of, value))
            found["value_counts"][number] = len(values)
            found["null_value_counts"][number] = len(values) - len(present)
            if isinstance(of, (t.FloatType, t.DoubleType)):
                found["nan_value_counts"][number] = sum(map(is_nan, present))
            if ordered:
                found["lower_bounds"][number] = cut(of, ordered[0], up=False)
                upper = cut(of, ordered[-1], up=True)
                if upper is not None:
                    found["upper_bounds"][number] = upper
    return found


def decoded(fields, bounds):
    """Bounds as values, each checked to be encoded as pyiceberg encodes it; they tell 0.0 from -0.0."""
    types = {field.field_id: field.field_type for column in fields for field, _ in leaves(column)}
    out = {}
    for number, encoded in (bounds or {}).items():
        of = types[number]
        value = from_bytes(of, encoded)
        assert to_bytes(of, value) == encoded, (number, of, encoded)
        out[number] = plain(value)
    return out


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def plain(value):
    """A value as what is stored, for comparison: uuids as bytes, floats by their bits, days and microseconds."""
    match value:
        case uuid.UUID():
            return value.bytes
        case float():
            return "NaN" if math.isnan(value) else struct.pack(">d", value)
        case datetime.datetime():
            return (value.replace(tzinfo=datetime.UTC) - EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return value.toordinal() - EPOCH.toordinal()
        case datetime.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    return value


def partition_value(transform, of, value):
    """What a transform makes of a value, by pyiceberg."""
    if value is None or transform == "void":
        return None
    if isinstance(of, t.UUIDType):
        value = uuid.UUID(bytes=value)
    value = parse_transform(transform).transform(of)(value)
    return value.bytes if isinstance(value, uuid.UUID) else value


def partition_summary(of, values):
    """What a manifest list says of the partition values of a manifest: null, NaN, and bounds encoded."""
    present = [value for value in values if value is not None]
    ordered = sorted((value for value in present if not is_nan(value)), key=lambda value: sort_key(of, value))
    encode = lambda value: to_bytes(of, uuid.UUID(bytes=value) if isinstance(of, t.UUIDType) else value)  # noqa: E731
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": any(map(is_nan, present)) if isinstance(of, (t.FloatType, t.DoubleType)) else False,
        "lower_bound": encode(ordered[0]) if ordered else None,
        "upper_bound": encode(ordered[-1]) if ordered else None,
    }


def orders_differ(tuples):
    """Whether Iceberg Java, which compares the halves of uuids as signed numbers, would find other ends in the
    partition values of a manifest than readers that compare bytes: there are no bounds to give then."""
    for values in zip(*tuples):
        uuids = [value for value in values if isinstance(value, bytes) and len(value) == 16]
        signed = sorted(uuids, key=lambda value: struct.unpack(">qq", value))
        if uuids and (signed[0], signed[-1]) != (min(uuids), max(uuids)):
            return True
    return False
