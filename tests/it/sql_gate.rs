//! What runs and what does not (SE-30).

use std::sync::Arc;

use arrow::array::Int64Array;
use sandur::error::ErrorKind;
use sandur::sql::Engine;

use crate::sql_support::{Memory, MemoryCatalog, batch, engine, query};

fn one_table() -> Engine {
    let memory = Arc::new(Memory::default());
    let catalog = MemoryCatalog::new("lake", &memory);
    catalog.commit("default", "t", batch(vec![("a", Arc::new(Int64Array::from(vec![1, 2])))]));
    engine(vec![catalog], &memory)
}

/// Statements that are refused with `Unsupported`.
const REFUSED: &[&str] = &[
    // writing
    "INSERT INTO t VALUES (1)",
    "INSERT OVERWRITE t SELECT 1",
    "REPLACE INTO t VALUES (1)",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "DELETE FROM t WHERE false",
    "MERGE INTO t USING t AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
    "WITH x AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM x",
    "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x",
    "SELECT * INTO u FROM t",
    "SELECT a INTO TEMPORARY u FROM t",
    "SELECT * FROM (SELECT a INTO u FROM t) AS s",
    // definitions
    "CREATE TABLE u (a INT)",
    "CREATE TABLE u AS SELECT * FROM t",
    "CREATE EXTERNAL TABLE u STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE UNBOUNDED EXTERNAL TABLE u (a INT) STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE VIEW v AS SELECT 1",
    "CREATE SCHEMA s",
    "CREATE DATABASE d",
    "CREATE FUNCTION f(DOUBLE) RETURNS DOUBLE RETURN $1",
    "CREATE INDEX i ON t (a)",
    "DROP TABLE t",
    "DROP SCHEMA default CASCADE",
    "ALTER TABLE t ADD COLUMN b INT",
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE t UNSET TBLPROPERTIES ('a')",
    "ALTER VIEW t AS SELECT 1",
    "EXPLAIN ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
    // files
    "COPY t TO '/tmp/x.csv'",
    "COPY (SELECT * FROM t) TO '/tmp/x.parquet' STORED AS PARQUET",
    "COPY t FROM '/etc/passwd'",
    "LOAD DATA INPATH '/etc/passwd' INTO TABLE t",
    "LOAD 'evil.so'",
    "INSTALL httpfs",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "UNLOAD ('SELECT 1') TO 's3://x'",
    // settings and sessions
    "SET datafusion.runtime.memory_limit = '500G'",
    "SET x TO 1",
    "SET TIME ZONE 'UTC'",
    "RESET datafusion.execution.batch_size",
    "SHOW ALL",
    "SHOW datafusion.execution.batch_size",
    "SHOW VARIABLES",
    "SHOW STATUS",
    "SHOW FUNCTIONS",
    "SHOW CREATE VIEW t",
    "USE lake.default",
    "PRAGMA table_info(t)",
    // programs
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "CALL f()",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "START TRANSACTION",
    "GRANT SELECT ON t TO x",
    "KILL 1",
    "VACUUM t",
    "ANALYZE TABLE t COMPUTE STATISTICS",
    "DECLARE c CURSOR FOR SELECT 1",
    // inside of EXPLAIN
    "EXPLAIN INSERT INTO t VALUES (1)",
    "EXPLAIN ANALYZE DELETE FROM t",
    "EXPLAIN ANALYZE CREATE TABLE u AS SELECT 1",
    "EXPLAIN VERBOSE COPY t TO '/tmp/x.csv'",
    // clauses that the planner would skip
    "SELECT * FROM t TABLESAMPLE BERNOULLI (1)",
    "SELECT * FROM t FOR UPDATE",
    "SELECT * FROM t FOR SHARE",
    "SELECT TOP 1 a FROM t",
    "SELECT a FROM t WHERE 'x' SIMILAR TO 'a'",
    "SELECT a FROM t SORT BY a",
    "SELECT a FROM t DISTRIBUTE BY a",
    "SELECT a FROM t PIVOT (sum(a) FOR a IN (1, 2))",
    "SELECT * FROM generate_series(1, 2) WITH ORDINALITY",
    // versions
    "SELECT * FROM t AT (OFFSET => 1)",
    "SELECT * FROM t FOR VERSION AS OF ?",
    "SELECT * FROM t CHANGES (INFORMATION => DEFAULT) AT (VERSION => 1)",
    "SELECT * FROM information_schema.tables VERSION AS OF 1",
    "SELECT * FROM t BEFORE (STATEMENT => 'x')",
    "SELECT * FROM t@v1",
    "SELECT * FROM t @v1",
    "SELECT * FROM t @ 1",
    "SELECT * FROM \"t@1\"",
    "SELECT * FROM t$snapshots",
    "SELECT * FROM \"t$files\"",
    "SELECT * FROM t.snapshots",
    "SELECT * FROM lake.default.t.all_entries",
];

