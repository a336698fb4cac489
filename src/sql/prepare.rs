//! From text to a logical plan with its tables pinned.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result as DfResult;
use datafusion::datasource::TableProvider;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use datafusion::sql::sqlparser::ast::Statement as Ast;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::change::Target;
use super::engine::{Defaults, Pin, Statement};
use super::errors::from_datafusion;
use super::gate::{Request, Show, admit, name_parts, to_engine};
use super::hidden::{self, HiddenNames};
use super::literals::fit_literals;
use super::metadata::MetadataProvider;
use super::multisets::count_occurrences;
use super::names::{Names, TableMap, full_name};
use super::output::{self, Renamed, SelectList};
use super::params::{self, Declared};
use super::plans::Plans;
use super::pool::Pool;
use super::providers::TableProviders;
use super::relations::{Mention, Relations, relations};
use super::resolve::{Resolved, Resolver, Target as Named, Wish};
use super::shape::reshape;
use super::show;
use super::source::{parse, parse_described, tokenize};
use super::spelling::Spelling;
use super::start::{PLACE, RowsOf, Start};
use super::three_valued::three_valued;
use super::unique_names::{is_about_names, name_by_position, name_by_text};
use super::values::computable;
use super::versions::{fold, relocate};
use crate::catalog::{Catalogs, DEFAULT_SCHEMA};
use crate::error::{Error, Result};
use crate::table::{AsOf, HiddenColumn, Snapshot, TableIdent};

/// A statement ready to run.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) statement: Statement,
    /// With placeholders.
    pub(super) plan: LogicalPlan,
    pub(super) parameters: Vec<Declared>,
    /// Of the result, with the names that clients see.
    pub(super) schema: SchemaRef,
}

/// What planning needs from the engine.
#[derive(Debug, Clone)]
pub(super) struct Planner {
    pub(super) catalogs: Arc<Catalogs>,
    pub(super) providers: Arc<dyn TableProviders>,
    pub(super) state: Arc<SessionState>,
    pub(super) pool: Arc<Pool>,
    pub(super) plans: Plans,
}

/// A statement as read, before names are looked up.
struct Reading {
    tokens: Vec<TokenWithSpan>,
    parameters: Vec<String>,
    request: Request,
    relations: Relations,
    /// Parallel to the mentions of `relations`.
    wishes: Vec<Wish>,
    written: SelectList,
    /// Hidden columns that the statement's text names.
    hidden: Vec<HiddenColumn>,
}

/// Reads the query of a statement. `state` works out the versions that tables are asked for in; without it they
/// are left out.
fn read(sql: &str, start: &Start, state: Option<&SessionState>) -> Result<Reading> {
    let mut source = tokenize(sql)?;
    let hidden = hidden::named(&source.tokens);
    match start {
        Start::At(from) => drop(source.tokens.drain(..(*from).min(source.tokens.len()))),
        Start::Rows(rows) => source.tokens = rows.query(&source.tokens),
    }
    let (mut statement, described) = parse_described(&source.tokens)?;
    if let Start::Rows(rows) = start {
        rows.check(&statement)?;
    }
    reshape(&mut statement)?;
    let written = SelectList::of(&statement);
    let request = admit(statement)?;
    let relations = match &request {
        Request::Query(statement) => relations(statement)?,
        Request::Show(listing) => match listing.as_ref() {
            Show::Columns { table, .. } | Show::Describe { table } => Relations {
                mentions: vec![Mention {
                    parts: name_parts(table)?,
                    version: described,
                }],
                factors: Vec::new(),
            },
            _ => Relations::default(),
        },
    };
    let wishes = relations.mentions.iter().map(|mention| {
        let version = mention.version.as_ref();
        let version = match (version, state) {
            (Some(version), Some(state)) => Some(fold(version, state)?),
            // Pinned: the pin tells.
            (Some(_), None) => Some(AsOf::Latest),
            (None, _) => None,
        };
        Ok(Wish {
            parts: mention.parts.clone(),
            version,
        })
    });
    let wishes = wishes.collect::<Result<_>>()?;
    Ok(Reading {
        tokens: source.tokens,
        parameters: source.parameters,
        request,
        relations,
        wishes,
        written,
        hidden,
    })
}

impl Planner {
    /// Plans a statement; with `pins`, on those snapshots instead of the newest.
    pub(super) async fn prepare(&self, sql: &str, defaults: &Defaults, pins: Option<&[Pin]>) -> Result<Prepared> {
        self.prepare_query(sql, 0, None, defaults, pins).await
    }

