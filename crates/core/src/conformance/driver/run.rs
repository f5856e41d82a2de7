//! The cases as tests of a test program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Builder;

use super::cases::{CASES, Case};
use super::rig::{Rig, Unable};
use super::stage::{Stage, Verdict};
use crate::conformance::arguments::Asked;
use crate::conformance::expected::Expected;
use crate::conformance::parallelism::Turns;
use crate::conformance::verdict::panic_text;

/// The limit of a case. Only one that hangs takes so long.
const CASE_LIMIT: Duration = Duration::from_secs(300);

/// How many cases run at a time: each has a server, and waits for it more than for a processor.
static TURNS: Turns = Turns::new(5);

/// The cases that are asked for.
pub(in crate::conformance) fn trials(rig: &Arc<dyn Rig>, asked: &Asked) -> Vec<Trial> {
    let trials = CASES.iter().map(|case| {
        let rig = Arc::clone(rig);
        Trial::ignorable_test(format!("{}::driver::{}", rig.kind().name, case.name), move || {
            let _turn = TURNS.take();
            let verdict = catch_unwind(AssertUnwindSafe(|| verdict(case, Arc::clone(&rig))))
                .unwrap_or_else(|panic| Err(Unable::Failed(panic_text(&*panic))));
            completion(verdict, Expected::of(rig.kind().name, case.name))
        })
    });
    trials.filter(|trial| asked.includes(trial)).collect()
}

fn verdict(case: &Case, rig: Arc<dyn Rig>) -> Verdict {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let verdict = runtime.block_on(async {
        let played = async { (case.run)(Stage::set(rig, case.room).await?).await };
        let late = |_| Err(Unable::Failed(format!("still running after {CASE_LIMIT:?}")));
        tokio::time::timeout(CASE_LIMIT, played).await.unwrap_or_else(late)
    });
    // A case may have left something that blocks, such as a connection to a server that is stopped.
    runtime.shutdown_background();
    verdict
}

fn completion(verdict: Verdict, expected: Option<&Expected>) -> Result<Completion, Failed> {
    let required = std::env::var_os("LEASEHOLD_CONFORMANCE_REQUIRED").is_some_and(|value| value == "1");
    let verdict = match verdict {
        Err(Unable::Never(why)) => return Ok(Completion::ignored_with(format!("this store's rig cannot: {why}"))),
        Err(Unable::Absent(why)) if !required => return Ok(Completion::ignored_with(why)),
        Err(Unable::Absent(why) | Unable::Failed(why)) => Err(why),
        Ok(()) => Ok(()),
    };
    match expected {
        Some(expected) => expected.settle(&verdict).map(Completion::ignored_with).map_err(Failed::from),
        None => verdict.map(|()| Completion::Completed).map_err(Failed::from),
    }
}
