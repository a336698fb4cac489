//! Running a prepared statement: admission, one execution per row of parameters (or what is the same), a stream.
//!
//! Invariants: the plan lives in a task of the pool and is dropped there; dropping the stream
//! ends the task and gives the admission back; a stream ends without error only after its task
//! said that it is complete.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as EngineResult;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};

use super::admission::Admission;
use super::errors::{from_datafusion, to_datafusion};
use super::interrupt::{Interrupt, InterruptOnDrop, interruptible};
use super::literals::fit_literals;
use super::output::conform;
use super::params::Values;
use super::pool::{Abort, Pool};
use super::prepare::Prepared;
use super::together::{at_once, together};
use crate::error::{Error, Result};

/// Batches that wait for a slow reader.
const BUFFERED: usize = 2;

enum Message {
    Batch(RecordBatch),
    Failed(Error),
    /// All rows were sent.
    Complete,
}

/// Starts a statement when it is let in. Returns once the first execution is under way, so that errors of planning
/// come from here.
pub(super) async fn start(
    pool: &Arc<Pool>,
    state: &SessionState,
    admission: &Admission,
    prepared: Prepared,
    values: Values,
) -> Result<SendableRecordBatchStream> {
    let permit = admission.enter().await?;
    let (sender, receiver) = mpsc::channel(BUFFERED);
    let (ready, started) = oneshot::channel();
    let schema = Arc::clone(&prepared.schema);
    let interrupt = Interrupt::default();
    let execution = Execution {
        pool: Arc::clone(pool),
        state: state.clone(),
        plan: Arc::new(prepared.plan),
        schema: Arc::clone(&schema),
        values,
        interrupt: interrupt.clone(),
        sender,
    };
    let task = pool.spawn(async move {
        let _permit = permit;
        execution.run(ready).await;
    })?;
    let stream = Answer {
        schema,
        receiver,
        ended: false,
        _interrupt: InterruptOnDrop(interrupt),
        _task: Abort(task.abort_handle()),
    };
    match started.await {
        Ok(Ok(())) => Ok(Box::pin(stream)),
        Ok(Err(e)) => Err(e),
        Err(_) => Err(Error::internal("the statement ended unexpectedly")),
    }
}

struct Execution {
    pool: Arc<Pool>,
    state: SessionState,
    plan: Arc<LogicalPlan>,
    schema: SchemaRef,
    values: Values,
    interrupt: Interrupt,
    sender: mpsc::Sender<Message>,
}

impl Execution {
    async fn run(self, ready: oneshot::Sender<Result<()>>) {
        let mut ready = Some(ready);
        let last = match self.rows(&mut ready).await {
            Ok(()) => Message::Complete,
            Err(e) => match ready.take() {
                Some(ready) => {
                    let _ = ready.send(Err(e));
                    return;
                }
                None => Message::Failed(e),
            },
        };
        if let Some(ready) = ready.take() {
            let _ = ready.send(Ok(()));
        }
        let _ = self.sender.send(last).await;
    }

    async fn rows(&self, ready: &mut Option<oneshot::Sender<Result<()>>>) -> Result<()> {
        let at_once = at_once(&self.plan, &self.values)?;
        for first in (0..self.values.len()).step_by(at_once) {
            let rows = first..self.values.len().min(first + at_once);
            let mut stream = self.execute(rows).await?;
            if let Some(ready) = ready.take() {
                let _ = ready.send(Ok(()));
            }
            while let Some(batch) = stream.next().await {
                let batch = conform(batch.map_err(from_datafusion)?, &self.schema)?;
                // Nobody listens any more: the reader is gone.
                if batch.num_rows() > 0 && self.sender.send(Message::Batch(batch)).await.is_err() {
                    return Err(Error::cancelled("the reader has gone"));
                }
            }
        }
        Ok(())
    }

    async fn execute(&self, rows: Range<usize>) -> Result<SendableRecordBatchStream> {
        let mut state = self.state.clone();
        state.mark_start_execution();
        let state = Arc::new(state);
        let (plan, optimizer) = (Arc::clone(&self.plan), Arc::clone(&state));
        let values = self.values.clone();
        let optimized = self.pool.plan(move || {
            let bound = match values.row(rows.start)? {
                _ if rows.len() > 1 => Some(together(&plan, &values, rows)?),
                Some(values) => Some(plan.as_ref().clone().with_param_values(values).map_err(from_datafusion)?),
                None => None,
            };
            let plan = match bound {
                // Bound values are literals now.
                Some(bound) => fit_literals(bound).map_err(from_datafusion)?,
                None => plan.as_ref().clone(),
            };
            optimizer.optimize(&plan).map_err(from_datafusion)
        });
        let optimized = optimized.await?;
        let session = Arc::clone(&state);
        let physical = self.pool.plan_async(async move {
            let planner = Arc::clone(session.query_planner());
            let planned = planner.create_physical_plan(&optimized, session.as_ref()).await;
            planned.map_err(from_datafusion)
        });
        let physical = interruptible(physical.await?, &self.interrupt).map_err(from_datafusion)?;
        execute_stream(physical, state.task_ctx()).map_err(from_datafusion)
    }
}

/// The stream that callers hold; nothing of the plan is in it.
struct Answer {
    schema: SchemaRef,
    receiver: mpsc::Receiver<Message>,
    ended: bool,
    _interrupt: InterruptOnDrop,
    _task: Abort,
}

impl Stream for Answer {
    type Item = EngineResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let message = futures::ready!(self.receiver.poll_recv(context));
        Poll::Ready(match message {
            Some(Message::Batch(batch)) => Some(Ok(batch)),
            Some(Message::Complete) => {
                self.ended = true;
                None
            }
            Some(Message::Failed(error)) => {
                self.ended = true;
                Some(Err(to_datafusion(error)))
            }
            None => {
                self.ended = true;
                Some(Err(to_datafusion(Error::internal("the statement ended unexpectedly"))))
            }
        })
    }
}

impl RecordBatchStream for Answer {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
