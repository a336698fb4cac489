//! CREATE TABLE: from the statement to the metadata of a new table (interface.md 4).
//!
//! Invariants: what the metadata holds is what the statement says, and what is not said is written down
//! where readers would differ (format version, write modes); columns of a primary key are required.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::Schema as ArrowSchema;
use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, Expr, UnaryOperator, Value};

use super::parse::{CreateTable, Order, Term};
use super::types::Ids;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::{
    FORMAT_VERSION_PROPERTY, Literal, NestedField, NewTable, PrimitiveType, SortField, StructType, Transform, Type, UnboundPartitionField,
    format_version,
};

/// Format version of a table whose statement names none.
const FORMAT_VERSION: u8 = 2;
/// Row-level changes are noted in delete files unless a table says otherwise.
const WRITE_MODES: [&str; 3] = ["write.delete.mode", "write.update.mode", "write.merge.mode"];
const CODEC: (&str, &str) = ("write.parquet.compression-codec", "zstd");

impl CreateTable {
    /// The new table's metadata to be; `query` is the schema of the query behind AS.
    ///
    /// Errors: `InvalidInput` and `Unsupported`, naming the clause or column.
    pub(super) fn new_table(&self, location: String, query: Option<&ArrowSchema>) -> Result<NewTable> {
        if let Some(format) = self.format.as_deref().filter(|format| *format != "iceberg") {
            return Err(Error::unsupported(format!(
                "USING {format}: the catalog holds Iceberg tables; a catalog of Delta tables is not built yet"
            )));
        }
        let mut properties = self.properties.clone();
        let format_version = match properties.remove(FORMAT_VERSION_PROPERTY) {
            None => FORMAT_VERSION,
            Some(text) => format_version(&text)?,
        };
        let fields = self.fields(query, format_version)?;
        let path = |path: &[String]| find(&fields, path);
        let identifier_field_ids = self.primary_key.iter().map(|name| path(std::slice::from_ref(name)).map(|f| f.id));
        let identifier_field_ids = identifier_field_ids.collect::<Result<_>>()?;
        let partition_fields = self
            .partitions
            .iter()
            .map(|term| partition_field(term, &fields))
            .collect::<Result<_>>()?;
        let sort_fields = self.order.iter().map(|order| sort_field(order, &fields)).collect::<Result<_>>()?;
        if let Some(comment) = &self.comment {
            properties.insert("comment".to_owned(), comment.clone());
        }
        default_properties(format_version, &mut properties);
        Ok(NewTable {
            format_version,
            uuid: uuid::Uuid::new_v4(),
            location,
            schema: StructType {
                fields: fields.into_iter().map(Arc::new).collect(),
            },
            identifier_field_ids,
            partition_fields,
            sort_fields,
            properties,
        })
    }

    fn fields(&self, query: Option<&ArrowSchema>, format_version: u8) -> Result<Vec<NestedField>> {
        let mut ids = Ids::new(format_version);
        let mut fields = match query {
            Some(_) if !self.columns.is_empty() => {
                return Err(Error::unsupported(
                    "CREATE TABLE .. AS takes its columns from the query: rename them there and leave the list out",
                ));
            }
            Some(schema) => {
                let fields = schema.fields().iter().map(|field| {
                    let of = ids.of_result(field).context("column", || field.name().clone())?;
                    Ok(ids.field(field.name(), false, of))
                });
                fields.collect::<Result<Vec<_>>>()?
            }
            None => {
                let fields = self.columns.iter().map(|column| {
                    let name = &column.name.value;
                    column_field(column, format_version, &mut ids).context("column", || name.clone())
                });
                fields.collect::<Result<Vec<_>>>()?
            }
        };
        if fields.is_empty() {
            return Err(Error::invalid("a table needs a column"));
        }
        let mut names: Vec<String> = fields.iter().map(|field| field.name.to_lowercase()).collect();
        names.sort_unstable();
        if let Some(twice) = names
            .windows(2)
            .find(|pair| pair.first() == pair.last())
            .and_then(|pair| pair.first())
        {
            return Err(Error::invalid(format!("the table has two columns named \"{twice}\"")));
        }
        let inline = self.columns.iter().zip(&mut fields).filter(|(column, _)| {
            let key = |option: &ColumnOption| matches!(option, ColumnOption::PrimaryKey(_));
            column.options.iter().any(|option| key(&option.option))
        });
        if let Some((column, _)) = inline.into_iter().next() {
            return Err(Error::invalid(format!(
                "write the primary key behind the columns: PRIMARY KEY ({}) NOT ENFORCED",
                column.name
            )));
        }
        for key in &self.primary_key {
            let field = fields.iter_mut().find(|field| field.name.eq_ignore_ascii_case(key));
            field.ok_or_else(|| no_column(std::slice::from_ref(key)))?.required = true;
        }
        Ok(fields)
    }
}

