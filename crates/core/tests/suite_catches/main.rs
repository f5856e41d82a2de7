//! The suite on lockers that are broken on purpose: each must fail the case that is named after the promise it breaks.
//! Without this, the suite would be a belief.

mod admin;
mod attach;
mod composed;
mod double;
mod downgrade;
mod engine;
mod exclusive;
mod program;
mod renewals;
mod shared;
mod two_requests;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use leasehold_core::conformance::{Expected, report};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::double::{Broken, Double};

/// What is broken, and the case that says so.
struct Catch {
    name: &'static str,
    double: fn() -> Box<dyn Double>,
    caught_by: &'static str,
}

/// `name(double) => case`, one a line.
macro_rules! catches {
    ($($name:ident $double:expr => $case:ident,)*) => {
        &[$(crate::Catch {
            name: stringify!($name),
            double: || Box::new($double),
            caught_by: stringify!($case),
        }),*]
    };
}
pub(crate) use catches;

const CATCHES: [&[Catch]; 9] = [
    attach::CATCHES,
    downgrade::CATCHES,
    exclusive::CATCHES,
    renewals::CATCHES,
    admin::CATCHES,
    shared::CATCHES,
    engine::CATCHES,
    composed::CATCHES,
    two_requests::CATCHES,
];

/// A fault of which the moment decides may pass once on a machine that is busy with something else.
async fn is_caught(catch: &Catch) -> Result<(), Failed> {
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        if !report(Arc::new(Broken::new((catch.double)())), Some(catch.caught_by)).await.failed.is_empty() {
            return Ok(());
        }
    }
    Err(format!("{} passes {} {TRIES} times", catch.name, catch.caught_by).into())
}

/// A double that breaks nothing fails nothing, but for what the engine is known to do: so what catches the others is
/// what they break.
async fn a_sound_double_passes() -> Result<(), Failed> {
    let known = |case: &str| Expected::of("memory", case).is_some();
    let mut failed: BTreeSet<_> = failures().await.into_iter().filter(|(case, _)| !known(case)).collect();
    // A lease that ran out on a machine that is busy with something else does not run out twice.
    if !failed.is_empty() {
        let again = failures().await;
        failed.retain(|(case, _)| again.iter().any(|(failed, _)| failed == case));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("{failed:#?}").into()) }
}

async fn failures() -> Vec<(&'static str, String)> {
    report(Arc::new(Broken::new(Box::new(double::Sound))), None).await.failed
}

fn main() -> ExitCode {
    if let Some(code) = program::as_suite() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // They wait for leases most of the time.
    arguments.test_threads.get_or_insert(16);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"));
    let mut trials: Vec<_> = CATCHES
        .into_iter()
        .flatten()
        .map(|catch| {
            let runtime = Arc::clone(&runtime);
            let name = format!("{}::is_caught_by::{}", catch.name, catch.caught_by);
            Trial::test(name, move || runtime.block_on(is_caught(catch)))
        })
        .collect();
    trials.push(Trial::test("a_sound_double_passes", move || runtime.block_on(a_sound_double_passes())));
    trials.extend(program::CHECKS.iter().map(|(name, check)| Trial::test(*name, check)));
    libtest_mimic::run(&arguments, trials).exit_code()
}
