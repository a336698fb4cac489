//! What the planner may look up while it plans one statement.
//!
//! Invariants: a table is one that was resolved before planning, so that a statement sees one
//! snapshot of it; no variables, no file formats, no functions but the listed ones.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::plan_datafusion_err;
use datafusion::common::{DFSchema, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::functions::{SESSION_FUNCTIONS, session_function};
use super::types::Types;

/// The tables of a statement by their full name as the statement spells it.
pub(super) type TableMap = HashMap<[String; 3], Arc<dyn TableProvider>>;

/// See the module.
pub(super) struct Names<'a> {
    pub(super) state: &'a SessionState,
    pub(super) tables: &'a TableMap,
    /// Default catalog and schema, as the statement would spell them.
    pub(super) defaults: [&'a str; 2],
    /// What `current_catalog()` and `current_schema()` say.
    pub(super) current: (Option<&'a str>, &'a str),
}

/// The three parts of a name as written.
pub(super) fn full_name(parts: &[String], defaults: [&str; 2]) -> Option<[String; 3]> {
    let [catalog, schema] = defaults.map(str::to_owned);
    match parts {
        [table] => Some([catalog, schema, table.clone()]),
        [schema, table] => Some([catalog, schema.clone(), table.clone()]),
        [catalog, schema, table] => Some([catalog.clone(), schema.clone(), table.clone()]),
        _ => None,
    }
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let full = name.clone().resolve(self.defaults[0], self.defaults[1]);
        let key = [full.catalog.to_string(), full.schema.to_string(), full.table.to_string()];
        let found = self.tables.get(&key);
        found
            .map(|table| provider_as_source(Arc::clone(table)))
            .ok_or_else(|| plan_datafusion_err!("table \"{name}\" does not exist"))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let function = self.state.table_functions().get(&name.to_lowercase());
        let function = function.ok_or_else(|| plan_datafusion_err!("table function \"{name}\" does not exist"))?;
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state.config_options()))
            .with_query_execution_start_time(self.state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let none = DFSchema::empty();
        let args = args.into_iter().map(|arg| simplifier.simplify(simplifier.coerce(arg, &none)?));
        let args = args.collect::<Result<Vec<_>>>()?;
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&args, self.state))?;
        Ok(provider_as_source(provider))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let session = session_function(name, self.current.0, self.current.1);
        session.or_else(|| self.state.scalar_functions().get(name).cloned())
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        let own = SESSION_FUNCTIONS.iter().map(|n| (*n).to_owned());
        own.chain(self.state.scalar_functions().keys().cloned()).collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}
