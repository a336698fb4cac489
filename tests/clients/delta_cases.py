"""The collection's Delta tables: where each is, which answer of its `expected.json` is to be trusted, what may be refused.

A case is one table or a folder of several. Answers are brought into the form that results have here: a variant is
its JSON value, a timestamp of a year that Python's dates do not have is written like any other. A hash over the
other form is left out then.

For an older version the order of trust is: the table's expected rows where the version is the current one; the
hash that the writer's own model and the engines agree on; the row count of one engine. That engine counted by
statistics, so it counted old versions too whose files are not in the collection: these may be refused, if the
refusal names a file that is missing.
"""

import dataclasses
import enum
import functools
import json
import os
import pathlib
import re
import shutil
import urllib.parse

import canonical
import cases
import variant

CATALOG = "delta_cases"
TIMED = "delta_timed"  # copies whose commits have the times that the log says

# What the refusal of a table that is no valid one must name, as a pattern: the case's own name does not count.
NEGATIVE = {
    "deltars_simple_table_features": r"protocol|reader ?version",  # reader version 5, with features
    "dremio_checkpoint_multi_rowgroups_with_remove": r"_delta_log",  # checkpoints outside of any log
    "dremio_malformedMetadata": r"0{18}10\.checkpoint\.parquet|metadata|partitionColumns",
    "golden_data-reader-absolute-paths-escaped-chars": r"metadata",  # has none
    "golden_deltalog-commit-info": r"metadata|schemaString",  # without a schema
    "golden_deltalog-invalid-protocol-version": r"protocol|reader ?version",  # 99
    "golden_deltalog-state-reconstruction-from-checkpoint-missing-metadata": r"metadata",
    "golden_deltalog-state-reconstruction-without-protocol": r"protocol",
    "golden_no-delta-log-folder": r"_delta_log",
    "golden_versions-not-contiguous": r"contiguous|0{19}1\.json|version 1\b",  # 0 and 2
    "javakernel_catalog-owned-preview": r"catalog-?(managed|owned)",
    "kernel_table-with-geo": r"geometry|geospatial",
    "trino_databricks73_person": r"0{18}\d\d\.json",  # an x behind every JSON object
    "trino_databricks73_person_without_last_checkpoint": r"0{18}\d\d\.json",
    "trino_databricks73_pruning_invalid_log": r"0{20}\.json",
    # Parts of logs.
    "trino_statistics_basic_multi_file": r"protocol",
    "trino_statistics_infinity_nan": r"protocol",
    "trino_statistics_negative_zero": r"protocol",
}

# (case, recorded prefix) of shallow clones from elsewhere: with the prefix mapped they have their source's rows.
CLONE_PREFIXES = {"trino_deltalake_clone_merge": ["s3://test-bucket/tiny/"]}
CLONES = {
    ("trino_deltalake_clone_merge", "clone_merge_cloned"): "clone_merge_source",
    ("trino_deltalake_clone_merge", "clone_merge_deletion_vector_cloned"): "clone_merge_deletion_vector_source",
}

# A file is added by its plain path and removed by its `file:` URI: one file by the text, none by the place.
ONE_FILE_OR_NONE = {"golden_canonicalized-paths-normal-a", "golden_canonicalized-paths-special-a"}

# Partition values that are timestamps without a zone, published as Los Angeles reads them: (column, hours to UTC).
PUBLISHED_IN_OTHER_ZONE = {"golden_data-reader-partition-values": ("as_timestamp", "T18:", "T11:")}

# Its checkpoint, which counts, has fewer properties than the commit before that the case lists.
CONFIGURATION = {"kernel_parquet_row_group_skipping": {"delta.checkpointInterval": "1"}}

COUNTED = "row_count_by_version (deltalake 1.6.6)"


class Missing(enum.Enum):
    """Why a version cannot be read."""

    LOG = "its log is gone"
    FILES = "its data files are gone"


