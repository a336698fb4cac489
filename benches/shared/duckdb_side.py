"""DuckDB in a process of its own: answers requests, a JSON line each, until its input ends.

    python duckdb_side.py TABLE

Request: {"sql": with {table} for the table, "fingerprint": bool}. Answer: what `measure.drain` says, or
{"error": ...}.
"""

import json
import os
import sys

import duckdb

from measure import drain

BATCH_ROWS = 122_880  # a row group of DuckDB's own; larger batches cost it more memory and no less CPU


def connect(*extensions):
    """An in-memory database with extensions that come as Python packages, so nothing is fetched."""
    connection = duckdb.connect()
    packages = os.path.dirname(os.path.dirname(duckdb.__file__))
    for name in extensions:
        file = f"{packages}/duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        connection.execute(f"LOAD '{file}'")
    return connection


def answer(connection, table):
    """Answers requests about a table, a table function in DuckDB's terms, until the input ends."""
    print(json.dumps({"version": duckdb.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reader = connection.execute(request["sql"].format(table=table)).to_arrow_reader(BATCH_ROWS)
            said = drain(reader, request["fingerprint"])
            reader.close()
        except (duckdb.Error, ValueError, TypeError) as error:
            said = {"error": str(error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    answer(connect("avro", "iceberg"), "iceberg_scan('{}')".format(sys.argv[1].replace("'", "''")))
