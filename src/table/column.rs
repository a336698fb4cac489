//! How a column of the table is found in a data file.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;

use super::TYPE_NAME_KEY;

/// A column (or nested field) of the table's schema at a snapshot.
///
/// A file's field matches by id where the file has ids at all, else by one of `names`
/// (name mapping) where the table has a mapping.
#[derive(Debug, Clone)]
pub struct Column {
    /// Field id; unique in the schema.
    pub id: i32,
    /// Name, arrow type and nullability in the table. A nested field has the same type in its
    /// parent, without metadata.
    pub field: FieldRef,
    /// Names that the field goes by in files without ids, from the name mapping; empty without one.
    pub names: Vec<String>,
    /// Value of rows in files that lack the field: an array of one row, of the field's type.
    pub initial_default: Option<ArrayRef>,
    /// Struct fields; or the one element of a list; or key and value of a map.
    pub children: Vec<Arc<Column>>,
}

impl Column {
    /// Whether files hold variants, which the table gives as JSON text: the field's type name says so.
    pub fn is_variant(&self) -> bool {
        self.field.metadata().get(TYPE_NAME_KEY).is_some_and(|name| name == VARIANT)
    }
}

/// How columns are found in a table's data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnMatching {
    /// By field id; in files without ids by position (Iceberg without name mapping).
    IdsOrPositions,
    /// By field id; in files without ids by one of the column's names (Iceberg with a name mapping, Delta with columns
    /// mapped by id).
    IdsOrNames,
    /// By name, whatever ids a file has and whatever its case, where that names one (Delta otherwise).
    Names,
}

/// Type name of variants.
pub const VARIANT: &str = "variant";
