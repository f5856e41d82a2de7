//! `cargo xtask bench`: measures the locks, beside bare round trips and other locks, and beside an earlier commit.

mod against;
mod checkout;
mod comparison;
mod first_build;

use std::process::ExitCode;

use crate::workspace::{cargo, root, target};

use checkout::Commit;
use first_build::BUILD;

/// The commit with which a build is compared when none is named: the last one before the program was made smaller.
const BEFORE_SMALLER: &str = "05e74b9";

/// Measures. It fails if a lock let two holders in, never because one was slow.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let wanted = Wanted::read(arguments)?;
    if let Wanted { against: None, builds: false, .. } = wanted {
        return measure(arguments);
    }
    let before = Commit::find(wanted.against.unwrap_or(BEFORE_SMALLER))?;
    let now = Commit::clean(&root())?;
    let workloads = if wanted.measures() { against::known_to_both(&wanted.ids, &before)? } else { Vec::new() };
    let mut rows = Vec::new();
    if wanted.builds {
        rows.extend(first_build::compare(&before, &now)?);
    }
    if !workloads.is_empty() {
        rows.extend(against::compare(&before, &workloads)?);
    }
    comparison::report(&rows, &before, &now, &target().join("bench/against.json"))?;
    Ok(ExitCode::SUCCESS)
}

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    against: Option<&'a str>,
    /// Whether the build is measured.
    builds: bool,
    /// The workloads that were named.
    ids: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    fn read(arguments: &[&'a str]) -> Result<Self, String> {
        let mut wanted = Self { against: None, builds: false, ids: Vec::new() };
        let mut rest = arguments.iter().copied();
        let mut flags = Vec::new();
        while let Some(argument) = rest.next() {
            match argument {
                "--against" => wanted.against = Some(rest.next().ok_or("--against needs a commit")?),
                BUILD => wanted.builds = true,
                flag if flag.starts_with('-') => flags.push(flag),
                id => wanted.ids.push(id),
            }
        }
        if wanted.against.is_none() && wanted.builds && !wanted.ids.is_empty() {
            return Err(format!("{BUILD} takes minutes, and runs without other workloads"));
        }
        match flags.as_slice() {
            [flag, ..] if wanted.against.is_some() || wanted.builds => {
                Err(format!("{flag} does not go together with a comparison, whose turns are always short"))
            }
            _ => Ok(wanted),
        }
    }

    /// Whether workloads are measured beside the build, or instead of it.
    fn measures(&self) -> bool {
        !self.ids.is_empty() || !self.builds
    }
}

/// Builds and runs the program that measures, with these arguments.
fn measure(arguments: &[&str]) -> Result<ExitCode, String> {
    // The program whose start is timed beside flock(1).
    let built =
        cargo().args(["build", "--profile", "bench", "--package", "leasehold-cli", "--bin", "leasehold"]).status();
    if !built.map_err(|failure| failure.to_string())?.success() {
        return Err("the leasehold program does not build".into());
    }
    let status = cargo()
        .args(["bench", "--package", "leasehold-benches", "--bench", "workloads", "--"])
        .args(arguments)
        .env("LEASEHOLD_BENCH_PROGRAM", target().join("release/leasehold"))
        .status()
        .map_err(|failure| failure.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_asked_for_by_a_commit_or_by_the_build() {
        let plain = Wanted::read(&["--quick", "U64"]).unwrap();
        assert_eq!(plain, Wanted { against: None, builds: false, ids: vec!["U64"] });
        let compared = Wanted::read(&["U64", "--against", "HEAD~1", "B"]).unwrap();
        assert_eq!(compared, Wanted { against: Some("HEAD~1"), builds: true, ids: vec!["U64"] });
        assert!(compared.measures());
        assert!(!Wanted::read(&["B"]).unwrap().measures());
        assert!(Wanted::read(&["--against", "HEAD~1"]).unwrap().measures());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for arguments in [&["--against"][..], &["--record", "--against", "HEAD"], &["B", "U64"], &["B", "--quick"]] {
            assert!(Wanted::read(arguments).is_err(), "{arguments:?}");
        }
    }
}
