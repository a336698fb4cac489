//! Listings over catalogs in memory.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use async_trait::async_trait;

use super::*;
use crate::error::Error;
use crate::table::{Column, ScanPlan, ScanRequest, Table};

#[derive(Debug)]
struct FakeCatalog {
    name: &'static str,
    /// Schema and table; a table named `broken` does not load.
    tables: Vec<(&'static str, &'static str)>,
    broken: bool,
}

#[async_trait]
impl Catalog for FakeCatalog {
    fn name(&self) -> &str {
        self.name
    }

    async fn list_schemas(&self) -> Result<Vec<String>> {
        if self.broken {
            return Err(Error::unavailable("no answer"));
        }
        let mut names: Vec<String> = self.tables.iter().map(|t| t.0.to_owned()).collect();
        names.dedup();
        Ok(names)
    }

    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>> {
        let of_schema = self.tables.iter().filter(|t| t.0 == schema);
        Ok(of_schema.map(|t| TableIdent::new(self.name, t.0, t.1)).collect())
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        if ident.table == "broken" {
            return Err(Error::corrupt("metadata is cut off"));
        }
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8View, true),
        ]);
        Ok(Arc::new(FakeTable {
            ident: ident.clone(),
            schema: Arc::new(schema),
        }))
    }

    async fn load_table_at(&self, ident: &TableIdent, _metadata_location: &str) -> Result<Arc<dyn Table>> {
        self.load_table(ident).await
    }
}

#[derive(Debug, Clone)]
struct FakeTable {
    ident: TableIdent,
    schema: SchemaRef,
}

#[async_trait]
impl Table for FakeTable {
    fn ident(&self) -> &TableIdent {
        &self.ident
    }

