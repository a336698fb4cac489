//! Filters that every row of the files of a scan passes, so that they need not be asked again.

use super::{Facts, Predicate, Pruning, PruningKind, ScanRequest};

/// Which filters of a request are proved by the files so far.
#[derive(Debug)]
pub struct Residuals<'a> {
    misses: &'a [Predicate],
    proved: Vec<bool>,
    pruning: Pruning,
}

impl<'a> Residuals<'a> {
    /// Nothing was read yet, so everything is proved, unless this is switched off.
    pub fn new(request: &'a ScanRequest) -> Self {
        Self {
            misses: &request.misses,
            proved: vec![request.pruning.is_on(PruningKind::Residuals); request.misses.len()],
            pruning: request.pruning,
        }
    }

    /// Files are read of which nothing was asked.
    pub fn give_up(&mut self) {
        self.proved.fill(false);
    }

    /// A file is read of which one or more things are known: each may prove a filter alone.
    pub fn judge(&mut self, known: &[&dyn Facts]) {
        for (proved, misses) in self.proved.iter_mut().zip(self.misses).filter(|(proved, _)| **proved) {
            *proved = known
                .iter()
                .any(|facts| !self.pruning.may_match(PruningKind::Residuals, misses, *facts));
        }
    }

    /// For each filter, whether every row of the files passes it.
    pub fn proved(&self) -> &[bool] {
        &self.proved
    }

    /// How many are proved.
    pub fn count(&self) -> u64 {
        self.proved.iter().filter(|proved| **proved).count() as u64
    }
}
