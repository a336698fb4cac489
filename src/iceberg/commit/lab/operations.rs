//! Operations as a server would plan them on what it sees, with what they mean for the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::model::{Effect, Region, Row};
use super::read::{View, bounds};
use super::store::{Content, Lab};
use crate::bitmap::RowSet;
use crate::iceberg::commit::{Change, Operation, RemovedFile, VectorRows};
use crate::iceberg::manifest::{DataFile, FileContent, FileFormat, ManifestContent};
use crate::iceberg::puffin::PuffinWriter;
use crate::iceberg::spec::Literal;
use crate::table::Predicate;

/// A change and its meaning.
#[derive(Debug, Clone)]
pub(in crate::iceberg::commit) struct Planned {
    pub(in crate::iceberg::commit) change: Change,
    pub(in crate::iceberg::commit) effect: Effect,
}

impl Lab {
    fn plan(&mut self, operation: Operation, filter: Predicate) -> Planned {
        let id = format!("commit-{}", self.next());
        let change = Change {
            filter,
            ..Change::new(operation, Arc::clone(&self.now.metadata), id)
        };
        Planned {
            change,
            effect: Effect::default(),
        }
    }

    /// New rows.
    pub(in crate::iceberg::commit) fn rows(&mut self, p: i32, xs: &[i64]) -> Vec<Row> {
        let number = self.next();
        let row = |(n, x): (usize, &i64)| Row {
            name: format!("r{number}.{n}-{x}"),
            p,
            x: *x,
        };
        xs.iter().enumerate().map(row).collect()
    }

    /// A data file of one partition.
    fn data_file(&mut self, rows: Vec<Row>) -> DataFile {
        let path = format!("file:/t/data/{}.parquet", self.next());
        let (low, high) = bounds(&rows);
        let (p, count) = (rows[0].p, rows.len() as u64);
        self.contents.insert((path.clone(), None), Content::Rows(rows));
        self.files.insert(path.clone(), bytes::Bytes::new());
        let both = |value: u64| BTreeMap::from([(1, value), (2, value)]);
        DataFile {
            record_count: count,
            file_size_in_bytes: 100,
            value_counts: both(count),
            null_value_counts: both(0),
            lower_bounds: BTreeMap::from([(1, p.to_le_bytes().to_vec()), (2, low.to_le_bytes().to_vec())]),
            upper_bounds: BTreeMap::from([(1, p.to_le_bytes().to_vec()), (2, high.to_le_bytes().to_vec())]),
            ..DataFile::new(FileContent::Data, path, FileFormat::Parquet, 0, Arc::from([Some(Literal::Int(p))]))
        }
    }

    /// A vector (v3) or position delete file (v2).
    fn positions(&mut self, p: i32, data_file: &str, positions: BTreeSet<usize>) -> DataFile {
        let is_vector = self.now.metadata.format_version > 2;
        let number = self.next();
        let extension = if is_vector { "puffin" } else { "parquet" };
        let path = format!("file:/t/data/{number}-deletes.{extension}");
        let count = positions.len() as u64;
        let mut writer = PuffinWriter::new("lab");
        let blob = writer.add_deletion_vector(data_file, &row_set(&positions)).unwrap();
        let (offset, length) = (is_vector.then_some(blob.offset), is_vector.then_some(blob.length));
        let bytes = if is_vector { writer.finish(false).unwrap().0 } else { Vec::new() };
        self.files.insert(path.clone(), bytes.into());
        self.contents
            .insert((path.clone(), offset), Content::Positions(data_file.to_owned(), positions));
        let format = if is_vector { FileFormat::Puffin } else { FileFormat::Parquet };
        DataFile {
            record_count: count,
            file_size_in_bytes: 200,
            referenced_data_file: Some(data_file.to_owned()),
            content_offset: offset,
            content_size_in_bytes: length,
            ..DataFile::new(FileContent::PositionDeletes, path, format, 0, Arc::from([Some(Literal::Int(p))]))
        }
    }

