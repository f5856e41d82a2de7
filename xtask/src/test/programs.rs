//! Runs the programs of tests: several at a time, because most tests wait for a lease or a server, and then, one after the other,
//! the tests that need quiet.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::at_once;
use crate::tally::{Tally, failed_test};
use crate::test_program::TestProgram;
use crate::workspace::{Package, cargo, root, target};

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

/// How often it is looked at whether a program has ended.
const LOOKED_EVERY: Duration = Duration::from_millis(10);

/// A program, or the doc tests of packages.
pub(super) struct Program {
    /// The package, and which of its tests: `leasehold-etcd it`.
    name: String,
    /// None: cargo runs it.
    built: Option<TestProgram>,
    arguments: Vec<String>,
    /// Whether its tests that need quiet run by themselves.
    has_own_harness: bool,
}

impl Program {
    pub(super) fn new(program: TestProgram, filters: &[String]) -> Result<Self, String> {
        let package = Package::at(&program.folder.to_string_lossy())?;
        let name = format!("{} {}", package.name, program.tests);
        let has_own_harness = program.tests == "it" && package.has_own_harness();
        // The other tests of that package are those of core, which run there.
        let only = (package.name == "leasehold-search" && filters.is_empty()).then(|| "search::".to_owned());
        let arguments = filters.iter().cloned().chain(only).collect();
        Ok(Self { name, built: Some(program), arguments, has_own_harness })
    }

    /// The doc tests of the packages in these arguments: all that were built, because cargo would build fewer with other features.
    pub(super) fn of_documents<'a>(packages: impl Iterator<Item = &'a str>) -> Self {
        let asked = ["test", "--doc", "--no-fail-fast", "--all-features"].into_iter().chain(packages);
        let arguments = asked.map(str::to_owned).collect();
        Self { name: "doc tests".to_owned(), built: None, arguments, has_own_harness: false }
    }

    fn rank(&self) -> usize {
        LONGEST.iter().position(|name| *name == self.name).unwrap_or(LONGEST.len())
    }
}

/// What all that run share.
struct Run<'a> {
    began: Instant,
    environment: &'a [(&'static str, String)],
}

/// A program, or a part of its tests, that failed.
struct Failed<'a> {
    program: &'a Program,
    part: &'static str,
    /// None, if the program failed as a whole.
    tests: Vec<String>,
    /// Whether scripts of the model could not be asked.
    unasked: bool,
    /// Where its output is.
    shown: String,
}

