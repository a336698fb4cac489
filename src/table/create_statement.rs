//! A table as the statement that would make one like it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arrow::datatypes::Schema;

use super::{DOC_KEY, TYPE_NAME_KEY, TableIdent};

/// What of a table its schema does not tell.
#[derive(Debug, Default)]
pub struct CreateOptions<'a> {
    /// `iceberg` or `delta`.
    pub format: &'a str,
    /// Columns or transforms, as SQL.
    pub partitioned_by: Vec<String>,
    pub location: &'a str,
    pub comment: Option<&'a str>,
    pub properties: BTreeMap<String, String>,
}

/// The statement (interface.md 4, "create"): names quoted, columns with types as the table's format names them.
pub fn create_statement(ident: &TableIdent, schema: &Schema, options: &CreateOptions<'_>) -> String {
    let names = [&ident.catalog, &ident.schema, &ident.table].map(|name| quoted(name));
    let mut sql = format!("CREATE TABLE {} (", names.join("."));
    for (at, field) in schema.fields().iter().enumerate() {
        let type_name = field
            .metadata()
            .get(TYPE_NAME_KEY)
            .cloned()
            .unwrap_or_else(|| field.data_type().to_string());
        let separator = if at == 0 { "" } else { "," };
        let _ = write!(sql, "{separator}\n  {} {type_name}", quoted(field.name()));
        if !field.is_nullable() {
            sql += " NOT NULL";
        }
        if let Some(comment) = field.metadata().get(DOC_KEY) {
            let _ = write!(sql, " COMMENT {}", literal(comment));
        }
    }
    let _ = write!(sql, "\n)\nUSING {}", options.format);
    if !options.partitioned_by.is_empty() {
        let _ = write!(sql, "\nPARTITIONED BY ({})", options.partitioned_by.join(", "));
    }
    let _ = write!(sql, "\nLOCATION {}", literal(options.location));
    if let Some(comment) = options.comment {
        let _ = write!(sql, "\nCOMMENT {}", literal(comment));
    }
    if !options.properties.is_empty() {
        let pairs = options
            .properties
            .iter()
            .map(|(key, value)| format!("\n  {} = {}", literal(key), literal(value)));
        let _ = write!(sql, "\nTBLPROPERTIES ({}\n)", pairs.collect::<Vec<_>>().join(","));
    }
    sql
}

/// A name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn a_table_is_spelled_out() {
        let typed = |name: &str| HashMap::from([(TYPE_NAME_KEY.to_owned(), name.to_owned())]);
        let mut of_b = typed("string");
        of_b.insert(DOC_KEY.to_owned(), "it's b".to_owned());
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, false).with_metadata(typed("long")),
            Field::new("b \"x\"", DataType::Utf8, true).with_metadata(of_b),
        ]);
        let options = CreateOptions {
            format: "delta",
            partitioned_by: vec![quoted("a")],
            location: "/t",
            comment: None,
            properties: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        };
        let expected = "CREATE TABLE \"c\".\"s\".\"t\" (\n  \"a\" long NOT NULL,\n  \"b \"\"x\"\"\" string COMMENT 'it''s b'\n)\nUSING delta\n\
                        PARTITIONED BY (\"a\")\nLOCATION '/t'\nTBLPROPERTIES (\n  'k' = 'v'\n)";
        assert_eq!(create_statement(&TableIdent::new("c", "s", "t"), &schema, &options), expected);
    }
}
