"""The collection of tables by other writers: where it is, what a case holds, what may be refused.

The collection stands beside the project (`../shared/cases`) or where `SANDUR_CASES` says. Its layout and
the meaning of `expected.json` are written down in its `ORIGINS.md`.
"""

import dataclasses
import functools
import json
import os
import pathlib
import re

PROJECT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = PROJECT / "tests" / "golden"
# What a stranger's clone does without; the number only feeds the line that says so.
TABLES_IN_COLLECTION = 143
DELTA_TABLES_IN_COLLECTION = 329
PARQUET_FILES_IN_COLLECTION = 54


def root():
    """The collection's folder, or None where there is none."""
    place = os.environ.get("SANDUR_CASES")
    folder = pathlib.Path(place) if place else PROJECT.parent / "shared" / "cases"
    return folder if (folder / "iceberg").is_dir() else None


def missing_line():
    """What to say where the collection is absent."""
    place = os.environ.get("SANDUR_CASES") or "../shared/cases"
    return (
        f"{TABLES_IN_COLLECTION} Iceberg tables, {DELTA_TABLES_IN_COLLECTION} Delta tables and "
        f"{PARQUET_FILES_IN_COLLECTION} Parquet files of other writers were not read: "
        f"they would have to be in {place} (or where SANDUR_CASES says)"
    )


@dataclasses.dataclass(frozen=True)
class Case:
    """One table with what it must give."""

    name: str
    folder: pathlib.Path
    doc: dict

    @property
    def expected(self):
        return self.doc["expected"]

    @property
    def columns(self):
        """Column names in the table's order, None where no engine could tell."""
        return self.expected.get("columns") or [name for name, _ in self.expected.get("schema", [])] or None

    @property
    def uuid_columns(self):
        return {name for name, kind in self.expected.get("schema", []) if "arrow.uuid" in kind}

    @property
    def metadata_file(self):
        return self.folder / "table" / self.doc["metadata_file"]

    @property
    def path_map(self):
        """(recorded prefix, real folder) pairs."""
        return [
            (recorded, str(self.folder / place) + "/")
            for recorded, place in self.doc["path_prefixes"].items()
        ]

    @property
    def ident(self):
        return f'cases.default."{self.name}"'

    def metadata_table(self, kind):
        """The quoted name of a metadata table, such as `snapshots`, of this table."""
        return f'cases.default."{self.name}${kind}"'

    def at_metadata(self, version):
        """The quoted name of this table as its older metadata file `v<version>.metadata.json` has it."""
        return f'cases.default."{self.name}@{version.replace(".", "_")}"'

    def metadata_files(self):
        """(table name, metadata file) of this table and of what its published queries name beside it."""
        import published

        out = [(self.name, self.metadata_file)]
        for entry in self.doc.get("published", []):
            version = published.other_metadata(self, entry)
            if version:
                out.append((f"{self.name}@{version.replace('.', '_')}", self.metadata_file.with_name(f"v{version}.metadata.json")))
        return sorted(set(out))


# Files that break their own format; a reader may refuse them for good, naming the file.
ALWAYS_REFUSABLE = {
    "duckdb_legacy_bare_deletion_vector": "its deletion vector is a bare bitmap without length, magic and checksum",
    "icebergjava_fixed_partition": "its manifests do not follow the Avro schema in their own header",
}


@functools.cache
def load_all():
    """All Iceberg cases by name: the collection's, or where it is absent those of `tests/golden`."""
    folder = root()
    found = (folder / "iceberg").glob("*/expected.json") if folder else GOLDEN.glob("**/expected.json")
    out = []
    for file in sorted(found):
        out.append(Case(file.parent.name, file.parent.resolve(), json.loads(file.read_text("utf-8"))))
    return out


def by_name(name):
    """One case, None where it is not there."""
    return next((case for case in load_all() if case.name == name), None)


KNOWN_DIFFERENCES = PROJECT / "tests" / "known-differences.md"


@functools.cache
def known_differences(kind="iceberg"):
    """Case names of `tests/known-differences.md`: each stands in a heading `## <kind>/<case>`."""
    if not KNOWN_DIFFERENCES.is_file():
        return frozenset()
    text = KNOWN_DIFFERENCES.read_text("utf-8")
    return frozenset(re.findall(rf"^## {kind}/(\S+)\s*$", text, flags=re.MULTILINE))


def toml_string(text):
    """A TOML basic string; JSON's escapes are a subset of TOML's."""
    return json.dumps(text, ensure_ascii=True)


def table_toml(catalog, name, location, path_map=(), table_format="iceberg"):
    """The lines of one `[[catalog.<catalog>.table]]`."""
    rules = ", ".join(f"{{ from = {toml_string(recorded)}, to = {toml_string(real)} }}" for recorded, real in path_map)
    return [
        "",
        f"[[catalog.{catalog}.table]]",
        f"name = {toml_string(name)}",
        f"format = {toml_string(table_format)}",
        f"location = {toml_string(str(location))}",
        f"path_map = [{rules}]",
        "read_only = true",
    ]


def catalog_toml(cases):
    """The `[catalog.cases]` section that serves every case under its name."""
    lines = ["[catalog.cases]", 'type = "tables"']
    for case in cases:
        for name, file in case.metadata_files():
            lines += table_toml("cases", f"default.{name}", file, case.path_map)
    return "\n".join(lines) + "\n"
