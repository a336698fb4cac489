"""pyiceberg in a process of its own that appends: answers requests, a JSON line each, until its input ends.

    python pyiceberg_writer.py WAREHOUSE

Request: {"load": a folder of Parquet files} reads their rows into memory, {"write": a table's name} makes the table and
appends them in one commit. Answer: {} or {"error": ...}.
"""

import json
import pathlib
import sys
import warnings

import pyarrow.parquet as pq
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import pyarrow as pyarrow_io  # noqa: F401  (its import is no part of the first request)


def main():
    warnings.simplefilter("ignore")
    warehouse = pathlib.Path(sys.argv[1])
    warehouse.mkdir(parents=True)
    catalog = SqlCatalog("own", uri=f"sqlite:///{warehouse}/own.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("bench")
    rows = None
    print(json.dumps({"version": pyiceberg.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                rows = pq.read_table(request["load"]) if rows is None else rows
            else:
                catalog.create_table(f"bench.{request['write']}", rows.schema).append(rows)
            answer = {}
        except Exception as error:  # whatever it is, the other side must hear of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
