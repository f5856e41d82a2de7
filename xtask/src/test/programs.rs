//! Runs the programs of tests: several at a time, because most tests wait for a lease or a server, and then, one after the other,
//! the tests that need quiet.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::tally::Tally;
use crate::test_program::TestProgram;
use crate::workspace::{cargo, root, target};

/// How many programs run at a time.
const AT_ONCE: usize = 3;

/// How many programs run at a time in a deep run, in which a suite asks each of its subjects: three of them leave a store of
/// several servers so little of the processors that its answers come after the limits of the tests.
const AT_ONCE_IN_DEPTH: usize = 2;

/// The programs that take longest: they begin first, so that nothing is left to wait for alone.
const LONGEST: [&str; 9] = [
    "leasehold-core it",
    "leasehold-mysql-rw it",
    "leasehold-redis-single it",
    "leasehold-etcd it",
    "leasehold-mysql-unique it",
    "leasehold-redlock it",
    "leasehold-cli it",
    "doc tests",
    "leasehold-search lib",
];

/// Tests that fail among others are asked again, alone and so often, because a busy machine fails some that are right: a test that
/// fails once more has failed. More than these few are no accident, and the scripts of the model say with their seed what is wrong, unless
/// the machine was too busy to ask them.
const ASKED_AGAIN: usize = 3;
const FEW: usize = 4;
const NEVER_AGAIN: &str = "any_script";
const UNASKED: &str = "scripts ended with a store that failed";

/// A program that takes longer hangs: its tests have limits of their own, which add up to less.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// How often the state of the run is told.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// A program, or the doc tests of a package.
#[derive(Debug)]
pub(super) struct Program {
    /// The package, and which of its tests: `leasehold-etcd it`.
    name: String,
    command: Command,
    /// Whether its tests that need quiet run by themselves.
    has_own_harness: bool,
}

impl Program {
    pub(super) fn new(program: &TestProgram, filters: &[String]) -> Self {
        let mut command = Command::new(&program.executable);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).args(filters);
        // The other tests of that package are those of core, which run there.
        if program.package == "leasehold-search" && filters.is_empty() {
            command.arg("search::");
        }
        let manifest = fs::read_to_string(program.folder.join("Cargo.toml")).unwrap_or_default();
        let has_own_harness = program.tests == "it" && manifest.contains("harness = false");
        Self { name: format!("{} {}", program.package, program.tests), command, has_own_harness }
    }

    /// The doc tests of the packages in these arguments: all that were built, because cargo would build fewer with other features.
    pub(super) fn of_documents<'p>(packages: impl Iterator<Item = &'p str>) -> Self {
        let mut command = cargo();
        command.args(["test", "--doc", "--no-fail-fast", "--all-features"]).args(packages);
        Self { name: "doc tests".to_owned(), command, has_own_harness: false }
    }

    /// The command again, for another part of its tests.
    fn part(&self, part: &str) -> Command {
        let mut command = Command::new(self.command.get_program());
        command.args(self.command.get_args()).env("LEASEHOLD_TESTS", part).env_remove("LEASEHOLD_CONFORMANCE_VARIANT");
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }

    fn rank(&self) -> usize {
        LONGEST.iter().position(|name| *name == self.name).unwrap_or(LONGEST.len())
    }
}

/// What all that run share.
struct Run<'a> {
    began: Instant,
    programs: usize,
    environment: &'a [(&'static str, String)],
    state: Mutex<State<'a>>,
    ended: AtomicBool,
}

struct State<'a> {
    tally: &'a mut Tally,
    done: usize,
    /// How many tests have ended in each program that runs.
    running: BTreeMap<String, usize>,
    failed: Vec<Failed<'a>>,
}

/// A program, or a part of its tests, that failed.
struct Failed<'a> {
    program: &'a Program,
    part: &'static str,
    /// None, if the program failed as a whole.
    tests: Vec<String>,
    /// Whether scripts of the model could not be asked.
    unasked: bool,
    /// Where its output is, or why there is none.
    shown: String,
}