    fn keys(&mut self, p: i32, keys: BTreeSet<i64>) -> DataFile {
        let path = format!("file:/t/data/{}-keys.parquet", self.next());
        let count = keys.len() as u64;
        self.contents.insert((path.clone(), None), Content::Keys(keys));
        self.files.insert(path.clone(), bytes::Bytes::new());
        DataFile {
            record_count: count,
            file_size_in_bytes: 50,
            equality_ids: Some(vec![2]),
            ..DataFile::new(
                FileContent::EqualityDeletes,
                path,
                FileFormat::Parquet,
                0,
                Arc::from([Some(Literal::Int(p))]),
            )
        }
    }

    pub(in crate::iceberg::commit) fn append(&mut self, rows: Vec<Row>) -> Planned {
        let mut planned = self.plan(Operation::Append, Predicate::True);
        planned.effect.adds.clone_from(&rows);
        planned.change.added.push(self.data_file(rows));
        planned
    }

    pub(in crate::iceberg::commit) fn delete_file(&mut self, view: &View, path: &str) -> Planned {
        let mut planned = self.plan(Operation::DeleteFiles, Predicate::True);
        planned.change.removed.push(data_file_name(path));
        // Whatever the file holds when it goes.
        planned.effect.removes = view.file(path).rows.iter().map(|row| row.name.clone()).collect();
        planned
    }

    pub(in crate::iceberg::commit) fn delete_where(&mut self, region: Region) -> Planned {
        let mut planned = self.plan(Operation::DeleteWhere, region.predicate());
        planned.effect.clears = Some(region);
        planned
    }

    pub(in crate::iceberg::commit) fn overwrite_where(&mut self, region: Region, rows: Vec<Row>) -> Planned {
        let mut planned = self.plan(Operation::OverwriteWhere, region.predicate());
        planned.effect.clears = Some(region);
        planned.effect.adds.clone_from(&rows);
        planned.change.added.push(self.data_file(rows));
        planned
    }

    pub(in crate::iceberg::commit) fn overwrite_partition(&mut self, rows: Vec<Row>) -> Planned {
        let mut planned = self.plan(Operation::OverwritePartitions, Predicate::True);
        planned.effect.clears = Some(Region::partition(rows[0].p));
        planned.effect.adds.clone_from(&rows);
        planned.change.added.push(self.data_file(rows));
        planned
    }

    /// Rewrites a file without the rows at `positions`, which become `new` ones.
    pub(in crate::iceberg::commit) fn copy_on_write(
        &mut self,
        view: &View,
        filter: Region,
        path: &str,
        positions: &[usize],
        new: Vec<Row>,
    ) -> Planned {
        let mut planned = self.plan(Operation::CopyOnWrite, filter.predicate());
        let file = view.file(path);
        planned.change.removed.push(data_file_name(path));
        let stays = file.visible().filter(|(position, _)| !positions.contains(position));
        let rows: Vec<Row> = stays.map(|(_, row)| row.clone()).chain(new.iter().cloned()).collect();
        if !rows.is_empty() {
            planned.change.added.push(self.data_file(rows));
        }
        planned.effect.removes = positions.iter().map(|position| file.rows[*position].name.clone()).collect();
        planned.effect.adds = new;
        planned
    }

    /// Deletes rows of a file merge-on-read; with `new` rows it is an update.
    pub(in crate::iceberg::commit) fn delete_rows(
        &mut self,
        view: &View,
        filter: Region,
        path: &str,
        positions: &[usize],
        new: Vec<Row>,
    ) -> Planned {
        let operation = if new.is_empty() {
            Operation::DeleteRows
        } else {
            Operation::UpdateRows
        };
        let mut planned = self.plan(operation, filter.predicate());
        let file = view.file(path);
        let mut all: BTreeSet<usize> = positions.iter().copied().collect();
        if self.now.metadata.format_version > 2 {
            // A vector holds what the one before it held.
            all.extend(&file.positions);
            planned.change.removed.extend(file.deletes.iter().cloned());
        }
        planned.change.added.push(self.positions(file.p, path, all));
        planned.change.referenced.push(path.to_owned());
        planned.effect.removes = positions.iter().map(|position| file.rows[*position].name.clone()).collect();
        planned.effect.adds.clone_from(&new);
        if !new.is_empty() {
            planned.change.added.push(self.data_file(new));
        }
        planned
    }

