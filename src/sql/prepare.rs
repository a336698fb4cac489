//! From text to a logical plan with its tables pinned.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::datasource::TableProvider;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::engine::{Defaults, Pin, Statement};
use super::errors::from_datafusion;
use super::gate::{Request, Show, admit, name_parts, to_engine};
use super::hidden::{self, HiddenNames};
use super::literals::fit_literals;
use super::names::{Names, TableMap, full_name};
use super::output::{self, Renamed, SelectList};
use super::params::{self, Declared};
use super::pool::Pool;
use super::providers::TableProviders;
use super::relations::relations;
use super::resolve::{Resolved, Resolver, Target};
use super::shape::reshape;
use super::show;
use super::source::{parse, tokenize};
use super::spelling::Spelling;
use crate::catalog::{Catalogs, DEFAULT_SCHEMA};
use crate::error::{Error, Result};
use crate::table::{HiddenColumn, TableIdent};

/// A statement ready to run.
#[derive(Debug)]
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
}

/// A statement as read, before names are looked up.
struct Reading {
    tokens: Vec<TokenWithSpan>,
    parameters: Vec<String>,
    request: Request,
    relations: Vec<Vec<String>>,
    written: SelectList,
}

fn read(sql: &str) -> Result<Reading> {
    let source = tokenize(sql)?;
    let mut statement = parse(&source.tokens)?;
    reshape(&mut statement)?;
    let written = SelectList::of(&statement);
    let request = admit(statement)?;
    let relations = match &request {
        Request::Query(statement) => relations(statement)?,
        Request::Show(listing) => match listing.as_ref() {
            Show::Columns { table, .. } | Show::Describe { table } => vec![name_parts(table)?],
            _ => Vec::new(),
        },
    };
    Ok(Reading {
        tokens: source.tokens,
        parameters: source.parameters,
        request,
        relations,
        written,
    })
}

impl Planner {
    /// Plans a statement; with `pins`, on those snapshots instead of the newest.
    pub(super) async fn prepare(&self, sql: &str, defaults: &Defaults, pins: Option<&[Pin]>) -> Result<Prepared> {
        let text = sql.to_owned();
        let mut reading = self.pool.plan(move || read(&text)).await?;
        let resolver = Resolver {
            catalogs: &self.catalogs,
            defaults,
            pins,
        };
        let mut resolved = resolver.resolve(&reading.relations).await?;
        let mut described = None;
        if let Request::Show(listing) = &reading.request {
            if !reading.parameters.is_empty() {
                return Err(Error::invalid("SHOW and DESCRIBE take no parameters"));
            }
            if let Some(table) = resolved.first() {
                described = Some(show::columns(table.ident(), &table.schema())?);
            }
            let query = show::query(listing, &self.catalogs, defaults.catalog.as_deref()).await?;
            let listed = self.pool.plan(move || read(&query)).await?;
            let others: Vec<_> = listed.relations.iter().filter(|r| **r != show::COLUMNS).cloned().collect();
            resolved.extend(resolver.resolve(&others).await?);
            reading = listed;
        }
        if matches!(reading.request, Request::Query(_)) {
            show_hidden(&mut resolved, hidden::named(&reading.tokens))?;
        }
        let mut pinned: Vec<Pin> = Vec::new();
        for one in &resolved {
            if let Target::Table(snapshot) = &one.target
                && !pinned.iter().any(|p| p.table == *snapshot.table())
            {
                pinned.push(Pin {
                    table: snapshot.table().clone(),
                    metadata_location: snapshot.metadata_location().to_owned(),
                    snapshot_id: snapshot.id(),
                });
            }
        }
        let statement = Statement {
            sql: sql.to_owned(),
            defaults: defaults.clone(),
            pins: pinned,
        };
        let planner = self.clone();
        let pool = Arc::clone(&self.pool);
        pool.plan(move || planner.finish(statement, reading, &resolved, described)).await
    }

    fn finish(
        &self,
        statement: Statement,
        reading: Reading,
        resolved: &[Resolved],
        described: Option<Arc<dyn TableProvider>>,
    ) -> Result<Prepared> {
        let default_catalog = self.catalogs.catalog(statement.defaults.catalog.as_deref()).ok();
        let default_catalog = default_catalog.map(|c| c.name().to_owned());
        let default_schema = statement.defaults.schema.clone().unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());

