//! What the program is asked to do.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};

use crate::setups::{self, Setup};

/// A shorter run shows nothing, and nobody waits for a longer one.
const SHORTEST: u64 = 5;
const LONGEST: u64 = DAY;
const LONGEST_SOAK: u64 = 7 * DAY;
const DAY: u64 = 24 * 3600;

/// Real clients on real servers under faults, and a verdict on what the clients saw.
#[derive(Parser)]
#[command(name = "chaos")]
pub(crate) struct Plan {
    /// A minute for each setup, and not five
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
    /// So long for each setup
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = value_parser!(u64).range(SHORTEST..=LONGEST))]
    seconds: u64,
    /// The faults of an earlier run again
    #[arg(long, value_name = "N", default_value_t = rand::random::<u32>().into())]
    pub(crate) seed: u64,
    /// What grows on each setup within so long at most, instead of faults: such as 90s, 30m or 2h
    #[arg(long, value_name = "DURATION", value_parser = soak)]
    pub(crate) soak: Option<Duration>,
    /// Where the report and the folders of the runs go
    #[arg(long, value_name = "FOLDER", default_value = "target/chaos")]
    pub(crate) output: PathBuf,
    /// Only these, in this order
    #[arg(value_name = "SETUP", value_parser = setups::named)]
    named: Vec<&'static Setup>,
}

impl Plan {
    /// How long each setup is tested.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(if self.quick { 60 } else { self.seconds })
    }

    /// The setups that are tested, in this order: all if none is named.
    pub(crate) fn setups(&self) -> Vec<&'static Setup> {
        if self.named.is_empty() { setups::ALL.iter().collect() } else { self.named.clone() }
    }
}

fn soak(word: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let in_unit = units.into_iter().find_map(|(unit, seconds)| Some((word.strip_suffix(unit)?, seconds)));
    let (count, seconds) = in_unit.ok_or("this is no duration, such as 30m")?;
    let seconds = count.parse::<u64>().map_err(|error| error.to_string())?.saturating_mul(seconds);
    let wrong = || format!("it takes from 1 to {LONGEST_SOAK} seconds");
    (1..=LONGEST_SOAK).contains(&seconds).then(|| Duration::from_secs(seconds)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Plan, String> {
        Plan::try_parse_from(["chaos"].into_iter().chain(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn backends_are_tested_in_the_order_of_their_names_and_all_if_none_is_named() {
        let plan = parsed("--quick --seed 7 redis-sentinel file").unwrap();
        assert_eq!((plan.duration().as_secs(), plan.seed), (60, 7));
        assert_eq!(plan.setups().iter().map(|setup| setup.name).collect::<Vec<_>>(), ["redis-sentinel", "file"]);
        assert_eq!(parsed("").unwrap().setups().len(), setups::ALL.len());
    }

    #[test]
    fn a_run_and_a_soak_last_for_as_long_as_is_said_and_nothing_else_is_understood() {
        for (line, seconds) in [("--soak 90s", 90), ("--soak 30m file", 1800), ("--soak 2h", 7200)] {
            assert_eq!(parsed(line).unwrap().soak, Some(Duration::from_secs(seconds)), "{line}");
        }
        let soaks = ["--soak 30", "--soak 3d", "--soak é", "--soak 0s", "--soak 8000h", "--soak 99999999999999999h"];
        for line in ["oracle", "--seconds 4", "--seconds 86401"].into_iter().chain(soaks) {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
