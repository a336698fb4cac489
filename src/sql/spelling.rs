//! One spelling per name, so that names match without regard to case (interface.md 3).
//!
//! The planner compares names exactly. Before it sees a statement, every name that is equal but
//! for case gets one spelling throughout: in the statement's words, in the tables' names and in
//! their columns. That is the stored spelling wherever the tables agree on one; else columns are
//! shown to the planner under the common spelling, and get their own back in the result.
//! No scoping is needed for that, and keywords, functions and types do not care.
//!
//! Invariants: names that differ by case alone within one table (or two tables of one schema)
//! are never made one: those must be written exactly.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::shown::Shown;
use crate::error::Error;
use crate::table::{Column, Snapshot, TableIdent};

/// Names that are equal but for case.
#[derive(Debug, Default)]
struct Class {
    /// The common spelling; empty until decided.
    common: String,
    /// As stored, distinct.
    stored: Vec<String>,
    /// The spellings differ and all must stay.
    split: bool,
}

/// The spelling of every name of a statement.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    classes: HashMap<String, Class>,
}

fn fold(name: &str) -> String {
    name.to_lowercase()
}

impl Spelling {
    /// From the tables that a statement reads. Tables that are no snapshots (listings) give their
    /// column names as they are.
    pub(super) fn new<'a>(tables: impl IntoIterator<Item = (&'a TableIdent, &'a SchemaRef)>) -> Self {
        let mut spelling = Self::default();
        let tables: Vec<_> = tables.into_iter().collect();
        // Nested fields are reached by their stored name alone, so those decide first.
        for (_, schema) in &tables {
            for field in schema.fields() {
                spelling.nested(field.data_type());
            }
        }
        for (_, schema) in &tables {
            let mut seen: HashMap<String, &str> = HashMap::new();
            for field in schema.fields() {
                let clash = seen
                    .insert(fold(field.name()), field.name())
                    .is_some_and(|other| other != field.name());
                spelling.stored(field.name(), clash);
            }
        }
        let mut seen: HashMap<String, &TableIdent> = HashMap::new();
        for (ident, _) in &tables {
            let clash = seen.insert(fold(&ident.to_string()), ident).filter(|other| other != ident);
            for (part, other) in [
                (&ident.table, clash.map(|c| &c.table)),
                (&ident.schema, clash.map(|c| &c.schema)),
                (&ident.catalog, clash.map(|c| &c.catalog)),
            ] {
                spelling.stored(part, other.is_some_and(|other| other != part));
            }
        }
        spelling
    }

    fn nested(&mut self, data_type: &DataType) {
        match data_type {
            DataType::Struct(fields) => {
                for field in fields {
                    let known = self.classes.get(&fold(field.name()));
                    let clash = known.is_some_and(|class| !class.common.is_empty() && class.common != *field.name());
                    self.stored(field.name(), clash);
                    self.nested(field.data_type());
                }
            }
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) | DataType::Map(field, _) => {
                self.nested(field.data_type());
            }
            _ => {}
        }
    }

    fn stored(&mut self, name: &str, clash: bool) {
        let class = self.classes.entry(fold(name)).or_default();
        if class.common.is_empty() {
            name.clone_into(&mut class.common);
        }
        if !class.stored.iter().any(|s| s == name) {
            class.stored.push(name.to_owned());
        }
        class.split |= clash;
    }

    /// The spelling under which the planner sees a stored name.
    pub(super) fn of<'a>(&'a self, name: &'a str) -> &'a str {
        match self.classes.get(&fold(name)) {
            Some(class) if !class.split && !class.common.is_empty() => &class.common,
            _ => name,
        }
    }

    /// Spells the names of a statement. A name that no table has keeps the spelling it is
    /// given behind AS, else the one it has where it comes first.
    ///
    /// A word that could mean two names that differ by case alone stays as it is, since it may
    /// well be a keyword or a function. If the statement turns out not to be valid, the returned
    /// error says why.
    pub(super) fn apply(&mut self, tokens: &mut [TokenWithSpan]) -> Option<Error> {
        let mut aliases: HashSet<String> = HashSet::new();
        for pair in tokens.windows(2) {
            if let [first, second] = pair
                && matches!(&first.token, Token::Word(w) if w.keyword == Keyword::AS)
                && let Token::Word(alias) = &second.token
            {
                let class = self.classes.entry(fold(&alias.value)).or_default();
                if class.common.is_empty() {
                    alias.value.clone_into(&mut class.common);
                }
                aliases.insert(alias.value.clone());
            }
        }
        let mut doubt = None;
        for token in tokens {
            let Token::Word(word) = &mut token.token else {
                continue;
            };
            let class = self.classes.entry(fold(&word.value)).or_default();
            if class.split {
                let known = class.stored.contains(&word.value) || aliases.contains(&word.value);
                if !known && doubt.is_none() {
                    doubt = Some(ambiguous(&word.value, &class.stored));
                }
            } else if class.common.is_empty() {
                word.value.clone_into(&mut class.common);
            } else {
                class.common.clone_into(&mut word.value);
            }
        }
        doubt
    }

    /// The snapshot as the planner sees it, and for each renamed column its stored name.
    pub(super) fn expose(&self, snapshot: Arc<dyn Snapshot>) -> (Arc<dyn Snapshot>, HashMap<String, String>) {
        let renamed: HashMap<String, String> = snapshot
            .schema()
            .fields()
            .iter()
            .filter(|f| self.of(f.name()) != f.name())
            .map(|f| (self.of(f.name()).to_owned(), f.name().clone()))
            .collect();
        if renamed.is_empty() {
            return (snapshot, renamed);
        }
        let fields = snapshot.schema().fields().iter();
        let fields: Vec<_> = fields.map(|f| f.as_ref().clone().with_name(self.of(f.name()))).collect();
        let columns = snapshot.columns().iter().map(|column| {
            let field = column.field.as_ref().clone().with_name(self.of(column.field.name()));
            Arc::new(Column {
                field: Arc::new(field),
                ..column.as_ref().clone()
            })
        });
        let exposed = Shown {
            schema: Arc::new(Schema::new_with_metadata(fields, snapshot.schema().metadata().clone())),
            columns: columns.collect(),
            inner: snapshot,
        };
        (Arc::new(exposed), renamed)
    }
}

