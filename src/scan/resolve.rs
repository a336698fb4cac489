//! Finding the table's columns in a file's schema, by field id (spec "Column Projection").
//!
//! A field that is absent takes, in this order: its identity partition constant, its initial
//! default, null; a required field without any of these is an error. Files without field ids
//! are read by the table's name mapping, or, where it has none, top-level columns by position
//! (field id `n` is column `n`), as the reference implementation does. Delta tables tell columns by
//! their physical names unless they are mapped by id, in which case does not count: tables that were converted to Delta
//! may have files that spell a column otherwise.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::adapt::{Adapt, Read};
use super::casts::{cast_exact, may_read_as};
use super::variant::is_variant_group;
use crate::error::{Error, Result};
use crate::table::{Column, ColumnMatching, FIRST_RESERVED_ID};

/// How the wanted columns are made from a file.
#[derive(Debug, Clone)]
pub(super) struct ReadPlan {
    /// Leaf columns of the Parquet schema to decode, ascending.
    pub(super) leaves: Vec<usize>,
    /// One per wanted column.
    pub(super) reads: Vec<Read>,
}

/// How fields are matched in this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matching {
    Ids,
    Names,
    /// As [`Self::Names`]; a name that the file does not have is looked for without regard to case.
    NamesInAnyCase,
    Positions,
}

struct Resolver<'a> {
    matching: Matching,
    constants: &'a [(i32, ArrayRef)],
    /// By leaf: is it decoded?
    selected: Vec<bool>,
}

/// Plans how `columns` are read from a file with schema `file` (as parquet derives it, with field
/// ids in the field metadata).
///
/// Errors: `Corrupt` for a required column that is nowhere or a type that cannot hold the column's values.
pub(super) fn resolve(columns: &[Arc<Column>], file: &Fields, constants: &[(i32, ArrayRef)], matching: ColumnMatching) -> Result<ReadPlan> {
    let matching = match matching {
        ColumnMatching::Names => Matching::NamesInAnyCase,
        _ if file.iter().any(|f| has_id(f)) => Matching::Ids,
        ColumnMatching::IdsOrNames => Matching::Names,
        ColumnMatching::IdsOrPositions => Matching::Positions,
    };
    let leaf_total = file.iter().map(|f| leaf_count(f.data_type())).sum();
    let mut resolver = Resolver {
        matching,
        constants,
        selected: vec![false; leaf_total],
    };
    let raw = columns
        .iter()
        .map(|c| resolver.field(c, file, 0, true))
        .collect::<Result<Vec<_>>>()?;
    let selected = resolver.selected;
    let reads = raw
        .into_iter()
        .map(|r| renumber(r, file, 0, &selected))
        .collect::<Result<Vec<_>>>()?;
    let leaves = selected.iter().enumerate().filter_map(|(i, s)| s.then_some(i)).collect();
    Ok(ReadPlan { leaves, reads })
}

/// A constant in the column's type: a snapshot may be read with the type that the column had before it
/// was promoted.
fn constant_of(column: &Column, value: &ArrayRef) -> Result<Read> {
    let target = column.field.data_type();
    if value.data_type() == target {
        return Ok(Read::Constant(Arc::clone(value)));
    }
    // Either may be the wider type. Defaults of structs are of the table's type already.
    if may_read_as(value.data_type(), target) || may_read_as(target, value.data_type()) {
        return cast_exact(value, target).map(Read::Constant);
    }
    Err(Error::corrupt(format!(
        "the constant of column `{}` has type {}, which cannot be read as {target}",
        column.field.name(),
        value.data_type()
    )))
}

