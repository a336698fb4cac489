//! Counts of what was read and written, by kind of file: for tests, logs and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a read or write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Table metadata JSON, version hints and listings.
    Metadata,
    ManifestList,
    Manifest,
    /// Position and equality delete files, deletion vectors.
    Delete,
    /// Parquet footers and page indexes.
    Footer,
    /// Column chunks of data files; whole data files when written.
    Data,
}

const KINDS: usize = 6;

/// Requests and bytes by kind, since start.
#[derive(Debug, Default)]
pub struct IoCounters {
    requests: [AtomicU64; KINDS],
    bytes: [AtomicU64; KINDS],
    requests_written: [AtomicU64; KINDS],
    bytes_written: [AtomicU64; KINDS],
}

impl IoCounters {
    pub(super) fn record(&self, kind: FileKind, requests: u64, bytes: u64) {
        self.requests[kind as usize].fetch_add(requests, Ordering::Relaxed);
        self.bytes[kind as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn record_write(&self, kind: FileKind, requests: u64, bytes: u64) {
        self.requests_written[kind as usize].fetch_add(requests, Ordering::Relaxed);
        self.bytes_written[kind as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Read requests of a kind.
    pub fn requests(&self, kind: FileKind) -> u64 {
        self.requests[kind as usize].load(Ordering::Relaxed)
    }

    /// Bytes read of a kind.
    pub fn bytes(&self, kind: FileKind) -> u64 {
        self.bytes[kind as usize].load(Ordering::Relaxed)
    }

    /// Requests of a kind that change something: creations, parts of a stream, deletions.
    pub fn requests_written(&self, kind: FileKind) -> u64 {
        self.requests_written[kind as usize].load(Ordering::Relaxed)
    }

    /// Bytes handed to the store for files of a kind.
    pub fn bytes_written(&self, kind: FileKind) -> u64 {
        self.bytes_written[kind as usize].load(Ordering::Relaxed)
    }
}
