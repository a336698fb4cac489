"""Writes the table of the full scan: Iceberg v3, `lineitem`-like rows, a deletion vector a data file.

    PYTHONPATH=benches/shared:tests/clients python benches/full_scan/make_table.py DIR [--rows 6000000] [--deleted 0.1] [--files 8]

DIR becomes the table's folder and must not exist yet. The same arguments give the same rows and the same
deletes. What a reader must find is left in the table's properties: `bench.arguments`, and `bench.expected`
with the fingerprint of the live rows (`fingerprint.py`).
"""

import argparse
import json
import os
import pathlib
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import deletion_vectors
import iceberg_v3
import lineitem
from fingerprint import Fingerprint


def arguments_of(rows, deleted, files):
    """The form in which arguments stand in the table's properties."""
    return json.dumps({"generator": 1, "rows": rows, "deleted": deleted, "files": files}, sort_keys=True)


def properties(folder):
    """The properties of a table made before, or None."""
    file = pathlib.Path(folder) / "metadata" / "v2.metadata.json"
    return json.loads(file.read_text("utf-8"))["properties"] if file.exists() else None


def make_table(folder, rows, deleted, files, say=lambda text: None):
    """Writes the table; after a failure nothing is left of it."""
    folder = pathlib.Path(os.path.abspath(folder))
    if folder.exists():
        raise FileExistsError(f"{folder} is there already")
    data = folder / "data"
    data.mkdir(parents=True)
    (folder / "metadata").mkdir()
    try:
        _write(folder, data, rows, deleted, files, say)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _write(folder, data, rows, deleted, files, say):
    pool = lineitem.word_pool()
    live = Fingerprint()
    entries, vectors, arrow_bytes = [], [], 0
    for number in range(files):
        count = rows // files + (number < rows % files)
        path = data / f"{number:05}.parquet"
        table = lineitem.write_file(path, number, count, pool)
        positions = _deleted_positions(number, count, deleted)
        keep = np.ones(count, bool)
        keep[positions] = False
        for batch in table.filter(pa.array(keep)).to_batches():
            live.add(batch)
        entries.append(iceberg_v3.data_entry(path, pq.read_metadata(path), lineitem.SCHEMA))
        vectors.append((path, positions))
        arrow_bytes += table.nbytes
        say(f"{path.name}: {count:,} rows, {len(positions):,} deleted, {path.stat().st_size:,} bytes")

    puffin = data / "deletes.puffin"
    places = deletion_vectors.write_puffin(puffin, vectors)
    deletes = [
        iceberg_v3.vector_entry(puffin, path, len(positions), offset, length)
        for (path, positions), (offset, length) in zip(vectors, places)
    ]
    iceberg_v3.write_metadata(
        folder,
        lineitem.SCHEMA,
        entries,
        deletes,
        {"bench.arguments": arguments_of(rows, deleted, files), "bench.expected": json.dumps(live.result())},
    )
    say(f"{puffin.name}: {files} deletion vectors, {puffin.stat().st_size:,} bytes")
    say(f"{arrow_bytes / rows:.0f} bytes a row in Arrow memory")


def _deleted_positions(number, count, deleted):
    rng = np.random.Generator(np.random.PCG64([lineitem.SEED, number, 1]))
    return np.sort(rng.permutation(count)[: round(count * deleted)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--deleted", type=float, default=0.1, help="share of the rows, spread at random")
    parser.add_argument("--files", type=int, default=8, help="data files, one row group each")
    given = parser.parse_args()
    if not (0 < given.deleted < 1 and given.rows >= given.files >= 1):
        parser.error("a share between 0 and 1 and at least a row a file are needed")
    make_table(given.folder, given.rows, given.deleted, given.files, say=print)


if __name__ == "__main__":
    sys.exit(main())
