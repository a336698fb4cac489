//! Typed access to the members of a JSON object, with errors that name the object and the key.
//!
//! A member that is `null` counts as absent, as writers differ in which of the two they use.
//! Values are never coerced: a number in a string is an error.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A JSON object and what it stands for in error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Obj<'a> {
    map: &'a Map<String, Value>,
    what: &'static str,
}

impl<'a> Obj<'a> {
    /// `value` as an object; `what` names it in errors, for example `snapshot`.
    pub(super) fn new(value: &'a Value, what: &'static str) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { map, what }),
            other => Err(Error::corrupt(format!("{what} is not a JSON object but {}", excerpt(other)))),
        }
    }

    pub(super) fn of_map(map: &'a Map<String, Value>, what: &'static str) -> Self {
        Self { map, what }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|v| !v.is_null())
    }

    pub(super) fn need(&self, key: &str) -> Result<&'a Value> {
        self.get(key)
            .ok_or_else(|| Error::corrupt(format!("{} lacks the required key `{key}`", self.what)))
    }

    pub(super) fn i32(&self, key: &str) -> Result<i32> {
        self.need(key).and_then(|v| self.as_i32(key, v))
    }

    pub(super) fn opt_i32(&self, key: &str) -> Result<Option<i32>> {
        self.get(key).map(|v| self.as_i32(key, v)).transpose()
    }

    pub(super) fn i64(&self, key: &str) -> Result<i64> {
        self.need(key).and_then(|v| self.as_i64(key, v))
    }

    pub(super) fn opt_i64(&self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|v| self.as_i64(key, v)).transpose()
    }

    pub(super) fn snapshot_id(&self, key: &str) -> Result<i64> {
        self.need(key).and_then(|v| self.as_snapshot_id(key, v))
    }

    /// A snapshot id is a long, but numbers from 2^63 up to 2^64 occur in files. They are
    /// taken for the long of the same 64 bits, as ids are only ever compared for equality.
    pub(super) fn opt_snapshot_id(&self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|v| self.as_snapshot_id(key, v)).transpose()
    }

    /// A count or row id: a long that is not negative.
    pub(super) fn opt_u63(&self, key: &str) -> Result<Option<u64>> {
        let wrong = |v| self.wrong(key, "a long that is not negative", v);
        self.get(key)
            .map(|v| self.as_i64(key, v).and_then(|n| u64::try_from(n).map_err(|_| wrong(v))))
            .transpose()
    }

    pub(super) fn str(&self, key: &str) -> Result<&'a str> {
        self.need(key).and_then(|v| self.as_str(key, v))
    }

    pub(super) fn opt_str(&self, key: &str) -> Result<Option<&'a str>> {
        self.get(key).map(|v| self.as_str(key, v)).transpose()
    }

    pub(super) fn bool(&self, key: &str) -> Result<bool> {
        let value = self.need(key)?;
        value.as_bool().ok_or_else(|| self.wrong(key, "true or false", value))
    }

    pub(super) fn array(&self, key: &str) -> Result<&'a [Value]> {
        self.need(key).and_then(|v| self.as_array(key, v))
    }

    /// The elements of an array; none where it is absent.
    pub(super) fn opt_array(&self, key: &str) -> Result<Option<&'a [Value]>> {
        self.get(key).map(|v| self.as_array(key, v)).transpose()
    }

    /// Strings of an array; `None` where it is absent.
    pub(super) fn opt_strings(&self, key: &str) -> Result<Option<Vec<String>>> {
        let Some(values) = self.opt_array(key)? else { return Ok(None) };
        let strings: Result<Vec<String>> = values.iter().map(|v| self.as_str(key, v).map(str::to_owned)).collect();
        strings.map(Some)
    }

    /// Ints of an array; `None` where it is absent.
    pub(super) fn opt_ints(&self, key: &str) -> Result<Option<Vec<i32>>> {
        let Some(values) = self.opt_array(key)? else { return Ok(None) };
        let ints: Result<Vec<i32>> = values.iter().map(|v| self.as_i32(key, v)).collect();
        ints.map(Some)
    }

    /// A map of strings; empty where it is absent.
    pub(super) fn string_map(&self, key: &str) -> Result<BTreeMap<String, String>> {
        let Some(value) = self.get(key) else { return Ok(BTreeMap::new()) };
        let Value::Object(map) = value else {
            return Err(self.wrong(key, "an object", value));
        };
        map.iter()
            .map(|(k, v)| match v {
                Value::String(s) => Ok((k.clone(), s.clone())),
                other => Err(Error::corrupt(format!(
                    "`{key}` of {}: `{}` must be a string, not {}",
                    self.what,
                    clip(k),
                    excerpt(other)
                ))),
            })
            .collect()
    }

    /// The members of an object; `None` where it is absent.
    pub(super) fn opt_object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong(key, "an object", other)),
        }
    }

    fn as_i32(&self, key: &str, value: &Value) -> Result<i32> {
        let int = value.as_i64().and_then(|v| i32::try_from(v).ok());
        int.ok_or_else(|| self.wrong(key, "an int", value))
    }

    fn as_i64(&self, key: &str, value: &Value) -> Result<i64> {
        value.as_i64().ok_or_else(|| self.wrong(key, "a long", value))
    }

    fn as_snapshot_id(&self, key: &str, value: &Value) -> Result<i64> {
        let id = value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed));
        id.ok_or_else(|| self.wrong(key, "a long", value))
    }

    fn as_str(&self, key: &str, value: &'a Value) -> Result<&'a str> {
        value.as_str().ok_or_else(|| self.wrong(key, "a string", value))
    }

    fn as_array(&self, key: &str, value: &'a Value) -> Result<&'a [Value]> {
        let array = value.as_array().map(Vec::as_slice);
        array.ok_or_else(|| self.wrong(key, "an array", value))
    }

    fn wrong(&self, key: &str, wanted: &str, value: &Value) -> Error {
        Error::corrupt(format!("`{key}` of {} must be {wanted}, not {}", self.what, excerpt(value)))
    }
}

/// A value for an error message, cut where it is long.
pub(super) fn excerpt(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::String(s) => format!("{:?}", clip(s)),
        other => clip(&other.to_string()).into_owned(),
    }
}

