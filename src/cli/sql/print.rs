//! Results as a table, CSV, JSON or Arrow.
//!
//! Rows are printed as they come; only tables are held back, in blocks, to find the widths.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::csv;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use arrow::json;
use arrow::json::writer::LineDelimited;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches_with_schema;

use super::super::args::Format;
use super::super::output::{Out, escape_control};
use super::super::run::Failure;
use crate::error::{Error, Result};

/// Rows of a table that are laid out together; a longer result is several tables.
const BLOCK_ROWS: usize = 10_000;

/// Prints one result.
pub(super) struct Printer<'a> {
    out: &'a mut Out,
    format: Format,
    schema: SchemaRef,
    /// Tables: rows not printed yet, as text.
    block: Vec<RecordBatch>,
    block_rows: usize,
    /// Tables and CSV: the column names are printed.
    headed: bool,
    /// Arrow: the stream so far, taken out after each batch.
    stream: Option<StreamWriter<Vec<u8>>>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut Out, format: Format, schema: SchemaRef) -> Result<Self> {
        let stream = match format {
            Format::Arrow => Some(StreamWriter::try_new(Vec::new(), &schema)?),
            _ => None,
        };
        Ok(Self {
            out,
            format,
            schema,
            block: Vec::new(),
            block_rows: 0,
            headed: false,
            stream,
        })
    }

    pub(super) fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        match self.format {
            Format::Table => {
                let mut done = 0;
                while done < batch.num_rows() {
                    let rows = (batch.num_rows() - done).min(BLOCK_ROWS - self.block_rows);
                    self.block.push(table_text(&batch.slice(done, rows))?);
                    self.block_rows += rows;
                    done += rows;
                    if self.block_rows == BLOCK_ROWS {
                        self.flush_block()?;
                    }
                }
            }
            Format::Csv => self.csv(batch)?,
            Format::Json => {
                let mut writer = json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, LineDelimited>(Vec::new());
                writer.write(batch).map_err(Error::from)?;
                let text = String::from_utf8_lossy(writer.get_ref()).into_owned();
                self.out.data(&text)?;
            }
            Format::Arrow => {
                if let Some(stream) = &mut self.stream {
                    stream.write(batch).map_err(Error::from)?;
                    let bytes = std::mem::take(stream.get_mut());
                    self.out.raw(&bytes)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        match self.format {
            Format::Table if self.block_rows > 0 || !self.headed => self.flush_block()?,
            Format::Csv if !self.headed => self.csv(&RecordBatch::new_empty(Arc::clone(&self.schema)))?,
            Format::Arrow => {
                if let Some(mut stream) = self.stream.take() {
                    stream.finish().map_err(Error::from)?;
                    let bytes = std::mem::take(stream.get_mut());
                    self.out.raw(&bytes)?;
                }
            }
            _ => {}
        }
        Ok(self.out.flush()?)
    }

    fn csv(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let mut text = Vec::new();
        {
            let mut writer = csv::WriterBuilder::new().with_header(!self.headed).build(&mut text);
            writer.write(&csv_text(batch)?).map_err(Error::from)?;
        }
        self.headed = true;
        Ok(self.out.data(&String::from_utf8_lossy(&text))?)
    }

    fn flush_block(&mut self) -> Result<(), Failure> {
        let block = std::mem::take(&mut self.block);
        let text = pretty_format_batches_with_schema(text_schema(&self.schema, true), &block).map_err(Error::from)?;
        self.block_rows = 0;
        self.headed = true;
        Ok(self.out.line(&text.to_string())?)
    }
}

/// Every value as one line of text without control characters; NULL is spelled out.
fn table_text(batch: &RecordBatch) -> Result<RecordBatch> {
    let options = FormatOptions::new().with_null("NULL").with_display_error(true);
    as_text(
        batch,
        true,
        |formatter, _, row| Some(escape_control(&formatter.value(row).to_string(), false)),
        &options,
    )
}

/// Every value as text; NULL is an empty field.
fn csv_text(batch: &RecordBatch) -> Result<RecordBatch> {
    let options = FormatOptions::new().with_null("null");
    let mut failed = None;
    let text = as_text(
        batch,
        false,
        |formatter, null, row| {
            if null {
                return None;
            }
            match formatter.value(row).try_to_string() {
                Ok(text) => Some(text),
                Err(e) => {
                    failed = Some(e);
                    None
                }
            }
        },
        &options,
    )?;
    match failed {
        Some(e) => Err(e.into()),
        None => Ok(text),
    }
}

fn as_text(
    batch: &RecordBatch,
    escape_names: bool,
    mut text: impl FnMut(&ArrayFormatter<'_>, bool, usize) -> Option<String>,
    options: &FormatOptions<'_>,
) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        let formatter = ArrayFormatter::try_new(column, options)?;
        // of the values, which for some types are not the array's own nulls
        let nulls = column.logical_nulls();
        let null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let values: StringArray = (0..batch.num_rows()).map(|row| text(&formatter, null(row), row)).collect();
        columns.push(Arc::new(values));
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        text_schema(&batch.schema(), escape_names),
        columns,
        &options,
    )?)
}

fn text_schema(schema: &Schema, escape: bool) -> SchemaRef {
    let name = |name: &str| if escape { escape_control(name, false) } else { name.to_owned() };
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|f| Field::new(name(f.name()), DataType::Utf8, true))
        .collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, ListArray, NullArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn batch() -> RecordBatch {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
        RecordBatch::try_from_iter_with_nullable([
            ("n", Arc::new(Int32Array::from(vec![Some(7), None])) as ArrayRef, true),
            (
                "evil\u{1b}]0;",
                Arc::new(StringArray::from(vec!["a\u{1b}[2Jb\nc", ""])) as ArrayRef,
                true,
            ),
            ("list", Arc::new(list) as ArrayRef, true),
        ])
        .unwrap()
    }

    #[test]
    fn tables_hold_no_control_characters() {
        let text = pretty_format_batches_with_schema(text_schema(&batch().schema(), true), &[table_text(&batch()).unwrap()])
            .unwrap()
            .to_string();
        assert_eq!(
            text,
            "+------+----------------+-----------+\n\
             | n    | evil\\u{1b}]0;  | list      |\n\
             +------+----------------+-----------+\n\
             | 7    | a\\u{1b}[2Jb\\nc | [1, NULL] |\n\
             | NULL |                | NULL      |\n\
             +------+----------------+-----------+"
        );
    }

    #[test]
    fn a_column_of_nulls_is_empty_in_csv() {
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
            ("b", Arc::new(NullArray::new(1)) as ArrayRef),
        ]);
        let text = csv_text(&batch.unwrap()).unwrap();
        assert!(text.column(0).is_valid(0) && text.column(1).is_null(0));
    }

    #[test]
    fn csv_has_nested_values_as_text_and_nulls_empty() {
        let mut text = Vec::new();
        csv::Writer::new(&mut text).write(&csv_text(&batch()).unwrap()).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "n,evil\u{1b}]0;,list\n7,\"a\u{1b}[2Jb\nc\",\"[1, null]\"\n,,\n"
        );
    }
}
