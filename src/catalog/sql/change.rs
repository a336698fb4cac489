//! Changes to the catalog, each one transaction (AT-10 to AT-12).
//!
//! When COMMIT fails, nothing is concluded from the failure. Another transaction is committed first, a fence: once
//! it is, the earlier one can no longer take effect, not even by recovery after a power cut. What is read under the
//! fence's lock is then a proof. Where no fence can be committed the outcome stays unknown.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use rusqlite::Connection;

use super::super::{Pointer, SwapOutcome, WritableCatalog};
use super::catalog::SqlCatalog;
use super::database::{Ended, Verdict};
use super::rows::{self, EXISTS, Key, Layout, Row};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::io::normalise;
use crate::table::TableIdent;

impl SqlCatalog {
    /// Runs a change whose caller wants a result only.
    async fn change<T, F>(&self, statements: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, Layout) -> Result<T> + Send + 'static,
    {
        self.claim().await?;
        let ended = self.database.write(move |c, layout| statements(c, layout).map(Verdict::Commit));
        match ended.await {
            Ended::Done(done) => Ok(done),
            Ended::NotApplied(e) => Err(e),
            Ended::Unknown(e) => Err(Error::new(
                ErrorKind::CommitStateUnknown,
                "the catalog did not confirm the change: look whether it is there before you try again",
            )
            .with_source(e)),
        }
    }

    /// All tables in the file with their metadata files.
    async fn locations(&self) -> Result<Vec<(String, String)>> {
        Ok(self.database.read(rows::locations).await?.unwrap_or_default())
    }

    fn not_ours(&self, ident: &TableIdent) -> Option<Error> {
        (ident.catalog != self.name).then(|| Error::invalid("the table belongs to another catalog").with("table", ident))
    }

    /// Looks under a fence for what became of a change whose COMMIT was not confirmed.
    async fn settle(&self, ident: &TableIdent, base: Option<&str>, new: &str, cause: Error) -> SwapOutcome {
        let key = self.key(ident);
        let ended = self.database.write(move |c, layout| {
            rows::touch(c)?;
            Ok(Verdict::Commit(rows::row(c, layout, &key)?))
        });
        let row = match ended.await {
            Ended::Done(row) => row,
            Ended::NotApplied(e) | Ended::Unknown(e) => {
                tracing::warn!(table = %ident, error = %e, "the outcome of a commit stays unknown");
                return SwapOutcome::Unknown(cause);
            }
        };
        let refused = |cause: Error| {
            SwapOutcome::Failed(Error::unavailable("the catalog did not take the change; trying again may help").with_source(cause))
        };
        match (row, base) {
            (Some(row), _) if row.names(new) => SwapOutcome::Done,
            (Some(row), Some(base)) if row.is_at(base) => refused(cause),
            (None, None) => refused(cause),
            // More than one commit since, or the table was dropped: these rows remember too little.
            _ => SwapOutcome::Unknown(cause),
        }
    }
}

impl Row {
    /// True when the current or the previous metadata is this file.
    fn names(&self, location: &str) -> bool {
        self.is_at(location) || self.previous.as_deref().is_some_and(|p| same_place(p, location))
    }

    fn is_at(&self, location: &str) -> bool {
        self.is_table && self.location.as_deref().is_some_and(|l| same_place(l, location))
    }
}

/// True for two spellings of one place.
fn same_place(a: &str, b: &str) -> bool {
    a == b || matches!((normalise(a), normalise(b)), (Ok(a), Ok(b)) if a == b)
}

fn no_table(ident: &TableIdent) -> Error {
    Error::not_found(format!("table \"{ident}\" does not exist"))
}

/// Errors: `NotFound`.
fn need_namespace(c: &Connection, layout: Layout, catalog: &str, schema: &str) -> Result<()> {
    if rows::namespaces(c, layout, catalog)?.contains(schema) {
        return Ok(());
    }
    Err(Error::not_found(format!("schema \"{schema}\" does not exist")).with("catalog", catalog))
}

/// Errors: `AlreadyExists` when the name is a table's or a view's.
fn need_free(row: Option<&Row>, ident: &TableIdent) -> Result<()> {
    let Some(row) = row else { return Ok(()) };
    let what = if row.is_table { "table" } else { "view" };
    Err(Error::new(
        ErrorKind::AlreadyExists,
        format!("there is a {what} \"{ident}\" already"),
    ))
}

/// Names that other programs could not take apart again, or not store, are not given to anything.
fn check_name(what: &str, name: &str) -> Result<()> {
    let bad = name.is_empty() || name.chars().any(char::is_control) || name.chars().count() > 255;
    if bad || (what == "schema" && name.split('.').any(str::is_empty)) {
        return Err(Error::invalid(format!(
            "a {what}'s name has 1 to 255 characters, none of them a control character, and no empty part"
        ))
        .with("name", name.escape_debug()));
    }
    Ok(())
}

