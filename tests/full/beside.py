"""A server over an embedded warehouse, and Spark on the same catalog file (Spark's is Iceberg's JDBC catalog)."""

import pyarrow as pa

import canonical
from insert_checks import Writing


class Beside(Writing):
    """A server, and Spark on the same catalog file."""

    def __init__(self, server, warehouse, spark):
        super().__init__(server, warehouse)
        self._spark = spark
        self._catalog = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "jdbc",
            ".uri": f"jdbc:sqlite:{warehouse}/catalog.db",
            ".jdbc.schema-version": "V1",
            ".warehouse": f"file://{warehouse}/iceberg",
            ".cache-enabled": "false",
        }

    def spark(self, sql):
        """Runs a statement in a session of its own: connections of older versions of the catalog never see what
        others write after their first question."""
        session = self._spark.newSession()
        for key, value in self._catalog.items():
            session.conf.set(f"spark.sql.catalog.iceberg{key}", value)
        return session.sql(sql)

    def spark_table(self, sql):
        """The Arrow table that a query gives in Spark."""
        frame = self.spark(sql)
        return pa.Table.from_batches(frame._collect_as_arrow())

    def spark_lines(self, name):
        """Canonical rows of a table as Spark has them."""
        return canonical.sorted_lines(canonical.table_rows(self.spark_table(f"SELECT * FROM iceberg.s.{name}")))