fn default_properties(format_version: u8, properties: &mut BTreeMap<String, String>) {
    let mode = if format_version > 1 { "merge-on-read" } else { "copy-on-write" };
    let modes = WRITE_MODES.map(|name| (name, mode));
    for (name, value) in modes.into_iter().chain([CODEC]) {
        properties.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

fn column_field(column: &ColumnDef, format_version: u8, ids: &mut Ids) -> Result<NestedField> {
    let field_type = ids.of_sql(&column.data_type)?;
    let mut field = ids.field(&column.name.value, false, field_type);
    for option in &column.options {
        match &option.option {
            ColumnOption::NotNull => field.required = true,
            ColumnOption::Null | ColumnOption::PrimaryKey(_) => {}
            ColumnOption::Comment(text) => field.doc = Some(text.clone()),
            ColumnOption::Default(value) => {
                if format_version < 3 {
                    return Err(Error::unsupported(
                        "DEFAULT needs format version 3: add TBLPROPERTIES ('format-version' = '3')",
                    ));
                }
                field.write_default = default(value, &field.field_type)?;
                field.initial_default.clone_from(&field.write_default);
            }
            other => return Err(Error::unsupported(format!("{other} is not supported"))),
        }
    }
    Ok(field)
}

/// The value of a DEFAULT: a literal. NULL is none.
fn default(expr: &Expr, of: &Type) -> Result<Option<Literal>> {
    let wrong = || Error::invalid(format!("DEFAULT {expr} is no literal of type {of}"));
    let json = match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => return Ok(None),
            other => json(other, false, of),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: number,
        } => match number.as_ref() {
            Expr::Value(value) => json(&value.value, true, of),
            _ => None,
        },
        Expr::TypedString(typed) => json(&typed.value.value, false, of),
        _ => None,
    };
    if let (Some(PrimitiveType::Decimal { scale, .. }), Some(serde_json::Value::String(text))) = (of.as_primitive(), &json)
        && text.split_once('.').map_or(0, |(_, fraction)| fraction.len()) > usize::from(*scale)
    {
        return Err(Error::invalid(format!(
            "DEFAULT {expr} has more digits than a column of type {of} keeps"
        )));
    }
    let literal = Literal::from_json(of, &json.ok_or_else(wrong)?);
    literal.map(Some).map_err(|e| wrong().with_source(e))
}

fn json(value: &Value, negative: bool, of: &Type) -> Option<serde_json::Value> {
    let signed = |text: &str| if negative { format!("-{text}") } else { text.to_owned() };
    match (value, of.as_primitive()) {
        (Value::Boolean(value), _) if !negative => Some((*value).into()),
        (Value::Number(text, _), Some(PrimitiveType::Decimal { scale, .. })) => Some(with_scale(&signed(text), *scale).into()),
        (Value::SingleQuotedString(text), Some(PrimitiveType::Decimal { scale, .. })) if !negative => Some(with_scale(text, *scale).into()),
        (Value::Number(text, _), _) => serde_json::from_str(&signed(text)).ok(),
        (Value::SingleQuotedString(text), Some(PrimitiveType::Timestamp | PrimitiveType::TimestampNs)) if !negative => {
            Some(text.replacen(' ', "T", 1).into())
        }
        (Value::SingleQuotedString(text), Some(PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs)) if !negative => {
            let text = text.replacen(' ', "T", 1);
            let zoned = text.ends_with("+00:00");
            let text = text.strip_suffix('Z').map_or(text.clone(), str::to_owned);
            Some(if zoned { text } else { format!("{text}+00:00") }.into())
        }
        (Value::SingleQuotedString(text), _) if !negative => Some(text.as_str().into()),
        (Value::HexStringLiteral(text), _) if !negative => Some(text.to_lowercase().into()),
        _ => None,
    }
}

