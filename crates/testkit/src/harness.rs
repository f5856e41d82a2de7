use std::cell::Cell;
use std::env;
use std::fmt;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::process::{Command, ExitCode};

use leasehold_core::conformance::{Asked, Expected, Skipped, Suite, Turns, panic_text, shows_nothing};
use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Builder;

/// The `main` of a test program without harness: runs every function that is marked with [`test`](crate::test).
///
/// `main!(suite)` runs the cases of a conformance suite beside them; `suite` is an expression of type
/// [`Suite`](leasehold_core::conformance::Suite).
#[macro_export]
macro_rules! main {
    () => {
        $crate::main! { @run None }
    };
    (@run $suite:expr) => {
        fn main() -> std::process::ExitCode {
            $crate::run(env!("CARGO_PKG_NAME"), $suite)
        }
    };
    ($suite:expr) => {
        $crate::main! { @run Some($suite) }
    };
}

/// What [`test`](crate::test) makes of a function.
#[doc(hidden)]
#[macro_export]
macro_rules! registered {
    ($function:ident $($word:ident),* $(,)?) => {
        $crate::inventory::submit! {
            $crate::Test {
                module: module_path!(),
                function: stringify!($function),
                way: $crate::Way { $($word: true,)* ..$crate::Way::USUAL },
                run: |way| $crate::Body::run($function, way),
            }
        }
    };
}

/// A function that is a test.
#[doc(hidden)]
#[derive(Debug)]
pub struct Test {
    pub module: &'static str,
    pub function: &'static str,
    pub way: Way,
    pub run: fn(Way) -> Result<(), String>,
}

inventory::collect!(Test);

impl Test {
    /// The name within its program, for example `closing::a_lock_is_closed`.
    fn name(&self) -> String {
        let (_, module) = self.module.split_once("::").unwrap_or_default();
        if module.is_empty() { self.function.to_owned() } else { format!("{module}::{}", self.function) }
    }

    fn trial(&'static self, package: &str) -> Trial {
        let required = env::var_os("LEASEHOLD_CONFORMANCE_REQUIRED").is_some_and(|value| value == "1");
        // A process of its own leaves the verdict to the one that started it.
        let expected = Expected::of(package, self.function).filter(|_| !is_process_of_its_own());
        Trial::ignorable_test(self.name(), move || {
            // A process that a test starts has that test's turn.
            let waits = self.runs_here() && !is_process_of_its_own();
            let _turn = self.way.turns().filter(|_| waits).map(Turns::take);
            completion(Box::new(move || self.verdict()), required, expected)
        })
    }

    fn runs_here(&self) -> bool {
        !self.way.deep || env::var_os(DEEP).is_some()
    }

    fn verdict(&self) -> Result<(), String> {
        if !self.runs_here() {
            shows_nothing("a deep test: `cargo xtask test --deep` runs it");
        }
        if self.way.process && !is_process_of_its_own() {
            in_a_process_of_its_own(&self.name())
        } else {
            (self.run)(self.way)
        }
    }
}

/// How a test runs: the words of its attribute.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a word that is there or not")]
pub struct Way {
    /// On a runtime with two threads.
    pub multi_thread: bool,
    /// On a clock that stands still until every task waits.
    pub paused: bool,
    /// Beside two others of this kind at most: it has a large server of its own, or several.
    pub server: bool,
    /// Beside no other test: it measures something.
    pub quiet: bool,
    /// In a process of its own: it changes what a process has once, such as its environment or its global subscriber.
    pub process: bool,
    /// Only in a deep run: it takes long and finds something rarely.
    pub deep: bool,
}

impl Way {
    /// Without a word.
    pub const USUAL: Self =
        Self { multi_thread: false, paused: false, server: false, quiet: false, process: false, deep: false };

