//! The table under construction: its state, its folder and its metadata files.
//!
//! Every change writes a new metadata file at once, so the folder is always a whole table. Ids,
//! times and names are counted, never drawn, so that the same test makes the same table.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::avro::Container;
use super::files::{Content, FileEntry, Metrics, Place, Stored};
use super::manifest::Manifest;
use super::partition::PartitionSpec;
use super::types::{Schema, Type};
use super::{Codec, model};

/// Snapshot ids are beyond 2^53, so that a reader that holds them as doubles fails.
const FIRST_SNAPSHOT_ID: i64 = 5_000_000_000_000_000_001;
/// Time of the table's creation, milliseconds; every change comes a minute later.
const FIRST_TIME: i64 = 1_700_000_000_000;

/// How the metadata file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataFile {
    /// `vN.metadata.json`
    #[default]
    Plain,
    /// `vN.gz.metadata.json`, compressed
    GzipBeforeSuffix,
    /// `vN.metadata.json.gz`, compressed
    GzipAfterSuffix,
}

/// A change of the metadata JSON that is applied whenever it is written.
pub type MetadataEdit = Box<dyn Fn(&mut Map<String, Value>)>;

/// What a table starts with.
pub struct TableBuilder {
    dir: PathBuf,
    guard: Option<tempfile::TempDir>,
    location: Option<String>,
    version: u8,
    schema: Schema,
    spec: PartitionSpec,
    properties: Vec<(String, String)>,
    container: Container,
    metadata_file: MetadataFile,
    inline_manifests: bool,
    edit: Option<MetadataEdit>,
}

impl TableBuilder {
    /// A v2 table in this folder, which is made if it is not there.
    pub fn new(dir: impl Into<PathBuf>, schema: Schema) -> Self {
        Self {
            dir: dir.into(),
            guard: None,
            location: None,
            version: 2,
            schema,
            spec: PartitionSpec::default(),
            properties: Vec::new(),
            container: Container::default(),
            metadata_file: MetadataFile::default(),
            inline_manifests: false,
            edit: None,
        }
    }

    /// A v2 table in a temporary folder that goes with the table. With `SANDUR_KEEP_TABLES` set to
    /// a folder it stays there, below the test's name, to be looked at with another engine.
    pub fn temp(schema: Schema) -> Self {
        if let Some(kept) = std::env::var_os("SANDUR_KEEP_TABLES") {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("unnamed").replace("::", "/");
            let folder = Path::new(&kept).join(test);
            let number = (0..).find(|n| !folder.join(n.to_string()).exists()).expect("a number");
            return Self::new(folder.join(number.to_string()).join("t"), schema);
        }
        let guard = tempfile::tempdir().expect("a temporary folder");
        let mut builder = Self::new(guard.path().join("t"), schema);
        builder.guard = Some(guard);
        builder
    }

    /// Format version 1, 2 or 3.
    #[must_use]
    pub fn format_version(mut self, version: u8) -> Self {
        self.version = version;
        self
    }

    /// The first partition spec; unpartitioned by default.
    #[must_use]
    pub fn spec(mut self, spec: PartitionSpec) -> Self {
        self.spec = spec;
        self
    }

