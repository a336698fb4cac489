//! The gRPC service: which call goes where.
//!
//! Invariants: `FlightService` is implemented here and not through arrow-flight's
//! `FlightSqlService`, which answers some calls itself and wrongly (flight-sql.md 1.11, A1 to A3);
//! what is not built is UNIMPLEMENTED, with a sentence that names it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, Any, Command, DoPutPreparedStatementResult, ProstMessageExt,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, PollInfo,
    PutResult, SchemaResult, Ticket,
};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::bind::{self, Kept};
use super::call::Call;
use super::encode::{KEEP_ALIVE, Rows, messages};
use super::session::{Reply, Sessions, handshake};
use super::statements::{Statements, flight_info, refuse_transaction};
use super::ticket::Signer;
use super::wire::{schema_message, wire_schema};
use super::{changes, metadata, reference, sql_info, xdbc};
use crate::error::{Error, Result};
use crate::sql::{Defaults, Engine};

/// Actions that work, with what they do.
const ACTIONS: &[(&str, &str)] = &[
    (
        CREATE_PREPARED,
        "Prepares a query. Body: Any of ActionCreatePreparedStatementRequest.",
    ),
    (
        CLOSE_PREPARED,
        "Closes a prepared statement. Body: Any of ActionClosePreparedStatementRequest.",
    ),
    (
        SET_OPTIONS,
        "Sets the session's options `catalog` and `schema`. Body: SetSessionOptionsRequest.",
    ),
    (GET_OPTIONS, "Returns the session's options. Body: GetSessionOptionsRequest."),
    (CLOSE_SESSION, "Ends the session. Body: CloseSessionRequest."),
    (
        COMMIT_STATUS,
        "Tells what became of a commit. Body: Any of sandur.v1.CommitStatus; answers Any of CommitStatusResult.",
    ),
];
const CREATE_PREPARED: &str = "CreatePreparedStatement";
const CLOSE_PREPARED: &str = "ClosePreparedStatement";
const SET_OPTIONS: &str = "SetSessionOptions";
const GET_OPTIONS: &str = "GetSessionOptions";
const CLOSE_SESSION: &str = "CloseSession";
const COMMIT_STATUS: &str = "CommitStatus";

/// Path elements of a descriptor: catalog, schema, table.
const MAX_PATH: usize = 3;

/// The Flight SQL service over an engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FlightSqlServer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    statements: Statements,
    sessions: Sessions,
}

impl FlightSqlServer {
    /// A service with a ticket key of its own.
    pub fn new(engine: Arc<Engine>) -> Result<Self> {
        Ok(Self {
            inner: Arc::new(Inner {
                statements: Statements {
                    engine,
                    signer: Signer::random()?,
                    kept: Kept::new(),
                },
                sessions: Sessions::new(),
            }),
        })
    }
}

impl Inner {
    async fn flight_info(&self, request: &MetadataMap, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let defaults = self.sessions.defaults(request).await;
        if let Some(sql) = path_query(&descriptor)? {
            let planned = self.statements.plan(&sql, None, &defaults).await?;
            return self.statements.info(&planned, None, descriptor);
        }
        let command = decode_command(&descriptor.cmd)?;
        match &command {
            Command::CommandStatementQuery(query) => {
                let planned = self.statements.plan(&query.query, query.transaction_id.as_ref(), &defaults).await?;
                if planned.is_change {
                    return self.statements.changed_info(&planned, None, descriptor).await;
                }
                self.statements.info(&planned, None, descriptor)
            }
            Command::CommandPreparedStatementQuery(query) => self.statements.prepared_info(query, descriptor).await,
            other => {
                let schema = schema_message(&*metadata_schema(other)?)?;
                // The ticket of a metadata command is the command.
                let ticket = descriptor.cmd.clone();
                Ok(flight_info(schema, descriptor, ticket))
            }
        }
    }

    async fn schema(&self, request: &MetadataMap, descriptor: &FlightDescriptor) -> Result<SchemaResult> {
        let defaults = self.sessions.defaults(request).await;
        let schema = if let Some(sql) = path_query(descriptor)? {
            wire_schema(&self.statements.plan(&sql, None, &defaults).await?.schema, None)
        } else {
            match decode_command(&descriptor.cmd)? {
                Command::CommandStatementQuery(query) => {
                    let planned = self.statements.plan(&query.query, query.transaction_id.as_ref(), &defaults).await?;
                    wire_schema(&planned.schema, None)
                }
                Command::CommandPreparedStatementQuery(query) => self.statements.prepared_schema(&query).await?,
                other => metadata_schema(&other)?,
            }
        };
        Ok(SchemaResult {
            schema: schema_message(&schema)?,
        })
    }

