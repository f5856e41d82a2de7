//! What holds on which store under which fault, as documents tell it: from the tables by which runs are judged.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use leasehold_chaos::checker::Rule;

use crate::fault::{Fault, TO_CLIENTS};
use crate::setups::{ALL, Setup};

/// What becomes of tokens where writes are lost.
const STALE_ATTACH: &str = "a detached lock may be attached once more, with the token that it had";

/// What becomes of tokens where a lease that the store ended passes from guard to guard inside of its program.
const PASSED_ON: &str = "a waiter of the holder's program may still get the lease that was ended, with its old number";

/// Where the documents say what each fault does.
const EVERY_FAULT: &str = "https://github.com/leasehold/leasehold/blob/main/docs/guarantees.md#every-fault";

/// Something that is not promised: why exclusion does not hold, if it does not, and which token may come a second time, although
/// tokens grow from grant to grant; under which faults on which setups.
type Limit = ((Option<&'static str>, Option<&'static str>), Vec<Place>);
type Place = (Fault, &'static Setup);

/// The lists of `docs/guarantees.md`.
pub(crate) fn of_all() -> String {
    let mut text = format!(
        "## Where it does not hold\n\nUnder these [faults](#every-fault) exclusion does not hold; tokens grow.\n\n{}\n\
         ## Every fault\n",
        not_kept(&limits(ALL.iter()), with_setups)
    );
    let all: BTreeSet<Fault> = ALL.iter().flat_map(faults).collect();
    let alike = together(all, |fault| {
        let (with, without): (Vec<&Setup>, Vec<&Setup>) = ALL.iter().partition(|setup| faults(setup).contains(fault));
        match without.len() {
            0 => "all setups".to_owned(),
            few if 2 * few < with.len() => format!("all setups but {}", names(&without)),
            _ => names(&with),
        }
    });
    for (on, faults) in alike {
        let _ = writeln!(text, "\nOn {on}:\n");
        for fault in faults {
            let _ = writeln!(text, "- `{}`: {}", fault.name(), fault.in_words());
        }
    }
    text.push_str("\n## The setups\n\n");
    for setup in &ALL {
        let _ = writeln!(text, "- `{}`: {}", setup.name, setup.in_words);
    }
    text
}

/// The lines of a backend's README: without what no backend promises.
pub(crate) fn of_backend(backend: &str) -> Result<String, String> {
    let setups: Vec<&'static Setup> = ALL.iter().filter(|setup| setup.kind.name == backend).collect();
    if setups.is_empty() {
        return Err(format!("no backend is named {backend}"));
    }
    let runs: Vec<String> = setups.iter().map(|setup| format!("`{}`", setup.name)).collect();
    let mut limits = limits(setups.iter().copied());
    limits.retain(|(_, places)| places.iter().all(|(fault, _)| *fault != Fault::ForceRelease));
    let told: fn(&[Place]) -> String = if setups.len() == 1 { by_name } else { with_setups };
    Ok(format!(
        "Tokens grow under [all faults]({EVERY_FAULT}) of `cargo xtask chaos` ({}). Exclusion holds, too, except under a \
         forced release and these:\n\n{}",
        runs.join(", "),
        not_kept(&limits, told)
    ))
}

/// What does not hold on these setups.
fn limits(setups: impl Iterator<Item = &'static Setup>) -> Vec<Limit> {
    let places = setups.flat_map(|setup| faults(setup).into_iter().map(move |fault| (fault, setup)));
    let mut limits = together(places, |(fault, setup)| {
        let tokens = match fault {
            Fault::ForceRelease => Some(PASSED_ON),
            _ => setup.breaks(Rule::StaleAttach, *fault).map(|_| STALE_ATTACH),
        };
        (setup.breaks(Rule::Overlap, *fault), tokens)
    });
    limits.retain(|(limit, _)| *limit != (None, None));
    limits
}

/// A line for each limit, with its faults as they are told.
fn not_kept(limits: &[Limit], told: fn(&[Place]) -> String) -> String {
    let lines = limits.iter().map(|((exclusion, tokens), places)| {
        let exclusion = exclusion.unwrap_or("exclusion holds");
        let tokens = tokens.map_or_else(String::new, |tokens| format!("; {tokens}"));
        format!("- {}: {exclusion}{tokens}\n", told(places))
    });
    lines.collect()
}

fn by_name(places: &[Place]) -> String {
    in_code(&faults_of(places))
}

fn with_setups(places: &[Place]) -> String {
    let alike = together(faults_of(places), |fault| {
        let on = places.iter().filter(|(one, _)| one == fault).map(|(_, setup)| *setup);
        names(&on.collect::<Vec<_>>())
    });
    let told = alike.into_iter().map(|(on, faults)| format!("{} on {on}", in_code(&faults)));
    told.collect::<Vec<String>>().join("; ")
}

fn faults_of(places: &[Place]) -> BTreeSet<Fault> {
    places.iter().map(|(fault, _)| *fault).collect()
}

fn in_code<'f>(faults: impl IntoIterator<Item = &'f Fault>) -> String {
    faults.into_iter().map(|fault| format!("`{}`", fault.name())).collect::<Vec<String>>().join(", ")
}

/// The things of which the same is to be said, beside that, in the order of the first.
fn together<T, S: PartialEq>(things: impl IntoIterator<Item = T>, said: impl Fn(&T) -> S) -> Vec<(S, Vec<T>)> {
    let mut all: Vec<(S, Vec<T>)> = Vec::new();
    for thing in things {
        let of_this = said(&thing);
        match all.iter_mut().find(|(said, _)| *said == of_this) {
            Some((_, alike)) => alike.push(thing),
            None => all.push((of_this, vec![thing])),
        }
    }
    all
}

fn names(setups: &[&Setup]) -> String {
    setups.iter().map(|setup| setup.name).collect::<Vec<&str>>().join(", ")
}

fn faults(setup: &Setup) -> BTreeSet<Fault> {
    TO_CLIENTS.iter().copied().chain(setup.faults()).collect()
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
                assert!(is_tested, "{}: {exemption:?}", setup.name);
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
