//! The columns of an ORC file: its type tree with Iceberg's attributes (spec "Appendix A: ORC"),
//! in arrow types with field ids.
//!
//! Types form a tree in preorder; anything else is refused, so walking them is bounded. A type
//! that no Iceberg writer uses (a union) becomes one that nothing can be read as.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit, UnionFields, UnionMode};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::proto::Type;
use crate::error::{Error, Result};

/// How deep types may nest.
const MAX_DEPTH: usize = 64;
/// Most types of a file.
const MAX_TYPES: usize = 100_000;
/// Longest `fixed` that is read.
const MAX_FIXED: i32 = 16 << 20;

/// `Type.Kind` numbers of ORC.
pub(super) mod kind {
    pub(in super::super) const BOOLEAN: i32 = 0;
    pub(in super::super) const BYTE: i32 = 1;
    pub(in super::super) const SHORT: i32 = 2;
    pub(in super::super) const INT: i32 = 3;
    pub(in super::super) const LONG: i32 = 4;
    pub(in super::super) const FLOAT: i32 = 5;
    pub(in super::super) const DOUBLE: i32 = 6;
    pub(in super::super) const STRING: i32 = 7;
    pub(in super::super) const BINARY: i32 = 8;
    pub(in super::super) const TIMESTAMP: i32 = 9;
    pub(in super::super) const LIST: i32 = 10;
    pub(in super::super) const MAP: i32 = 11;
    pub(in super::super) const STRUCT: i32 = 12;
    pub(in super::super) const UNION: i32 = 13;
    pub(in super::super) const DECIMAL: i32 = 14;
    pub(in super::super) const DATE: i32 = 15;
    pub(in super::super) const VARCHAR: i32 = 16;
    pub(in super::super) const CHAR: i32 = 17;
    pub(in super::super) const TIMESTAMP_INSTANT: i32 = 18;
}

/// A column of the file or of what is read of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Number of the type in the file.
    pub(super) column: u32,
    pub(super) kind: i32,
    /// With the field's id; the type is what is made of the column.
    pub(super) field: FieldRef,
    pub(super) children: Vec<Node>,
}

impl Node {
    /// Leaves as `resolve` counts them.
    pub(super) fn leaf_count(&self) -> usize {
        match self.kind {
            kind::STRUCT | kind::LIST | kind::MAP if !self.children.is_empty() => self.children.iter().map(Self::leaf_count).sum(),
            _ => 1,
        }
    }

    /// The part of the column that has the wanted leaves (ascending), `first` being its first leaf;
    /// `None` when there is none.
    pub(super) fn project(&self, leaves: &[usize], first: usize) -> Option<Self> {
        let at = leaves.partition_point(|leaf| *leaf < first);
        leaves.get(at).filter(|leaf| **leaf < first + self.leaf_count())?;
        let (mut kept, mut next) = (Vec::with_capacity(self.children.len()), first);
        for child in &self.children {
            let count = child.leaf_count();
            // The two sides of a map go together.
            match child.project(leaves, next) {
                Some(child) => kept.push(child),
                None if self.kind == kind::MAP => kept.push(child.clone()),
                None => {}
            }
            next += count;
        }
        let data_type = match (self.kind, kept.as_slice()) {
            (kind::STRUCT, kept) => DataType::Struct(kept.iter().map(|c| Arc::clone(&c.field)).collect()),
            (kind::LIST, [element]) => DataType::List(Arc::clone(&element.field)),
            (kind::MAP, [key, value]) => map_type(&key.field, &value.field),
            _ => self.field.data_type().clone(),
        };
        Some(Self {
            field: Arc::new(self.field.as_ref().clone().with_data_type(data_type)),
            children: if self.kind == kind::UNION { Vec::new() } else { kept },
            ..self.clone()
        })
    }
}

/// The file's columns.
///
/// Errors: `Corrupt` for types that are no tree of records, `Unsupported` for an unknown type.
pub(super) fn columns(types: &[Type]) -> Result<Vec<Node>> {
    if types.len() > MAX_TYPES {
        return Err(Error::unsupported(format!("the orc file has more than {MAX_TYPES} columns")));
    }
    let root = types.first().ok_or_else(|| Error::corrupt("the orc file has no types"))?;
    if root.kind.unwrap_or(0) != kind::STRUCT {
        return Err(Error::unsupported("the orc file's rows are no structs"));
    }
    let mut tree = Tree { types, next: 1 };
    let columns = tree.children(root, 0)?;
    if tree.next as usize != types.len() {
        return Err(Error::corrupt("the orc file has types that no column has"));
    }
    Ok(columns)
}

struct Tree<'a> {
    types: &'a [Type],
    /// The type that must come next in preorder.
    next: u32,
}