impl Resolver<'_> {
    /// Finds `column` among `siblings`, whose first leaf is `first_leaf`. Indices in the result count all siblings.
    fn field(&mut self, column: &Column, siblings: &Fields, first_leaf: usize, top_level: bool) -> Result<Read> {
        let constant = self.constants.iter().find(|(id, _)| *id == column.id).map(|(_, v)| v);
        if let (Some(value), true) = (constant, self.matching != Matching::Ids || column.id >= FIRST_RESERVED_ID) {
            return constant_of(column, value);
        }
        let found = self.find(column, siblings, top_level)?;
        if let Some((index, candidate)) = found.and_then(|index| Some((index, siblings.get(index)?))) {
            let before: usize = siblings.iter().take(index).map(|f| leaf_count(f.data_type())).sum();
            let adapt = self.adapt(column, candidate, first_leaf + before)?;
            return Ok(Read::Column { index, adapt });
        }
        if let Some(value) = constant.or(column.initial_default.as_ref()) {
            return constant_of(column, value);
        }
        if !column.field.is_nullable() {
            return Err(Error::corrupt(format!(
                "required column `{}` is not in the file and has no default",
                column.field.name()
            )));
        }
        Ok(Read::Null(column.field.data_type().clone()))
    }

    /// The index of `column` among `siblings`; `None` where the file does not have it.
    fn find(&self, column: &Column, siblings: &Fields, top_level: bool) -> Result<Option<usize>> {
        for (index, candidate) in siblings.iter().enumerate() {
            if self.matches(column, candidate, index, top_level)? {
                return Ok(Some(index));
            }
        }
        if self.matching != Matching::NamesInAnyCase {
            return Ok(None);
        }
        let same = |name: &String, other: &str| name.to_lowercase() == other.to_lowercase();
        let mut found = siblings
            .iter()
            .enumerate()
            .filter(|(_, f)| column.names.iter().any(|name| same(name, f.name())));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(Error::corrupt(format!(
                "the file has several columns that differ from `{}` in case alone",
                column.field.name()
            ))),
            (first, _) => Ok(first.map(|(index, _)| index)),
        }
    }

    fn matches(&self, column: &Column, candidate: &Field, index: usize, top_level: bool) -> Result<bool> {
        match self.matching {
            // Columns of a scan that have a name in files have no id there.
            Matching::Ids if top_level && !column.names.is_empty() && column.id >= FIRST_RESERVED_ID => {
                Ok(column.names.iter().any(|n| n == candidate.name()))
            }
            Matching::Ids => Ok(field_id(candidate) == Some(column.id)),
            Matching::Names | Matching::NamesInAnyCase => Ok(column.names.iter().any(|n| n == candidate.name())),
            Matching::Positions if top_level => Ok(usize::try_from(column.id).is_ok_and(|id| id == index + 1)),
            Matching::Positions => Err(Error::unsupported(format!(
                "the file has no field ids and the table no name mapping: nested field `{}` cannot be found; set the table property schema.name-mapping.default",
                column.field.name()
            ))),
        }
    }

    fn adapt(&mut self, column: &Column, file: &Field, leaf: usize) -> Result<Adapt> {
        let target = column.field.data_type();
        let mismatch = || {
            Error::corrupt(format!(
                "file column `{}` has type {}, which cannot be read as {target}",
                file.name(),
                file.data_type()
            ))
        };
        match (target, file.data_type()) {
            // A column that was never written, of a type that is unknown in the file.
            (_, DataType::Null) => {
                self.select(leaf, 1);
                Ok(if target == file.data_type() {
                    Adapt::Same
                } else {
                    Adapt::Cast(target.clone())
                })
            }
            (_, group) if column.is_variant() => {
                if !is_variant_group(group) {
                    return Err(mismatch());
                }
                // Its parts have no field ids; all of them are needed.
                self.select(leaf, leaf_count(group));
                Ok(Adapt::Variant)
            }
            (DataType::Struct(fields), DataType::Struct(file_fields)) => {
                let mut reads = Vec::with_capacity(fields.len());
                let before = self.count_selected(leaf, file.data_type());
                for child in &column.children {
                    reads.push(self.field(child, file_fields, leaf, false)?);
                }
                if before == self.count_selected(leaf, file.data_type()) && leaf_count(file.data_type()) > 0 {
                    // Some leaf must be decoded to know which structs are null.
                    self.select(leaf, 1);
                }
                Ok(Adapt::Struct {
                    fields: fields.clone(),
                    reads,
                })
            }
            (DataType::List(element), DataType::List(file_element)) => {
                let [child] = column.children.as_slice() else {
                    return Err(mismatch());
                };
                let adapt = Box::new(self.adapt(child, file_element, leaf)?);
                Ok(Adapt::List {
                    element: Arc::clone(element),
                    adapt,
                })
            }
            (DataType::Map(entries, _), DataType::Map(file_entries, _)) => {
                let ([key, value], DataType::Struct(pair)) = (column.children.as_slice(), file_entries.data_type()) else {
                    return Err(mismatch());
                };
                let [file_key, file_value] = pair.as_ref() else {
                    return Err(mismatch());
                };
                let key_adapt = self.adapt(key, file_key, leaf)?;
                // The key is decoded in any case: it carries which entries there are.
                self.select(leaf, leaf_count(file_key.data_type()));
                let value_adapt = self.adapt(value, file_value, leaf + leaf_count(file_key.data_type()))?;
                Ok(Adapt::Map {
                    entries: Arc::clone(entries),
                    key: Box::new(key_adapt),
                    value: Box::new(value_adapt),
                })
            }
            (to, from) if !from.is_nested() && !to.is_nested() && may_read_as(from, to) => {
                self.select(leaf, 1);
                Ok(if to == from { Adapt::Same } else { Adapt::Cast(to.clone()) })
            }
            _ => Err(mismatch()),
        }
    }

    fn select(&mut self, leaf: usize, count: usize) {
        for slot in self.selected.iter_mut().skip(leaf).take(count) {
            *slot = true;
        }
    }

    fn count_selected(&self, leaf: usize, data_type: &DataType) -> usize {
        self.selected.iter().skip(leaf).take(leaf_count(data_type)).filter(|s| **s).count()
    }
}

