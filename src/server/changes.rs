//! Statements and streams that change something (flight-sql.md 6, points 16 to 18).
//!
//! Invariants: a change is carried out once for each call that asks for it, by GetFlightInfo where a client
//! sends it as a query, since DoGet may come twice or never; GetSchema and preparing do nothing; the count that
//! is answered is exact.

use arrow::array::RecordBatch;
use arrow_flight::FlightDescriptor;
use arrow_flight::FlightInfo;
use arrow_flight::sql::{Any, CommandPreparedStatementUpdate, DoPutUpdateResult};
use bytes::Bytes;
use futures::stream::BoxStream;
use prost::Message;

use super::statements::{Statements, flight_info};
use super::ticket::defaults_from_proto;
use super::wire::{schema_message, wire_schema};
use crate::error::{Error, Result};
use crate::proto::change::{
    AppendRows, ChangeResult, CommitStatus, CommitStatusResult, DeletePositions, TableRef, commit_status, commit_status_result,
};
use crate::sql::{Defaults, Done, Planned, With};
use crate::write::commit::CommitStatus as Status;

/// Longest idempotency key.
const MAX_KEY: usize = 256;

const APPEND: &str = "sandur.v1.AppendRows";
const DELETE_POSITIONS: &str = "sandur.v1.DeletePositions";

/// Whether a command takes a stream of rows.
pub(super) fn takes_rows(command: &Any) -> bool {
    is_named(command, APPEND) || is_named(command, DELETE_POSITIONS)
}

impl Statements {
    /// Carries out a statement that came as an update: the answer's body.
    pub(super) async fn update(&self, sql: &str, defaults: &Defaults) -> Result<Bytes> {
        let done = self.engine.change(sql, defaults, With::default()).await?;
        update_result(&done)
    }

    /// Carries out a prepared statement, all rows of values in one change: those of this call, else those that were
    /// bound before, as arrow's Rust client does it. Columns without rows are values: the statement is carried out for
    /// none.
    pub(super) async fn prepared_update(&self, command: &CommandPreparedStatementUpdate, values: Option<RecordBatch>) -> Result<Bytes> {
        let prepared = self.signer.open_prepared(&command.prepared_statement_handle)?;
        let defaults = defaults_from_proto(prepared.defaults.as_ref());
        let values = match values {
            Some(values) => Some(values),
            None => self.bound(&prepared).await?,
        };
        let with = With {
            parameters: values.as_ref(),
            commit_id: None,
        };
        let done = self.engine.change(&prepared.sql, &defaults, with).await?;
        update_result(&done)
    }

