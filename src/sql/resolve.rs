//! From names to pinned snapshots.
//!
//! Invariants: each table is loaded once, whatever the number of its mentions and versions; a table of
//! exactly the name that is written wins over a branch, tag or metadata table; a version that is asked
//! for and not found is an error, never the newest snapshot. A pinned statement is not looked up again:
//! each mention reads what it was pinned to.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::engine::{Defaults, Pin};
use super::info_schema::{INFORMATION_SCHEMA, InfoTable};
use super::versions::{not_understood, parse_as_of};
use crate::catalog::{Catalogs, DEFAULT_SCHEMA, match_name};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::table::{AsOf, METADATA_TABLES, MetadataTable, Snapshot, Table, TableIdent};

/// Tables that are loaded at once.
const LOADS: usize = 16;
/// Name of the branch that a table is, whether or not its metadata lists it.
const MAIN: &str = "main";

/// A name of the statement with the version that it asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wish {
    pub(super) parts: Vec<String>,
    pub(super) version: Option<AsOf>,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Table(Arc<dyn Snapshot>),
    Metadata(TableIdent, Arc<dyn MetadataTable>),
    Info(TableIdent, Arc<InfoTable>),
}

/// A name of the statement with what it stands for.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub(super) parts: Vec<String>,
    pub(super) target: Target,
    /// Under which name the planner finds it, if not under its own.
    pub(super) place: Option<[String; 3]>,
    /// What a run on pinned snapshots needs to find it again.
    pub(super) pin: Option<Pin>,
}

/// Where names are looked up.
pub(super) struct Resolver<'a> {
    pub(super) catalogs: &'a Arc<Catalogs>,
    pub(super) defaults: &'a Defaults,
    /// Set when a pinned statement runs again.
    pub(super) pins: Option<&'a [Pin]>,
}

/// What of a table a name means.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Whole,
    Branch(String),
    Tag(String),
    /// In lower case.
    Metadata(String),
}

enum Found {
    Table(TableIdent, Part),
    Pinned(Pin),
    Info(TableIdent, InfoTable),
}

impl Found {
    fn ident(&self) -> Option<&TableIdent> {
        match self {
            Self::Table(ident, _) => Some(ident),
            Self::Pinned(pin) => Some(&pin.table),
            Self::Info(..) => None,
        }
    }
}

/// Which table, and what of it, a name may mean; in order of preference.
type Reading<'a> = (Option<&'a str>, Option<&'a str>, &'a str, Part);

fn readings(parts: &[String]) -> Vec<Reading<'_>> {
    let mut readings = Vec::new();
    let (catalog, schema, table) = match parts {
        [table] => (None, None, Some(table)),
        [schema, table] => (None, Some(schema.as_str()), Some(table)),
        [catalog, schema, table] => (Some(catalog.as_str()), Some(schema.as_str()), Some(table)),
        _ => (None, None, None),
    };
    if let Some(table) = table {
        readings.push((catalog, schema, table.as_str(), Part::Whole));
        if let Some((table, name)) = table.rsplit_once('$')
            && let Some(part) = metadata_part(name)
        {
            readings.push((catalog, schema, table, part));
        }
    }
    let (catalog, schema, table, last) = match parts {
        [table, last] => (None, None, table, last),
        [schema, table, last] => (None, Some(schema.as_str()), table, last),
        [catalog, schema, table, last] => (Some(catalog.as_str()), Some(schema.as_str()), table, last),
        _ => return readings,
    };
    if let Some(part) = part(last) {
        readings.push((catalog, schema, table.as_str(), part));
    }
    readings
}

fn metadata_part(name: &str) -> Option<Part> {
    let name = name.to_lowercase();
    METADATA_TABLES.contains(&name.as_str()).then_some(Part::Metadata(name))
}

