"""One Spark session for the whole run, the tables it made, and servers over them: with pruning, without, and with each kind off.

Which Spark is used is decided by the virtual environment that runs the tests (`scripts/test.sh --full` has one for
each version); `$SANDUR_SPARK_JAR` is Iceberg's runtime for it, `$SANDUR_SQLITE_JAR` what opens a SQLite catalog. What did not run is said at the end and goes to
`$SANDUR_NOT_RUN`, as in tests/clients.
"""

import importlib.util
import os
import pathlib
import sys
import time

import pytest

# Timestamps that pyspark hands over are local: the zone must be known before anything reads it.
os.environ["TZ"] = "UTC"
time.tzset()

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "clients"
sys.path.insert(0, str(CLIENTS))

import minitable  # noqa: E402
import spark_tables  # noqa: E402


def _clients():
    """tests/clients/conftest.py under another name: it knows how a server is started."""
    spec = importlib.util.spec_from_file_location("clients_conftest", CLIENTS / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


clients = _clients()
start_server = clients.start_server
# Modules of tests/clients import these from `conftest`, which is this one here.
binary, connect = clients.binary, clients.connect

PRUNING = ["manifests", "partitions", "metrics", "row_groups", "pages", "bloom", "residuals"]
NOTES = []
SKIPPED = []


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    jars = [os.environ[name] for name in ("SANDUR_SPARK_JAR", "SANDUR_SQLITE_JAR")]
    session = spark_tables.session(tmp_path_factory.mktemp("warehouse"), *jars)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def tables(spark):
    """Every table's name with its newest metadata file; a table that Spark fails to make fails the run."""
    return {table.name: spark_tables.make(spark, table) for table in spark_tables.selected()}


@pytest.fixture(scope="session")
def servers(tables, start_server):
    """Connections by name: `pruning` as configured by default, `plain` with every kind off, `no KIND` with that one off."""
    catalog = minitable.catalog_toml("spark", [(f"db.{name}", file) for name, file in tables.items()])
    off = {"pruning": [], "plain": PRUNING} | {f"no {kind}": [kind] for kind in PRUNING}
    opened = {}
    for name, kinds in off.items():
        switches = "[pruning]\n" + "".join(f"{kind} = false\n" for kind in kinds)
        opened[name] = clients.connect(start_server(config=switches + "\n" + catalog))
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.fixture(params=[table.name for table in spark_tables.selected()])
def table(request, tables):
    """The name of a table; all have been made."""
    assert request.param in tables
    return request.param


@pytest.fixture(scope="session")
def note():
    """Adds a line to the closing report."""
    return NOTES.append


def pytest_runtest_logreport(report):
    if report.skipped:
        SKIPPED.append(report.nodeid)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section(f"what this run with Spark {spark_tables.VERSION} shows")
    for line in NOTES:
        terminalreporter.write_line(f"  - {line}")


def pytest_sessionfinish(session, exitstatus):
    if SKIPPED and os.environ.get("SANDUR_NOT_RUN"):
        with open(os.environ["SANDUR_NOT_RUN"], "a", encoding="utf-8") as out:
            out.writelines(f"Spark {spark_tables.VERSION}: skipped: {name}\n" for name in SKIPPED)
