"""DuckDB with its delta extension in a process of its own; requests and answers are those of `duckdb_side.py`."""

import sys

import duckdb_side

if __name__ == "__main__":
    duckdb_side.answer(duckdb_side.connect("delta"), "delta_scan('{}')".format(sys.argv[1].replace("'", "''")))
