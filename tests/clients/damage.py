"""Damaged copies of a table's files: which files a table reads, and what is done to them.

Each copy has a path of its own, because the server keeps what it read by path. The table around it is not copied:
a `path_map` rule of the whole path leads to the damaged file.
"""

import dataclasses
import gzip
import io
import json
import pathlib
import re

import fastavro

import cases
import pages
import questions

KINDS = ("metadata", "manifest", "puffin", "parquet", "avro", "orc")

# Small tables for each kind; together their files of that kind are damaged in turn.
TABLES = {
    "metadata": ["sample_orders", "sample_measurements", "spark_schema_evolution_deletes", "icebergjava_v3_defaults"],
    "manifest": ["sample_customers", "sample_measurements", "icebergjava_eq_key_sets", "spark_v3_dv_replaced"],
    "puffin": ["sample_measurements", "spark_v3_dv_replaced", "spark_v3_dv_many_in_puffin", "icebergjava_v3_dv_and_eq"],
    "parquet": ["sample_customers", "icebergjava_all_types_parquet", "flink_v2_upsert", "icebergjava_pos_with_row"],
    "avro": ["flink_v2_append_types", "spark_v2_posdel_file_avro", "icebergjava_eq_avro_orc_files", "impala_v3_default_value_avro"],
    "orc": ["spark_v2_orc_data", "icebergjava_all_types_orc", "icebergjava_eq_avro_orc_files", "impala_v2_no_deletes_orc"],
}


@dataclasses.dataclass(frozen=True)
class Original:
    """A file of a table: as recorded (None for the metadata file itself), where it is, and which bytes matter most.

    `vectors` are the ranges of a Puffin file that hold vectors in use.
    """

    case: cases.Case
    recorded: str | None
    place: pathlib.Path
    vectors: tuple = ()

    def byte(self, data, random):
        """A byte to damage, in half of the cases one of those that decide about rows.

        These are the blocks of an Avro file, whose header is mostly the text of its schema, and the vectors of a
        Puffin file; of the other formats any byte.
        """
        if random.random() < 0.5:
            if self.vectors:
                return random.randrange(*random.choice(self.vectors))
            if data[:4] == b"Obj\x01":  # behind the first sync marker, which also ends the file
                return random.randrange(data.find(data[-16:]) + 16, len(data))
        return random.randrange(len(data))


@dataclasses.dataclass(frozen=True)
class Copy:
    """A damaged copy, the `at`th of its kind: `flipped` is (byte, bit), or None where the file was cut to `size` bytes."""

    kind: str
    at: int
    original: Original
    place: pathlib.Path
    size: int
    flipped: tuple | None

    def __str__(self):
        how = f"cut to {self.size} bytes" if self.flipped is None else "bit {1} of byte {0} flipped".format(*self.flipped)
        return f"{self.original.case.name}: {self.place.name}: {how}"

    @property
    def name(self):
        """Of the table around it."""
        return f"{self.kind}.t{self.at}"

    def must_be_unnoticed(self):
        """Whether no reader looks at the damage."""
        return False

    def is_beyond_notice(self):
        """Whether nothing in the format tells the damage, so that a reader cannot but take it for content.

        A cut file never is, because its length is recorded. Nor is a vector, which has a checksum, nor a page with
        one. Metadata is text without a checksum: what still is JSON may be read. Avro's deflate blocks have none
        either: what another reader (fastavro) decodes without complaint may be read. ORC has none at all.
        """
        if self.flipped is None or self.kind == "puffin":
            return False
        if self.kind == "parquet":
            return not self.hits_checksummed_page()
        if self.kind == "orc":
            return True
        data = self.place.read_bytes()
        try:
            if self.kind == "metadata":
                json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
            else:
                for _ in fastavro.reader(io.BytesIO(data)):
                    pass
        except Exception:  # whatever the other reader trips over
            return False
        return True

    def hits_checksummed_page(self):
        return any(start <= self.flipped[0] < end for start, end in pages.checksummed(self.original.place))

    def refusal(self, text, denied):
        """How an error's text names what is broken, as an outcome; None where it does not.

        What is `denied` is a path that the damage made, never the damaged file.
        """
        if self.place.name in text and not denied:
            return "refused"
        # A flipped bit in a path: the error names the file that is to be read now and is not there.
        named = named_file(text)
        if self.kind in ("metadata", "manifest") and named and not named.exists():
            return "refused, naming the path that the damage made"
        return None

    def toml(self, catalog):
        case = self.original.case
        if self.original.recorded is None:
            return cases.table_toml(catalog, self.name, self.place, case.path_map)
        # A rule's target is also a folder that the table may read from; the second rule adds the copies' folder.
        rules = [(self.original.recorded, str(self.place)), ("/damaged/", f"{self.place.parent}/"), *case.path_map]
        return cases.table_toml(catalog, self.name, case.metadata_file, rules)


def named_file(text):
    """The file that an error's text says it is about, None where it says none."""
    named = re.search(r"\bfile: (.+?)(, \w|\))", text)
    return pathlib.Path(named.group(1)) if named else None


def _place(case, recorded):
    for prefix, real in sorted(case.path_map, key=lambda rule: -len(rule[0])):
        if recorded.startswith(prefix):
            return pathlib.Path(real + recorded[len(prefix) :])
    return pathlib.Path(recorded)


def _records(path):
    with path.open("rb") as source:
        return list(fastavro.reader(source))


def originals(kind, case):
    """The files of a kind that reading the table's current snapshot needs."""
    document = questions.metadata(case.metadata_file)
    if kind == "metadata":
        return [Original(case, None, case.metadata_file)]
    (snapshot,) = [s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"]]
    lists, vectors = [snapshot["manifest-list"]], {}
    manifests = [entry["manifest_path"] for entry in _records(_place(case, lists[0]))]
    if kind == "manifest":
        recorded = lists + manifests
    else:
        files = [entry["data_file"] for path in manifests for entry in _records(_place(case, path)) if entry["status"] < 2]
        recorded = [file["file_path"] for file in files if file["file_format"].lower() == kind]
        for file in files if kind == "puffin" else []:
            if file["file_format"].lower() == kind:
                at = file["content_offset"]
                vectors.setdefault(file["file_path"], []).append((at, at + file["content_size_in_bytes"]))
    return [Original(case, path, _place(case, path), tuple(vectors.get(path, ()))) for path in dict.fromkeys(recorded)]


def damaged(original, random):
    """(the damaged bytes, the flipped byte and bit): a quarter is cut, the rest has one flipped bit."""
    data = bytearray(original.place.read_bytes())
    if random.random() < 0.25:
        del data[random.randrange(len(data)) :]
        return data, None
    flipped = (original.byte(data, random), random.randrange(8))
    data[flipped[0]] ^= 1 << flipped[1]
    return data, flipped


def make_copies(kind, tables, count, folder, random):
    """`count` damaged copies of the tables' files of a kind."""
    files = [file for case in tables for file in originals(kind, case)]
    folder.mkdir()
    out = []
    for at in range(count):
        original = files[at % len(files)]
        data, flipped = damaged(original, random)
        place = folder / f"{at:04}-{original.place.name}"
        place.write_bytes(data)
        out.append(Copy(kind, at, original, place, len(data), flipped))
    return out