    /// Plans the query of a statement; its rows become those of `target`.
    pub(super) async fn prepare_query(
        &self,
        sql: &str,
        start: impl Into<Start>,
        target: Option<Target>,
        defaults: &Defaults,
        pins: Option<&[Pin]>,
    ) -> Result<Prepared> {
        let text = sql.to_owned();
        let start = start.into();
        let begins = start.clone();
        let state = pins.is_none().then(|| Arc::clone(&self.state));
        let mut reading = self.pool.plan(move || read(&text, &start, state.as_deref())).await?;
        let is_whole = matches!(begins, Start::At(0));
        if !is_whole && !matches!(&reading.request, Request::Query(ast) if matches!(**ast, Ast::Query(_))) {
            return Err(Error::invalid("only a query gives rows to write: SELECT, WITH, VALUES or TABLE"));
        }
        let resolver = Resolver {
            catalogs: &self.catalogs,
            defaults,
            pins,
        };
        let mut resolved = resolver.resolve(&reading.wishes).await?;
        let mut described = None;
        if let Request::Show(listing) = &reading.request {
            if !reading.parameters.is_empty() {
                return Err(Error::invalid("SHOW and DESCRIBE take no parameters"));
            }
            if let Some(table) = resolved.first() {
                described = Some(show::columns(table.ident(), &table.schema())?);
            }
            let query = show::query(listing, &self.catalogs, defaults.catalog.as_deref()).await?;
            let listed = self.pool.plan(move || read(&query, &Start::At(0), None)).await?;
            let others: Vec<_> = listed.wishes.iter().filter(|w| w.parts != show::COLUMNS).cloned().collect();
            resolved.extend(resolver.resolve(&others).await?);
            reading = listed;
        }
        let is_query = matches!(reading.request, Request::Query(_));
        if is_query {
            show_hidden(&mut resolved, reading.hidden.clone())?;
        }
        if let Start::Rows(rows) = &begins {
            show_places(&mut resolved, rows, &reading.hidden)?;
        }
        let mut pinned: Vec<Pin> = Vec::new();
        for one in &resolved {
            let Some(pin) = &one.pin else { continue };
            match pinned.iter_mut().find(|p| p.is_same(pin)) {
                Some(known) => known.mentions.extend(&pin.mentions),
                None => pinned.push(pin.clone()),
            }
        }
        let statement = Statement {
            sql: sql.to_owned(),
            defaults: defaults.clone(),
            pins: pinned,
        };
        let is_kept = is_query && is_whole && described.is_none() && target.is_none();
        if is_kept && let Some(prepared) = self.plans.get(&statement, &resolved).await {
            return Ok(prepared);
        }
        let planner = self.clone();
        let on = resolved.clone();
        let plan = move || planner.finish(statement, reading, &on, described, target.as_ref());
        let prepared = self.pool.plan(plan).await?;
        if is_kept {
            self.plans.keep(&prepared, &resolved).await;
        }
        Ok(prepared)
    }

    fn finish(
        &self,
        statement: Statement,
        reading: Reading,
        resolved: &[Resolved],
        described: Option<Arc<dyn TableProvider>>,
        target: Option<&Target>,
    ) -> Result<Prepared> {
        let default_catalog = self.catalogs.catalog(statement.defaults.catalog.as_deref()).ok();
        let default_catalog = default_catalog.map(|c| c.name().to_owned());
        let default_schema = statement.defaults.schema.clone().unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());

        let columns_ident = TableIdent::new(show::COLUMNS[0], show::COLUMNS[1], show::COLUMNS[2]);
        let columns_schema = described.as_ref().map(|d| d.schema());
        let info_schemas: Vec<_> = resolved.iter().map(|r| r.schema()).collect();
        // Names of listings cannot be shown otherwise than they are, so those decide first.
        let mut stored: Vec<_> = resolved.iter().zip(&info_schemas).collect();
        stored.sort_by_key(|(r, _)| matches!(r.target, Named::Table(_)));
        let stored = stored.into_iter().map(|(r, schema)| (r.ident(), schema));
        let stored = stored.chain(columns_schema.as_ref().map(|schema| (&columns_ident, schema)));
        let mut spelling = Spelling::new(stored);
        let mut tokens = reading.tokens;
        let doubt = spelling.apply(&mut tokens);

