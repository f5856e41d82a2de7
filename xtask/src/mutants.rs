//! `cargo xtask mutants`: has `cargo-mutants` change the engine's state machine, or the crate around a driver, in every small way that it
//! knows, and looks whether tests notice. What changes nothing is in `.cargo/mutants.toml`.

mod list;
pub(crate) mod seeded;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::Command;

use crate::command::printed;
use crate::services::Fleet;
use crate::tally::{failed_test, passed_test};
use crate::tools;
use crate::workspace::{read, target};
use crate::worktree::Worktree;

/// Another version may know other changes.
const VERSION: &str = "27.1.0";

/// A script of the model that fails is not made shorter: nobody reads it.
const AS_ASKED: (&str, &str) = ("LEASEHOLD_MODEL_AS_ASKED", "1");

/// Of the suite, the program with every fast path on, and each case once: the local hand-off is the engine's. A wrong parser is wrong
/// about most inputs, and there are hundreds of runs.
const IN_BRIEF: [(&str, &str); 5] = [
    AS_ASKED,
    ("LEASEHOLD_CONFORMANCE_VARIANT", ""),
    ("LEASEHOLD_CONFORMANCE_BRIEF", "1"),
    ("LEASEHOLD_DEEP", "1"),
    ("PROPTEST_CASES", "16"),
];

/// Code that is changed, and what has to notice.
struct Subject {
    /// The word of the command. Without one, it is the first.
    name: &'static str,
    package: &'static str,
    /// The folder of the files that are changed.
    sources: &'static str,
    /// Of a hundred changes, so many may pass.
    spared: usize,
    /// Each is asked of what the looks before it let pass, the quickest first.
    looks: &'static [Look],
}

/// The tests of some packages.
struct Look {
    packages: &'static [&'static str],
    /// Which targets cargo builds.
    target: &'static str,
    /// What the names of the tests have in them.
    filter: &'static str,
    setting: (&'static str, &'static str),
    /// Whether a quick run leaves it out.
    thorough: bool,
}

impl Look {
    /// All tests of these packages but those of their documents.
    const fn at(packages: &'static [&'static str]) -> Self {
        Self { packages, target: "--tests", filter: "", setting: ("", ""), thorough: true }
    }

    /// The tests of the crate itself, without the suite.
    const fn own(packages: &'static [&'static str]) -> Self {
        Self { setting: ("LEASEHOLD_TESTS", "beside"), thorough: false, ..Self::at(packages) }
    }

    const fn doctor(filter: &'static str) -> Self {
        Self { filter, ..Self::at(&["leasehold-cli"]) }
    }

    /// The search, through so many times fewer situations than in a deep run.
    const fn search(share: &'static str, thorough: bool) -> Self {
        let setting = ("LEASEHOLD_SEARCH_SHARE", share);
        Self { target: "--lib", filter: "search::", setting, thorough, ..Self::at(&["leasehold-search"]) }
    }
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        name: "state",
        package: "leasehold-core",
        sources: "crates/core/src/engine/state",
        spared: 2,
        looks: &[
            Look { target: "--lib", filter: "engine::state", ..Look::own(&["leasehold-core"]) },
            Look::search("256", false),
            Look::search("1", true),
        ],
    },
    Subject {
        name: "redis",
        package: "leasehold-redis",
        sources: "crates/redis/src",
        spared: 4,
        looks: &[
            Look::own(&["leasehold-redis"]),
            Look::at(&["leasehold-redis-single"]),
            Look { setting: ("LEASEHOLD_CONFORMANCE_VARIANT", "cluster"), ..Look::at(&["leasehold-redis-single"]) },
            Look::at(&["leasehold-redis-reentrant", "leasehold-redis-rw", "leasehold-redlock"]),
            Look::doctor("doctor::red"),
        ],
    },
    Subject {
        name: "mysql",
        package: "leasehold-mysql",
        sources: "crates/mysql/src",
        spared: 0,
        looks: &[
            Look::own(&["leasehold-mysql"]),
            Look::doctor("doctor::mysql"),
            Look::at(&["leasehold-mysql-rw", "leasehold-mysql-unique"]),
        ],
    },
    Subject {
        name: "postgres",
        package: "leasehold-postgres",
        sources: "crates/postgres/src",
        spared: 5,
        looks: &[
            Look::own(&["leasehold-postgres"]),
            Look::doctor("doctor::postgres"),
            Look::at(&["leasehold-postgres"]),
        ],
    },
    Subject {
        name: "etcd",
        package: "leasehold-etcd",
        sources: "crates/etcd/src",
        spared: 5,
        looks: &[Look::own(&["leasehold-etcd"]), Look::doctor("doctor::etcd"), Look::at(&["leasehold-etcd"])],
    },
];

