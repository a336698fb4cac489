//! Flight SQL service.
