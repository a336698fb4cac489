"""What the refusal of a question about a Delta table must be: meant, and naming its cause."""

import re

import adbc_driver_manager

import delta_cases

DATA_FILE = re.compile(r"""[^\s/\\"'`,:;()\[\]]+\.(?:parquet|bin)\b""")


def check_clean(error):
    """A refusal is no internal fault and shows nothing of the server's inside."""
    text = str(error)
    assert not isinstance(error, adbc_driver_manager.InternalError), text
    assert not re.search(r"panic|backtrace|<unknown>|\d: delta_kernel", text, re.IGNORECASE), text


def cause(table, error):
    """A refusal's text without the table's own names, which may be the word that is looked for."""
    text = str(error)
    for own in (str(table.location), str(table.folder), table.name, table.case):
        text = text.replace(own, "")
    return text


def check_names(table, error, pattern):
    """A clean refusal that names its cause."""
    check_clean(error)
    assert re.search(pattern, cause(table, error), re.IGNORECASE), f"the refusal does not name {pattern}: {error}"


def check_version_gone(table, error):
    """The refusal of a version whose log is gone names the oldest one that is left."""
    check_names(table, error, rf"(?<!\d){table.oldest_version}(?!\d)")


def names_missing_file(table, error):
    """Whether a text names a file that the table's log has and its folder lacks."""
    text = cause(table, error)
    added = {spelling.rpartition("/")[2] for path in _added(table) for spelling in (path, delta_cases.listed_path(path))}
    named = set(DATA_FILE.findall(text)) | {name for name in added if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    here = {file.name for file in table.location.rglob("*")}
    return any(name not in here for name in named)


def _added(table):
    """Paths of all data files that the case and the log's commits name."""
    yield from table.part.get("active_file_paths", [])
    for actions in table.commits.values():
        for action in actions:
            if "add" in action:
                yield action["add"]["path"]


def check_missing_file(table, error):
    """The refusal of a version whose files are gone, or lie where the table may not read, names one of them."""
    check_clean(error)
    assert names_missing_file(table, error), f"the refusal names no file that is missing: {error}"
