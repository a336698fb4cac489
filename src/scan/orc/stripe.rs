//! One stripe of an ORC file.
//!
//! Three steps: the stripe footer is fetched; the streams of the wanted columns are fetched,
//! decompressed and checked; then batches are decoded. Rows that are not live are decoded and
//! left out.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter;
use arrow::datatypes::{Field, Fields, Schema};
use bytes::Bytes;
use orc_rust::array_decoder::NaiveStripeDecoder;
use orc_rust::reader::metadata::read_metadata;
use orc_rust::stripe::Stripe;
use prost::Message;

use super::check::{Streams, check};
use super::proto::{ColumnEncoding, Footer, PostScript, Stream, StripeFooter, StripeInformation, Type};
use super::tail::{OrcFile, StripePlace};
use super::types::{Node, kind};
use super::values::{decoded_kind, decoded_type, restore};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Steps;
use crate::scan::open::{Decode, Step};

/// Largest stripe footer that is read, compressed and decompressed.
const FOOTER_LIMIT: usize = 64 << 20;
/// Bytes of the wanted streams of a stripe, decompressed.
const STRIPE_LIMIT: usize = 2 << 30;

/// `Stream.Kind` numbers that hold values.
const PRESENT: i32 = 0;
const DATA: i32 = 1;
const LENGTH: i32 = 2;
const DICTIONARY_DATA: i32 = 3;
const SECONDARY: i32 = 5;

/// Names of UTC that need no conversion.
const UTC: &[&str] = &["UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Etc/Zulu", "Universal", "UCT"];

/// Decodes a stripe.
pub(in crate::scan) struct StripeUnit {
    file: Arc<OrcFile>,
    place: StripePlace,
    /// The wanted columns.
    columns: Vec<Node>,
    keep: Option<BooleanBuffer>,
    steps: Steps,
    /// Rows of the stripe that were decoded.
    done: usize,
    parts: Vec<Bytes>,
    state: State,
}

enum State {
    Start,
    Footer,
    Streams {
        footer: StripeFooter,
        /// The wanted streams in the order of their parts.
        wanted: Vec<Stream>,
    },
    Rows(Box<NaiveStripeDecoder>),
    Finished,
}