/// Changes the state machine, or the crate that the first word names: the files with these names, or all. With `--again`, only in ways
/// that no earlier run has noticed; with `--tests=NAME`, for the tests with this in their names; with `--by-test`, all tests run on each
/// change, and those are listed that notice nothing which others do not notice.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let (flags, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
    let tests = flags.iter().find_map(|flag| flag.strip_prefix("--tests="));
    let known =
        |flag: &str| ["--install", "--quick", "--again", "--by-test"].contains(&flag) || flag.starts_with("--tests=");
    if let Some(unknown) = flags.iter().find(|flag| !known(flag)) {
        return Err(format!("no such option: {unknown}"));
    }
    if flags.contains(&"--install") {
        tools::compile("cargo-mutants", VERSION, &[])?;
    }
    let named = words.first().and_then(|name| SUBJECTS.iter().find(|subject| subject.name == *name));
    let (subject, files) = named.map_or((&SUBJECTS[0], &words[..]), |subject| (subject, &words[1..]));
    let looks = subject.looks.iter().filter(|look| !(look.thorough && flags.contains(&"--quick")));
    let fleet = Fleet::start(|_| subject.name != SUBJECTS[0].name)?;
    let mutants = Mutants::of(subject, files)?;
    let mut all = printed(mutants.command()?.arg("--list"))?.lines().count();
    let (mut again, mut passed) = (flags.contains(&"--again"), all);
    for look in looks {
        let mut asks = mutants.command()?;
        asks.args(again.then_some("--iterate")).args(["--cargo-arg", look.target]);
        asks.args(look.packages.iter().flat_map(|package| ["--test-package", package]));
        let by_test = flags.contains(&"--by-test");
        asks.arg("--").args(by_test.then_some("--no-fail-fast")).args(["--", tests.unwrap_or(look.filter)]);
        asks.envs(IN_BRIEF).envs(fleet.environment());
        asks.envs(Some(look.setting).filter(|(name, _)| !name.is_empty()));
        try_all(&mut asks)?;
        if by_test {
            println!("others notice what these notice: {:#?}", mutants.not_needed()?);
        }
        passed = mutants.found("missed")?;
        // What does not compile is no change.
        all -= mutants.found("unviable")?;
        again = true;
        if passed == 0 {
            break;
        }
    }
    println!("{}: {passed} of {all} changes passed; {} may", subject.name, all * subject.spared / 100);
    Ok(passed * 100 <= all * subject.spared)
}

/// Where a subject is changed, and its changes.
struct Mutants {
    worktree: Worktree,
    arguments: Vec<String>,
    /// Where the tool writes down what it found.
    found: std::path::PathBuf,
}

impl Mutants {
    fn of(subject: &Subject, files: &[&str]) -> Result<Self, String> {
        let found = target().join("mutants").join(subject.name);
        fs::create_dir_all(&found).map_err(|failure| format!("{}: {failure}", found.display()))?;
        let mut arguments = vec!["--in-place".to_owned(), format!("--package={}", subject.package)];
        arguments.push(format!("--output={}", found.display()));
        let every = if files.is_empty() { &[""][..] } else { files };
        for file in every.iter().map(|file| file.trim_end_matches(".rs")) {
            let path = [subject.sources, file].join("/");
            arguments.extend([format!("--file={path}.rs"), format!("--file={}/**", path.trim_end_matches('/'))]);
        }
        Ok(Self { worktree: Worktree::of_now("mutants")?, arguments, found })
    }

    fn command(&self) -> Result<Command, String> {
        let program = tools::installed("cargo-mutants");
        let program = program.ok_or("there is no cargo-mutants: cargo xtask mutants --install")?;
        let folders = env::var_os("PATH").unwrap_or_default();
        let folders = program.parent().map(ToOwned::to_owned).into_iter().chain(env::split_paths(&folders));
        let mut command = self.worktree.cargo();
        command.env("PATH", env::join_paths(folders).map_err(|failure| failure.to_string())?);
        command.arg("mutants").args(&self.arguments);
        Ok(command)
    }

    /// How many changes of the last run have this end.
    fn found(&self, end: &str) -> Result<usize, String> {
        Ok(read(&self.found.join("mutants.out").join(end).with_extension("txt"))?.lines().count())
    }

    /// Tests of the last run that can all go, and the others would still notice every change. Those that notice least come first.
    fn not_needed(&self) -> Result<Vec<String>, String> {
        let logs = self.found.join("mutants.out/log");
        let logs = fs::read_dir(&logs).map_err(|failure| format!("{}: {failure}", logs.display()))?;
        let (mut tests, mut noticed_by) = (BTreeMap::<String, Vec<usize>>::new(), Vec::<usize>::new());
        for (change, log) in logs.flatten().enumerate() {
            let printed = read(&log.path())?;
            noticed_by.push(0);
            for line in printed.lines() {
                let failed = failed_test(line);
                let Some(test) = failed.or_else(|| passed_test(line)) else { continue };
                let noticed = tests.entry(test.to_owned()).or_default();
                if failed.is_some() {
                    noticed.push(change);
                    noticed_by[change] += 1;
                }
            }
        }
        let mut tests: Vec<_> = tests.into_iter().collect();
        tests.sort_by_key(|(_, noticed)| noticed.len());
        tests.retain(|(_, noticed)| {
            let others_do = noticed.iter().all(|change| noticed_by[*change] > 1);
            noticed.iter().filter(|_| others_do).for_each(|change| noticed_by[*change] -= 1);
            others_do
        });
        Ok(tests.into_iter().map(|(test, _)| test).collect())
    }
}

/// Runs these tests on the changes.
fn try_all(asks: &mut Command) -> Result<(), String> {
    let status = asks.status().map_err(|failure| format!("cargo mutants: {failure}"))?;
    // Nothing passed, something did, or something hung.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo mutants: {status}"));
    }
    Ok(())
}
