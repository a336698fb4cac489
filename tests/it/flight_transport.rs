//! Handshake, sessions, limits and the life of connections.

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{Any, CommandStatementIngest, CommandStatementQuery, ProstMessageExt};
use arrow_flight::{Action, Criteria, Empty, FlightData, FlightDescriptor, Ticket};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use prost::Message;
use sandur::config::Config;
use sandur::proto::flight::session_option_value::OptionValue;
use sandur::proto::flight::{
    CloseSessionResult, GetSessionOptionsResult, SessionOptionValue, SetSessionOptionsRequest, SetSessionOptionsResult,
};
use sandur::sql::Engine;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::flight_support::{lake, serve_engine, soon, start};
use crate::sql_support::Memory;

fn statement(sql: &str) -> FlightDescriptor {
    let command = CommandStatementQuery {
        query: sql.to_owned(),
        transaction_id: None,
    };
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

fn action(name: &str, body: impl Into<Bytes>) -> Action {
    Action {
        r#type: name.to_owned(),
        body: body.into(),
    }
}

async fn one_result(client: &mut FlightServiceClient<Channel>, request: Request<Action>) -> Bytes {
    let mut results = client.do_action(request).await.unwrap().into_inner();
    results.message().await.unwrap().unwrap().body
}

#[tokio::test]
async fn a_handshake_gives_a_token_in_any_form() {
    let server = start().await;
    let mut client = server.sql().await;
    client.handshake("someone", "anything").await.unwrap();
    assert!(client.token().is_some());
    client.execute("SELECT 1".to_owned(), None).await.unwrap();

    // Basic without padding, as Go clients send it, and nothing at all.
    for header in [Some("Basic dTp3cm9uZw"), None] {
        let mut request = Request::new(stream::iter([Default::default()]));
        if let Some(header) = header {
            request.metadata_mut().insert("authorization", header.parse().unwrap());
        }
        let response = server.flight().await.handshake(request).await.unwrap();
        let token = response.metadata().get("authorization").unwrap().to_str().unwrap();
        assert!(token.starts_with("Bearer "), "{token}");
        assert!(response.metadata().contains_key("x-sandur-query-id"));
    }
}

#[tokio::test]
async fn session_options_decide_what_names_mean() {
    let server = start().await;
    let mut client = server.flight().await;
    // `orders` of catalog `attic` has one row, that of `lake` a hundred.
    let request = SetSessionOptionsRequest {
        session_options: HashMap::from([("catalog", "attic"), ("schema", "old"), ("colour", "red")].map(|(name, value)| {
            let option_value = Some(OptionValue::String(value.to_owned()));
            (name.to_owned(), SessionOptionValue { option_value })
        })),
    };
    let set = client
        .do_action(action("SetSessionOptions", request.encode_to_vec()))
        .await
        .unwrap();
    let headers = set.metadata().clone();
    let result = set.into_inner().message().await.unwrap().unwrap();
    let errors = SetSessionOptionsResult::decode(result.body).unwrap().errors;
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["colour"]);

    let cookie = headers.get("set-cookie").unwrap().clone();
    let token = headers.get("authorization").unwrap().clone();
    for (name, value) in [("cookie", cookie), ("authorization", token.clone())] {
        let mut request = Request::new(statement("SELECT count(*) FROM orders"));
        request.metadata_mut().insert(name, value);
        let info = client.get_flight_info(request).await.unwrap().into_inner();
        // The ticket carries the defaults; no session is needed to read it.
        let (_, rows) = server.read(&info).await;
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), 1, "{name}");
    }

    let with_token = |action: Action| {
        let mut request = Request::new(action);
        request.metadata_mut().insert("authorization", token.clone());
        request
    };
    let options = one_result(&mut client, with_token(action("GetSessionOptions", Bytes::new()))).await;
    assert_eq!(GetSessionOptionsResult::decode(options).unwrap().session_options.len(), 2);
    for _ in 0..2 {
        let closed = one_result(&mut client, with_token(action("CloseSession", Bytes::new()))).await;
        assert_eq!(CloseSessionResult::decode(closed).unwrap().status, 1);
    }
    let gone = client
        .do_action(with_token(action("GetSessionOptions", Bytes::new())))
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn what_is_not_built_says_so() {
    let server = start().await;
    let mut client = server.flight().await;
    let named = |status: tonic::Status, name: &str| {
        assert_eq!(status.code(), Code::Unimplemented, "{status}");
        assert!(status.message().contains(name), "{status}");
    };
    named(client.list_flights(Criteria::default()).await.unwrap_err(), "ListFlights");
    named(client.poll_flight_info(statement("SELECT 1")).await.unwrap_err(), "PollFlightInfo");
    named(client.do_exchange(stream::empty()).await.unwrap_err(), "DoExchange");
    for name in [
        "BeginTransaction",
        "CancelQuery",
        "CancelFlightInfo",
        "RenewFlightEndpoint",
        "MakeCoffee",
    ] {
        named(client.do_action(action(name, Bytes::new())).await.unwrap_err(), name);
    }
    let ingest = FlightData {
        flight_descriptor: Some(FlightDescriptor::new_cmd(
            CommandStatementIngest::default().as_any().encode_to_vec(),
        )),
        ..Default::default()
    };
    named(client.do_put(stream::iter([ingest])).await.unwrap_err(), "CommandStatementIngest");
    let unknown = Any {
        type_url: "type.googleapis.com/acme.Rocket".to_owned(),
        value: Bytes::new(),
    };
    let descriptor = FlightDescriptor::new_cmd(unknown.encode_to_vec());
    named(client.get_flight_info(descriptor.clone()).await.unwrap_err(), "acme.Rocket");
    named(client.get_schema(descriptor).await.unwrap_err(), "acme.Rocket");

    let listed: Vec<_> = client
        .list_actions(Empty {})
        .await
        .unwrap()
        .into_inner()
        .try_collect()
        .await
        .unwrap();
    let names: Vec<&str> = listed.iter().map(|a| a.r#type.as_str()).collect();
    let expected = [
        "CreatePreparedStatement",
        "ClosePreparedStatement",
        "SetSessionOptions",
        "GetSessionOptions",
        "CloseSession",
        "CommitStatus",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn garbage_is_refused_and_the_server_lives() {
    let server = start().await;
    let mut client = server.flight().await;
    let mut random = 1u64;
    for length in 0..60 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as u8
            })
            .collect();
        let bytes = Bytes::from(bytes);
        assert!(client.do_get(Ticket { ticket: bytes.clone() }).await.is_err());
        assert!(client.get_flight_info(FlightDescriptor::new_cmd(bytes.clone())).await.is_err());
        assert!(client.do_action(action("CreatePreparedStatement", bytes.clone())).await.is_err());
        let data = FlightData {
            flight_descriptor: Some(FlightDescriptor::new_cmd(bytes.clone())),
            data_header: bytes,
            ..Default::default()
        };
        assert!(client.do_put(stream::iter([data])).await.is_err());
    }
    assert!(client.do_put(stream::empty()).await.is_err());
    client.get_flight_info(statement("SELECT 1")).await.unwrap();
}