    /// A table property.
    #[must_use]
    pub fn property(mut self, key: &str, value: &str) -> Self {
        self.properties.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Location as all files of the table record it; the folder itself by default.
    #[must_use]
    pub fn recorded_location(mut self, location: &str) -> Self {
        self.location = Some(location.to_owned());
        self
    }

    /// Compression of manifests and manifest lists.
    #[must_use]
    pub fn manifest_codec(mut self, codec: Codec) -> Self {
        self.container.codec = codec;
        self
    }

    /// Entries per Avro block.
    #[must_use]
    pub fn manifest_block_records(mut self, records: usize) -> Self {
        self.container.block_records = Some(records);
        self
    }

    /// How metadata files are stored.
    #[must_use]
    pub fn metadata_file(mut self, form: MetadataFile) -> Self {
        self.metadata_file = form;
        self
    }

    /// Snapshots name their manifests themselves instead of a list (v1).
    #[must_use]
    pub fn inline_manifests(mut self) -> Self {
        self.inline_manifests = true;
        self
    }

    /// A change that every metadata file gets before it is written, to make it odd or wrong.
    #[must_use]
    pub fn edit_metadata(mut self, edit: impl Fn(&mut Map<String, Value>) + 'static) -> Self {
        self.edit = Some(Box::new(edit));
        self
    }

    /// Writes the first metadata file.
    pub fn create(self) -> TestTable {
        for folder in ["metadata", "data"] {
            std::fs::create_dir_all(self.dir.join(folder)).expect("a folder that can be written to");
        }
        let real = self.dir.to_str().expect("paths are UTF-8").to_owned();
        let mut table = TestTable {
            location: self.location.unwrap_or_else(|| real.clone()),
            dir: self.dir,
            _guard: self.guard,
            version: self.version,
            schemas: vec![self.schema],
            specs: Vec::new(),
            last_partition_id: 999,
            properties: self.properties,
            container: self.container,
            metadata_form: self.metadata_file,
            inline_manifests: self.inline_manifests,
            edit: self.edit,
            snapshots: Vec::new(),
            refs: Vec::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
            last_sequence_number: 0,
            next_row_id: 0,
            changes: 0,
            manifests_written: 0,
            files: Vec::new(),
        };
        let spec = self.spec;
        table.push_spec(spec);
        table.write_metadata();
        table
    }
}

/// A snapshot with its manifests.
#[derive(Debug, Clone)]
pub struct SnapshotState {
    pub id: i64,
    pub parent: Option<i64>,
    pub sequence_number: i64,
    pub timestamp_ms: i64,
    pub manifest_list: String,
    pub manifests: Vec<Manifest>,
    pub summary: Map<String, Value>,
    pub schema_id: i32,
    pub first_row_id: Option<i64>,
    pub added_rows: Option<i64>,
}

/// A table in a folder, with the plain model of its rows.
pub struct TestTable {
    pub(super) dir: PathBuf,
    _guard: Option<tempfile::TempDir>,
    pub(super) location: String,
    pub(super) version: u8,
    /// The last one is current.
    pub(super) schemas: Vec<Schema>,
    /// The last one is the default.
    pub(super) specs: Vec<PartitionSpec>,
    last_partition_id: i32,
    properties: Vec<(String, String)>,
    pub(super) container: Container,
    metadata_form: MetadataFile,
    pub(super) inline_manifests: bool,
    edit: Option<MetadataEdit>,
    pub(super) snapshots: Vec<SnapshotState>,
    /// (name, snapshot id, is branch)
    pub(super) refs: Vec<(String, i64, bool)>,
    pub(super) snapshot_log: Vec<(i64, i64)>,
    metadata_log: Vec<(i64, String)>,
    pub(super) last_sequence_number: i64,
    pub(super) next_row_id: i64,
    changes: i64,
    pub(super) manifests_written: usize,
    /// Every file ever written; of equal names the last one counts.
    pub(super) files: Vec<Rc<Stored>>,
}

impl std::fmt::Debug for TestTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestTable")
            .field("dir", &self.dir)
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl TestTable {
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The newest metadata file.
    pub fn metadata_file(&self) -> PathBuf {
        self.dir.join(self.metadata_name(self.changes))
    }

    /// (recorded prefix, real prefix); empty where the table lies where it says.
    pub fn path_map(&self) -> Vec<(String, String)> {
        let real = self.dir.to_str().expect("paths are UTF-8").to_owned();
        if self.location == real {
            Vec::new()
        } else {
            vec![(self.location.clone(), real)]
        }
    }

    /// The current schema.
    pub fn schema(&self) -> &Schema {
        self.schemas.last().expect("a table has a schema")
    }

    /// Id of the current snapshot.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.refs.iter().find(|(name, ..)| name == "main").map(|(_, id, _)| *id)
    }

