//! A Parquet footer before it is decoded: sizes checked, fields of the wrong type left out.
//!
//! The decoder of the `parquet` crate makes room for as many row groups as a footer declares before
//! it has seen one; here every declared size is held against the bytes that are there.
//!
//! A reader generated from `parquet.thrift` skips a field whose wire type differs from the declared
//! one. That decoder takes the declared type for granted, so a field that a
//! writer used privately before the format gave its number away (Dremio: a list as field 15 of
//! `ColumnMetaData`, later `bloom_filter_length`) makes the whole footer unreadable.
//!
//! Invariants: no bytes make this panic, recurse beyond [`MAX_DEPTH`] or allocate more than a small
//! multiple of themselves; every byte but those of dropped fields and of the field headers right
//! behind them is copied as it is. Fields unknown to the tables below are copied.
//!
//! Specification: Thrift compact protocol; the structs are those of `parquet.thrift`.

/// Deepest nesting of values that is followed; footers written by anyone need about eight.
pub(super) const MAX_DEPTH: u8 = 32;
/// Most row groups of a file, columns of a row group and elements of a schema that are read (SE-43).
const MAX_STRUCTS: usize = 100_000;

/// Wire types of struct fields; elements of lists and maps have the same numbers, booleans aside.
pub(super) mod wire {
    pub(in crate::scan) const STOP: u8 = 0;
    pub(in crate::scan) const TRUE: u8 = 1;
    pub(in crate::scan) const FALSE: u8 = 2;
    pub(in crate::scan) const BYTE: u8 = 3;
    pub(in crate::scan) const I16: u8 = 4;
    pub(in crate::scan) const I32: u8 = 5;
    pub(in crate::scan) const I64: u8 = 6;
    pub(in crate::scan) const DOUBLE: u8 = 7;
    pub(in crate::scan) const BINARY: u8 = 8;
    pub(in crate::scan) const LIST: u8 = 9;
    pub(in crate::scan) const SET: u8 = 10;
    pub(in crate::scan) const MAP: u8 = 11;
    pub(in crate::scan) const STRUCT: u8 = 12;
}

/// What `parquet.thrift` declares a field to be. Enums are `I32`, strings `Binary`.
#[derive(Clone, Copy)]
enum Declared {
    I16,
    I32,
    I64,
    Binary,
    /// A list whose elements are copied unseen.
    List,
    /// A list of structs that are looked into.
    ListOf(Fields),
    /// A struct or union that is copied unseen.
    Struct,
    /// A struct that is looked into.
    StructOf(Fields),
}

/// Field number with its type.
type Fields = &'static [(i16, Declared)];

impl Declared {
    fn wire(self) -> u8 {
        match self {
            Self::I16 => wire::I16,
            Self::I32 => wire::I32,
            Self::I64 => wire::I64,
            Self::Binary => wire::BINARY,
            Self::List | Self::ListOf(_) => wire::LIST,
            Self::Struct | Self::StructOf(_) => wire::STRUCT,
        }
    }
}

const FILE_META_DATA: Fields = &[
    (1, Declared::I32),                    // version
    (2, Declared::ListOf(SCHEMA_ELEMENT)), // schema
    (3, Declared::I64),                    // num_rows
    (4, Declared::ListOf(ROW_GROUP)),      // row_groups
    (5, Declared::List),                   // key_value_metadata
    (6, Declared::Binary),                 // created_by
    (7, Declared::List),                   // column_orders
    (8, Declared::Struct),                 // encryption_algorithm
    (9, Declared::Binary),                 // footer_signing_key_metadata
];

const SCHEMA_ELEMENT: Fields = &[
    (1, Declared::I32),     // type
    (2, Declared::I32),     // type_length
    (3, Declared::I32),     // repetition_type
    (4, Declared::Binary),  // name
    (5, Declared::I32),     // num_children
    (6, Declared::I32),     // converted_type
    (7, Declared::I32),     // scale
    (8, Declared::I32),     // precision
    (9, Declared::I32),     // field_id
    (10, Declared::Struct), // logicalType
    (11, Declared::I32),    // vector_length
];

const ROW_GROUP: Fields = &[
    (1, Declared::ListOf(COLUMN_CHUNK)), // columns
    (2, Declared::I64),                  // total_byte_size
    (3, Declared::I64),                  // num_rows
    (4, Declared::List),                 // sorting_columns
    (5, Declared::I64),                  // file_offset
    (6, Declared::I64),                  // total_compressed_size
    (7, Declared::I16),                  // ordinal
];

