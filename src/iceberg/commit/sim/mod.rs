//! Histories of a table under faults, made from a seed: several servers commit through a store and a
//! catalog in memory that lose answers, fail, read stale and crash (reliability-security.md 6, T-4).
//!
//! One seed gives one history. `SANDUR_SIM_SEED` runs one, `SANDUR_SIM_SEEDS` says how many.

mod chance;
mod check;
mod history;
mod world;

use super::Check;
pub(super) use chance::Chance;
use history::{Ended, History};

/// Seeds of a test run.
const SEEDS: u64 = 20_000;

/// How often each of the rare things happened over all histories.
#[derive(Debug, Default)]
struct Seen(std::collections::BTreeMap<&'static str, u64>);

impl Seen {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("SANDUR_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SANDUR_SIM_SEEDS").unwrap_or(SEEDS),
    }
}

/// One history, all of whose commits leave out the check that is `skipped`.
fn run(seed: u64, skipped: Option<Check>) -> Result<Ended, String> {
    let told = std::panic::catch_unwind(|| History::new(Chance::new(seed), skipped).run());
    told.map_err(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default()
    })
}

#[test]
fn no_commit_is_lost_doubled_or_undecided_whatever_fails() {
    let seeds = seeds();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let parts: Vec<_> = (0..threads)
        .map(|part| {
            let mine = seeds
                .clone()
                .skip(usize::try_from(part).unwrap())
                .step_by(usize::try_from(threads).unwrap());
            std::thread::spawn(move || {
                let mut seen = Seen::default();
                for seed in mine {
                    match run(seed, None) {
                        Ok(ended) => ended.seen.0.iter().for_each(|(what, n)| *seen.0.entry(what).or_default() += n),
                        Err(why) => return Err(format!("seed {seed}: {why}; run it alone with SANDUR_SIM_SEED={seed}")),
                    }
                }
                Ok(seen)
            })
        })
        .collect();
    let mut seen = Seen::default();
    for part in parts {
        match part.join().unwrap() {
            Ok(part) => part.0.iter().for_each(|(what, n)| *seen.0.entry(what).or_default() += n),
            Err(why) => panic!("{why}"),
        }
    }
    println!("{} histories: {:?}", seeds.clone().count(), seen.0);
    if seeds.count() as u64 >= SEEDS {
        for what in history::RARE {
            assert!(seen.0.get(what).is_some_and(|n| *n > 0), "it never happened: {what}");
        }
    }
}

#[test]
fn what_guards_the_outcome_is_missed_by_some_history() {
    for check in [Check::CommitId, Check::Unknown, Check::Journal] {
        let noticed = (0..SEEDS).find_map(|seed| run(seed, Some(check)).err().map(|why| (seed, why)));
        let (seed, why) = noticed.unwrap_or_else(|| panic!("nothing notices that {check:?} is missing"));
        println!("{check:?} by seed {seed}: {why}");
    }
}