    /// Deletes rows of a file and counts them; in v3 by a vector that is made at the commit.
    pub(in crate::iceberg::commit) fn delete_counted(&mut self, view: &View, filter: Region, path: &str, positions: &[usize]) -> Planned {
        if self.now.metadata.format_version < 3 {
            let mut planned = self.delete_rows(view, filter, path, positions, Vec::new());
            planned.change.counted = Some(0);
            return planned;
        }
        let mut planned = self.plan(Operation::DeleteRows, filter.predicate());
        let file = view.file(path);
        planned.change.counted = Some(0);
        planned.change.vector_folder = "file:/t/data".to_owned();
        planned.change.referenced.push(path.to_owned());
        planned.change.vectors.push(VectorRows {
            data_file: path.to_owned(),
            spec_id: 0,
            partition: Arc::from([Some(Literal::Int(file.p))]),
            record_count: file.rows.len() as u64,
            rows: Arc::new(row_set(&positions.iter().copied().collect())),
            base: Arc::new(row_set(&file.positions)),
            vector: file.deletes.first().cloned(),
            folded: Vec::new(),
        });
        planned.effect.removes = positions.iter().map(|position| file.rows[*position].name.clone()).collect();
        planned
    }

    /// Replaces whatever has the key of the row in its partition.
    pub(in crate::iceberg::commit) fn upsert(&mut self, row: Row) -> Planned {
        let region = Region {
            p: row.p,
            low: row.x,
            high: row.x,
        };
        let mut planned = self.plan(Operation::Upsert, region.predicate());
        planned.effect.clears = Some(region);
        planned.effect.adds.push(row.clone());
        planned.change.added.push(self.keys(row.p, BTreeSet::from([row.x])));
        planned.change.added.push(self.data_file(vec![row]));
        planned
    }

    /// Rewrites files of one partition as one.
    pub(in crate::iceberg::commit) fn compact(&mut self, view: &View, paths: &[&str], keeps_age: bool) -> Planned {
        let sequence_number = keeps_age.then_some(self.now.metadata.last_sequence_number);
        let mut planned = self.plan(Operation::Compact { sequence_number }, Predicate::True);
        planned.change.removed.extend(paths.iter().map(|path| data_file_name(path)));
        let files = paths.iter().map(|path| view.file(path));
        let rows: Vec<Row> = files.flat_map(|file| file.visible().map(|(_, row)| row.clone())).collect();
        if !rows.is_empty() {
            planned.change.added.push(self.data_file(rows));
        }
        planned
    }

    /// Rewrites the deletes of one file as one.
    pub(in crate::iceberg::commit) fn compact_deletes(&mut self, view: &View, path: &str) -> Planned {
        let mut planned = self.plan(Operation::CompactDeletes, Predicate::True);
        let file = view.file(path);
        planned.change.removed.extend(file.deletes.iter().cloned());
        planned.change.added.push(self.positions(file.p, path, file.positions.clone()));
        planned.change.referenced.push(path.to_owned());
        planned
    }

    /// Puts the manifests of data files together.
    pub(in crate::iceberg::commit) fn rewrite_manifests(&mut self, view: &View) -> Planned {
        let data = view.manifests.iter().filter(|listed| listed.content == ManifestContent::Data);
        let locations = data.map(|listed| listed.location.clone()).collect();
        self.plan(Operation::RewriteManifests(locations), Predicate::True)
    }
}

fn row_set(positions: &BTreeSet<usize>) -> RowSet {
    positions.iter().map(|position| *position as u64).collect()
}

fn data_file_name(path: &str) -> RemovedFile {
    RemovedFile {
        path: path.to_owned(),
        content_offset: None,
    }
}
