//! The protobuf messages of ORC that are read and written here, with the fields that are used
//! (`orc_proto.proto`). Enumerations are kept as numbers, so that unknown ones can be refused.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct PostScript {
    #[prost(uint64, optional, tag = "1")]
    pub(super) footer_length: Option<u64>,
    #[prost(int32, optional, tag = "2")]
    pub(super) compression: Option<i32>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) compression_block_size: Option<u64>,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) version: Vec<u32>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) metadata_length: Option<u64>,
    #[prost(string, optional, tag = "8000")]
    pub(super) magic: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Footer {
    #[prost(message, repeated, tag = "3")]
    pub(super) stripes: Vec<StripeInformation>,
    #[prost(message, repeated, tag = "4")]
    pub(super) types: Vec<Type>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) number_of_rows: Option<u64>,
    /// Present in files with encrypted columns.
    #[prost(bytes = "vec", optional, tag = "10")]
    pub(super) encryption: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StripeInformation {
    #[prost(uint64, optional, tag = "1")]
    pub(super) offset: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) index_length: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) data_length: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) footer_length: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) number_of_rows: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Type {
    #[prost(int32, optional, tag = "1")]
    pub(super) kind: Option<i32>,
    #[prost(uint32, repeated, tag = "2")]
    pub(super) subtypes: Vec<u32>,
    #[prost(string, repeated, tag = "3")]
    pub(super) field_names: Vec<String>,
    #[prost(uint32, optional, tag = "4")]
    pub(super) maximum_length: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) precision: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) scale: Option<u32>,
    #[prost(message, repeated, tag = "7")]
    pub(super) attributes: Vec<StringPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StringPair {
    #[prost(string, optional, tag = "1")]
    pub(super) key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StripeFooter {
    #[prost(message, repeated, tag = "1")]
    pub(super) streams: Vec<Stream>,
    #[prost(message, repeated, tag = "2")]
    pub(super) columns: Vec<ColumnEncoding>,
    #[prost(string, optional, tag = "3")]
    pub(super) writer_timezone: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Stream {
    #[prost(int32, optional, tag = "1")]
    pub(super) kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) column: Option<u32>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) length: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ColumnEncoding {
    #[prost(int32, optional, tag = "1")]
    pub(super) kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) dictionary_size: Option<u32>,
}
