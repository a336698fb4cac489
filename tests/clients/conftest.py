"""One server for the whole run, connections to it, and the report of what was not shown.

The built binary is `$SANDUR_BIN`, else the debug build below the Cargo target folder. Nothing is skipped
silently: a test that cannot run says why through `not_run`, the reasons are counted and named at the end,
and with `CI` set each is a failure.
"""

import collections
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import cases

READY_SECONDS = 60


def binary():
    """The built server."""
    named = os.environ.get("SANDUR_BIN")
    if named:
        return pathlib.Path(named)
    target = os.environ.get("CARGO_TARGET_DIR") or pathlib.Path.home() / ".cache/sandur/target"
    return pathlib.Path(target) / "debug" / "sandur"


def free_port():
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running `sandur serve`; `stdout` is what it printed before `ready`."""

    def __init__(self, arguments, folder, port, env=None):
        self.port = port
        self.url = f"grpc+tcp://127.0.0.1:{port}"
        self.log = pathlib.Path(folder) / "server.log"
        self.stdout = []
        self._ready = threading.Event()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(binary()), "serve", *arguments],
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        threading.Thread(target=self._read, daemon=True).start()
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the server did not become ready:\n{''.join(self.stdout)}{self.tail()}")

    def _read(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                self._ready.set()
            elif not self._ready.is_set():
                self.stdout.append(line)

    def tail(self, lines=30):
        """The end of the server's log."""
        text = self.log.read_text("utf-8", "replace").splitlines()
        return "\n".join(text[-lines:])

    def stop(self):
        """Asks the server to end and waits; a server that does not end is killed and that is an error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=45)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError("the server did not end within 45 s of SIGTERM") from None


@pytest.fixture(scope="session")
def start_server():
    """Starts servers with given arguments and configuration text; all are ended with the session."""
    running = []

    def start(arguments=(), config=None, env=None, port=None):
        folder = tempfile.mkdtemp(prefix="sandur-test-")
        port = port or free_port()
        arguments = [*arguments, "--listen", f"127.0.0.1:{port}"]
        if config is not None:
            file = pathlib.Path(folder) / "sandur.toml"
            file.write_text(config, "utf-8")
            arguments += ["--config", str(file)]
        server = Server(arguments, folder, port, env)
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def server(start_server, tmp_path_factory):
    """The server that most tests talk to: the cases (where present) and tables of the tests' own."""
    import delta_cases
    import minitable

    own = tmp_path_factory.mktemp("own")
    config = cases.catalog_toml(cases.load_all()) if cases.load_all() else ""
    config += "\n" + delta_cases.catalog_toml(tmp_path_factory.mktemp("delta"))
    config += "\n" + minitable.catalog_toml("own", minitable.standard_tables(own))
    return start_server(config=config)


@pytest.fixture(scope="session")
def connection(server):
    """An ADBC connection for tests that change nothing about it."""
    with connect(server) as opened:
        yield opened


def connect(server, **options):
    """A new ADBC connection; autocommit, since the server has no transactions."""
    import adbc_driver_flightsql.dbapi as flightsql

    return flightsql.connect(server.url, db_kwargs=options or None, autocommit=True)


# What did not run, was refused, or differs: filled by tests, printed at the end.
NOT_RUN = pytest.StashKey()
REFUSED = pytest.StashKey()
DIFFERENT = pytest.StashKey()
EXACT = pytest.StashKey()
UNREAD = pytest.StashKey()
ANSWERED = pytest.StashKey()  # kinds of questions, one for each that was answered as expected
UNANSWERED = pytest.StashKey()
ABSENT = pytest.StashKey()
BROKEN = pytest.StashKey()
WRITTEN = pytest.StashKey()
MERGED = pytest.StashKey()
KEYS = (NOT_RUN, REFUSED, DIFFERENT, EXACT, UNREAD, ANSWERED, UNANSWERED, ABSENT, BROKEN, WRITTEN, MERGED)
SKIPPED = []


def is_worker(config):
    """Whether this process runs tests for another one, which prints the report (pytest-xdist)."""
    return hasattr(config, "workerinput")


def pytest_configure(config):
    for key in KEYS:
        config.stash[key] = []
    if cases.root() is None and not is_worker(config):
        config.stash[NOT_RUN].append(cases.missing_line())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """A worker has ended: what it recorded joins the report."""
    for key, lines in zip(KEYS, getattr(node, "workeroutput", {}).get("recorded", ()), strict=False):
        node.config.stash[key] += lines


@pytest.fixture
def record(request):
    """`record(KEY, text)` adds a line to the closing report."""

    def add(key, text):
        request.config.stash[key].append(text)

    return add


def pytest_terminal_summary(terminalreporter, config):
    def section(key, title):
        entries = config.stash[key]
        if entries:
            terminalreporter.write_line(f"{title}: {len(entries)}")
            for entry in entries:
                terminalreporter.write_line(f"  - {entry}")

    terminalreporter.section("what this run shows")
    terminalreporter.write_line(f"tables of other writers with exactly the expected rows: {len(config.stash[EXACT])}")
    for kind, count in sorted(collections.Counter(config.stash[ANSWERED]).items()):
        terminalreporter.write_line(f"{kind} as expected: {count}")
    section(REFUSED, "questions refused with a clear error (tables that break their own format)")
    section(DIFFERENT, "known differences (tests/known-differences.md)")
    section(UNREAD, "published queries that were not put to the server")
    section(UNANSWERED, "snapshots and versions without an answer to compare with")
    section(ABSENT, "old versions refused with the name of a data file that the collection lacks")
    section(BROKEN, "damaged files")
    section(WRITTEN, "what deletes wrote")
    section(MERGED, "deletes at the same time")
    section(NOT_RUN, "NOT RUN")


def pytest_runtest_logreport(report):
    if report.skipped:
        SKIPPED.append(report.nodeid)


def pytest_sessionfinish(session, exitstatus):
    if is_worker(session.config):
        session.config.workeroutput["recorded"] = [session.config.stash[key] for key in KEYS]
        return
    lines = session.config.stash[NOT_RUN]
    # A test without parameters is one whose files or drivers are missing, which has a line of its own already.
    lines += [f"skipped: {name}" for name in SKIPPED if not (lines and "NOTSET" in name)]
    if os.environ.get("SANDUR_NOT_RUN"):
        with open(os.environ["SANDUR_NOT_RUN"], "a", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
    if lines and os.environ.get("CI") and exitstatus == 0:
        session.exitstatus = 1