/// At most 80 characters of a text.
pub(super) fn clip(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(80) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_counts_as_absent_and_wrong_kinds_are_errors() {
        let value = json!({"a": null, "b": 1.5, "c": 5_000_000_000_i64, "d": "1"});
        let obj = Obj::new(&value, "thing").unwrap();
        assert_eq!(obj.opt_i32("a").unwrap(), None);
        assert!(obj.i32("a").unwrap_err().to_string().contains("thing lacks the required key `a`"));
        assert!(obj.i64("b").is_err());
        assert!(obj.i32("c").is_err());
        assert_eq!(obj.i64("c").unwrap(), 5_000_000_000);
        assert_eq!(obj.i32("d").unwrap_err().message(), "`d` of thing must be an int, not \"1\"");
    }

    #[test]
    fn snapshot_ids_beyond_a_long_keep_their_bits() {
        let value = json!({"a": 9_876_543_210_123_456_789_u64, "b": -1, "c": 1e30});
        let obj = Obj::new(&value, "thing").unwrap();
        // 9876543210123456789 - 2^64
        assert_eq!(obj.snapshot_id("a").unwrap(), -8_570_200_863_586_094_827);
        assert_eq!(obj.opt_snapshot_id("b").unwrap(), Some(-1));
        assert!(obj.snapshot_id("c").is_err());
    }

    #[test]
    fn long_values_are_cut_in_messages() {
        let value = json!({"a": "é".repeat(500)});
        let message = Obj::new(&value, "thing").unwrap().i32("a").unwrap_err().to_string();
        assert!(message.chars().count() < 150, "{message}");
    }
}