        let (catalog, schema) = (default_catalog.as_deref().unwrap_or_default(), default_schema.as_str());
        let defaults = [spelling.of(catalog), spelling.of(schema)];
        let is_listing = described.is_some();
        let (tables, renamed) = self.expose(&spelling, resolved, described, defaults)?;

        let mut ast = parse(&tokens)?;
        reshape(&mut ast)?;
        hidden::leave_out(&mut ast, &hidden_names(resolved, &spelling))?;
        let Request::Query(mut ast) = admit(ast)? else {
            return Err(Error::internal("a listing was not made a query"));
        };
        relocate(&mut ast, &reading.relations.factors, |mention| {
            // A listing's own tables are found under their names.
            let one = if is_listing { None } else { resolved.get(mention) };
            one.and_then(|one| one.place.as_ref())
        })?;
        let names = Names {
            state: &self.state,
            tables: &tables,
            defaults,
            current: (default_catalog.as_deref(), schema),
        };
        let options = &self.state.config_options().sql_parser;
        let sql_to_rel = SqlToRel::new_with_options(
            &names,
            ParserOptions {
                enable_ident_normalization: options.enable_ident_normalization,
                map_string_types_to_utf8view: options.map_string_types_to_utf8view,
                ..ParserOptions::new()
            },
        );
        let values = target.and_then(|target| target.plan_values(&sql_to_rel, &ast));
        let plan = match values {
            Some(planned) => planned,
            None => plan_uniquely(&sql_to_rel, *ast, target.is_some_and(Target::goes_by_position))?,
        };
        let plan = plan
            .and_then(computable)
            .and_then(count_occurrences)
            .and_then(three_valued)
            .and_then(fit_literals)
            .and_then(|plan| match target {
                Some(target) => target.fit(plan),
                None => Ok(plan),
            })
            .map_err(|e| doubt.unwrap_or_else(|| from_datafusion(e)))?;
        let read_only = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        read_only.verify_plan(&plan).map_err(from_datafusion)?;

        let (parameters, planned) = type_parameters(&plan, &reading.parameters)?;
        let schema = match target {
            Some(target) => target.schema(),
            None => output::schema(&planned, &reading.written, &renamed, defaults),
        };
        Ok(Prepared {
            statement,
            plan,
            parameters,
            schema,
        })
    }

    fn expose(
        &self,
        spelling: &Spelling,
        resolved: &[Resolved],
        described: Option<Arc<dyn TableProvider>>,
        defaults: [&str; 2],
    ) -> Result<(TableMap, Renamed)> {
        let mut tables = TableMap::new();
        let mut renamed = Renamed::new();
        // One provider per snapshot, so that all mentions share it.
        let mut made: Vec<(&Arc<dyn Snapshot>, Arc<dyn TableProvider>)> = Vec::new();
        for one in resolved {
            let parts: Vec<String> = one.parts.iter().map(|p| spelling.of(p).to_owned()).collect();
            let Some(key) = one.place.clone().or_else(|| full_name(&parts, defaults)) else {
                return Err(Error::internal("a name has too many parts"));
            };
            let provider: Arc<dyn TableProvider> = match &one.target {
                Named::Info(_, info) => Arc::clone(info) as _,
                Named::Metadata(_, table) => Arc::new(MetadataProvider::new(Arc::clone(table))),
                Named::Table(snapshot) => {
                    let (exposed, columns) = spelling.expose(Arc::clone(snapshot));
                    if !columns.is_empty() {
                        renamed.insert(key.clone(), columns);
                    }
                    match made.iter().find(|(known, _)| Arc::ptr_eq(known, snapshot)) {
                        Some((_, provider)) => Arc::clone(provider),
                        None => {
                            let provider = Arc::clone(&self.providers).provider(exposed)?;
                            made.push((snapshot, Arc::clone(&provider)));
                            provider
                        }
                    }
                }
            };
            tables.insert(key, provider);
        }
        if let Some(described) = described {
            tables.insert(show::COLUMNS.map(str::to_owned), described);
        }
        Ok((tables, renamed))
    }
}

