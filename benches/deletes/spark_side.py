"""Spark in a process of its own: answers requests, a JSON line each, until its input ends.

    python spark_side.py WAREHOUSE

Runs with the Python of Spark's own environment; `$SANDUR_SPARK_JAR` is Iceberg's runtime for it. WAREHOUSE is that of a
Hadoop catalog `spark`. Request: {"sql": a statement}. Answer: {"rows": ..}, for a result of one row with its `values`,
or {"error": ...}.
"""

import json
import os
import sys

import pyspark
from pyspark.sql import SparkSession

from spelling import plain


def session(warehouse):
    catalog = "spark.sql.catalog.spark"
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("sandur-bench")
        .config("spark.jars", os.environ["SANDUR_SPARK_JAR"])
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count()))
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "hadoop")
        .config(f"{catalog}.warehouse", warehouse)
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main():
    spark = session(sys.argv[1])
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    print(json.dumps({"version": pyspark.__version__, "pid": java}), flush=True)
    for line in sys.stdin:
        try:
            rows = spark.sql(json.loads(line)["sql"]).collect()
            answer = {"rows": len(rows)}
            if len(rows) == 1:
                answer["values"] = [plain(value) for value in rows[0]]
        except Exception as error:  # whatever it is, the other side must hear of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
