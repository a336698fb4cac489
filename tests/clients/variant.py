"""Variants decoded from their binary form, as the Parquet specification's "Variant Binary Encoding" lays it out.

What a variant column must hold is given as JSON, so a variant becomes what JSON can say: numbers, texts, lists and
objects. A decimal that a double does not hold exactly is its digits as text; binary, dates, times, timestamps and
UUIDs are the texts that `canonical` gives columns of these types.
"""

import decimal
import struct
import uuid

import canonical


def decode(metadata, value):
    """The canonical value of one variant."""
    return _value(_names(metadata), value, 0)


def _number(data, at, size):
    if at < 0 or at + size > len(data):
        raise ValueError("a variant is cut off")
    return int.from_bytes(data[at : at + size], "little")


def _names(data):
    """The dictionary of field names."""
    header = data[0]
    if header & 0x0F != 1:
        raise ValueError(f"variant metadata of version {header & 0x0F}")
    size = (header >> 6) + 1
    count = _number(data, 1, size)
    offsets = [_number(data, 1 + size * (1 + i), size) for i in range(count + 1)]
    start = 1 + size * (count + 2)
    return [data[start + a : start + b].decode("utf-8") for a, b in zip(offsets, offsets[1:])]


def _value(names, data, at):
    basic, header = data[at] & 3, data[at] >> 2
    if basic == 0:
        return _primitive(header, data, at + 1)
    if basic == 1:
        return data[at + 1 : at + 1 + header].decode("utf-8")
    offset_size = (header & 3) + 1
    if basic == 3:
        count_size = 4 if header & 4 else 1
        count = _number(data, at + 1, count_size)
        offsets = at + 1 + count_size
        start = offsets + offset_size * (count + 1)
        return [_value(names, data, start + _number(data, offsets + offset_size * i, offset_size)) for i in range(count)]
    id_size = (header >> 2 & 3) + 1
    count_size = 4 if header & 16 else 1
    count = _number(data, at + 1, count_size)
    ids = at + 1 + count_size
    offsets = ids + id_size * count
    start = offsets + offset_size * (count + 1)
    return {
        names[_number(data, ids + id_size * i, id_size)]: _value(
            names, data, start + _number(data, offsets + offset_size * i, offset_size)
        )
        for i in range(count)
    }


def _primitive(kind, data, at):
    if kind in (0, 1, 2):
        return (None, True, False)[kind]
    fixed = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f", 11: "<i", 12: "<q", 13: "<q", 17: "<q", 18: "<q", 19: "<q"}
    if kind in fixed:
        value = struct.unpack_from(fixed[kind], data, at)[0]
        if kind in (7, 14):
            return canonical.float_value(value)
        if kind == 11:
            return canonical.date_text(value)
        if kind == 17:
            return canonical.time_text(value, "us")
        if kind in (12, 13, 18, 19):
            return canonical.timestamp_text(value, "us" if kind < 14 else "ns") + ("Z" if kind in (12, 18) else "")
        return canonical.int_value(value)
    if kind in (8, 9, 10):
        size = {8: 4, 9: 8, 10: 16}[kind]
        unscaled = int.from_bytes(data[at + 1 : at + 1 + size], "little", signed=True)
        exact = decimal.Decimal(unscaled).scaleb(-data[at], decimal.Context(prec=100))
        short = float(exact)
        return short if decimal.Decimal(repr(short)) == exact else canonical.decimal_text(exact)
    if kind in (15, 16):
        size = _number(data, at, 4)
        content = data[at + 4 : at + 4 + size]
        return content.decode("utf-8") if kind == 16 else "hex:" + content.hex()
    if kind == 20:
        return str(uuid.UUID(bytes=bytes(data[at : at + 16])))
    raise ValueError(f"variant type {kind}")
