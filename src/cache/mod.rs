//! Caches with byte budgets.
