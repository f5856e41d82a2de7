//! `cargo xtask bench`: measures the locks, beside bare round trips and other locks, and beside an earlier commit.

mod against;
mod checkout;
mod comparison;
mod first_build;

use self::checkout::Checkout;
use self::first_build::BUILD;
use crate::command::passes;

/// The commit with which a build is compared when none is named: the last one before the program was made smaller.
const BEFORE_SMALLER: &str = "05e74b9";

/// Measures. It fails if a lock let two holders in, never because one was slow.
pub(crate) fn run(arguments: &[&str]) -> Result<bool, String> {
    let wanted = Wanted::read(arguments)?;
    let now = Checkout::here();
    let Some(before) = wanted.before else {
        against::build(&now)?;
        return passes(&mut against::workloads(&now, arguments));
    };
    now.is_clean()?;
    let (before, head) = (checkout::commit(before)?, checkout::commit("HEAD")?);
    let mut rows = Vec::new();
    // Before what takes minutes: a workload may be unknown.
    let workloads = if wanted.measures() { against::known_to_both(&wanted.ids, &before)? } else { Vec::new() };
    if wanted.builds {
        rows.extend(first_build::compare(&before, &head)?);
    }
    if !workloads.is_empty() {
        rows.extend(against::compare(&before, &workloads)?);
    }
    print!("{}", comparison::table(&rows));
    println!("before: {before}, now: {head}");
    println!("{}", comparison::last_line(&rows));
    Ok(true)
}

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted<'a> {
    /// The commit for a comparison.
    before: Option<&'a str>,
    /// Whether the build is measured.
    builds: bool,
    /// The workloads that were named.
    ids: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    fn read(arguments: &[&'a str]) -> Result<Self, String> {
        let mut wanted = Self::default();
        let mut rest = arguments.iter().copied();
        let mut flags = Vec::new();
        while let Some(argument) = rest.next() {
            match argument {
                "--against" => wanted.before = Some(rest.next().ok_or("--against needs a commit")?),
                BUILD => wanted.builds = true,
                flag if flag.starts_with('-') => flags.push(flag),
                id => wanted.ids.push(id),
            }
        }
        if wanted.before.is_none() && wanted.builds {
            if !wanted.ids.is_empty() {
                return Err(format!("{BUILD} takes minutes, and runs without other workloads"));
            }
            wanted.before = Some(BEFORE_SMALLER);
        }
        match flags.as_slice() {
            [flag, ..] if wanted.before.is_some() => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_asked_for_by_a_commit_or_by_the_build() {
        let plain = Wanted::read(&["--quick", "U64"]).unwrap();
        assert_eq!(plain, Wanted { before: None, builds: false, ids: vec!["U64"] });
        let compared = Wanted::read(&["U64", "--against", "HEAD~1", "B"]).unwrap();
        assert_eq!(compared, Wanted { before: Some("HEAD~1"), builds: true, ids: vec!["U64"] });
        assert!(compared.measures());
        assert!(!Wanted::read(&["B"]).unwrap().measures());
        assert!(Wanted::read(&["--against", "HEAD~1"]).unwrap().measures());
        for arguments in [&["--against"][..], &["--record", "--against", "HEAD"], &["B", "U64"], &["B", "--quick"]] {
            assert!(Wanted::read(arguments).is_err(), "{arguments:?}");
        }
    }
}
