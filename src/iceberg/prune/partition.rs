//! What partition values and partition summaries tell of the source columns.

use std::collections::HashMap;

use super::preimage::source_range;
use super::source::{Source, SourceTypes, datum, has_nan, literal};
use crate::iceberg::manifest::FieldSummary;
use crate::iceberg::spec::{Literal, PartitionSpec, PrimitiveType, Transform, bucket_hash};
use crate::table::{ColumnStats, Datum, Facts};

/// A field of a spec whose source column a predicate asks about.
#[derive(Debug)]
struct Field {
    /// Position in the spec.
    position: usize,
    source_id: i32,
    transform: Transform,
    source: Source,
}

/// One partition spec, seen from the columns of a predicate.
#[derive(Debug)]
pub struct PartitionProjection {
    width: usize,
    fields: Vec<Field>,
}

impl PartitionProjection {
    /// The fields of `spec` that tell anything of the columns of `types`.
    pub fn new(spec: &PartitionSpec, types: &SourceTypes) -> Self {
        let fields = spec.fields.iter().enumerate().filter_map(|(position, field)| {
            let source = types.get(field.source_id)?;
            is_usable(&field.transform, source).then(|| Field {
                position,
                source_id: field.source_id,
                transform: field.transform.clone(),
                source: source.clone(),
            })
        });
        Self {
            width: spec.fields.len(),
            fields: fields.collect(),
        }
    }

    /// Whether the spec tells nothing of the columns.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// What the partition values of a file tell; values stand in the order of the spec's fields.
    pub fn of_values(&self, values: &[Option<Literal>]) -> PartitionFacts {
        let mut facts = PartitionFacts::default();
        if values.len() != self.width {
            return facts;
        }
        for field in &self.fields {
            let stats = match values.get(field.position) {
                Some(Some(value)) => {
                    facts.add_bucket(field, Some(value), Some(value));
                    field.stats_of_value(value)
                }
                Some(None) => ColumnStats::null(),
                None => ColumnStats::unknown(),
            };
            facts.add(field.source_id, stats);
        }
        facts
    }

    /// What the summaries of a manifest tell; they stand in the order of the spec's fields.
    pub fn of_summaries(&self, summaries: &[FieldSummary]) -> PartitionFacts {
        let mut facts = PartitionFacts::default();
        if summaries.len() != self.width {
            return facts;
        }
        for field in &self.fields {
            let Some(summary) = summaries.get(field.position) else { continue };
            let bound = |bytes: &Option<bytes::Bytes>| field.read_bound(bytes.as_deref()?);
            let (lower, upper) = (bound(&summary.lower_bound), bound(&summary.upper_bound));
            facts.add_bucket(field, lower.as_ref(), upper.as_ref());
            let base = ColumnStats {
                may_be_null: summary.contains_null,
                may_be_nan: has_nan(&field.source.read_as) && summary.contains_nan != Some(false),
                two_orders: field.source.read_as == PrimitiveType::Uuid,
                ..ColumnStats::unknown()
            };
            let (lower, upper) = source_range(&field.transform, &field.source.read_as, lower.as_ref(), upper.as_ref());
            facts.add(field.source_id, base.with_bounds(lower, upper));
        }
        facts
    }
}

/// Whether values of the transform mean the same for every type that the column has had.
fn is_usable(transform: &Transform, source: &Source) -> bool {
    use PrimitiveType as P;
    let group = |p: &PrimitiveType| match p {
        P::Int | P::Long => 0,
        P::Decimal { .. } => 1,
        P::Date => 2,
        P::Time => 3,
        P::Timestamp | P::Timestamptz => 4,
        P::TimestampNs | P::TimestamptzNs => 5,
        P::String => 6,
        P::Binary | P::Fixed(_) => 7,
        P::Uuid => 8,
        _ => 9,
    };
    let is_time = |p: &PrimitiveType| matches!(group(p), 2 | 4 | 5);
    match transform {
        // A table that was replaced may have had both units under one id; values are in one of them.
        Transform::Identity | Transform::Truncate(_) => ![4, 5].iter().all(|unit| source.ever.iter().any(|p| group(p) == *unit)),
        Transform::Bucket(_) => source.ever.iter().all(|p| group(p) == group(&source.read_as)),
        Transform::Year | Transform::Month | Transform::Day => source.ever.iter().all(is_time),
        Transform::Hour => source.ever.iter().all(|p| matches!(group(p), 4 | 5)),
        Transform::Void | Transform::Unknown(_) => false,
    }
}

