//! Random tables: types, transforms, steps of evolution, deletes of every kind, with metrics full,
//! cut or missing, in small row groups and pages.

use serde_json::{Value, json};

use super::dice::Dice;
use super::transforms::Transform;
use super::values::{self, TYPES};
use crate::support::builder::{
    DataFile, DeletionVectors, EqualityDeletes, Field, PartitionSpec, PositionDeletes, Schema, TableBuilder, TestTable, Type, optional,
    partition, required,
};

/// A partition field as this file keeps it: source column by id.
type Parts = Vec<(i32, Transform)>;

/// A table being made.
struct Maker {
    dice: Dice,
    table: TestTable,
    version: u8,
    parts: Parts,
    next_id: i64,
    next_field: i32,
    /// Data files with their row counts.
    files: Vec<(String, usize)>,
    /// Those that a vector covers.
    vectors: usize,
    commits: usize,
}

/// The table of a seed. Its first column is `id`, unique in the table.
pub fn table(seed: u64) -> TestTable {
    let mut dice = Dice::new(seed);
    let version = *dice.pick(&[2, 2, 3, 3, 3]);
    let mut fields = vec![required(1, "id", Type::Long)];
    for column in 0..3 + dice.below(3) {
        let id = column as i32 + 2;
        // Neighbouring seeds go through all types.
        let of = &TYPES[(seed as usize * 3 + column) % TYPES.len()];
        if version < 3 && matches!(of, Type::TimestampNs | Type::TimestamptzNs) {
            continue;
        }
        fields.push(optional(id, &format!("c{id}"), of.clone()));
    }
    let schema = Schema::new(fields);
    let parts = random_parts(&mut dice, &schema);
    let table = TableBuilder::temp(schema.clone())
        .format_version(version)
        .spec(spec(&parts))
        .create();
    let mut maker = Maker {
        dice,
        table,
        version,
        parts,
        next_id: 0,
        next_field: 20,
        files: Vec::new(),
        vectors: 0,
        commits: 0,
    };
    for _ in 0..2 + maker.dice.below(3) {
        maker.append();
        if maker.dice.one_in(2) {
            maker.delete();
        }
        if maker.dice.one_in(2) {
            maker.evolve();
        }
    }
    maker.append();
    maker.delete();
    maker.table
}

fn random_parts(dice: &mut Dice, schema: &Schema) -> Parts {
    let mut parts: Parts = Vec::new();
    for _ in 0..dice.below(3) {
        let field = dice.pick(&schema.fields);
        let transform = dice.pick(&Transform::of(&field.field_type)).clone();
        // The id is unique, so its own value would be a partition of one row.
        if (field.id == 1 && transform == Transform::Identity) || parts.iter().any(|(id, _)| *id == field.id) {
            continue;
        }
        parts.push((field.id, transform));
    }
    parts
}

fn spec(parts: &Parts) -> PartitionSpec {
    PartitionSpec::new(
        parts
            .iter()
            .map(|(id, transform)| partition(*id, &format!("p{id}_{}", name_of(transform)), &transform.spelled())),
    )
}

fn name_of(transform: &Transform) -> String {
    transform.spelled().replace(['[', ']'], "_")
}

impl Maker {
    fn name(&mut self, kind: &str) -> String {
        self.commits += 1;
        format!("{kind}{}", self.commits)
    }

    /// A commit of rows around one place of each type's range, one file for each partition.
    fn append(&mut self) {
        let schema = self.table.schema().clone();
        let center = self.dice.between(0, 99);
        let nulls_in = *self.dice.pick(&[0, 5, 30]);
        let spread = *self.dice.pick(&[0, 1, 3]);
        let count = 30 + self.dice.below(60);
        let mut groups: Vec<(Value, Vec<Vec<Value>>)> = Vec::new();
        for i in 0..count {
            // Rows move slowly through the range, so that pages and row groups differ.
            let place = center + (i as i64 * spread) / 4;
            let row: Vec<Value> = schema
                .fields
                .iter()
                .map(|field| match field.id {
                    1 => {
                        self.next_id += 1;
                        json!(self.next_id)
                    }
                    _ => values::cell(&mut self.dice, &field.field_type, place, nulls_in),
                })
                .collect();
            let key = self.partition_of(&schema, &row);
            // A table of many partitions would be a table of many files.
            let known = groups.iter().position(|(known, _)| *known == key);
            match known {
                Some(at) => groups[at].1.push(row),
                None if groups.len() < 5 => groups.push((key, vec![row])),
                None => {}
            }
        }
        for (key, rows) in groups {
            let name = self.name("F");
            self.files.push((name.clone(), rows.len()));
            let mut file = DataFile::named(&name)
                .rows(rows.into_iter().map(Value::Array).collect())
                .partition(key)
                .row_group_rows(*self.dice.pick(&[10, 25, 1000]))
                .page_rows(*self.dice.pick(&[3, 5, 1000]));
            if self.dice.one_in(3) {
                file = file.without_dictionary();
            }
            if !self.dice.one_in(5) {
                file = file.bloom_filters();
            }
            file = match self.dice.below(6) {
                0 => file.without_metrics(),
                1 => file.without_bounds(),
                _ => file,
            };
            self.table.append(file);
        }
    }

