//! Random numbers of one history (splitmix64).

use crate::iceberg::commit::Random;

#[derive(Debug, Clone)]
pub(in crate::iceberg::commit) struct Chance(u64);

impl Chance {
    pub(in crate::iceberg::commit) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    pub(in crate::iceberg::commit) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(in crate::iceberg::commit) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// True in `percent` of a hundred cases.
    pub(in crate::iceberg::commit) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// A source of its own.
    pub(in crate::iceberg::commit) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(in crate::iceberg::commit) fn source(&mut self) -> Random {
        let mut fork = self.fork();
        Random::new(move || fork.next())
    }
}
