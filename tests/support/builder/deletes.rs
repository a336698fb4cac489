//! Position delete files, equality delete files and deletion vectors (spec "Delete Formats").

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::data::row_list;
use super::files::{Content, Effect, FileEntry, Layout, Metrics, Place, Stored, entry_methods, layout_methods};
use super::puffin::{self, Blob, Damage};
use super::table::TestTable;
use super::types::{Schema, Type, optional, required};

const PATH_ID: i32 = 2_147_483_546;
const POS_ID: i32 = 2_147_483_545;
const ROW_ID: i32 = 2_147_483_544;

/// What the manifest says about the paths in a position delete file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PathBounds {
    /// Smallest and greatest path in full; equal ones bind the file to one data file.
    #[default]
    Full,
    /// No bounds at all.
    None,
    /// Cut to so many bytes, as metrics modes did; such bounds bind to nothing.
    Truncated(usize),
    /// Cut to so many bytes without rounding the upper one up, as some writers do against the specification.
    Cut(usize),
}

#[derive(Debug, Clone)]
enum PathIn {
    File(String),
    Text(String),
    Null,
}

/// A position delete file. Rows are written in the order given: unsorted and repeated ones are allowed.
#[derive(Debug, Clone)]
pub struct PositionDeletes {
    name: String,
    rows: Vec<(PathIn, Option<i64>)>,
    bounds: PathBounds,
    referenced: Option<PathIn>,
    with_row: Option<Schema>,
    swapped: bool,
    spelling: Option<String>,
    pub(super) layout: Layout,
    pub(super) place: Place,
}