/// Runs all of them. Returns the counts, and the names of those that failed, whose output is printed.
pub(super) fn run(
    mut programs: Vec<Program>,
    deep: bool,
    environment: &[(&'static str, String)],
) -> Result<(Tally, Vec<String>), String> {
    programs.sort_by(|one, other| (one.rank(), &one.name).cmp(&(other.rank(), &other.name)));
    fs::create_dir_all(target().join("tests")).map_err(|failure| failure.to_string())?;
    let run = Run { began: Instant::now(), environment };
    let mut ended =
        at_once(&programs, if deep { AT_ONCE_IN_DEPTH } else { AT_ONCE }, |program| run.one(program, "beside"))?;
    for program in programs.iter().filter(|program| program.has_own_harness) {
        ended.push(run.one(program, "quiet")?);
    }
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    for (own, of_it) in ended {
        tally.add(own);
        failed.extend(of_it);
    }
    run.ask_again(&mut failed, &mut tally);
    Ok((tally, failed.iter().map(|failed| format!("{} ({})", failed.program.name, failed.shown)).collect()))
}

/// The time since then, as minutes and seconds.
pub(super) fn in_minutes(began: Instant) -> String {
    let seconds = began.elapsed().as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

impl Run<'_> {
    /// The command for a part of a program's tests.
    fn command(&self, program: &Program, part: &str) -> Command {
        let mut command = program.built.as_ref().map_or_else(cargo, |built| Command::new(&built.executable));
        if let Some(TestProgram { folder, .. }) = &program.built {
            command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        }
        command.args(&program.arguments).env("LEASEHOLD_TESTS", part).env_remove("LEASEHOLD_CONFORMANCE_VARIANT");
        command.envs(self.environment.iter().cloned()).stdin(Stdio::null());
        // A run writes nothing into the sources.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command
    }

    /// Runs one program, or a part of its tests. Its output is kept in files, and printed if it fails.
    fn one<'p>(&self, program: &'p Program, part: &'static str) -> Result<(Tally, Option<Failed<'p>>), String> {
        let (began, name) = (Instant::now(), &program.name);
        println!("[{}] {name} begins", in_minutes(self.began));
        let log = target().join("tests").join(format!("{}-{part}.log", name.replace(' ', "-")));
        let passed = self.logged(program, part, &log).map_err(|failure| format!("{name}: {failure}"))?;
        let output = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        let mut own = Tally::of(&output);
        if !passed && own.failed == 0 {
            own.failed = 1;
            own.failures.push(format!("{name} ended without a result"));
        }
        if own.passed + own.failed + own.ignored > 0 {
            let word = if passed { "passed" } else { "FAILED" };
            let (now, took) = (in_minutes(self.began), began.elapsed().as_secs());
            println!("[{now}] {word} {name}: {own} in {took} s");
        }
        if passed {
            return Ok((own, None));
        }
        let errors = fs::read(log.with_extension("errors")).unwrap_or_default();
        println!("{output}{}", String::from_utf8_lossy(&errors));
        let shown = log.strip_prefix(root()).unwrap_or(&log).display().to_string();
        let tests = output.lines().filter_map(failed_test).map(str::to_owned).collect();
        let unasked = output.contains(UNASKED);
        Ok((own, Some(Failed { program, part, tests, unasked, shown })))
    }

    fn logged(&self, program: &Program, part: &str, log: &Path) -> io::Result<bool> {
        let (began, mut command) = (Instant::now(), self.command(program, part));
        command.stdout(File::create(log)?).stderr(File::create(log.with_extension("errors"))?);
        let mut child = command.spawn()?;
        while began.elapsed() < LIMIT {
            if let Some(ended) = child.try_wait()? {
                return Ok(ended.success());
            }
            thread::sleep(LOOKED_EVERY);
        }
        println!("{} hangs: it is ended after {} minutes", program.name, LIMIT.as_secs() / 60);
        child.kill()?;
        Ok(child.wait()?.success())
    }

    /// Asks the tests that failed once more, and forgives those that pass alone: by name, and among the last lines.
    fn ask_again(&self, all: &mut Vec<Failed<'_>>, tally: &mut Tally) {
        let few = all.iter().map(|failed| failed.tests.len()).sum::<usize>() <= FEW;
        all.retain_mut(|failed| {
            let of_the_model = failed.tests.iter().any(|test| test.contains(NEVER_AGAIN));
            let may_pass = few && !failed.tests.is_empty() && (failed.unasked || !of_the_model);
            if may_pass {
                for test in std::mem::take(&mut failed.tests) {
                    if self.passes_alone(failed, &test) {
                        (tally.failed, tally.passed) = (tally.failed - 1, tally.passed + 1);
                        tally.unsteady.push(format!("{}: {test} ({})", failed.program.name, failed.shown));
                    } else {
                        failed.tests.push(test);
                    }
                }
            }
            !may_pass || !failed.tests.is_empty()
        });
    }

    fn passes_alone(&self, failed: &Failed<'_>, test: &str) -> bool {
        (0..ASKED_AGAIN).all(|_| {
            let output = self.command(failed.program, failed.part).args(["--exact", test]).output();
            let printed = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout)).unwrap_or_default();
            let passes = output.as_ref().is_ok_and(|output| output.status.success()) && Tally::of(&printed).passed == 1;
            if !passes {
                println!("{test} of {} failed again, alone:\n{printed}", failed.program.name);
            }
            passes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with one test, which fails at its first so many runs.
    fn fails(times: usize, test: &str) -> Program {
        let file = target().join("tests").join(format!("turns-{}-{times}-{test}", std::process::id()));
        let script = format!(
            "n=$(cat {0} 2>/dev/null || echo 0); echo $((n+1)) > {0}; if [ $n -lt {times} ]; then o=FAILED; c=1; else o=ok; c=0; fi; \
             echo \"test {test} ... $o\"; echo \"test result: $o. $((1-c)) passed; $c failed; 0 ignored; 0 measured\"; exit $c",
            file.display()
        );
        let sh = TestProgram { folder: root(), tests: test.to_owned(), executable: "sh".into() };
        let arguments = ["-c", &script, "TURN"].map(str::to_owned).to_vec();
        Program { name: format!("{times} {test}"), built: Some(sh), arguments, has_own_harness: false }
    }

    #[test]
    fn a_test_is_unsteady_if_it_passes_alone_and_the_model_never_is() {
        let programs = vec![fails(0, "steady"), fails(1, "shaken"), fails(2, "wrong"), fails(1, NEVER_AGAIN)];
        let (tally, mut failed) = run(programs, false, &[]).unwrap();
        failed.sort();
        let names: Vec<_> = failed.iter().map(|failed| failed.split(" (").next().unwrap()).collect();
        assert_eq!(names, ["1 any_script", "2 wrong"]);
        assert_eq!((tally.passed, tally.failed, tally.unsteady.len()), (2, 2, 1), "{tally:?}");
        assert!(tally.unsteady[0].contains("shaken"), "{tally:?}");
    }
}
