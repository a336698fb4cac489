//! The metadata of a new table: ids are given anew, in the order of the reference implementation
//! (all fields of a struct before those within them).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::partition_specs::UnboundPartitionField;
use super::properties::{check_property, location_of};
use super::schemas::as_input;
use super::{MetadataBuilder, NEWEST_FORMAT_VERSION};
use crate::error::{Error, Result};
use crate::iceberg::spec::{ListType, MapType, NestedField, Schema, SortField, StructType, Type};

/// What a new table is made of. Columns are told apart by ids that mean nothing beyond this
/// request; the table's own are given when it is made.
#[derive(Debug, Clone)]
pub struct NewTable {
    pub format_version: u8,
    pub uuid: uuid::Uuid,
    pub location: String,
    pub schema: StructType,
    pub identifier_field_ids: Vec<i32>,
    pub partition_fields: Vec<UnboundPartitionField>,
    pub sort_fields: Vec<SortField>,
    pub properties: BTreeMap<String, String>,
}

impl MetadataBuilder {
    /// Starts from a new table, whose schema, spec and sort order are 0, 0 and 1 (0 if unsorted).
    ///
    /// Errors: `InvalidInput` naming field and rule, `Unsupported` for a format version that is not known.
    pub fn new_table(new: NewTable, now_ms: i64) -> Result<Self> {
        if !(1..=NEWEST_FORMAT_VERSION).contains(&new.format_version) {
            return Err(Error::unsupported(format!(
                "format version {} is not supported, only 1 to {NEWEST_FORMAT_VERSION}",
                new.format_version
            )));
        }
        new.properties.keys().try_for_each(|name| check_property(name))?;
        // Ids of the request are unique, or sources and identifiers would be ambiguous.
        let given = Schema::new(0, new.schema, new.identifier_field_ids).map_err(as_input)?;
        let mut ids = FreshIds::default();
        let root = ids.fields(given.root());
        let fresh = |id: i32| ids.given.get(&id).copied();
        let missing = |id: i32| Error::invalid(format!("the table has no column {id}"));
        let identifiers = given.identifier_field_ids().iter().map(|id| fresh(*id).ok_or_else(|| missing(*id)));
        let identifiers = identifiers.collect::<Result<_>>()?;

        let mut builder = Self::empty(new.format_version, new.uuid, location_of(&new.location)?, now_ms);
        builder.table.properties = new.properties;
        let schema_id = builder.add_schema(root, identifiers)?;
        builder.set_current_schema(schema_id)?;
        let fields = new.partition_fields.into_iter().map(|field| {
            let source_id = fresh(field.source_id).ok_or_else(|| missing(field.source_id))?;
            Ok(UnboundPartitionField { source_id, ..field })
        });
        let fields: Vec<_> = fields.collect::<Result<_>>()?;
        let spec_id = builder.add_partition_spec(&fields)?;
        builder.set_default_partition_spec(spec_id)?;
        let fields = new.sort_fields.into_iter().map(|field| {
            let source_id = fresh(field.source_id).ok_or_else(|| missing(field.source_id))?;
            Ok(SortField {
                source_id,
                source_ids: vec![source_id],
                ..field
            })
        });
        let order = builder.add_sort_order(fields.collect::<Result<_>>()?)?;
        builder.set_default_sort_order(order)?;
        // The unsorted order is listed only where it is the default.
        builder.table.sort_orders.retain(|known| known.order_id == order);
        Ok(builder)
    }
}

/// Ids from 1 on, and which id of the request each replaces.
#[derive(Debug, Default)]
struct FreshIds {
    last: i32,
    given: HashMap<i32, i32>,
}

impl FreshIds {
    fn next(&mut self, id: i32) -> i32 {
        self.last = self.last.saturating_add(1);
        self.given.insert(id, self.last);
        self.last
    }

    fn fields(&mut self, fields: &StructType) -> StructType {
        let ids: Vec<i32> = fields.fields.iter().map(|field| self.next(field.id)).collect();
        let fields = fields.fields.iter().zip(ids).map(|(field, id)| self.field(field, id));
        StructType { fields: fields.collect() }
    }

    fn field(&mut self, field: &NestedField, id: i32) -> Arc<NestedField> {
        Arc::new(NestedField {
            id,
            field_type: self.within(&field.field_type),
            ..field.clone()
        })
    }

    fn within(&mut self, field_type: &Type) -> Type {
        match field_type {
            Type::Primitive(_) | Type::Variant => field_type.clone(),
            Type::Struct(fields) => Type::Struct(self.fields(fields)),
            Type::List(list) => {
                let id = self.next(list.element.id);
                Type::List(ListType {
                    element: self.field(&list.element, id),
                })
            }
            Type::Map(map) => {
                let (key, value) = (self.next(map.key.id), self.next(map.value.id));
                Type::Map(MapType {
                    key: self.field(&map.key, key),
                    value: self.field(&map.value, value),
                })
            }
        }
    }
}
