//! Runs the cases as a test program, and reports which clauses are broken.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report of a test program")]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Runtime;

use super::arguments::Asked;
use super::cases::{Case, ClauseCheck, TestContext, all};
use super::clause;
use super::expected::Expected;
use super::subject::Subject;
use super::variant::Variant;
use crate::{Capabilities, Capability, LocalHandoff};

/// The limit of a case. Only one that hangs takes so long.
const CASE_LIMIT: Duration = Duration::from_secs(45);

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// How many cases passed.
    pub passed: usize,
    /// The cases that failed, with their failures, sorted by name.
    pub failed: Vec<(&'static str, String)>,
    /// How many cases were ignored.
    pub ignored: usize,
}

/// Runs one case, or all of them at the same time, without printing. For tests of the suite itself.
pub async fn report(subject: Arc<dyn Subject>, only: Option<&str>) -> Report {
    let capabilities = subject.capabilities();
    let mut report = Report::default();
    let mut running = tokio::task::JoinSet::new();
    for case in all().iter().filter(|case| only.is_none_or(|only| only == case.name)) {
        if why_ignored(case, &capabilities).is_some() {
            report.ignored += 1;
        } else {
            let context = TestContext::new(Arc::clone(&subject), case.name, LocalHandoff::new());
            running.spawn(async move { (case.name, check(case, context).await) });
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

/// Runs the suite as a test program: arguments, output and exit code are those of Rust's own test harness, but for the count
/// of what was filtered out. Every case runs once per variant, and where the variant claims the hand-off, once with it and once
/// without.
pub(super) fn run(variants: Vec<Variant>) -> ExitCode {
    let mut asked = Asked::from_args();
    // Most cases wait for leases to run out, not for a processor.
    asked.arguments.test_threads.get_or_insert(24);
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build().map(Arc::new) else {
        eprintln!("no tokio runtime could be started");
        return ExitCode::FAILURE;
    };
    let backend = variants.first().map_or("", |variant| variant.capabilities().backend());
    let broken = Arc::new(Broken::default());
    let mut trials = Vec::new();
    for variant in variants {
        let absent = if asked.arguments.list { None } else { runtime.block_on(variant.available()).err() };
        if let Some(why) = &absent {
            println!("{backend}{} is not available: {why}", variant.suffix());
            if std::env::var_os("LEASEHOLD_CONFORMANCE_REQUIRED").is_some_and(|value| value == "1") {
                eprintln!("LEASEHOLD_CONFORMANCE_REQUIRED=1, so that is a failure");
                return ExitCode::FAILURE;
            }
        }
        trials.extend(trials_of(variant, absent.as_deref(), &asked, &runtime, &broken));
    }
    // Cases about the lease take longest and come late in the contract: begun last, they would be waited for alone.
    trials.reverse();
    let conclusion = libtest_mimic::run(&asked.arguments, trials);
    if !asked.arguments.list {
        let (passed, failed, ignored) = (conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored);
        println!("{backend}  passed {passed}  failed {failed}  ignored {ignored}\n");
        broken.tell();
    }
    conclusion.exit_code()
}

/// The cases of one variant that are asked for. `absent` is the reason why its store cannot be reached, if it cannot.
fn trials_of(
    variant: Variant,
    absent: Option<&str>,
    asked: &Asked,
    runtime: &Arc<Runtime>,
    broken: &Arc<Broken>,
) -> Vec<Trial> {
    let (capabilities, suffix) = (variant.capabilities(), variant.suffix());
    let subject: Arc<dyn Subject> = Arc::new(variant);
    let handoffs: &[_] = if capabilities.has(Capability::LocalHandoff) {
        &[("", LocalHandoff::new()), ("::with_local_handoff_off", LocalHandoff::off())]
    } else {
        &[("", LocalHandoff::new())]
    };
    let mut trials = Vec::new();
    for case in all() {
        let name = format!("{}::{}{suffix}", capabilities.backend(), case.name);
        let why = absent.map(str::to_owned).or_else(|| why_ignored(case, &capabilities));
        let both = handoffs.iter().map(|(off, local_handoff)| {
            let context = TestContext::new(Arc::clone(&subject), case.name, *local_handoff);
            trial(format!("{name}{off}"), case, context, why.clone(), runtime, broken)
        });
        let included: Vec<_> = both.filter(|trial| asked.includes(trial)).collect();
        let tells = absent.is_none() && !asked.arguments.list && !included.is_empty();
        if let Some(why) = why.as_ref().filter(|_| tells) {
            println!("{name} is ignored: {why}");
        }
        trials.extend(included);
    }
    trials
}

fn trial(
    name: String,
    case: &'static Case,
    context: TestContext,
    why_ignored: Option<String>,
    runtime: &Arc<Runtime>,
    broken: &Arc<Broken>,
) -> Trial {
    let ignored = why_ignored.is_some();
    let (runtime, broken) = (Arc::clone(runtime), Arc::clone(broken));
    let body = move || {
        if let Some(why) = why_ignored {
            return Ok(Completion::ignored_with(why));
        }
        let backend = context.subject.capabilities().backend();
        let verdict = runtime.block_on(check(case, context));
        if let Some(expected) = Expected::of(backend, case.name) {
            return expected.settle(&verdict).map(Completion::ignored_with).map_err(Failed::from);
        }
        verdict.map(|()| Completion::Completed).map_err(|why| {
            let clause = broken.note(case);
            Failed::from(format!("{clause} {}\n{why}", clause::text(&clause).unwrap_or_default()))
        })
    };
    Trial::ignorable_test(name, body).with_ignored_flag(ignored)
}

/// The cases that failed, in the order of the suite: cases on which others build come first.
#[derive(Debug, Default)]
struct Broken(Mutex<BTreeSet<usize>>);

impl Broken {
    /// Notes that a case failed, and returns the number of its clause.
    fn note(&self, case: &'static Case) -> String {
        let place = all().iter().position(|one| std::ptr::eq(one, case)).unwrap_or_default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
        clause::number(case.name)
    }

    /// Prints the end of a report: the failure to look at first, and the clauses that are broken.
    fn tell(&self) {
        let broken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cases = broken.iter().filter_map(|place| all().get(*place));
        let mut clauses: Vec<_> = cases.clone().map(|case| clause::number(case.name)).collect();
        clauses.dedup();
        if let Some(first) = cases.clone().next() {
            println!("begin with {}\nbroken: {}\n", first.name, clauses.join(", "));
        }
    }
}

async fn check(case: &Case, context: TestContext) -> Result<(), String> {
    let run: ClauseCheck = case.run;
    match tokio::time::timeout(CASE_LIMIT, run(context)).await {
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
