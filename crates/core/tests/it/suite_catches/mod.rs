//! The suite on lockers that are broken on purpose: each must fail the case that is named after the promise it breaks.
//! Without this, the suite would be a belief.

mod admin;
mod attach;
mod double;
mod downgrade;
mod exclusive;
pub(crate) mod program;
mod renewals;
mod shared;
mod signals;
mod two_requests;
mod waiters;

use std::collections::BTreeSet;
use std::sync::Arc;

use leasehold_core::conformance::{self, Fixed};
use leasehold_testkit::test;

use crate::suite_catches::double::{Broken, Double};

/// The case of the model.
const MODEL: &str = "c01_any_script_of_steps_is_answered_as_the_contract_says";

/// What is broken, and the case by hand that says so, `name(double) => case`, or the model, `name(double)`; one a line. Each is a test.
macro_rules! catches {
    ($($name:ident $double:expr $(=> $case:ident)?,)*) => {
        #[allow(non_snake_case, reason = "each has the name of its double")]
        mod is_caught {
            $(mod $name {
                use super::super::*;

                #[leasehold_testkit::test(multi_thread)]
                async fn by_its_case() -> std::result::Result<(), String> {
                    let case = [$(stringify!($case),)? crate::suite_catches::MODEL][0];
                    crate::suite_catches::is_caught(|| $double, case).await
                }
            })*
        }
    };
}
pub(crate) use catches;

/// A fault of which the moment decides may pass once on a machine that is busy with something else.
async fn is_caught(double: impl Fn() -> Double, case: &str) -> Result<(), String> {
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        if !failures(double(), Some(case)).await.is_empty() {
            return Ok(());
        }
    }
    Err(format!("it passes {case} {TRIES} times"))
}

/// A double that breaks nothing fails nothing: so what catches the others is what they break.
#[test(multi_thread)]
async fn a_sound_double_passes() -> Result<(), String> {
    for (double, cases) in SOUND {
        let mut failed = failures(double(), cases).await;
        // A lease that ran out on a machine that is busy with something else does not run out twice.
        if !failed.is_empty() {
            let again = failures(double(), cases).await;
            failed.retain(|(case, _)| again.iter().any(|(failed, _)| failed == case));
        }
        if !failed.is_empty() {
            return Err(format!("{failed:#?}"));
        }
    }
    Ok(())
}

/// How it is made, and the cases that are asked of it; `None`: all.
type Sound = (fn() -> Double, Option<&'static str>);

const SOUND: [Sound; 4] = [
    (Double::sound, None),
    (waiters::marks, Some("c15_")),
    (waiters::line, Some("c14_")),
    (waiters::line, Some(MODEL)),
];

async fn failures(double: Double, cases: Option<&str>) -> BTreeSet<(&'static str, String)> {
    conformance::failures(Arc::new(Fixed::shared(Broken::new(double))), cases).await
}