const COLUMN_CHUNK: Fields = &[
    (1, Declared::Binary),                     // file_path
    (2, Declared::I64),                        // file_offset
    (3, Declared::StructOf(COLUMN_META_DATA)), // meta_data
    (4, Declared::I64),                        // offset_index_offset
    (5, Declared::I32),                        // offset_index_length
    (6, Declared::I64),                        // column_index_offset
    (7, Declared::I32),                        // column_index_length
    (8, Declared::Struct),                     // crypto_metadata
    (9, Declared::Binary),                     // encrypted_column_metadata
];

const COLUMN_META_DATA: Fields = &[
    (1, Declared::I32),     // type
    (2, Declared::List),    // encodings
    (3, Declared::List),    // path_in_schema
    (4, Declared::I32),     // codec
    (5, Declared::I64),     // num_values
    (6, Declared::I64),     // total_uncompressed_size
    (7, Declared::I64),     // total_compressed_size
    (8, Declared::List),    // key_value_metadata
    (9, Declared::I64),     // data_page_offset
    (10, Declared::I64),    // index_page_offset
    (11, Declared::I64),    // dictionary_page_offset
    (12, Declared::Struct), // statistics
    (13, Declared::List),   // encoding_stats
    (14, Declared::I64),    // bloom_filter_offset
    (15, Declared::I32),    // bloom_filter_length
    (16, Declared::Struct), // size_statistics
    (17, Declared::Struct), // geospatial_statistics
];

/// `footer` (a serialised `FileMetaData`) without its fields of the wrong type; `None` where the
/// bytes are not a Thrift struct, or declare more than they can hold.
pub(super) fn well_formed(footer: &[u8]) -> Option<Vec<u8>> {
    Some(Repair::of(footer)?.to)
}

/// A footer on its way from `from` to `to`. Every method is `None` at bytes that are not Thrift.
struct Repair<'a> {
    from: &'a [u8],
    to: Vec<u8>,
    dropped: bool,
}

impl<'a> Repair<'a> {
    fn of(footer: &'a [u8]) -> Option<Self> {
        let mut copy = Self {
            from: footer,
            to: Vec::with_capacity(footer.len()),
            dropped: false,
        };
        copy.fields(FILE_META_DATA, MAX_DEPTH)?;
        // some writers put a signature behind the struct
        copy.to.extend_from_slice(copy.from);
        Some(copy)
    }

    /// Copies the fields of a struct up to and with its stop.
    fn fields(&mut self, fields: Fields, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let (mut last_read, mut last_written) = (0, 0);
        loop {
            let start = self.from;
            let Some((id, wire)) = field_header(&mut self.from, last_read)? else {
                self.to.extend_from_slice(passed(start, self.from)?);
                return Some(());
            };
            let declared = fields.iter().find(|(known, _)| *known == id).map(|(_, declared)| *declared);
            if declared.is_some_and(|declared| declared.wire() != plain(wire)) {
                skip(&mut self.from, wire, depth)?;
                self.dropped = true;
            } else {
                if last_read == last_written {
                    self.to.extend_from_slice(passed(start, self.from)?);
                } else {
                    self.header(id, wire, last_written);
                }
                last_written = id;
                self.value(declared, wire, depth)?;
            }
            last_read = id;
        }
    }

    /// Writes the header of a field whose distance to the field before has changed.
    fn header(&mut self, id: i16, wire: u8, before: i16) {
        let distance = i32::from(id) - i32::from(before);
        match u8::try_from(distance) {
            Ok(distance @ 1..=15) => self.to.push((distance << 4) | wire),
            _ => {
                self.to.push(wire);
                let zigzag = (i32::from(id) << 1) ^ (i32::from(id) >> 31);
                let mut left = zigzag.unsigned_abs();
                while left > 0x7f {
                    self.to.push((left & 0x7f) as u8 | 0x80);
                    left >>= 7;
                }
                self.to.push(left as u8);
            }
        }
    }

    fn value(&mut self, declared: Option<Declared>, wire: u8, depth: u8) -> Option<()> {
        match declared {
            Some(Declared::StructOf(fields)) => self.fields(fields, depth),
            Some(Declared::ListOf(fields)) => {
                let start = self.from;
                let (element, size) = list_header(&mut self.from)?;
                if element != wire::STRUCT {
                    self.from = start;
                    return self.unseen(wire, depth);
                }
                if size > MAX_STRUCTS {
                    return None;
                }
                self.to.extend_from_slice(passed(start, self.from)?);
                (0..size).try_for_each(|_| self.fields(fields, depth))
            }
            _ => self.unseen(wire, depth),
        }
    }

    fn unseen(&mut self, wire: u8, depth: u8) -> Option<()> {
        let start = self.from;
        skip(&mut self.from, wire, depth)?;
        self.to.extend_from_slice(passed(start, self.from)?);
        Some(())
    }
}

