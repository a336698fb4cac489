"""Rows shaped like TPC-H's `lineitem`: 16 columns, about 170 bytes a row in Arrow memory.

The generator is the project's own and only imitates the shape (column types, ranges, lengths); the figures of
TPC-H itself need its own generator. A file's rows depend on the seed, the file's number and its row count
alone, and no order key is in two files.
"""

import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20_260_101
DECIMAL = pa.decimal128(12, 2)
COLUMNS = [
    ("l_orderkey", pa.int64()),
    ("l_partkey", pa.int64()),
    ("l_suppkey", pa.int64()),
    ("l_linenumber", pa.int32()),
    ("l_quantity", DECIMAL),
    ("l_extendedprice", DECIMAL),
    ("l_discount", DECIMAL),
    ("l_tax", DECIMAL),
    ("l_returnflag", pa.string()),
    ("l_linestatus", pa.string()),
    ("l_shipdate", pa.date32()),
    ("l_commitdate", pa.date32()),
    ("l_receiptdate", pa.date32()),
    ("l_shipinstruct", pa.string()),
    ("l_shipmode", pa.string()),
    ("l_comment", pa.string()),
]
# Field ids count from 1 in the order of the columns.
SCHEMA = pa.schema(
    [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})
        for field_id, (name, kind) in enumerate(COLUMNS, 1)
    ]
)

PARTS, SUPPLIERS = 200_000, 10_000
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
WORDS = (
    "the of and to a in for with on as by over along again between beneath against after "
    "river harvest market winter engine copper lantern orchard signal meadow ledger harbour timber anchor "
    "quiet brisk patient narrow distant amber hollow steady gentle bright early sudden plain "
    "carry settle gather measure follow wander answer balance return arrive linger repair count deliver"
).split()
COMMENT_LENGTHS = (10, 43)
POOL_BYTES = 16 << 20


def _day(text):
    return int(np.datetime64(text, "D").astype(np.int64))


FIRST_ORDER, LAST_ORDER = _day("1992-01-01"), _day("1998-08-02")
CURRENT_DATE = _day("1995-06-17")


def word_pool():
    """A long text of random words, of which comments are cuts."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    words = np.array(WORDS, dtype=object)[rng.integers(0, len(WORDS), POOL_BYTES // 5)]
    text = " ".join(words).encode("ascii")
    return np.frombuffer(text, np.uint8)


def make_rows(file_number, rows, pool):
    """The rows of one data file as a table with `SCHEMA`."""
    rng = np.random.Generator(np.random.PCG64([SEED, file_number]))

    lines = rng.integers(1, 8, rows // 4 + rows // 40 + 8)
    while lines.sum() < rows:  # a long run of short orders: only with few rows
        lines = np.concatenate([lines, rng.integers(1, 8, rows)])
    order = np.repeat(np.arange(len(lines)), lines)[:rows]
    first_line = np.concatenate([[0], np.cumsum(lines)[:-1]])
    line_number = np.arange(rows) - first_line[order] + 1
    order_date = rng.integers(FIRST_ORDER, LAST_ORDER + 1, len(lines))[order]
    order = order + file_number * rows
    order_key = order // 8 * 32 + order % 8 + 1  # 8 of every 32 keys are used

    part = rng.integers(1, PARTS + 1, rows)
    supplier = (part + rng.integers(0, 4, rows) * (SUPPLIERS // 4 + 1)) % SUPPLIERS + 1
    quantity = rng.integers(1, 51, rows)
    price = 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)  # cents

    ship = order_date + rng.integers(1, 122, rows)
    commit = order_date + rng.integers(30, 91, rows)
    receipt = ship + rng.integers(1, 31, rows)
    returned = np.where(receipt <= CURRENT_DATE, rng.integers(0, 2, rows), 2)
    open_line = (ship > CURRENT_DATE).astype(np.int64)

    columns = {
        "l_orderkey": pa.array(order_key),
        "l_partkey": pa.array(part),
        "l_suppkey": pa.array(supplier),
        "l_linenumber": pa.array(line_number.astype(np.int32)),
        "l_quantity": _decimals(quantity * 100),
        "l_extendedprice": _decimals(quantity * price),
        "l_discount": _decimals(rng.integers(0, 11, rows)),
        "l_tax": _decimals(rng.integers(0, 9, rows)),
        "l_returnflag": _choice(returned, ["R", "A", "N"]),
        "l_linestatus": _choice(open_line, ["F", "O"]),
        "l_shipdate": _dates(ship),
        "l_commitdate": _dates(commit),
        "l_receiptdate": _dates(receipt),
        "l_shipinstruct": _choice(rng.integers(0, len(INSTRUCTIONS), rows), INSTRUCTIONS),
        "l_shipmode": _choice(rng.integers(0, len(MODES), rows), MODES),
        "l_comment": _cuts(rng, rows, pool),
    }
    return pa.table([columns[field.name] for field in SCHEMA], schema=SCHEMA)


def write_file(path, file_number, rows, pool):
    """Writes the rows of one data file as a Parquet file of one row group; returns them."""
    table = make_rows(file_number, rows, pool)
    pq.write_table(
        table,
        path,
        row_group_size=rows,
        compression="zstd",
        store_decimal_as_integer=True,  # the specification's form for up to 18 digits
        write_page_index=True,
    )
    return table


def write_files(folder, rows, files, write=write_file):
    """A folder of this many Parquet files with so many rows in all, made when it is not there."""
    if not folder.exists():
        print(f"writing the rows to {folder}", file=sys.stderr)
        draft = folder.with_name(folder.name + ".draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        pool = word_pool()
        for number in range(files):
            write(draft / f"{number:05}.parquet", number, rows // files + (number < rows % files), pool)
        draft.rename(folder)
    return folder


def _decimals(hundredths):
    """Non-negative hundredths as decimals: 16 little-endian bytes each."""
    words = np.zeros((len(hundredths), 2), "<i8")
    words[:, 0] = hundredths
    return pa.Array.from_buffers(DECIMAL, len(hundredths), [None, pa.py_buffer(words)])


def _dates(days):
    return pa.array(days.astype(np.int32)).view(pa.date32())


def _choice(indices, values):
    return pa.DictionaryArray.from_arrays(indices.astype(np.int8), values).dictionary_decode()


def _cuts(rng, rows, pool):
    """Strings that are cuts of the pool at random places."""
    lengths = rng.integers(COMMENT_LENGTHS[0], COMMENT_LENGTHS[1] + 1, rows)
    starts = rng.integers(0, len(pool) - COMMENT_LENGTHS[1], rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return pa.Array.from_buffers(
        pa.string(), rows, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(pool[places])]
    )