    fn format(&self) -> &'static str {
        "iceberg"
    }

    async fn snapshot(&self, _at: &AsOf) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Snapshot for FakeTable {
    fn table(&self) -> &TableIdent {
        &self.ident
    }

    fn id(&self) -> Option<i64> {
        Some(1)
    }

    fn metadata_location(&self) -> &str {
        "m"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn columns(&self) -> &[Arc<Column>] {
        &[]
    }

    fn identifier_columns(&self) -> Vec<String> {
        vec!["id".to_owned(), "name".to_owned()]
    }

    async fn plan_scan(&self, _request: &ScanRequest) -> Result<ScanPlan> {
        Err(Error::internal("nothing is scanned here"))
    }
}

fn fixture() -> Arc<Catalogs> {
    let z = FakeCatalog {
        name: "z",
        tables: vec![("s1", "b"), ("s1", "a_1"), ("s1", "ab1"), ("s_2", "broken"), ("s_2", "orders")],
        broken: false,
    };
    let a = FakeCatalog {
        name: "a",
        tables: vec![("s1", "orders")],
        broken: false,
    };
    let broken = FakeCatalog {
        name: "m",
        tables: vec![],
        broken: true,
    };
    Arc::new(Catalogs::new(vec![Arc::new(z), Arc::new(a), Arc::new(broken)]))
}

async fn collect(rows: Rows) -> RecordBatch {
    let batches: Vec<RecordBatch> = rows.batches.try_collect().await.unwrap();
    for batch in &batches {
        assert_eq!(batch.schema(), rows.schema);
    }
    arrow::compute::concat_batches(&rows.schema, &batches).unwrap()
}

fn names(batch: &RecordBatch) -> Vec<String> {
    (0..batch.num_rows())
        .map(|row| {
            let parts = batch.columns().iter().take(3).filter(|c| c.data_type() == &DataType::Utf8);
            parts.map(|c| c.as_string::<i32>().value(row)).collect::<Vec<_>>().join(".")
        })
        .collect()
}

#[tokio::test]
async fn catalogs_and_schemas_are_sorted() {
    assert_eq!(names(&collect(catalogs(&fixture()).unwrap()).await), ["a", "m", "z"]);
    let all = db_schemas(&fixture(), &CommandGetDbSchemas::default()).await.unwrap();
    assert_eq!(names(&collect(all).await), ["a.s1", "z.s1", "z.s_2"]);
    let some = CommandGetDbSchemas {
        catalog: Some("z".to_owned()),
        db_schema_filter_pattern: Some("s\\_%".to_owned()),
    };
    assert_eq!(names(&collect(db_schemas(&fixture(), &some).await.unwrap()).await), ["z.s_2"]);
    let none = CommandGetDbSchemas {
        catalog: Some(String::new()),
        db_schema_filter_pattern: None,
    };
    assert_eq!(collect(db_schemas(&fixture(), &none).await.unwrap()).await.num_rows(), 0);
}

#[tokio::test]
async fn a_catalog_that_fails_is_an_error_only_when_it_is_asked_for() {
    let alone = CommandGetDbSchemas {
        catalog: Some("m".to_owned()),
        db_schema_filter_pattern: None,
    };
    let error = db_schemas(&fixture(), &alone).await.err().unwrap();
    assert_eq!(error.kind(), crate::error::ErrorKind::Unavailable);
}

#[tokio::test]
async fn tables_are_sorted_and_filtered() {
    let all = collect(tables(fixture(), &CommandGetTables::default()).await.unwrap()).await;
    assert_eq!(
        names(&all),
        ["a.s1.orders", "z.s1.a_1", "z.s1.ab1", "z.s1.b", "z.s_2.broken", "z.s_2.orders"]
    );
    assert_eq!(all.column(3).as_string::<i32>().value(0), "TABLE");

    let command = |table: &str, types: &[&str]| CommandGetTables {
        table_name_filter_pattern: Some(table.to_owned()),
        table_types: types.iter().map(|t| (*t).to_owned()).collect(),
        ..Default::default()
    };
    let rows = |command: CommandGetTables| async move { names(&collect(tables(fixture(), &command).await.unwrap()).await) };
    assert_eq!(rows(command("a_1", &[])).await, ["z.s1.a_1", "z.s1.ab1"]);
    assert_eq!(rows(command("a\\_1", &["base table"])).await, ["z.s1.a_1"]);
    assert!(rows(command("%", &["VIEW"])).await.is_empty());
}

#[tokio::test]
async fn with_schemas_only_the_table_that_fails_is_missing() {
    let command = CommandGetTables {
        db_schema_filter_pattern: Some("s\\_2".to_owned()),
        include_schema: true,
        ..Default::default()
    };
    let listed = collect(tables(fixture(), &command).await.unwrap()).await;
    assert_eq!(names(&listed), ["z.s_2.orders"]);
    let schema = try_schema_from_ipc_buffer(listed.column(4).as_binary::<i32>().value(0)).unwrap();
    assert_eq!(schema.field(1).data_type(), &DataType::Utf8);
    for field in schema.fields() {
        assert_eq!(field.metadata()["ARROW:FLIGHT:SQL:TABLE_NAME"], "orders");
        assert!(field.metadata().contains_key("ARROW:FLIGHT:SQL:TYPE_NAME"));
    }
}

#[tokio::test]
async fn identifier_fields_are_the_primary_key() {
    let command = |schema: Option<&str>, table: &str| CommandGetPrimaryKeys {
        catalog: Some("z".to_owned()),
        db_schema: schema.map(str::to_owned),
        table: table.to_owned(),
    };
    let keys = collect(primary_keys(&fixture(), &command(Some("s_2"), "orders")).await.unwrap()).await;
    assert_eq!(names(&keys), ["z.s_2.orders", "z.s_2.orders"]);
    assert_eq!(
        keys.column(3).as_string::<i32>().iter().map(Option::unwrap).collect::<Vec<_>>(),
        ["id", "name"]
    );
    assert_eq!(keys.column(5).as_primitive::<Int32Type>().values(), &[1, 2]);
    assert_eq!(keys.column(4).null_count(), 2);
    // A name is no pattern here.
    let none = collect(primary_keys(&fixture(), &command(None, "a%")).await.unwrap()).await;
    assert_eq!(none.num_rows(), 0);
    assert!(primary_keys(&fixture(), &command(None, "broken")).await.is_err());
}
