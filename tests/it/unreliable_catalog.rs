//! A catalog whose answers get lost on the way, between an engine and a real one.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sandur::catalog::{Catalog, Pointer, SwapOutcome, WritableCatalog};
use sandur::error::{Error, Result};
use sandur::table::{Table, TableIdent};
use tokio::sync::Notify;

/// What becomes of the next swap or creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is applied, and nobody is told.
    AnswerLost,
    /// It is applied, nobody is told, and from then on the catalog cannot be reached.
    AnswerLostAndGone,
    /// It does not arrive, and nobody is told.
    CallLost,
    /// It is applied, and the answer never comes.
    AnswerHangs,
    /// It does not arrive, and an answer never comes.
    CallHangs,
    /// It is on its way until it is told to go on.
    Delayed,
}

/// The catalog in between.
#[derive(Debug)]
pub struct Unreliable {
    inner: Arc<dyn Catalog>,
    faults: Mutex<VecDeque<Fault>>,
    /// The catalog cannot tell what became of a call.
    pub is_mute: AtomicBool,
    /// The catalog cannot be reached.
    pub is_gone: AtomicBool,
    /// Told when a call begins to hang.
    pub hangs: Notify,
    /// Tells a delayed call to go on.
    pub go_on: Notify,
}

impl Unreliable {
    pub fn new(inner: Arc<dyn Catalog>) -> Self {
        Self {
            inner,
            faults: Mutex::default(),
            is_mute: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            hangs: Notify::new(),
            go_on: Notify::new(),
        }
    }

    /// What happens to the next swap or creation that has no fault yet.
    pub fn fault(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    pub fn set_mute(&self, is_mute: bool) {
        self.is_mute.store(is_mute, Ordering::SeqCst);
    }

    pub fn come_back(&self) {
        self.set_mute(false);
        self.is_gone.store(false, Ordering::SeqCst);
    }

    fn real(&self) -> &dyn WritableCatalog {
        self.inner.writable().unwrap()
    }

    async fn send(&self, call: impl Future<Output = SwapOutcome> + Send) -> SwapOutcome {
        let fault = self.faults.lock().unwrap().pop_front();
        let Some(fault) = fault else { return call.await };
        if fault == Fault::Delayed {
            self.hangs.notify_one();
            self.go_on.notified().await;
            return call.await;
        }
        if !matches!(fault, Fault::CallLost | Fault::CallHangs) {
            let outcome = call.await;
            assert!(matches!(outcome, SwapOutcome::Done), "{outcome:?}");
        }
        match fault {
            Fault::AnswerHangs | Fault::CallHangs => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            Fault::AnswerLostAndGone => {
                self.set_mute(true);
                self.is_gone.store(true, Ordering::SeqCst);
                lost()
            }
            Fault::AnswerLost | Fault::CallLost | Fault::Delayed => lost(),
        }
    }

    fn reachable(&self) -> Result<()> {
        match self.is_gone.load(Ordering::SeqCst) {
            true => Err(Error::unavailable("the catalog cannot be reached")),
            false => Ok(()),
        }
    }
}

fn lost() -> SwapOutcome {
    SwapOutcome::Unknown(Error::unavailable("the answer got lost"))
}

#[async_trait]
impl Catalog for Unreliable {
    fn name(&self) -> &str {
        self.inner.name()
    }
    async fn list_schemas(&self) -> Result<Vec<String>> {
        self.reachable()?;
        self.inner.list_schemas().await
    }
    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>> {
        self.reachable()?;
        self.inner.list_tables(schema).await
    }
    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        self.reachable()?;
        self.inner.load_table(ident).await
    }
    async fn load_table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>> {
        self.inner.load_table_at(ident, metadata_location).await
    }
    fn writable(&self) -> Option<&dyn WritableCatalog> {
        Some(self)
    }
}

#[async_trait]
impl WritableCatalog for Unreliable {
    async fn claim(&self) -> Result<()> {
        self.real().claim().await
    }
    fn journal_file(&self) -> PathBuf {
        self.real().journal_file()
    }
    async fn create_namespace(&self, schema: &str, properties: &BTreeMap<String, String>) -> Result<()> {
        self.real().create_namespace(schema, properties).await
    }
    async fn drop_namespace(&self, schema: &str) -> Result<()> {
        self.real().drop_namespace(schema).await
    }
    async fn namespace_properties(&self, schema: &str) -> Result<BTreeMap<String, String>> {
        self.real().namespace_properties(schema).await
    }
    async fn set_namespace_properties(&self, schema: &str, set: &BTreeMap<String, String>, remove: &[String]) -> Result<()> {
        self.real().set_namespace_properties(schema, set, remove).await
    }
    async fn new_location(&self, ident: &TableIdent) -> Result<String> {
        self.real().new_location(ident).await
    }
    async fn check_location(&self, ident: &TableIdent, location: &str) -> Result<()> {
        self.real().check_location(ident, location).await
    }
    async fn pointer(&self, ident: &TableIdent) -> Result<Option<Pointer>> {
        self.reachable()?;
        self.real().pointer(ident).await
    }
    async fn create_table(&self, ident: &TableIdent, metadata_location: &str) -> SwapOutcome {
        self.send(self.real().create_table(ident, metadata_location)).await
    }
    async fn drop_table(&self, ident: &TableIdent) -> Result<String> {
        self.real().drop_table(ident).await
    }
    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        self.real().rename_table(from, to).await
    }
    async fn swap(&self, ident: &TableIdent, base: &str, new: &str) -> SwapOutcome {
        self.send(self.real().swap(ident, base, new)).await
    }
    async fn resolve(&self, ident: &TableIdent, base: Option<&str>, new: &str) -> SwapOutcome {
        match self.is_mute.load(Ordering::SeqCst) {
            true => lost(),
            false => self.real().resolve(ident, base, new).await,
        }
    }
}
