//! The columns that carry a row's lineage through a rewrite (spec "Row Lineage", "Reserved Field IDs").

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::iceberg::spec::{NestedField, PrimitiveType, Schema, TableMetadata, Type};
use crate::table::HiddenColumn;

/// The table's current schema with the columns of lineage behind its own.
///
/// Errors: `Unsupported` for a table below format version 3, or with a column of its own that has such a name.
pub(super) fn schema_with_lineage(metadata: &TableMetadata) -> Result<Arc<Schema>> {
    if metadata.format_version < 3 {
        return Err(Error::unsupported(format!(
            "rows keep their lineage in tables of format version 3 and later, and this one has {}",
            metadata.format_version
        )));
    }
    let schema = metadata.current_schema()?;
    let mut root = schema.root().clone();
    // Described as Iceberg Java describes them.
    for (column, doc) in [
        (HiddenColumn::RowId, "Implicit row ID that is automatically assigned"),
        (
            HiddenColumn::LastUpdatedSequenceNumber,
            "Sequence number when the row was last updated",
        ),
    ] {
        if schema.fields().iter().any(|field| field.name == column.name()) {
            let message = "a table's own column has the name of a column of row lineage: rename it before rows are rewritten";
            return Err(Error::unsupported(message).with("column", column.name()));
        }
        root.fields.push(Arc::new(NestedField {
            id: column.id(),
            name: column.name().to_owned(),
            required: false,
            field_type: Type::Primitive(PrimitiveType::Long),
            doc: Some(doc.to_owned()),
            initial_default: None,
            write_default: None,
        }));
    }
    Schema::new(schema.schema_id(), root, schema.identifier_field_ids().to_vec()).map(Arc::new)
}