fn check_table_name(ident: &TableIdent) -> Result<()> {
    check_name("schema", &ident.schema)?;
    check_name("table", &ident.table)?;
    if ident.table.contains('.') {
        return Err(
            Error::invalid("a table's name may not have a dot in it: other programs take it for a schema").with("name", &ident.table),
        );
    }
    Ok(())
}

#[async_trait]
impl WritableCatalog for SqlCatalog {
    async fn claim(&self) -> Result<()> {
        let lock = Arc::clone(&self.lock);
        let taken = tokio::task::spawn_blocking(move || lock.take()).await;
        taken.map_err(|e| Error::internal("a blocking task failed").with_source(e))??;
        if !self.prepared.load(Ordering::Acquire) {
            self.database.prepare().await?;
            self.prepared.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn journal_file(&self) -> PathBuf {
        let mut name = self.database.path().as_os_str().to_owned();
        name.push("-commits.jsonl");
        name.into()
    }

    async fn create_namespace(&self, schema: &str, properties: &BTreeMap<String, String>) -> Result<()> {
        check_name("schema", schema)?;
        let (catalog, schema, mut properties) = (self.rows_name.clone(), schema.to_owned(), properties.clone());
        // As Java does it: the schema stays when its last property is removed.
        properties.insert(EXISTS.to_owned(), "true".to_owned());
        self.change(move |c, layout| {
            if rows::namespaces(c, layout, &catalog)?.contains(&schema) {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("there is a schema \"{schema}\" already"),
                ));
            }
            for (key, value) in &properties {
                rows::set_property(c, &catalog, &schema, key, value)?;
            }
            Ok(())
        })
        .await
    }

    async fn drop_namespace(&self, schema: &str) -> Result<()> {
        let (catalog, schema) = (self.rows_name.clone(), schema.to_owned());
        self.change(move |c, layout| {
            need_namespace(c, layout, &catalog, &schema)?;
            let inside = format!("{schema}.");
            let nested = rows::namespaces(c, layout, &catalog)?.into_iter().any(|n| n.starts_with(&inside));
            if nested || rows::has_rows(c, &catalog, &schema)? {
                return Err(Error::invalid(format!(
                    "schema \"{schema}\" is not empty: drop the tables, views and schemas in it first"
                )));
            }
            rows::remove_properties(c, &catalog, &schema)
        })
        .await
    }

    async fn namespace_properties(&self, schema: &str) -> Result<BTreeMap<String, String>> {
        let (catalog, namespace) = (self.rows_name.clone(), schema.to_owned());
        let found = self.database.read(move |c, layout| {
            need_namespace(c, layout, &catalog, &namespace)?;
            rows::properties(c, layout, &catalog, &namespace)
        });
        found
            .await?
            .ok_or_else(|| Error::not_found(format!("schema \"{schema}\" does not exist")))
    }

    async fn set_namespace_properties(&self, schema: &str, set: &BTreeMap<String, String>, remove: &[String]) -> Result<()> {
        if let Some(both) = remove.iter().find(|key| set.contains_key(*key)) {
            return Err(Error::invalid("a property is both set and removed").with("property", both));
        }
        let (catalog, schema) = (self.rows_name.clone(), schema.to_owned());
        let (set, remove) = (set.clone(), remove.to_vec());
        self.change(move |c, layout| {
            need_namespace(c, layout, &catalog, &schema)?;
            for key in &remove {
                rows::remove_property(c, &catalog, &schema, key)?;
            }
            for (key, value) in &set {
                rows::set_property(c, &catalog, &schema, key, value)?;
            }
            // The schema must not go with its last property.
            rows::set_property(c, &catalog, &schema, EXISTS, "true")
        })
        .await
    }

    async fn new_location(&self, ident: &TableIdent) -> Result<String> {
        check_table_name(ident)?;
        let properties = self.namespace_properties(&ident.schema).await?;
        let others = self.locations().await?;
        let (places, ident) = (self.places.clone(), ident.clone());
        let place = tokio::task::spawn_blocking(move || {
            let place = places.new_table(&ident, properties.get("location").map(String::as_str));
            match places.check_new(&place, &others) {
                Ok(()) => place,
                Err(_) => places.apart(&ident),
            }
        });
        place.await.map_err(|e| Error::internal("a blocking task failed").with_source(e))
    }

    async fn check_location(&self, ident: &TableIdent, location: &str) -> Result<()> {
        let others = self.locations().await?;
        let (places, location) = (self.places.clone(), location.to_owned());
        let checked = tokio::task::spawn_blocking(move || places.check_new(&location, &others)).await;
        let checked = checked.map_err(|e| Error::internal("a blocking task failed").with_source(e))?;
        checked.context("table", || ident)
    }