    /// Carries out a statement that came as a query: an answer without streams, whose number of records is
    /// that of the rows that were changed.
    pub(super) async fn changed_info(
        &self,
        planned: &Planned,
        values: Option<&RecordBatch>,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo> {
        let with = With {
            parameters: values,
            commit_id: None,
        };
        let schema = schema_message(&wire_schema(&planned.schema, None))?;
        let done = self
            .engine
            .change(&planned.statement.sql, &planned.statement.defaults, with)
            .await?;
        let total_records = count(&done)?;
        Ok(FlightInfo {
            endpoint: Vec::new(),
            total_records,
            total_bytes: 0,
            app_metadata: change_result(&done).encode_to_vec().into(),
            ..flight_info(schema, descriptor, Bytes::new())
        })
    }

    /// Carries out a command with the rows of a stream: the answer's body.
    pub(super) async fn put_rows(
        &self,
        command: &Any,
        rows: impl FnOnce() -> BoxStream<'static, Result<RecordBatch>>,
        defaults: Defaults,
    ) -> Result<Bytes> {
        let done = if is_named(command, DELETE_POSITIONS) {
            let request: DeletePositions = message(command, DELETE_POSITIONS)?;
            let (table, defaults) = required(request.table, defaults, "DeletePositions")?;
            let commit_id = optional_id(&request.idempotency_key)?;
            let (snapshot, commit_id) = (request.snapshot, commit_id.as_deref());
            self.engine
                .delete_positions(&[table], snapshot, rows(), &defaults, commit_id)
                .await?
        } else {
            let request: AppendRows = message(command, APPEND)?;
            let (table, defaults) = required(request.table, defaults, "AppendRows")?;
            let commit_id = optional_id(&request.idempotency_key)?;
            self.engine.append(&[table], rows(), &defaults, commit_id.as_deref()).await?
        };
        Ok(change_result(&done).encode_to_vec().into())
    }

    /// Action CommitStatus.
    pub(super) async fn commit_status(&self, body: &[u8], defaults: Defaults) -> Result<Vec<u8>> {
        let request: CommitStatus = decode(body, "sandur.v1.CommitStatus")?;
        let (table, defaults) = match request.table.filter(|table| !table.table.is_empty()) {
            Some(table) => {
                let (table, defaults) = named(table, defaults);
                (Some([table]), defaults)
            }
            None => (None, defaults),
        };
        let table = table.as_ref().map(<[String; 1]>::as_slice);
        let id = match request.of {
            Some(commit_status::Of::CommitId(id)) => id,
            Some(commit_status::Of::IdempotencyKey(key)) => commit_id_of(&key)?,
            None => return Err(Error::invalid("CommitStatus needs a commit id or an idempotency key")),
        };
        let (state, snapshot_id) = match self.engine.commit_status(&id, table, &defaults).await? {
            Status::Committed { snapshot_id } => (commit_status_result::State::Committed, snapshot_id),
            Status::NotCommitted => (commit_status_result::State::NotCommitted, None),
            Status::Unknown => (commit_status_result::State::Unknown, None),
        };
        let result = CommitStatusResult {
            state: state.into(),
            snapshot_id,
        };
        let any = Any {
            type_url: "type.googleapis.com/sandur.v1.CommitStatusResult".to_owned(),
            value: result.encode_to_vec().into(),
        };
        Ok(any.encode_to_vec())
    }
}

/// The table that a command names, and what the rest of its name leaves to the session.
fn required(table: Option<TableRef>, defaults: Defaults, command: &str) -> Result<(String, Defaults)> {
    let table = table.filter(|table| !table.table.is_empty());
    let table = table.ok_or_else(|| Error::invalid(format!("{command} needs a table")))?;
    Ok(named(table, defaults))
}

/// A table's own name, and what the rest of its name leaves to the session.
fn named(table: TableRef, defaults: Defaults) -> (String, Defaults) {
    let set = |part: String, default: Option<String>| if part.is_empty() { default } else { Some(part) };
    let defaults = Defaults {
        catalog: set(table.catalog, defaults.catalog),
        schema: set(table.schema, defaults.schema),
        branch: set(table.branch, defaults.branch),
        as_of: defaults.as_of,
    };
    (table.table, defaults)
}

fn optional_id(key: &str) -> Result<Option<String>> {
    match key {
        "" => Ok(None),
        key => commit_id_of(key).map(Some),
    }
}

/// The commit id that an idempotency key stands for.
pub(super) fn commit_id_of(key: &str) -> Result<String> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(Error::invalid(format!("an idempotency key has 1 to {MAX_KEY} bytes")));
    }
    Ok(format!("key:{key}"))
}

/// The message of this name in a body that is an `Any`.
fn decode<M: Message + Default>(body: &[u8], name: &str) -> Result<M> {
    let any = Any::decode(body).map_err(|_| Error::invalid("the body is not a google.protobuf.Any"))?;
    if !is_named(&any, name) {
        return Err(Error::invalid(format!("the body is not a {name}")));
    }
    message(&any, name)
}

/// What an `Any` of this name holds.
fn message<M: Message + Default>(any: &Any, name: &str) -> Result<M> {
    M::decode(any.value.clone()).map_err(|e| Error::invalid(format!("the {name} does not decode: {e}")))
}

fn is_named(any: &Any, name: &str) -> bool {
    any.type_url.rsplit('/').next() == Some(name)
}

fn count(done: &Done) -> Result<i64> {
    i64::try_from(done.rows).map_err(|e| Error::internal("more rows than can be counted").with_source(e))
}

fn update_result(done: &Done) -> Result<Bytes> {
    let result = DoPutUpdateResult {
        record_count: count(done)?,
    };
    Ok(result.encode_to_vec().into())
}

/// What a change did, as it is sent.
pub(super) fn change_result(done: &Done) -> ChangeResult {
    ChangeResult {
        verb: done.verb.to_owned(),
        rows: done.rows,
        snapshot_id: done.snapshot_id,
        commit_id: done.commit_id.clone().unwrap_or_default(),
        data_files: done.data_files,
        bytes: done.bytes,
        delete_files: done.delete_files,
        delete_bytes: done.delete_bytes,
        rewritten_files: done.rewritten_files,
        removed_files: done.removed_files,
    }
}
