//! `cargo xtask mutants --suite`: breaks real backends on purpose, one line at a time, and checks that the suite notices.

mod list;
pub(crate) mod state;

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use crate::services::Fleet;
use crate::workspace::{cargo, root, target};

use list::{MUTANTS, Mutant};

/// Runs the suite on each mutant whose backend or fault contains one of the words, or on all.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let chosen = |mutant: &&Mutant| {
        words.is_empty() || words.iter().any(|word| mutant.backend == *word || mutant.wrong.contains(word))
    };
    let chosen: Vec<_> = MUTANTS.iter().filter(chosen).collect();
    let copy = Copy::create()?;
    for mutant in &chosen {
        copy.patched(mutant)?;
    }
    let fleet = Fleet::start()?;
    fleet.describe();

    let mut backends: Vec<_> = chosen.iter().map(|mutant| mutant.backend).collect();
    backends.dedup();
    for backend in backends {
        if let Verdict::Caught(by) = suite(&copy, backend, &fleet)? {
            return Err(format!("{backend} fails {by} without any patch"));
        }
    }
    let mut caught = 0;
    for mutant in &chosen {
        let began = Instant::now();
        let patched = copy.patched(mutant)?;
        let by = match copy.with(mutant.file, &patched, || suite(&copy, mutant.backend, &fleet)) {
            Ok(Verdict::Caught(by)) => {
                caught += 1;
                format!("caught by {by}")
            }
            Ok(Verdict::Passed) => "SURVIVED".to_owned(),
            Err(why) => format!("NOT RUN: {why}"),
        };
        println!("{:13} {:62} {by} ({} s)", mutant.backend, mutant.wrong, began.elapsed().as_secs());
    }
    println!("\nmutants: {caught} of {} caught", chosen.len());
    Ok(if caught == chosen.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of the suite.
enum Verdict {
    Passed,
    /// The first case that failed. The suite was ended then.
    Caught(String),
}

/// Builds and runs the suite of a backend in the copy, until the first case fails.
fn suite(copy: &Copy, backend: &str, fleet: &Fleet) -> Result<Verdict, String> {
    let (package, folder) = match backend {
        "memory" => ("leasehold-core".to_owned(), "core"),
        name => (format!("leasehold-{name}"), name),
    };
    let mut child = Command::new(copy.build(&package)?)
        .current_dir(copy.tree.join("crates").join(folder))
        .envs(fleet.environment())
        // The variant that has no name: a program with every fast path on.
        .env("LEASEHOLD_CONFORMANCE_VARIANT", "")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("the suite of {backend}: {e}"))?;
    let failed = child.stdout.take().and_then(first_failure);
    let passed = end(&mut child, failed.is_some())?;
    match failed {
        Some(case) => Ok(Verdict::Caught(case)),
        None if passed => Ok(Verdict::Passed),
        None => Err(format!("the suite of {backend} ended without a failed case")),
    }
}

/// Reads a line such as `test memory::c01_distinct_keys_do_not_contend ... FAILED`.
fn first_failure(output: impl Read) -> Option<String> {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let mut failures = lines.filter(|line| line.starts_with("test ") && line.ends_with("FAILED"));
    let line = failures.next()?;
    let name = line.split_whitespace().nth(1)?;
    Some(name.split("::").skip(1).collect::<Vec<_>>().join("::"))
}

/// Waits for the suite, or ends it when it takes too long. Returns true if it passed.
fn end(suite: &mut Child, at_once: bool) -> Result<bool, String> {
    if at_once {
        // It may have ended by itself.
        let _ = suite.kill();
    }
    suite.wait().map(|status| status.success()).map_err(|e| format!("the suite: {e}"))
}