@dataclasses.dataclass(frozen=True)
class DeltaTable:
    """One Delta table with what it must give."""

    case: str
    place: str  # below the case's `table` folder, "." for that itself
    folder: pathlib.Path
    doc: dict

    uuid_columns = frozenset()  # Delta has no such type

    @property
    def name(self):
        """The table's name: a dot would end the schema's name."""
        inner = "" if self.place == "." else "__" + self.place.rpartition("/")[2]
        return self.case.replace(".", "_") + inner

    @property
    def ident(self):
        return f'{CATALOG}.default."{self.name}"'

    @property
    def timed_ident(self):
        return f'{TIMED}.default."{self.name}"'

    def metadata_table(self, kind):
        """The quoted name of a metadata table, such as `files`, of this table."""
        return f'{CATALOG}.default."{self.name}${kind}"'

    @property
    def location(self):
        return self.folder / "table" / self.place if self.place != "." else self.folder / "table"

    @property
    def part(self):
        """What `expected.json` says of this table."""
        return self.doc["tables"][self.place]

    @property
    def intent(self):
        return self.doc.get("intent")

    @property
    def version(self):
        """The newest version, None where the log cannot be read."""
        return self.part.get("version")

    @property
    def configuration(self):
        """The table's properties, None where the log could not be asked."""
        return CONFIGURATION.get(self.case, self.part.get("configuration"))

    @functools.cached_property
    def expected(self):
        return comparable(self.part["expected"], PUBLISHED_IN_OTHER_ZONE.get(self.case))

    @property
    def has_rows(self):
        return self.expected["status"] in ("rows", "count")

    @property
    def published_folder(self):
        """The folder of the expected rows as Parquet where only it has them, else None."""
        folder = self.folder / "expected"
        return folder if self.has_rows and not {"rows", "sha256"} & set(self.expected) and folder.is_dir() else None

    @property
    def has_variants(self):
        return any("variant" in canonical.plain_type(kind) for _, kind in self.expected.get("schema", []))

    @property
    def path_map(self):
        """(recorded prefix, real folder) pairs."""
        prefixes = self.doc.get("path_prefixes", []) + CLONE_PREFIXES.get(self.case, [])
        return [(prefix, f"{self.folder}/table/") for prefix in prefixes]

    @functools.cached_property
    def commits(self):
        """{version: its actions} of the JSON commits in the log."""
        files = [file for file in (self.location / "_delta_log").glob("*.json") if re.fullmatch(r"\d{20}", file.stem)]
        lines = {int(file.stem): file.read_text("utf-8").splitlines() for file in sorted(files)}
        return {version: [json.loads(line) for line in text if line.strip()] for version, text in lines.items()}

    def commit_info(self, version):
        """The commit's own description of itself, empty where it has none."""
        return next((action["commitInfo"] for action in self.commits[version] if "commitInfo" in action), {})

    @property
    def versions(self):
        """{version: entry} of the versions that the case asks about."""
        entries = self.part.get("row_count_by_version", []) + self.part.get(COUNTED, [])
        return {entry["version"]: entry for entry in entries}

    def version_answer(self, version):
        """What a version must give (keys as in `expected.json`), why it is `Missing`, or None: nothing is known."""
        entry = self.versions[version]
        if version == self.version and self.has_rows:
            return self.expected
        if entry.get("readable") is False or entry.get("error") == "Exception":
            return Missing.FILES
        if "error" in entry:
            gone = isinstance(entry["error"], dict) or entry["error"] == "TableNotFoundError"
            return Missing.LOG if gone else None
        keys = ("row_count",) if self.has_variants else ("row_count", "sha256")
        return {key: entry[key] for key in keys if key in entry}

    @property
    def oldest_version(self):
        """The oldest version whose log is there."""
        there = (version for version in self.versions if self.version_answer(version) is not Missing.LOG)
        return min(there, default=self.version)


def comparable(doc, zone=None):
    """An answer in the form that results have here."""
    out = dict(doc)
    if "rows" in doc:
        out["rows"] = [[_plain(value) for value in row] for row in doc["rows"]]
    if zone and "rows" in doc:
        at = doc["columns"].index(zone[0])
        for row in out["rows"]:
            row[at] = row[at] and row[at].replace(zone[1], zone[2])
    variants = any("variant" in canonical.plain_type(kind) for _, kind in doc.get("schema", []))
    if variants or out.get("rows") != doc.get("rows") or doc.get("sha256") is None:
        out.pop("sha256", None)
    return out


def _plain(value):
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"metadata", "value"} and all(str(part).startswith("hex:") for part in value.values()):
            return variant.decode(*(bytes.fromhex(value[key][4:]) for key in ("metadata", "value")))
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, str) and re.fullmatch(r"us:-?\d+", value):
        return canonical.timestamp_text(int(value[3:]), "us")
    return value


def listed_path(path):
    """A path as the collection lists it: decoded once, one slash for several, none in front."""
    return re.sub("/+", "/", urllib.parse.unquote(path)).lstrip("/")


@functools.cache
def load_all():
    """All Delta tables by case and place; none where the collection is absent."""
    root = cases.root()
    out = []
    for file in sorted((root / "delta").glob("*/expected.json")) if root else []:
        doc = json.loads(file.read_text("utf-8"))
        out += [DeltaTable(file.parent.name, place, file.parent.resolve(), doc) for place in doc["tables"]]
    return out


def by_name(name):
    """One table, None where it is not there."""
    return next((table for table in load_all() if table.name == name), None)


def timed():
    """Tables that are asked for what they were at a time: by their own history, or by a published query."""
    published = lambda table: any("FOR TIMESTAMP" in entry["query"] for entry in table.doc.get("published", []))
    return [table for table in load_all() if "row_count_by_version" in table.part or published(table)]


def commit_times(table):
    """{version: ms since 1970} of a table's commits, each later than the one before it, as readers take them."""
    out, last = {}, -1
    for version in sorted(table.commits):
        info = table.commit_info(version)
        last = max(info.get("inCommitTimestamp", info["timestamp"]), last + 1)
        out[version] = last
    return out


def copy_with_times(table, folder):
    """A copy of a table. A commit's time is its file's, which is that of the collection's own copy until set.

    Commits that have their time inside keep a file of now: it must not be asked.
    """
    place = pathlib.Path(folder) / table.name
    for file in table.location.rglob("*"):
        if file.is_file():
            copied = place / file.relative_to(table.location)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
    for version in table.commits:
        info = table.commit_info(version)
        if "inCommitTimestamp" not in info:
            nanos = info["timestamp"] * 1_000_000
            os.utime(place / "_delta_log" / f"{version:020}.json", ns=(nanos, nanos))
    return place


def catalog_toml(folder):
    """The catalogs of the collection's Delta tables; `folder` takes the copies."""
    if not load_all():
        return ""
    lines = [f"[catalog.{CATALOG}]", 'type = "tables"']
    for table in load_all():
        lines += cases.table_toml(CATALOG, f"default.{table.name}", table.location, table.path_map, "delta")
    lines += ["", f"[catalog.{TIMED}]", 'type = "tables"']
    for table in timed():
        copied = copy_with_times(table, folder)
        lines += cases.table_toml(TIMED, f"default.{table.name}", copied, (), "delta")
    return "\n".join(lines) + "\n"
