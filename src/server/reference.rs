//! Result schemas of the metadata commands, exactly as the protocol writes them: drivers compare
//! names, order, types and nullability, and cast columns without looking. flight-sql.md 1.2 and T2.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UnionFields, UnionMode};

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn optional(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// CommandGetCatalogs
pub(super) static CATALOGS: LazyLock<SchemaRef> = LazyLock::new(|| schema(vec![required("catalog_name", DataType::Utf8)]));

/// CommandGetDbSchemas
pub(super) static DB_SCHEMAS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        optional("catalog_name", DataType::Utf8),
        required("db_schema_name", DataType::Utf8),
    ])
});

/// CommandGetTables
pub(super) static TABLES: LazyLock<SchemaRef> = LazyLock::new(|| schema(tables()));

/// CommandGetTables with `include_schema`
pub(super) static TABLES_WITH_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let mut fields = tables();
    fields.push(required("table_schema", DataType::Binary));
    schema(fields)
});

fn tables() -> Vec<Field> {
    vec![
        optional("catalog_name", DataType::Utf8),
        optional("db_schema_name", DataType::Utf8),
        required("table_name", DataType::Utf8),
        required("table_type", DataType::Utf8),
    ]
}

/// CommandGetTableTypes
pub(super) static TABLE_TYPES: LazyLock<SchemaRef> = LazyLock::new(|| schema(vec![required("table_type", DataType::Utf8)]));

/// CommandGetPrimaryKeys
pub(super) static PRIMARY_KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        optional("catalog_name", DataType::Utf8),
        optional("db_schema_name", DataType::Utf8),
        required("table_name", DataType::Utf8),
        required("column_name", DataType::Utf8),
        optional("key_name", DataType::Utf8),
        required("key_sequence", DataType::Int32),
    ])
});

/// CommandGetExportedKeys, CommandGetImportedKeys and CommandGetCrossReference
pub(super) static FOREIGN_KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        optional("pk_catalog_name", DataType::Utf8),
        optional("pk_db_schema_name", DataType::Utf8),
        required("pk_table_name", DataType::Utf8),
        required("pk_column_name", DataType::Utf8),
        optional("fk_catalog_name", DataType::Utf8),
        optional("fk_db_schema_name", DataType::Utf8),
        required("fk_table_name", DataType::Utf8),
        required("fk_column_name", DataType::Utf8),
        required("key_sequence", DataType::Int32),
        optional("fk_key_name", DataType::Utf8),
        optional("pk_key_name", DataType::Utf8),
        required("update_rule", DataType::UInt8),
        required("delete_rule", DataType::UInt8),
    ])
});

/// CommandGetXdbcTypeInfo
pub(super) static XDBC_TYPE_INFO: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("type_name", DataType::Utf8),
        required("data_type", DataType::Int32),
        optional("column_size", DataType::Int32),
        optional("literal_prefix", DataType::Utf8),
        optional("literal_suffix", DataType::Utf8),
        optional("create_params", DataType::List(Arc::new(required("item", DataType::Utf8)))),
        required("nullable", DataType::Int32),
        required("case_sensitive", DataType::Boolean),
        required("searchable", DataType::Int32),
        optional("unsigned_attribute", DataType::Boolean),
        required("fixed_prec_scale", DataType::Boolean),
        optional("auto_increment", DataType::Boolean),
        optional("local_type_name", DataType::Utf8),
        optional("minimum_scale", DataType::Int32),
        optional("maximum_scale", DataType::Int32),
        required("sql_data_type", DataType::Int32),
        optional("datetime_subcode", DataType::Int32),
        optional("num_prec_radix", DataType::Int32),
        optional("interval_precision", DataType::Int32),
    ])
});

/// Children of the value column of CommandGetSqlInfo, in the order of their type ids.
pub(super) static SQL_INFO_VALUES: LazyLock<UnionFields> = LazyLock::new(|| {
    let item = |data_type| Arc::new(optional("item", data_type));
    let entries: Fields = vec![
        required("key", DataType::Int32),
        optional("value", DataType::List(item(DataType::Int32))),
    ]
    .into();
    UnionFields::from_fields(vec![
        required("string_value", DataType::Utf8),
        required("bool_value", DataType::Boolean),
        required("bigint_value", DataType::Int64),
        required("int32_bitmask", DataType::Int32),
        required("string_list", DataType::List(item(DataType::Utf8))),
        required(
            "int32_to_int32_list_map",
            DataType::Map(Arc::new(required("entries", DataType::Struct(entries))), false),
        ),
    ])
});

/// CommandGetSqlInfo
pub(super) static SQL_INFO: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("info_name", DataType::UInt32),
        required("value", DataType::Union(SQL_INFO_VALUES.clone(), UnionMode::Dense)),
    ])
});