#[tokio::test]
async fn large_headers_and_large_statements_are_taken() {
    let server = start().await;
    let mut client = server.flight().await;
    let mut request = Request::new(statement("SELECT 1"));
    for i in 0..4 {
        let name = tonic::metadata::MetadataKey::from_bytes(format!("unknown-property-{i}").as_bytes()).unwrap();
        let value: MetadataValue<_> = "v".repeat(10_000).parse().unwrap();
        request.metadata_mut().insert(name, value);
    }
    client.get_flight_info(request).await.unwrap();
    let sql = format!("SELECT length('{}')", "x".repeat(500_000));
    client.get_flight_info(statement(&sql)).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_is_dropped_frees_its_place() {
    let mut config = Config::default();
    config.limits.queries = 1;
    let memory = Arc::new(Memory::default());
    let lake = lake(&memory);
    let catalogs = sandur::catalog::Catalogs::new(vec![Arc::clone(&lake) as _]);
    let engine = Engine::new(&config, Arc::new(catalogs), memory).unwrap();
    let server = serve_engine(engine, lake).await;

    let mut client = server.flight().await;
    let endless = "SELECT a.n + b.n FROM big a CROSS JOIN big b";
    let info = client.get_flight_info(statement(endless)).await.unwrap().into_inner();
    let mut rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap().into_inner();
    for _ in 0..3 {
        assert!(soon(rows.message()).await.unwrap().is_some());
    }
    drop(rows);
    let (_, one) = soon(server.query("SELECT 1")).await;
    assert_eq!(one.num_rows(), 1);
}

#[tokio::test]
async fn a_tls_client_is_turned_away() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The start of a ClientHello.
    stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00]).await.unwrap();
    let mut answer = Vec::new();
    // Closed or reset, but soon.
    let _ = soon(stream.read_to_end(&mut answer)).await;
    server.query("SELECT 1").await;
}

#[tokio::test]
async fn at_shutdown_a_running_stream_finishes() {
    let mut server = start().await;
    let mut client = server.flight().await;
    let info = client
        .get_flight_info(statement("SELECT a.n, repeat('x', 100) FROM big a"))
        .await
        .unwrap()
        .into_inner();
    let rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap().into_inner();
    server.stop.cancel();
    let messages: Vec<FlightData> = soon(rows.try_collect()).await.unwrap();
    // More than ten megabytes: they were not all on their way when the server stopped.
    assert!(messages.len() > 10, "{}", messages.len());
    drop(client);
    soon(&mut server.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}
