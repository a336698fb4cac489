//! Which partition each row belongs to (spec "Partitioning").

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use super::file_schema::FileColumn;
use super::source::Source;
use super::values::Values;
use crate::error::{Error, Result};
use crate::iceberg::spec::{Literal, PartitionSpec, PartitionValues, PrimitiveType};

/// Divides batches by a partition spec.
#[derive(Debug)]
pub(super) struct Partitioner(Vec<Source>);

/// Rows of one partition.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) values: PartitionValues,
    /// Ascending; `None` for all rows of the batch.
    pub(super) rows: Option<UInt32Array>,
}

impl Partitioner {
    /// Errors: `Unsupported` for a transform that is not known.
    pub(super) fn new(spec: &PartitionSpec, columns: &[FileColumn]) -> Result<Self> {
        let fields = spec.fields.iter();
        let sources = fields.map(|field| Source::new(&field.name, &field.transform, field.source_id, columns));
        Ok(Self(sources.collect::<Result<_>>()?))
    }

    /// The partitions of a batch's rows, in the order of their first row.
    pub(super) fn divide(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Share>> {
        let mut tuples: Vec<Vec<Option<Literal>>> = vec![Vec::new()];
        let mut of_row: Vec<u32> = vec![0; rows];
        for source in &self.0 {
            let (values, codes) = distinct(source, columns, rows)?;
            let mut pairs: HashMap<(u32, u32), u32> = HashMap::new();
            let mut wider: Vec<Vec<Option<Literal>>> = Vec::new();
            for (tuple, code) in of_row.iter_mut().zip(codes) {
                *tuple = *pairs.entry((*tuple, code)).or_insert_with(|| {
                    let mut values_so_far = tuples.get(*tuple as usize).cloned().unwrap_or_default();
                    values_so_far.push(values.get(code as usize).cloned().flatten());
                    wider.push(values_so_far);
                    number(wider.len() - 1)
                });
            }
            tuples = wider;
        }
        if tuples.len() <= 1 {
            let values = tuples.pop().unwrap_or_default();
            return Ok(vec![Share {
                values: values.into(),
                rows: None,
            }]);
        }
        let mut shares: Vec<Vec<u32>> = vec![Vec::new(); tuples.len()];
        for (row, tuple) in of_row.iter().enumerate() {
            if let Some(share) = shares.get_mut(*tuple as usize) {
                share.push(number(row));
            }
        }
        let shares = tuples.into_iter().zip(shares).map(|(values, rows)| Share {
            values: Arc::from(values),
            rows: Some(UInt32Array::from(rows)),
        });
        Ok(shares.collect())
    }
}

/// The different results of a transform, and of each row which one it has.
fn distinct(source: &Source, columns: &[ArrayRef], rows: usize) -> Result<(Vec<Option<Literal>>, Vec<u32>)> {
    let mut values: Vec<Option<Literal>> = Vec::new();
    let mut known: HashMap<Option<Literal>, u32> = HashMap::new();
    let mut codes = Vec::with_capacity(rows);
    let mut code_of = |value: Option<Literal>| match known.get(&value) {
        Some(code) => *code,
        None => {
            let code = number(values.len());
            values.push(value.clone());
            known.insert(value, code);
            code
        }
    };
    if source.has_bytes()
        && let Some((array, nulls)) = source.find(columns)?
    {
        // Text is looked up before it is copied and transformed.
        let bytes = Values::new(&PrimitiveType::Binary, array.as_ref())?;
        let mut seen: HashMap<Option<&[u8]>, u32> = HashMap::new();
        for row in 0..rows {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let key = if is_null { None } else { bytes.bytes(row) };
            let code = match seen.get(&key) {
                Some(code) => *code,
                None => {
                    let value = if is_null { None } else { source.at(array.as_ref(), row)? };
                    if value.is_none() && !is_null {
                        return Err(Error::internal("a transform of text has no result"));
                    }
                    let code = code_of(value);
                    seen.insert(key, code);
                    code
                }
            };
            codes.push(code);
        }
    } else {
        source.each(columns, rows, |value| codes.push(code_of(value)))?;
    }
    Ok((values, codes))
}

/// Rows of a batch and what is counted in it are fewer than 2^32, which its caller sees to.
#[allow(clippy::cast_possible_truncation)]
fn number(at: usize) -> u32 {
    at as u32
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};
    use serde_json::{Value, json};

