"""A result of the server against an answer of the collection, for Iceberg and Delta alike."""

import canonical
import published


def read(connection, sql):
    """The Arrow table that a query gives."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


def check_rows(case, table, expected):
    """A result against an answer: `row_count`, and `columns`, `schema`, `rows`, `sha256` where given.

    `case` says which columns hold UUIDs, and the types of the table's own expected rows.
    """
    assert table.num_rows == expected["row_count"]
    schema = expected.get("schema", [])
    columns = expected.get("columns") or [name for name, _ in schema]
    if columns:
        assert table.column_names == columns
    for name, kind in schema:
        field = table.schema.field(name)
        assert canonical.same_type(kind, field.type), f"column {name}: {field.type} instead of {kind}"
    if not {"rows", "sha256"} & set(expected):
        return
    rows = canonical.table_rows(table, case.uuid_columns)
    kinds = {name: canonical.plain_type(kind) for name, kind in case.expected.get("schema", [])}
    for at, name in enumerate(table.column_names):
        if "variant" in kinds.get(name, ""):
            parse_variants(table, rows, at, kinds[name])
    if expected.get("status") == "published_only" and "rows" in expected:
        assert published.same_rows(expected["rows"], rows), rows[:20]
        return
    if "rows" in expected:
        assert canonical.sorted_lines(rows) == canonical.sorted_lines(expected["rows"])
    if "sha256" in expected:
        assert canonical.sha256(table.column_names, rows) == expected["sha256"]


def parse_variants(table, rows, at, kind):
    """Parses the variants of a column in canonical rows where they came as JSON text, not as two binaries."""
    if "variant" not in canonical.type_text(table.field(at).type):
        for row in rows:
            row[at] = canonical.with_variants(kind, row[at])
