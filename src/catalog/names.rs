//! Matching a name without regard to case (interface.md 3).

use crate::error::{Error, Result};

/// The one of `names` that `wanted` means: the exact one, else the only one that is equal but
/// for case. `what` names the kind of thing in the error.
///
/// Errors: `InvalidInput` when several match and none exactly; the message names two of them.
pub fn match_name<'a>(what: &str, names: impl IntoIterator<Item = &'a str>, wanted: &str) -> Result<Option<&'a str>> {
    let folded = fold(wanted);
    let mut found: Option<&'a str> = None;
    let mut clash: Option<&'a str> = None;
    for name in names {
        if name == wanted {
            return Ok(Some(name));
        }
        if found != Some(name) && fold(name) == folded {
            match found {
                None => found = Some(name),
                Some(_) => clash = Some(name),
            }
        }
    }
    match (found, clash) {
        (Some(a), Some(b)) => Err(Error::invalid(format!(
            "{what} \"{wanted}\" is ambiguous: \"{a}\" and \"{b}\" differ by case alone; write the one that is meant exactly, in quotes"
        ))),
        (found, _) => Ok(found),
    }
}

/// What two names have in common that differ by case alone.
pub(super) fn fold(name: &str) -> String {
    name.to_lowercase()
}
