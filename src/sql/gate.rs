//! Which statements run: an allow-list over the parsed statement (SE-30).
//!
//! Invariants: what is not named here is refused; a clause that the planner would read and then
//! ignore is refused as well, since an ignored clause is a wrong answer.

use std::ops::ControlFlow;

use datafusion::common::format::{ExplainFormat, ExplainStatementOptions};
use datafusion::sql::parser::{ExplainStatement, Statement as EngineStatement};
use datafusion::sql::sqlparser::ast::{
    AnalyzeFormat, AnalyzeFormatKind, DescribeAlias, Expr, FunctionArguments, ObjectName, OrderByKind, Query, Select, SetExpr,
    ShowStatementFilter, ShowStatementFilterPosition, ShowStatementIn, ShowStatementInParentType, ShowStatementOptions, Statement as Ast,
    TableAlias, TableFactor, UtilityOption, Value, ValueWithSpan, Visit, Visitor,
};

use super::source::refused;
use super::versions;
use crate::error::{Error, Result};

/// A statement that passed.
#[derive(Debug, Clone)]
pub(super) enum Request {
    /// A query, or EXPLAIN of one.
    Query(Box<Ast>),
    Show(Box<Show>),
}

/// Listings.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Show {
    Catalogs {
        filter: Option<ShowStatementFilter>,
    },
    Schemas {
        catalog: Option<String>,
        filter: Option<ShowStatementFilter>,
    },
    /// `within`: a schema, or a catalog and a schema.
    Tables {
        within: Vec<String>,
        filter: Option<ShowStatementFilter>,
    },
    Columns {
        table: ObjectName,
        filter: Option<ShowStatementFilter>,
    },
    Describe {
        table: ObjectName,
    },
}

/// Sorts a statement by what it asks for.
///
/// Errors: `Unsupported` for statements and clauses that are not run.
pub(super) fn admit(statement: Ast) -> Result<Request> {
    match statement {
        Ast::Query(_) => {
            check(&statement)?;
            Ok(Request::Query(Box::new(statement)))
        }
        Ast::Explain { .. } => explain(statement),
        Ast::ExplainTable {
            describe_alias: DescribeAlias::Describe | DescribeAlias::Desc,
            hive_format: None,
            table_name,
            ..
        } => Ok(show(Show::Describe { table: table_name })),
        Ast::ExplainTable { hive_format: Some(_), .. } => {
            Err(Error::unsupported("DESCRIBE EXTENDED and DESCRIBE FORMATTED are not built yet"))
        }
        Ast::ExplainTable { .. } => Err(Error::invalid("EXPLAIN takes a query; DESCRIBE shows the columns of a table")),
        Ast::ShowCatalogs { show_options, .. } | Ast::ShowDatabases { show_options, .. } => {
            let (within, filter) = listing(show_options, None)?;
            match within {
                None => Ok(show(Show::Catalogs { filter })),
                Some(_) => Err(Error::invalid("SHOW CATALOGS takes no FROM")),
            }
        }
        Ast::ShowSchemas { show_options, .. } => {
            let (within, filter) = listing(show_options, Some(&ShowStatementInParentType::Database))?;
            let catalog = match parts(within)?.as_slice() {
                [] => None,
                [catalog] => Some(catalog.clone()),
                _ => return Err(Error::invalid("SHOW SCHEMAS FROM takes the name of a catalog")),
            };
            Ok(show(Show::Schemas { catalog, filter }))
        }
        Ast::ShowTables {
            extended: false,
            external: false,
            show_options,
            ..
        } => {
            let (within, filter) = listing(show_options, Some(&ShowStatementInParentType::Schema))?;
            let within = parts(within)?;
            if within.len() > 2 {
                return Err(Error::invalid("SHOW TABLES FROM takes the name of a schema"));
            }
            Ok(show(Show::Tables { within, filter }))
        }
        Ast::ShowColumns {
            extended: false,
            show_options,
            ..
        } => match listing(show_options, Some(&ShowStatementInParentType::Table))? {
            (Some(table), filter) => Ok(show(Show::Columns { table, filter })),
            (None, _) => Err(Error::invalid("SHOW COLUMNS needs FROM and a table's name")),
        },
        Ast::ShowCreate { .. } => Err(Error::unsupported("SHOW CREATE is not built yet")),
        Ast::ShowViews { .. } => Err(Error::unsupported("views are not built yet")),
        Ast::ShowVariable { .. } | Ast::ShowVariables { .. } | Ast::ShowStatus { .. } => Err(Error::unsupported(
            "settings are not shown: SHOW takes CATALOGS, SCHEMAS, TABLES or COLUMNS",
        )),
        other => {
            let text = other.to_string();
            Err(refused(&first_word(&text)))
        }
    }
}

fn show(listing: Show) -> Request {
    Request::Show(Box::new(listing))
}

fn first_word(text: &str) -> String {
    let word = text.split(|c: char| !c.is_alphanumeric()).find(|w| !w.is_empty());
    word.unwrap_or("this statement").to_uppercase()
}

