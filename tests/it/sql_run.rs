//! Running: literals, admission, cancellation, errors in the middle of a stream.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Int64Array, StringArray};
use futures::StreamExt;
use sandur::catalog::{Catalog, Catalogs};
use sandur::config::Config;
use sandur::error::ErrorKind;
use sandur::sql::{Defaults, Engine, from_datafusion};

use crate::sql_support::{Memory, MemoryCatalog, batch, query, rows};

fn engine_with(queries: usize, memory_limit: Option<u64>) -> Engine {
    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("lake", &memory);
    lake.commit(
        "default",
        "t",
        batch(vec![
            ("a", Arc::new(Int64Array::from((0..1000).collect::<Vec<_>>()))),
            ("s", Arc::new(StringArray::from(vec!["it's"; 1000]))),
        ]),
    );
    let mut config = Config::default();
    config.limits.queries = queries;
    config.limits.memory = memory_limit;
    Engine::new(&config, Arc::new(Catalogs::new(vec![lake as Arc<dyn Catalog>])), memory).unwrap()
}

#[tokio::test]
async fn literals_are_read_as_written() {
    let engine = engine_with(4, None);
    assert_eq!(
        rows(
            &engine,
            "SELECT 'it''s' AS a, '\"', '`', '--x', '/*', '\\', E'a\\nb' = 'a\nb', $$it's$$, X'0aFF'"
        )
        .await[1],
        "it's|\"|`|--x|/*|\\|true|it's|0aff"
    );
    assert_eq!(
        rows(&engine, "SELECT count(*) FROM t WHERE s = 'it''s' AND s <> 'IT''S'").await[1],
        "1000"
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT TIMESTAMP '9999-12-31 23:59:59.999999', CAST('12' AS LONG), CAST('x' AS STRING)"
        )
        .await[1],
        "9999-12-31T23:59:59.999999|12|x"
    );
}

#[tokio::test]
async fn dropping_a_stream_stops_the_query_and_lets_the_next_one_in() {
    let engine = engine_with(1, None);
    let endless = "SELECT a.a FROM t a, t b, t c, t d, t e";
    let planned = engine.plan(endless, &Defaults::default()).await.unwrap();
    let mut stream = engine.run(&planned.statement, None).await.unwrap();
    assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
    // one query at a time: the second waits for as long as the first is held
    let next = engine.plan("SELECT 1", &Defaults::default()).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(100), engine.run(&next.statement, None)).await;
    assert!(waiting.is_err());
    drop(stream);
    let admitted = tokio::time::timeout(Duration::from_secs(60), engine.run(&next.statement, None)).await;
    assert_eq!(admitted.unwrap().unwrap().next().await.unwrap().unwrap().num_rows(), 1);
}

/// Each of these would compute for hours without a row to give.
#[tokio::test]
async fn a_join_that_gives_no_rows_ends_with_its_reader_and_leaves_room_for_others() {
    let wide = "generate_series(1, 3000000)";
    let endless = [
        format!("SELECT 1 FROM {wide} a(x) JOIN {wide} b(y) ON a.x + b.y < 0"),
        format!("SELECT 1 FROM {wide} a(x), {wide} b(y) WHERE abs(a.x * b.y) < 0"),
        format!("SELECT count(*) FROM {wide} a(x), {wide} b(y)"),
        format!("SELECT 1 FROM {wide} a(x) JOIN {wide} b(y) ON a.x % 2 = b.y % 2 AND a.x + b.y < 0"),
    ];
    for sql in &endless {
        let engine = engine_with(9, None);
        let planned = engine.plan(sql, &Defaults::default()).await.unwrap();
        let mut held = Vec::new();
        for _ in 0..8 {
            let mut stream = engine.run(&planned.statement, None).await.unwrap();
            let first = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
            assert!(first.is_err(), "{sql}");
            held.push(stream);
        }
        // Beside eight that compute, another statement is answered; after they are gone all are.
        let mut rounds = 0;
        while rounds < 10 {
            let next = engine.plan("SELECT 1", &Defaults::default()).await.unwrap();
            let answer = async { engine.run(&next.statement, None).await.unwrap().next().await };
            let answered = tokio::time::timeout(Duration::from_secs(60), answer).await;
            assert_eq!(answered.expect("an answer").unwrap().unwrap().num_rows(), 1, "{sql}");
            if rounds == 0 {
                held.clear();
            }
            rounds += 1;
        }
    }
}

#[tokio::test]
async fn an_error_of_the_data_ends_the_stream() {
    let engine = engine_with(4, None);
    let planned = engine.plan("SELECT 10 / (a - 999) FROM t", &Defaults::default()).await.unwrap();
    let mut failure = None;
    match engine.run(&planned.statement, None).await {
        Err(e) => failure = Some(e),
        Ok(mut stream) => {
            while let Some(batch) = stream.next().await {
                if let Err(e) = batch {
                    failure = Some(from_datafusion(e));
                }
            }
            assert!(stream.next().await.is_none());
        }
    }
    assert_eq!(failure.unwrap().kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn memory_is_bounded() {
    let engine = engine_with(4, Some(1 << 20));
    // one list of a million numbers: nothing of it can go to disk, as groups can
    let e = query(&engine, "SELECT cardinality(array_agg(a.a * 1000 + b.a)) FROM t a, t b").await;
    assert_eq!(e.unwrap_err().kind(), ErrorKind::ResourceExhausted);
}
