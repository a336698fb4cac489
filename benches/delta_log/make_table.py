"""Delta tables of many files: a log of many commits, of which one data file stands for all.

Each file has the same rows and a hundred of the table's ids by its statistics; the files that are asked for are there
under their names, hard links of one, and the others are in the log alone.
"""

import json
import os
import pathlib

import pyarrow
import pyarrow.parquet

ROWS_A_FILE = 100
FILES_A_COMMIT = 1_000
COLUMNS = 10  # with statistics


def name(file):
    return f"part-{file:08}.parquet"


def add(file):
    """The log's line about a file, which says that its ids are those from `file * ROWS_A_FILE` on."""
    first = file * ROWS_A_FILE
    low = {"id": first} | {f"c{n}": first % (1000 + n) for n in range(1, COLUMNS)}
    high = {"id": first + ROWS_A_FILE - 1} | {f"c{n}": first % (1000 + n) + n for n in range(1, COLUMNS)}
    statistics = {"numRecords": ROWS_A_FILE, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, 0)}
    action = {
        "path": name(file),
        "partitionValues": {},
        "size": 2_000,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(statistics, separators=(",", ":")),
    }
    return json.dumps({"add": action}, separators=(",", ":"))


def write_file(folder, file):
    """The data file of this number, with the rows that its statistics tell of."""
    first = file * ROWS_A_FILE
    columns = {"id": list(range(first, first + ROWS_A_FILE))}
    columns |= {f"c{n}": [first % (1000 + n) + (row % (n + 1)) for row in range(ROWS_A_FILE)] for n in range(1, COLUMNS)}
    table = pyarrow.table({key: pyarrow.array(values, pyarrow.int64()) for key, values in columns.items()})
    pyarrow.parquet.write_table(table, folder / name(file))


def make_table(folder, files):
    folder = pathlib.Path(folder)
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": key, "type": "long", "nullable": True, "metadata": {}} for key in ["id", *(f"c{n}" for n in range(1, COLUMNS))]]
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    first = [json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}), json.dumps({"metaData": metadata})]
    for version, start in enumerate(range(0, files, FILES_A_COMMIT)):
        lines = [*(first if version == 0 else ()), *map(add, range(start, min(start + FILES_A_COMMIT, files)))]
        (log / f"{version:020}.json").write_text("\n".join(lines) + "\n", "utf-8")


def append(folder, version, file):
    """One more commit, of one more file."""
    write_file(folder, file)
    target = folder / "_delta_log" / f"{version:020}.json"
    draft = target.with_suffix(".draft")
    draft.write_text(add(file) + "\n", "utf-8")
    os.rename(draft, target)
