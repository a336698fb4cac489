//! Builder of Iceberg tables that no writer at hand makes.
//!
//! A test states a table as the issues state it: data files, delete files and vectors by name,
//! in commits. The builder writes everything itself (Parquet and Avro encodings through their
//! libraries, the rest by hand) and uses nothing of the crate under test. Beside the files it
//! keeps the rows, so that [`TestTable::rows`] can say what must be visible.
//!
//! ```ignore
//! let mut table = TableBuilder::new(dir.path(), Schema::new([required(1, "id", Type::Long)])).create();
//! table.append(DataFile::named("X").rows(json!([[1], [2], [3]])));
//! table.delete_positions(PositionDeletes::named("P").rows("X", [1]));
//! assert_eq!(table.rows(), [[json!(1)], [json!(3)]]);
//! ```
//!
//! Values are given in the canonical form of [`super::canonical`].

mod avro;
mod commit;
mod data;
mod deletes;
mod files;
mod manifest;
mod metadata;
mod model;
mod partition;
mod puffin;
mod row_formats;
mod selfcheck;
mod table;
mod types;
mod values;

pub use avro::Codec;
pub use commit::Commit;
pub use data::DataFile;
pub use deletes::{DeletionVectors, EqualityDeletes, PathBounds, PositionDeletes, Vector};
pub use files::{RowFormat, Status};
pub use partition::{PartitionField, PartitionSpec, identity, partition};
pub use puffin::Damage;
pub use table::{MetadataFile, TableBuilder, TestTable};
pub use types::{Field, Schema, Type, optional, required};
pub use values::Scalar;
