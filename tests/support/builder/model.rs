//! The rows that a snapshot shows, worked out row by row from the specification's rules in the
//! plainest way ("Scan Planning", "Column Projection"). Slow, and meant to be read.
//!
//! What the specification leaves to the reader's refusal (two live vectors for one file, a delete
//! bound to a file of another partition) is not modelled; such tables are tested for the error.

use serde_json::{Value, json};

use super::files::{Effect, FileEntry};
use super::partition::PartitionSpec;
use super::table::{SnapshotState, TestTable};
use super::types::{Field, Schema, Type};
use super::values::Scalar;
use crate::support::canonical;

/// A live file with its data sequence number.
struct Live<'a> {
    sequence_number: i64,
    entry: &'a FileEntry,
    effect: &'a Effect,
}

/// The rows of a snapshot in a schema.
pub fn rows(table: &TestTable, snapshot: &SnapshotState, schema: &Schema) -> Vec<Vec<Value>> {
    let live: Vec<Live<'_>> = snapshot
        .manifests
        .iter()
        .flat_map(|m| m.entries.iter().filter(|e| e.is_live()).map(move |e| (m, e)))
        .map(|(m, e)| Live {
            sequence_number: m.sequence_number_of(e),
            entry: &e.file.entry,
            effect: &e.file.effect,
        })
        .collect();
    let mut visible = Vec::new();
    for file in &live {
        let Effect::Rows { schema: own, rows } = file.effect else {
            continue;
        };
        let view = FileView {
            table,
            own,
            entry: file.entry,
        };
        let vector = live.iter().find_map(|d| match d.effect {
            Effect::Vector { path, positions } if *path == file.entry.path && file.sequence_number <= d.sequence_number => Some(positions),
            _ => None,
        });
        for (position, row) in rows.iter().enumerate() {
            let deleted = match vector {
                Some(positions) => positions.contains(&(position as u64)),
                None => live.iter().any(|d| deletes_position(d, file, position as i64)),
            };
            if !deleted && !live.iter().any(|d| deletes_key(d, file, &view, row)) {
                visible.push(schema.fields.iter().map(|f| view.read(f, row)).collect());
            }
        }
    }
    visible
}

/// A position delete file applies to data files of at most its age in its partition, or to the one file it is bound to.
fn deletes_position(delete: &Live<'_>, data: &Live<'_>, position: i64) -> bool {
    let Effect::Positions { list, only_file } = delete.effect else {
        return false;
    };
    let in_scope = match only_file {
        Some(path) => *path == data.entry.path,
        None => same_partition(delete.entry, data.entry),
    };
    in_scope && data.sequence_number <= delete.sequence_number && list.contains(&(data.entry.path.clone(), position))
}

/// An equality delete file applies to strictly older data files of its partition, or to all where its spec has none.
fn deletes_key(delete: &Live<'_>, data: &Live<'_>, view: &FileView<'_>, row: &[Value]) -> bool {
    let Effect::Keys { schema, ids, rows } = delete.effect else {
        return false;
    };
    let global = view.table.spec(delete.entry.spec_id).is_unpartitioned();
    if !(global || same_partition(delete.entry, data.entry)) || data.sequence_number >= delete.sequence_number {
        return false;
    }
    rows.iter().any(|key| {
        ids.iter().all(|id| {
            let (key_type, key_value) = lookup(schema, key, *id).expect("a delete file has its key columns");
            let now = view.field(*id);
            let data_value = view.read(now, row);
            let key_value = promoted(key_value, key_type, &now.field_type);
            // the text tells -0.0 from 0.0, and NaN equals NaN
            canonical::dumps(&normal(&now.field_type, &key_value)) == canonical::dumps(&normal(&now.field_type, &data_value))
        })
    })
}

fn same_partition(a: &FileEntry, b: &FileEntry) -> bool {
    a.spec_id == b.spec_id && format!("{:?}", a.partition) == format!("{:?}", b.partition)
}

/// A data file seen through the table.
struct FileView<'a> {
    table: &'a TestTable,
    own: &'a Schema,
    entry: &'a FileEntry,
}

