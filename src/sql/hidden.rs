//! Hidden columns (interface.md 4): there for who names them, in no `*`.
//!
//! A statement that names none of them is planned as if there were none. In one that does, the
//! tables get those columns at the end of their schema, and every wildcard over such a table is
//! written out to leave them out. A column of a table that has such a name wins: the hidden one is
//! then not there, for no table of the statement.
//!
//! Invariant: the columns of `*`, of NATURAL joins and of alias lists are the same with and
//! without a hidden column named elsewhere in the statement; what cannot be told apart is refused.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    Statement as Ast, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::gate::name_parts;
use super::shown::Shown;
use crate::error::{Error, Result};
use crate::table::{HiddenColumn, Snapshot};

/// Hidden columns of the tables of a statement, by the tables' names as the statement spells them.
pub(super) type HiddenNames = HashMap<Vec<String>, Vec<String>>;

/// The hidden columns that a statement's words name.
pub(super) fn named(tokens: &[TokenWithSpan]) -> Vec<HiddenColumn> {
    let mut found = Vec::new();
    for token in tokens {
        if let Token::Word(word) = &token.token
            && let Some(kind) = HiddenColumn::from_name(&word.value)
            && !found.contains(&kind)
        {
            found.push(kind);
        }
    }
    found
}

/// Those of `named` that no table of the statement has as a column of its own.
pub(super) fn available<'a>(named: Vec<HiddenColumn>, schemas: impl Iterator<Item = &'a SchemaRef>) -> Vec<HiddenColumn> {
    let mut left = named;
    for schema in schemas {
        left.retain(|kind| !schema.fields().iter().any(|f| f.name().eq_ignore_ascii_case(kind.name())));
    }
    left
}

/// The snapshot with these hidden columns at the end.
///
/// Errors: `Unsupported` where the table's cannot be given.
pub(super) fn with_hidden(snapshot: Arc<dyn Snapshot>, kinds: &[HiddenColumn]) -> Result<Arc<dyn Snapshot>> {
    with_fields(snapshot, kinds, |_, field| field)
}

fn with_fields(
    snapshot: Arc<dyn Snapshot>,
    kinds: &[HiddenColumn],
    shown: impl Fn(HiddenColumn, FieldRef) -> FieldRef,
) -> Result<Arc<dyn Snapshot>> {
    let mut fields: Vec<FieldRef> = snapshot.schema().fields().iter().cloned().collect();
    let mut columns = snapshot.columns().to_vec();
    for kind in kinds {
        if let Some(field) = snapshot.hidden_column(*kind)? {
            let field = shown(*kind, field);
            columns.push(kind.column(&field, snapshot.hidden_names(*kind)));
            fields.push(field);
        }
    }
    if columns.len() == snapshot.columns().len() {
        return Ok(snapshot);
    }
    let schema = Schema::new_with_metadata(fields, snapshot.schema().metadata().clone());
    Ok(Arc::new(Shown {
        inner: snapshot,
        schema: Arc::new(schema),
        columns,
    }))
}

/// As [`with_hidden`], with paths of files once for many rows: for statements that look at every row's.
///
/// Errors: as [`with_hidden`].
pub(super) fn with_places(snapshot: Arc<dyn Snapshot>, kinds: &[HiddenColumn]) -> Result<Arc<dyn Snapshot>> {
    with_fields(snapshot, kinds, |kind, field| match kind {
        HiddenColumn::File => {
            let shared = DataType::Dictionary(Box::new(DataType::Int32), Box::new(field.data_type().clone()));
            Arc::new(field.as_ref().clone().with_data_type(shared))
        }
        _ => field,
    })
}

/// Names of the hidden columns in a snapshot's schema.
pub(super) fn hidden_names(snapshot: &dyn Snapshot) -> Vec<String> {
    let fields = snapshot.schema().fields().iter().zip(snapshot.columns());
    let hidden = fields.filter(|(_, column)| HiddenColumn::from_id(column.id).is_some());
    hidden.map(|(field, _)| field.name().clone()).collect()
}