impl fmt::Debug for StripeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeUnit")
            .field("place", &self.place)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl StripeUnit {
    pub(in crate::scan) fn new(
        file: &Arc<OrcFile>,
        leaves: &[usize],
        stripe: usize,
        keep: Option<BooleanBuffer>,
        steps: Steps,
    ) -> Result<Self> {
        let place = file.stripes.get(stripe).copied();
        Ok(Self {
            place: place.ok_or_else(|| Error::internal("orc stripe is out of range"))?,
            columns: file.project(leaves),
            file: Arc::clone(file),
            keep,
            steps,
            done: 0,
            parts: Vec::new(),
            state: State::Start,
        })
    }

    fn footer_range(&self) -> Range<u64> {
        let start = self.place.offset + self.place.streams;
        start..start + self.place.footer
    }

    /// The ranges of the wanted streams, each checked to lie in the stripe.
    fn streams(&self, footer: &StripeFooter) -> Result<(Vec<Stream>, Vec<Range<u64>>)> {
        let mut wanted_columns = vec![false; self.file.types];
        mark(&self.columns, &mut wanted_columns);
        let (mut wanted, mut ranges) = (Vec::new(), Vec::new());
        let mut at = self.place.offset;
        let end = self.place.offset + self.place.streams;
        for stream in &footer.streams {
            let length = stream.length.unwrap_or(0);
            let next = at.checked_add(length).filter(|next| *next <= end);
            let next = next.ok_or_else(|| Error::corrupt("an orc stream does not lie in its stripe"))?;
            let column = stream.column.unwrap_or(0) as usize;
            let is_value = matches!(stream.kind.unwrap_or(0), PRESENT | DATA | LENGTH | DICTIONARY_DATA | SECONDARY);
            if is_value && length > 0 && wanted_columns.get(column) == Some(&true) {
                wanted.push(*stream);
                ranges.push(at..next);
            }
            at = next;
        }
        Ok((wanted, ranges))
    }

    /// What `orc-rust` is given: a file of this stripe with the wanted columns, not compressed.
    fn prepare(&self, footer: &StripeFooter, wanted: &[Stream], parts: &[Bytes]) -> Result<NaiveStripeDecoder> {
        let mut plain = Vec::new();
        let mut slots = Vec::with_capacity(wanted.len());
        for (stream, part) in wanted.iter().zip(parts) {
            let start = plain.len();
            self.file.codec.decompress(part, &mut plain, STRIPE_LIMIT)?;
            slots.push((stream.column.unwrap_or(0), stream.kind.unwrap_or(0), start..plain.len()));
        }
        slots.sort_by_key(|(column, kind, _)| (*column, *kind));
        if slots.windows(2).any(|pair| matches!(pair, [a, b] if (a.0, a.1) == (b.0, b.1))) {
            return Err(Error::corrupt("an orc column has two streams of one kind"));
        }
        self.check_lengths(footer, &plain, &slots)?;
        let bytes = self.file_of(footer, plain, &slots)?;
        guarded("open", || {
            let mut reader = bytes;
            let metadata = read_metadata(&mut reader)?;
            let place = metadata.stripe_metadatas().first().cloned();
            let stripe = match &place {
                Some(place) => Stripe::new(&mut reader, &metadata, metadata.root_data_type(), place)?,
                None => return Err(Error::internal("an orc stripe was lost").into()),
            };
            let fields = self
                .columns
                .iter()
                .map(|node| Field::new(node.field.name(), decoded_type(node), true));
            let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
            Ok(NaiveStripeDecoder::new(stripe, schema, self.steps.batch_rows)?)
        })
    }

    fn check_lengths(&self, footer: &StripeFooter, plain: &[u8], slots: &[(u32, i32, Range<usize>)]) -> Result<()> {
        let bytes = |column: u32, kind: i32| {
            let at = slots.binary_search_by_key(&(column, kind), |(c, k, _)| (*c, *k)).ok();
            at.and_then(|at| slots.get(at)).and_then(|(_, _, range)| plain.get(range.clone()))
        };
        let encoding = |column: u32| footer.columns.get(column as usize).copied().unwrap_or_default();
        let streams = |column: u32| {
            let encoding = encoding(column);
            let kind = encoding.kind.unwrap_or(0);
            Streams {
                present: bytes(column, PRESENT),
                data: bytes(column, DATA).unwrap_or_default(),
                length: bytes(column, LENGTH).unwrap_or_default(),
                dictionary: bytes(column, DICTIONARY_DATA).unwrap_or_default(),
                secondary: bytes(column, SECONDARY).unwrap_or_default(),
                v2: matches!(kind, 2 | 3),
                dictionary_size: matches!(kind, 1 | 3).then(|| u64::from(encoding.dictionary_size.unwrap_or(0))),
            }
        };
        let mut nodes: Vec<&Node> = self.columns.iter().collect();
        while let Some(node) = nodes.pop() {
            let found = footer.columns.get(node.column as usize);
            match found.map(|encoding| encoding.kind.unwrap_or(0)) {
                Some(0..=3) => {}
                Some(other) => return Err(Error::unsupported(format!("orc column encoding number {other} is not known"))),
                None => return Err(Error::corrupt("an orc stripe footer lacks the encoding of a column")),
            }
            nodes.extend(&node.children);
        }
        self.columns
            .iter()
            .try_for_each(|node| check(node, self.place.rows, self.steps.batch_rows as u64, &streams))
    }

    fn file_of(&self, footer: &StripeFooter, plain: Vec<u8>, slots: &[(u32, i32, Range<usize>)]) -> Result<Bytes> {
        let mut small = Small {
            footer,
            slots,
            types: vec![Type {
                kind: Some(kind::STRUCT),
                ..Type::default()
            }],
            encodings: vec![ColumnEncoding::default()],
            streams: Vec::new(),
            ranges: Vec::new(),
            has_local_time: false,
        };
        small.children(0, &self.columns)?;
        let mut out = Vec::with_capacity(plain.len() + (16 << 10));
        for range in &small.ranges {
            out.extend_from_slice(plain.get(range.clone()).unwrap_or_default());
        }
        drop(plain);
        let data_length = out.len() as u64;
        let zone = footer.writer_timezone.clone();
        let zone = zone.filter(|zone| small.has_local_time && !UTC.contains(&zone.as_str()));
        if let Some(zone) = &zone
            && (zone.starts_with(['+', '-']) || zone.parse::<Tz>().is_err())
        {
            return Err(Error::unsupported(format!(
                "the local times of the orc file are in the time zone \"{zone}\", which is not known"
            )));
        }
        let stripe_footer = StripeFooter {
            streams: small.streams,
            columns: small.encodings,
            writer_timezone: zone,
        };
        let footer_length = append(&stripe_footer, &mut out);
        let file_footer = Footer {
            stripes: vec![StripeInformation {
                offset: Some(0),
                index_length: Some(0),
                data_length: Some(data_length),
                footer_length: Some(footer_length),
                number_of_rows: Some(self.place.rows),
            }],
            types: small.types,
            number_of_rows: Some(self.place.rows),
            encryption: None,
        };
        let footer_length = append(&file_footer, &mut out);
        let postscript = PostScript {
            footer_length: Some(footer_length),
            compression: Some(0),
            compression_block_size: None,
            version: vec![0, 12],
            metadata_length: Some(0),
            magic: Some("ORC".to_owned()),
        };
        let length = append(&postscript, &mut out);
        out.push(u8::try_from(length).map_err(|_| Error::internal("orc postscript is too long"))?);
        Ok(out.into())
    }

    fn next_rows(&mut self) -> Result<Step> {
        let State::Rows(decoder) = &mut self.state else {
            return Ok(Step::Finished);
        };
        let batch = guarded("decode", || Ok(decoder.next().transpose()?))?;
        let total = usize::try_from(self.place.rows).unwrap_or(usize::MAX);
        let Some(batch) = batch else {
            self.state = State::Finished;
            if self.done != total {
                return Err(Error::corrupt(format!("an orc stripe of {total} rows has {}", self.done)));
            }
            return Ok(Step::Finished);
        };
        let rows = batch.num_rows();
        if rows == 0 || rows > total - self.done || batch.num_columns() != self.columns.len() {
            return Err(Error::corrupt("an orc stripe has another number of rows than it says"));
        }
        let mut columns = batch.columns().iter().zip(&self.columns);
        let mut columns = columns.try_fold(Vec::with_capacity(self.columns.len()), |mut all, (array, node)| {
            all.push(restore(array, node)?);
            Ok::<Vec<ArrayRef>, Error>(all)
        })?;
        let mut live = rows;
        if let Some(keep) = &self.keep {
            if keep.len() < self.done + rows {
                return Err(Error::internal("a mask is shorter than its stripe"));
            }
            let mask = BooleanArray::new(keep.slice(self.done, rows), None);
            live = mask.true_count();
            if live < rows {
                columns = columns.iter().map(|array| Ok(filter(array, &mask)?)).collect::<Result<_>>()?;
            }
        }
        self.done += rows;
        Ok(Step::Rows { columns, rows: live })
    }
}

