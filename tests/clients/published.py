"""Results that a table's origin published with it: from its dialect to ours, and back for comparing.

The queries are DuckDB's and Impala's. Only what reads the current snapshot of this one table with plain
columns is put to the server; `translate` gives a reason for each that is not.
"""

import decimal
import math
import re

TABLE = re.compile(r"iceberg_scan\(\s*'[^']*'\s*(?P<options>,[^)]*)?\)", re.IGNORECASE)
IMPALA_TABLE = re.compile(r"(?P<from>\bfrom\s+)(?:\w+\.)?\w+", re.IGNORECASE)
SYSTEM_VERSION = re.compile(r"\s+for\s+system_version\s+as\s+of\s+(\d+)", re.IGNORECASE)
BLOB = re.compile(r"'((?:\\x[0-9a-fA-F]{2})+)'::BLOB")

NOT_OURS = [
    (r"\bfilename\b", "reads DuckDB's column filename"),
    (r"\biceberg_snapshots\(", "reads a metadata table"),
    (r"\boracle_(asc|desc)\b", "joins a table of its own test suite"),
    (r"mock_data\.parquet", "reads a plain file"),
    (r"partition__spec__id|iceberg__", "reads Impala's hidden columns"),
    (r"\b_file_row_id\b|\b_file_last_updated", "reads Impala's columns of files"),
    (r"\border by \w+ limit\b", "a LIMIT of rows that are compared in full elsewhere"),
]

# Queries of one case that ask for something else than this table's rows by the standard's rules.
NOT_COMPARABLE = {
    ("impala_trino_variant", r"\bid, v\b"): (
        "Impala prints timestamps in its own way and three types not at all; compared in tests/it/collection_types.rs"
    ),
    ("duckdb_case_sensitive_names", r"\buser_id_1\b"): "user_id_1 is DuckDB's own name for the second of two alike columns",
    ("impala_airports_parquet", r"\bdistinct country\b"): "published under a row filter of fine-grained access control",
    ("duckdb_partition_double", r"\bpartition_col = 3\.14"): (
        "DuckDB casts the literal to the column's FLOAT; compared as doubles, as the standard, Postgres and Spark do, "
        "no row matches"
    ),
}


def translate(case, entry):
    """(SQL, None), or (None, why the query is not put to the server)."""
    query = entry["query"].strip().rstrip(";")
    current = case.doc["current_snapshot_id"]
    if entry.get("snapshot_id") not in (None, current):
        return None, "time travel is not built yet"
    for pattern, reason in NOT_OURS:
        if re.search(pattern, query, re.IGNORECASE):
            return None, reason
    for (name, pattern), reason in NOT_COMPARABLE.items():
        if name == case.name and re.search(pattern, query, re.IGNORECASE):
            return None, reason
    version = SYSTEM_VERSION.search(query)
    if version:
        if version.group(1) != current:
            return None, "time travel is not built yet"
        query = SYSTEM_VERSION.sub("", query)
    scan = TABLE.search(query)
    if scan:
        options = scan.group("options") or ""
        if "snapshot_from_id" in options and f"snapshot_from_id={current}" not in options.replace(" ", ""):
            return None, "time travel is not built yet"
        named = re.search(r"version\s*=\s*'?([\w.-]+)'?", options)
        if named and not re.search(rf"(^|/)v?{re.escape(named.group(1))}\.", case.doc["metadata_file"]):
            return None, "another metadata file of the table"
        query = TABLE.sub(case.ident, query)
    else:
        query = IMPALA_TABLE.sub(lambda m: m.group("from") + case.ident, query, count=1)
    query = BLOB.sub(lambda m: "X'" + m.group(1).replace("\\x", "") + "'", query)
    query = re.sub(r"\border by all\b", "", query, flags=re.IGNORECASE)
    if query.lower().startswith("from"):
        query = "SELECT * " + query
    return query.strip(), None


def same_rows(published, rows):
    """Whether canonical rows are the published ones, without regard to order."""
    if len(published) != len(rows):
        return False
    left = list(rows)
    for wanted in published:
        match = next((row for row in left if same_row(wanted, row)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def same_row(wanted, row):
    return len(wanted) == len(row) and all(same_value(w, v) for w, v in zip(wanted, row))


def same_value(wanted, value):
    """One published text against one canonical value."""
    if wanted is None or wanted == "NULL":
        return value is None or (wanted is not None and value == "NULL")  # a text may say just that
    if value is None:
        return False
    if isinstance(value, bool):
        return wanted.lower() in (("true", "1") if value else ("false", "0"))
    if isinstance(value, int):
        return _number(wanted) == value
    if isinstance(value, float):
        number = _number(wanted)
        return number is not None and math.isclose(float(number), value, rel_tol=2e-7, abs_tol=1e-12)
    if isinstance(value, str):
        return _same_text(wanted, value)
    return wanted == _duckdb_text(value)


def _number(text):
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None


INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d(?::\d\d)?)?$")


def _same_text(wanted, value):
    if wanted == value:
        return True
    if value.startswith("hex:"):
        plain = re.sub(r"\\x([0-9A-Fa-f]{2})|(.)", lambda m: m.group(1) or f"{ord(m.group(2)):02x}", wanted)
        return "hex:" + plain.lower() == value
    here, there = INSTANT.match(value), INSTANT.match(wanted)
    if here and there:
        return _instant(here) == _instant(there)
    if re.fullmatch(r"\d\d:\d\d:\d\d\.\d{6}", value):
        return value.rstrip("0").rstrip(".") == wanted
    number = _number(value)
    return number is not None and number == _number(wanted)


def _instant(match):
    """A comparable instant: date, then microseconds of the day in UTC (days are not carried: offsets are small)."""
    import datetime

    date, hour, minute, second, fraction, zone = match.groups()
    shift = 0
    if zone and zone != "Z":
        shift = int(zone[:3]) * 60 + (int(zone[0] + zone[4:]) if len(zone) > 3 else 0)
    moment = datetime.datetime.fromisoformat(f"{date}T{hour}:{minute}:{second}") - datetime.timedelta(minutes=shift)
    return moment, (fraction or "").ljust(9, "0")[:9]


def _duckdb_text(value):
    """How DuckDB prints a nested value."""
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{k}': {_duckdb_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        if value and all(isinstance(v, list) and len(v) == 2 and isinstance(v[0], str) for v in value):
            return "{" + ", ".join(f"{k}={_duckdb_text(v)}" for k, v in value) + "}"
        return "[" + ", ".join(_duckdb_text(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
