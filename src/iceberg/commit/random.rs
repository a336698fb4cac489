//! Chance, given from outside, so that a run can be repeated.

use std::fmt;

use crate::iceberg::avro::SyncMarker;

/// A source of random numbers.
pub struct Random(Box<dyn FnMut() -> u64 + Send>);

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

impl Random {
    /// From a function that gives 64 random bits. File names and snapshot ids come of it, so they
    /// must differ between any two runs.
    pub fn new(next: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self(Box::new(next))
    }

    fn next(&mut self) -> u64 {
        (self.0)()
    }

    fn sixteen(&mut self) -> [u8; 16] {
        let (high, low) = (self.next(), self.next());
        ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
    }

    pub(super) fn sync(&mut self) -> SyncMarker {
        self.sixteen()
    }

    pub(super) fn uuid(&mut self) -> uuid::Uuid {
        uuid::Builder::from_random_bytes(self.sixteen()).into_uuid()
    }

    /// Positive, and none of `taken`.
    pub(super) fn snapshot_id(&mut self, taken: impl Fn(i64) -> bool) -> i64 {
        loop {
            let id = (self.next() >> 1).cast_signed();
            if id != 0 && !taken(id) {
                return id;
            }
        }
    }

    /// From 0 to `most`.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(bound) => self.next() % bound,
            None => self.next(),
        }
    }
}
