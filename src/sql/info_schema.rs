//! `information_schema`: what there is, as tables.
//!
//! Invariants: rows are looked up when a plan is made to run, never while a statement is only
//! planned; `schemata`, `tables`, `views` and `catalogs` load no table. `columns` and
//! `table_constraints` load the tables that the filters leave, and leave out a table that cannot
//! be loaded unless it is asked for by name.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt, stream};

use super::errors::to_datafusion;
use crate::catalog::{Catalog, Catalogs};
use crate::error::Result;
use crate::table::{AsOf, DOC_KEY, Snapshot, TYPE_NAME_KEY, TableIdent};

/// The schema's name.
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";
/// Tables that are loaded at once.
const LOADS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Catalogs,
    Schemata,
    Tables,
    Views,
    Columns,
    TableConstraints,
}

const KINDS: &[(&str, Kind)] = &[
    ("catalogs", Kind::Catalogs),
    ("schemata", Kind::Schemata),
    ("tables", Kind::Tables),
    ("views", Kind::Views),
    ("columns", Kind::Columns),
    ("table_constraints", Kind::TableConstraints),
];

/// A table of `information_schema`.
#[derive(Debug, Clone)]
pub(super) struct InfoTable {
    kind: Kind,
    catalogs: Arc<Catalogs>,
    /// Only this catalog; `None` is all.
    only: Option<String>,
    schema: SchemaRef,
}

impl InfoTable {
    /// The table of a name, in lower case, or `None`.
    pub(super) fn new(name: &str, catalogs: &Arc<Catalogs>, only: Option<String>) -> Option<Self> {
        let (_, kind) = KINDS.iter().find(|(n, _)| *n == name)?;
        Some(Self {
            kind: *kind,
            catalogs: Arc::clone(catalogs),
            only,
            schema: kind.schema(),
        })
    }
}

impl Kind {
    fn schema(self) -> SchemaRef {
        let text = |names: &[&str]| names.iter().map(|n| Field::new(*n, DataType::Utf8, true)).collect::<Vec<_>>();
        let fields = match self {
            Self::Catalogs => text(&["catalog_name"]),
            Self::Schemata => text(&["catalog_name", "schema_name", "schema_owner"]),
            Self::Tables => text(&["table_catalog", "table_schema", "table_name", "table_type"]),
            Self::Views => text(&["table_catalog", "table_schema", "table_name", "definition"]),
            Self::Columns => {
                let mut fields = text(&["table_catalog", "table_schema", "table_name", "column_name"]);
                fields.push(Field::new("ordinal_position", DataType::Int32, false));
                fields.extend(text(&["column_default", "is_nullable", "data_type"]));
                fields.push(Field::new("numeric_precision", DataType::Int32, true));
                fields.push(Field::new("numeric_scale", DataType::Int32, true));
                fields.extend(text(&["comment"]));
                fields
            }
            Self::TableConstraints => text(&[
                "constraint_catalog",
                "constraint_schema",
                "constraint_name",
                "table_catalog",
                "table_schema",
                "table_name",
                "constraint_type",
                "is_deferrable",
                "initially_deferred",
                "enforced",
            ]),
        };
        Arc::new(Schema::new(fields))
    }
}

#[async_trait]
impl TableProvider for InfoTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let wanted = Wanted::new(filters);
        let batch = self.rows(&wanted).await.map_err(to_datafusion)?;
        let plan = MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&self.schema), projection.cloned())?;
        Ok(plan)
    }
}

/// Values that the filters ask for by equality.
#[derive(Debug, Default)]
struct Wanted(HashMap<String, String>);

impl Wanted {
    fn new(filters: &[Expr]) -> Self {
        let mut wanted = Self::default();
        for filter in filters {
            if let Expr::BinaryExpr(binary) = filter
                && binary.op == Operator::Eq
            {
                let (column, value) = match (binary.left.as_ref(), binary.right.as_ref()) {
                    (Expr::Column(c), Expr::Literal(v, _)) | (Expr::Literal(v, _), Expr::Column(c)) => (c, v),
                    _ => continue,
                };
                if let ScalarValue::Utf8(Some(value)) | ScalarValue::LargeUtf8(Some(value)) | ScalarValue::Utf8View(Some(value)) = value {
                    wanted.0.insert(column.name.clone(), value.clone());
                }
            }
        }
        wanted
    }

    /// False when a filter rules the value out.
    fn takes(&self, column: &str, value: &str) -> bool {
        self.0.get(column).is_none_or(|wanted| wanted == value)
    }
}

