//! Prepared statements.
//!
//! Invariants: a handle is all there is to a statement, closing one frees only the values bound to
//! it; each execution is planned anew, on the newest snapshots, and fails if its columns are no
//! longer those that were announced; binding always answers with a handle that has the values,
//! and the statement's own handle finds the last ones too, for drivers that keep using it.
//! flight-sql.md T4, T9 to T11.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, Any, CommandPreparedStatementQuery,
    DoPutPreparedStatementResult,
};
use arrow_flight::{FlightDescriptor, FlightInfo};
use bytes::Bytes;
use prost::Message;
use sha2::{Digest, Sha256};

use super::bind::{check, parameter_schema, random_id};
use super::encode::Rows;
use super::statements::{Statements, refuse_transaction};
use super::ticket::{defaults_from_proto, defaults_to_proto};
use super::wire::{schema_message, wire_schema};
use crate::error::{Error, Result};
use crate::proto::flight::ActionCreatePreparedStatementResult;
use crate::proto::ticket::PreparedStatement;
use crate::proto::ticket::handle::Kind;
use crate::sql::{Defaults, Planned};

impl Statements {
    /// Action CreatePreparedStatement; the result wrapped in `Any`.
    pub(super) async fn prepare(&self, request: &ActionCreatePreparedStatementRequest, defaults: &Defaults) -> Result<Vec<u8>> {
        refuse_transaction(request.transaction_id.as_ref())?;
        let planned = self.engine.plan(&request.query, defaults).await?;
        let schema = schema_message(&wire_schema(&planned.schema, None))?;
        let handle = self.signer.seal(Kind::Prepared(PreparedStatement {
            id: random_id(),
            sql: request.query.clone(),
            defaults: Some(defaults_to_proto(defaults)),
            schema_digest: digest(&schema),
            parameters: None,
        }));
        let result = ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle,
            // Without `is_update` drivers tell a change by its lack of columns.
            dataset_schema: if planned.is_change { Bytes::new() } else { schema },
            parameter_schema: schema_message(&parameter_schema(&planned.parameters))?,
            is_update: Some(planned.is_change),
        };
        let any = Any {
            type_url: ActionCreatePreparedStatementResult::TYPE_URL.to_owned(),
            value: result.encode_to_vec().into(),
        };
        Ok(any.encode_to_vec())
    }

    /// DoPut of CommandPreparedStatementQuery: binds values.
    pub(super) async fn bind(
        &self,
        command: &CommandPreparedStatementQuery,
        values: Option<RecordBatch>,
    ) -> Result<DoPutPreparedStatementResult> {
        let mut prepared = self.signer.open_prepared(&command.prepared_statement_handle)?;
        prepared.parameters = match values.filter(|values| values.num_rows() > 0) {
            None => {
                self.kept.forget(&prepared.id).await;
                None
            }
            Some(values) => {
                let planned = self.plan_prepared(&prepared).await?;
                check(&planned.parameters, &values)?;
                self.kept.keep(prepared.id.clone(), values.clone()).await;
                Some(self.kept.pack(&values).await?)
            }
        };
        let handle = self.signer.seal(Kind::Prepared(prepared));
        Ok(DoPutPreparedStatementResult {
            prepared_statement_handle: Some(handle),
        })
    }

    /// GetFlightInfo of a prepared statement.
    pub(super) async fn prepared_info(&self, command: &CommandPreparedStatementQuery, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let prepared = self.signer.open_prepared(&command.prepared_statement_handle)?;
        let planned = self.plan_prepared(&prepared).await?;
        if planned.is_change {
            let values = self.values(&prepared, &planned).await?;
            return self.changed_info(&planned, values.as_ref(), descriptor).await;
        }
        let parameters = match (self.values(&prepared, &planned).await?, prepared.parameters) {
            (None, _) => None,
            (Some(_), Some(packed)) => Some(packed),
            (Some(values), None) => Some(self.kept.pack(&values).await?),
        };
        self.info(&planned, parameters, descriptor)
    }

    /// GetSchema of a prepared statement; runs nothing and needs no values.
    pub(super) async fn prepared_schema(&self, command: &CommandPreparedStatementQuery) -> Result<SchemaRef> {
        let prepared = self.signer.open_prepared(&command.prepared_statement_handle)?;
        let planned = self.plan_prepared(&prepared).await?;
        Ok(wire_schema(&planned.schema, None))
    }

    /// DoGet with a prepared statement's command as ticket.
    pub(super) async fn run_prepared(&self, command: &CommandPreparedStatementQuery) -> Result<Rows> {
        let prepared = self.signer.open_prepared(&command.prepared_statement_handle)?;
        let planned = self.plan_prepared(&prepared).await?;
        if planned.is_change {
            return Err(Error::invalid("a statement that changes something has no rows to be read"));
        }
        let values = self.values(&prepared, &planned).await?;
        let schema = wire_schema(&planned.schema, None);
        self.run(&planned.statement, values.as_ref(), schema).await
    }

    /// Action ClosePreparedStatement. Fine for handles that are unknown or closed.
    pub(super) async fn close(&self, request: &ActionClosePreparedStatementRequest) {
        if let Ok(prepared) = self.signer.open_prepared(&request.prepared_statement_handle) {
            self.kept.forget(&prepared.id).await;
        }
    }

    async fn plan_prepared(&self, prepared: &PreparedStatement) -> Result<Planned> {
        let defaults = defaults_from_proto(prepared.defaults.as_ref());
        let planned = self.engine.plan(&prepared.sql, &defaults).await?;
        let schema = schema_message(&wire_schema(&planned.schema, None))?;
        if digest(&schema) == prepared.schema_digest {
            Ok(planned)
        } else {
            Err(Error::invalid(
                "the columns of the result have changed since the statement was prepared; prepare it again",
            ))
        }
    }

    /// What was bound: the values in the handle, else those last bound to the statement.
    pub(super) async fn bound(&self, prepared: &PreparedStatement) -> Result<Option<RecordBatch>> {
        match &prepared.parameters {
            Some(parameters) => self.kept.unpack(parameters).await,
            None => Ok(self.kept.get(&prepared.id).await),
        }
    }

    /// The values that a query runs with.
    async fn values(&self, prepared: &PreparedStatement, planned: &Planned) -> Result<Option<RecordBatch>> {
        if planned.parameters.is_empty() {
            return Ok(None);
        }
        match self.bound(prepared).await? {
            Some(values) => check(&planned.parameters, &values).map(|()| Some(values)),
            None => Err(Error::invalid(format!(
                "the statement has {} parameters, and no values are bound to them",
                planned.parameters.len()
            ))),
        }
    }
}

fn digest(schema: &Bytes) -> Bytes {
    Bytes::copy_from_slice(&Sha256::digest(schema))
}
