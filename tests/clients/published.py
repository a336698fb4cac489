"""Results that a table's origin published with it: from its dialect to ours, and back for comparing.

The queries are DuckDB's and Impala's. `translate` turns what reads rows, old snapshots, row ids or the list of
snapshots of this one table into our SQL, and gives a reason for each query that no SQL of ours can say.
"""

import base64
import dataclasses
import decimal
import json
import math
import re

TABLE = re.compile(r"iceberg_scan\(\s*'[^']*'\s*(?P<options>,[^)]*)?\)", re.IGNORECASE)
SNAPSHOTS = re.compile(r"iceberg_snapshots\(\s*'[^']*'\s*\)", re.IGNORECASE)
IMPALA_TABLE = re.compile(r"(?P<from>\bfrom\s+)(?:\w+\.)?\w+", re.IGNORECASE)
BLOB = re.compile(r"'((?:\\x[0-9a-fA-F]{2})+)'::BLOB")
SEQUENCE = re.compile(
    r"select \*, ICEBERG__DATA__SEQUENCE__NUMBER from [\w.]+(?: for system_version as of (?P<version>\d+))?", re.IGNORECASE
)

NOT_OURS = [
    (r"\boracle_(asc|desc)\b", "joins a table of its own test suite"),
    (r"mock_data\.parquet", "reads a plain file"),
    (r"\b_file_row_id\b|\b_file_last_updated", "reads columns as stored in a file, which only Impala offers"),
]

# Queries of one case that ask for something else than this table's rows by the standard's rules.
NOT_COMPARABLE = {
    ("duckdb_case_sensitive_names", r"\buser_id_1\b"): "user_id_1 is DuckDB's own name for the second of two alike columns",
    ("impala_airports_parquet", r"\bdistinct country\b"): "published under a row filter of fine-grained access control",
    ("duckdb_name_mapping", r"version=3\.2"): "the required column has no value in the file: refused, as Iceberg Java does",
    ("duckdb_partition_double", r"\bpartition_col = 3\.14"): (
        "DuckDB casts the literal to the column's FLOAT; compared as doubles, as the standard, Postgres and Spark do, "
        "no row matches"
    ),
}


@dataclasses.dataclass(frozen=True)
class Question:
    """A published query in our SQL; of each published row the values at `dropped` are not ours to say."""

    sql: str
    dropped: tuple = ()

    def wanted(self, rows):
        return [[value for at, value in enumerate(row) if at not in self.dropped] for row in rows]


def other_metadata(case, entry):
    """The version that a DuckDB query names when it is not the case's own metadata file, else None."""
    named = re.search(r"\bversion\s*=\s*'?([\w.-]+?)'?\s*[,)]", entry["query"])
    own = named and re.search(rf"(^|/)v?{re.escape(named.group(1))}\.metadata", case.doc["metadata_file"])
    return named.group(1) if named and not own else None


def translate(case, entry):
    """(Question, None), or (None, why the query cannot be put to the server)."""
    query = entry["query"].strip().rstrip(";")
    for pattern, reason in NOT_OURS:
        if re.search(pattern, query, re.IGNORECASE):
            return None, reason
    for (name, pattern), reason in NOT_COMPARABLE.items():
        if name == case.name and re.search(pattern, query, re.IGNORECASE):
            return None, reason
    ident, dropped = case.ident, ()
    sequence = SEQUENCE.fullmatch(query)
    if sequence:
        version = f" FOR VERSION AS OF {sequence.group('version')}" if sequence.group("version") else ""
        entries = case.metadata_table("entries")
        return Question(
            f"SELECT t.*, e.sequence_number FROM {ident}{version} AS t JOIN {entries}{version} AS e "
            "ON t._file = e.data_file['file_path'] WHERE e.status < 2"
        ), None
    scan = TABLE.search(query)
    if scan:
        version = other_metadata(case, entry)
        if version:
            ident = case.at_metadata(version)
        snapshot = re.search(r"snapshot_from_id\s*=\s*(\d+)", scan.group("options") or "")
        if snapshot:
            ident += f" FOR VERSION AS OF {snapshot.group(1)}"
        query = TABLE.sub(lambda _: ident, query)
    elif SNAPSHOTS.search(query):
        query = SNAPSHOTS.sub(lambda _: case.metadata_table("snapshots"), query)
    else:
        query = IMPALA_TABLE.sub(lambda m: m.group("from") + ident, query, count=1)
    if "iceberg__partition__serialized" in query:
        query, dropped = query.replace("iceberg__partition__serialized, ", ""), (1,)
    query = query.replace("partition__spec__id", "_spec_id")
    query = re.sub(r"\bfilename\[17:32\]", "substr(_file, 17, 16)", query)  # the same 16 characters
    query = BLOB.sub(lambda m: "X'" + m.group(1).replace("\\x", "") + "'", query)
    query = re.sub(r"\border by all\b", "", query, flags=re.IGNORECASE)
    if query.lower().startswith("from"):
        query = "SELECT * " + query
    return Question(query.strip(), dropped), None


def same_rows(published, rows, variants=()):
    """Whether canonical rows are the published ones, without regard to order; `variants`: positions of variants."""
    if len(published) != len(rows):
        return False
    left = list(rows)
    for wanted in published:
        match = next((row for row in left if same_row(wanted, row, variants)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def same_row(wanted, row, variants=()):
    return len(wanted) == len(row) and all(
        (same_variant if at in variants else same_value)(w, v) for at, (w, v) in enumerate(zip(wanted, row))
    )


def same_value(wanted, value):
    """One published text against one canonical value."""
    if wanted is None or (wanted == "NULL" and value != "NULL"):  # a text may be just that
        return value is None
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


def same_variant(wanted, value):
    """One variant as Impala prints it, JSON, against the canonical value."""
    if wanted is None or wanted == "NULL":
        return value is None
    if wanted == '"<unsupported-type>"':  # Impala has no text for it: any value but null
        return value is not None
    if wanted == value:  # a number of more digits than a double has
        return True
    for text in (wanted, wanted.replace("\\\\", "\\")):  # the origin's test files double back-slashes
        try:
            there = json.loads(text)
        except ValueError:
            continue
        if there == value or _same_leaf(there, value):
            return True
    return False


def _same_leaf(wanted, value):
    if isinstance(wanted, bool) or isinstance(value, bool):
        return False
    if isinstance(wanted, float) and isinstance(value, float):
        return math.isclose(wanted, value, rel_tol=2e-7)  # a single-precision value in its shortest form
    if isinstance(wanted, str) and isinstance(value, str):
        if value.startswith("hex:"):
            return base64.b64decode(wanted) == bytes.fromhex(value[4:])
        return _same_text(wanted, value)
    return False


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
