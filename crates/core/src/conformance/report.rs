#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report of a test program")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use super::cases::{Bench, Case, ClauseCheck, all};
use super::subject::Subject;
use crate::{Capabilities, Capability, HandOver};

/// No case takes this long unless it hangs.
const CASE_LIMIT: Duration = Duration::from_secs(60);

/// What a run found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many cases passed.
    pub passed: usize,
    /// The cases that failed, with their failures, sorted by name.
    pub failed: Vec<(&'static str, String)>,
    /// How many cases were ignored.
    pub ignored: usize,
}

/// Runs every case once without printing, several at a time: for testing the suite itself.
pub async fn report(subject: Arc<dyn Subject>) -> Report {
    let capabilities = subject.capabilities();
    let mut report = Report::default();
    let mut running = tokio::task::JoinSet::new();
    for case in all() {
        if why_ignored(case, &capabilities).is_some() {
            report.ignored += 1;
        } else {
            let bench = Bench::new(Arc::clone(&subject), case.name, HandOver::new());
            running.spawn(async move { (case.name, check(case, bench).await) });
        }
    }
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((_, Ok(()))) => report.passed += 1,
            Ok((name, Err(why))) => report.failed.push((name, why)),
            Err(panic) => report.failed.push(("panic", panic.to_string())),
        }
    }
    report.failed.sort();
    report
}

/// Runs the suite as a test program: arguments, output and exit code are those of Rust's own test harness. Where the
/// hand-over is claimed, every case runs with it and without.
pub(super) fn run(subject: &Arc<dyn Subject>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most cases wait for leases to run out, not for a processor.
    arguments.test_threads.get_or_insert(16);
    let capabilities = subject.capabilities();
    let backend = capabilities.backend();
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build().map(Arc::new) else {
        eprintln!("no tokio runtime could be started");
        return ExitCode::FAILURE;
    };
    let absent = if arguments.list { None } else { runtime.block_on(subject.available()).err() };
    if let Some(why) = &absent {
        println!("{backend} is not available: {why}");
        if std::env::var_os("LEASEHOLD_CONFORMANCE_REQUIRED").is_some_and(|value| value == "1") {
            eprintln!("LEASEHOLD_CONFORMANCE_REQUIRED=1, so that is a failure");
            return ExitCode::FAILURE;
        }
    }
    let hand_overs: &[_] = if capabilities.has(Capability::HandOver) {
        &[("", HandOver::new()), ("::with_hand_over_off", HandOver::off())]
    } else {
        &[("", HandOver::new())]
    };
    let mut trials = Vec::new();
    for case in all() {
        let why = absent.clone().or_else(|| why_ignored(case, &capabilities));
        if let Some(why) = why.as_ref().filter(|_| absent.is_none() && !arguments.list) {
            println!("{backend}::{} is ignored: {why}", case.name);
        }
        for (suffix, hand_over) in hand_overs {
            let name = format!("{backend}::{}{suffix}", case.name);
            let bench = Bench::new(Arc::clone(subject), case.name, *hand_over);
            trials.push(trial(name, case, bench, why.clone(), &runtime));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        let (passed, failed, ignored) = (conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored);
        println!("{backend}  passed {passed}  failed {failed}  ignored {ignored}\n");
    }
    conclusion.exit_code()
}

fn trial(
    name: String,
    case: &'static Case,
    bench: Bench,
    why_ignored: Option<String>,
    runtime: &Arc<Runtime>,
) -> Trial {
    let ignored = why_ignored.is_some();
    let runtime = Arc::clone(runtime);
    let body = move || match why_ignored {
        Some(why) => Ok(Completion::ignored_with(why)),
        None => match runtime.block_on(check(case, bench)) {
            Ok(()) => Ok(Completion::Completed),
            Err(why) => Err(Failed::from(why)),
        },
    };
    Trial::ignorable_test(name, body).with_ignored_flag(ignored)
}

async fn check(case: &Case, bench: Bench) -> Result<(), String> {
    let run: ClauseCheck = case.run;
    match tokio::time::timeout(CASE_LIMIT, run(bench)).await {
        Ok(verdict) => verdict.map_err(|failure| failure.0),
        Err(_) => Err(format!("still running after {CASE_LIMIT:?}")),
    }
}

fn why_ignored(case: &Case, capabilities: &Capabilities) -> Option<String> {
    let missing =
        case.needs.iter().find_map(|need| Some(format!("{need} is not claimed: {}", capabilities.why_not(*need)?)));
    missing.or_else(|| {
        let spoiler = case.unless.iter().find(|spoiler| capabilities.has(**spoiler))?;
        Some(format!("{spoiler} is claimed: a session contends with others, not with itself"))
    })
}
