//! The data model of the Iceberg table specification: types, schemas, values, partition
//! specs, transforms, snapshots and table metadata. Pure: no I/O, no arrow.

mod metadata;
mod name_mapping;
mod partition;
mod schema;
mod snapshot;
mod transform;
mod types;
mod values;

pub use metadata::*;
pub use name_mapping::*;
pub use partition::*;
pub use schema::*;
pub use snapshot::*;
pub use transform::*;
pub use types::*;
pub use values::*;