/// Takes the hidden columns out of every wildcard.
///
/// Errors: `Unsupported` where they cannot be kept apart from the others.
pub(super) fn leave_out(statement: &mut Ast, hidden: &HiddenNames) -> Result<()> {
    if hidden.is_empty() {
        return Ok(());
    }
    let mut pass = LeaveOut {
        hidden,
        frames: vec![Frame::default()],
        scope: Vec::new(),
    };
    match VisitMut::visit(statement, &mut pass) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn refuse<T>(what: &str) -> ControlFlow<Error, T> {
    ControlFlow::Break(Error::unsupported(format!(
        "{what} together with hidden columns is not supported: name the columns"
    )))
}

/// A query that is being walked; see `relations`, which keeps the same scope.
#[derive(Default)]
struct Frame {
    ctes: Vec<String>,
    recursive: bool,
    done: usize,
    scoped: usize,
}

struct LeaveOut<'a> {
    hidden: &'a HiddenNames,
    frames: Vec<Frame>,
    /// Names of WITH queries in scope, innermost last.
    scope: Vec<String>,
}

/// A relation of a FROM.
struct Relation {
    /// What stands before `.*`; `None` for one that has no name.
    qualifier: Option<Vec<Ident>>,
    hidden: Vec<String>,
}

/// The relations of a FROM whose columns `*` stands for.
#[derive(Default)]
struct From {
    relations: Vec<Relation>,
    /// Joined by columns that `*` gives once.
    merged: bool,
    natural: bool,
    /// Joined so that only the columns of the right side are left.
    right_only: bool,
}

impl VisitorMut for LeaveOut<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if !query.pipe_operators.is_empty() {
            return refuse("a query with |>");
        }
        let (ctes, recursive) = match &query.with {
            Some(with) => (
                with.cte_tables.iter().map(|c| c.alias.name.value.to_lowercase()).collect(),
                with.recursive,
            ),
            None => (Vec::new(), false),
        };
        if let Some(parent) = self.frames.last_mut()
            && parent.recursive
            && let Some(name) = parent.ctes.get(parent.done)
        {
            self.scope.push(name.clone());
            parent.scoped += 1;
        }
        self.frames.push(Frame {
            ctes,
            recursive,
            ..Frame::default()
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        let Some(ended) = self.frames.pop() else {
            return ControlFlow::Break(Error::internal("a query ended that did not begin"));
        };
        self.scope.truncate(self.scope.len().saturating_sub(ended.scoped));
        if let Some(parent) = self.frames.last_mut()
            && let Some(name) = parent.ctes.get(parent.done).cloned()
        {
            parent.done += 1;
            parent.scoped += 1;
            self.scope.push(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let mut from = From::default();
        for table in &mut select.from {
            self.joined(table, &mut from)?;
        }
        if from.relations.iter().all(|r| r.hidden.is_empty()) {
            return ControlFlow::Continue(());
        }
        if from.natural {
            return refuse("NATURAL JOIN");
        }
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) => wildcard(&from, options, &mut items)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), mut options) => {
                    if let Some(relation) = from.relations.iter().find(|r| r.is_called(&name)) {
                        exclude(&mut options, &relation.hidden);
                    }
                    let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                    items.push(SelectItem::QualifiedWildcard(kind, options));
                }
                other => items.push(other),
            }
        }
        select.projection = items;
        ControlFlow::Continue(())
    }
}