impl FileView<'_> {
    /// The newest field with this id, also if it has been dropped since.
    fn field(&self, id: i32) -> &Field {
        let found = self.table.schemas.iter().rev().find_map(|s| s.find(id));
        found.unwrap_or_else(|| panic!("no field {id} in any schema"))
    }

    /// The value that a row of the file has for a column.
    fn read(&self, field: &Field, row: &[Value]) -> Value {
        if field.field_type == Type::Unknown {
            return Value::Null;
        }
        match lookup(self.own, row, field.id) {
            Some((of, value)) => normal(&field.field_type, &promoted(value, of, &field.field_type)),
            None => self.absent(field),
        }
    }

    /// A column that the file lacks: its identity partition value, else its initial default, else null.
    fn absent(&self, field: &Field) -> Value {
        let spec: &PartitionSpec = self.table.spec(self.entry.spec_id);
        let at = spec
            .fields
            .iter()
            .position(|f| f.source_id == field.id && f.transform == "identity");
        if let Some(Some(value)) = at.map(|i| &self.entry.partition[i]) {
            return scalar_json(&field.field_type, value);
        }
        match (&field.initial_default, &field.field_type) {
            (None, _) | (Some(Value::Null), _) => Value::Null,
            (Some(given), Type::Struct(fields)) => {
                let inner = fields
                    .iter()
                    .map(|f| (f.name.clone(), given.get(&f.name).cloned().unwrap_or_else(|| self.absent(f))));
                Value::Object(inner.collect())
            }
            (Some(value), of) => normal(of, value),
        }
    }
}

/// Type and value of the field with this id in a row, at any depth of structs.
fn lookup<'a>(schema: &'a Schema, row: &[Value], id: i32) -> Option<(&'a Type, Value)> {
    fn within<'a>(field: &'a Field, value: &Value, id: i32) -> Option<(&'a Type, Value)> {
        if field.id == id {
            return Some((&field.field_type, value.clone()));
        }
        let Type::Struct(fields) = &field.field_type else { return None };
        fields
            .iter()
            .find_map(|f| within(f, value.get(&f.name).unwrap_or(&Value::Null), id))
    }
    schema.fields.iter().zip(row).find_map(|(field, value)| within(field, value, id))
}

/// A value of a file's type in the table's type: by id in structs, and by the promotions of the specification.
fn promoted(value: Value, from: &Type, to: &Type) -> Value {
    match (value, from, to) {
        (Value::Null, ..) => Value::Null,
        (Value::Object(cells), Type::Struct(old), Type::Struct(new)) => {
            let fields = new.iter().map(|field| {
                let stored = old.iter().find(|f| f.id == field.id);
                let value = match stored {
                    Some(f) => promoted(cells.get(&f.name).cloned().unwrap_or(Value::Null), &f.field_type, &field.field_type),
                    None => field.initial_default.clone().unwrap_or(Value::Null),
                };
                (field.name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        (Value::Array(items), Type::List(old), Type::List(new)) => {
            Value::Array(items.into_iter().map(|i| promoted(i, &old.field_type, &new.field_type)).collect())
        }
        (Value::Array(pairs), Type::Map(old_key, old), Type::Map(new_key, new)) => {
            let pairs = pairs.into_iter().map(|pair| {
                let key = promoted(pair[0].clone(), &old_key.field_type, &new_key.field_type);
                json!([key, promoted(pair[1].clone(), &old.field_type, &new.field_type)])
            });
            Value::Array(pairs.collect())
        }
        (Value::String(date), Type::Date, Type::Timestamp) => json!(format!("{date}T00:00:00.000000")),
        (Value::String(date), Type::Date, Type::TimestampNs) => json!(format!("{date}T00:00:00.000000000")),
        (value, Type::Float, Type::Double) => normal(from, &value),
        (value, ..) => value,
    }
}

/// One spelling for one value: what reading it back from arrow gives.
fn normal(of: &Type, value: &Value) -> Value {
    let array = super::values::array(of, &[value], false);
    canonical::cell(&array, &super::types::optional(0, "value", of.clone()).arrow(false), 0)
}

fn scalar_json(of: &Type, value: &Scalar) -> Value {
    match value {
        Scalar::Bool(v) => json!(v),
        Scalar::Int(v) if *of == Type::Date => json!(canonical::date(i64::from(*v))),
        Scalar::Int(v) => json!(v),
        Scalar::Float(v) => canonical::float(f64::from(*v)),
        Scalar::Double(v) => canonical::float(*v),
        Scalar::Text(v) => json!(v),
        Scalar::Long(v) if *of == Type::Long => canonical::integer(i128::from(*v)),
        other => panic!("no identity constant of {of:?} in the model: {other:?}"),
    }
}
