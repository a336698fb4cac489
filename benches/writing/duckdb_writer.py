"""DuckDB in a process of its own that writes Parquet: answers requests, a JSON line each, until its input ends.

    python duckdb_writer.py SOURCE

Request: {"write": a file to copy the source's rows to}, or {"check": SQL with one row}. Answer: {"values": ...}, {} or
{"error": ...}.
"""

import json
import sys

import duckdb

from measure import drain

BATCH_ROWS = 122_880


def main():
    connection = duckdb.connect()
    print(json.dumps({"version": duckdb.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "write" in request:
                copy = "COPY (FROM read_parquet('{}/*.parquet')) TO '{}' (FORMAT parquet, COMPRESSION zstd)"
                connection.execute(copy.format(sys.argv[1], request["write"]))
                answer = {}
            else:
                answer = drain(connection.execute(request["check"]).to_arrow_reader(BATCH_ROWS))
        except (duckdb.Error, ValueError, TypeError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