impl PositionDeletes {
    /// An empty file of this name. Spec and partition are those of the first data file named, unless given.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rows: Vec::new(),
            bounds: PathBounds::Full,
            referenced: None,
            with_row: None,
            swapped: false,
            spelling: None,
            layout: Layout::default(),
            place: Place::default(),
        }
    }

    layout_methods!();
    entry_methods!();

    /// Deletes positions of a data file given by name.
    #[must_use]
    pub fn rows(mut self, data_file: &str, positions: impl IntoIterator<Item = i64>) -> Self {
        self.rows
            .extend(positions.into_iter().map(|p| (PathIn::File(data_file.to_owned()), Some(p))));
        self
    }

    /// Deletes positions of a path that is written as it stands.
    #[must_use]
    pub fn path_rows(mut self, path: &str, positions: impl IntoIterator<Item = i64>) -> Self {
        self.rows
            .extend(positions.into_iter().map(|p| (PathIn::Text(path.to_owned()), Some(p))));
        self
    }

    /// A row without path; the column becomes optional.
    #[must_use]
    pub fn null_path(mut self, position: i64) -> Self {
        self.rows.push((PathIn::Null, Some(position)));
        self
    }

    /// A row without position; the column becomes optional.
    #[must_use]
    pub fn null_position(mut self, data_file: &str) -> Self {
        self.rows.push((PathIn::File(data_file.to_owned()), None));
        self
    }

    /// Bounds of the path column in the manifest.
    #[must_use]
    pub fn bounds(mut self, bounds: PathBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Sets `referenced_data_file`.
    #[must_use]
    pub fn referenced(mut self, data_file: &str) -> Self {
        self.referenced = Some(PathIn::File(data_file.to_owned()));
        self
    }

    /// Adds the column `row` with the deleted rows in this schema, as old writers did.
    #[must_use]
    pub fn with_row(mut self, schema: Schema) -> Self {
        self.with_row = Some(schema);
        self
    }

    /// Writes `pos` before `file_path`.
    #[must_use]
    pub fn swapped_columns(mut self) -> Self {
        self.swapped = true;
        self
    }

    /// How the file spells the paths of data files; `{path}` stands for the recorded path.
    #[must_use]
    pub fn path_spelling(mut self, spelling: &str) -> Self {
        self.spelling = Some(spelling.to_owned());
        self
    }

    pub(super) fn store(mut self, table: &TestTable) -> (Stored, Place) {
        let first_file = self.rows.iter().find_map(|(path, _)| match path {
            PathIn::File(name) => Some(table.file(name)),
            _ => None,
        });
        follow(&mut self.place, first_file.as_ref().map(|f| &f.entry));
        let recorded = |path: &PathIn| match path {
            PathIn::File(name) => Some(table.file(name).entry.path.clone()),
            PathIn::Text(path) => Some(path.clone()),
            PathIn::Null => None,
        };
        let spelled = |path: String| self.spelling.as_ref().map_or(path.clone(), |s| s.replace("{path}", &path));
        let resolved: Vec<(Option<String>, Option<i64>)> = self.rows.iter().map(|(path, pos)| (recorded(path), *pos)).collect();

        let (schema, rows) = self.contents(table, &resolved, &spelled);
        let bytes = self.layout.file(&schema, &rows, true);
        let relative = self
            .place
            .path
            .clone()
            .unwrap_or_else(|| format!("data/{}-deletes.{}", self.name, self.layout.extension()));
        self.place.format.get_or_insert_with(|| self.layout.extension().to_uppercase());
        table.write_file(&relative, &bytes);

        let mut entry = table.entry(Content::PositionDeletes, &self.place, &relative, rows.len(), bytes.len());
        let own = schema.select(&[PATH_ID, POS_ID]);
        let at: Vec<usize> = own
            .fields
            .iter()
            .map(|f| schema.fields.iter().position(|s| s.id == f.id).expect("own field"))
            .collect();
        let own_rows: Vec<Vec<Value>> = rows.iter().map(|r| at.iter().map(|i| r[*i].clone()).collect()).collect();
        entry.metrics = Metrics::of(&own, &own_rows);
        let mut only_file = None;
        match self.bounds {
            PathBounds::Full => {
                let paths: BTreeSet<&String> = resolved.iter().filter_map(|(path, _)| path.as_ref()).collect();
                if let (1, Some(path)) = (paths.len(), paths.first()) {
                    only_file = Some((*path).clone());
                }
            }
            PathBounds::None => {
                for bounds in [&mut entry.metrics.lower, &mut entry.metrics.upper] {
                    bounds.clear();
                }
            }
            PathBounds::Cut(length) => {
                for bounds in [&mut entry.metrics.lower, &mut entry.metrics.upper] {
                    bounds.get_mut(&PATH_ID).expect("a path").truncate(length);
                }
            }
            PathBounds::Truncated(length) => {
                if let Some(lower) = entry.metrics.lower.get_mut(&PATH_ID) {
                    lower.truncate(length);
                }
                if let Some(upper) = entry.metrics.upper.get_mut(&PATH_ID) {
                    upper.truncate(length);
                    // an upper bound that was cut must be rounded up
                    *upper.last_mut().expect("a path") += 1;
                }
            }
        }
        if let Some(path) = &self.referenced {
            entry.referenced_data_file = recorded(path).map(&spelled);
            only_file = recorded(path);
        }
        let list = resolved.into_iter().filter_map(|(path, pos)| Some((path?, pos?))).collect();
        let stored = Stored {
            name: self.name,
            entry,
            effect: Effect::Positions { list, only_file },
        };
        (stored, self.place)
    }

    fn contents(
        &self,
        table: &TestTable,
        resolved: &[(Option<String>, Option<i64>)],
        spelled: &dyn Fn(String) -> String,
    ) -> (Schema, Vec<Vec<Value>>) {
        let column = |id, name, of, any_null: bool| if any_null { optional(id, name, of) } else { required(id, name, of) };
        let mut fields = vec![
            column(PATH_ID, "file_path", Type::String, resolved.iter().any(|(path, _)| path.is_none())),
            column(POS_ID, "pos", Type::Long, resolved.iter().any(|(_, pos)| pos.is_none())),
        ];
        let mut rows: Vec<Vec<Value>> = resolved
            .iter()
            .map(|(path, pos)| vec![json!(path.clone().map(spelled)), json!(pos)])
            .collect();
        if self.swapped {
            fields.reverse();
            rows.iter_mut().for_each(|row| row.reverse());
        }
        if let Some(schema) = &self.with_row {
            fields.push(optional(ROW_ID, "row", Type::Struct(schema.fields.clone())));
            for (row, (path, pos)) in rows.iter_mut().zip(resolved) {
                let cells = path.as_ref().zip(*pos).and_then(|(path, pos)| table.row_at(path, pos));
                row.push(cells.map_or(Value::Null, |cells| Value::Object(schema.names().into_iter().zip(cells).collect())));
            }
        }
        (Schema::new(fields), rows)
    }
}

