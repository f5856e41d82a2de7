//! Runs the cases as a test program, and reports which clauses are broken.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report of a test program")]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Runtime;

use super::arguments::Asked;
use super::cases::{CASES, Case, ClauseCheck, TestContext};
use super::clause;
use super::expected::Expected;
use super::model;
use super::parallelism::Turns;
use super::subject::Subject;
use super::variant::Variant;
use super::verdict::panic_text;
use crate::{Capabilities, Capability, LocalHandoff};

/// The limit of a case. Only one that hangs takes so long.
const CASE_LIMIT: Duration = Duration::from_secs(45);

/// What fails of the cases whose names begin so, or of all. They run at the same time and print nothing. For tests of the suite itself.
///
/// # Panics
/// If there is none that is not ignored: that would show nothing.
pub async fn failures(subject: Arc<dyn Subject>, only: Option<&str>) -> BTreeSet<(&'static str, String)> {
    let capabilities = subject.capabilities();
    let mut running = tokio::task::JoinSet::new();
    let asked = CASES.iter().filter(|case| only.is_none_or(|only| case.name.starts_with(only)));
    for case in asked.filter(|case| why_ignored(case, &capabilities).is_none()) {
        let mut context = TestContext::new(Arc::clone(&subject), "", case.name, LocalHandoff::new());
        context.is_explained = false;
        running.spawn(async move { (case.name, check(case, context).await) });
    }
    assert!(!running.is_empty(), "no case is asked by {only:?}");
    let mut failed = BTreeSet::new();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((_, Ok(()))) => {}
            Ok((name, Err(why))) => _ = failed.insert((name, why)),
            Err(panic) => _ = failed.insert(("panic", panic.to_string())),
        }
    }
    failed
}

/// How many cases run at a time: most of them wait for leases to run out, not for a processor.
pub(super) const AT_ONCE: usize = 24;

/// With `1` in this environment variable, cases run once each, and not a second time with the local hand-off off.
const BRIEF: &str = "LEASEHOLD_CONFORMANCE_BRIEF";

/// The cases of a suite in a test program, whose arguments, output and exit code are those of Rust's own test harness, but for the
/// count of what was filtered out.
#[derive(Debug)]
pub struct Cases {
    backend: &'static str,
    counts: Arc<Counts>,
}

impl Cases {
    /// The cases that are asked for, and what counts them. Every case is there once per variant, and where the variant claims the
    /// hand-off, once with it and once without. The error: a store that is required is absent.
    pub(super) fn of(variants: Vec<Variant>, asked: &Asked) -> Result<(Self, Vec<Trial>), ExitCode> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().map(Arc::new).map_err(|error| {
                eprintln!("no tokio runtime could be started: {error}");
                ExitCode::FAILURE
            })?;
        let backend = variants.first().map_or("", |variant| variant.subject.capabilities().backend());
        let counts = Arc::new(Counts::default());
        let mut trials = Vec::new();
        for variant in variants {
            let absent = if asked.arguments.list { None } else { runtime.block_on(variant.subject.available()).err() };
            if let Some(why) = &absent {
                println!("{backend}{} is not available: {why}", variant.suffix());
                if std::env::var_os("LEASEHOLD_CONFORMANCE_REQUIRED").is_some_and(|value| value == "1") {
                    eprintln!("LEASEHOLD_CONFORMANCE_REQUIRED=1, so that is a failure");
                    return Err(ExitCode::FAILURE);
                }
            }
            trials.extend(trials_of(&variant, absent.as_deref(), asked, &runtime, &counts));
        }
        // Cases about the lease take longest and come late in the contract: begun last, they would be waited for alone.
        trials.reverse();
        Ok((Self { backend, counts }, trials))
    }

    /// Prints the counts of the cases, and which clauses are broken.
    pub fn conclude(&self, asked: &Asked, code: ExitCode) -> ExitCode {
        let [passed, failed, ignored] = self.counts.all();
        if !asked.arguments.list && passed + failed + ignored > 0 {
            println!("{}  passed {passed}  failed {failed}  ignored {ignored}\n", self.backend);
            self.counts.tell_what_is_broken();
        }
        code
    }
}

