//! What holds on which store under which fault, as documents tell it: from the tables by which runs are judged.

use std::fmt::Write as _;

use leasehold_chaos::checker::Rule;

use crate::fault::{Fault, TO_CLIENTS};
use crate::setups::{ALL, Setup};

/// What becomes of tokens under most faults.
const GROW: &str = "yes";

/// What becomes of tokens where writes are lost.
const STALE_ATTACH: &str = "yes; a detached lock may be attached once more, with the token that it had";

/// What becomes of tokens where a lease that the store ended passes from guard to guard inside of its program.
const PASSED_ON: &str =
    "yes; a waiter of the holder's program may still get the lease that was ended, with its old number";

/// Where the documents say what each fault does.
const EVERY_FAULT: &str = "https://github.com/leasehold/leasehold/blob/main/docs/guarantees.md#every-fault";

/// Something that is not promised.
struct Limit {
    /// Why exclusion does not hold, if it does not.
    exclusion: Option<&'static str>,
    /// Whether tokens grow.
    tokens: &'static str,
    /// Under which fault that is so, and on which setup.
    places: Vec<(Fault, &'static Setup)>,
}

/// The tables of `docs/guarantees.md`.
pub(crate) fn of_all() -> String {
    let mut text =
        format!("## Where it does not hold\n\n{}\n## Every fault\n\n", not_kept(&limits(ALL.iter()), Limit::in_words));
    text.push_str("| fault | what happens | exclusion holds on | and not on |\n|---|---|---|---|\n");
    let mut all: Vec<Fault> = ALL.iter().flat_map(faults).collect();
    all.sort();
    all.dedup();
    for fault in all {
        let with = ALL.iter().filter(|setup| faults(setup).contains(&fault));
        let (holds, not): (Vec<&Setup>, Vec<&Setup>) =
            with.partition(|setup| setup.breaks(Rule::Overlap, fault).is_none());
        let holds = if holds.len() == ALL.len() { "all".to_owned() } else { names(&holds) };
        let _ = writeln!(text, "| `{}` | {} | {holds} | {} |", fault.name(), fault.in_words(), names(&not));
    }
    text.push_str("\n## The setups\n\n| setup | what it is |\n|---|---|\n");
    for setup in &ALL {
        let _ = writeln!(text, "| `{}` | {} |", setup.name, setup.in_words);
    }
    text
}

/// The table of a backend's README: without what no backend promises.
pub(crate) fn of_backend(backend: &str) -> Result<String, String> {
    let setups: Vec<&'static Setup> = ALL.iter().filter(|setup| setup.kind.name == backend).collect();
    if setups.is_empty() {
        return Err(format!("no backend is named {backend}"));
    }
    let runs: Vec<String> = setups.iter().map(|setup| format!("`{}`", setup.name)).collect();
    let mut limits = limits(setups.iter().copied());
    limits.retain(|limit| limit.places.iter().all(|(fault, _)| *fault != Fault::ForceRelease));
    Ok(format!(
        "Exclusion holds and tokens grow under [all faults]({EVERY_FAULT}) of `cargo xtask chaos` ({}), but for a forced release and \
         these:\n\n{}",
        runs.join(", "),
        not_kept(&limits, Limit::by_name)
    ))
}

/// What does not hold on these setups.
fn limits(setups: impl Iterator<Item = &'static Setup>) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (setup, fault) in setups.flat_map(|setup| faults(setup).into_iter().map(move |fault| (setup, fault))) {
        let exclusion = setup.breaks(Rule::Overlap, fault);
        let tokens = match fault {
            Fault::ForceRelease => PASSED_ON,
            _ if setup.breaks(Rule::StaleAttach, fault).is_none() => GROW,
            _ => STALE_ATTACH,
        };
        if exclusion.is_none() && tokens == GROW {
            continue;
        }
        match limits.iter_mut().find(|limit| limit.exclusion == exclusion && limit.tokens == tokens) {
            Some(limit) => limit.places.push((fault, setup)),
            None => limits.push(Limit { exclusion, tokens, places: vec![(fault, setup)] }),
        }
    }
    limits
}

/// A line for each limit, with its faults as they are told.
fn not_kept(limits: &[Limit], told: fn(&Limit) -> String) -> String {
    let mut text = String::from("| what happens | does exclusion hold? | do tokens grow? |\n|---|---|---|\n");
    for limit in limits {
        let holds = limit.exclusion.map_or_else(|| "yes".to_owned(), |why| format!("**no**: {why}"));
        let _ = writeln!(text, "| {} | {holds} | {} |", told(limit), limit.tokens);
    }
    text
}

impl Limit {
    /// The faults, each told in this way and with its setups.
    fn told(&self, told: impl Fn(Fault, &str) -> String) -> String {
        let mut faults: Vec<Fault> = self.places.iter().map(|(fault, _)| *fault).collect();
        faults.sort();
        faults.dedup();
        let of = |fault| self.places.iter().filter(move |(one, _)| *one == fault).map(|(_, setup)| *setup);
        let told = faults.into_iter().map(|fault| {
            let on = format!("`{}` on {}", fault.name(), names(&of(fault).collect::<Vec<_>>()));
            told(fault, &on)
        });
        told.collect::<Vec<String>>().join("; ")
    }

    fn in_words(&self) -> String {
        self.told(|fault, on| format!("{} ({on})", fault.in_words()))
    }

    fn by_name(&self) -> String {
        self.told(|_, on| on.to_owned())
    }
}

fn names(setups: &[&Setup]) -> String {
    setups.iter().map(|setup| setup.name).collect::<Vec<&str>>().join(", ")
}

fn faults(setup: &Setup) -> Vec<Fault> {
    let mut all = [TO_CLIENTS, &setup.faults()].concat();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_setup_exempts_what_it_is_tested_with_and_nothing_else() {
        for setup in &ALL {
            for exemption in setup.exempt {
                let is_tested = faults(setup).iter().any(|fault| fault.name() == exemption.fault);
                assert!(is_tested, "{setup:?}: {exemption:?}");
            }
        }
    }

    #[test]
    fn no_fault_excuses_a_token() {
        for rule in [Rule::DuplicateToken, Rule::BackwardToken, Rule::StaleWrite, Rule::LostUpdate] {
            assert!(ALL.iter().all(|setup| setup.allowances().iter().all(|one| !one.rules.contains(&rule))), "{rule}");
        }
    }

    #[test]
    fn the_documents_say_what_runs_are_judged_by() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let says = |document: &str, part: &str| {
            let text = fs::read_to_string(root.join(document)).unwrap();
            let part = format!("<!-- faults:begin -->\n{}\n<!-- faults:end -->", part.trim_end());
            assert!(text.contains(&part), "{document} says something else; `cargo xtask matrix` writes it");
        };
        says("docs/guarantees.md", &of_all());
        for setup in &ALL {
            says(&format!("crates/{}/README.md", setup.kind.name), &of_backend(setup.kind.name).unwrap());
        }
    }
}