    async fn rows(&self, ticket: &[u8]) -> Result<Rows> {
        let catalogs = self.statements.engine.catalogs();
        match decode_command(ticket)? {
            Command::TicketStatementQuery(ticket) => self.statements.redeem(&ticket.statement_handle).await,
            Command::CommandPreparedStatementQuery(query) => self.statements.run_prepared(&query).await,
            Command::CommandGetCatalogs(_) => metadata::catalogs(catalogs),
            Command::CommandGetDbSchemas(command) => metadata::db_schemas(catalogs, &command).await,
            Command::CommandGetTables(command) => metadata::tables(Arc::clone(catalogs), &command).await,
            Command::CommandGetTableTypes(_) => metadata::table_types(),
            Command::CommandGetPrimaryKeys(command) => metadata::primary_keys(catalogs, &command).await,
            Command::CommandGetExportedKeys(_) | Command::CommandGetImportedKeys(_) | Command::CommandGetCrossReference(_) => {
                Ok(metadata::foreign_keys())
            }
            Command::CommandGetSqlInfo(command) => {
                let writes = self.statements.engine.commits().is_ok() && catalogs.iter().any(|catalog| catalog.writable().is_some());
                Ok(Rows::one(sql_info::sql_info(&command.info, writes)?))
            }
            Command::CommandGetXdbcTypeInfo(command) => Ok(Rows::one(xdbc::xdbc_type_info(command.data_type)?)),
            other => Err(refused(&other)),
        }
    }

    async fn put(&self, request: &MetadataMap, mut data: Streaming<FlightData>) -> Result<Option<PutResult>> {
        let first = data
            .message()
            .await
            .map_err(|e| from_client(&e))?
            .ok_or_else(|| Error::invalid("the upload is empty"))?;
        let descriptor = first
            .flight_descriptor
            .clone()
            .ok_or_else(|| Error::invalid("the first message of an upload has no descriptor"))?;
        if let Ok(any) = Any::decode(&descriptor.cmd[..])
            && changes::takes_rows(&any)
        {
            Call::command("AppendRows");
            let defaults = self.sessions.defaults(request).await;
            let rows = move || bind::batches(stream::iter([Ok(first)]).chain(data.map_err(|e| from_client(&e))));
            let app_metadata = self.statements.put_rows(&any, rows, defaults).await?;
            return Ok(Some(PutResult { app_metadata }));
        }
        match decode_command(&descriptor.cmd)? {
            Command::CommandPreparedStatementQuery(command) => {
                let data = stream::iter([Ok(first)]).chain(data.map_err(|e| from_client(&e)));
                let values = bind::read(data).await?;
                let result: DoPutPreparedStatementResult = self.statements.bind(&command, values).await?;
                let app_metadata = result.encode_to_vec().into();
                Ok(bind::reads_answer(request).then_some(PutResult { app_metadata }))
            }
            Command::CommandStatementUpdate(command) => {
                refuse_transaction(command.transaction_id.as_ref())?;
                let defaults = self.sessions.defaults(request).await;
                let app_metadata = self.statements.update(&command.query, &defaults).await?;
                Ok(Some(PutResult { app_metadata }))
            }
            Command::CommandPreparedStatementUpdate(command) => {
                let data = stream::iter([Ok(first)]).chain(data.map_err(|e| from_client(&e)));
                let values = bind::read(data).await?;
                let app_metadata = self.statements.prepared_update(&command, values).await?;
                Ok(Some(PutResult { app_metadata }))
            }
            other => Err(refused(&other)),
        }
    }