impl InfoTable {
    async fn rows(&self, wanted: &Wanted) -> Result<RecordBatch> {
        let mut rows = Rows::new(self.schema.fields().len());
        match self.kind {
            Kind::Catalogs => {
                for catalog in self.catalogs(wanted, "catalog_name") {
                    rows.push([Some(catalog.name())]);
                }
            }
            Kind::Schemata => {
                for catalog in self.catalogs(wanted, "catalog_name") {
                    for schema in catalog.list_schemas().await? {
                        rows.push([Some(catalog.name()), Some(&schema), None]);
                    }
                    rows.push([Some(catalog.name()), Some(INFORMATION_SCHEMA), None]);
                }
            }
            Kind::Tables => {
                for table in self.tables(wanted).await? {
                    rows.push([
                        Some(table.catalog.as_str()),
                        Some(&table.schema),
                        Some(&table.table),
                        Some("BASE TABLE"),
                    ]);
                }
                for catalog in self.catalogs(wanted, "table_catalog") {
                    for (name, _) in KINDS {
                        rows.push([Some(catalog.name()), Some(INFORMATION_SCHEMA), Some(name), Some("VIEW")]);
                    }
                }
            }
            Kind::Views => {}
            Kind::Columns => {
                for snapshot in self.snapshots(wanted).await? {
                    column_rows(&mut rows, snapshot.table(), snapshot.schema());
                }
                for catalog in self.catalogs(wanted, "table_catalog") {
                    for (name, kind) in KINDS {
                        if wanted.takes("table_schema", INFORMATION_SCHEMA) && wanted.takes("table_name", name) {
                            let ident = TableIdent::new(catalog.name(), INFORMATION_SCHEMA, *name);
                            column_rows(&mut rows, &ident, &kind.schema());
                        }
                    }
                }
            }
            Kind::TableConstraints => {
                for snapshot in self.snapshots(wanted).await? {
                    if !snapshot.identifier_columns().is_empty() {
                        let table = snapshot.table();
                        let name = format!("{}_identifier", table.table);
                        rows.push([
                            Some(table.catalog.as_str()),
                            Some(&table.schema),
                            Some(&name),
                            Some(&table.catalog),
                            Some(&table.schema),
                            Some(&table.table),
                            Some("PRIMARY KEY"),
                            Some("NO"),
                            Some("NO"),
                            Some("NO"),
                        ]);
                    }
                }
            }
        }
        rows.finish(&self.schema)
    }

    fn catalogs<'a>(&'a self, wanted: &'a Wanted, column: &'a str) -> impl Iterator<Item = &'a Arc<dyn Catalog>> {
        self.catalogs
            .iter()
            .filter(move |c| self.only.as_deref().is_none_or(|only| only == c.name()) && wanted.takes(column, c.name()))
    }

    async fn tables(&self, wanted: &Wanted) -> Result<Vec<TableIdent>> {
        let mut found = Vec::new();
        for catalog in self.catalogs(wanted, "table_catalog") {
            for schema in catalog.list_schemas().await? {
                if wanted.takes("table_schema", &schema) {
                    found.extend(catalog.list_tables(&schema).await?);
                }
            }
        }
        found.retain(|table| wanted.takes("table_name", &table.table));
        Ok(found)
    }

    async fn snapshots(&self, wanted: &Wanted) -> Result<Vec<Arc<dyn Snapshot>>> {
        let tables = self.tables(wanted).await?;
        let one = tables.len() == 1 && wanted.0.contains_key("table_name");
        let loads = tables.into_iter().map(|ident| async move {
            let loaded = load(&self.catalogs, &ident).await;
            match loaded {
                Ok(snapshot) => Ok(Some(snapshot)),
                Err(e) if one => Err(e),
                Err(e) => {
                    tracing::warn!(table = %ident, error = %e, "table left out of information_schema");
                    Ok(None)
                }
            }
        });
        let loaded: Vec<Option<_>> = stream::iter(loads).buffered(LOADS).try_collect().await?;
        Ok(loaded.into_iter().flatten().collect())
    }
}

async fn load(catalogs: &Catalogs, ident: &TableIdent) -> Result<Arc<dyn Snapshot>> {
    catalogs.table(ident).await?.snapshot(&AsOf::Latest).await
}

/// Rows of text; numbers are texts until the end.
struct Rows(Vec<Vec<Option<String>>>);

impl Rows {
    fn new(columns: usize) -> Self {
        Self(vec![Vec::new(); columns])
    }

    fn push<'a>(&mut self, values: impl IntoIterator<Item = Option<&'a str>>) {
        for (column, value) in self.0.iter_mut().zip(values) {
            column.push(value.map(str::to_owned));
        }
    }

    fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let columns = self
            .0
            .into_iter()
            .zip(schema.fields())
            .map(|(values, field)| match field.data_type() {
                DataType::Int32 => {
                    let numbers = values.into_iter().map(|v| v.and_then(|v| v.parse::<i32>().ok()));
                    Arc::new(Int32Array::from_iter(numbers)) as ArrayRef
                }
                _ => Arc::new(StringArray::from_iter(values)) as ArrayRef,
            });
        Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
    }
}

fn column_rows(rows: &mut Rows, table: &TableIdent, schema: &SchemaRef) {
    for (position, field) in schema.fields().iter().enumerate() {
        let ordinal = (position + 1).to_string();
        let (precision, scale) = match field.data_type() {
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
                (Some(p.to_string()), Some(s.to_string()))
            }
            _ => (None, None),
        };
        rows.push([
            Some(table.catalog.as_str()),
            Some(&table.schema),
            Some(&table.table),
            Some(field.name()),
            Some(&ordinal),
            None,
            Some(if field.is_nullable() { "YES" } else { "NO" }),
            Some(&type_name(field)),
            precision.as_deref(),
            scale.as_deref(),
            field.metadata().get(DOC_KEY).map(String::as_str),
        ]);
    }
}

/// The type as the table's format names it, else as a SQL type, else as Arrow prints it.
pub(super) fn type_name(field: &Field) -> String {
    if let Some(name) = field.metadata().get(TYPE_NAME_KEY) {
        return name.clone();
    }
    match field.data_type() {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Decimal128(p, s) => format!("decimal({p},{s})"),
        other => other.to_string(),
    }
}