/// Turns indices among all siblings into indices among the siblings that are decoded.
fn renumber(read: Read, siblings: &Fields, first_leaf: usize, selected: &[bool]) -> Result<Read> {
    let Read::Column { index, adapt } = read else { return Ok(read) };
    let (mut leaf, mut rank) = (first_leaf, 0);
    for sibling in siblings.iter().take(index) {
        let count = leaf_count(sibling.data_type());
        rank += usize::from(any(selected, leaf, count));
        leaf += count;
    }
    let field = siblings
        .get(index)
        .ok_or_else(|| Error::internal("planned column is out of range"))?;
    Ok(Read::Column {
        index: rank,
        adapt: renumber_adapt(adapt, field, leaf, selected)?,
    })
}

fn renumber_adapt(adapt: Adapt, file: &FieldRef, leaf: usize, selected: &[bool]) -> Result<Adapt> {
    Ok(match (adapt, file.data_type()) {
        (Adapt::Struct { fields, reads }, DataType::Struct(children)) => {
            let reads = reads
                .into_iter()
                .map(|r| renumber(r, children, leaf, selected))
                .collect::<Result<Vec<_>>>()?;
            Adapt::Struct { fields, reads }
        }
        (Adapt::List { element, adapt }, DataType::List(child)) => Adapt::List {
            element,
            adapt: Box::new(renumber_adapt(*adapt, child, leaf, selected)?),
        },
        (Adapt::Map { entries, key, value }, DataType::Map(pair, _)) => {
            let DataType::Struct(children) = pair.data_type() else {
                return Err(Error::internal("map entries are no struct"));
            };
            let [file_key, file_value] = children.as_ref() else {
                return Err(Error::internal("map entries are no pair"));
            };
            let value_leaf = leaf + leaf_count(file_key.data_type());
            Adapt::Map {
                entries,
                key: Box::new(renumber_adapt(*key, file_key, leaf, selected)?),
                value: Box::new(renumber_adapt(*value, file_value, value_leaf, selected)?),
            }
        }
        (other, _) => other,
    })
}

fn any(selected: &[bool], leaf: usize, count: usize) -> bool {
    selected.iter().skip(leaf).take(count).any(|s| *s)
}

/// Parquet leaf columns below an arrow type.
fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| leaf_count(f.data_type())).sum(),
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => leaf_count(f.data_type()),
        _ => 1,
    }
}

fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// Whether a field or one inside of it has an id.
pub(super) fn has_id(field: &Field) -> bool {
    field_id(field).is_some()
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|f| has_id(f)),
            DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => has_id(f),
            _ => false,
        }
}
