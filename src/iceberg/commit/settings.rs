//! How often and how long a commit is tried (table properties `commit.*`).

use std::time::Duration;

use super::random::Random;
use crate::error::Result;
use crate::iceberg::spec::TableMetadata;

/// Waits that double, within limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub(super) retries: u32,
    min_ms: u64,
    max_ms: u64,
    total_ms: u64,
}

impl Backoff {
    /// Looks where the table does not say otherwise.
    pub const LOOKS: Self = Self {
        retries: 3,
        min_ms: 1_000,
        max_ms: 60_000,
        total_ms: 1_800_000,
    };

    /// Attempts after a conflict.
    ///
    /// Errors: `InvalidInput` for a property that is no number.
    pub fn of_attempts(metadata: &TableMetadata) -> Result<Self> {
        let of = |name: &str, default: u64| number(metadata, &format!("commit.retry.{name}"), default);
        Ok(Self {
            retries: u32::try_from(of("num-retries", 4)?).unwrap_or(u32::MAX),
            min_ms: of("min-wait-ms", 100)?,
            max_ms: of("max-wait-ms", 60_000)?,
            total_ms: of("total-timeout-ms", 1_800_000)?,
        })
    }

    /// Looks after an unknown answer; at least three.
    ///
    /// Errors: `InvalidInput` for a property that is no number.
    pub fn of_looks(metadata: &TableMetadata) -> Result<Self> {
        let of = |name: &str, default: u64| number(metadata, &format!("commit.status-check.{name}"), default);
        Ok(Self {
            retries: u32::try_from(of("num-retries", 3)?).unwrap_or(u32::MAX).max(Self::LOOKS.retries),
            min_ms: of("min-wait-ms", Self::LOOKS.min_ms)?,
            max_ms: of("max-wait-ms", Self::LOOKS.max_ms)?,
            total_ms: of("total-timeout-ms", Self::LOOKS.total_ms)?,
        })
    }

    /// The wait before retry `number` (from 1): anything up to the doubled wait, so that writers that
    /// met once do not meet again. `None` when there is no further retry.
    pub fn before(&self, number: u32, passed_ms: i64, random: &mut Random) -> Option<Duration> {
        if number > self.retries || u64::try_from(passed_ms).is_ok_and(|passed| passed >= self.total_ms) {
            return None;
        }
        let doubled = self.min_ms.saturating_mul(1_u64.checked_shl(number - 1).unwrap_or(u64::MAX));
        Some(Duration::from_millis(random.up_to(doubled.min(self.max_ms))))
    }
}

fn number(metadata: &TableMetadata, name: &str, default: u64) -> Result<u64> {
    let set = metadata.number_property(name)?;
    Ok(set.map_or(default, |value| u64::try_from(value).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_limit_and_end_with_the_retries_or_the_time() {
        let backoff = Backoff {
            retries: 4,
            min_ms: 100,
            max_ms: 300,
            total_ms: 1_000,
        };
        // The highest number that the jitter can give.
        let mut most = Random::new(|| 100 * 301 * 201 * 101 - 1);
        let waits: Vec<_> = (1..=5).map(|n| backoff.before(n, 0, &mut most).map(|d| d.as_millis())).collect();
        assert_eq!(waits, [Some(100), Some(200), Some(300), Some(300), None]);
        assert_eq!(backoff.before(1, 1_000, &mut most), None);
        assert!(backoff.before(1, 999, &mut most).is_some());
    }
}
