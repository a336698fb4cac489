//! The matrix of reliability-security.md 2.2 with its IC-4, as rules about what the winner did.

use super::{FILES, FILTER, File, Isolation, Op};
use crate::iceberg::commit::lab::Region;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Committed,
    Conflict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Append,
    Delete,
    Overwrite,
    Replace,
}

/// A delete file that the winner added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delete {
    /// A position delete file about one data file.
    Positions(File),
    Vector(File),
    /// Equality deletes of a partition.
    Keys(i32),
}

/// What the winner did.
#[derive(Debug)]
pub(super) struct Facts {
    kind: Kind,
    /// Where its new data files lie; none of a compaction, which brings no new data.
    new_data: Vec<Region>,
    removed: Vec<File>,
    deletes: Vec<Delete>,
    /// Data files whose delete files it removed by name.
    removed_deletes: Vec<File>,
    rewrote_manifests: bool,
}

pub(super) fn facts(winner: Op, place: File, format_version: u8) -> Facts {
    let region = place.region();
    let part = |low: i64, high: i64| vec![Region { low, high, ..region }];
    let whole = || vec![region];
    let middle = region.low + 1;
    let positions = if format_version > 2 {
        Delete::Vector(place)
    } else {
        Delete::Positions(place)
    };
    // A vector takes the place of the one before.
    let replaced = if format_version > 2 { vec![place] } else { Vec::new() };
    let of = |kind| Facts {
        kind,
        new_data: Vec::new(),
        removed: Vec::new(),
        deletes: Vec::new(),
        removed_deletes: Vec::new(),
        rewrote_manifests: false,
    };
    match winner {
        Op::Append => Facts {
            new_data: whole(),
            ..of(Kind::Append)
        },
        Op::DeleteFile | Op::DeleteWhere => Facts {
            removed: vec![place],
            ..of(Kind::Delete)
        },
        Op::CopyOnWriteDelete => Facts {
            new_data: part(middle, middle),
            removed: vec![place],
            ..of(Kind::Overwrite)
        },
        Op::CopyOnWriteUpdate => Facts {
            new_data: part(region.low, middle),
            removed: vec![place],
            ..of(Kind::Overwrite)
        },
        Op::OverwriteWhere => Facts {
            new_data: whole(),
            removed: vec![place],
            ..of(Kind::Overwrite)
        },
        Op::OverwritePartition => Facts {
            new_data: whole(),
            removed: FILES.into_iter().filter(|file| file.region().p == region.p).collect(),
            ..of(Kind::Overwrite)
        },
        Op::DeleteRows => Facts {
            deletes: vec![positions],
            removed_deletes: replaced,
            ..of(Kind::Delete)
        },
        Op::UpdateRows => Facts {
            new_data: part(region.low, region.low),
            deletes: vec![positions],
            removed_deletes: replaced,
            ..of(Kind::Overwrite)
        },
        Op::Upsert => Facts {
            new_data: part(region.high, region.high),
            deletes: vec![Delete::Keys(region.p)],
            ..of(Kind::Overwrite)
        },
        Op::Compact | Op::CompactKeepingAge => Facts {
            removed: vec![place],
            ..of(Kind::Replace)
        },
        Op::CompactDeletes => Facts {
            deletes: vec![positions],
            removed_deletes: vec![place],
            ..of(Kind::Replace)
        },
        Op::RewriteManifests => Facts {
            rewrote_manifests: true,
            ..of(Kind::Replace)
        },
    }
}

impl Facts {
    /// IC-6: the file is gone.
    fn removed(&self, file: File) -> bool {
        self.removed.contains(&file)
    }

    /// IC-4: delete files of delete and overwrite count, vectors also those of replace.
    fn counted_deletes(&self) -> impl Iterator<Item = Delete> {
        let deletes = self.deletes.iter().copied();
        deletes.filter(|delete| match delete {
            Delete::Vector(_) => true,
            Delete::Positions(_) | Delete::Keys(_) => matches!(self.kind, Kind::Delete | Kind::Overwrite),
        })
    }

    fn deletes_on(&self, file: File) -> bool {
        self.counted_deletes().any(|delete| match delete {
            Delete::Positions(of) | Delete::Vector(of) => of == file,
            Delete::Keys(p) => p == file.region().p,
        })
    }

    fn position_deletes_on(&self, file: File) -> bool {
        self.counted_deletes()
            .any(|delete| matches!(delete, Delete::Positions(of) | Delete::Vector(of) if of == file))
    }

    fn vector_on(&self, file: File) -> bool {
        self.counted_deletes().any(|delete| delete == Delete::Vector(file))
    }

    fn deletes_in(&self, p: i32) -> bool {
        self.counted_deletes().any(|delete| match delete {
            Delete::Positions(of) | Delete::Vector(of) => of.region().p == p,
            Delete::Keys(of) => of == p,
        })
    }

    /// IC-4: only append and overwrite bring new data.
    fn new_data_in(&self, region: Region) -> bool {
        let counts = matches!(self.kind, Kind::Append | Kind::Overwrite);
        counts && self.new_data.iter().any(|new| region.meets(new.p, (new.low, new.high)))
    }

    fn removed_in(&self, region: Region) -> bool {
        self.removed
            .iter()
            .any(|file| region.meets(file.region().p, (file.region().low, file.region().high)))
    }
}

/// The row of the matrix for `second`, which is about file A, with [`FILTER`].
pub(super) fn expected(second: Op, isolation: Isolation, won: &Facts, format_version: u8) -> Expected {
    let serializable = isolation == Isolation::Serializable;
    let new_data = serializable && won.new_data_in(FILTER);
    let partition = Region::partition(1);
    let conflict = match second {
        // Whole files that match wholly are removed, as the table is at the commit; none here matches in part.
        Op::Append | Op::DeleteWhere => false,
        Op::DeleteFile => won.removed(File::A),
        Op::CopyOnWriteDelete | Op::CopyOnWriteUpdate => won.removed(File::A) || won.deletes_on(File::A) || new_data,
        Op::OverwriteWhere => won.removed_in(FILTER) || won.deletes_in(FILTER.p) || new_data,
        Op::OverwritePartition => won.removed_in(partition) || won.deletes_in(1) || (serializable && won.new_data_in(partition)),
        Op::DeleteRows => (won.removed(File::A) && won.kind != Kind::Delete) || won.vector_on(File::A) || new_data,
        Op::UpdateRows => {
            let replaces_vector = format_version > 2 && won.removed_deletes.contains(&File::A);
            won.removed(File::A) || won.vector_on(File::A) || replaces_vector || won.deletes_in(FILTER.p) || new_data
        }
        Op::Upsert => new_data,
        Op::Compact => won.removed(File::A) || won.deletes_on(File::A),
        Op::CompactKeepingAge => won.removed(File::A) || won.position_deletes_on(File::A),
        Op::CompactDeletes => won.removed(File::A) || won.removed_deletes.contains(&File::A) || won.vector_on(File::A),
        // All data files of the table are in one manifest.
        Op::RewriteManifests => won.rewrote_manifests || !won.removed.is_empty(),
    };
    if conflict { Expected::Conflict } else { Expected::Committed }
}
