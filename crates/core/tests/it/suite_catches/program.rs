//! What a run of the suite says to the author of a backend: the suite as a program, with arguments, and the words of its failures.

use std::process::{Command, ExitCode};

use leasehold_core::conformance::shared;
use leasehold_core::{Error, ErrorKind, Result};
use leasehold_testkit::test;
use libtest_mimic::Failed;

use crate::suite_catches::double::{Broken, Client, Double, claims, inspects, releases, renews};
use crate::suite_catches::failures;

/// With this in its environment, the program is the suite on a store that is not broken.
const AS_SUITE: &str = "LEASEHOLD_SUITE_CATCHES_AS_SUITE";

type Verdict = std::result::Result<(), Failed>;

/// Runs the suite, if this process was started for that.
pub(crate) fn as_suite() -> Option<ExitCode> {
    std::env::var_os(AS_SUITE)?;
    Some(shared(Broken::new(Double::sound())))
}

#[test]
fn a_run_tells_only_of_the_ignored_cases_that_it_was_asked_for() -> Verdict {
    for (filter, tells) in [("c22_bad_keys", false), ("c27_a_session", true)] {
        let output = Command::new(std::env::current_exe()?).env(AS_SUITE, "").arg(filter).output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let told: Vec<_> = printed.lines().filter(|line| line.contains(" is ignored: ")).collect();
        if told.is_empty() == tells || !told.iter().all(|line| line.contains(filter)) {
            return Err(printed.into());
        }
    }
    Ok(())
}

#[test]
fn a_step_that_fails_is_named_with_its_key() -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let refuses_renewals =
        async |_: Client, renewals: Vec<_>| renewals.into_iter().map(|_| refused()).collect::<Vec<_>>();
    for (step, double, case) in [
        ("try_acquire", claims(refuses), "c02_a_claim_is_idempotent_for_its_owner"),
        ("renew", renews(refuses_renewals), "c02_a_stranger_can_neither_renew_nor_release"),
        ("release", releases(refuses), "c02_a_claim_is_idempotent_for_its_owner"),
        ("inspect", inspects(refuses), "c22_namespaces_that_begin_alike_do_not_meet"),
    ] {
        let failed = runtime.block_on(failures(double, Some(case)));
        let named = |told: &str| {
            told.starts_with(&format!("{step} \""))
                && told.ends_with("on memory: store unavailable: connection refused")
        };
        if failed.len() != 1 || !failed.iter().all(|(_, told)| named(told)) {
            return Err(format!("{step}: {failed:?}").into());
        }
    }
    Ok(())
}

fn refused<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unavailable, "ask").caused_by("connection refused"))
}

/// The store cannot be asked for a step.
async fn refuses<Asked, Answer>(_: Client, _: Asked) -> Result<Answer> {
    refused()
}