/// The bytes between two positions in the same slice, `rest` being the later one.
fn passed<'a>(start: &'a [u8], rest: &[u8]) -> Option<&'a [u8]> {
    start.get(..start.len().checked_sub(rest.len())?)
}

/// Booleans have two wire types, one for each value.
fn plain(wire: u8) -> u8 {
    if wire == wire::FALSE { wire::TRUE } else { wire }
}

/// Number and wire type of the next field; `Some(None)` at the end of the struct.
pub(super) fn field_header(from: &mut &[u8], before: i16) -> Option<Option<(i16, u8)>> {
    let byte = take(from, 1)?.first().copied()?;
    let wire = byte & 0x0f;
    if wire == wire::STOP {
        return Some(None);
    }
    let id = match byte >> 4 {
        0 => {
            let zigzag = varint(from)?;
            i16::try_from((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)).ok()?
        }
        distance => before.checked_add(i16::from(distance))?,
    };
    Some(Some((id, wire)))
}

/// Element type and number of elements, of which there is a byte each at least.
pub(super) fn list_header(from: &mut &[u8]) -> Option<(u8, usize)> {
    let byte = take(from, 1)?.first().copied()?;
    let size = match byte >> 4 {
        15 => usize::try_from(varint(from)?).ok()?,
        size => usize::from(size),
    };
    (size <= from.len()).then_some((byte & 0x0f, size))
}

/// Passes the value of a struct's field.
pub(super) fn skip(from: &mut &[u8], wire: u8, depth: u8) -> Option<()> {
    match wire {
        // the header says it all
        wire::TRUE | wire::FALSE => Some(()),
        _ => skip_element(from, wire, depth),
    }
}

/// Passes an element of a list, set or map, or the value of a field that is no boolean.
fn skip_element(from: &mut &[u8], wire: u8, depth: u8) -> Option<()> {
    let inner = depth.checked_sub(1)?;
    match wire {
        wire::TRUE | wire::FALSE | wire::BYTE => take(from, 1).map(drop),
        wire::I16 | wire::I32 | wire::I64 => varint(from).map(drop),
        wire::DOUBLE => take(from, 8).map(drop),
        wire::BINARY => {
            let length = usize::try_from(varint(from)?).ok()?;
            take(from, length).map(drop)
        }
        wire::LIST | wire::SET => {
            let (element, size) = list_header(from)?;
            (0..size).try_for_each(|_| skip_element(from, element, inner))
        }
        wire::MAP => {
            let size = usize::try_from(varint(from)?).ok()?;
            if size == 0 {
                return Some(());
            }
            let types = take(from, 1)?.first().copied()?;
            (0..size).try_for_each(|_| {
                skip_element(from, types >> 4, inner)?;
                skip_element(from, types & 0x0f, inner)
            })
        }
        wire::STRUCT => {
            // numbers do not matter here, and distances from 0 cannot overflow
            while let Some((_, wire)) = field_header(from, 0)? {
                skip(from, wire, inner)?;
            }
            Some(())
        }
        _ => None,
    }
}

pub(super) fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

