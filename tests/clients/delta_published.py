"""Results that a Delta table's origin published with it: Trino's queries and `VALUES` lists, for our SQL and comparing.

`translate` gives the query as we say it, or a reason why it is not put to the server; `rows` reads a `VALUES` list.
"""

import re

import canonical
import published

NOT_OURS = [
    (r"=\s*JSON '", "compares a variant with Trino's JSON type"),
]

# Marks the JSON null in a published row, which is a value, against NULL, which is none.
JSON_NULL = object()


def translate(table, entry):
    """(SQL, None), or (None, why the query cannot be put to the server)."""
    query = entry["query"].strip().rstrip(";")
    for pattern, reason in NOT_OURS:
        if re.search(pattern, query):
            return None, reason
    ident = table.ident
    if "FOR TIMESTAMP" in query:
        ident = table.timed_ident
        query = query.replace(" UTC'", "'")  # the zone of our sessions
    return re.sub(r"\bFROM t\b", lambda _: f"FROM {ident}", query, count=1), None


LITERAL = re.compile(
    r"""\s*(?:
        (?P<null>null)\b
      | (?P<flag>true|false)\b
      | cast\s*\(\s*'(?P<cast>(?:[^']|'')*)'\s*as\s+\w+\s*(?:\([\d\s,]*\))?\s*\)
      | (?:(?P<kind>[a-z]+)\s+)?'(?P<text>(?:[^']|'')*)'
      | (?P<number>[-+]?[\d.]+(?:e[-+]?\d+)?)
    )\s*""",
    re.IGNORECASE | re.VERBOSE,
)


def rows(values):
    """The rows of a `VALUES` list: each value a text as `published.same_value` takes it, or `JSON_NULL`."""
    text = re.sub(r"^\s*VALUES\b", "", values, flags=re.IGNORECASE).strip()
    out, at = [], 0
    while at < len(text):
        row, at = _row(text, at)
        out.append(row)
        at = _past(text, at, ",")
    return out


def _row(text, at):
    if text[at] != "(":
        value, at = _literal(text, at)
        return [value], at
    row, at = [], at + 1
    while True:
        value, at = _literal(text, at)
        row.append(value)
        if text[at] == ")":
            return row, _past(text, at, ")")
        at = _past(text, at, ",")


def _past(text, at, mark):
    """The position behind a mark and blanks; the text's end needs no mark."""
    if at < len(text) and text[at] != mark:
        raise ValueError(f"{mark} expected at {text[at:]!r}")
    rest = text[at + 1 :]
    return at + 1 + len(rest) - len(rest.lstrip())


def _literal(text, at):
    found = LITERAL.match(text, at)
    if not found:
        raise ValueError(f"no literal at {text[at:]!r}")
    return _text(found), found.end()


def _text(found):
    if found.group("null"):
        return None
    for name in ("flag", "cast", "number"):
        if found.group(name):
            return found.group(name)
    text, kind = found.group("text").replace("''", "'"), (found.group("kind") or "").upper()
    if kind == "JSON":
        return JSON_NULL if text == "null" else text
    if kind == "TIMESTAMP":
        return _timestamp(text)
    return text


def _timestamp(text):
    """A timestamp literal in canonical form; the years of Python's dates are not enough here."""
    moment, zone = (text[:-4], "Z") if text.endswith(" UTC") else (text, "")
    seconds, _, fraction = moment.replace(" ", "T").partition(".")
    return f"{seconds}.{fraction:0<6}{zone}"


def same_rows(wanted, table):
    """Whether an Arrow table has the published rows, without regard to order."""
    left = canonical.table_rows(table)
    texts = ["string" in str(field.type) for field in table.schema]

    def same_row(row, other):
        return len(row) == len(other) and all(map(_same_value, row, other, texts))

    if len(wanted) != len(left):
        return False
    for row in wanted:
        match = next((other for other in left if same_row(row, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same_value(wanted, value, is_text):
    if wanted is JSON_NULL:  # the binary form of a variant is decoded to None
        return value == ("null" if is_text else None)
    return wanted == value or published.same_value(wanted, value)