    /// The rows that the current snapshot shows, as the model works them out.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        self.snapshot_id()
            .map_or_else(Vec::new, |id| model::rows(self, self.snapshot(id), self.schema()))
    }

    /// The rows of an older snapshot in its own schema.
    pub fn rows_at(&self, snapshot_id: i64) -> Vec<Vec<Value>> {
        let snapshot = self.snapshot(snapshot_id);
        let schema = self.schemas.iter().find(|s| s.id == snapshot.schema_id).expect("schemas are kept");
        model::rows(self, snapshot, schema)
    }

    /// Where tables are kept, notes what this one must show, beside its folder.
    pub fn note_rows(&self, rows: &[String]) {
        if std::env::var_os("SANDUR_KEEP_TABLES").is_some() {
            let note = json!({"metadata": self.metadata_file(), "columns": self.schema().names(), "rows": rows});
            let path = self.dir.with_file_name("rows.jsonl");
            let old = std::fs::read_to_string(&path).unwrap_or_default();
            std::fs::write(path, format!("{old}{note}\n")).expect("a folder that can be written to");
        }
    }

    /// Makes this the current schema.
    pub fn set_schema(&mut self, mut schema: Schema) {
        schema.id = self.schemas.len() as i32;
        self.schemas.push(schema);
        self.write_metadata();
    }

    /// Changes the current schema.
    pub fn evolve(&mut self, change: impl FnOnce(Schema) -> Schema) {
        let changed = change(self.schema().clone());
        self.set_schema(changed);
    }

    /// Makes this the default spec.
    pub fn set_spec(&mut self, spec: PartitionSpec) {
        self.push_spec(spec);
        self.write_metadata();
    }

    /// Sets a table property.
    pub fn set_property(&mut self, key: &str, value: &str) {
        self.properties.retain(|(k, _)| k != key);
        self.properties.push((key.to_owned(), value.to_owned()));
        self.write_metadata();
    }

    /// Raises the format version; files stay as they are.
    pub fn upgrade(&mut self, version: u8) {
        assert!(version > self.version, "a table is never downgraded");
        self.version = version;
        self.write_metadata();
    }

    /// Names the current snapshot by a tag.
    pub fn tag(&mut self, name: &str) {
        let id = self.snapshot_id().expect("a snapshot to name");
        self.refs.push((name.to_owned(), id, false));
        self.write_metadata();
    }

    /// Starts a branch at the current snapshot.
    pub fn branch(&mut self, name: &str) {
        let id = self.snapshot_id().expect("a snapshot to start from");
        self.refs.push((name.to_owned(), id, true));
        self.write_metadata();
    }

    /// A file by the name that the test gave it.
    pub fn file(&self, name: &str) -> Rc<Stored> {
        let found = self.files.iter().rev().find(|f| f.name == name);
        found
            .unwrap_or_else(|| panic!("no file {name}; a delete file comes after its data files"))
            .clone()
    }

    /// Where a file lies.
    pub fn real_path(&self, name: &str) -> PathBuf {
        let file = self.file(name);
        let relative = file.entry.path.strip_prefix(&self.location).expect("below the location");
        self.dir.join(relative.trim_start_matches('/'))
    }

    /// Writes a file below the table's folder.
    pub(super) fn write_file(&self, relative: &str, bytes: &[u8]) {
        let path = self.dir.join(relative);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder that can be written to");
        std::fs::write(&path, bytes).expect("a folder that can be written to");
    }

    /// The recorded form of a path below the table's folder.
    pub(super) fn recorded(&self, relative: &str) -> String {
        format!("{}/{relative}", self.location.trim_end_matches('/'))
    }

    pub(super) fn entry(&self, content: Content, place: &Place, relative: &str, rows: usize, size: usize) -> FileEntry {
        let spec = match place.spec {
            Some(id) => self.specs.iter().find(|s| s.id == id).unwrap_or_else(|| panic!("no spec {id}")),
            None => self.specs.last().expect("a table has a spec"),
        };
        let given = place.partition.as_ref().unwrap_or(&Value::Null);
        let path = match &place.recorded {
            Some(spelling) => spelling.replace("{location}", &self.location),
            None => self.recorded(relative),
        };
        FileEntry {
            content,
            path,
            format: place.format.clone().unwrap_or_else(|| "PARQUET".to_owned()),
            spec_id: spec.id,
            partition: place.values.clone().unwrap_or_else(|| spec.values(given, &self.schemas)),
            record_count: place.record_count.unwrap_or(rows as i64),
            size: place.size.unwrap_or(size as i64),
            metrics: Metrics::default(),
            equality_ids: None,
            first_row_id: None,
            referenced_data_file: None,
            content_offset: None,
            content_size: None,
        }
    }

    /// Cells of a row of a data file by recorded path.
    pub(super) fn row_at(&self, path: &str, position: i64) -> Option<Vec<Value>> {
        let file = self
            .files
            .iter()
            .rev()
            .find(|f| f.entry.path == path && f.entry.content == Content::Data)?;
        let super::files::Effect::Rows { rows, .. } = &file.effect else {
            return None;
        };
        rows.get(usize::try_from(position).ok()?).cloned()
    }

    /// Types of a spec's partition values.
    pub(super) fn partition_types(&self, spec_id: i32) -> Vec<Type> {
        self.spec(spec_id).fields.iter().map(|f| f.result_type(&self.schemas)).collect()
    }

    pub(super) fn spec(&self, id: i32) -> &PartitionSpec {
        self.specs.iter().find(|s| s.id == id).expect("specs are kept")
    }

    pub(super) fn snapshot(&self, id: i64) -> &SnapshotState {
        self.snapshots
            .iter()
            .find(|s| s.id == id)
            .unwrap_or_else(|| panic!("no snapshot {id}"))
    }

    pub(super) fn next_snapshot_id(&self) -> i64 {
        FIRST_SNAPSHOT_ID + self.snapshots.len() as i64
    }

    /// Time of the change that is being made.
    pub(super) fn now(&self) -> i64 {
        FIRST_TIME + (self.changes + 1) * 60_000
    }

    fn push_spec(&mut self, mut spec: PartitionSpec) {
        spec.id = self.specs.len() as i32;
        for field in &mut spec.fields {
            if field.field_id == 0 {
                let mut known = self.specs.iter().rev().flat_map(|s| &s.fields);
                let same = known.find(|f| f.source_id == field.source_id && f.transform == field.transform);
                field.field_id = same.map_or(self.last_partition_id + 1, |f| f.field_id);
            }
            self.last_partition_id = self.last_partition_id.max(field.field_id);
        }
        self.specs.push(spec);
    }

    fn metadata_name(&self, change: i64) -> String {
        let suffix = match self.metadata_form {
            MetadataFile::Plain => "metadata.json",
            MetadataFile::GzipBeforeSuffix => "gz.metadata.json",
            MetadataFile::GzipAfterSuffix => "metadata.json.gz",
        };
        format!("metadata/v{change}.{suffix}")
    }

    pub(super) fn write_metadata(&mut self) {
        if self.changes > 0 {
            let previous = self.recorded(&self.metadata_name(self.changes));
            self.metadata_log.push((self.now() - 60_000, previous));
        }
        let now = self.now();
        self.changes += 1;
        let mut json = super::metadata::json(self, now);
        if let Some(edit) = &self.edit {
            edit(&mut json);
        }
        let text = serde_json::to_vec_pretty(&json).expect("JSON prints");
        let bytes = match self.metadata_form {
            MetadataFile::Plain => text,
            _ => super::metadata::gzip(&text),
        };
        self.write_file(&self.metadata_name(self.changes), &bytes);
        self.write_file("metadata/version-hint.text", self.changes.to_string().as_bytes());
    }

    pub(super) fn properties_json(&self) -> Value {
        Value::Object(self.properties.iter().map(|(k, v)| (k.clone(), json!(v))).collect())
    }

    pub(super) fn last_partition_id(&self) -> i32 {
        self.last_partition_id
    }

    pub(super) fn metadata_log(&self) -> &[(i64, String)] {
        &self.metadata_log
    }
}
