//! Which tables a statement names.
//!
//! Invariants: names of WITH queries in scope are no tables; what a statement expands to when
//! its WITH queries are put in place is bounded, since each reference copies the query.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Cte, Ident, ObjectName, Query, Statement as Ast, TableFactor, TableVersion, Visit, Visitor};

use super::gate::name_parts;
use crate::error::{Error, Result};

/// Most tables and WITH queries after expansion.
const MAX_EXPANDED: u64 = 1_000;

/// A table as a statement names it.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    /// As written.
    pub(super) parts: Vec<String>,
    pub(super) version: Option<TableVersion>,
}

/// The tables of a statement.
#[derive(Debug, Clone, Default)]
pub(super) struct Relations {
    /// Distinct, in order of appearance.
    pub(super) mentions: Vec<Mention>,
    /// For each name in FROM that is no function, in the order of a walk: its mention, if it is no WITH query.
    pub(super) factors: Vec<Option<usize>>,
}

/// The tables that a statement names.
///
/// Errors: `InvalidInput` for a name of no or more than four parts, and for a statement that grows
/// beyond bounds.
pub(super) fn relations(statement: &Ast) -> Result<Relations> {
    let mut collector = Collector {
        found: Relations::default(),
        version: None,
        frames: vec![Frame::default()],
        scope: Vec::new(),
        function: false,
    };
    match statement.visit(&mut collector) {
        ControlFlow::Continue(()) => Ok(collector.found),
        ControlFlow::Break(error) => Err(error),
    }
}

/// A query that is being walked.
#[derive(Default)]
struct Frame {
    /// Names of its WITH queries; the walk visits those first, in order.
    ctes: Vec<String>,
    recursive: bool,
    /// WITH queries that were walked.
    done: usize,
    /// Names that this frame added to the scope.
    scoped: usize,
    /// Tables that the query expands to.
    weight: u64,
}

struct Collector {
    found: Relations,
    /// The version of the next relation.
    version: Option<TableVersion>,
    frames: Vec<Frame>,
    /// WITH queries in scope, innermost last, with what each expands to.
    scope: Vec<(String, u64)>,
    /// The next relation is the name of a table function.
    function: bool,
}

impl Mention {
    fn is_same(&self, other: &Self) -> bool {
        let same_version = match (&self.version, &other.version) {
            (None, None) => true,
            (Some(a), Some(b)) => a.to_string() == b.to_string(),
            _ => false,
        };
        self.parts == other.parts && same_version
    }
}

fn fold(ident: &str) -> String {
    ident.to_lowercase()
}

fn name_of(cte: &Cte) -> &Ident {
    &cte.alias.name
}