fn explain(statement: Ast) -> Result<Request> {
    let Ast::Explain {
        describe_alias,
        mut analyze,
        mut verbose,
        query_plan,
        estimate,
        statement,
        format,
        options,
    } = statement
    else {
        return Err(Error::internal("not an EXPLAIN"));
    };
    if query_plan || estimate {
        return Err(Error::unsupported(
            "EXPLAIN QUERY PLAN and EXPLAIN ESTIMATE are not supported: use EXPLAIN",
        ));
    }
    for option in options.unwrap_or_default() {
        let wanted = is_on(&option)?;
        match option.name.value.to_ascii_uppercase().as_str() {
            "ANALYZE" => analyze = wanted,
            "VERBOSE" => verbose = wanted,
            other => return Err(Error::unsupported(format!("EXPLAIN ({other}) is not supported"))),
        }
    }
    if !matches!(*statement, Ast::Query(_)) {
        let text = statement.to_string();
        return Err(refused(&format!("EXPLAIN {}", first_word(&text))));
    }
    check(&statement)?;
    Ok(Request::Query(Box::new(Ast::Explain {
        describe_alias,
        analyze,
        verbose,
        query_plan: false,
        estimate: false,
        statement,
        format,
        options: None,
    })))
}

/// A query or EXPLAIN as the planner takes it.
pub(super) fn to_engine(statement: Ast) -> Result<EngineStatement> {
    let Ast::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze,
        verbose,
        statement,
        format,
        ..
    } = statement
    else {
        return Ok(EngineStatement::Statement(Box::new(statement)));
    };
    let format = format.map(|kind| match kind {
        AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format) => format,
    });
    let format = match format {
        None => None,
        Some(AnalyzeFormat::TEXT | AnalyzeFormat::TRADITIONAL) => Some(ExplainFormat::Indent),
        Some(AnalyzeFormat::TREE) => Some(ExplainFormat::Tree),
        Some(AnalyzeFormat::JSON) => Some(ExplainFormat::PostgresJSON),
        Some(AnalyzeFormat::GRAPHVIZ) => Some(ExplainFormat::Graphviz),
    };
    if analyze && format.is_some() {
        return Err(Error::unsupported("EXPLAIN ANALYZE with FORMAT is not supported"));
    }
    Ok(EngineStatement::Explain(ExplainStatement {
        options: ExplainStatementOptions {
            analyze,
            verbose,
            format,
            ..ExplainStatementOptions::default()
        },
        statement: Box::new(EngineStatement::Statement(statement)),
    }))
}

fn is_on(option: &UtilityOption) -> Result<bool> {
    match option.arg.as_ref().map(|a| a.to_string().to_ascii_lowercase()).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => Err(Error::invalid(format!("EXPLAIN ({}) takes true or false", option.name))),
    }
}

/// FROM and filter of a SHOW.
fn listing(
    options: ShowStatementOptions,
    parent: Option<&ShowStatementInParentType>,
) -> Result<(Option<ObjectName>, Option<ShowStatementFilter>)> {
    let ShowStatementOptions {
        show_in,
        starts_with,
        limit,
        limit_from,
        filter_position,
    } = options;
    if starts_with.is_some() || limit.is_some() || limit_from.is_some() {
        return Err(Error::unsupported("SHOW takes FROM, LIKE and WHERE only"));
    }
    let within = match show_in {
        None => None,
        Some(ShowStatementIn {
            parent_type, parent_name, ..
        }) => {
            if parent_type.is_some() && parent_type.as_ref() != parent {
                return Err(Error::unsupported("SHOW takes FROM and a name only"));
            }
            Some(parent_name.ok_or_else(|| Error::invalid("SHOW .. FROM needs a name"))?)
        }
    };
    let filter = filter_position.map(|position| match position {
        ShowStatementFilterPosition::Infix(filter) | ShowStatementFilterPosition::Suffix(filter) => filter,
    });
    Ok((within, filter))
}

fn parts(name: Option<ObjectName>) -> Result<Vec<String>> {
    match name {
        None => Ok(Vec::new()),
        Some(name) => name_parts(&name),
    }
}

/// The identifiers of a dotted name, without quotes.
pub(super) fn name_parts(name: &ObjectName) -> Result<Vec<String>> {
    let parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.clone()));
    parts
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::invalid(format!("{name} is no name of a table")))
}

