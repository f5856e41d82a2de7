//! What holds on which store under which fault, as documents tell it: from the tables by which runs are judged.

use std::fmt::Write as _;

use crate::fault::{Fault, TO_CLIENTS};
use crate::setups::{ALL, Setup};

/// What becomes of tokens where writes are lost.
const STALE_ATTACH: &str = "yes; a detached lock may be attached once more, with the token that it had";

/// What becomes of tokens where a lease that the store ended passes from guard to guard inside of its program.
const PASSED_ON: &str =
    "yes; a waiter of the holder's program may still get the lease that was ended, with its old number";

/// Prints `docs/guarantees.md` without its introduction.
pub(crate) fn print_all() -> bool {
    for setup in ALL {
        println!("## {}\n\n{}\n\n{}", setup.name, setup.in_words, table(&[setup]));
    }
    true
}

/// Prints the table of a backend's README.
pub(crate) fn print_for(backend: &str) -> Result<bool, String> {
    let setups: Vec<&Setup> = ALL.into_iter().filter(|setup| setup.backend == backend).collect();
    if setups.is_empty() {
        return Err(format!("no backend is named {backend}"));
    }
    let runs: Vec<String> = setups.iter().map(|setup| format!("`cargo xtask chaos {}`", setup.name)).collect();
    println!("Each line is a fault that {} brings about, and finds that it had an effect:\n", runs.join(", "));
    print!("{}", table(&setups));
    Ok(true)
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
    fn a_table_says_where_exclusion_does_not_hold() {
        let text = table(&[named("redis-single").unwrap(), named("redis-sentinel").unwrap()]);
        assert!(text.contains("without its data | **no**: holders learn of it at their next renewal"), "{text}");
        assert!(text.contains("(redis-sentinel) | **no**"), "{text}");
        assert!(text.contains("| a server is stopped (SIGSTOP), and goes on | yes | yes | `stop_server` |"), "{text}");
    }
}
