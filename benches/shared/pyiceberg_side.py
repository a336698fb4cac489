"""pyiceberg in a process of its own: answers requests, a JSON line each, until its input ends.

    python pyiceberg_side.py TABLE

Request: {"column": the filter's column, "value": what it must equal}, or {"column": null} for the schema alone.
Answer: what `measure.drain` says, or {"error": ...}. The table is loaded with the first request and kept, which spares
the later ones from asking what is current.
"""

import json
import pathlib
import sys
import warnings

import pyarrow
import pyiceberg
from pyiceberg.expressions import EqualTo
from pyiceberg.io import pyarrow as pyarrow_io  # noqa: F401  (its import is no part of the first request)
from pyiceberg.table import StaticTable

from measure import drain


def newest(folder):
    """The metadata file that the table's version hint names."""
    metadata = pathlib.Path(folder) / "metadata"
    return str(metadata / f"v{(metadata / 'version-hint.text').read_text().strip()}.metadata.json")


def main():
    warnings.simplefilter("ignore")
    table = None
    print(json.dumps({"version": pyiceberg.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if table is None:
                table = StaticTable.from_metadata(newest(sys.argv[1]))
            if request["column"] is None:
                schema = table.schema().as_arrow()
                batches = [pyarrow.RecordBatch.from_pylist([], schema=schema)]
            else:
                batches = table.scan(row_filter=EqualTo(request["column"], request["value"])).to_arrow().to_batches()
            answer = drain(batches)
        except Exception as error:  # whatever it is, the other side must hear of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
