//! Metadata commands over a real connection.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int32Type, UInt32Type};
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use arrow_flight::sql::{
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, ProstMessageExt, SqlInfo,
};
use arrow_flight::{FlightDescriptor, FlightInfo};
use prost::Message;

use crate::flight_support::{Running, start};

async fn info<M: ProstMessageExt>(server: &Running, command: M) -> FlightInfo {
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let mut flight = server.flight().await;
    let schema = flight.get_schema(descriptor.clone()).await.unwrap().into_inner();
    let info = flight.get_flight_info(descriptor).await.unwrap().into_inner();
    assert_eq!(schema.schema, info.schema);
    info
}

fn texts(array: &dyn Array) -> Vec<String> {
    array.as_string::<i32>().iter().map(|t| t.unwrap_or("NULL").to_owned()).collect()
}

#[tokio::test]
async fn every_command_answers_with_its_schema_and_an_any_ticket() {
    let server = start().await;
    let commands = [
        CommandGetCatalogs {}.as_any(),
        CommandGetDbSchemas::default().as_any(),
        CommandGetTables::default().as_any(),
        CommandGetTables {
            include_schema: true,
            ..Default::default()
        }
        .as_any(),
        CommandGetTableTypes {}.as_any(),
        CommandGetPrimaryKeys {
            table: "orders".to_owned(),
            ..Default::default()
        }
        .as_any(),
        CommandGetExportedKeys::default().as_any(),
        CommandGetImportedKeys::default().as_any(),
        CommandGetCrossReference::default().as_any(),
        CommandGetSqlInfo::default().as_any(),
        CommandGetXdbcTypeInfo::default().as_any(),
    ];
    for any in commands {
        let descriptor = FlightDescriptor::new_cmd(any.encode_to_vec());
        let info = server.flight().await.get_flight_info(descriptor).await.unwrap().into_inner();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let command = Command::try_from(Any::decode(ticket.ticket).unwrap()).unwrap();
        assert_eq!(command.type_url(), any.type_url);
        // Compares the stream's schema with the announced one.
        let (schema, _) = server.read(&info).await;
        assert!(schema.fields().iter().all(|f| f.metadata().is_empty()), "{}", any.type_url);
    }
}

#[tokio::test]
async fn catalogs_schemas_and_tables() {
    let server = start().await;
    let (_, catalogs) = server.read(&info(&server, CommandGetCatalogs {}).await).await;
    assert_eq!(texts(catalogs.column(0)), ["attic", "lake"]);
    let schemas = CommandGetDbSchemas {
        catalog: Some("lake".to_owned()),
        db_schema_filter_pattern: None,
    };
    let (_, schemas) = server.read(&info(&server, schemas).await).await;
    assert_eq!(texts(schemas.column(1)), ["default", "sales"]);
    let (_, tables) = server.read(&info(&server, CommandGetTables::default()).await).await;
    assert_eq!(texts(tables.column(2)), ["orders", "big", "orders", "broken", "q_1"]);
    let (_, types) = server.read(&info(&server, CommandGetTableTypes {}).await).await;
    assert_eq!(texts(types.column(0)), ["TABLE"]);
}

#[tokio::test]
async fn table_schemas_are_the_schemas_of_queries() {
    let server = start().await;
    let command = CommandGetTables {
        catalog: Some("lake".to_owned()),
        table_types: vec!["BASE TABLE".to_owned()],
        include_schema: true,
        ..Default::default()
    };
    let (_, tables) = server.read(&info(&server, command).await).await;
    // `broken` does not load and is left out.
    assert_eq!(texts(tables.column(2)), ["big", "orders", "q_1"]);
    let schema = try_schema_from_ipc_buffer(tables.column(4).as_binary::<i32>().value(1)).unwrap();
    let (queried, _) = server.query("SELECT * FROM lake.default.orders").await;
    for (listed, queried) in schema.fields().iter().zip(queried.fields()) {
        assert_eq!(
            (listed.name(), listed.data_type(), listed.is_nullable()),
            (queried.name(), queried.data_type(), queried.is_nullable())
        );
        assert_eq!(listed.metadata()["ARROW:FLIGHT:SQL:TABLE_NAME"], "orders");
    }
    assert_eq!(schema.field(2).data_type(), &DataType::Decimal128(12, 2));
    assert_eq!(schema.field(2).metadata()["ARROW:FLIGHT:SQL:TYPE_NAME"], "decimal(12,2)");
}

#[tokio::test]
async fn keys_are_rows_or_none_but_never_an_error() {
    let server = start().await;
    let command = CommandGetPrimaryKeys {
        catalog: Some("lake".to_owned()),
        db_schema: Some("default".to_owned()),
        table: "orders".to_owned(),
    };
    let (_, keys) = server.read(&info(&server, command).await).await;
    assert_eq!(texts(keys.column(3)), ["id"]);
    assert_eq!(keys.column(5).as_primitive::<Int32Type>().values(), &[1]);
    let (_, none) = server.read(&info(&server, CommandGetImportedKeys::default()).await).await;
    assert_eq!(none.num_rows(), 0);
    let (_, none) = server.read(&info(&server, CommandGetCrossReference::default()).await).await;
    assert_eq!(none.num_rows(), 0);
}

#[tokio::test]
async fn what_the_server_says_about_itself() {
    let server = start().await;
    let mut client = server.sql().await;
    let info = client
        .get_sql_info(vec![SqlInfo::FlightSqlServerReadOnly, SqlInfo::FlightSqlServerTransaction])
        .await
        .unwrap();
    let (_, rows) = server.read(&info).await;
    assert_eq!(rows.column(0).as_primitive::<UInt32Type>().values(), &[3, 8]);
    let values = rows.column(1).as_union();
    assert!(values.value(0).as_boolean().value(0));
    assert_eq!(values.value(1).as_primitive::<Int32Type>().value(0), 0);

    let all = client.get_sql_info(Vec::new()).await.unwrap();
    assert_eq!(server.read(&all).await.1.num_rows(), 10 + 2 + 77);
    let types = client
        .get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: Some(3) })
        .await
        .unwrap();
    assert_eq!(texts(server.read(&types).await.1.column(0)), ["decimal"]);
}