/// The cases of one variant that are asked for. `absent` is the reason why its store cannot be reached, if it cannot.
fn trials_of(
    variant: &Variant,
    absent: Option<&str>,
    asked: &Asked,
    runtime: &Arc<Runtime>,
    counts: &Arc<Counts>,
) -> Vec<Trial> {
    let (capabilities, suffix) = (variant.subject.capabilities(), variant.suffix());
    let brief = std::env::var_os(BRIEF).is_some_and(|value| value == "1");
    let handoffs: &[_] = if capabilities.has(Capability::LocalHandoff) && !brief {
        &[("", LocalHandoff::new()), ("::with_local_handoff_off", LocalHandoff::off())]
    } else {
        &[("", LocalHandoff::new())]
    };
    let mut trials = Vec::new();
    for case in CASES {
        let name = format!("{}::{}{suffix}", capabilities.backend(), case.name);
        let why = absent.map(str::to_owned).or_else(|| why_ignored(case, &capabilities));
        let both = handoffs.iter().map(|(off, local_handoff)| {
            let context = TestContext::new(Arc::clone(&variant.subject), variant.name, case.name, *local_handoff);
            trial(format!("{name}{off}"), case, context, why.clone(), runtime, counts)
        });
        let included: Vec<_> = both.filter(|trial| asked.includes(trial)).collect();
        let tells = absent.is_none() && !asked.arguments.list && !included.is_empty();
        if let Some(why) = why.as_ref().filter(|_| tells) {
            println!("{name} is ignored: {why}");
        }
        if why.is_some() {
            counts.ignored.fetch_add(included.len(), Ordering::Relaxed);
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
    counts: &Arc<Counts>,
) -> Trial {
    let ignored = why_ignored.is_some();
    let (runtime, counts) = (Arc::clone(runtime), Arc::clone(counts));
    let body = move || {
        if let Some(why) = why_ignored {
            return Ok(Completion::ignored_with(why));
        }
        let _turn = TURNS.take();
        let backend = context.subject.capabilities().backend();
        // A case that panics is broken like one that fails: it is counted, and its clause told.
        let verdict = catch_unwind(AssertUnwindSafe(|| runtime.block_on(check(case, context))))
            .unwrap_or_else(|panic| Err(panic_text(&*panic)));
        let settled = match Expected::of(backend, case.name) {
            Some(expected) => expected.settle(&verdict).map(Completion::ignored_with),
            None => verdict.map(|()| Completion::Completed),
        };
        settled.inspect(|completion| counts.note(completion)).map_err(|why| {
            // A case that asks about all clauses says which one is broken.
            let (clause, why) = match why.split_once(": ") {
                Some((clause, why)) if clause::text(clause).is_some() => (clause.to_owned(), why.to_owned()),
                _ => (clause::number(case.name), why),
            };
            counts.note_failure(case, &clause);
            Failed::from(format!("{clause}: {why}\n\n{clause} {}", clause::text(&clause).unwrap_or_default()))
        })
    };
    Trial::ignorable_test(name, body).with_ignored_flag(ignored)
}

/// How many cases run at a time, also where the program has other tests.
static TURNS: Turns = Turns::new(AT_ONCE);

/// How the cases ended.
#[derive(Debug, Default)]
struct Counts {
    passed: AtomicUsize,
    ignored: AtomicUsize,
    failed: AtomicUsize,
    /// The cases that failed, in the order of the suite: cases on which others build come first. Each with the clause that it saw broken.
    broken: Mutex<BTreeSet<(usize, String)>>,
}

impl Counts {
    fn note(&self, completion: &Completion) {
        let count = if matches!(completion, Completion::Completed) { &self.passed } else { &self.ignored };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a case failed, and which clause is broken.
    fn note_failure(&self, case: &'static Case, clause: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let place = CASES.iter().position(|one| std::ptr::eq(one, case)).unwrap_or_default();
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).insert((place, clause.to_owned()));
    }

    /// How many passed, failed and were ignored.
    fn all(&self) -> [usize; 3] {
        [&self.passed, &self.failed, &self.ignored].map(|count| count.load(Ordering::Relaxed))
    }

    /// Prints the end of a report: the failure to look at first, and the clauses that are broken.
    fn tell_what_is_broken(&self) {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clauses: Vec<_> = broken.iter().map(|(_, clause)| clause.as_str()).collect();
        clauses.dedup();
        if let Some(first) = broken.iter().find_map(|(place, _)| CASES.get(*place)) {
            println!("begin with {}\nbroken: {}\n", first.name, clauses.join(", "));
        }
    }
}

async fn check(case: &Case, context: TestContext) -> Result<(), String> {
    let run: ClauseCheck = case.run;
    let limit = if case.name == model::CASE { CASE_LIMIT + model::takes_longer() } else { CASE_LIMIT };
    match tokio::time::timeout(limit, run(context)).await {
        Ok(verdict) => verdict.map_err(|failure| failure.0),
        Err(_) => Err(format!("still running after {limit:?}")),
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
