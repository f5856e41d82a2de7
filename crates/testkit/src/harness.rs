use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::process::ExitCode;

use leasehold_core::conformance::{Expected, Skipped};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Builder;

/// The `main` of a test target without harness: runs these functions, on a runtime of their own each.
///
/// `at_once: 4;` before the names has so many run at a time, unless the command line says another number: for tests that mostly wait.
/// `@multi_thread` and `@paused` before a name say on which kind of runtime, instead of one of the current thread.
#[macro_export]
macro_rules! main {
    (@run $at_once:expr; $($(@$flavor:ident)? $test:path),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            let tests = vec![$($crate::Test::new(
                stringify!($test),
                $crate::flavor!($($flavor)?),
                $test,
            )),+];
            $crate::run(env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"), tests, $at_once)
        }
    };
    (at_once: $at_once:literal; $($tests:tt)+) => {
        $crate::main! { @run Some($at_once); $($tests)+ }
    };
    ($($tests:tt)+) => {
        $crate::main! { @run None; $($tests)+ }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! flavor {
    () => {
        $crate::Flavor::CurrentThread
    };
    (multi_thread) => {
        $crate::Flavor::MultiThread
    };
    (paused) => {
        $crate::Flavor::Paused
    };
}

/// On which kind of runtime a test runs.
#[derive(Clone, Copy, Debug)]
pub enum Flavor {
    /// One thread.
    CurrentThread,
    /// Two threads.
    MultiThread,
    /// One thread, and a clock that stands still until every task waits.
    Paused,
}

impl Flavor {
    fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        let mut builder = match self {
            Self::MultiThread => Builder::new_multi_thread(),
            Self::CurrentThread | Self::Paused => Builder::new_current_thread(),
        };
        let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            if let Self::Paused = self {
                tokio::time::pause();
            }
            work.await
        })
    }
}

/// One test.
pub struct Test {
    name: &'static str,
    body: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Test").field(&self.name).finish()
    }
}

impl Test {
    /// A test of this name, which runs this function.
    pub fn new<Kind>(name: &'static str, flavor: Flavor, body: impl Body<Kind>) -> Self {
        Self { name, body: Box::new(move || body.run(flavor)) }
    }
}

/// What a test answers: nothing, or an error.
#[doc(hidden)]
pub trait Outcome {
    fn verdict(self) -> Result<(), String>;
}

impl Outcome for () {
    fn verdict(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: fmt::Debug> Outcome for Result<(), E> {
    fn verdict(self) -> Result<(), String> {
        self.map_err(|error| format!("{error:?}"))
    }
}

/// A function that is a test. `Kind` tells the two kinds apart.
#[doc(hidden)]
pub trait Body<Kind>: Send + 'static {
    fn run(self, flavor: Flavor) -> Result<(), String>;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Sync;

#[doc(hidden)]
#[derive(Debug)]
pub struct Async;

impl<F: FnOnce() -> O + Send + 'static, O: Outcome> Body<Sync> for F {
    fn run(self, _: Flavor) -> Result<(), String> {
        self().verdict()
    }
}

impl<F: FnOnce() -> W + Send + 'static, W: Future<Output: Outcome>> Body<Async> for F {
    fn run(self, flavor: Flavor) -> Result<(), String> {
        flavor.block_on(self()).verdict()
    }
}

/// Runs a test target: arguments, output and exit code are those of Rust's own harness.
#[doc(hidden)]
pub fn run(package: &str, target: &str, tests: Vec<Test>, at_once: Option<usize>) -> ExitCode {
    let place = format!("{}/{target}", package.strip_prefix("leasehold-").unwrap_or(package));
    let required = std::env::var_os("LEASEHOLD_CONFORMANCE_REQUIRED").is_some_and(|value| value == "1");
    keep_expected_panics_quiet();
    let trials = tests.into_iter().map(|test| {
        let expected = Expected::of(&place, test.name.rsplit("::").next().unwrap_or(test.name).trim());
        Trial::ignorable_test(test.name.replace(' ', ""), move || completion(test.body, required, expected))
    });
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(at_once);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// The text of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "it panicked".to_owned())
}

thread_local! {
    /// Whether a panic on this thread is what is expected.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

fn keep_expected_panics_quiet() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        if !EXPECTED.get() {
            print(panic);
        }
    }));
}

/// Runs a test, and says how it ended.
fn completion(
    body: Box<dyn FnOnce() -> Result<(), String> + Send>,
    required: bool,
    expected: Option<&Expected>,
) -> Result<Completion, Failed> {
    EXPECTED.set(expected.is_some());
    let verdict = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(verdict) => verdict,
        Err(unwound) => match unwound.downcast::<Skipped>().map(|shown| *shown) {
            Ok(Skipped::Absent(why)) if required => return Err(format!("{why}, and it is required").into()),
            Ok(Skipped::Absent(why) | Skipped::Nothing(why)) => return Ok(Completion::ignored_with(why)),
            Err(panic) if expected.is_none() => resume_unwind(panic),
            Err(panic) => Err(panic_text(&*panic)),
        },
    };
    EXPECTED.set(false);
    match expected {
        Some(expected) => expected.settle(&verdict).map(Completion::ignored_with).map_err(Failed::from),
        None => verdict.map(|()| Completion::Completed).map_err(Failed::from),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::conformance::{needs, shows_nothing};

    use super::*;

    const BROKEN: Expected = Expected { finding: "X1", places: "here", test: "one", reason: "it is broken" };

    fn ignored(ended: &Result<Completion, Failed>) -> bool {
        matches!(ended, Ok(Completion::Ignored { .. }))
    }

    #[test]
    fn what_is_absent_makes_a_test_ignored_unless_it_is_required() {
        let body = || -> Result<(), String> { needs("oracle", None) };
        assert!(ignored(&completion(Box::new(body), false, None)));
        let failed = completion(Box::new(body), true, None).err().expect("it is required");
        assert!(failed.message().is_some_and(|why| why.contains("no oracle here")), "{failed:?}");
        // Absence is no failure that was expected.
        assert!(completion(Box::new(body), true, Some(&BROKEN)).is_err());
    }

    #[test]
    fn a_test_that_shows_nothing_is_ignored_also_where_everything_is_required() {
        let slow = || -> Result<(), String> { shows_nothing("the machine made only 999 grants a second") };
        for expected in [None, Some(&BROKEN)] {
            let ended = completion(Box::new(slow), true, expected);
            let Ok(Completion::Ignored { reason }) = ended else { panic!("it is not ignored") };
            assert_eq!(reason.as_deref(), Some("the machine made only 999 grants a second"));
        }
    }

    #[test]
    fn an_expected_failure_may_be_an_error_or_a_panic_and_nothing_else() {
        assert!(ignored(&completion(Box::new(|| Err("broken".into())), true, Some(&BROKEN))));
        assert!(ignored(&completion(Box::new(|| resume_unwind(Box::new("broken"))), true, Some(&BROKEN))));
        let passes = completion(Box::new(|| Ok(())), true, Some(&BROKEN)).err().expect("it passes");
        assert!(passes.message().is_some_and(|why| why.contains("take it off the list")), "{passes:?}");
    }

    #[test]
    fn a_test_passes_or_fails_by_itself() {
        assert!(matches!(completion(Box::new(|| Ok(())), true, None), Ok(Completion::Completed)));
        assert!(completion(Box::new(|| Err("broken".into())), false, None).is_err());
        assert!(catch_unwind(|| completion(Box::new(|| resume_unwind(Box::new("broken"))), false, None)).is_err());
    }
}