/// An unsigned number of at most 64 bits in groups of seven, lowest first.
pub(super) fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(from, 1)?.first().copied()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, ListArray, RecordBatch, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field, Int32Type};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{FooterTail, ParquetMetaDataReader};
    use parquet::file::properties::WriterProperties;
    use proptest::prelude::*;

    use super::*;

    /// A footer of one INT32 column `a` with five rows; `more` lies behind field 9 of its `ColumnMetaData`.
    fn footer(more: &[u8]) -> Vec<u8> {
        let schema = b"\x19\x2c\x48\x04root\x15\x02\x00\x15\x02\x25\x02\x18\x01a\x00";
        let column = b"\x26\x08\x1c\x15\x02\x19\x15\x00\x19\x18\x01a\x15\x00\x16\x0a\x16\x3c\x16\x3c\x26\x08";
        let parts: [&[u8]; 8] = [
            b"\x15\x02",
            schema,
            b"\x16\x0a\x19\x1c\x19\x1c",
            column,
            more,
            b"\x00\x00",
            b"\x16\x3c\x16\x0a\x00",
            b"\x00",
        ];
        parts.concat()
    }

    /// A footer as the `parquet` crate writes it: nested columns, three row groups.
    fn written() -> Vec<u8> {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, Some(vec![None, Some(2)])]);
        let pair = StructArray::from(vec![
            (Arc::new(Field::new("n", DataType::Int32, true)), Arc::clone(&numbers)),
            (Arc::new(Field::new("s", DataType::Utf8, false)), Arc::clone(&names)),
        ]);
        let batch = RecordBatch::try_from_iter([
            ("n", numbers),
            ("s", names),
            ("l", Arc::new(lists)),
            ("p", Arc::new(pair) as ArrayRef),
        ])
        .unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(1))
            .set_bloom_filter_enabled(true)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let file = writer.into_inner().unwrap();
        let (rest, tail) = file.split_at(file.len() - 8);
        let length = FooterTail::try_from(tail).unwrap().metadata_length();
        rest[rest.len() - length..].to_vec()
    }

    #[test]
    fn a_list_in_place_of_the_bloom_filter_length_is_left_out() {
        // one struct with field 1 = 0, the way Dremio put page headers there
        let private = footer(b"\x69\x1c\x15\x00\x00");
        ParquetMetaDataReader::decode_metadata(&private).unwrap_err();
        let repaired = well_formed(&private).unwrap();
        assert_eq!(repaired, footer(b""));
        let metadata = ParquetMetaDataReader::decode_metadata(&repaired).unwrap();
        assert_eq!(metadata.file_metadata().num_rows(), 5);
        assert_eq!(metadata.row_group(0).column(0).data_page_offset(), 4);
    }

    #[test]
    fn fields_behind_a_dropped_one_keep_their_numbers() {
        // field 15 a binary; then 20, whose distance of 5 becomes 11 from field 9
        assert_eq!(well_formed(&footer(b"\x68\x01x\x55\x02")).unwrap(), footer(b"\xb5\x02"));
        // 25 is too far from field 9 for the short form: its number is written out
        assert_eq!(well_formed(&footer(b"\x68\x01x\xa5\x02")).unwrap(), footer(b"\x05\x32\x02"));
        // so are those of 79, in two bytes, and of -1, which is behind
        for long in [&b"\x05\x9e\x01\x02"[..], b"\x05\x01\x02"] {
            let private = footer(&[b"\x68\x01x", long].concat());
            assert_eq!(well_formed(&private).unwrap(), footer(long));
        }
    }

    #[test]
    fn mistyped_booleans_sets_maps_and_doubles_are_left_out() {
        let set = b"\x6a\x21\x01\x02";
        let map = b"\x6b\x01\x85\x01x\x02";
        let double = b"\x67\x01\x02\x03\x04\x05\x06\x07\x08";
        for more in [&b"\x61"[..], b"\x62", set, map, b"\x6b\x00", double] {
            assert_eq!(well_formed(&footer(more)), Some(footer(b"")), "{more:x?}");
        }
    }

    #[test]
    fn right_and_unknown_fields_are_nothing_to_repair() {
        for more in [&b""[..], b"\x65\x02", b"\xb9\x1c\x15\x00\x00"] {
            let footer = footer(more);
            assert_eq!(Repair::of(&footer).unwrap().to, footer);
            assert!(!Repair::of(&footer).unwrap().dropped);
        }
    }

    #[test]
    fn nesting_without_end_and_sizes_beyond_the_end_are_refused() {
        assert_eq!(well_formed(&[0x1c; 1 << 20]), None);
        assert_eq!(well_formed(&[0x19; 1 << 20]), None);
        // a list of 2^63 booleans, a map of as many, a binary of as many bytes
        let many = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        for start in [&b"\x69\xf1"[..], b"\x6b", b"\x68"] {
            assert_eq!(well_formed(&footer(&[start, many, b"\x11"].concat())), None);
        }
    }

    #[test]
    fn a_written_footer_is_copied_as_it_is() {
        let mut footer = written();
        assert_eq!(ParquetMetaDataReader::decode_metadata(&footer).unwrap().num_row_groups(), 3);
        footer.extend_from_slice(b"signature");
        assert_eq!(Repair::of(&footer).unwrap().to, footer);
    }

    proptest! {
        #[test]
        fn no_mutation_panics_and_a_repaired_footer_needs_no_second_repair(
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
            end in any::<proptest::sample::Index>(),
            cut: bool,
        ) {
            let mut footer = written();
            for (at, byte) in changes {
                let at = at.index(footer.len());
                footer[at] = byte;
            }
            if cut {
                footer.truncate(end.index(footer.len()));
            }
            match Repair::of(&footer) {
                Some(copy) if copy.dropped => {
                    let again = Repair::of(&copy.to).unwrap();
                    prop_assert!(!again.dropped);
                    prop_assert_eq!(again.to, copy.to);
                }
                Some(copy) => prop_assert_eq!(copy.to, footer),
                None => {}
            }
        }

        #[test]
        fn any_bytes_give_a_footer_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = well_formed(&bytes);
        }
    }
}