impl LeaveOut<'_> {
    fn joined(&self, table: &mut TableWithJoins, from: &mut From) -> ControlFlow<Error> {
        self.relation(&mut table.relation, from)?;
        for join in &mut table.joins {
            let before = from.relations.len();
            self.relation(&mut join.relation, from)?;
            let constraint = match &join.join_operator {
                JoinOperator::LeftSemi(c) | JoinOperator::Semi(c) | JoinOperator::LeftAnti(c) | JoinOperator::Anti(c) => {
                    // The right side's columns are gone, also for the joins that follow.
                    from.natural |= matches!(c, JoinConstraint::Natural);
                    from.relations.truncate(before);
                    continue;
                }
                JoinOperator::RightSemi(c) | JoinOperator::RightAnti(c) => {
                    from.right_only = true;
                    Some(c)
                }
                JoinOperator::Join(c)
                | JoinOperator::Inner(c)
                | JoinOperator::Left(c)
                | JoinOperator::LeftOuter(c)
                | JoinOperator::Right(c)
                | JoinOperator::RightOuter(c)
                | JoinOperator::FullOuter(c)
                | JoinOperator::CrossJoin(c)
                | JoinOperator::StraightJoin(c)
                | JoinOperator::AsOf { constraint: c, .. } => Some(c),
                _ => None,
            };
            from.merged |= matches!(constraint, Some(JoinConstraint::Using(_)));
            from.natural |= matches!(constraint, Some(JoinConstraint::Natural));
        }
        ControlFlow::Continue(())
    }

    fn relation(&self, factor: &mut TableFactor, from: &mut From) -> ControlFlow<Error> {
        let called = |alias: &Option<TableAlias>| alias.as_ref().map(|a| vec![a.name.clone()]);
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let hidden = if args.is_none() { self.hidden_of(name) } else { Vec::new() };
                let qualifier = match alias {
                    Some(alias) => {
                        if !alias.columns.is_empty() {
                            let own = hidden.iter().map(|name| TableAliasColumnDef {
                                name: Ident::with_quote('"', name),
                                data_type: None,
                            });
                            alias.columns.extend(own);
                        }
                        Some(vec![alias.name.clone()])
                    }
                    None => name.0.iter().map(|part| part.as_ident().cloned()).collect(),
                };
                from.relations.push(Relation { qualifier, hidden });
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let before = from.relations.len();
                self.joined(table_with_joins, from)?;
                if alias.is_some() {
                    if from.relations.iter().skip(before).any(|r| !r.hidden.is_empty()) {
                        return refuse("an alias for a join in parentheses");
                    }
                    from.relations.truncate(before);
                    from.relations.push(Relation {
                        qualifier: called(alias),
                        hidden: Vec::new(),
                    });
                }
            }
            TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => from.relations.push(Relation {
                qualifier: called(alias),
                hidden: Vec::new(),
            }),
            _ => from.relations.push(Relation {
                qualifier: None,
                hidden: Vec::new(),
            }),
        }
        ControlFlow::Continue(())
    }

    /// Hidden columns of a name that stands for a table and no WITH query.
    fn hidden_of(&self, name: &ObjectName) -> Vec<String> {
        let Ok(parts) = name_parts(name) else { return Vec::new() };
        if let [one] = parts.as_slice()
            && self.scope.contains(&one.to_lowercase())
        {
            return Vec::new();
        }
        self.hidden.get(&parts).cloned().unwrap_or_default()
    }
}

impl Relation {
    fn is_called(&self, name: &ObjectName) -> bool {
        let Some(qualifier) = &self.qualifier else { return false };
        let Ok(parts) = name_parts(name) else { return false };
        let own: Vec<&str> = qualifier.iter().map(|i| i.value.as_str()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        own.ends_with(&parts)
    }
}

/// `*` over these relations.
fn wildcard(from: &From, mut options: WildcardAdditionalOptions, items: &mut Vec<SelectItem>) -> ControlFlow<Error> {
    if let [only] = from.relations.as_slice() {
        exclude(&mut options, &only.hidden);
        items.push(SelectItem::Wildcard(options));
        return ControlFlow::Continue(());
    }
    if from.merged {
        return refuse("* over JOIN .. USING");
    }
    if from.right_only {
        return refuse("* over a RIGHT SEMI or ANTI JOIN");
    }
    let plain = WildcardAdditionalOptions {
        wildcard_token: options.wildcard_token.clone(),
        ..WildcardAdditionalOptions::default()
    };
    if options != plain {
        return refuse("* with EXCLUDE, REPLACE or RENAME over several tables");
    }
    for relation in &from.relations {
        let Some(qualifier) = &relation.qualifier else {
            return refuse("* over a subquery or function without a name");
        };
        let name = ObjectName::from(qualifier.clone());
        let mut options = options.clone();
        exclude(&mut options, &relation.hidden);
        let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
        items.push(SelectItem::QualifiedWildcard(kind, options));
    }
    ControlFlow::Continue(())
}

/// Adds names to a wildcard's EXCLUDE.
fn exclude(options: &mut WildcardAdditionalOptions, hidden: &[String]) {
    let mut names = match options.opt_exclude.take() {
        None => Vec::new(),
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
    };
    let excepted = options
        .opt_except
        .iter()
        .flat_map(|e| std::iter::once(&e.first_element).chain(&e.additional_elements));
    let mut known: Vec<String> = excepted.map(|ident| ident.value.clone()).collect();
    known.extend(names.iter().filter_map(|name| name_parts(name).ok()).flatten());
    for name in hidden.iter().filter(|name| !known.contains(name)) {
        names.push(ObjectName::from(vec![Ident::with_quote('"', name)]));
    }
    if !names.is_empty() {
        options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
    }
}
