//! Errors on their way into and out of the crate.

use std::error::Error as StdError;

use delta_kernel::KernelError;

use crate::error::{Error, ErrorKind};

/// Our error as one of the crate's, to be found again by [`own`].
pub(super) fn wrapped(error: Error) -> KernelError {
    match error.kind() {
        // Asked for by the crate: what a log may lack is looked for.
        ErrorKind::NotFound => KernelError::FileNotFound(error.to_string()),
        _ => KernelError::generic_err(error),
    }
}

/// The crate's error as ours: our own that is inside, or the kind that its variant means.
pub(super) fn own(error: &KernelError) -> Error {
    own_of("file actions", error)
}

/// As [`own`], where something else of the log was read.
pub(super) fn own_of(what: &str, error: &KernelError) -> Error {
    let bare = error.without_backtrace();
    if let Some(inside) = find(bare) {
        return inside;
    }
    let kind = match bare {
        KernelError::Unsupported(_) | KernelError::ChangeDataFeedUnsupported(_) => ErrorKind::Unsupported,
        KernelError::FileNotFound(_)
        | KernelError::EmptyLog
        | KernelError::MissingVersion(_)
        | KernelError::StartVersionNotFound { .. }
        | KernelError::InvalidTableLocation(_)
        | KernelError::LogHistory(_) => ErrorKind::NotFound,
        KernelError::InternalError(_) | KernelError::JoinFailure(_) => ErrorKind::Internal,
        _ => ErrorKind::Corrupt,
    };
    // What it says is one line; a schema is not printed in full.
    let said = bare.to_string();
    let mut text: String = said.lines().next().unwrap_or_default().chars().take(MOST).collect();
    if text.len() < said.len() {
        text.push_str(" ..");
    }
    Error::new(kind, format!("the Delta log's {what} cannot be read: {text}"))
}

/// Most characters of a foreign message that are repeated.
const MOST: usize = 400;

fn find(error: &KernelError) -> Option<Error> {
    let mut next: Option<&(dyn StdError + 'static)> = match error {
        KernelError::GenericError { source } => Some(source.as_ref()),
        other => other.source(),
    };
    while let Some(cause) = next {
        if let Some(own) = cause.downcast_ref::<Error>() {
            return Some(own.share());
        }
        if let Some(KernelError::GenericError { source }) = cause.downcast_ref::<KernelError>() {
            next = Some(source.as_ref());
            continue;
        }
        next = cause.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_errors_keep_kind_and_context() {
        let error = Error::permission_denied("outside").with("file", "/x");
        let back = own(&wrapped(error));
        assert_eq!(back.kind(), ErrorKind::PermissionDenied);
        assert_eq!(back.to_string(), "outside (file: /x)");
        let back = own(&KernelError::unsupported("feature x").with_backtrace());
        assert_eq!(back.kind(), ErrorKind::Unsupported);
    }
}
