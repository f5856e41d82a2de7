//! What a run of the suite says to the author of a backend: the suite as a program, with arguments, and the words of its failures.

use std::path::Path;
use std::process::{Command, ExitCode};

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, shared};
use leasehold_core::{Capabilities, Capability, Error, ErrorKind, Result};
use leasehold_testkit::test;
use libtest_mimic::Failed;

use crate::suite_catches::double::{
    Broken, Client, Double, claims, downgrades, inspects, releases, renews, takes_over,
};
use crate::suite_catches::failures;

/// With this in its environment, the program is the suite on a store that is not broken.
const AS_SUITE: &str = "LEASEHOLD_SUITE_CATCHES_AS_SUITE";
const GONE: &str = "without its own file";

type Verdict = std::result::Result<(), Failed>;
/// Runs the suite, if this process was started for that.
pub(crate) fn as_suite() -> Option<ExitCode> {
    let how = std::env::var(AS_SUITE).ok()?;
    Some(shared(OwnSuite { store: Broken::new(Double::sound()), gone: how == GONE }))
}

struct OwnSuite {
    store: Broken,
    gone: bool,
}

#[async_trait]
impl Fixture for OwnSuite {
    type Backend = Broken;

    fn capabilities(&self) -> Capabilities {
        let own = Fixture::capabilities(&self.store);
        if self.gone { own.with(Capability::CrossProcess) } else { own }
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let gone = || std::fs::remove_file(std::env::current_exe()?);
        if self.gone { gone().map_err(|error| error.to_string()) } else { Ok(()) }
    }

    async fn connect(&self, namespace: &str) -> Result<Broken> {
        self.store.connect(namespace).await
    }
}

/// What the suite prints with these arguments.
fn run(program: &Path, how: &str, arguments: &[&str]) -> std::io::Result<String> {
    let output = Command::new(program).env(AS_SUITE, how).args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_run_with_several_filters_has_the_cases_of_each() -> Verdict {
    let printed = run(&std::env::current_exe()?, "", &["c22_bad_keys", "--test-threads", "2", "c10_try_answers_none"])?;
    let ran: Vec<_> = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).collect();
    let each = ["c22_bad_keys_are_refused", "c10_try_answers_none_while_held"];
    let has_each = each.iter().all(|case| ran.iter().any(|line| line.contains(case)));
    let has_others = ran.iter().any(|line| !each.iter().any(|case| line.contains(case)));
    if has_each && !has_others { Ok(()) } else { Err(printed.into()) }
}

#[test]
fn a_run_tells_only_of_the_ignored_cases_that_it_was_asked_for() -> Verdict {
    let program = std::env::current_exe()?;
    for (filter, tells) in [("c22_bad_keys", false), ("c27_a_reentry", true)] {
        let printed = run(&program, "", &[filter])?;
        let told: Vec<_> = printed.lines().filter(|line| line.contains(" is ignored: ")).collect();
        if told.is_empty() == tells || !told.iter().all(|line| line.contains(filter)) {
            return Err(printed.into());
        }
    }
    Ok(())
}

#[test]
fn a_helper_that_cannot_be_started_is_named() -> Verdict {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("a-copy-of-the-suite-{}", std::process::id()));
    std::fs::copy(std::env::current_exe()?, &copy)?;
    let printed = run(&copy, GONE, &["c03_a_killed"])?;
    let named = printed.lines().any(|line| line.contains("a-copy-of-the-suite") && line.contains("os error"));
    if named { Ok(()) } else { Err(printed.into()) }
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
        ("take_over", takes_over(refuses), "c28_the_previous_owner_can_neither_renew_nor_release"),
        ("downgrade", downgrades(refuses), "c29_the_reader_has_texts_of_its_own"),
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
