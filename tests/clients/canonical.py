"""The canonical form of rows: how two engines' results are compared.

A result becomes a list of JSON rows and one SHA-256 over them. The rules are those of the case
collection (`ORIGINS.md` there): integers as numbers, as strings from 2^53 on; decimals, dates, times
and timestamps as strings; binary as `hex:...`; NaN and infinities as strings; structs as objects; maps
as key-sorted lists of pairs. Everything is worked out from the Arrow buffers by integer arithmetic,
because Python's datetime knows neither nanoseconds nor the years before 1.
"""

import decimal
import hashlib
import json
import math
import re
import uuid

import pyarrow as pa
import pyarrow.compute as pc

MAX_EXACT = 2**53
DAY_SECONDS = 86_400


def table_rows(table, uuid_columns=()):
    """Rows of an Arrow table in canonical form, in the table's order.

    `uuid_columns`: names of columns whose 16-byte binary values are UUIDs although the Arrow schema
    does not say so.
    """
    columns = [
        column_values(table.column(i), table.field(i).name in uuid_columns)
        for i in range(table.num_columns)
    ]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(table.num_rows)]


def column_values(column, is_uuid=False):
    """Canonical values of one (chunked) column."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in array_values(chunk, is_uuid)]


def array_values(array, is_uuid=False):
    """Canonical values of one Arrow array; nested arrays are walked, never converted as a whole."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        name = kind.extension_name
        return array_values(array.storage, is_uuid or name == "arrow.uuid")
    if pa.types.is_dictionary(kind):
        return array_values(array.dictionary_decode(), is_uuid)
    if pa.types.is_run_end_encoded(kind):
        return array_values(pc.run_end_decode(array), is_uuid)
    if pa.types.is_null(kind):
        return [None] * len(array)
    if pa.types.is_struct(kind):
        return _struct_values(array, is_uuid)
    if pa.types.is_map(kind):
        return _map_values(array, is_uuid)
    if pa.types.is_fixed_size_list(kind):
        values = array_values(array.flatten(), is_uuid)
        width, out, at = kind.list_size, [], 0
        for valid in array.is_valid().to_pylist():
            out.append(values[at : at + width] if valid else None)
            at += width if valid else 0
        return out
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_values(array, is_uuid)
    return _scalar_values(array, is_uuid)


def is_variant(kind):
    """Whether a type is the storage of a variant: two binaries named `metadata` and `value`."""
    if not pa.types.is_struct(kind) or kind.num_fields != 2:
        return False
    fields = {kind.field(i).name: str(kind.field(i).type) for i in range(2)}
    return set(fields) == {"metadata", "value"} and all("binary" in name for name in fields.values())


def with_variants(kind, value):
    """A canonical value whose variants are JSON text, with them parsed; `kind` is the type that is expected."""
    if value is None or "variant" not in kind:
        return value
    if kind == "variant":
        return json.loads(value, parse_float=_json_number)
    inside = _parts(kind[kind.index("<") + 1 : -1])
    if kind.startswith("struct<"):
        fields = dict(part.split(": ", 1) for part in inside)
        return {name: with_variants(fields[name], child) for name, child in value.items()}
    if kind.startswith("map<"):
        return [[key, with_variants(inside[1], child)] for key, child in value]
    return [with_variants(re.sub(r"^\w+: ", "", inside[0]), child) for child in value]


def _parts(text):
    """The parts of a type's arguments, at the commas that are in no argument of a part."""
    parts, depth = [""], 0
    for piece in re.split(r"([<>(),])", text):
        depth += (piece in ("<", "(")) - (piece in (">", ")"))
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def _json_number(text):
    short = float(text)
    return short if decimal.Decimal(repr(short)) == decimal.Decimal(text) else text


def _variant_values(array):
    import variant

    at = {array.type.field(i).name: child.to_pylist() for i, child in enumerate(array.flatten())}
    return [
        variant.decode(metadata, value) if valid else None
        for metadata, value, valid in zip(at["metadata"], at["value"], array.is_valid().to_pylist())
    ]


def _struct_values(array, is_uuid):
    if is_variant(array.type):
        return _variant_values(array)
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    children = [array_values(child, is_uuid) for child in array.flatten()]
    return [
        {name: child[i] for name, child in zip(names, children)} if valid else None
        for i, valid in enumerate(array.is_valid().to_pylist())
    ]


def _list_values(array, is_uuid):
    offsets = array.offsets.to_pylist()
    base, end = offsets[0], offsets[-1]
    values = array_values(array.values.slice(base, end - base), is_uuid)
    return [
        values[offsets[i] - base : offsets[i + 1] - base] if valid else None
        for i, valid in enumerate(array.is_valid().to_pylist())
    ]