impl Field {
    fn stats_of_value(&self, value: &Literal) -> ColumnStats {
        let source = &self.source.read_as;
        if self.transform == Transform::Identity {
            return match datum(source, value) {
                Some(value) => ColumnStats::only(value),
                None => not_null(source),
            };
        }
        let (lower, upper) = source_range(&self.transform, source, Some(value), Some(value));
        not_null(source).with_bounds(lower, upper)
    }

    /// A bound of a summary: of the source's type, or a number of buckets or time units.
    fn read_bound(&self, bytes: &[u8]) -> Option<Literal> {
        let of = match self.transform {
            Transform::Identity | Transform::Truncate(_) => &self.source.read_as,
            _ => &PrimitiveType::Int,
        };
        Literal::from_bytes(of, bytes).ok()
    }
}

fn not_null(source: &PrimitiveType) -> ColumnStats {
    ColumnStats {
        may_be_null: false,
        may_be_nan: has_nan(source),
        ..ColumnStats::unknown()
    }
}

/// A range of buckets that all rows are in.
#[derive(Debug)]
struct Buckets {
    source_id: i32,
    source: PrimitiveType,
    count: i32,
    lowest: i32,
    highest: i32,
}

/// What a partition, or all partitions of a manifest, tell of the source columns.
#[derive(Debug, Default)]
pub struct PartitionFacts {
    columns: HashMap<i32, ColumnStats>,
    buckets: Vec<Buckets>,
}

impl PartitionFacts {
    fn add(&mut self, id: i32, stats: ColumnStats) {
        let known = self.columns.remove(&id);
        let both = match known {
            Some(known) => known.and(stats),
            None => stats,
        };
        self.columns.insert(id, both);
    }

    fn add_bucket(&mut self, field: &Field, lower: Option<&Literal>, upper: Option<&Literal>) {
        let (Transform::Bucket(count), Some(Literal::Int(lowest)), Some(Literal::Int(highest))) = (&field.transform, lower, upper) else {
            return;
        };
        let Ok(count) = i32::try_from(*count) else { return };
        self.buckets.push(Buckets {
            source_id: field.source_id,
            source: field.source.read_as.clone(),
            count: count.max(1),
            lowest: *lowest,
            highest: *highest,
        });
    }
}

impl Facts for PartitionFacts {
    fn column(&self, field_id: i32) -> ColumnStats {
        self.columns.get(&field_id).cloned().unwrap_or_else(ColumnStats::unknown)
    }

    fn may_contain(&self, field_id: i32, value: &Datum) -> bool {
        self.buckets
            .iter()
            .filter(|b| b.source_id == field_id)
            .all(|b| b.may_contain(value))
    }
}

impl Buckets {
    fn may_contain(&self, value: &Datum) -> bool {
        use PrimitiveType as P;
        let Some(literal) = literal(&self.source, value) else {
            return true;
        };
        // Writers have hashed nanoseconds as they are, and rounded them toward zero.
        let spellings = match (&self.source, &literal) {
            (P::TimestampNs | P::TimestamptzNs, Literal::Long(v)) => vec![
                (P::TimestampNs, literal.clone()),
                (P::Timestamp, Literal::Long(*v)),
                (P::Timestamp, Literal::Long(v / 1_000)),
            ],
            _ => vec![(self.source.clone(), literal)],
        };
        spellings.iter().any(|(source, literal)| match bucket_hash(source, literal) {
            Some(hash) => (self.lowest..=self.highest).contains(&((hash & i32::MAX) % self.count)),
            None => true,
        })
    }
}