/// Statements that are wrong or name what is not there.
const WRONG: &[(&str, ErrorKind)] = &[
    ("", ErrorKind::InvalidInput),
    ("SELEC 1", ErrorKind::InvalidInput),
    ("SELECT 1; DROP TABLE t", ErrorKind::InvalidInput),
    ("SELECT * FROM t; SELECT 1", ErrorKind::InvalidInput),
    ("SELECT nope FROM t", ErrorKind::InvalidInput),
    ("SELECT a FROM t GROUP BY", ErrorKind::InvalidInput),
    ("SELECT nope(a) FROM t", ErrorKind::InvalidInput),
    ("SELECT @@version", ErrorKind::InvalidInput),
    ("SELECT :x", ErrorKind::InvalidInput),
    ("SELECT * FROM '/etc/passwd'", ErrorKind::NotFound),
    ("SELECT * FROM \"/etc/passwd\"", ErrorKind::NotFound),
    ("SELECT * FROM `file:///etc/passwd`", ErrorKind::NotFound),
    ("SELECT * FROM \"s3://bucket/x.parquet\"", ErrorKind::NotFound),
    ("SELECT * FROM read_csv('/etc/passwd')", ErrorKind::InvalidInput),
    ("SELECT * FROM read_parquet('/etc/passwd')", ErrorKind::InvalidInput),
    ("SELECT * FROM parquet_metadata('/etc/passwd')", ErrorKind::InvalidInput),
    ("SELECT input_file_name()", ErrorKind::InvalidInput),
    ("SELECT pg_read_file('/etc/passwd')", ErrorKind::InvalidInput),
    ("SELECT getenv('PATH')", ErrorKind::InvalidInput),
    ("SELECT * FROM information_schema.df_settings", ErrorKind::NotFound),
    ("SELECT * FROM information_schema.routines", ErrorKind::NotFound),
    ("SELECT * FROM lake.information_schema.df_settings", ErrorKind::NotFound),
    ("DESCRIBE nope", ErrorKind::NotFound),
    ("SHOW COLUMNS FROM nope", ErrorKind::NotFound),
    ("SHOW TABLES FROM nope", ErrorKind::NotFound),
    ("SHOW SCHEMAS FROM nope", ErrorKind::NotFound),
    ("SELECT * FROM a.b.c.d.e", ErrorKind::NotFound),
    ("EXPLAIN EXPLAIN SELECT 1", ErrorKind::InvalidInput),
    ("EXPLAIN t", ErrorKind::InvalidInput),
    ("SELECT * FROM t FOR VERSION AS OF 7", ErrorKind::NotFound),
    ("SELECT * FROM t FOR VERSION AS OF 'main'", ErrorKind::NotFound),
    ("SELECT * FROM t FOR TIMESTAMP AS OF '2026-01-01'", ErrorKind::NotFound),
    ("SELECT * FROM t.branch_x", ErrorKind::NotFound),
    ("SELECT * FROM default.t.tag_x", ErrorKind::NotFound),
    ("SELECT * FROM lake.default.t.branch_x", ErrorKind::NotFound),
    ("SELECT * FROM t FOR VERSION AS OF a", ErrorKind::InvalidInput),
    ("SELECT * FROM t TIMESTAMP AS OF a", ErrorKind::InvalidInput),
    ("SELECT * FROM t FOR SYSTEM_TIME AS OF random()", ErrorKind::InvalidInput),
    ("SELECT * FROM t AS x VERSION AS OF 1", ErrorKind::InvalidInput),
    ("WITH x AS (SELECT 1) SELECT * FROM x VERSION AS OF 1", ErrorKind::InvalidInput),
    ("SHOW COLUMNS FROM t VERSION AS OF 1", ErrorKind::InvalidInput),
];

