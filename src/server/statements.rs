//! Ad-hoc statements: planning, tickets, running.
//!
//! Invariants: the schema that was announced travels in the ticket, so the stream has it whatever
//! is planned later; a statement without its values is not announced; updates are refused, with
//! the engine's reason for each.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use arrow_flight::sql::{ProstMessageExt, TicketStatementQuery};
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, Ticket};
use bytes::Bytes;
use futures::StreamExt;
use prost::Message;

use super::bind::Kept;
use super::encode::Rows;
use super::ticket::{Signer, statement_from_proto, statement_to_proto};
use super::wire::{schema_message, wire_schema};
use crate::error::{Error, Result, ResultExt};
use crate::proto::ticket::handle::Kind;
use crate::proto::ticket::{Parameters, StatementTicket};
use crate::sql::{Defaults, Engine, Planned, Statement, from_datafusion};

/// What plans and runs statements.
#[derive(Debug)]
pub(super) struct Statements {
    pub engine: Arc<Engine>,
    pub signer: Signer,
    pub kept: Kept,
}

impl Statements {
    /// Plans a query that comes without values.
    pub(super) async fn plan(&self, sql: &str, transaction: Option<&Bytes>, defaults: &Defaults) -> Result<Planned> {
        refuse_transaction(transaction)?;
        let planned = self.engine.plan(sql, defaults).await?;
        if !planned.parameters.is_empty() {
            return Err(Error::invalid(format!(
                "the statement has {} parameters; prepare it and bind values to them",
                planned.parameters.len()
            )));
        }
        Ok(planned)
    }

    /// FlightInfo of a planned query: one endpoint, read over the same connection.
    pub(super) fn info(&self, planned: &Planned, parameters: Option<Parameters>, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let schema = schema_message(&wire_schema(&planned.schema, None))?;
        let ticket = statement_to_proto(&planned.statement, schema.clone(), parameters);
        let ticket = TicketStatementQuery {
            statement_handle: self.signer.seal(Kind::Statement(ticket)),
        };
        Ok(flight_info(schema, descriptor, ticket.as_any().encode_to_vec().into()))
    }

    /// The rows of a ticket.
    pub(super) async fn redeem(&self, handle: &[u8]) -> Result<Rows> {
        let ticket = self.signer.open_statement(handle)?;
        let schema = announced_schema(&ticket)?;
        let values = match &ticket.parameters {
            Some(parameters) => self.kept.unpack(parameters).await?,
            None => None,
        };
        self.run(&statement_from_proto(&ticket)?, values.as_ref(), schema).await
    }

    /// Starts a statement. `schema`: as announced.
    pub(super) async fn run(&self, statement: &Statement, values: Option<&RecordBatch>, schema: SchemaRef) -> Result<Rows> {
        let stream = self.engine.run(statement, values).await?;
        let batches = stream.map(|batch| batch.map_err(from_datafusion)).boxed();
        Ok(Rows { schema, batches })
    }
}

/// There are no transactions, so no call can be part of one.
pub(super) fn refuse_transaction(transaction: Option<&Bytes>) -> Result<()> {
    match transaction {
        Some(id) if !id.is_empty() => Err(Error::unsupported(
            "this server has no transactions; send the statement without one",
        )),
        _ => Ok(()),
    }
}

fn announced_schema(ticket: &StatementTicket) -> Result<SchemaRef> {
    let schema = try_schema_from_ipc_buffer(&ticket.schema).map_err(Error::from);
    Ok(Arc::new(schema.context("part", || "schema of a ticket")?))
}

/// A FlightInfo with one endpoint and nothing known about sizes.
pub(super) fn flight_info(schema: Bytes, descriptor: FlightDescriptor, ticket: Bytes) -> FlightInfo {
    FlightInfo {
        schema,
        flight_descriptor: Some(descriptor),
        endpoint: vec![FlightEndpoint {
            ticket: Some(Ticket { ticket }),
            // No location: over the connection that asked.
            location: Vec::new(),
            expiration_time: None,
            app_metadata: Bytes::new(),
        }],
        total_records: -1,
        total_bytes: -1,
        ordered: true,
        app_metadata: Bytes::new(),
    }
}
