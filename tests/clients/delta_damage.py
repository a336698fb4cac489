"""Damaged copies of Delta tables' files: which files reading a table needs, and the copy of a table around one of them.

A log names its files by place, so each copy is a table of its own: hard links, and one file that was rewritten.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import uuid

import cases
import damage
import delta_tables

KINDS = ("commit", "checkpoint", "vector")

# Small tables for each kind; together their files of that kind are damaged in turn. Those for vectors have no checkpoint.
TABLES = {
    "commit": [
        "deltaspark_v33_dv_delete",
        "deltaspark_dv_partitioned",
        "deltaspark_dv_inline",
        "deltaspark_log_compaction",
        "deltaspark_cm_rename_drop_readd",
        "deltaspark_variant",
        "kernel_cdf-table-with-dv",
    ],
    "checkpoint": [
        "deltaspark_ckpt_multipart",
        "deltaspark_ckpt_v2_json",
        "deltaspark_v33_ckpt_v2_parquet",
        "deltaspark_v33_dv_checkpoint",
        "golden_v2-checkpoint-json",
        "kernel_v1-single-part-struct-stats-only",
        "kernel_v2-checkpoints-json-with-last-checkpoint",
        "kernel_v2-classic-checkpoint-json",
    ],
    "vector": [
        "deltaspark_v33_dv_delete",
        "deltaspark_dv_partitioned",
        "deltaspark_dv_merge",
        "deltaspark_log_compaction",
        "golden_log-replay-dv-key-cases",
        "kernel_table-with-dv-small",
    ],
}

FRAME = 8  # length and checksum around a vector


@dataclasses.dataclass(frozen=True)
class Copy(damage.Copy):
    """A damaged copy within the table at `folder`."""

    folder: pathlib.Path

    def must_be_unnoticed(self):
        """Bytes of a vector file that no description of a vector covers; the first is the version of the format."""
        if self.kind != "vector":
            return False
        ranges = self.original.vectors
        if self.flipped is None:
            return all(end <= self.size for _, end in ranges)
        return self.flipped[0] > 0 and not any(start <= self.flipped[0] < end for start, end in ranges)

    def is_beyond_notice(self):
        """Commits have no checksum: what still is lines of JSON may be read, where the version has no checksum file either.

        JSON checkpoints have none, but the hint to each counts its files. Of Parquet files the pages have one, which covers
        neither headers nor footers. A cut one lacks its end.
        """
        if self.kind == "vector":
            return False
        if self.place.suffix == ".json":
            return self.kind == "commit" and not self._is_counted() and _is_lines_of_json(self.place.read_bytes())
        return self.flipped is not None and not self.hits_checksummed_page()

    def _is_counted(self):
        """Whether the newest version has a checksum file, which counts files and deleted rows."""
        return max(file.stem for file in self.place.parent.glob("*.json") if file.stem.isdigit()) in {
            file.stem for file in self.place.parent.glob("*.crc")
        }

    def refusal(self, text, denied):
        names_it = f"_delta_log/{self.place.name}" in text or self.kind != "commit" and self.place.name in text
        if names_it and not denied:
            return "refused"
        # A flipped bit in a path; some errors have it as the log spells it, below the table's folder.
        named = damage.named_file(text)
        if self.kind != "vector" and named and not (self.folder / named).exists():
            return "refused, naming the path that the damage made"
        # What still is a log, but not the one that was counted.
        if self.kind != "vector" and re.search(rf"file: {re.escape(str(self.folder))}/_delta_log/(\d{{20}}\.crc|_last_checkpoint)\b", text):
            return "refused, naming the checksum file or the hint that says otherwise"
        return None

    def toml(self, catalog):
        return cases.table_toml(catalog, self.name, self.folder, (), "delta")


def _is_lines_of_json(data):
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _commits(log):
    """Commits that are newer than every checkpoint, and what was compacted of them."""
    newest = max((int(file.name[:20]) for file in log.glob("*.checkpoint.*")), default=-1)
    return [file for file in sorted(log.glob("*.json")) if ".checkpoint." not in file.name and int(file.name[:20]) > newest]


def _checkpoint(log):
    """The files of the newest checkpoint."""
    files = [file for file in sorted(log.rglob("*.checkpoint.*")) if file.suffix != ".crc"]
    newest = max(file.name[:20] for file in files)
    return [file for file in files if file.name.startswith(newest)]


def _vectors(table):
    """{file: ranges of the vectors in use} by a replay of the commits, from length to checksum."""
    live = {}
    for version in sorted(table.commits):
        for action in table.commits[version]:
            for kind in ("remove", "add"):
                file = action.get(kind)
                vector = (file or {}).get("deletionVector")
                key = file and (file["path"], vector and (vector["pathOrInlineDv"], vector.get("offset")))
                if file and kind == "add":
                    live[key] = vector
                elif file:
                    live.pop(key, None)
    out = {}
    for file in sorted(table.location.rglob("deletion_vector_*.bin")):
        text = delta_tables.z85(uuid.UUID(file.stem.removeprefix("deletion_vector_")).bytes)
        here = [vector for vector in live.values() if vector and vector["storageType"] == "u" and vector["pathOrInlineDv"].endswith(text)]
        if here:
            out[file] = tuple(sorted((v["offset"], v["offset"] + v["sizeInBytes"] + FRAME) for v in here))
    return out


def originals(kind, table):
    """The files of a kind that reading the table's newest version needs."""
    log = table.location / "_delta_log"
    if kind == "vector":
        return [damage.Original(table, None, file, ranges) for file, ranges in _vectors(table).items()]
    return [damage.Original(table, None, file) for file in (_commits(log) if kind == "commit" else _checkpoint(log))]


def make_copies(kind, tables, count, folder, random):
    """`count` copies of the tables, each with one damaged file of the kind."""
    files = [file for table in tables for file in originals(kind, table)]
    whole = folder / "whole"
    for table in tables:
        # Links are made to this copy: the collection may lie on another disk.
        shutil.copytree(table.location, whole / table.name)
    out = []
    for at in range(count):
        original = files[at % len(files)]
        data, flipped = damage.damaged(original, random)
        inner = original.place.relative_to(original.case.location)
        table = folder / f"t{at:04}"
        shutil.copytree(
            whole / original.case.name, table, copy_function=os.link, ignore=lambda _, names: [n for n in names if n == inner.name]
        )
        (table / inner).write_bytes(data)
        out.append(Copy(kind, at, original, table / inner, len(data), flipped, table))
    return out