    fn turns(self) -> Option<&'static Turns> {
        static MANY: Turns = Turns::new(6);
        static FEW: Turns = Turns::new(3);
        (!self.quiet).then_some(if self.server { &FEW } else { &MANY })
    }

    fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        let mut builder = if self.multi_thread { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let runtime = builder.worker_threads(2).enable_all().start_paused(self.paused).build();
        runtime.expect("a runtime").block_on(work)
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
pub trait Body<Kind> {
    fn run(self, way: Way) -> Result<(), String>;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Sync;

#[doc(hidden)]
#[derive(Debug)]
pub struct Async;

impl<F: FnOnce() -> O, O: Outcome> Body<Sync> for F {
    fn run(self, _: Way) -> Result<(), String> {
        self().verdict()
    }
}

impl<F: FnOnce() -> W, W: Future<Output: Outcome>> Body<Async> for F {
    fn run(self, way: Way) -> Result<(), String> {
        way.block_on(self()).verdict()
    }
}

/// Which tests of a program are run: without it, all of them.
const SELECTION: &str = "LEASEHOLD_TESTS";

/// Runs a test program: arguments, output and exit code are those of Rust's own harness. The tests that need quiet run at the end,
/// one after the other.
#[doc(hidden)]
pub fn run(package: &str, suite: Option<Suite>) -> ExitCode {
    if let Some(code) = suite.as_ref().and_then(Suite::play) {
        return code;
    }
    keep_expected_panics_quiet();
    let package = package.strip_prefix("leasehold-").unwrap_or(package);
    let asked = Asked::from_args();
    let selection = env::var(SELECTION).unwrap_or_default();
    if !["", "suite", "beside", "quiet"].contains(&selection.as_str()) {
        let _ = writeln!(std::io::stderr(), "{SELECTION}={selection}: there are suite, beside and quiet");
        return ExitCode::from(2);
    }
    let runs = |part: &str| selection.is_empty() || selection == part;
    let mut tests: Vec<&'static Test> = inventory::iter::<Test>.into_iter().collect();
    tests.sort_by_key(|test| test.name());
    let trials = |quiet: bool| -> Vec<Trial> {
        let of_this_kind = tests.iter().filter(|test| test.way.quiet == quiet);
        of_this_kind.map(|test| test.trial(package)).filter(|trial| asked.includes(trial)).collect()
    };

    let mut code = ExitCode::SUCCESS;
    if runs("suite") || runs("beside") {
        let mut beside = if runs("beside") { trials(false) } else { Vec::new() };
        let mut arguments = asked.arguments.clone();
        // Each has a thread on which it waits for its turn.
        arguments.test_threads.get_or_insert(beside.len() + 24);
        let cases = match suite.map(|suite| suite.cases(&asked)).transpose() {
            Ok(cases) => cases,
            Err(code) => return code,
        };
        let cases = cases.map(|(cases, trials)| {
            beside.extend(trials);
            cases
        });
        code = worse(code, libtest_mimic::run(&arguments, beside).exit_code());
        if let Some(cases) = cases {
            code = cases.conclude(&asked, code);
        }
    }
    let quiet = if runs("quiet") { trials(true) } else { Vec::new() };
    if !quiet.is_empty() {
        let mut arguments = asked.arguments;
        arguments.test_threads = Some(1);
        code = worse(code, libtest_mimic::run(&arguments, quiet).exit_code());
    }
    code
}

fn worse(one: ExitCode, other: ExitCode) -> ExitCode {
    if one == ExitCode::SUCCESS { other } else { one }
}

/// This test program again, to run the test of this name alone: `module::function`.
pub fn this_program(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["--exact", test, "--nocapture"]).env_remove(SELECTION).env(OWN_PROCESS, "1");
    command
}

/// Set in a deep run.
const DEEP: &str = "LEASEHOLD_DEEP";

/// These in a deep run, and otherwise nothing: variants of a suite, say.
pub fn if_deep<T>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let deep = env::var_os(DEEP).is_some();
    items.into_iter().filter(move |_| deep)
}

const OWN_PROCESS: &str = "LEASEHOLD_TEST_PROCESS";

fn is_process_of_its_own() -> bool {
    env::var_os(OWN_PROCESS).is_some()
}

fn in_a_process_of_its_own(test: &str) -> Result<(), String> {
    let ended = this_program(test).output().map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&ended.stdout);
    if ended.status.success() && printed.contains("1 passed") {
        return Ok(());
    }
    if let Some((_, why)) = printed.lines().find_map(|line| line.split_once("ignored, ")) {
        shows_nothing(why);
    }
    // Moved to the right, so that its result is not taken for the result of this program.
    Err(format!("{printed}{}", String::from_utf8_lossy(&ended.stderr)).replace('\n', "\n    "))
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
#[doc(hidden)]
pub fn completion(
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