/// A decimal's digits with exactly so many behind the point, or more where it has more that are not zero.
fn with_scale(text: &str, scale: u8) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = "0".repeat(usize::from(scale).saturating_sub(fraction.len()));
    match (fraction, scale) {
        ("", 0) => whole.to_owned(),
        _ => format!("{whole}.{fraction}{zeros}"),
    }
}

fn no_column(path: &[String]) -> Error {
    Error::invalid(format!("the table has no column \"{}\"", path.join(".")))
}

/// The field of a path from the columns down.
fn find<'a>(fields: &'a [NestedField], path: &[String]) -> Result<&'a NestedField> {
    let named = |field: &NestedField, name: &str| field.name.eq_ignore_ascii_case(name);
    let (first, rest) = path.split_first().ok_or_else(|| no_column(path))?;
    let mut field = fields.iter().find(|f| named(f, first)).ok_or_else(|| no_column(path))?;
    for name in rest {
        let inner = field.field_type.as_struct().ok_or_else(|| no_column(path))?;
        field = inner.fields.iter().find(|f| named(f, name)).ok_or_else(|| no_column(path))?;
    }
    Ok(field)
}

/// The transform of a term and the suffix of a partition field's name.
fn transform(term: &Term) -> Result<(Transform, &'static str)> {
    let number = || {
        let number = term.argument.filter(|n| (1..=i32::MAX.unsigned_abs()).contains(n));
        number.ok_or_else(|| Error::invalid(format!("{} takes a positive number and a column", term.transform)))
    };
    let (transform, suffix) = match term.transform.as_str() {
        "identity" => (Transform::Identity, ""),
        "bucket" => (Transform::Bucket(number()?), "_bucket"),
        "truncate" => (Transform::Truncate(number()?), "_trunc"),
        "year" | "years" => (Transform::Year, "_year"),
        "month" | "months" => (Transform::Month, "_month"),
        "day" | "days" | "date" => (Transform::Day, "_day"),
        "hour" | "hours" | "date_hour" => (Transform::Hour, "_hour"),
        other => return Err(Error::unsupported(format!("there is no partition transform {other}"))),
    };
    let takes_number = matches!(transform, Transform::Bucket(_) | Transform::Truncate(_));
    if term.argument.is_some() && !takes_number {
        return Err(Error::invalid(format!("{} takes a column only", term.transform)));
    }
    Ok((transform, suffix))
}

fn partition_field(term: &Term, fields: &[NestedField]) -> Result<UnboundPartitionField> {
    let (transform, suffix) = transform(term)?;
    let source = find(fields, &term.column)?;
    takes(&transform, source)?;
    let path = match term.column.split_last() {
        // The column as it is spelled in the table.
        Some((_, parents)) => parents
            .iter()
            .map(String::as_str)
            .chain([source.name.as_str()])
            .collect::<Vec<_>>()
            .join("."),
        None => source.name.clone(),
    };
    Ok(UnboundPartitionField {
        source_id: source.id,
        name: format!("{path}{suffix}"),
        transform,
    })
}

fn takes(transform: &Transform, source: &NestedField) -> Result<()> {
    match transform.result_type(&source.field_type) {
        Some(_) => Ok(()),
        None => Err(Error::invalid(format!(
            "{transform} does not take column \"{}\" of type {}",
            source.name, source.field_type
        ))),
    }
}

fn sort_field(order: &Order, fields: &[NestedField]) -> Result<SortField> {
    let (transform, _) = transform(&order.term)?;
    let source = find(fields, &order.term.column)?;
    takes(&transform, source)?;
    Ok(SortField {
        source_id: source.id,
        source_ids: vec![source.id],
        transform,
        descending: order.descending,
        nulls_first: order.nulls_first,
    })
}
