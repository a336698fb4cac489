//! The engine's state that all statements share: functions, optimizer rules, memory.
//!
//! Invariants: no object store is registered, no file format and no table factory, so no plan
//! can reach a file by itself (SE-22, SE-30); memory for queries is bounded.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SessionStateDefaults, config::SessionConfig};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use super::bounded::bounded;
use super::errors::from_datafusion;
use super::functions::WITHDRAWN;
use super::literals::ComparedLiterals;
use super::regular::regexp_like;
use super::types::ZONE;
use super::variant_get::variant_get;
use crate::error::Result;
use crate::scan::ProvedFilters;

/// Rows of a batch between operators.
const BATCH_ROWS: usize = 8192;
/// Consumers that an error about memory names.
const NAMED_CONSUMERS: usize = 5;

/// The state that each statement starts from. `memory` in bytes, `cores` is the width of plans.
pub(super) fn base_state(memory: u64, cores: usize) -> Result<SessionState> {
    let mut functions = SessionStateDefaults::default_scalar_functions();
    let own = [variant_get(), regexp_like()];
    functions.retain(|f| !WITHDRAWN.contains(&f.name()) && own.iter().all(|own| own.name() != f.name()));
    functions.extend(own);
    let functions = functions.into_iter().map(bounded).collect();
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(ComparedLiterals));
    let mut rules = PhysicalOptimizer::new().rules;
    // It looks columns up by name, so that of two of one name, above a join, each may become the other. What is of use to
    // a scan was pushed down in the logical plan.
    rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
    rules.insert(0, Arc::new(ProvedFilters));
    let state = SessionStateBuilder::new()
        .with_config(config(cores))
        .with_runtime_env(runtime_env(memory)?)
        .with_scalar_functions(functions)
        .with_higher_order_functions(SessionStateDefaults::default_higher_order_functions())
        .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
        .with_window_functions(SessionStateDefaults::default_window_functions())
        .with_table_function_list(SessionStateDefaults::default_table_functions())
        .with_expr_planners(planners)
        .with_physical_optimizer_rules(rules)
        .build();
    Ok(state)
}

fn config(cores: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(cores)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.time_zone = Some(ZONE.to_owned());
    // Its filters look numbers up by their bits, so that 0.0 would not find -0.0.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    config
}

fn runtime_env(memory: u64) -> Result<Arc<RuntimeEnv>> {
    let bytes = usize::try_from(memory).unwrap_or(usize::MAX);
    let named = NonZeroUsize::new(NAMED_CONSUMERS).unwrap_or(NonZeroUsize::MIN);
    let pool = TrackConsumersPool::new(FairSpillPool::new(bytes), named);
    // The engine's registry comes with the whole file system in it; ours is empty.
    let stores = DefaultObjectStoreRegistry::new();
    let files = ObjectStoreUrl::local_filesystem();
    stores.deregister_store(files.as_ref()).map_err(from_datafusion)?;
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_object_store_registry(Arc::new(stores))
        .build_arc()
        .map_err(from_datafusion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_can_be_reached() {
        let state = base_state(1 << 20, 2).unwrap();
        let files = ObjectStoreUrl::local_filesystem();
        assert!(state.runtime_env().object_store(files).is_err());
        assert!(state.table_factories().is_empty());
        for name in state.table_functions().keys() {
            assert!(["generate_series", "range"].contains(&name.as_str()), "{name}");
        }
        for name in state.scalar_functions().keys() {
            let suspicious = ["file", "read", "env", "url", "http", "load", "exec"];
            assert!(!suspicious.iter().any(|s| name.contains(s)), "{name}");
        }
    }
}
