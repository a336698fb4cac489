//! The files and the pointer, and running a commit on them without faults.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::model::Row;
use crate::iceberg::avro::Codec;
use crate::iceberg::commit::{Action, Change, Check, Committer, Event, FileToRead, Loaded, Outcome, Random, SwapAnswer, WriteKind};
use crate::iceberg::manifest::Manifest;
use crate::iceberg::spec::{
    MetadataBuilder, NestedField, NewTable, PrimitiveType, StructType, TableMetadata, Transform, Type, UnboundPartitionField,
};

/// What a file holds.
#[derive(Debug, Clone)]
pub(in crate::iceberg::commit) enum Content {
    Rows(Vec<Row>),
    /// Positions in one data file; of a vector or a position delete file.
    Positions(String, BTreeSet<usize>),
    /// Values of `x`.
    Keys(BTreeSet<i64>),
}

/// A table with partition `p` and column `x`.
#[derive(Debug, Clone)]
pub(in crate::iceberg::commit) struct Lab {
    pub(in crate::iceberg::commit) files: BTreeMap<String, Bytes>,
    pub(in crate::iceberg::commit) now: Loaded,
    /// Contents by path, of a vector with its offset.
    pub(super) contents: BTreeMap<(String, Option<u64>), Content>,
    pub(super) made: usize,
    /// Manifests that were read, by location, sequence number and first row id.
    pub(super) read: RefCell<HashMap<(String, i64, Option<u64>), Arc<Manifest>>>,
    chance: u64,
}

impl Lab {
    pub(in crate::iceberg::commit) fn new(format_version: u8) -> Self {
        let field = |id: i32, name: &str, primitive| {
            Arc::new(NestedField {
                id,
                name: name.to_owned(),
                required: false,
                field_type: Type::Primitive(primitive),
                doc: None,
                initial_default: None,
                write_default: None,
            })
        };
        let request = NewTable {
            format_version,
            uuid: uuid::uuid!("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
            location: "file:/t".to_owned(),
            schema: StructType {
                fields: vec![field(1, "p", PrimitiveType::Int), field(2, "x", PrimitiveType::Long)],
            },
            identifier_field_ids: Vec::new(),
            partition_fields: vec![UnboundPartitionField {
                source_id: 1,
                name: "p".to_owned(),
                transform: Transform::Identity,
            }],
            sort_fields: Vec::new(),
            properties: BTreeMap::new(),
        };
        let table = MetadataBuilder::new_table(request, 1_600_000_000_000).unwrap().build().unwrap();
        Self {
            files: BTreeMap::new(),
            now: Loaded {
                metadata: Arc::new(table),
                location: "file:/t/metadata/00000-start.metadata.json".to_owned(),
            },
            contents: BTreeMap::new(),
            made: 0,
            read: RefCell::default(),
            chance: 1,
        }
    }

    /// The next number, for names.
    pub(in crate::iceberg::commit) fn next(&mut self) -> usize {
        self.made += 1;
        self.made
    }

    /// Changes the metadata alone, as another writer would.
    pub(in crate::iceberg::commit) fn alter(&mut self, change: impl FnOnce(&mut MetadataBuilder)) {
        let mut builder = MetadataBuilder::from_base(Arc::clone(&self.now.metadata), Some(&self.now.location), 0);
        change(&mut builder);
        let number = self.next();
        self.now = Loaded {
            metadata: Arc::new(builder.build().unwrap()),
            location: format!("file:/t/metadata/{number:05}-altered.metadata.json"),
        };
    }

    pub(in crate::iceberg::commit) fn commit(&mut self, change: Change, skipped: Option<Check>) -> Outcome {
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut source = super::super::sim::Chance::new(self.chance);
        let mut committer = Committer::with_codec(change, Codec::Null, Random::new(move || source.next()));
        if let Some(check) = skipped {
            committer = committer.without(check);
        }
        let mut written: BTreeMap<String, Arc<TableMetadata>> = BTreeMap::new();
        let mut event = Event::Start;
        loop {
            event = match committer.step(event, 1_700_000_000_000) {
                Action::Load => Event::Loaded(self.now.clone()),
                Action::Read(files) => {
                    let read = files.iter().map(|file| part_of(&self.files[&file.location], file));
                    Event::Read(read.collect())
                }
                Action::Write(files) => {
                    for file in files {
                        if file.kind == WriteKind::Metadata {
                            let read = TableMetadata::from_bytes(&file.bytes, &file.location).unwrap();
                            written.insert(file.location.clone(), Arc::new(read));
                        }
                        self.files.insert(file.location, file.bytes);
                    }
                    Event::Done
                }
                Action::Swap { base, new } => {
                    assert_eq!(base, self.now.location);
                    self.now = Loaded {
                        metadata: Arc::clone(&written[&new]),
                        location: new,
                    };
                    Event::Swapped(SwapAnswer::Done)
                }
                Action::Delete(paths) => {
                    for path in paths {
                        self.files.remove(&path);
                    }
                    Event::Done
                }
                Action::Finished(outcome) => return outcome,
                Action::OpenJournal(_) | Action::CloseJournal { .. } | Action::Sleep(_) => Event::Done,
                other @ Action::Settle { .. } => panic!("{other:?}"),
            };
        }
    }
}

/// What of a file is read.
pub(in crate::iceberg::commit) fn part_of(bytes: &Bytes, file: &FileToRead) -> Bytes {
    match &file.range {
        Some(range) => bytes.slice(range.start as usize..range.end as usize),
        None => bytes.clone(),
    }
}