impl Decode for StripeUnit {
    fn step(&mut self) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Finished) {
                State::Start => {
                    if self.place.footer > FOOTER_LIMIT as u64 {
                        return Err(Error::corrupt(format!("orc stripe footer claims {} bytes", self.place.footer)));
                    }
                    self.state = State::Footer;
                    return Ok(Step::Needs(vec![self.footer_range()]));
                }
                State::Footer => {
                    let part = self.parts.pop().unwrap_or_default();
                    let mut plain = Vec::new();
                    self.file.codec.decompress(&part, &mut plain, FOOTER_LIMIT)?;
                    let footer = StripeFooter::decode(plain.as_slice())
                        .map_err(|e| Error::corrupt("an orc stripe footer is damaged").with_source(e))?;
                    let (wanted, ranges) = self.streams(&footer)?;
                    let needs = !ranges.is_empty();
                    self.state = State::Streams { footer, wanted };
                    if needs {
                        return Ok(Step::Needs(ranges));
                    }
                }
                State::Streams { footer, wanted } => {
                    let parts = std::mem::take(&mut self.parts);
                    self.state = State::Rows(Box::new(self.prepare(&footer, &wanted, &parts)?));
                }
                rows @ State::Rows(_) => {
                    self.state = rows;
                    return self.next_rows();
                }
                State::Finished => return Ok(Step::Finished),
            }
        }
    }

    fn supply(&mut self, parts: Vec<Bytes>) -> Result<()> {
        self.parts = parts;
        Ok(())
    }
}