/// A copy of the workspace in which mutants are built, with a target folder of its own.
#[derive(Debug)]
struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn create() -> Result<Self, String> {
        let folder = target().join("mutants");
        let copy = Self { tree: folder.join("tree"), target: folder.join("target") };
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
        let listed = listed.map_err(|e| format!("git ls-files: {e}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let names: HashSet<&str> = listed.split_terminator('\0').collect();
        for name in &names {
            copy.bring(name)?;
        }
        copy.forget(Path::new(""), &names).map_err(|e| format!("{}: {e}", copy.tree.display()))?;
        Ok(copy)
    }

    /// Removes files of an earlier copy that the workspace does not have any more: cargo would take them for tests.
    fn forget(&self, folder: &Path, names: &HashSet<&str>) -> io::Result<()> {
        for entry in fs::read_dir(self.tree.join(folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.forget(&name, names)?;
            } else if !name.to_str().is_some_and(|name| names.contains(name)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Copies the files that differ. The others stay as they are, so that cargo does not build them again.
    fn bring(&self, name: &str) -> Result<(), String> {
        let Ok(text) = fs::read(root().join(name)) else { return Ok(()) };
        let there = self.tree.join(name);
        if fs::read(&there).is_ok_and(|same| same == text) {
            return Ok(());
        }
        let written = fs::create_dir_all(there.parent().unwrap_or(&there)).and_then(|()| fs::write(&there, text));
        written.map_err(|e| format!("{}: {e}", there.display()))
    }

    /// The text of the mutant's file. Fails if the text that the mutant replaces is not in it: the mutant would change nothing.
    fn patched(&self, mutant: &Mutant) -> Result<String, String> {
        let text = fs::read_to_string(self.tree.join(mutant.file)).map_err(|e| format!("{}: {e}", mutant.file))?;
        match text.matches(mutant.right).count() {
            1 => Ok(text.replacen(mutant.right, mutant.instead, 1)),
            times => Err(format!("{:?} stands {times} times in {}: {}", mutant.right, mutant.file, mutant.wrong)),
        }
    }

    /// Runs `work` while the file has this text, and restores the file.
    fn with<T>(&self, name: &str, text: &str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let write = |text: &[u8]| fs::write(self.tree.join(name), text).map_err(|e| format!("{name}: {e}"));
        let right = fs::read(self.tree.join(name)).map_err(|e| format!("{name}: {e}"))?;
        write(text.as_bytes())?;
        let done = work();
        write(&right)?;
        done
    }

    /// Builds the suite, and returns the path of its program.
    fn build(&self, package: &str) -> Result<PathBuf, String> {
        let arguments =
            ["test", "--quiet", "--no-run", "--all-features", "--message-format=json", "--test", "conformance"];
        let mut command = cargo();
        command.args(arguments).args(["-p", package]).current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        let built = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo test --no-run: {e}"))?;
        let messages = String::from_utf8_lossy(&built.stdout);
        let program = messages.lines().filter_map(executable).next_back();
        program.filter(|_| built.status.success()).ok_or_else(|| format!("{package} does not build"))
    }
}

/// Reads the path in `… "executable":"/where/it/is" …`, from a message of cargo.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, path) = message.split_once("\"executable\":\"")?;
    Some(Path::new(path.split_once('"')?.0).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_changes_one_place_that_is_there() {
        for mutant in MUTANTS {
            let text = fs::read_to_string(root().join(mutant.file)).expect(mutant.file);
            assert_eq!(text.matches(mutant.right).count(), 1, "{}: {}", mutant.file, mutant.right);
            assert_ne!(mutant.right, mutant.instead, "{}", mutant.wrong);
        }
    }

    #[test]
    fn there_are_enough_of_each_backend() {
        for backend in ["memory", "file", "redis-single", "mysql-unique"] {
            assert!(MUTANTS.iter().filter(|mutant| mutant.backend == backend).count() >= 6, "{backend}");
        }
    }

    #[test]
    fn the_first_failure_is_found() {
        let printed = "test memory::c01_one ... ok\ntest memory::c02_two::with_local_handoff_off   ... FAILED\ntest memory::c03 ... FAILED\n";
        assert_eq!(first_failure(printed.as_bytes()).as_deref(), Some("c02_two::with_local_handoff_off"));
        assert_eq!(first_failure("test memory::c01_one ... ok\n".as_bytes()), None);
    }

    #[test]
    fn the_program_is_found_in_what_cargo_says() {
        let message = r#"{"reason":"compiler-artifact","executable":"/t/deps/conformance-1","fresh":true}"#;
        assert_eq!(executable(message), Some("/t/deps/conformance-1".into()));
        assert_eq!(executable(r#"{"executable":null}"#), None);
    }
}
