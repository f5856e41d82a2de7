//! What is changed, where that is built, and which tests have to notice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::equivalent::Equivalent;
use super::rules::Rule;
use crate::test_program::{Part, TestProgram};
use crate::workspace::cargo;

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

/// A program of tests: the folder of its package in the copy, and the name of the tests (`lib` for unit tests).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Program {
    pub(super) folder: &'static str,
    pub(super) tests: &'static str,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.folder, self.tests)
    }
}

pub(super) type Programs = BTreeMap<Program, PathBuf>;

/// One run of tests on a mutant.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) program: Program,
    /// The words by which the program chooses tests.
    pub(super) filter: &'static [&'static str],
    pub(super) environment: Vec<(&'static str, String)>,
    /// Whether a quick run leaves it out.
    pub(super) thorough: bool,
}

/// How a mutant is told from one that hangs: it takes this factor longer than the right code, and longer than this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) slower: u32,
    pub(super) least: Duration,
}

/// Code that is changed in a copy, and what has to notice.
#[derive(Debug)]
pub(super) struct Subject {
    /// The copy of the workspace, or of one package.
    pub(super) tree: PathBuf,
    /// The folder from which the changed files come, under the same names.
    pub(super) originals: PathBuf,
    pub(super) target: PathBuf,
    pub(super) incremental: bool,
    pub(super) features: &'static [&'static str],
    pub(super) package: &'static str,
    /// The root of the changed crate, and the folder of the changed files, in the copy.
    pub(super) root: &'static str,
    pub(super) sources: &'static str,
    /// Files in that folder that are not changed.
    pub(super) left_out: &'static [&'static str],
    pub(super) looks: Vec<Look>,
    pub(super) patience: Patience,
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
    pub(super) fn files(&self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let folder = self.originals.join(self.sources);
        sources(&folder, &folder, &mut names).map_err(|failure| format!("{}: {failure}", folder.display()))?;
        Ok(names)
    }

    /// A file of that folder as it is before any change.
    pub(super) fn original(&self, name: &str) -> Result<String, String> {
        read(&self.originals.join(self.sources).join(name))
    }

    /// Writes a file of that folder into the copy, unless it is there already: cargo would build it again.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.tree.join(self.sources).join(name);
        let text = if path == self.tree.join(self.root) { root(text) } else { text.to_owned() };
        if read(&path).is_ok_and(|there| there == text) { Ok(()) } else { write(&path, &text) }
    }

    /// Checks the changed crate alone, which is sooner done than to build the tests. Returns what the compiler said, with one
    /// error a line, and whether it was content.
    pub(super) fn check(&self) -> Result<(String, bool), String> {
        self.cargo(&["check", "--lib", "-p", self.package])
    }

    /// Builds the tests. Returns the same, and the programs if they were built.
    pub(super) fn build(&self) -> Result<(String, Option<Programs>), String> {
        let mut arguments = vec!["test", "--no-run"];
        let wanted: BTreeSet<_> = self.looks.iter().map(|look| look.program).collect();
        let packages: BTreeSet<_> = wanted.iter().map(|program| package(program.folder, self.package)).collect();
        let tests: BTreeSet<_> = wanted.iter().map(|program| Part(program.tests).program()).collect();
        for package in &packages {
            arguments.extend(["-p", package]);
        }
        for tests in tests {
            if tests == "lib" { arguments.push("--lib") } else { arguments.extend(["--test", tests]) }
        }
        let (said, built) = self.cargo(&arguments)?;
        if !built {
            return Ok((said, None));
        }
        let programs: Programs = said.lines().flat_map(|line| self.programs(line, &wanted)).collect();
        match wanted.iter().find(|program| !programs.contains_key(program)) {
            Some(missing) => Err(format!("{}: there are no tests {}", missing.folder, missing.tests)),
            None => Ok((said, Some(programs))),
        }
    }

    /// Reads a message of cargo about a program that it built: it has several of the wanted tests.
    fn programs(&self, message: &str, wanted: &BTreeSet<Program>) -> Vec<(Program, PathBuf)> {
        let Some(built) = TestProgram::read(message) else { return Vec::new() };
        let is_in = |program: &&Program| {
            built.folder == self.tree.join(program.folder) && Part(program.tests).program() == built.tests
        };
        wanted.iter().filter(is_in).map(|program| (*program, built.executable.clone())).collect()
    }

    fn cargo(&self, arguments: &[&str]) -> Result<(String, bool), String> {
        let failure = |failure| format!("cargo {}: {failure}", arguments[0]);
        let mut command: Command = cargo();
        command.args(arguments).args(self.features).arg("--message-format=json-diagnostic-short");
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_INCREMENTAL", if self.incremental { "1" } else { "0" });
        let done = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().map_err(failure)?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
        Ok((said, done.status.success()))
    }
}

/// The package in a folder of the workspace, or the one that is its own workspace.
fn package(folder: &str, alone: &str) -> String {
    folder.strip_prefix("crates/").map_or_else(|| alone.to_owned(), |name| format!("leasehold-{name}"))
}

/// The root of a changed crate: with what its arms need.
pub(super) fn root(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("#![doc")).collect();
    [ALLOWED, &lines.join("\n"), WHICH].concat()
}

fn sources(root: &Path, folder: &Path, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(root, &path, names)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            names.extend(path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned));
        }
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|failure| format!("{}: {failure}", path.display()))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|failure| format!("{}: {failure}", path.display()))
}
