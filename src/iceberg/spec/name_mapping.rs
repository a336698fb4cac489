//! Name mapping for files without field ids (spec "Column Projection", appendix C).

/// A mapping from names in files to field ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameMapping {
    pub fields: Vec<MappedField>,
}

/// Names that a field goes by in files, with the mappings of its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedField {
    pub id: Option<i32>,
    pub names: Vec<String>,
    pub fields: Vec<MappedField>,
}
