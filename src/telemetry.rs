//! Logs and query ids.
//!
//! Invariants: logs go to stderr, never to stdout; text for people when stderr is a terminal, a
//! JSON object a line otherwise; work for a statement runs inside a span that has its [`QueryId`].

use std::fmt;
use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing_subscriber::EnvFilter;

use crate::config::LogConfig;
use crate::error::{Error, Result};

/// Sets up logging for the process, once.
///
/// Errors: `InvalidInput` for a filter that does not parse, `Internal` when logging was set up before.
pub fn init(log: &LogConfig) -> Result<()> {
    // What it says comes back as an error; its own lines have traces of calls. A filter that names it counts.
    let level = format!("delta_kernel=off,{}", log.level);
    let filter = EnvFilter::try_new(level).map_err(|e| Error::invalid("`log.level` is not a log filter").with_source(e))?;
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal);
    let done = if terminal { builder.try_init() } else { builder.json().try_init() };
    done.map_err(|e| Error::internal("logging is set up already").with_source(e))
}

/// Names one run of a statement in logs, errors and answers. Unique, and sorted by time of
/// creation (UUID version 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(uuid::Uuid);

impl QueryId {
    /// A new id.
    #[expect(clippy::new_without_default, reason = "no two are equal, so none is the default")]
    pub fn new() -> Self {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let mut random = [0; 10];
        // a version 4 UUID is the process's source of random bytes; byte 6 and 8 hold fixed bits
        let source = uuid::Uuid::new_v4().into_bytes();
        for (to, from) in random.iter_mut().zip(source.iter().enumerate().filter(|(i, _)| *i != 6 && *i != 8)) {
            *to = *from.1;
        }
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// The span that the statement's work belongs to.
    pub fn span(&self) -> tracing::Span {
        tracing::info_span!("query", query_id = %self)
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

impl fmt::Debug for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_ids_are_unique_and_sort_by_time() {
        let first = QueryId::new();
        let many: std::collections::HashSet<_> = (0..1000).map(|_| QueryId::new()).collect();
        assert_eq!(many.len(), 1000);
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(first < QueryId::new());
    }

    #[test]
    fn a_query_id_is_a_version_7_uuid_in_hex() {
        let text = QueryId::new().to_string();
        assert_eq!(text.len(), 32);
        assert!(text.chars().all(|c| c.is_ascii_hexdigit()));
        assert_eq!(text.as_bytes()[12], b'7');
    }
}
