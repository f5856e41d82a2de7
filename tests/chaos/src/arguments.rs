//! What the program is asked to do.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::setups::{self, Setup};

/// How long each backend is tested, unless something else is said.
const QUICK: Duration = Duration::from_secs(60);
const USUAL: Duration = Duration::from_secs(300);

/// A shorter run shows nothing, and nobody waits for a longer one.
const RUNS: RangeInclusive<u64> = 5..=DAY;
const SOAKS: RangeInclusive<u64> = 1..=7 * DAY;
const DAY: u64 = 24 * 3600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) setups: Vec<&'static Setup>,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    /// For how long each backend is looked at, at most, instead of faults.
    pub(crate) soak: Option<Duration>,
    /// Where the report and the folders of the runs go.
    pub(crate) output: PathBuf,
}

pub(crate) const USAGE: &str = "\
usage: leasehold-chaos [--quick | --seconds N | --soak DURATION] [--seed N] [--output FOLDER] [BACKEND...]";

/// Reads the words of the command line.
pub(crate) fn parse(words: &[String]) -> Result<Plan, String> {
    let seed = rand::random::<u32>();
    let mut plan = Plan {
        setups: Vec::new(),
        duration: USUAL,
        seed: seed.into(),
        soak: None,
        output: PathBuf::from("target/chaos"),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--quick" => plan.duration = QUICK,
            "--seconds" => plan.duration = within(&RUNS, number(value()?)?)?,
            "--seed" => plan.seed = number(value()?)?,
            "--soak" => plan.soak = Some(duration(value()?)?),
            "--output" => plan.output = PathBuf::from(value()?),
            name if !name.starts_with('-') => plan.setups.push(setups::named(name)?),
            _ => return Err(format!("no such option: {word}\n{USAGE}")),
        }
    }
    if plan.setups.is_empty() {
        plan.setups = setups::ALL.iter().collect();
    }
    Ok(plan)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is not a number\n{USAGE}"))
}

fn within(limits: &RangeInclusive<u64>, seconds: u64) -> Result<Duration, String> {
    let (least, most) = (limits.start(), limits.end());
    let wrong = || format!("it takes from {least} to {most} seconds\n{USAGE}");
    limits.contains(&seconds).then(|| Duration::from_secs(seconds)).ok_or_else(wrong)
}

/// Such as `90s`, `30m` or `2h`.
fn duration(word: &str) -> Result<Duration, String> {
    let (count, seconds) = match word.split_at_checked(word.len().saturating_sub(1)) {
        Some((count, "s")) => (count, 1),
        Some((count, "m")) => (count, 60),
        Some((count, "h")) => (count, 3600),
        _ => return Err(format!("{word} is no duration, such as 30m\n{USAGE}")),
    };
    within(&SOAKS, number(count)?.saturating_mul(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Plan, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn backends_are_tested_in_the_order_of_their_names_and_all_if_none_is_named() {
        let plan = parsed("--quick --seed 7 redis-sentinel file").unwrap();
        assert_eq!((plan.duration, plan.seed), (QUICK, 7));
        assert_eq!(plan.setups, [setups::named("redis-sentinel").unwrap(), setups::named("file").unwrap()]);
        assert_eq!(parsed("").unwrap().setups.len(), setups::ALL.len());
    }

    #[test]
    fn a_run_and_a_soak_last_for_as_long_as_is_said_and_nothing_else_is_understood() {
        for (line, seconds) in [("--soak 90s", 90), ("--soak 30m file", 1800), ("--soak 2h", 7200)] {
            assert_eq!(parsed(line).map(|plan| plan.soak), Ok(Some(Duration::from_secs(seconds))), "{line}");
        }
        for seconds in [5, 86_400] {
            let plan = parsed(&format!("--seconds {seconds}"));
            assert_eq!(plan.map(|plan| plan.duration), Ok(Duration::from_secs(seconds)));
        }
        let soaks = ["--soak", "--soak 30", "--soak m", "--soak 3d", "--soak é", "--soak 0s", "--soak 8000h"];
        for line in ["oracle", "--fast", "--seed", "--seed x", "--seconds -1"].into_iter().chain(soaks) {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(parsed("--soak 99999999999999999h").is_err(), "more than there are seconds");
        for seconds in ["0", "4", "86401", "18446744073709551615"] {
            let told = parsed(&format!("--seconds {seconds}")).unwrap_err();
            assert!(told.contains("from 5 to 86400 seconds"), "{told}");
        }
    }
}
