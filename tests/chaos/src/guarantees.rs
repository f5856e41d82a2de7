//! What holds on which store under which fault, as documents tell it: from the tables by which runs are judged.

use std::fmt::Write as _;

use crate::fault::{Fault, TO_CLIENTS};
use crate::setups::{ALL, Setup};

/// What becomes of tokens where writes are lost.
const STALE_ATTACH: &str = "yes; a detached lock may be attached once more, with the token that it had";

/// What becomes of tokens where a lease that the store ended passes from guard to guard inside of its program.
const PASSED_ON: &str =
    "yes; a waiter of the holder's program may still get the lease that was ended, with its old number";

/// `docs/guarantees.md` without its introduction.
pub(crate) fn of_all() -> String {
    let part = |setup: &Setup| format!("## {}\n\n{}\n\n{}\n", setup.name, setup.in_words, table(&[setup]));
    ALL.into_iter().map(part).collect()
}

/// The table of a backend's README.
pub(crate) fn of_backend(backend: &str) -> Result<String, String> {
    let setups: Vec<&Setup> = ALL.into_iter().filter(|setup| setup.backend == backend).collect();
    if setups.is_empty() {
        return Err(format!("no backend is named {backend}"));
    }
    let runs: Vec<String> = setups.iter().map(|setup| format!("`cargo xtask chaos {}`", setup.name)).collect();
    let runs = runs.join(", ");
    Ok(format!("Each line is a fault that {runs} brings about, and finds that it had an effect:\n\n{}", table(&setups)))
}

/// A line for each fault. Where the servers are arranged in several ways, a line says in which.
fn table(setups: &[&Setup]) -> String {
    let mut text = String::from(
        "| what happens | does exclusion hold? | do tokens grow? | shown by the fault |\n|---|---|---|---|\n",
    );
    let lines = setups.iter().flat_map(|setup| faults(setup).into_iter().map(move |fault| (*setup, fault)));
    let mut told: Vec<(Fault, Result<(), &str>)> = Vec::new();
    for (setup, fault) in lines {
        let holds = setup.exclusion(fault);
        if told.contains(&(fault, holds)) {
            continue;
        }
        told.push((fault, holds));
        let place = if setup.name == setup.backend { String::new() } else { format!(" ({})", setup.name) };
        let holds = holds.map_or_else(|why| format!("**no**: {why}"), |()| "yes".to_owned());
        let grow = match fault {
            Fault::ForceRelease => PASSED_ON,
            _ if setup.attaches_once(fault) => "yes",
            _ => STALE_ATTACH,
        };
        let _ = writeln!(text, "| {}{place} | {holds} | {grow} | `{}` |", fault.in_words(), fault.name());
    }
    text
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

    use leasehold_chaos::checker::Rule;

    use super::*;
    use crate::setups::named;

    #[test]
    fn a_setup_exempts_what_it_is_tested_with_and_nothing_else() {
        for setup in ALL {
            for exemption in setup.exempt {
                assert!(faults(setup).contains(&exemption.fault), "{setup:?}: {exemption:?}");
            }
        }
    }

    #[test]
    fn no_fault_excuses_a_token() {
        for rule in [Rule::DuplicateToken, Rule::BackwardToken, Rule::StaleWrite, Rule::LostUpdate] {
            assert!(ALL.iter().all(|setup| setup.exemptions().all(|one| !one.rules.contains(&rule))), "{rule}");
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
        for setup in ALL {
            says(&format!("crates/{}/README.md", setup.backend), &of_backend(setup.backend).unwrap());
        }
    }

    #[test]
    fn a_table_says_where_exclusion_does_not_hold() {
        let text = table(&[named("redis-single").unwrap(), named("redis-sentinel").unwrap()]);
        assert!(text.contains("without its data | **no**: holders learn of it at their next renewal"), "{text}");
        assert!(text.contains("(redis-sentinel) | **no**"), "{text}");
        assert!(text.contains("| a server is stopped (SIGSTOP), and goes on | yes | yes | `stop_server` |"), "{text}");
    }
}