    async fn pointer(&self, ident: &TableIdent) -> Result<Option<Pointer>> {
        self.pointer_of(ident).await
    }

    async fn create_table(&self, ident: &TableIdent, metadata_location: &str) -> SwapOutcome {
        let refused = self.not_ours(ident).map_or(Ok(()), Err).and_then(|()| check_table_name(ident));
        if let Err(e) = refused {
            return SwapOutcome::Failed(e);
        }
        if let Err(e) = self.confined(ident, metadata_location).await {
            return SwapOutcome::Failed(e);
        }
        if let Err(e) = self.claim().await {
            return SwapOutcome::Failed(e);
        }
        let (key, name, location) = (self.key(ident), ident.clone(), metadata_location.to_owned());
        let ended = self.database.write(move |c, layout| {
            need_namespace(c, layout, &key.catalog, &key.schema)?;
            let row = rows::row(c, layout, &key)?;
            if row.as_ref().is_some_and(|row| row.names(&location)) {
                // Ours, from an earlier try.
                return Ok(Verdict::Rollback(()));
            }
            need_free(row.as_ref(), &name)?;
            rows::insert(c, layout, &key, &location)?;
            Ok(Verdict::Commit(()))
        });
        match ended.await {
            Ended::Done(()) => SwapOutcome::Done,
            Ended::NotApplied(e) => SwapOutcome::Failed(e),
            Ended::Unknown(e) => self.settle(ident, None, metadata_location, e).await,
        }
    }

    async fn drop_table(&self, ident: &TableIdent) -> Result<String> {
        if let Some(e) = self.not_ours(ident) {
            return Err(e);
        }
        let (key, name) = (self.key(ident), ident.clone());
        self.change(move |c, layout| {
            let row = rows::row(c, layout, &key)?
                .filter(|row| row.is_table)
                .ok_or_else(|| no_table(&name))?;
            rows::delete(c, layout, &key)?;
            Ok(row.location.unwrap_or_default())
        })
        .await
    }

    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        if let Some(e) = self.not_ours(from).or_else(|| self.not_ours(to)) {
            return Err(e);
        }
        check_table_name(to)?;
        let (old, new): (Key, Key) = (self.key(from), self.key(to));
        let (from, to) = (from.clone(), to.clone());
        self.change(move |c, layout| {
            let row = rows::row(c, layout, &old)?;
            row.filter(|row| row.is_table).ok_or_else(|| no_table(&from))?;
            if from == to {
                return Ok(());
            }
            need_namespace(c, layout, &new.catalog, &new.schema)?;
            need_free(rows::row(c, layout, &new)?.as_ref(), &to)?;
            rows::rename(c, layout, &old, &new)
        })
        .await
    }

    async fn swap(&self, ident: &TableIdent, base: &str, new: &str) -> SwapOutcome {
        if let Some(e) = self.not_ours(ident) {
            return SwapOutcome::Failed(e);
        }
        if same_place(base, new) {
            return SwapOutcome::Failed(Error::internal("a commit would replace metadata by itself").with("table", ident));
        }
        if let Err(e) = self.confined(ident, new).await {
            return SwapOutcome::Failed(e);
        }
        if let Err(e) = self.claim().await {
            return SwapOutcome::Failed(e);
        }
        let (key, name) = (self.key(ident), ident.clone());
        let (expected, location) = (base.to_owned(), new.to_owned());
        let ended = self.database.write(move |c, layout| {
            let row = rows::row(c, layout, &key)?
                .filter(|row| row.is_table)
                .ok_or_else(|| no_table(&name))?;
            if row.names(&location) {
                return Ok(Verdict::Rollback(SwapOutcome::Done));
            }
            // The stored spelling may differ from the one that the base was read by.
            let stored = row.location.filter(|stored| same_place(stored, &expected));
            let Some(stored) = stored else {
                return Ok(Verdict::Rollback(SwapOutcome::Conflict));
            };
            match rows::swap(c, layout, &key, &stored, &location)? {
                1 => Ok(Verdict::Commit(SwapOutcome::Done)),
                0 => Ok(Verdict::Rollback(SwapOutcome::Conflict)),
                n => Err(Error::corrupt(format!("the catalog has {n} rows for one table")).with("table", &name)),
            }
        });
        match ended.await {
            Ended::Done(outcome) => outcome,
            Ended::NotApplied(e) => SwapOutcome::Failed(e),
            Ended::Unknown(e) => self.settle(ident, Some(base), new, e).await,
        }
    }

    async fn resolve(&self, ident: &TableIdent, base: Option<&str>, new: &str) -> SwapOutcome {
        if let Err(e) = self.claim().await {
            return SwapOutcome::Unknown(e);
        }
        let cause = Error::new(ErrorKind::CommitStateUnknown, "it is not known whether the catalog took a commit");
        self.settle(ident, base, new, cause.with("table", ident)).await
    }
}
