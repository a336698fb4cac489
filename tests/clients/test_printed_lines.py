"""The lines that `sandur serve --sample` prints, pasted as they are: each shows the sample rows."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import canonical
from conftest import NOT_RUN, binary, connect

SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"
NAMES = ("orders", "customers", "measurements")


def sample(name):
    return json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def started(start_server, tmp_path_factory):
    """A server with the sample on a warehouse that was not there before."""
    warehouse = tmp_path_factory.mktemp("fresh") / "warehouse"
    # The Python that runs these tests has the driver.
    return start_server(["--sample", "--warehouse", str(warehouse)], env={"SANDUR_PYTHON": sys.executable})


def pasted(server, mark):
    """The one printed command that holds `mark`: what a user selects, from its program's name on."""
    lines = [line.rstrip("\n") for line in server.stdout if mark in line]
    assert len(lines) == 1, f"{len(lines)} lines with {mark!r} in:\n{''.join(server.stdout)}"
    start = re.search(r"(?:^|\s)('?(?:\S*/)?(?:java|python[\d.]*|sandur)'?) ", lines[0])
    assert start, lines[0]
    return lines[0][start.start(1) :]


def run(command, tmp_path):
    """Runs a pasted line the way a terminal would, elsewhere than in the project."""
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr[-2000:]}"
    return done.stdout


def expected_rows(command):
    """The rows that a pasted line asks for, from the sample's own list."""
    asked = re.search(
        r"SELECT \* FROM (iceberg\.sample\.\w+)(?: ORDER BY (\w+))?(?: LIMIT (\d+))?", command, re.IGNORECASE
    )
    assert asked, f"this test does not know the query of: {command}"
    table = sample(asked.group(1).rpartition(".")[2])
    rows = table["rows"]
    if asked.group(2):
        at = table["columns"].index(asked.group(2))
        rows = sorted(rows, key=lambda row: row[at])
    return rows[: int(asked.group(3))] if asked.group(3) else rows


def check_output(command, output):
    """Each expected row is one line of the output, in order, and no other line holds a row."""
    lines = iter(output.splitlines())
    for row in expected_rows(command):
        words = [str(value) for value in row if isinstance(value, (int, str)) and not re.match(r"\d{4}-\d\d", str(value))]
        for line in lines:
            if all(word in line for word in words):
                break
        else:
            pytest.fail(f"row {row} is missing, or out of order, in:\n{output}")
    rest = "\n".join(lines)
    table = sample(re.search(r"iceberg\.sample\.(\w+)", command).group(1))
    shown = [row for row in table["rows"] if str(row[1]) in rest and str(row[0]) in rest]
    assert len(shown) == 0, f"more rows than asked for in:\n{output}"


def test_shell_line(started, tmp_path):
    command = pasted(started, " sql ")
    check_output(command, run(command, tmp_path))


def test_python_line(started, tmp_path):
    command = pasted(started, "adbc_driver_flightsql")
    check_output(command, run(command, tmp_path))


def test_jdbc_line(started, tmp_path, record):
    if not shutil.which("java") or not os.environ.get("SANDUR_JDBC_CLASSPATH"):
        record(NOT_RUN, "the printed JDBC line: no java or no jars (SANDUR_JDBC_CLASSPATH)")
        return
    command = pasted(started, "jdbc:arrow-flight-sql")
    assert "--add-opens=java.base/java.nio=ALL-UNNAMED" in command
    check_output(command, run(command, tmp_path))


def test_pyiceberg_line(started, tmp_path):
    output = run(pasted(started, "pyiceberg"), tmp_path)
    table = sample("orders")
    first = sorted(table["rows"])[:5]
    for line, row in zip(output.strip().splitlines(), first, strict=True):
        assert f"'order_id': {row[0]}, 'customer': '{row[1]}', 'product': '{row[2]}', 'quantity': {row[3]}" in line, output


def test_the_sample_is_listed_with_live_and_deleted_rows(started):
    text = "".join(started.stdout)
    for name in NAMES:
        [line] = [line for line in started.stdout if f"iceberg.sample.{name}" in line and "SELECT" not in line]
        assert str(len(sample(name)["rows"])) in line, text


@pytest.mark.parametrize("name", NAMES)
def test_sample_tables_hold_their_rows(started, name):
    expected = sample(name)
    with connect(started) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {expected['table']}")
        table = cursor.fetch_arrow_table()
    assert table.column_names == expected["columns"]
    for column, kind in expected["schema"]:
        assert canonical.same_type(kind, table.schema.field(column).type), column
    assert canonical.sha256(table.column_names, canonical.table_rows(table)) == expected["sha256"]


def test_a_second_start_on_the_same_warehouse_serves_the_same(start_server, tmp_path):
    warehouse = str(tmp_path / "warehouse")
    first = start_server(["--sample", "--warehouse", warehouse])
    first.stop()
    second = start_server(["--sample", "--warehouse", warehouse])
    with connect(second) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM iceberg.sample.orders")
        assert cursor.fetchall() == [(len(sample("orders")["rows"]),)]


def test_locations_are_served_as_catalog_files(start_server, tmp_path):
    import minitable

    minitable.standard_tables(tmp_path)
    server = start_server([str(tmp_path / "words"), str(tmp_path / "numbers")])
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM files.default.words")
        assert cursor.fetchall() == [(3,)]
        cursor.execute("SELECT count(*) FROM files.default.numbers")
        assert cursor.fetchall() == [(10_000,)]


@pytest.mark.parametrize(
    ("sql", "format", "expected"),
    [
        ("SELECT 1 AS one, 'a' AS s", "csv", "one,s\n1,a\n"),
        ("SELECT 1 AS one, 'a' AS s", "json", '{"one":1,"s":"a"}\n'),
    ],
)
def test_shell_formats(started, tmp_path, sql, format, expected):
    url = f"grpc://127.0.0.1:{started.port}"
    done = subprocess.run(
        [str(binary()), "sql", "--url", url, "-c", sql, "--format", format],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["serve", "--no-such-flag"], 2),
        (["serve", "--listen", "0.0.0.0:0"], 2),
        (["serve", "--listen", "0.0.0.0:0", "--allow-insecure"], 2),
        (["check-config", "/nope.toml"], 1),
        (["sql", "--url", "grpc://127.0.0.1:1", "-c", "SELECT 1"], 1),
        (["table", "inspect", "/nope"], 1),
    ],
)
def test_exit_codes(tmp_path, arguments, code):
    done = subprocess.run([str(binary()), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.strip()


def test_failed_sql_ends_with_1_and_says_why(started, tmp_path):
    done = subprocess.run(
        [str(binary()), "sql", "--url", f"grpc://127.0.0.1:{started.port}", "-c", "SELECT nope"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "nope" in done.stderr
