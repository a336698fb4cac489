"""The queries of the full scan."""

# Name, SQL with {table}, and whether the rows are compared by fingerprint (else by value).
QUERIES = [
    ("full", "SELECT * FROM {table}", True),
    ("count", "SELECT count(*) AS n FROM {table}", False),
    ("four columns", "SELECT l_orderkey, l_quantity, l_extendedprice, l_shipdate FROM {table}", True),
    (
        "filter and sum",
        "SELECT sum(l_extendedprice * l_discount) AS revenue FROM {table} WHERE l_shipdate >= DATE '1994-01-01'"
        " AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        False,
    ),
]