/// What the last part of a dotted name means, if not a table.
fn part(name: &str) -> Option<Part> {
    let behind = |prefix: &str| {
        let (head, rest) = name.split_at_checked(prefix.len())?;
        (head.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then(|| rest.to_owned())
    };
    behind("branch_")
        .map(Part::Branch)
        .or_else(|| behind("tag_").map(Part::Tag))
        .or_else(|| metadata_part(name))
}

impl Resolver<'_> {
    /// Resolves all names and loads their tables.
    pub(super) async fn resolve(&self, wishes: &[Wish]) -> Result<Vec<Resolved>> {
        let found: Vec<_> = wishes.iter().enumerate().map(|(at, wish)| self.find(at, wish)).collect();
        let found: Vec<Found> = stream::iter(found).buffered(LOADS).try_collect().await?;
        let mut idents: Vec<&TableIdent> = Vec::new();
        for ident in found.iter().filter_map(Found::ident) {
            if !idents.contains(&ident) {
                idents.push(ident);
            }
        }
        let loads: Vec<_> = idents.iter().map(|ident| self.load(ident)).collect();
        let loaded: Vec<Arc<dyn Table>> = stream::iter(loads).buffered(LOADS).try_collect().await?;
        let table = |ident: &TableIdent| {
            let at = idents.iter().position(|i| *i == ident);
            let table = at.and_then(|at| loaded.get(at));
            table.ok_or_else(|| Error::internal("a table was not loaded").with("table", ident))
        };
        let mut resolved = Vec::with_capacity(wishes.len());
        let mut snapshots: Vec<(TableIdent, AsOf, Arc<dyn Snapshot>)> = Vec::new();
        for (at, (wish, found)) in wishes.iter().zip(&found).enumerate() {
            let (table, as_of, part) = match found {
                Found::Info(ident, info) => {
                    resolved.push(Resolved {
                        parts: wish.parts.clone(),
                        target: Target::Info(ident.clone(), Arc::new(info.clone())),
                        place: None,
                        pin: None,
                    });
                    continue;
                }
                Found::Pinned(pin) => (table(&pin.table)?, pin.as_of.clone(), pin.part.clone()),
                Found::Table(ident, part) => {
                    let table = table(ident)?;
                    let (as_of, metadata) = self.as_of(table.as_ref(), part, wish.version.as_ref())?;
                    (table, as_of, metadata)
                }
            };
            let ident = table.ident().clone();
            let (target, metadata_location, snapshot_id) = match &part {
                Some(name) => {
                    let metadata = table.metadata_table(name, &as_of)?;
                    let location = metadata.metadata_location().to_owned();
                    let name = TableIdent::new(&ident.catalog, &ident.schema, format!("{}${name}", ident.table));
                    (Target::Metadata(name, metadata), location, None)
                }
                None => {
                    let known = snapshots.iter().find(|(i, a, _)| *i == ident && *a == as_of);
                    let snapshot = match known {
                        Some((.., snapshot)) => Arc::clone(snapshot),
                        None => table.snapshot(&as_of).await?,
                    };
                    snapshots.push((ident.clone(), as_of.clone(), Arc::clone(&snapshot)));
                    let (location, id) = (snapshot.metadata_location().to_owned(), snapshot.id());
                    (Target::Table(snapshot), location, id)
                }
            };
            if let Found::Pinned(pin) = found
                && pin.snapshot_id != snapshot_id
            {
                return Err(Error::not_found("the snapshot that the statement was planned with is gone").with("table", &ident));
            }
            let own_name = wish.version.is_none() && part.is_none() && !names_part(found, &wish.parts, &ident);
            resolved.push(Resolved {
                parts: wish.parts.clone(),
                place: (!own_name).then(|| place(at, &ident, &as_of, part.as_deref())),
                pin: Some(Pin {
                    table: ident,
                    metadata_location,
                    snapshot_id,
                    as_of,
                    part,
                    mentions: vec![u32::try_from(at).unwrap_or(u32::MAX)],
                }),
                target,
            });
        }
        Ok(resolved)
    }

    async fn find(&self, at: usize, wish: &Wish) -> Result<Found> {
        let parts = wish.parts.as_slice();
        let readings = readings(parts);
        let default_schema = self.defaults.schema.as_deref().unwrap_or(DEFAULT_SCHEMA);
        if let Some((catalog, schema, table, Part::Whole)) = readings.first()
            && schema.unwrap_or(default_schema).eq_ignore_ascii_case(INFORMATION_SCHEMA)
        {
            if wish.version.is_some() {
                return Err(Error::unsupported("information_schema has no versions").with("name", shown(parts)));
            }
            return self.find_info(*catalog, parts, table);
        }
        if let Some(pins) = self.pins {
            let pin = pins.iter().find(|pin| pin.mentions.iter().any(|m| usize::try_from(*m) == Ok(at)));
            let pin = pin.ok_or_else(|| Error::not_found("the statement was planned without this table").with("name", shown(parts)));
            return pin.map(|pin| Found::Pinned(pin.clone()));
        }
        let mut failure = None;
        for (catalog, schema, table, part) in readings {
            let in_catalog = catalog.or(self.defaults.catalog.as_deref());
            let in_schema = schema.unwrap_or(default_schema);
            match self.catalogs.find_table(in_catalog, Some(in_schema), table).await {
                Ok(ident) => return Ok(Found::Table(ident, part)),
                Err(e) if e.kind() == ErrorKind::NotFound => failure = failure.or(Some(e)),
                Err(e) => return Err(e),
            }
        }
        Err(not_found(parts, failure))
    }

    fn find_info(&self, catalog: Option<&str>, parts: &[String], table: &str) -> Result<Found> {
        let only = match catalog {
            Some(name) => Some(self.catalogs.catalog(Some(name))?.name().to_owned()),
            None => None,
        };
        let shown = only.clone().unwrap_or_default();
        let name = table.to_lowercase();
        match InfoTable::new(&name, self.catalogs, only) {
            Some(info) => Ok(Found::Info(TableIdent::new(shown, INFORMATION_SCHEMA, name), info)),
            None => Err(not_found(parts, None)),
        }
    }

    /// The table with its newest metadata or, where it is pinned, with that it was planned with.
    async fn load(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        let Some(pins) = self.pins else {
            return self.catalogs.table(ident).await;
        };
        let pin = pins.iter().find(|p| p.table == *ident);
        let pin = pin.ok_or_else(|| Error::internal("a pinned table is missing").with("table", ident))?;
        self.catalogs.table_at(ident, &pin.metadata_location).await
    }

    /// The version that a name means, and the metadata table it names.
    fn as_of(&self, table: &dyn Table, part: &Part, version: Option<&AsOf>) -> Result<(AsOf, Option<String>)> {
        if version.is_some() && matches!(part, Part::Branch(_) | Part::Tag(_)) {
            return Err(
                Error::invalid("a branch or tag has no versions of its own: name the table, or leave the version out")
                    .with("table", table.ident()),
            );
        }
        match part {
            Part::Whole => Ok((version.map_or_else(|| self.default_version(), |v| Ok(v.clone()))?, None)),
            Part::Branch(name) => Ok((reference(table, name, true)?, None)),
            Part::Tag(name) => Ok((reference(table, name, false)?, None)),
            Part::Metadata(name) => {
                let Some(version) = version else {
                    // What the session reads by default is nothing to tables without versions.
                    let default = self.default_version()?;
                    return match table.metadata_table(name, &default) {
                        Err(e) if e.kind() == ErrorKind::Unsupported => Ok((AsOf::Latest, Some(name.clone()))),
                        _ => Ok((default, Some(name.clone()))),
                    };
                };
                Ok((version.clone(), Some(name.clone())))
            }
        }
    }

    /// What a name without version reads in this session.
    fn default_version(&self) -> Result<AsOf> {
        match (&self.defaults.branch, &self.defaults.as_of) {
            (None, None) => Ok(AsOf::Latest),
            (Some(branch), None) => Ok(AsOf::Ref(branch.clone())),
            (None, Some(text)) => parse_as_of(text).context("option", || "as_of"),
            (Some(_), Some(_)) => Err(Error::invalid(
                "the session options branch and as_of are both set: unset one of them",
            )),
        }
    }
}