/// Plans; where columns of a SELECT list come out under one name, with names for its casts and subqueries.
fn plan_uniquely(planner: &SqlToRel<'_, Names<'_>>, mut ast: Ast, by_position: bool) -> Result<DfResult<LogicalPlan>> {
    let planned = planner.statement_to_plan(to_engine(ast.clone())?);
    match &planned {
        Err(e) if is_about_names(e) => {
            let named = match &mut ast {
                Ast::Query(query) if by_position => name_by_position(&mut query.body),
                _ => false,
            };
            // Also what lies deeper.
            if !name_by_text(&mut ast) && !named {
                return Ok(planned);
            }
            let named = planner.statement_to_plan(to_engine(ast)?);
            Ok(if named.is_ok() { named } else { planned })
        }
        _ => Ok(planned),
    }
}

/// Gives the tables the hidden columns that the statement names.
fn show_hidden(resolved: &mut [Resolved], named: Vec<HiddenColumn>) -> Result<()> {
    if named.is_empty() {
        return Ok(());
    }
    let schemas: Vec<_> = resolved.iter().map(Resolved::schema).collect();
    let kinds = hidden::available(named, schemas.iter());
    for one in resolved {
        if let Named::Table(snapshot) = &mut one.target {
            *snapshot = hidden::with_hidden(Arc::clone(snapshot), &kinds)?;
        }
    }
    Ok(())
}

/// Gives the table that rows are looked for in the columns that say where they lie.
///
/// Errors: `Unsupported` for a table that has columns of these names.
fn show_places(resolved: &mut [Resolved], rows: &RowsOf, named: &[HiddenColumn]) -> Result<()> {
    let lost = || Error::internal("the table that is changed is not read");
    let one = resolved.iter_mut().find(|one| one.parts == rows.table).ok_or_else(lost)?;
    let Named::Table(snapshot) = &mut one.target else {
        return Err(Error::unsupported("rows of metadata tables and listings cannot be changed"));
    };
    let taken = |kind: &HiddenColumn| {
        let mut pairs = snapshot.schema().fields().iter().zip(snapshot.columns());
        pairs.any(|(field, column)| field.name().eq_ignore_ascii_case(kind.name()) && column.id != kind.id())
    };
    if let Some(kind) = PLACE.iter().find(|kind| taken(kind)) {
        let message = format!(
            "rows of a table that has a column named {} cannot be changed: rename it",
            kind.name()
        );
        return Err(Error::unsupported(message).with("table", snapshot.table()));
    }
    let missing: Vec<HiddenColumn> = PLACE.into_iter().filter(|kind| !named.contains(kind)).collect();
    *snapshot = hidden::with_places(Arc::clone(snapshot), &missing)?;
    Ok(())
}

/// The hidden columns that the tables were given, as the statement spells all names.
fn hidden_names(resolved: &[Resolved], spelling: &Spelling) -> HiddenNames {
    let spelled = |names: &[String]| names.iter().map(|n| spelling.of(n).to_owned()).collect::<Vec<_>>();
    let tables = resolved.iter().filter_map(|one| match &one.target {
        Named::Table(snapshot) => Some((spelled(&one.parts), spelled(&hidden::hidden_names(snapshot.as_ref())))),
        Named::Metadata(..) | Named::Info(..) => None,
    });
    tables.filter(|(_, hidden)| !hidden.is_empty()).collect()
}

/// Types of the parameters, and the plan with nulls for them. Where nothing tells a type it is
/// text, unless only a number makes the statement valid (an argument of a function).
fn type_parameters(plan: &LogicalPlan, names: &[String]) -> Result<(Vec<Declared>, LogicalPlan)> {
    if names.is_empty() {
        return Ok((Vec::new(), plan.clone()));
    }
    let mut failure = None;
    for fallback in [DataType::Utf8, DataType::Int64, DataType::Float64] {
        let parameters = params::declare(plan, names, &fallback)?;
        let nulls = params::nulls(&parameters)?;
        match plan.clone().with_param_values(nulls) {
            Ok(planned) => return Ok((parameters, planned)),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    Err(failure.map_or_else(|| Error::internal("no type for a parameter"), from_datafusion))
}

impl Resolved {
    fn ident(&self) -> &TableIdent {
        match &self.target {
            Named::Table(snapshot) => snapshot.table(),
            Named::Metadata(ident, _) | Named::Info(ident, _) => ident,
        }
    }

    fn schema(&self) -> SchemaRef {
        match &self.target {
            Named::Table(snapshot) => Arc::clone(snapshot.schema()),
            Named::Metadata(_, table) => Arc::clone(table.schema()),
            Named::Info(_, info) => info.schema(),
        }
    }
}