impl Visitor for Collector {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let (ctes, recursive) = match &query.with {
            Some(with) => (with.cte_tables.iter().map(|c| fold(&name_of(c).value)).collect(), with.recursive),
            None => (Vec::new(), false),
        };
        // A recursive WITH query sees its own name.
        if let Some(parent) = self.frames.last_mut()
            && parent.recursive
            && let Some(name) = parent.ctes.get(parent.done)
        {
            self.scope.push((name.clone(), 1));
            parent.scoped += 1;
        }
        self.frames.push(Frame {
            ctes,
            recursive,
            ..Frame::default()
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<Error> {
        let Some(ended) = self.frames.pop() else {
            return ControlFlow::Break(Error::internal("a query ended that did not begin"));
        };
        self.scope.truncate(self.scope.len().saturating_sub(ended.scoped));
        if let Some(parent) = self.frames.last_mut() {
            match parent.ctes.get(parent.done).cloned() {
                Some(name) => {
                    parent.done += 1;
                    parent.scoped += 1;
                    self.scope.push((name, ended.weight.saturating_add(1)));
                }
                None => parent.weight = parent.weight.saturating_add(ended.weight),
            }
        }
        if ended.weight > MAX_EXPANDED {
            return ControlFlow::Break(Error::invalid(format!(
                "the statement reads more than {MAX_EXPANDED} tables once its WITH queries are put in place"
            )));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        self.function = matches!(factor, TableFactor::Table { args: Some(_), .. });
        self.version = match factor {
            TableFactor::Table { version, .. } => version.clone(),
            _ => None,
        };
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Error> {
        let mut weight = 1;
        let version = self.version.take();
        if !std::mem::take(&mut self.function) {
            let parts = match name_parts(name) {
                Ok(parts) => parts,
                Err(e) => return ControlFlow::Break(e),
            };
            let cte = match parts.as_slice() {
                [one] => self.scope.iter().rev().find(|(name, _)| *name == fold(one)),
                _ => None,
            };
            match cte {
                Some((name, _)) if version.is_some() => {
                    return ControlFlow::Break(Error::invalid(format!("WITH query {name} has no versions")));
                }
                Some((_, expanded)) => {
                    weight = *expanded;
                    self.found.factors.push(None);
                }
                None => {
                    let mention = Mention { parts, version };
                    let known = self.found.mentions.iter().position(|m| m.is_same(&mention));
                    let at = known.unwrap_or(self.found.mentions.len());
                    if known.is_none() {
                        self.found.mentions.push(mention);
                    }
                    self.found.factors.push(Some(at));
                }
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.weight = frame.weight.saturating_add(weight);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::{parse, tokenize};
    use super::*;

    fn names(sql: &str) -> Result<Vec<String>> {
        let found = relations(&parse(&tokenize(sql)?.tokens)?)?;
        Ok(found.mentions.into_iter().map(|m| m.parts.join(".")).collect())
    }

    #[test]
    fn tables_are_found_everywhere_and_with_queries_are_none() {
        let sql = "WITH a AS (SELECT * FROM a), b AS (SELECT * FROM A JOIN x.y ON true), \
                   c AS (WITH d AS (SELECT 1) SELECT * FROM d, e) \
                   SELECT (SELECT max(v) FROM f), d.* FROM b, d WHERE EXISTS (SELECT 1 FROM \"G h\".c.i) \
                   UNION SELECT * FROM c, generate_series(1, 2) ORDER BY (SELECT 1 FROM j)";
        assert_eq!(names(sql).unwrap(), ["a", "x.y", "e", "f", "d", "G h.c.i", "j"]);
        let recursive = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, t) SELECT * FROM R";
        assert_eq!(names(recursive).unwrap(), ["t"]);
        assert_eq!(names("EXPLAIN SELECT count(*) FROM t, t AS u").unwrap(), ["t"]);
    }

    #[test]
    fn versions_tell_mentions_apart() {
        let sql = "WITH c AS (SELECT 1 FROM t VERSION AS OF 1) \
                   SELECT 1 FROM t, t VERSION AS OF 2 a, generate_series(1, 2), c, t FOR VERSION AS OF 1 b, (SELECT 1 FROM t) d";
        let found = relations(&parse(&tokenize(sql).unwrap().tokens).unwrap()).unwrap();
        let shown = found
            .mentions
            .iter()
            .map(|m| format!("{} {:?}", m.parts.join("."), m.version.as_ref().map(ToString::to_string)));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            ["t Some(\"AT(VERSION => 1)\")", "t None", "t Some(\"AT(VERSION => 2)\")"]
        );
        assert_eq!(found.factors, [Some(0), Some(1), Some(2), None, Some(0), Some(1)]);
        let e = names("WITH c AS (SELECT 1) SELECT * FROM c VERSION AS OF 1").unwrap_err();
        assert!(e.to_string().contains("WITH query c"), "{e}");
    }

    #[test]
    fn growth_is_bounded() {
        let mut sql = "WITH a0 AS (SELECT 1)".to_owned();
        for i in 1..40 {
            sql += &format!(", a{i} AS (SELECT 1 FROM a{0} x, a{0} y)", i - 1);
        }
        let e = names(&format!("{sql} SELECT * FROM a39")).unwrap_err();
        assert!(e.to_string().contains("1000 tables"), "{e}");
    }
}