    /// Results and headers of an action.
    async fn action(&self, request: &MetadataMap, action: &Action) -> Result<(Vec<Bytes>, MetadataMap)> {
        let catalogs = self.statements.engine.catalogs();
        let reply = |reply: Reply| (vec![reply.body.into()], reply.headers);
        match action.r#type.as_str() {
            CREATE_PREPARED => {
                let request_body: ActionCreatePreparedStatementRequest = unpack(&action.body)?;
                let defaults: Defaults = self.sessions.defaults(request).await;
                let result = self.statements.prepare(&request_body, &defaults).await?;
                Ok((vec![result.into()], MetadataMap::new()))
            }
            CLOSE_PREPARED => {
                let request_body: ActionClosePreparedStatementRequest = unpack(&action.body)?;
                self.statements.close(&request_body).await;
                Ok((Vec::new(), MetadataMap::new()))
            }
            COMMIT_STATUS => {
                let defaults: Defaults = self.sessions.defaults(request).await;
                let result = self.statements.commit_status(&action.body, defaults).await?;
                Ok((vec![result.into()], MetadataMap::new()))
            }
            SET_OPTIONS => self.sessions.set(request, &action.body, catalogs).await.map(reply),
            GET_OPTIONS => self.sessions.get(request).await.map(reply),
            CLOSE_SESSION => Ok(reply(self.sessions.close(request).await)),
            "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
                Err(Error::unsupported(format!("{}: this server has no transactions", action.r#type)))
            }
            "CancelQuery" | "CancelFlightInfo" => Err(Error::unsupported(format!(
                "{} is not built; closing the result stream stops the query",
                action.r#type
            ))),
            "RenewFlightEndpoint" => Err(Error::unsupported("RenewFlightEndpoint is not built; tickets do not expire")),
            other => Err(Error::unsupported(format!(
                "there is no action {:?}; ListActions names those there are",
                clip(other)
            ))),
        }
    }
}

/// The command in a descriptor or ticket.
fn decode_command(bytes: &[u8]) -> Result<Command> {
    let any = Any::decode(bytes).map_err(|_| Error::invalid("the command is not a google.protobuf.Any"))?;
    let name = clip(any.type_url.rsplit(['/', '.']).next().unwrap_or_default()).to_owned();
    Call::command(&name);
    if any.type_url.is_empty() {
        return Err(Error::invalid("the command has no type"));
    }
    Command::try_from(any).map_err(|e| Error::invalid(format!("{name} does not decode: {e}")))
}

/// The message in an action's body.
fn unpack<M: ProstMessageExt>(body: &[u8]) -> Result<M> {
    let any = Any::decode(body).map_err(|_| Error::invalid("the action's body is not a google.protobuf.Any"))?;
    match any.unpack::<M>() {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(Error::invalid(format!(
            "the action's body is a {:?}, not a {:?}",
            clip(&any.type_url),
            M::type_url()
        ))),
        Err(e) => Err(Error::invalid(format!("the action's body does not decode: {e}"))),
    }
}

/// Result schema of a metadata command.
fn metadata_schema(command: &Command) -> Result<SchemaRef> {
    let schema = match command {
        Command::CommandGetCatalogs(_) => &reference::CATALOGS,
        Command::CommandGetDbSchemas(_) => &reference::DB_SCHEMAS,
        Command::CommandGetTables(tables) if tables.include_schema => &reference::TABLES_WITH_SCHEMA,
        Command::CommandGetTables(_) => &reference::TABLES,
        Command::CommandGetTableTypes(_) => &reference::TABLE_TYPES,
        Command::CommandGetPrimaryKeys(_) => &reference::PRIMARY_KEYS,
        Command::CommandGetExportedKeys(_) | Command::CommandGetImportedKeys(_) | Command::CommandGetCrossReference(_) => {
            &reference::FOREIGN_KEYS
        }
        Command::CommandGetSqlInfo(_) => &reference::SQL_INFO,
        Command::CommandGetXdbcTypeInfo(_) => &reference::XDBC_TYPE_INFO,
        other => return Err(refused(other)),
    };
    Ok(Arc::clone(schema))
}

/// Why a command does not run here.
fn refused(command: &Command) -> Error {
    let url = command.type_url();
    let name = clip(url.rsplit(['/', '.']).next().unwrap_or(url));
    match command {
        Command::CommandStatementIngest(_) => Error::unsupported(format!("{name} is not built yet; use INSERT")),
        Command::CommandStatementSubstraitPlan(_) => Error::unsupported("CommandStatementSubstraitPlan: Substrait plans are not supported"),
        Command::Unknown(_) => Error::unsupported(format!("there is no command {:?}", clip(url))),
        _ => Error::unsupported(format!("{name} cannot be used in this call")),
    }
}

/// The query of a PATH descriptor: all rows of the table it names.
fn path_query(descriptor: &FlightDescriptor) -> Result<Option<String>> {
    if descriptor.r#type != DescriptorType::Path as i32 {
        return Ok(None);
    }
    Call::command("Path");
    if descriptor.path.is_empty() || descriptor.path.len() > MAX_PATH {
        return Err(Error::invalid(
            "a path names a table: catalog, schema and table, or the last of them",
        ));
    }
    let quoted: Vec<String> = descriptor
        .path
        .iter()
        .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
        .collect();
    Ok(Some(format!("SELECT * FROM {}", quoted.join("."))))
}