/// Runs all of them, and adds up the counts. Returns the names of those that failed, whose output is printed.
pub(super) fn run(
    mut programs: Vec<Program>,
    deep: bool,
    environment: &[(&'static str, String)],
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    programs.sort_by(|one, other| (one.rank(), &one.name).cmp(&(other.rank(), &other.name)));
    fs::create_dir_all(target().join("tests"))?;
    let state = State { tally, done: 0, running: BTreeMap::new(), failed: Vec::new() };
    let run = Run {
        began: Instant::now(),
        programs: programs.len(),
        environment,
        state: Mutex::new(state),
        ended: AtomicBool::new(false),
    };
    let waiting = Mutex::new(programs.iter().collect::<VecDeque<_>>());
    // Not in the line of the loop, where the lock would be held while the program runs.
    let next = || lock(&waiting).pop_front();
    thread::scope(|scope| {
        scope.spawn(|| run.tell());
        let lane = || {
            while let Some(program) = next() {
                run.one(program, "beside")?;
                lock(&run.state).done += 1;
            }
            Ok(())
        };
        let lanes: Vec<_> = (0..if deep { AT_ONCE_IN_DEPTH } else { AT_ONCE }).map(|_| scope.spawn(lane)).collect();
        let mut outcome = lanes.into_iter().try_for_each(|ended| {
            ended.join().unwrap_or_else(|_| Err(io::Error::other("a thread that runs tests panicked")))
        });
        for program in programs.iter().filter(|program| program.has_own_harness) {
            outcome = outcome.and_then(|()| run.one(program, "quiet"));
        }
        run.ended.store(true, Ordering::Relaxed);
        outcome
    })?;
    run.again()?;
    let failed = run.state.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
    Ok(failed.iter().map(|failed| format!("{} ({})", failed.program.name, failed.shown)).collect())
}

/// The names of the tests that failed, in the output of a program.
fn failed_tests(output: &str) -> Vec<String> {
    let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.trim_end().to_owned());
    output.lines().filter_map(failed).collect()
}

/// How long processors worked for this process and those of its children that it has waited for. 0 where the system does not say.
fn processor_seconds(process: u32) -> u64 {
    // In hundredths of a second, behind the name of the program, which ends with the last bracket.
    let told = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let numbers = told.rsplit_once(')').map_or("", |(_, numbers)| numbers).split_whitespace();
    numbers.skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() / 100
}

/// The time since then, as minutes and seconds.
pub(super) fn in_minutes(began: Instant) -> String {
    let seconds = began.elapsed().as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Run<'a> {
    /// Asks the tests that failed once more, and forgives those that pass alone: by name, and among the last lines.
    fn again(&self) -> io::Result<()> {
        let failed = std::mem::take(&mut lock(&self.state).failed);
        let few = failed.iter().map(|failed| failed.tests.len()).sum::<usize>() <= FEW;
        for mut failed in failed {
            let may_pass = few
                && !failed.tests.is_empty()
                && (failed.unasked || !failed.tests.iter().any(|test| test.contains(NEVER_AGAIN)));
            let asked_again = if may_pass { std::mem::take(&mut failed.tests) } else { Vec::new() };
            for test in asked_again {
                if self.passes_alone(failed.program, failed.part, &test)? {
                    let mut state = lock(&self.state);
                    (state.tally.failed, state.tally.passed) = (state.tally.failed - 1, state.tally.passed + 1);
                    state.tally.unsteady.push(format!("{}: {test} ({})", failed.program.name, failed.shown));
                } else {
                    failed.tests.push(test);
                }
            }
            if !may_pass || !failed.tests.is_empty() {
                lock(&self.state).failed.push(failed);
            }
        }
        Ok(())
    }

    fn passes_alone(&self, program: &Program, part: &str, test: &str) -> io::Result<bool> {
        for _ in 0..ASKED_AGAIN {
            let mut command = program.part(part);
            command.args(["--exact", test]).envs(self.environment.iter().cloned()).stdin(Stdio::null());
            let output = command.output()?;
            let mut own = Tally::default();
            own.read_all(&String::from_utf8_lossy(&output.stdout));
            if !output.status.success() || own.passed != 1 {
                println!(
                    "{test} of {} failed again, alone:\n{}",
                    program.name,
                    String::from_utf8_lossy(&output.stdout)
                );
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says from time to time what runs.
    fn tell(&self) {
        let mut next = TOLD_EVERY;
        while !self.ended.load(Ordering::Relaxed) {
            if self.began.elapsed() >= next {
                next += TOLD_EVERY;
                let state = lock(&self.state);
                let running: Vec<_> = state.running.iter().map(|(name, tests)| format!("{name} ({tests})")).collect();
                let tests = state.tally.passed + state.tally.failed + state.tally.ignored;
                println!(
                    "[{}] {} of {} programs, {tests} tests; running: {}",
                    in_minutes(self.began),
                    state.done,
                    self.programs,
                    running.join(", ")
                );
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs one program, or a part of its tests. Its output is kept in a file, and printed if it fails.
    fn one(&self, program: &'a Program, part: &'static str) -> io::Result<()> {
        let began = Instant::now();
        let (name, mut command) = (program.name.as_str(), program.part(part));
        lock(&self.state).running.insert(name.to_owned(), 0);
        command
            .envs(self.environment.iter().cloned())
            // A run writes nothing into the sources.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(why) => {
                println!("{name} does not start: {why}");
                lock(&self.state).failed.push(Failed {
                    program,
                    part,
                    tests: Vec::new(),
                    unasked: false,
                    shown: why.to_string(),
                });
                return Ok(());
            }
        };
        let (errors, printed) = (child.stderr.take(), child.stdout.take());
        let child = Mutex::new(child);
        let mut output = Vec::new();
        let (ended, has_ended) = mpsc::channel::<()>();
        let errors = thread::scope(|scope| {
            scope.spawn(|| {
                let has_ended = has_ended;
                if has_ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                    println!("{name} hangs: it is ended after {} minutes", LIMIT.as_secs() / 60);
                    let _ = lock(&child).kill();
                }
            });
            let errors = scope.spawn(|| {
                let mut text = Vec::new();
                errors.map_or(Ok(0), |mut errors| errors.read_to_end(&mut text)).map(|_| text)
            });
            if let Some(printed) = printed {
                let mut printed = BufReader::new(printed);
                let mut from = 0;
                while printed.read_until(b'\n', &mut output)? > 0 {
                    if output[from..].starts_with(b"test ") && !output[from..].starts_with(b"test result") {
                        *lock(&self.state).running.entry(name.to_owned()).or_default() += 1;
                    }
                    from = output.len();
                }
            }
            let errors = errors.join().unwrap_or_else(|_| Err(io::Error::other("a thread that reads panicked")));
            drop(ended);
            errors
        })?;
        let mut child = lock(&child);
        let processors = processor_seconds(child.id());
        let passed = child.wait()?.success();
        let file = target().join("tests").join(format!("{}-{part}.log", name.replace(' ', "-")));
        fs::write(&file, [output.as_slice(), &errors].concat())?;

        let mut state = lock(&self.state);
        state.running.remove(name);
        let mut own = Tally::default();
        own.read_all(&String::from_utf8_lossy(&output));
        if !passed && own.failed == 0 {
            own.failed = 1;
            own.failures.push(format!("{name} ended without a result"));
        }
        if own.passed + own.failed + own.ignored > 0 || !passed {
            let word = if passed { "passed" } else { "FAILED" };
            let (now, took) = (in_minutes(self.began), began.elapsed().as_secs());
            println!("[{now}] {word} {name}: {own} in {took} s, of processors {processors} s");
        }
        if !passed {
            let mut shown = Vec::new();
            Tally::default().stream(output.as_slice(), &mut shown)?;
            println!("{}{}", String::from_utf8_lossy(&shown), String::from_utf8_lossy(&errors));
            let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            let tests = failed_tests(&String::from_utf8_lossy(&output));
            let unasked = String::from_utf8_lossy(&output).contains(UNASKED);
            state.failed.push(Failed { program, part, tests, unasked, shown });
        }
        state.tally.add(own);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = "TURN";

    /// A program with one test, which fails at its first so many runs.
    fn fails(times: usize, test: &str) -> Program {
        let file = target().join("tests").join(format!("turns-{}-{times}-{test}", std::process::id()));
        let script = format!(
            "n=$(cat {0} 2>/dev/null || echo 0); echo $((n+1)) > {0}; if [ $n -lt {times} ]; then o=FAILED; c=1; else o=ok; c=0; fi; \
             echo \"test {test} ... $o\"; echo \"test result: $o. $((1-c)) passed; $c failed; 0 ignored; 0 measured\"; exit $c",
            file.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, TURN]);
        Program { name: format!("{times} {test}"), command, has_own_harness: false }
    }

    #[test]
    fn a_test_is_unsteady_if_it_passes_alone_and_the_model_never_is() {
        let mut tally = Tally::default();
        let programs = vec![fails(0, "steady"), fails(1, "shaken"), fails(2, "wrong"), fails(1, NEVER_AGAIN)];
        let mut failed = run(programs, false, &[], &mut tally).unwrap();
        failed.sort();
        let of = |failed: &str| failed.split(" (").next().unwrap().to_owned();
        assert_eq!(failed.iter().map(|failed| of(failed)).collect::<Vec<_>>(), ["1 any_script", "2 wrong"]);
        assert_eq!((tally.passed, tally.failed, tally.unsteady.len()), (2, 2, 1), "{tally:?}");
        assert!(tally.unsteady[0].contains("shaken"), "{tally:?}");
    }
}
