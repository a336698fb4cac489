//! Properties and location.

use std::collections::BTreeMap;

use super::MetadataBuilder;
use crate::error::{Error, Result};

/// Names that stand for other parts of the metadata and are never stored as properties.
const RESERVED: [&str; 9] = [
    "format-version",
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
        true => Err(Error::invalid(format!("property {name} is reserved and cannot be stored"))),
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
    pub fn remove_properties<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            self.is_changed |= self.table.properties.remove(name).is_some();
        }
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