#[tokio::test]
async fn statements_that_do_not_read_are_refused() {
    let engine = one_table();
    let mut wrong = Vec::new();
    for sql in REFUSED {
        match query(&engine, sql).await {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            Err(e) => wrong.push(format!("{sql}: {e:?}")),
            Ok(_) => wrong.push(format!("{sql}: ran")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn wrong_statements_get_an_error_of_their_kind() {
    let engine = one_table();
    let mut wrong = Vec::new();
    for (sql, kind) in WRONG {
        match query(&engine, sql).await {
            Err(e) if e.kind() == *kind => {}
            Err(e) => wrong.push(format!("{sql}: {e:?}")),
            Ok(_) => wrong.push(format!("{sql}: ran")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn statements_that_read_run() {
    let engine = one_table();
    for sql in [
        "SELECT * FROM t",
        "-- a comment\n/* and /* a nested */ one */ SELECT a FROM t ; ",
        "(SELECT a FROM t)",
        "WITH x AS (SELECT a FROM t) SELECT * FROM x",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "VALUES (1, 'x'), (2, 'y')",
        "TABLE t",
        "TABLE t ORDER BY a LIMIT 1",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN VERBOSE SELECT * FROM t",
        "EXPLAIN ANALYZE SELECT * FROM t",
        "EXPLAIN (ANALYZE, VERBOSE false) SELECT * FROM t",
        "EXPLAIN FORMAT TREE SELECT * FROM t",
        "SHOW CATALOGS",
        "SHOW DATABASES",
        "SHOW SCHEMAS",
        "SHOW SCHEMAS FROM lake",
        "SHOW SCHEMAS IN LAKE LIKE 'd%'",
        "SHOW TABLES",
        "SHOW TABLES IN default",
        "SHOW TABLES FROM lake.default LIKE 't'",
        "SHOW COLUMNS FROM t",
        "SHOW COLUMNS IN lake.default.t",
        "DESCRIBE t",
        "DESC lake.default.t",
        "DESCRIBE information_schema.tables",
        "SELECT t.a FROM t FOR VERSION AS OF 1",
        "SELECT x.a FROM t FOR SYSTEM_VERSION AS OF 1 AS x, lake.default.t VERSION AS OF 1 y, default.T AT (VERSION => 1) z",
        "SELECT (SELECT max(a) FROM t FOR VERSION AS OF 1)",
        "EXPLAIN SELECT * FROM t VERSION AS OF 1",
        "DESCRIBE t VERSION AS OF 1",
        "SELECT version AS of, a FROM (SELECT a, 1 AS version FROM t) x",
        "SELECT {fn upper('x')}, {d '2026-01-01'}, {ts '2026-01-01 00:00:00'}",
        "SELECT count(*) FROM generate_series(1, 3)",
        "SELECT a FROM t UNION SELECT 3 EXCEPT SELECT 1 ORDER BY 1 OFFSET 0",
        "SELECT sum(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING) FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
        "SELECT x.a FROM t AS x CROSS JOIN LATERAL (SELECT y.a FROM t AS y WHERE y.a = x.a) AS z",
        "SELECT current_date, now() IS NULL, version(), current_catalog(), current_schema()",
    ] {
        if let Err(e) = query(&engine, sql).await {
            panic!("{sql}: {e:?}");
        }
    }
}
