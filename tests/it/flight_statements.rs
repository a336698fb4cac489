//! Statements and prepared statements over a real connection.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Int64Type, Schema, TimeUnit};
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, Any, CommandPreparedStatementQuery, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use prost::Message;
use sandur::proto::flight::ActionCreatePreparedStatementResult;
use sandur::proto::rpc;
use tonic::{Code, Status};

use crate::flight_support::{Running, announced, orders, start};
use crate::sql_support::batch;

/// Queries whose logical and physical schemas like to differ.
const CORPUS: &[&str] = &[
    "SELECT 1",
    "SELECT 1 AS a, 'x' AS b, NULL AS c, true AS d, 1.5 AS e",
    "SELECT * FROM orders",
    "SELECT * FROM orders WHERE false",
    "SELECT count(*), sum(id), min(name), avg(amount) FROM orders",
    "SELECT name, count(*) AS n FROM orders GROUP BY name ORDER BY n DESC, name LIMIT 5",
    "SELECT a.id, b.name FROM orders a LEFT JOIN sales.q_1 b ON a.id = b.id ORDER BY a.id",
    "SELECT a.id, b.id FROM sales.q_1 a FULL JOIN orders b ON a.id = b.id",
    "SELECT id FROM sales.q_1 UNION ALL SELECT NULL",
    "SELECT id FROM orders UNION SELECT id + 1 FROM sales.q_1",
    "SELECT CAST(id AS varchar) AS a, CAST(id AS double), CAST(name AS varchar), CAST(amount AS decimal(20,4)) FROM orders",
    "SELECT arrow_cast(name, 'Dictionary(Int32, Utf8)') AS d FROM orders",
    "SELECT arrow_cast(name, 'LargeUtf8') AS l, arrow_cast(name, 'Utf8View') AS v FROM orders",
    "SELECT make_array(id, id + 1) AS l, named_struct('a', id, 'b', name) AS s FROM orders",
    "SELECT make_array(named_struct('a', arrow_cast(name, 'Utf8View'))) AS deep FROM orders",
    "SELECT arrow_cast(make_array(id), 'LargeList(Int64)') AS large FROM orders",
    "SELECT map(make_array('k'), make_array(id)) AS m FROM orders",
    "SELECT now() AS n, current_date AS d, date_trunc('day', at) AS t, TIMESTAMP '2026-01-31 12:00:00' AS x FROM orders",
    "SELECT INTERVAL '1' DAY AS i, at - at AS gap FROM orders",
    "SELECT CASE WHEN id > 5 THEN name END AS c, coalesce(name, '') AS d FROM orders",
    "SELECT id, row_number() OVER (ORDER BY id) AS r, sum(amount) OVER (PARTITION BY id % 3) AS s FROM orders",
    "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(n, t)",
    "SELECT id AS \"same\", id AS \"same too\" FROM orders",
    "WITH x AS (SELECT id FROM orders WHERE id IN (SELECT id FROM sales.q_1)) SELECT count(*) FROM x",
    "SELECT DISTINCT name IS NULL FROM orders",
    "SHOW TABLES",
    "DESCRIBE orders",
    "SELECT table_name FROM information_schema.tables",
    "EXPLAIN SELECT id FROM orders",
];

async fn prepare(server: &Running, sql: &str) -> Result<ActionCreatePreparedStatementResult, Status> {
    let request = ActionCreatePreparedStatementRequest {
        query: sql.to_owned(),
        transaction_id: None,
    };
    let action = Action {
        r#type: "CreatePreparedStatement".to_owned(),
        body: request.as_any().encode_to_vec().into(),
    };
    let mut results = server.flight().await.do_action(action).await?.into_inner();
    let result = results.message().await?.expect("one result");
    let any = Any::decode(result.body).unwrap();
    assert_eq!(any.type_url, ActionCreatePreparedStatementResult::TYPE_URL);
    Ok(ActionCreatePreparedStatementResult::decode(any.value).unwrap())
}

