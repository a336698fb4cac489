//! The order of a table's files (spec "Sorting"): rows of a chunk are put into it, and a file says that it has
//! it only where all of its chunks follow each other.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::SortOptions;
use arrow::row::{OwnedRow, RowConverter, SortField as RowField};

use super::file_schema::FileColumn;
use super::source::Source;
use super::values::array_of;
use crate::error::Result;
use crate::iceberg::spec::{Literal, SortOrder};

/// Brings rows into a sort order.
#[derive(Debug)]
pub(super) struct Sorter {
    pub(super) order_id: i32,
    fields: Vec<(Source, SortOptions)>,
}

/// A chunk's rows in order.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) rows: Arc<UInt32Array>,
    pub(super) first: OwnedRow,
    pub(super) last: OwnedRow,
}

impl Sorter {
    /// `None` for the unsorted order, and for one that cannot be followed: its transform is not known or its
    /// column is gone. Files then do not say that they are sorted.
    pub(super) fn new(order: &SortOrder, columns: &[FileColumn]) -> Option<Self> {
        let fields = order.fields.iter().map(|field| {
            let source = Source::new("", &field.transform, field.source_id, columns).ok()?;
            let options = SortOptions {
                descending: field.descending,
                nulls_first: field.nulls_first,
            };
            Some((source, options))
        });
        let fields: Vec<_> = fields.collect::<Option<_>>()?;
        (!fields.is_empty()).then_some(Self {
            order_id: order.order_id,
            fields,
        })
    }

    /// The order of a chunk of at least one row; `pieces` are its rows in parts.
    pub(super) fn sort(&self, pieces: &[Vec<ArrayRef>], rows: usize) -> Result<Option<Sorted>> {
        let mut keys = Vec::with_capacity(self.fields.len());
        let mut fields = Vec::with_capacity(self.fields.len());
        for (source, options) in &self.fields {
            let key = key(source, pieces, rows)?;
            fields.push(RowField::new_with_options(key.data_type().clone(), *options));
            keys.push(key);
        }
        let converter = RowConverter::new(fields)?;
        let keys = converter.convert_columns(&keys)?;
        let mut order: Vec<u32> = (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect();
        order.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
        let (Some(first), Some(last)) = (order.first(), order.last()) else {
            return Ok(None);
        };
        let owned = |at: &u32| keys.row(*at as usize).owned();
        Ok(Some(Sorted {
            first: owned(first),
            last: owned(last),
            rows: Arc::new(UInt32Array::from(order)),
        }))
    }
}

/// What rows are compared by.
fn key(source: &Source, pieces: &[Vec<ArrayRef>], rows: usize) -> Result<ArrayRef> {
    if source.is_identity() {
        let mut arrays = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let Some((array, nulls)) = source.find(piece)? else { break };
            // Nulls of the structs above count too.
            let data = array.to_data().into_builder().nulls(nulls).build()?;
            arrays.push(arrow::array::make_array(data));
        }
        if !arrays.is_empty() {
            let arrays: Vec<&dyn arrow::array::Array> = arrays.iter().map(AsRef::as_ref).collect();
            return Ok(arrow::compute::concat(&arrays)?);
        }
    }
    let mut values: Vec<Option<Literal>> = Vec::with_capacity(rows);
    for piece in pieces {
        let rows = piece.first().map_or(0, |array| array.len());
        source.each(piece, rows, |value| values.push(value))?;
    }
    array_of(&values)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringArray};
    use serde_json::json;

    use super::super::file_schema::FileSchema;
    use super::*;
    use crate::iceberg::spec::Schema;

    fn sorted(fields: &serde_json::Value) -> Vec<u32> {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": [
            {"id": 1, "name": "d", "required": false, "type": "double"},
            {"id": 2, "name": "s", "required": false, "type": "string"}]}));
        let files = FileSchema::new(&schema.unwrap()).unwrap();
        let order = SortOrder::from_json(&json!({"order-id": 3, "fields": fields})).unwrap();
        let sorter = Sorter::new(&order, &files.columns).unwrap();
        let piece = |d: Vec<Option<f64>>, s: Vec<Option<&str>>| -> Vec<ArrayRef> {
            vec![Arc::new(Float64Array::from(d)), Arc::new(StringArray::from(s))]
        };
        let pieces = [
            piece(vec![Some(f64::NAN), Some(0.0), None], vec![Some("ab"), Some("b"), Some("aa")]),
            piece(vec![Some(-0.0), Some(f64::NEG_INFINITY)], vec![None, Some("ac")]),
        ];
        sorter.sort(&pieces, 5).unwrap().unwrap().rows.values().to_vec()
    }

    #[test]
    fn floats_sort_as_the_specification_says() {
        let by =
            |direction: &str, nulls: &str| json!([{"transform": "identity", "source-id": 1, "direction": direction, "null-order": nulls}]);
        assert_eq!(sorted(&by("asc", "nulls-first")), [2, 4, 3, 1, 0]);
        assert_eq!(sorted(&by("asc", "nulls-last")), [4, 3, 1, 0, 2]);
        assert_eq!(sorted(&by("desc", "nulls-first")), [2, 0, 1, 3, 4]);
    }

    #[test]
    fn transforms_come_before_the_next_field_and_equal_rows_stay_in_order() {
        let first = json!({"transform": "truncate[1]", "source-id": 2, "direction": "desc", "null-order": "nulls-last"});
        let second = json!({"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-last"});
        assert_eq!(sorted(&json!([first])), [1, 0, 2, 4, 3]);
        assert_eq!(sorted(&json!([first, second])), [1, 4, 0, 2, 3]);
    }

    #[test]
    fn an_order_that_cannot_be_followed_is_none() {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": [{"id": 1, "name": "d", "required": false, "type": "int"}]}));
        let files = FileSchema::new(&schema.unwrap()).unwrap();
        let by = |transform: &str, id: i32| {
            let field = json!({"transform": transform, "source-id": id, "direction": "asc", "null-order": "nulls-first"});
            SortOrder::from_json(&json!({"order-id": 3, "fields": [field]})).unwrap()
        };
        assert!(Sorter::new(&SortOrder::unsorted(), &files.columns).is_none());
        assert!(Sorter::new(&by("zorder", 1), &files.columns).is_none());
        assert!(Sorter::new(&by("identity", 2), &files.columns).is_none());
        assert!(Sorter::new(&by("bucket[3]", 1), &files.columns).is_some());
    }
}