def _map_values(array, is_uuid):
    offsets = array.offsets.to_pylist()
    base, end = offsets[0], offsets[-1]
    keys = array_values(array.keys.slice(base, end - base), is_uuid)
    items = array_values(array.items.slice(base, end - base), is_uuid)
    out = []
    for i, valid in enumerate(array.is_valid().to_pylist()):
        if not valid:
            out.append(None)
            continue
        pairs = [[keys[j - base], items[j - base]] for j in range(offsets[i], offsets[i + 1])]
        pairs.sort(key=lambda pair: (isinstance(pair[0], str), pair[0]))
        out.append(pairs)
    return out


def _scalar_values(array, is_uuid):
    kind = array.type
    if pa.types.is_date32(kind):
        return _each(array.cast(pa.int32()), date_text)
    if pa.types.is_date64(kind):
        return _each(array.cast(pa.int64()), lambda ms: date_text(ms // (DAY_SECONDS * 1000)))
    if pa.types.is_time(kind):
        integer = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _each(array.cast(integer), lambda v: time_text(v, kind.unit))
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz is not None else ""
        return _each(array.cast(pa.int64()), lambda v: timestamp_text(v, kind.unit) + zone)
    if pa.types.is_decimal(kind):
        return _each(array, decimal_text)
    if pa.types.is_floating(kind):
        return _each(array, float_value)
    if pa.types.is_integer(kind):
        return _each(array, int_value)
    if pa.types.is_fixed_size_binary(kind) and is_uuid and kind.byte_width == 16:
        return _each(array, lambda v: str(uuid.UUID(bytes=v)))
    if pa.types.is_boolean(kind):
        return array.to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.to_pylist()
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        return _each(array, lambda v: "hex:" + v.hex())
    raise TypeError(f"no canonical form for Arrow type {kind}")


def _each(array, convert):
    return [None if v is None else convert(v) for v in array.to_pylist()]


def int_value(value):
    """An integer, or its text where JSON readers would lose digits."""
    return value if abs(value) < MAX_EXACT else str(value)


def float_value(value):
    """A finite number as it is, the others by name."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def decimal_text(value):
    """All digits of the scale, never an exponent."""
    with decimal.localcontext() as context:
        context.prec = 100
        return format(value, "f")


def date_text(days):
    """Days since 1970-01-01 as `YYYY-MM-DD` in the proleptic Gregorian calendar."""
    year, month, day = civil_from_days(days)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def civil_from_days(days):
    """Year, month, day of a day number; years of 400 begin on March 1st, so leap days come last."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, day


UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def time_text(value, unit):
    """`HH:MM:SS` with six digits after the point, nine for nanoseconds."""
    seconds, fraction = divmod(value, UNITS[unit])
    digits = 9 if unit == "ns" else 6
    fraction = fraction * 10**digits // UNITS[unit]
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:0{digits}d}"


def timestamp_text(value, unit):
    """`YYYY-MM-DDTHH:MM:SS.ffffff`, floored so that instants before 1970 come out right."""
    per_day = DAY_SECONDS * UNITS[unit]
    days, rest = divmod(value, per_day)
    return f"{date_text(days)}T{time_text(rest, unit)}"


def sha256(columns, rows):
    """The hash over canonical rows: columns in alphabetical order, rows sorted as text."""
    order = sorted(range(len(columns)), key=lambda i: columns[i])
    lines = [json.dumps([columns[i] for i in order])]
    lines += sorted_lines([row[i] for i in order] for row in rows)
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8") + b"\n")
    return digest.hexdigest()


def sorted_lines(rows):
    """Canonical rows as sorted JSON lines: what two results are compared by."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


VARIANT_TEXT = r"(extension<\S*parquet\.variant\S*>|struct<metadata: binary, value: binary>|struct<value: binary, metadata: binary>)"


def type_text(kind):
    """An Arrow type's name without what does not matter to its values."""
    if isinstance(kind, pa.BaseExtensionType):
        name = kind.extension_name
        return "variant" if name.endswith("parquet.variant") else f"extension<{name}>"
    return plain_type(str(kind))


def plain_type(text):
    """The name of a type without what does not matter to its values.

    The collection was read with large strings, binaries and lists, or with views of them, and with names for list
    and map children; a server may choose the smaller forms and other child names.
    """
    text = text.replace(" not null", "").replace("large_", "").replace("_view", "")
    text = re.sub(r" \('[^']*'\)", "", text)
    text = re.sub(VARIANT_TEXT, "variant", text)
    return re.sub(r"list<(\w+): ", "list<", text)


def same_type(expected, kind):
    """Whether an Arrow type is the one that `expected.json` names (as text)."""
    wanted = plain_type(expected).replace("timestamp[us, tz=+00:00]", "timestamp[us, tz=UTC]")
    have = type_text(kind).replace("tz=+00:00]", "tz=UTC]")
    if "arrow.uuid" in wanted:
        return True
    if "variant" in wanted and wanted.replace("variant", "string") == have:  # as JSON text
        return True
    if re.match(r"(geometry|geography)\b", wanted):  # Iceberg's own names: the values are WKB
        return have == "binary" or have == "extension<geoarrow.wkb>"
    return wanted == have