/// An equality delete file: rows of key values.
#[derive(Debug, Clone)]
pub struct EqualityDeletes {
    name: String,
    ids: Vec<i32>,
    rows: Vec<Vec<Value>>,
    schema: Option<Schema>,
    field_ids: bool,
    pub(super) layout: Layout,
    pub(super) place: Place,
}

impl EqualityDeletes {
    /// A file of this name that deletes by these field ids. Without a schema of its own it has
    /// the columns with these ids, with the structs around them.
    pub fn named(name: &str, equality_ids: impl IntoIterator<Item = i32>) -> Self {
        Self {
            name: name.to_owned(),
            ids: equality_ids.into_iter().collect(),
            rows: Vec::new(),
            schema: None,
            field_ids: true,
            layout: Layout::default(),
            place: Place::default(),
        }
    }

    layout_methods!();
    entry_methods!();

    /// Adds rows in the file's schema.
    #[must_use]
    pub fn rows(mut self, rows: Value) -> Self {
        self.rows.extend(row_list(rows));
        self
    }

    /// Schema of the file: older types, more columns than the key.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Leaves field ids out of the file.
    #[must_use]
    pub fn without_ids(mut self) -> Self {
        self.field_ids = false;
        self
    }

    pub(super) fn store(mut self, table: &TestTable) -> (Stored, Place) {
        let schema = self.schema.take().unwrap_or_else(|| table.schema().select(&self.ids));
        let bytes = self.layout.file(&schema, &self.rows, self.field_ids);
        let relative = self
            .place
            .path
            .clone()
            .unwrap_or_else(|| format!("data/{}-deletes.{}", self.name, self.layout.extension()));
        self.place.format.get_or_insert_with(|| self.layout.extension().to_uppercase());
        table.write_file(&relative, &bytes);
        let mut entry = table.entry(Content::EqualityDeletes, &self.place, &relative, self.rows.len(), bytes.len());
        entry.metrics = Metrics::of(&schema, &self.rows);
        entry.equality_ids = Some(self.ids.clone());
        let stored = Stored {
            name: self.name,
            entry,
            effect: Effect::Keys {
                schema,
                ids: self.ids,
                rows: self.rows,
            },
        };
        (stored, self.place)
    }
}

/// One deletion vector of a Puffin file, with what the manifest claims of it.
#[derive(Debug, Clone)]
pub struct Vector {
    data_file: String,
    positions: BTreeSet<u64>,
    run_length: bool,
    damage: Damage,
    offset_shift: i64,
    length_shift: i64,
    cardinality: Option<i64>,
    referenced: bool,
}

impl Vector {
    /// A vector over a data file given by name.
    pub fn of(data_file: &str, positions: impl IntoIterator<Item = u64>) -> Self {
        Self {
            data_file: data_file.to_owned(),
            positions: positions.into_iter().collect(),
            run_length: false,
            damage: Damage::None,
            offset_shift: 0,
            length_shift: 0,
            cardinality: None,
            referenced: true,
        }
    }

    /// Uses run containers where they are smaller.
    #[must_use]
    pub fn run_length(mut self) -> Self {
        self.run_length = true;
        self
    }

    /// Breaks the blob.
    #[must_use]
    pub fn damaged(mut self, damage: Damage) -> Self {
        self.damage = damage;
        self
    }

    /// The manifest's offset is off by so much.
    #[must_use]
    pub fn offset_off_by(mut self, bytes: i64) -> Self {
        self.offset_shift = bytes;
        self
    }

    /// The manifest's length is off by so much.
    #[must_use]
    pub fn length_off_by(mut self, bytes: i64) -> Self {
        self.length_shift = bytes;
        self
    }

    /// Cardinality that the manifest claims.
    #[must_use]
    pub fn claimed_cardinality(mut self, count: i64) -> Self {
        self.cardinality = Some(count);
        self
    }