/// Whether a table is found under a dotted name whose last part is a branch or tag.
fn names_part(found: &Found, parts: &[String], ident: &TableIdent) -> bool {
    match found {
        Found::Table(_, part) => *part != Part::Whole,
        // A pin does not tell how its name was read, but the name does.
        Found::Pinned(_) => parts.len() > 3 || parts.last().is_some_and(|last| last.to_lowercase() != ident.table.to_lowercase()),
        Found::Info(..) => false,
    }
}

/// A name that no catalog has, and that tells a reader of plans what is read.
fn place(at: usize, ident: &TableIdent, as_of: &AsOf, part: Option<&str>) -> [String; 3] {
    let mut name = ident.table.clone();
    if let Some(part) = part {
        name += &format!("${part}");
    }
    match as_of {
        AsOf::Latest => {}
        AsOf::Version(id) => name += &format!("@{id}"),
        AsOf::Ref(reference) => name += &format!("@{reference}"),
        AsOf::Timestamp(micros) => name += &format!("@{micros}us"),
        AsOf::Changes(range) => name += &format!("@{range}"),
    }
    ["$".to_owned(), at.to_string(), name]
}

/// A branch or tag by an identifier, which matches without regard to case.
fn reference(table: &dyn Table, name: &str, is_branch: bool) -> Result<AsOf> {
    let references = table.references();
    let of_kind = references.iter().filter(|r| r.is_branch == is_branch).map(|r| r.name.as_str());
    let what = if is_branch { "branch" } else { "tag" };
    match match_name(what, of_kind, name)? {
        Some(found) => Ok(AsOf::Ref(found.to_owned())),
        None if is_branch && name.eq_ignore_ascii_case(MAIN) => Ok(AsOf::Ref(MAIN.to_owned())),
        None => Err(Error::not_found(format!("the table has no {what} \"{name}\"")).with("table", table.ident())),
    }
}