/// A client's text, short enough to be repeated.
fn clip(text: &str) -> &str {
    match text.char_indices().nth(100) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

/// A transport error while reading from the client.
fn from_client(status: &Status) -> Error {
    match status.code() {
        tonic::Code::OutOfRange | tonic::Code::ResourceExhausted => Error::resource_exhausted(status.message().to_owned()),
        tonic::Code::Cancelled | tonic::Code::Unknown | tonic::Code::Unavailable => Error::cancelled("the upload broke off"),
        _ => Error::invalid(format!("the upload cannot be read: {}", status.message())),
    }
}

fn unimplemented_call(rpc: &'static str, text: &'static str) -> Status {
    Call::start(rpc).end_error(&Error::unsupported(text))
}

#[tonic::async_trait]
impl FlightService for FlightSqlServer {
    type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;
    type ListFlightsStream = BoxStream<'static, Result<FlightInfo, Status>>;
    type DoGetStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoPutStream = BoxStream<'static, Result<PutResult, Status>>;
    type DoExchangeStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoActionStream = BoxStream<'static, Result<arrow_flight::Result, Status>>;
    type ListActionsStream = BoxStream<'static, Result<ActionType, Status>>;

    async fn handshake(&self, request: Request<Streaming<HandshakeRequest>>) -> Result<Response<Self::HandshakeStream>, Status> {
        let work = async {
            let (token, headers) = handshake(request.metadata());
            let answer = HandshakeResponse {
                protocol_version: 0,
                payload: token.into(),
            };
            let mut response = Response::new(stream::iter([Ok(answer)]).boxed());
            *response.metadata_mut() = headers;
            Ok(response)
        };
        Call::start("Handshake").answer(work).await
    }

    async fn list_flights(&self, _request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(unimplemented_call(
            "ListFlights",
            "ListFlights is not built; CommandGetTables lists the tables",
        ))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let (metadata, _, descriptor) = request.into_parts();
        let work = Box::pin(async { Ok(Response::new(self.inner.flight_info(&metadata, descriptor).await?)) });
        Call::start("GetFlightInfo").answer(work).await
    }

    async fn poll_flight_info(&self, _request: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(unimplemented_call(
            "PollFlightInfo",
            "PollFlightInfo is not built; use GetFlightInfo, which plans and does not wait for rows",
        ))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let (metadata, _, descriptor) = request.into_parts();
        let work = Box::pin(async { Ok(Response::new(self.inner.schema(&metadata, &descriptor).await?)) });
        Call::start("GetSchema").answer(work).await
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let ticket = request.into_inner().ticket;
        let work = Box::pin(async { self.inner.rows(&ticket).await });
        Call::start("DoGet")
            .open(work, |call, rows| messages(call, rows, KEEP_ALIVE).boxed())
            .await
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let (metadata, _, data) = request.into_parts();
        let work = Box::pin(async {
            let result = self.inner.put(&metadata, data).await?;
            Ok(Response::new(stream::iter(result.map(Ok)).boxed()))
        });
        Call::start("DoPut").answer(work).await
    }

    async fn do_exchange(&self, _request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(unimplemented_call("DoExchange", "DoExchange is not part of Flight SQL"))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let (metadata, _, action) = request.into_parts();
        let work = Box::pin(async {
            Call::command(clip(&action.r#type));
            let (results, headers) = self.inner.action(&metadata, &action).await?;
            let results = results.into_iter().map(|body| Ok(arrow_flight::Result { body }));
            let mut response = Response::new(stream::iter(results.collect::<Vec<_>>()).boxed());
            *response.metadata_mut() = headers;
            Ok(response)
        });
        Call::start("DoAction").answer(work).await
    }

    async fn list_actions(&self, _request: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        let work = async {
            let actions: Vec<_> = ACTIONS
                .iter()
                .map(|(name, description)| {
                    Ok(ActionType {
                        r#type: (*name).to_owned(),
                        description: (*description).to_owned(),
                    })
                })
                .collect();
            Ok(Response::new(stream::iter(actions).boxed()))
        };
        Call::start("ListActions").answer(work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted() {
        let path = |parts: &[&str]| FlightDescriptor {
            r#type: DescriptorType::Path as i32,
            path: parts.iter().map(|p| (*p).to_owned()).collect(),
            cmd: Bytes::new(),
        };
        assert_eq!(
            path_query(&path(&["c", "a.b", "t\"; drop"])).unwrap().unwrap(),
            "SELECT * FROM \"c\".\"a.b\".\"t\"\"; drop\""
        );
        assert!(path_query(&path(&[])).is_err());
        assert!(path_query(&FlightDescriptor::new_cmd(Vec::new())).unwrap().is_none());
    }

    #[test]
    fn commands_that_are_none_say_so() {
        for bytes in [&b"\xff\xff"[..], b""] {
            assert_eq!(decode_command(bytes).unwrap_err().kind(), crate::error::ErrorKind::InvalidInput);
        }
        let any = Any {
            type_url: "type.googleapis.com/acme.Rocket".to_owned(),
            value: Bytes::new(),
        };
        let command = decode_command(&any.encode_to_vec()).unwrap();
        let error = metadata_schema(&command).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Unsupported);
        assert!(error.message().contains("acme.Rocket"), "{error}");
    }

    #[test]
    fn actions_that_work_are_listed_once() {
        let mut names: Vec<&str> = ACTIONS.iter().map(|a| a.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ACTIONS.len());
    }
}