    /// Leaves `referenced_data_file` out.
    #[must_use]
    pub fn unreferenced(mut self) -> Self {
        self.referenced = false;
        self
    }
}

/// A Puffin file of deletion vectors. Each vector becomes an entry named `<file>/<data file>`.
#[derive(Debug, Clone)]
pub struct DeletionVectors {
    name: String,
    vectors: Vec<Vector>,
    dead: Vec<usize>,
    bare: bool,
    rotated: bool,
    keeps_old: bool,
    pub(super) place: Place,
}

impl DeletionVectors {
    /// An empty Puffin file of this name. Spec and partition are those of each data file, unless given.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            vectors: Vec::new(),
            dead: Vec::new(),
            bare: false,
            rotated: false,
            keeps_old: false,
            place: Place::default(),
        }
    }

    entry_methods!();

    /// Adds a vector over a data file given by name.
    #[must_use]
    pub fn rows(self, data_file: &str, positions: impl IntoIterator<Item = u64>) -> Self {
        self.vector(Vector::of(data_file, positions))
    }

    /// Adds a vector.
    #[must_use]
    pub fn vector(mut self, vector: Vector) -> Self {
        self.vectors.push(vector);
        self
    }

    /// Adds a blob that no manifest entry points at.
    #[must_use]
    pub fn dead_vector(mut self, vector: Vector) -> Self {
        self.dead.push(self.vectors.len());
        self.vectors.push(vector);
        self
    }

    /// Writes the blobs without magic and footer.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Each entry's offset and length are those of the next blob.
    #[must_use]
    pub fn swapped_offsets(mut self) -> Self {
        self.rotated = true;
        self
    }

    /// Leaves the live vectors of the same data files in the table, which makes it invalid.
    #[must_use]
    pub fn beside_old_vectors(mut self) -> Self {
        self.keeps_old = true;
        self
    }

    pub(super) fn keeps_old(&self) -> bool {
        self.keeps_old
    }

    pub(super) fn store(self, table: &TestTable) -> Vec<(Stored, Place)> {
        let blobs: Vec<Blob> = self
            .vectors
            .iter()
            .map(|v| {
                let bytes = puffin::vector_blob(v.positions.iter().copied(), v.run_length, v.damage);
                Blob::vector(bytes, &table.file(&v.data_file).entry.path, v.positions.len() as u64)
            })
            .collect();
        let file = puffin::file(&blobs, self.bare);
        let relative = self.place.path.clone().unwrap_or_else(|| format!("data/{}.puffin", self.name));
        table.write_file(&relative, &file.bytes);
        let count = self.vectors.len();
        let live = self.vectors.into_iter().enumerate().filter(|(i, _)| !self.dead.contains(i));
        live.map(|(i, vector)| {
            let data_file = table.file(&vector.data_file);
            let mut place = self.place.clone();
            follow(&mut place, Some(&data_file.entry));
            place.format.get_or_insert_with(|| "PUFFIN".to_owned());
            let mut entry = table.entry(
                Content::PositionDeletes,
                &place,
                &relative,
                vector.positions.len(),
                file.bytes.len(),
            );
            let at = if self.rotated { (i + 1) % count } else { i };
            entry.content_offset = Some(file.offsets[at] as i64 + vector.offset_shift);
            entry.content_size = Some(blobs[at].bytes.len() as i64 + vector.length_shift);
            entry.record_count = vector.cardinality.unwrap_or(entry.record_count);
            entry.referenced_data_file = vector.referenced.then(|| data_file.entry.path.clone());
            let stored = Stored {
                name: format!("{}/{}", self.name, vector.data_file),
                effect: Effect::Vector {
                    path: data_file.entry.path.clone(),
                    positions: vector.positions,
                },
                entry,
            };
            (stored, place)
        })
        .collect()
    }
}

/// Deletes lie in the spec and partition of the file they are about, unless the test says otherwise.
fn follow(place: &mut Place, data_file: Option<&FileEntry>) {
    let Some(data_file) = data_file else { return };
    if place.spec.is_none() && place.partition.is_none() {
        place.spec = Some(data_file.spec_id);
        place.values = Some(data_file.partition.clone());
    }
}