    use super::super::file_schema::FileSchema;
    use super::*;
    use crate::iceberg::spec::Schema;

    fn partitioner(fields: &[(&str, i32)]) -> Result<Partitioner> {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": [
            {"id": 1, "name": "t", "required": false, "type": "timestamp"},
            {"id": 2, "name": "s", "required": false, "type": "string"},
            {"id": 3, "name": "d", "required": false, "type": "double"},
            {"id": 4, "name": "i", "required": false, "type": "int"}]}));
        let files = FileSchema::new(&schema.unwrap()).unwrap();
        let fields: Vec<Value> = fields
            .iter()
            .enumerate()
            .map(|(at, (transform, id))| json!({"field-id": 1000 + at, "name": format!("p{at}"), "source-id": id, "transform": transform}))
            .collect();
        let spec = PartitionSpec::from_json(&json!({"spec-id": 0, "fields": fields})).unwrap();
        Partitioner::new(&spec, &files.columns)
    }

    fn columns() -> Vec<ArrayRef> {
        vec![
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), Some(0), None, Some(-1)])),
            Arc::new(StringArray::from(vec![Some("äbc"), None, Some("äbd"), Some("")])),
            Arc::new(Float64Array::from(vec![f64::NAN, -0.0, 0.0, -f64::NAN])),
            Arc::new(Int32Array::from(vec![-1, 0, 9, 10])),
        ]
    }

    fn divide(fields: &[(&str, i32)]) -> Vec<(Vec<Option<Literal>>, Option<Vec<u32>>)> {
        let shares = partitioner(fields).unwrap().divide(&columns(), 4).unwrap();
        let rows = |share: &Share| share.rows.as_ref().map(|rows| rows.values().to_vec());
        shares.iter().map(|share| (share.values.to_vec(), rows(share))).collect()
    }

    #[test]
    fn rows_go_to_the_partition_of_their_values() {
        let text = |of: &str| Some(Literal::String(of.to_owned()));
        let int = |of: i32| Some(Literal::Int(of));
        assert_eq!(divide(&[]), [(vec![], None)]);
        assert_eq!(
            divide(&[("day", 1)]),
            [
                (vec![int(-1)], Some(vec![0, 3])),
                (vec![int(0)], Some(vec![1])),
                (vec![None], Some(vec![2]))
            ]
        );
        assert_eq!(
            divide(&[("truncate[2]", 2)]),
            [
                (vec![text("äb")], Some(vec![0, 2])),
                (vec![None], Some(vec![1])),
                (vec![text("")], Some(vec![3]))
            ]
        );
        assert_eq!(
            divide(&[("truncate[10]", 4), ("void", 2)]),
            [
                (vec![int(-10), None], Some(vec![0])),
                (vec![int(0), None], Some(vec![1, 2])),
                (vec![int(10), None], Some(vec![3]))
            ]
        );
        assert_eq!(divide(&[("void", 3)]), [(vec![None], None)]);
    }

    #[test]
    fn nan_is_one_partition_and_zeros_are_two() {
        let double = |of: f64| vec![Some(Literal::Double(of))];
        assert_eq!(
            divide(&[("identity", 3)]),
            [
                (double(f64::NAN), Some(vec![0, 3])),
                (double(-0.0), Some(vec![1])),
                (double(0.0), Some(vec![2]))
            ]
        );
    }

    #[test]
    fn transforms_that_are_not_known_are_refused() {
        let error = partitioner(&[("zorder", 1)]).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Unsupported);
        assert!(partitioner(&[("hour", 4)]).is_err());
        assert!(partitioner(&[("identity", 9)]).is_err());
    }

    #[test]
    fn a_time_beyond_the_range_of_hours_is_refused() {
        let mut columns = columns();
        columns[0] = Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX; 4]));
        assert!(partitioner(&[("hour", 1)]).unwrap().divide(&columns, 4).is_err());
    }
}