        let columns_ident = TableIdent::new(show::COLUMNS[0], show::COLUMNS[1], show::COLUMNS[2]);
        let columns_schema = described.as_ref().map(|d| d.schema());
        let info_schemas: Vec<_> = resolved.iter().map(|r| r.schema()).collect();
        let stored = resolved.iter().zip(&info_schemas).map(|(r, schema)| (r.ident(), schema));
        let stored = stored.chain(columns_schema.as_ref().map(|schema| (&columns_ident, schema)));
        let mut spelling = Spelling::new(stored);
        let mut tokens = reading.tokens;
        let doubt = spelling.apply(&mut tokens);

        let (catalog, schema) = (default_catalog.as_deref().unwrap_or_default(), default_schema.as_str());
        let defaults = [spelling.of(catalog), spelling.of(schema)];
        let (tables, renamed) = self.expose(&spelling, resolved, described, defaults)?;

        let mut ast = parse(&tokens)?;
        reshape(&mut ast)?;
        hidden::leave_out(&mut ast, &hidden_names(resolved, &spelling))?;
        let Request::Query(ast) = admit(ast)? else {
            return Err(Error::internal("a listing was not made a query"));
        };
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
        let plan = sql_to_rel
            .statement_to_plan(to_engine(*ast)?)
            .and_then(fit_literals)
            .map_err(|e| doubt.unwrap_or_else(|| from_datafusion(e)))?;
        let read_only = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        read_only.verify_plan(&plan).map_err(from_datafusion)?;

        let (parameters, planned) = type_parameters(&plan, &reading.parameters)?;
        let schema = output::schema(&planned, &reading.written, &renamed, defaults);
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
        // One provider per table, so that all mentions share it.
        let mut made: HashMap<&TableIdent, Arc<dyn TableProvider>> = HashMap::new();
        for one in resolved {
            let parts: Vec<String> = one.parts.iter().map(|p| spelling.of(p).to_owned()).collect();
            let Some(key) = full_name(&parts, defaults) else {
                return Err(Error::internal("a name has too many parts"));
            };
            let provider: Arc<dyn TableProvider> = match &one.target {
                Target::Info(_, info) => Arc::clone(info) as _,
                Target::Table(snapshot) => {
                    let (exposed, columns) = spelling.expose(Arc::clone(snapshot));
                    if !columns.is_empty() {
                        renamed.insert(key.clone(), columns);
                    }
                    match made.get(snapshot.table()) {
                        Some(provider) => Arc::clone(provider),
                        None => {
                            let provider = Arc::clone(&self.providers).provider(exposed)?;
                            made.insert(snapshot.table(), Arc::clone(&provider));
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

/// Gives the tables the hidden columns that the statement names.
fn show_hidden(resolved: &mut [Resolved], named: Vec<HiddenColumn>) -> Result<()> {
    if named.is_empty() {
        return Ok(());
    }
    let schemas: Vec<_> = resolved.iter().map(Resolved::schema).collect();
    let kinds = hidden::available(named, schemas.iter());
    for one in resolved {
        if let Target::Table(snapshot) = &mut one.target {
            *snapshot = hidden::with_hidden(Arc::clone(snapshot), &kinds)?;
        }
    }
    Ok(())
}

/// The hidden columns that the tables were given, as the statement spells all names.
fn hidden_names(resolved: &[Resolved], spelling: &Spelling) -> HiddenNames {
    let spelled = |names: &[String]| names.iter().map(|n| spelling.of(n).to_owned()).collect::<Vec<_>>();
    let tables = resolved.iter().filter_map(|one| match &one.target {
        Target::Table(snapshot) => Some((spelled(&one.parts), spelled(&hidden::hidden_names(snapshot.as_ref())))),
        Target::Info(..) => None,
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
            Target::Table(snapshot) => snapshot.table(),
            Target::Info(ident, _) => ident,
        }
    }

    fn schema(&self) -> SchemaRef {
        match &self.target {
            Target::Table(snapshot) => Arc::clone(snapshot.schema()),
            Target::Info(_, info) => info.schema(),
        }
    }
}
