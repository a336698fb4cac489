//! A server in this process over tables in memory, and the protocol crate's own client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::{FlightInfo, Ticket};
use futures::TryStreamExt;
use sandur::error::Result;
use sandur::server::serve;
use sandur::sql::Engine;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::sql_support::{Memory, MemoryCatalog, batch, engine};

/// A running server.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    pub lake: Arc<MemoryCatalog>,
    pub stop: CancellationToken,
    pub task: JoinHandle<Result<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves the tables of [`lake`].
pub async fn start() -> Running {
    let memory = Arc::new(Memory::default());
    let lake = lake(&memory);
    let other = MemoryCatalog::new("attic", &memory);
    other.commit("old", "orders", orders(1));
    let engine = engine(vec![Arc::clone(&lake), other], &memory);
    serve_engine(engine, lake).await
}

/// Serves an engine.
pub async fn serve_engine(engine: Engine, lake: Arc<MemoryCatalog>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(serve(listener, Arc::new(engine), stop.clone().cancelled_owned()));
    Running { address, lake, stop, task }
}

/// Tables `default.orders` (100 rows), `default.big` (100 000 rows), `sales.q_1` and `sales.broken`,
/// which does not load.
pub fn lake(memory: &Arc<Memory>) -> Arc<MemoryCatalog> {
    let lake = MemoryCatalog::new("lake", memory);
    lake.commit("default", "orders", orders(100));
    let big: Int64Array = (0..100_000).collect();
    lake.commit("default", "big", batch(vec![("n", Arc::new(big) as ArrayRef)]));
    lake.commit("sales", "q_1", orders(3));
    lake.commit("sales", "broken", orders(1));
    lake
}

/// `id` 0.., `name`, `amount` decimal(12,2), `at` timestamptz.
pub fn orders(rows: i64) -> RecordBatch {
    let names: StringArray = (0..rows).map(|i| (i % 7 != 0).then(|| format!("name {i}"))).collect();
    let amounts: Decimal128Array = (0..rows).map(|i| Some(i128::from(i) * 125)).collect();
    let at: TimestampMicrosecondArray = (0..rows).map(|i| Some(1_700_000_000_000_000 + i)).collect();
    batch(vec![
        ("id", Arc::new((0..rows).collect::<Int64Array>()) as ArrayRef),
        ("name", Arc::new(names)),
        ("amount", Arc::new(amounts.with_precision_and_scale(12, 2).unwrap())),
        ("at", Arc::new(at.with_timezone("UTC"))),
    ])
}

impl Running {
    pub async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    /// The client for Flight SQL.
    pub async fn sql(&self) -> FlightSqlServiceClient<Channel> {
        FlightSqlServiceClient::new(self.channel().await)
    }

    /// The client for plain Flight.
    pub async fn flight(&self) -> FlightServiceClient<Channel> {
        FlightServiceClient::new(self.channel().await)
    }

    /// Runs a query to the end.
    pub async fn query(&self, sql: &str) -> (SchemaRef, RecordBatch) {
        let mut client = self.sql().await;
        let info = client.execute(sql.to_owned(), None).await.unwrap();
        self.read(&info).await
    }

    /// The announced schema and the rows of a FlightInfo's one endpoint.
    pub async fn read(&self, info: &FlightInfo) -> (SchemaRef, RecordBatch) {
        assert_eq!(info.endpoint.len(), 1);
        assert!(info.endpoint[0].location.is_empty());
        let announced = Arc::new(announced(info));
        let (schema, rows) = self.redeem(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        assert_eq!(schema, announced, "stream and FlightInfo");
        (schema, rows)
    }

    /// The schema and the rows of a ticket.
    pub async fn redeem(&self, ticket: Ticket) -> std::result::Result<(SchemaRef, RecordBatch), Status> {
        let stream = self.flight().await.do_get(ticket).await?.into_inner();
        let mut stream = FlightRecordBatchStream::new_from_flight_data(stream.map_err(|e| FlightError::Tonic(Box::new(e))));
        let mut batches = Vec::new();
        loop {
            match stream.try_next().await {
                Ok(Some(batch)) => batches.push(batch),
                Ok(None) => break,
                Err(FlightError::Tonic(status)) => return Err(*status),
                Err(other) => panic!("{other}"),
            }
        }
        let schema = Arc::clone(stream.schema().expect("the first message is the schema"));
        let rows = arrow::compute::concat_batches(&schema, &batches).unwrap();
        Ok((schema, rows))
    }
}

/// FlightInfo's schema.
pub fn announced(info: &FlightInfo) -> Schema {
    try_schema_from_ipc_buffer(&info.schema).unwrap()
}

/// Fails a test that would hang.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("done within a minute")
}