/// Refuses clauses that are not carried out, anywhere in the statement.
fn check(statement: &Ast) -> Result<()> {
    match statement.visit(&mut Checker) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Checker;

fn refuse<T>(what: &str) -> ControlFlow<Error, T> {
    ControlFlow::Break(Error::unsupported(format!("{what} is not supported")))
}

fn refuse_if(condition: bool, what: &str) -> ControlFlow<Error> {
    if condition { refuse(what) } else { ControlFlow::Continue(()) }
}

impl Visitor for Checker {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &Ast) -> ControlFlow<Error> {
        match statement {
            Ast::Query(_) | Ast::Explain { .. } => ControlFlow::Continue(()),
            other => ControlFlow::Break(refused(&first_word(&other.to_string()))),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        refuse_if(!query.locks.is_empty(), "FOR UPDATE and FOR SHARE")?;
        refuse_if(query.for_clause.is_some(), "FOR XML and FOR JSON")?;
        refuse_if(query.settings.is_some(), "SETTINGS in a query")?;
        refuse_if(query.format_clause.is_some(), "FORMAT in a query")?;
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                refuse_if(cte.from.is_some(), "FROM behind a WITH query")?;
                check_alias(Some(&cte.alias))?;
            }
        }
        let order_by_all = query.order_by.as_ref().is_some_and(|o| matches!(o.kind, OrderByKind::All(_)));
        refuse_if(
            order_by_all && !matches!(*query.body, SetExpr::Select(_)),
            "ORDER BY ALL behind a set operation",
        )?;
        let mut next = query.body.as_ref();
        loop {
            next = match next {
                SetExpr::SetOperation { left, right, .. } => {
                    check_branch(right)?;
                    left
                }
                other => return check_branch(other),
            };
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        refuse_if(select.into.is_some(), "SELECT INTO: tables are served read-only, writing")?;
        refuse_if(select.select_modifiers.is_some(), "a modifier behind SELECT")?;
        refuse_if(select.top.is_some(), "SELECT TOP (write LIMIT)")?;
        refuse_if(select.exclude.is_some(), "EXCLUDE behind a SELECT list")?;
        refuse_if(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
        refuse_if(select.prewhere.is_some(), "PREWHERE")?;
        refuse_if(!select.connect_by.is_empty(), "CONNECT BY")?;
        refuse_if(!select.cluster_by.is_empty(), "CLUSTER BY")?;
        refuse_if(!select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
        refuse_if(!select.sort_by.is_empty(), "SORT BY")?;
        refuse_if(select.value_table_mode.is_some(), "SELECT AS VALUE and SELECT AS STRUCT")
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::Table {
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => {
                if let Some(version) = version {
                    refuse_if(args.is_some(), "the version of a table function")?;
                    if let Err(error) = versions::check(version) {
                        return ControlFlow::Break(error);
                    }
                }
                refuse_if(!with_hints.is_empty() || !index_hints.is_empty(), "a table hint")?;
                refuse_if(*with_ordinality, "WITH ORDINALITY")?;
                refuse_if(!partitions.is_empty(), "PARTITION behind a table's name")?;
                refuse_if(json_path.is_some(), "a path behind a table's name")?;
                refuse_if(sample.is_some(), "TABLESAMPLE")?;
                refuse_if(args.as_ref().is_some_and(|a| a.settings.is_some()), "SETTINGS in a table function")?;
                check_alias(alias.as_ref())
            }
            TableFactor::Derived { alias, sample, .. } => {
                refuse_if(sample.is_some(), "TABLESAMPLE")?;
                check_alias(alias.as_ref())
            }
            TableFactor::NestedJoin { alias, .. } => check_alias(alias.as_ref()),
            TableFactor::UNNEST {
                alias,
                with_offset,
                with_ordinality,
                ..
            } => {
                refuse_if(*with_offset || *with_ordinality, "UNNEST WITH OFFSET or ORDINALITY")?;
                check_alias(alias.as_ref())
            }
            TableFactor::Function { .. } | TableFactor::TableFunction { .. } => refuse("TABLE(..) and LATERAL of a function"),
            TableFactor::Pivot { .. } => refuse("PIVOT"),
            TableFactor::Unpivot { .. } => refuse("UNPIVOT"),
            _ => refuse("this kind of table in FROM"),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(function) => refuse_if(
                !matches!(function.parameters, FunctionArguments::None),
                "a second list of arguments behind a function",
            ),
            // The engine takes the pattern for a regular expression that may match any part.
            Expr::SimilarTo { .. } => refuse("SIMILAR TO (write LIKE, ~ or regexp_like)"),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Error> {
        match &value.value {
            Value::Placeholder(name) if !name.starts_with('$') => {
                ControlFlow::Break(Error::invalid(format!("parameter {name} is not understood: write ?, $1 or $name")))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn check_branch(branch: &SetExpr) -> ControlFlow<Error> {
    match branch {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) | SetExpr::SetOperation { .. } => ControlFlow::Continue(()),
        SetExpr::Insert(_) => ControlFlow::Break(refused("INSERT")),
        SetExpr::Update(_) => ControlFlow::Break(refused("UPDATE")),
        SetExpr::Delete(_) => ControlFlow::Break(refused("DELETE")),
        SetExpr::Merge(_) => ControlFlow::Break(refused("MERGE")),
        SetExpr::Table(_) => refuse("TABLE inside a query (write SELECT * FROM)"),
    }
}

fn check_alias(alias: Option<&TableAlias>) -> ControlFlow<Error> {
    refuse_if(alias.is_some_and(|a| a.at.is_some()), "AT behind an alias")
}
