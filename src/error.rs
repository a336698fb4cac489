//! The one error type of the crate.
//!
//! An [`Error`] has a kind out of a short stable list, a lower-case message, and
//! context (table, file, snapshot, ...) as key-value pairs that are printed behind
//! the message. The kind decides the gRPC code (`server::status`), the exit code and
//! whether a caller may retry. Messages never hold secrets: nothing that came from
//! a credential is ever put into one.

use std::error::Error as StdError;
use std::fmt;

/// Result with the crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as far as a caller can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: SQL that does not parse, a bad argument, a bad configuration key.
    InvalidInput,
    /// The named catalog, schema, table, snapshot or file does not exist.
    NotFound,
    /// The thing to be created is there already.
    AlreadyExists,
    /// Valid, but not built: a format version, file format, type, feature or statement.
    Unsupported,
    /// Foreign bytes break their own format: metadata, manifest, delete file, data file.
    Corrupt,
    /// The caller may not do this, or a path lies outside of the allowed roots.
    PermissionDenied,
    /// A limit of memory, concurrency or size was reached.
    ResourceExhausted,
    /// Another commit won and this one cannot be replayed on top of it.
    CommitConflict,
    /// The commit may or may not have happened.
    CommitStateUnknown,
    /// The caller gave up.
    Cancelled,
    /// The deadline passed.
    DeadlineExceeded,
    /// Storage or a remote service failed; trying again may help.
    Unavailable,
    /// A defect of this program.
    Internal,
}

impl ErrorKind {
    /// The kind's stable name, as it appears in error details and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "INVALID_INPUT",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Unsupported => "UNSUPPORTED",
            Self::Corrupt => "CORRUPT",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::CommitConflict => "COMMIT_CONFLICT",
            Self::CommitStateUnknown => "COMMIT_STATE_UNKNOWN",
            Self::Cancelled => "CANCELLED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }
}

/// An error with its kind, message, context and cause. Cheap to move (one pointer).
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident),* $(,)?) => {
        impl Error {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self { Self::new(ErrorKind::$kind, message) })*
        }
    };
}

constructors! {
    /// [`ErrorKind::InvalidInput`]
    invalid => InvalidInput,
    /// [`ErrorKind::NotFound`]
    not_found => NotFound,
    /// [`ErrorKind::Unsupported`]
    unsupported => Unsupported,
    /// [`ErrorKind::Corrupt`]
    corrupt => Corrupt,
    /// [`ErrorKind::PermissionDenied`]
    permission_denied => PermissionDenied,
    /// [`ErrorKind::ResourceExhausted`]
    resource_exhausted => ResourceExhausted,
    /// [`ErrorKind::Cancelled`]
    cancelled => Cancelled,
    /// [`ErrorKind::Unavailable`]
    unavailable => Unavailable,
    /// [`ErrorKind::Internal`]
    internal => Internal,
}

impl Error {
    /// An error of `kind`; `message` is lower case and without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            source: None,
        }))
    }

    /// Adds a context pair, for example `("table", ...)` or `("file", ...)`. A key that is
    /// already there is kept, so the innermost (most exact) value wins.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        if !self.0.context.iter().any(|(k, _)| *k == key) {
            self.0.context.push((key, value.to_string()));
        }
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without context and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The context pairs, innermost first.
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }

    /// A copy that can be handed to several waiters (the cause becomes text).
    pub fn share(&self) -> Self {
        let mut copy = Self::new(self.0.kind, self.0.message.clone());
        copy.0.context.clone_from(&self.0.context);
        copy.0.source = self.0.source.as_ref().map(|s| s.to_string().into());
        copy
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for (i, (key, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{key}: {value}", if i == 0 { " (" } else { ", " })?;
        }
        if !self.0.context.is_empty() {
            f.write_str(")")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.kind.as_str())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn StdError + 'static))
    }
}

/// Adds context to the error side of a result.
pub trait ResultExt<T> {
    /// Adds a context pair, computed only on error.
    fn context<V: fmt::Display>(self, key: &'static str, value: impl FnOnce() -> V) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn context<V: fmt::Display>(self, key: &'static str, value: impl FnOnce() -> V) -> Result<T> {
        self.map_err(|e| e.with(key, value()))
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(e: arrow::error::ArrowError) -> Self {
        match e {
            arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Self::internal("arrow failed").with_source(other),
            },
            other => Self::internal("arrow failed").with_source(other),
        }
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(e: parquet::errors::ParquetError) -> Self {
        match e {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Self::corrupt("cannot read parquet file").with_source(other),
            },
            other => Self::corrupt("cannot read parquet file").with_source(other),
        }
    }
}