fn ambiguous(name: &str, stored: &[String]) -> Error {
    let all: Vec<_> = stored.iter().map(|s| format!("\"{s}\"")).collect();
    Error::invalid(format!(
        "name \"{name}\" is ambiguous: {} differ by case alone; write the one that is meant exactly, in quotes",
        all.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::super::source::tokenize;
    use super::*;
    use crate::error::Result;

    fn schema(names: &[&str]) -> SchemaRef {
        let fields: Vec<_> = names.iter().map(|n| Field::new(*n, DataType::Int32, true)).collect();
        Arc::new(Schema::new(fields))
    }

    fn spelled(tables: &[(&str, SchemaRef)], sql: &str) -> Result<String> {
        let idents: Vec<_> = tables.iter().map(|(n, _)| TableIdent::new("C", "s", *n)).collect();
        let mut spelling = Spelling::new(idents.iter().zip(tables.iter().map(|(_, s)| s)));
        let mut tokens = tokenize(sql)?.tokens;
        match spelling.apply(&mut tokens) {
            Some(doubt) => Err(doubt),
            None => Ok(tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")),
        }
    }

    #[test]
    fn names_take_the_stored_spelling() {
        let tables = [("Orders", schema(&["Id", "A B", "a.b", "größe"]))];
        assert_eq!(
            spelled(
                &tables,
                "select ID, \"id\", `a b`, \"A.B\", GRÖSSE, \"GRÖßE\" from ORDERS as O where o.iD = 1"
            )
            .unwrap(),
            "select Id , \"Id\" , `A B` , \"a.b\" , GRÖSSE , \"größe\" from Orders as O where O . Id = 1"
        );
        // strings and parameters stay
        assert_eq!(spelled(&tables, "SELECT 'ID', $ID").unwrap(), "SELECT 'ID' , $ID");
    }

    #[test]
    fn names_that_differ_by_case_alone_stay_apart() {
        let tables = [("t", schema(&["id", "ID", "x"])), ("u", schema(&["X"]))];
        assert_eq!(spelled(&tables, "SELECT id, ID, X").unwrap(), "SELECT id , ID , x");
        let e = spelled(&tables, "SELECT Id FROM t").unwrap_err();
        assert!(e.to_string().contains("\"id\" and \"ID\""), "{e}");
        let two = [("t", schema(&["a"])), ("T", schema(&["a"]))];
        assert_eq!(spelled(&two, "SELECT A FROM t, T").unwrap(), "SELECT a FROM t , T");
    }

    #[test]
    fn nested_fields_keep_their_spelling() {
        let inner = DataType::Struct(vec![Field::new("Key", DataType::Int32, true)].into());
        let outer = Arc::new(Schema::new(vec![
            Field::new("key", DataType::Int32, true),
            Field::new("s", inner, true),
        ]));
        assert_eq!(spelled(&[("t", outer)], "SELECT KEY, S.KEY").unwrap(), "SELECT Key , s . Key");
    }
}
