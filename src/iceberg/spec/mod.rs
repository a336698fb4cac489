//! The data model of the Iceberg table specification: types, schemas, values, partition
//! specs, transforms, snapshots and table metadata. Pure: no I/O, no arrow.

mod builder;
mod civil;
mod evolution;
mod json;
mod metadata;
mod metadata_json;
mod metadata_lists;
mod metadata_write;
mod name_mapping;
mod partition;
mod reserved;
mod schema;
mod schema_json;
mod snapshot;
mod sort_order;
mod transform;
mod transform_value;
mod type_text;
mod types;
mod value_bytes;
mod value_json;
mod values;

pub use builder::*;
pub(super) use civil::days_from_civil;
pub use metadata::*;
pub use metadata_write::MetadataCompression;
pub use name_mapping::*;
pub use partition::*;
pub use reserved::*;
pub use schema::*;
pub use snapshot::*;
pub use sort_order::*;
pub use transform::*;
pub use transform_value::bucket_hash;
pub(super) use transform_value::units_per_hour;
pub use types::*;
pub use values::*;
