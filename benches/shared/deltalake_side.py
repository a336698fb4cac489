"""The `deltalake` package in a process of its own; requests and answers are those of `duckdb_side.py`.

The table is opened with the first request and brought to its newest version with each later one, as a service would.
"""

import json
import sys

import deltalake

from measure import drain


def main():
    print(json.dumps({"version": deltalake.__version__}), flush=True)
    table = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if table is None:
                table = deltalake.DeltaTable(sys.argv[1])
            else:
                table.update_incremental()
            query = deltalake.QueryBuilder().register("t", table).execute(request["sql"].format(table="t"))
            answer = drain(query.read_all().to_batches() if hasattr(query, "read_all") else query, request["fingerprint"])
        except Exception as error:  # noqa: BLE001 - told to who asked
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