fn mark(nodes: &[Node], wanted: &mut [bool]) {
    for node in nodes {
        if let Some(slot) = wanted.get_mut(node.column as usize) {
            *slot = true;
        }
        mark(&node.children, wanted);
    }
}

/// Appends a message; its length.
fn append(message: &impl Message, out: &mut Vec<u8>) -> u64 {
    let bytes = message.encode_to_vec();
    out.extend_from_slice(&bytes);
    bytes.len() as u64
}

/// Runs `orc-rust`, whose panics and errors mean that the file is damaged.
fn guarded<T>(what: &str, work: impl FnOnce() -> std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(Error::corrupt(format!("cannot {what} an orc stripe")).with_source(e)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
            Err(Error::new(ErrorKind::Corrupt, format!("cannot {what} an orc stripe: {text}")))
        }
    }
}

/// Types, encodings and streams of the small file.
struct Small<'a> {
    footer: &'a StripeFooter,
    slots: &'a [(u32, i32, Range<usize>)],
    types: Vec<Type>,
    encodings: Vec<ColumnEncoding>,
    streams: Vec<Stream>,
    /// Bytes of each stream among the decompressed ones.
    ranges: Vec<Range<usize>>,
    has_local_time: bool,
}

impl Small<'_> {
    fn children(&mut self, parent: usize, nodes: &[Node]) -> Result<()> {
        for node in nodes {
            let column = self.types.len();
            let number = u32::try_from(column).map_err(|_| Error::internal("too many orc columns"))?;
            if let Some(parent) = self.types.get_mut(parent) {
                parent.subtypes.push(number);
                if parent.kind == Some(kind::STRUCT) {
                    parent.field_names.push(node.field.name().clone());
                }
            }
            let (precision, scale) = match node.field.data_type() {
                arrow::datatypes::DataType::Decimal128(p, s) => (Some(u32::from(*p)), u32::try_from(*s).ok()),
                _ => (None, None),
            };
            self.has_local_time |= node.kind == kind::TIMESTAMP;
            self.types.push(Type {
                kind: Some(decoded_kind(node.kind)),
                precision,
                scale,
                ..Type::default()
            });
            let encoding = self.footer.columns.get(node.column as usize);
            self.encodings.push(encoding.copied().unwrap_or_default());
            for (_, kind, range) in self.slots.iter().filter(|(column, _, _)| *column == node.column) {
                self.streams.push(Stream {
                    kind: Some(*kind),
                    column: Some(number),
                    length: Some(range.len() as u64),
                });
                self.ranges.push(range.clone());
            }
            self.children(column, &node.children)?;
        }
        Ok(())
    }
}
