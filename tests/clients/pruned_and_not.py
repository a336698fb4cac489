"""Two servers over one folder of Delta tables: one that leaves out what cannot match, one that reads everything.

Every question goes to both, and both must give the same rows.
"""

import adbc_driver_manager
import pytest

from conftest import connect
from delta_refusals import check_clean
from delta_tables import DeltaTable
from row_checks import read

SWITCHES = ("manifests", "partitions", "metrics", "row_groups", "pages", "bloom", "residuals")
READ_EVERYTHING = "[pruning]\n" + "".join(f"{switch} = false\n" for switch in SWITCHES)


def catalog_toml(folder):
    return f'[catalog.d]\ntype = "directory"\npath = {str(folder)!r}\n'


def in_order(rows):
    """Rows in an order that also nulls and NaN have."""
    return sorted((tuple(row.values()) for row in rows), key=repr)


class Both:
    """Tables below one folder as both servers have them, as `d.default.<name>`."""

    def __init__(self, start_server, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        toml = catalog_toml(folder)
        self.servers = [start_server(config=toml), start_server(config=READ_EVERYTHING + toml)]
        self.connections = [connect(server) for server in self.servers]

    def close(self):
        for connection in self.connections:
            connection.close()

    def create(self, name, columns, *partitions, **options):
        """A new table without rows, to be written by hand."""
        return DeltaTable(self.folder / name, columns, partitions, **options)

    def tables(self, sql):
        """The results of a query, `{t}` in front of tables' names: with pruning, and without."""
        return [read(connection, sql.replace("{t}", "d.default")) for connection in self.connections]

    def rows(self, sql):
        """The rows that both give, in order."""
        pruned, full = (in_order(table.to_pylist()) for table in self.tables(sql))
        assert repr(pruned) == repr(full), sql
        return pruned

    def column(self, sql):
        """The values of the first column."""
        return [row[0] for row in self.rows(sql)]

    def value(self, sql):
        """The only value."""
        [[value]] = self.rows(sql)
        return value

    def refusal(self, sql):
        """The text of the clean error that both give."""
        texts = []
        for connection in self.connections:
            with pytest.raises(adbc_driver_manager.Error) as caught:
                read(connection, sql.replace("{t}", "d.default"))
            check_clean(caught.value)
            texts.append(str(caught.value))
        return texts[0]