fn shown(parts: &[String]) -> String {
    parts.iter().map(|p| format!("\"{p}\"")).collect::<Vec<_>>().join(".")
}

/// The error for a name that no table has.
fn not_found(parts: &[String], cause: Option<Error>) -> Error {
    if parts.last().is_some_and(|last| last.contains('@')) {
        return not_understood();
    }
    cause.unwrap_or_else(|| Error::not_found(format!("table {} does not exist", shown(parts))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Vec<String> {
        let parts: Vec<String> = name.split('.').map(str::to_owned).collect();
        let readings = readings(&parts);
        let text = readings.iter().map(|(catalog, schema, table, part)| {
            let names: Vec<&str> = catalog.iter().chain(schema).copied().chain([*table]).collect();
            format!("{} {part:?}", names.join("."))
        });
        text.collect()
    }

    #[test]
    fn a_table_of_the_very_name_comes_first() {
        assert_eq!(read("t"), ["t Whole"]);
        assert_eq!(read("s.t"), ["s.t Whole"]);
        assert_eq!(read("t.branch_Dev"), ["t.branch_Dev Whole", "t Branch(\"Dev\")"]);
        assert_eq!(read("t.Snapshots"), ["t.Snapshots Whole", "t Metadata(\"snapshots\")"]);
        assert_eq!(read("t$Files"), ["t$Files Whole", "t Metadata(\"files\")"]);
        assert_eq!(read("t$nothing"), ["t$nothing Whole"]);
        assert_eq!(read("s.t.tag_x"), ["s.t.tag_x Whole", "s.t Tag(\"x\")"]);
        assert_eq!(read("c.s.t.branch_x"), ["c.s.t Branch(\"x\")"]);
        assert_eq!(read("t.branch_"), ["t.branch_ Whole"]);
        assert_eq!(read("c.s.t.u"), Vec::<String>::new());
    }
}
