//! Which metadata tables there are, and the object behind each.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;

use super::readable::{ReadableColumn, readable_columns};
use super::{files, manifests, partitions, schemas, snapshots};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::arrow_schema::{FileNames, columns};
use crate::iceberg::manifest::ManifestContent;
use crate::iceberg::spec::Snapshot;
use crate::iceberg::table::IcebergTable;
use crate::iceberg::time_travel::version;
use crate::table::{AsOf, MetadataTable};

/// A metadata table. `all`: over every snapshot that the table still has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Snapshots,
    History,
    Refs,
    MetadataLogEntries,
    Properties,
    Manifests {
        all: bool,
    },
    /// `content`: only files of such manifests.
    Files {
        all: bool,
        content: Option<ManifestContent>,
    },
    Entries {
        all: bool,
    },
    Partitions,
}

const KINDS: &[(&str, Kind)] = &[
    ("snapshots", Kind::Snapshots),
    ("history", Kind::History),
    ("refs", Kind::Refs),
    ("metadata_log_entries", Kind::MetadataLogEntries),
    ("properties", Kind::Properties),
    ("manifests", Kind::Manifests { all: false }),
    ("all_manifests", Kind::Manifests { all: true }),
    ("files", files(false, None)),
    ("data_files", files(false, Some(ManifestContent::Data))),
    ("delete_files", files(false, Some(ManifestContent::Deletes))),
    ("all_files", files(true, None)),
    ("all_data_files", files(true, Some(ManifestContent::Data))),
    ("all_delete_files", files(true, Some(ManifestContent::Deletes))),
    ("entries", Kind::Entries { all: false }),
    ("all_entries", Kind::Entries { all: true }),
    ("partitions", Kind::Partitions),
];

const fn files(all: bool, content: Option<ManifestContent>) -> Kind {
    Kind::Files { all, content }
}

impl Kind {
    /// Whether the rows are those of one snapshot.
    fn has_versions(self) -> bool {
        match self {
            Self::Snapshots | Self::History | Self::Refs | Self::MetadataLogEntries | Self::Properties => false,
            Self::Manifests { all } | Self::Files { all, .. } | Self::Entries { all } => !all,
            Self::Partitions => true,
        }
    }
}

/// The metadata table of a name.
///
/// Errors: `Unsupported` for one that is not built, or has no versions and was asked for one;
/// `NotFound` for a version that is not there.
pub(in crate::iceberg) fn metadata_table(table: &IcebergTable, name: &str, at: &AsOf) -> Result<Arc<dyn MetadataTable>> {
    let kind = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let kind = kind.ok_or_else(|| Error::unsupported(format!("metadata table {name} is not built yet")))?;
    if !kind.has_versions() && *at != AsOf::Latest {
        return Err(Error::unsupported(format!(
            "metadata table {name} describes the table as a whole and has no versions: name it without one"
        )));
    }
    let snapshot = version(&table.metadata, at)?.snapshot.cloned();
    let readable = match kind {
        Kind::Files { .. } | Kind::Entries { .. } => readable_columns(table.metadata.current_schema()?),
        _ => Vec::new(),
    };
    let schema = schemas::schema(kind, &table.metadata, &readable)?;
    let columns = columns(&schema, &FileNames::new())?;
    let arrow = ArrowSchema::new(columns.iter().map(|c| Arc::clone(&c.field)).collect::<Vec<_>>());
    Ok(Arc::new(IcebergMetadataTable {
        kind,
        table: table.clone(),
        snapshot,
        readable: readable.into(),
        ids: columns.iter().map(|c| c.id).collect(),
        schema: Arc::new(arrow),
    }))
}

/// A metadata table of one table at one version.
#[derive(Debug)]
pub(super) struct IcebergMetadataTable {
    kind: Kind,
    pub(super) table: IcebergTable,
    /// `None` for a table that was never written to.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) readable: Arc<[ReadableColumn]>,
    /// Field ids of the columns.
    ids: Vec<i32>,
    schema: SchemaRef,
}

/// The columns that are wanted of a metadata table.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Field ids, parallel to the schema.
    pub(super) ids: Vec<i32>,
    pub(super) schema: SchemaRef,
}

impl Wanted {
    /// A batch of this many rows, its columns made one by one.
    pub(super) fn batch(
        &self,
        rows: usize,
        mut column: impl FnMut(i32, &arrow::datatypes::Field) -> Result<arrow::array::ArrayRef>,
    ) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.ids.len());
        for (id, field) in self.ids.iter().zip(self.schema.fields()) {
            arrays.push(column(*id, field).context("column", || field.name())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }
}

impl IcebergMetadataTable {
    fn wanted(&self, indices: &[usize]) -> Result<Wanted> {
        let ids = indices.iter().filter_map(|i| self.ids.get(*i).copied()).collect();
        let schema = Arc::new(self.schema.project(indices)?);
        Ok(Wanted { ids, schema })
    }
}

#[async_trait]
impl MetadataTable for IcebergMetadataTable {
    fn metadata_location(&self) -> &str {
        &self.table.metadata_location
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn rows(&self, wanted: &[usize]) -> Result<Vec<RecordBatch>> {
        let wanted = self.wanted(wanted)?;
        let metadata = &self.table.metadata;
        let rows = match self.kind {
            Kind::Snapshots => snapshots::snapshots(metadata, &wanted).map(|b| vec![b]),
            Kind::History => snapshots::history(metadata, &wanted).map(|b| vec![b]),
            Kind::Refs => snapshots::refs(metadata, &wanted).map(|b| vec![b]),
            Kind::MetadataLogEntries => snapshots::metadata_log(metadata, &self.table.metadata_location, &wanted).map(|b| vec![b]),
            Kind::Properties => snapshots::properties(metadata, &wanted).map(|b| vec![b]),
            Kind::Manifests { all } => manifests::manifests(self, all, &wanted).await,
            Kind::Files { all, content } => files::files(self, all, content, &wanted).await,
            Kind::Entries { all } => files::entries(self, all, &wanted).await,
            Kind::Partitions => partitions::partitions(self, &wanted).await,
        };
        rows.context("table", || &self.table.ident)
    }
}
