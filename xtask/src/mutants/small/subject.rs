//! What is changed, where that is built, and which tests have to notice.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::equivalent::Equivalent;
use super::rules::Rule;
use crate::mutants::copy::Copy;
use crate::test_program::{Part, TestProgram};
use crate::workspace::{files, root};

/// The functions that read the number of the active mutant from the environment, and that write down which changed functions
/// are reached. They are added to the changed crate.
const WHICH: &str = r#"
pub(crate) fn mutant(function: usize) -> usize {
    static WHICH: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {
        std::env::var("LEASEHOLD_MUTANT").map_or(usize::MAX, |number| number.parse().unwrap())
    });
    static REACHED: std::sync::LazyLock<Option<std::sync::Mutex<(std::fs::File, std::collections::BTreeSet<usize>)>>> =
        std::sync::LazyLock::new(|| {
            let file = std::env::var_os("LEASEHOLD_REACHED")?;
            let file = std::fs::File::options().append(true).open(file).unwrap();
            Some(std::sync::Mutex::new((file, Default::default())))
        });
    if let Some(reached) = &*REACHED {
        let (file, functions) = &mut *reached.lock().unwrap();
        if functions.insert(function) {
            std::io::Write::write_all(file, format!("{function}\n").as_bytes()).unwrap();
        }
    }
    *WHICH
}
"#;

/// What a changed crate allows: its arms are made by a program.
const ALLOWED: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n";

/// One run of tests on a mutant.
#[derive(Debug)]
pub(super) struct Look {
    /// The folder of the package, and the name of the tests (`lib` for unit tests).
    pub(super) folder: &'static str,
    pub(super) tests: &'static str,
    /// The words by which the program chooses tests.
    pub(super) filter: &'static [&'static str],
    pub(super) environment: Vec<(&'static str, String)>,
    /// Whether a quick run leaves it out.
    pub(super) thorough: bool,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.folder, self.tests)
    }
}

/// Code that is changed in a copy, and what has to notice.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) copy: Copy,
    pub(super) features: &'static [&'static str],
    pub(super) package: String,
    /// The root of the changed crate, and the folder of the changed files.
    pub(super) root: String,
    pub(super) sources: String,
    pub(super) looks: Vec<Look>,
    /// How a mutant is told from one that hangs: it takes this factor longer than the right code, and longer than this time.
    pub(super) slower: u32,
    pub(super) least: Duration,
    /// Whether tests that fail have to do so again, because a busy machine may have disturbed them.
    pub(super) asks_twice: bool,
    /// How many mutants run at the same time, for each processor.
    pub(super) at_once: usize,
    pub(super) equivalent: &'static [Equivalent],
    /// Rules that are left out, one at a time, beside the changes that the tool knows.
    pub(super) rules: &'static [Rule],
    /// Percentage of the mutants that have to be noticed, of those that change the behaviour.
    pub(super) enough: usize,
}

impl Subject {
    /// The names of the Rust files in the folder of the changed files, from there on.
    pub(super) fn files(&self) -> Vec<String> {
        let folder = root().join(&self.sources);
        let rust = files(&folder).into_iter().filter(|file| is_rust(file));
        let mut names: Vec<_> =
            rust.filter_map(|file| file.strip_prefix(&folder).ok()?.to_str().map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// Writes a file of that folder into the copy.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let name = format!("{}/{name}", self.sources);
        let text = if name == self.root { root_of_changed(text) } else { text.to_owned() };
        self.copy.write(&name, in_one_program(&text).as_bytes())
    }

    /// Checks the changed crate alone, which is sooner done than to build the tests. Returns what the compiler said, with one
    /// error a line, and whether it was content.
    pub(super) fn check(&self) -> Result<(String, bool), String> {
        self.cargo(&["check", "--lib", "-p", &self.package])
    }

    /// Builds the tests. Returns the same.
    pub(super) fn build(&self) -> Result<(String, bool), String> {
        let packages: BTreeSet<_> =
            self.looks.iter().map(|look| look.folder.replace("crates/", "leasehold-")).collect();
        let tests: BTreeSet<_> = self.looks.iter().map(|look| Part(look.tests).target()).collect();
        let mut arguments = vec!["test", "--no-run"];
        arguments.extend(packages.iter().flat_map(|package| ["-p", package]));
        arguments.extend(tests.into_iter().flatten());
        self.cargo(&arguments)
    }

    fn cargo(&self, arguments: &[&str]) -> Result<(String, bool), String> {
        let mut command = self.copy.cargo();
        command.args(arguments).args(self.features).arg("--message-format=json-diagnostic-short");
        let done = command.output().map_err(|failure| format!("cargo {}: {failure}", arguments[0]))?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
        Ok((said, done.status.success()))
    }

    /// Of the programs that were built, the one of this look.
    pub(super) fn program_of<'p>(&self, look: &Look, built: &'p [TestProgram]) -> Option<&'p Path> {
        let is_it = |program: &&TestProgram| {
            program.folder == self.copy.tree.join(look.folder) && program.tests == Part(look.tests).program()
        };
        built.iter().find(is_it).map(|program| program.executable.as_path())
    }
}

pub(super) fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind == "rs")
}

/// The root of a changed crate: with what its arms need.
pub(super) fn root_of_changed(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("#![doc")).collect();
    [ALLOWED, &lines.join("\n"), WHICH].concat()
}

/// The search through the states of the engine is otherwise in another program than the unit tests.
fn in_one_program(text: &str) -> String {
    text.replace("all(test, leasehold_search)", "test").replace("all(test, not(leasehold_search))", "test")
}