    fn partition_of(&self, schema: &Schema, row: &[Value]) -> Value {
        let value = |(id, transform): &(i32, Transform)| {
            let at = schema
                .fields
                .iter()
                .position(|f| f.id == *id)
                .expect("a source column is never dropped");
            transform.apply(&schema.fields[at].field_type, &row[at])
        };
        self.parts.iter().map(value).collect()
    }

    fn some_positions(&mut self, rows: usize) -> Vec<u64> {
        let one_in = *self.dice.pick(&[2, 5, 20]);
        let stretch = self.dice.one_in(3).then(|| self.dice.below(rows));
        (0..rows)
            .filter(|i| self.dice.one_in(one_in) || stretch.is_some_and(|from| (from..from + 12).contains(i)))
            .map(|i| i as u64)
            .collect()
    }

    fn delete(&mut self) {
        if self.files.is_empty() {
            return;
        }
        if self.dice.one_in(3) {
            return self.delete_keys();
        }
        let vectors = self.version == 3 && (self.vectors > 0 || self.dice.one_in(2));
        let chosen: Vec<(String, usize)> = (0..1 + self.dice.below(3)).map(|_| self.dice.pick(&self.files).clone()).collect();
        if vectors {
            let name = self.name("V");
            let mut file = DeletionVectors::named(&name);
            let mut covered = Vec::new();
            for (data, rows) in chosen {
                if !covered.contains(&data) {
                    // A vector takes the place of what was there, so it may bring rows back: the
                    // model knows, and this is about reading.
                    file = file.rows(&data, self.some_positions(rows));
                    covered.push(data);
                }
            }
            self.vectors += 1;
            self.table.delete_by_vectors(file);
        } else {
            for (data, rows) in chosen {
                let name = self.name("P");
                let positions = self.some_positions(rows);
                self.table
                    .delete_positions(PositionDeletes::named(&name).rows(&data, positions.into_iter().map(|p| p as i64)));
            }
        }
    }

    fn delete_keys(&mut self) {
        let rows = self.table.rows();
        if rows.is_empty() {
            return;
        }
        let name = self.name("E");
        let keys: Vec<Value> = (0..3).map(|_| json!([self.dice.pick(&rows)[0]])).collect();
        // Global: written under a spec without fields.
        let parts = std::mem::take(&mut self.parts);
        self.table.set_spec(spec(&Vec::new()));
        let mut seen: Vec<Value> = Vec::new();
        for key in keys {
            if !seen.contains(&key) {
                seen.push(key);
            }
        }
        self.table.delete_keys(EqualityDeletes::named(&name, [1]).rows(Value::Array(seen)));
        self.parts = parts;
        self.table.set_spec(spec(&self.parts));
    }

    fn evolve(&mut self) {
        let schema = self.table.schema().clone();
        let field: Field = self.dice.pick(&schema.fields[1..]).clone();
        match self.dice.below(5) {
            0 => self.table.evolve(|s| s.rename(&field.name, &format!("{}_r", field.name))),
            1 => {
                let to = match field.field_type {
                    Type::Int => Type::Long,
                    Type::Float => Type::Double,
                    Type::Decimal(p, s) if p < 30 => Type::Decimal(p + 5, s),
                    _ => return,
                };
                // A hash or a cut of the old type would not be that of the new one for all of these.
                if self
                    .parts
                    .iter()
                    .any(|(id, t)| *id == field.id && matches!(t, Transform::Truncate(_) | Transform::Bucket(_)))
                {
                    return;
                }
                self.table.evolve(|s| s.promote(&field.name, to));
            }
            2 => {
                self.next_field += 1;
                let id = self.next_field;
                let of = self.dice.pick(&[Type::Int, Type::String, Type::Date, Type::Double]).clone();
                let mut added = optional(id, &format!("c{id}"), of);
                if self.version == 3 && self.dice.one_in(2) {
                    let place = self.dice.between(0, 99);
                    added = added.default_value(values::value(&mut self.dice, &Type::Int, place));
                    added.field_type = Type::Int;
                }
                self.table.evolve(|s| s.add(added));
            }
            3 => {
                self.parts = random_parts(&mut self.dice, &schema);
                self.table.set_spec(spec(&self.parts));
            }
            _ => {
                if self.version == 2 && self.dice.one_in(2) {
                    self.version = 3;
                    self.table.upgrade(3);
                }
            }
        }
    }
}
