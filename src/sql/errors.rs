//! From the engine's errors to ours and back.
//!
//! Invariants: an [`Error`] that was wrapped on its way through the engine comes out as it went
//! in; a wrong statement is `InvalidInput`, a defect is `Internal`.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use crate::error::{Error, ErrorKind};

/// Longest text of an engine's error that is handed on, in bytes.
const MAX_TEXT: usize = 4096;

/// Our error for an engine's error.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err passes")]
pub fn from_datafusion(error: DataFusionError) -> Error {
    match own(&error) {
        Some(own) => own.share(),
        None => foreign(&error),
    }
}

/// An error on its way through the engine's streams and traits.
pub fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Our own error inside an engine's error.
fn own(error: &DataFusionError) -> Option<&Error> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut steps = 0;
    while let Some(current) = next {
        if let Some(own) = current.downcast_ref::<Error>() {
            return Some(own);
        }
        steps += 1;
        if steps > 64 {
            return None;
        }
        next = match current.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ArrowError(inner, _)) => Some(inner.as_ref()),
            Some(DataFusionError::Collection(all)) => all.iter().find_map(own).map(|own| own as _).or_else(|| current.source()),
            Some(_) => current.source(),
            None => match current.downcast_ref::<arrow::error::ArrowError>() {
                Some(arrow::error::ArrowError::ExternalError(inner)) => Some(inner.as_ref()),
                _ => current.source(),
            },
        };
    }
    None
}

/// The cause below what the engine says about its own inside (names of optimizer rules).
fn cause(error: &DataFusionError) -> &DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => cause(inner),
        DataFusionError::Shared(inner) => cause(inner),
        other => other,
    }
}

fn foreign(error: &DataFusionError) -> Error {
    let kind = kind(error);
    let mut text = cause(error).strip_backtrace();
    for prefix in [
        "Error during planning: ",
        "Schema error: ",
        "SQL error: ",
        "Execution error: ",
        "This feature is not implemented: ",
        "Arrow error: ",
    ] {
        if let Some(rest) = text.strip_prefix(prefix) {
            text = rest.to_owned();
        }
    }
    Error::new(kind, shorten(&one_sentence(&text), MAX_TEXT))
}

/// One line that begins like our own messages: lower case, unless the word is in capitals.
fn one_sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = line.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second.is_whitespace() => {
            let rest = line.get(first.len_utf8()..).unwrap_or_default();
            format!("{}{rest}", first.to_lowercase())
        }
        _ => line,
    }
}

fn kind(error: &DataFusionError) -> ErrorKind {
    use arrow::error::ArrowError;
    match error {
        DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::Execution(_) | DataFusionError::Configuration(_) => {
            ErrorKind::InvalidInput
        }
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::AmbiguousReference { .. }
            | SchemaError::DuplicateQualifiedField { .. }
            | SchemaError::DuplicateUnqualifiedField { .. }
            | SchemaError::FieldNotFound { .. } => ErrorKind::InvalidInput,
        },
        DataFusionError::NotImplemented(_) => ErrorKind::Unsupported,
        DataFusionError::ResourcesExhausted(_) => ErrorKind::ResourceExhausted,
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => kind(inner),
        DataFusionError::Shared(inner) => kind(inner),
        DataFusionError::Collection(all) => all.first().map_or(ErrorKind::Internal, kind),
        DataFusionError::IoError(_) => ErrorKind::Unavailable,
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            // What the kernels say about values: overflow, a cast that fails, a division by zero.
            ArrowError::CastError(_)
            | ArrowError::ParseError(_)
            | ArrowError::ComputeError(_)
            | ArrowError::DivideByZero
            | ArrowError::ArithmeticOverflow(_)
            | ArrowError::InvalidArgumentError(_) => ErrorKind::InvalidInput,
            ArrowError::NotYetImplemented(_) => ErrorKind::Unsupported,
            ArrowError::MemoryError(_) => ErrorKind::ResourceExhausted,
            _ => ErrorKind::Internal,
        },
        _ => ErrorKind::Internal,
    }
}

/// Our error for text that is no SQL.
pub(super) fn from_parser(error: ParserError) -> Error {
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            Error::invalid(format!("cannot read the statement: {}", shorten(&text, MAX_TEXT)))
        }
        ParserError::RecursionLimitExceeded => Error::invalid("the statement is nested too deeply"),
    }
}

/// At most `limit` bytes of `text`.
fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let cut = (0..=limit).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    format!("{}...", text.get(..cut).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_own_error_comes_out_as_it_went_in() {
        let wrapped = DataFusionError::Shared(Arc::new(
            DataFusionError::ArrowError(
                Box::new(arrow::error::ArrowError::ExternalError(Box::new(to_datafusion(
                    Error::corrupt("bad manifest").with("file", "m.avro"),
                )))),
                None,
            )
            .context("scanning"),
        ));
        let e = from_datafusion(wrapped);
        assert_eq!(e.kind(), ErrorKind::Corrupt);
        assert_eq!(e.to_string(), "bad manifest (file: m.avro)");
        let e = from_datafusion(DataFusionError::Collection(vec![
            DataFusionError::Plan("x".into()),
            to_datafusion(Error::not_found("y")),
        ]));
        assert_eq!(e.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn kinds_follow_the_cause() {
        let kind = |e| from_datafusion(e).kind();
        assert_eq!(kind(DataFusionError::Plan("x".into())), ErrorKind::InvalidInput);
        assert_eq!(kind(DataFusionError::NotImplemented("x".into())), ErrorKind::Unsupported);
        assert_eq!(
            kind(DataFusionError::ResourcesExhausted("x".into()).context("y")),
            ErrorKind::ResourceExhausted
        );
        assert_eq!(kind(DataFusionError::Internal("x".into())), ErrorKind::Internal);
        let overflow = arrow::error::ArrowError::ArithmeticOverflow("x".into());
        assert_eq!(kind(overflow.into()), ErrorKind::InvalidInput);
        let two_lines = from_datafusion(DataFusionError::Plan("No field named x.\nValid fields are y.".into()));
        assert_eq!(two_lines.message(), "no field named x. Valid fields are y.");
        let long = from_datafusion(DataFusionError::Plan("ü".repeat(10_000)));
        assert!(long.message().len() < 5000);
    }
}