fn prepared_descriptor(handle: &Bytes) -> FlightDescriptor {
    let command = CommandPreparedStatementQuery {
        prepared_statement_handle: handle.clone(),
    };
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

/// Binds values and gives the handle that the server answers with.
async fn bind(server: &Running, handle: &Bytes, values: RecordBatch) -> Result<Bytes, Status> {
    let data: Vec<FlightData> = FlightDataEncoderBuilder::new()
        .with_flight_descriptor(Some(prepared_descriptor(handle)))
        .with_schema(values.schema())
        .build(stream::iter([Ok(values)]))
        .try_collect()
        .await
        .unwrap();
    let mut results = server.flight().await.do_put(stream::iter(data)).await?.into_inner();
    let result = results.message().await?.expect("one result");
    let result = DoPutPreparedStatementResult::decode(result.app_metadata).unwrap();
    Ok(result.prepared_statement_handle.expect("a handle"))
}

async fn run_prepared(server: &Running, handle: &Bytes) -> Result<RecordBatch, Status> {
    let info = server
        .flight()
        .await
        .get_flight_info(prepared_descriptor(handle))
        .await?
        .into_inner();
    Ok(server.read(&info).await.1)
}

fn ints(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn int_batch(values: Vec<i64>) -> RecordBatch {
    batch(vec![("1", Arc::new(Int64Array::from(values)) as ArrayRef)])
}

#[tokio::test]
async fn four_places_give_one_schema() {
    let server = start().await;
    let mut flight = server.flight().await;
    for sql in CORPUS {
        let command = CommandStatementQuery {
            query: (*sql).to_owned(),
            transaction_id: None,
        };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let info = flight.get_flight_info(descriptor.clone()).await;
        let info = info.unwrap_or_else(|e| panic!("{sql}: {e}")).into_inner();
        let schema = flight.get_schema(descriptor).await.unwrap().into_inner();
        assert_eq!(schema.schema, info.schema, "{sql}: GetSchema");
        let prepared = prepare(&server, sql).await.unwrap();
        assert_eq!(prepared.dataset_schema, info.schema, "{sql}: prepared");
        let described = announced(&info)
            .fields()
            .iter()
            .all(|f| f.metadata().contains_key("ARROW:FLIGHT:SQL:TYPE_NAME"));
        assert!(described, "{sql}");
        // Compares the stream's schema with the announced one.
        let (schema, _) = server.read(&info).await;
        for field in schema.fields() {
            let odd = matches!(
                field.data_type(),
                DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(_, _)
            );
            assert!(!odd, "{sql}: {field}");
        }
    }
}

#[tokio::test]
async fn rows_arrive() {
    let server = start().await;
    let (_, rows) = server.query("SELECT id FROM orders WHERE id >= 97 ORDER BY id").await;
    assert_eq!(ints(&rows), [97, 98, 99]);
    let (_, rows) = server.query("SELECT n FROM big ORDER BY n").await;
    assert_eq!(rows.num_rows(), 100_000);
    let (schema, rows) = server
        .query("SELECT arrow_cast(make_array(id), 'LargeList(Int64)') FROM sales.q_1")
        .await;
    assert!(matches!(schema.field(0).data_type(), DataType::LargeList(_)));
    assert_eq!(rows.num_rows(), 3);
}

#[tokio::test]
async fn a_path_is_the_table() {
    let server = start().await;
    let descriptor = FlightDescriptor::new_path(["lake", "sales", "q_1"].map(str::to_owned).to_vec());
    let info = server.flight().await.get_flight_info(descriptor).await.unwrap().into_inner();
    assert_eq!(server.read(&info).await.1.num_rows(), 3);
}

#[tokio::test]
async fn a_ticket_gives_the_same_rows_twice_and_after_a_commit() {
    let server = start().await;
    let info = server
        .sql()
        .await
        .execute("SELECT count(*) FROM sales.q_1".to_owned(), None)
        .await
        .unwrap();
    assert_eq!(ints(&server.read(&info).await.1), [3]);
    server.lake.commit("sales", "q_1", orders(50));
    assert_eq!(ints(&server.read(&info).await.1), [3]);
    assert_eq!(ints(&server.query("SELECT count(*) FROM sales.q_1").await.1), [50]);
}

#[tokio::test]
async fn a_changed_or_foreign_ticket_is_refused() {
    let server = start().await;
    let info = server.sql().await.execute("SELECT 1".to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let inner = TicketStatementQuery::decode(Any::decode(ticket.ticket).unwrap().value).unwrap();
    let mut bytes = inner.statement_handle.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let changed = TicketStatementQuery {
        statement_handle: bytes.into(),
    };
    let elsewhere = start().await;
    for (server, handle) in [(&server, changed), (&elsewhere, inner)] {
        let ticket = Ticket {
            ticket: handle.as_any().encode_to_vec().into(),
        };
        assert_eq!(server.redeem(ticket).await.unwrap_err().code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_prepared_statement_sees_new_rows_and_refuses_new_columns() {
    let server = start().await;
    let handle = prepare(&server, "SELECT * FROM sales.q_1").await.unwrap().prepared_statement_handle;
    assert_eq!(run_prepared(&server, &handle).await.unwrap().num_rows(), 3);
    server.lake.commit("sales", "q_1", orders(8));
    assert_eq!(run_prepared(&server, &handle).await.unwrap().num_rows(), 8);
    server.lake.commit("sales", "q_1", int_batch(vec![1]));
    let error = run_prepared(&server, &handle).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("prepare it again"), "{error}");
}

#[tokio::test]
async fn parameters_are_announced_and_bound() {
    let server = start().await;
    let prepared = prepare(&server, "SELECT id FROM orders WHERE id = ? OR name = ? OR at = ? ORDER BY id")
        .await
        .unwrap();
    assert_eq!(prepared.is_update, Some(false));
    let parameters: Schema = try_schema_from_ipc_buffer(&prepared.parameter_schema).unwrap();
    let types: Vec<&DataType> = parameters.fields().iter().map(|f| f.data_type()).collect();
    let millis = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    assert_eq!(types, [&DataType::Int64, &DataType::Utf8, &millis]);

    let at = TimestampMicrosecondArray::from(vec![1_700_000_000_000_009]).with_timezone("UTC");
    let values = batch(vec![
        ("0", Arc::new(Int64Array::from(vec![3])) as ArrayRef),
        ("1", Arc::new(StringArray::from(vec!["name 5"]))),
        ("2", Arc::new(at)),
    ]);
    let bound = bind(&server, &prepared.prepared_statement_handle, values).await.unwrap();
    assert_eq!(ints(&run_prepared(&server, &bound).await.unwrap()), [3, 5, 9]);
    // Drivers that ignore the new handle go on with the old one.
    assert_eq!(
        ints(&run_prepared(&server, &prepared.prepared_statement_handle).await.unwrap()),
        [3, 5, 9]
    );
    // The command itself is a ticket, too.
    let ticket = Ticket {
        ticket: prepared_descriptor(&bound).cmd,
    };
    assert_eq!(ints(&server.redeem(ticket).await.unwrap().1), [3, 5, 9]);
}

#[tokio::test]
async fn rows_of_parameters_give_results_in_order() {
    let server = start().await;
    let handle = prepare(&server, "SELECT id + 1 FROM orders WHERE id = $1")
        .await
        .unwrap()
        .prepared_statement_handle;
    let bound = bind(&server, &handle, int_batch(vec![7, 3, 1000, 5])).await.unwrap();
    assert_eq!(ints(&run_prepared(&server, &bound).await.unwrap()), [8, 4, 6]);
    // More values than a handle carries.
    let handle = prepare(&server, "SELECT id FROM orders WHERE id = $1 AND length($2) > 0")
        .await
        .unwrap();
    let values = batch(vec![
        ("1", Arc::new(Int64Array::from(vec![5, 4, 3])) as ArrayRef),
        ("2", Arc::new(StringArray::from(vec!["x".repeat(20_000); 3]))),
    ]);
    let bound = bind(&server, &handle.prepared_statement_handle, values).await.unwrap();
    assert!(bound.len() < 4096, "{}", bound.len());
    assert_eq!(ints(&run_prepared(&server, &bound).await.unwrap()), [5, 4, 3]);
}

#[tokio::test]
async fn wrong_bindings_are_errors_of_the_client() {
    let server = start().await;
    let handle = prepare(&server, "SELECT id FROM orders WHERE id = ?")
        .await
        .unwrap()
        .prepared_statement_handle;
    let unbound = run_prepared(&server, &handle).await.unwrap_err();
    assert_eq!(unbound.code(), Code::InvalidArgument);
    let two = batch(vec![
        ("1", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("2", Arc::new(Int64Array::from(vec![1]))),
    ]);
    assert_eq!(bind(&server, &handle, two).await.unwrap_err().code(), Code::InvalidArgument);
    // No rows: nothing is bound, and that is found when it runs.
    let empty = bind(&server, &handle, int_batch(vec![])).await.unwrap();
    assert_eq!(run_prepared(&server, &empty).await.unwrap_err().code(), Code::InvalidArgument);
    // No columns and no rows: what Java sends when there is nothing to bind.
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let plain = prepare(&server, "SELECT id FROM sales.q_1 ORDER BY id")
        .await
        .unwrap()
        .prepared_statement_handle;
    let bound = bind(&server, &plain, nothing).await.unwrap();
    assert_eq!(ints(&run_prepared(&server, &bound).await.unwrap()), [0, 1, 2]);

    let mut client = server.sql().await;
    let error = client
        .execute("SELECT id FROM orders WHERE id = ?".to_owned(), None)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("prepare it"), "{error}");
}

#[tokio::test]
async fn closing_twice_is_fine() {
    let server = start().await;
    let handle = prepare(&server, "SELECT 1").await.unwrap().prepared_statement_handle;
    for handle in [handle.clone(), handle, Bytes::from_static(b"never issued")] {
        let request = ActionClosePreparedStatementRequest {
            prepared_statement_handle: handle,
        };
        let action = Action {
            r#type: "ClosePreparedStatement".to_owned(),
            body: request.as_any().encode_to_vec().into(),
        };
        let mut results = server.flight().await.do_action(action).await.unwrap().into_inner();
        assert!(results.message().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn writes_are_refused_on_every_way() {
    let server = start().await;
    for sql in [
        "INSERT INTO orders VALUES (1)",
        "DELETE FROM orders",
        "CREATE TABLE t (a int)",
        "DROP TABLE orders",
    ] {
        let error = prepare(&server, sql).await.unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{sql}: {error}");
        let command = CommandStatementQuery {
            query: sql.to_owned(),
            transaction_id: None,
        };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let error = server.flight().await.get_flight_info(descriptor).await.unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{sql}: {error}");
        let update = CommandStatementUpdate {
            query: sql.to_owned(),
            transaction_id: None,
        };
        let data = FlightData {
            flight_descriptor: Some(FlightDescriptor::new_cmd(update.as_any().encode_to_vec())),
            ..Default::default()
        };
        let error = server.flight().await.do_put(stream::iter([data])).await.unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{sql}: {error}");
        let says = ["read-only", "not supported"].iter().any(|text| error.message().contains(text));
        assert!(says, "{sql}: {error}");
    }
    assert_eq!(ints(&server.query("SELECT count(*) FROM orders").await.1), [100]);
}

#[tokio::test]
async fn an_error_says_what_and_where() {
    let server = start().await;
    let command = CommandStatementQuery {
        query: "SELECT * FROM nowhere".to_owned(),
        transaction_id: None,
    };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let status = server.flight().await.get_flight_info(descriptor).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("nowhere"), "{status}");
    let query_id = status.metadata().get("x-sandur-query-id").unwrap().to_str().unwrap();
    let details = rpc::Status::decode(status.details()).unwrap();
    let info = rpc::ErrorInfo::decode(details.details[0].value.as_ref()).unwrap();
    assert_eq!(info.reason, "NOT_FOUND");
    assert_eq!(info.metadata["query_id"], query_id);

    // While rows are made: the stream ends in an error.
    let info = server
        .sql()
        .await
        .execute("SELECT 1 / (id - id) FROM orders".to_owned(), None)
        .await
        .unwrap();
    let status = server.redeem(info.endpoint[0].ticket.clone().unwrap()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().to_lowercase().contains("divide by zero"), "{status}");
}

#[tokio::test]
async fn a_transaction_id_is_refused() {
    let server = start().await;
    let error = server
        .sql()
        .await
        .execute("SELECT 1".to_owned(), Some(Bytes::from_static(b"tx")))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no transactions"), "{error}");
    let null = server.query("SELECT NULL AS n").await.1;
    assert_eq!((null.num_rows(), null.column(0).len()), (1, 1));
}
