//! Logs and query ids.
