//! Properties and location.

use std::collections::BTreeMap;

use super::MetadataBuilder;
use crate::error::{Error, Result};

/// Stands for the format version among the properties of a statement.
pub const FORMAT_VERSION_PROPERTY: &str = "format-version";

/// The format version that the value of [`FORMAT_VERSION_PROPERTY`] means.
///
/// Errors: `InvalidInput` for what is no number.
pub fn format_version(text: &str) -> Result<u8> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| Error::invalid(format!("{FORMAT_VERSION_PROPERTY} '{text}' is no format version: 1, 2 or 3")))
}

/// Names that stand for other parts of the metadata and are never stored as properties.
const RESERVED: [&str; 9] = [
    FORMAT_VERSION_PROPERTY,
    "uuid",
    "snapshot-count",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
];

pub(super) fn check_property(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("a property needs a name"));
    }
    match RESERVED.contains(&name) {
        true => Err(Error::invalid(format!(
            "property {name} is reserved: it stands for another part of the metadata"
        ))),
        false => Ok(()),
    }
}

impl MetadataBuilder {
    /// Sets properties.
    ///
    /// Errors: `InvalidInput` for a reserved name.
    pub fn set_properties(&mut self, properties: &BTreeMap<String, String>) -> Result<()> {
        properties.keys().try_for_each(|name| check_property(name))?;
        for (name, value) in properties {
            let old = self.table.properties.insert(name.clone(), value.clone());
            self.is_changed |= old.as_ref() != Some(value);
        }
        Ok(())
    }

    /// Removes properties; one that is not there changes nothing.
    ///
    /// Errors: `InvalidInput` for a reserved name.
    pub fn remove_properties<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
        for name in names {
            check_property(name)?;
            self.is_changed |= self.table.properties.remove(name).is_some();
        }
        Ok(())
    }

    /// Sets the table's base location, without a slash at its end.
    ///
    /// Errors: `InvalidInput` for an empty one.
    pub fn set_location(&mut self, location: &str) -> Result<()> {
        let location = location_of(location)?;
        self.is_changed |= self.table.location != location;
        self.table.location = location;
        Ok(())
    }
}

/// A location as it is stored.
pub(super) fn location_of(location: &str) -> Result<String> {
    let trimmed = location.trim_end_matches('/');
    if trimmed.is_empty() || trimmed.ends_with(':') {
        return Err(Error::invalid(format!("a table cannot lie at \"{location}\"")));
    }
    Ok(trimmed.to_owned())
}