impl Tree<'_> {
    fn children(&mut self, of: &Type, depth: usize) -> Result<Vec<Node>> {
        let names: Vec<&str> = match of.kind.unwrap_or(0) {
            kind::STRUCT => of.field_names.iter().map(String::as_str).collect(),
            kind::LIST => vec!["element"],
            kind::MAP => vec!["key", "value"],
            kind::UNION => vec![""; of.subtypes.len()],
            _ => Vec::new(),
        };
        if names.len() != of.subtypes.len() {
            return Err(Error::corrupt("an orc type has a wrong number of types inside"));
        }
        of.subtypes
            .iter()
            .zip(names)
            .map(|(column, name)| self.node(*column, name, depth + 1))
            .collect()
    }

    fn node(&mut self, column: u32, name: &str, depth: usize) -> Result<Node> {
        let found = self.types.get(column as usize).filter(|_| column == self.next);
        let of = found.ok_or_else(|| Error::corrupt("the orc file's types are no tree"))?;
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!("orc types nest deeper than {MAX_DEPTH}")));
        }
        self.next += 1;
        let children = self.children(of, depth)?;
        let data_type = data_type(of, &children)?;
        let id = attribute(of, "iceberg.id").map(|id| {
            let wrong = || Error::corrupt(format!("orc attribute iceberg.id is \"{id}\""));
            id.parse::<i32>().map_err(|_| wrong())
        });
        let id = id.transpose()?;
        let metadata: HashMap<String, String> = id
            .map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()))
            .into_iter()
            .collect();
        Ok(Node {
            column,
            kind: of.kind.unwrap_or(0),
            field: Arc::new(Field::new(name, data_type, true).with_metadata(metadata)),
            children,
        })
    }
}

fn attribute<'t>(of: &'t Type, key: &str) -> Option<&'t str> {
    let pair = of.attributes.iter().find(|pair| pair.key.as_deref() == Some(key))?;
    pair.value.as_deref()
}

fn data_type(of: &Type, children: &[Node]) -> Result<DataType> {
    let unit = match attribute(of, "iceberg.timestamp-unit") {
        Some("NANOS") => TimeUnit::Nanosecond,
        _ => TimeUnit::Microsecond,
    };
    let unreadable = || DataType::Union(UnionFields::empty(), UnionMode::Sparse);
    Ok(match of.kind.unwrap_or(0) {
        kind::BOOLEAN => DataType::Boolean,
        kind::BYTE => DataType::Int8,
        kind::SHORT => DataType::Int16,
        kind::INT => DataType::Int32,
        kind::LONG if attribute(of, "iceberg.long-type") == Some("TIME") => DataType::Time64(TimeUnit::Microsecond),
        kind::LONG => DataType::Int64,
        kind::FLOAT => DataType::Float32,
        kind::DOUBLE => DataType::Float64,
        kind::STRING | kind::VARCHAR | kind::CHAR => DataType::Utf8,
        kind::BINARY => match attribute(of, "iceberg.binary-type") {
            Some("UUID") => DataType::FixedSizeBinary(16),
            Some("FIXED") => {
                let length = attribute(of, "iceberg.length").and_then(|n| n.parse().ok());
                let length = length.filter(|n| (1..=MAX_FIXED).contains(n));
                DataType::FixedSizeBinary(length.ok_or_else(|| Error::corrupt("an orc column of type fixed has no length"))?)
            }
            _ => DataType::Binary,
        },
        kind::TIMESTAMP => DataType::Timestamp(unit, None),
        kind::TIMESTAMP_INSTANT => DataType::Timestamp(unit, Some("UTC".into())),
        kind::DATE => DataType::Date32,
        kind::DECIMAL => match (of.precision, u8::try_from(of.scale.unwrap_or(0))) {
            (Some(precision @ 1..=38), Ok(scale)) if u32::from(scale) <= precision => {
                DataType::Decimal128(u8::try_from(precision).unwrap_or(38), i8::try_from(scale).unwrap_or(38))
            }
            // Files of old writers have decimals without precision.
            _ => unreadable(),
        },
        kind::LIST => match children {
            [element] => DataType::List(Arc::clone(&element.field)),
            _ => return Err(Error::corrupt("an orc list has not one type inside")),
        },
        kind::MAP => match children {
            [key, value] => map_type(&key.field, &value.field),
            _ => return Err(Error::corrupt("an orc map has not two types inside")),
        },
        // Nothing would tell how many of them there are.
        kind::STRUCT if children.is_empty() => unreadable(),
        kind::STRUCT => DataType::Struct(children.iter().map(|c| Arc::clone(&c.field)).collect::<Fields>()),
        kind::UNION => unreadable(),
        other => return Err(Error::unsupported(format!("orc type number {other} is not known"))),
    })
}

/// A map; its keys are never null.
pub(super) fn map_type(key: &FieldRef, value: &FieldRef) -> DataType {
    let key = Arc::new(key.as_ref().clone().with_nullable(false));
    let entries = DataType::Struct(Fields::from(vec![key, Arc::clone(value)]));
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}
