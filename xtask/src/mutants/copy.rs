//! A copy of the workspace, in which what is wrong is built.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::list::Mutant;
use crate::test_program::TestProgram;
use crate::workspace::{cargo, root, target};

/// A copy of the workspace in which mutants are built, with a target folder of its own.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) tree: PathBuf,
    pub(super) target: PathBuf,
}

impl Copy {
    /// Copies what is under version control. Each copy has a target folder of its own: cargo gives the same names to what it
    /// builds of two copies.
    /// Files below the folder `except` are left to who changes them.
    pub(super) fn create(name: &str, except: Option<&str>) -> Result<Self, String> {
        let folder = target().join("mutants").join(name);
        let copy = Self { tree: folder.join("tree"), target: folder.join("target") };
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
        let listed = listed.map_err(|e| format!("git ls-files: {e}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let names: HashSet<&str> = listed.split_terminator('\0').collect();
        let is_left = |name: &Path| {
            except.is_some_and(|folder| name.starts_with(folder)) && name.extension().is_some_and(|kind| kind == "rs")
        };
        for name in names.iter().filter(|name| !is_left(Path::new(name))) {
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
    pub(super) fn patched(&self, mutant: &Mutant) -> Result<String, String> {
        let text = fs::read_to_string(self.tree.join(mutant.file)).map_err(|e| format!("{}: {e}", mutant.file))?;
        match text.matches(mutant.right).count() {
            1 => Ok(text.replacen(mutant.right, mutant.instead, 1)),
            times => Err(format!("{:?} stands {times} times in {}: {}", mutant.right, mutant.file, mutant.wrong)),
        }
    }

    /// Runs `work` while the file has this text, and restores the file.
    pub(super) fn with<T>(
        &self,
        name: &str,
        text: &str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let write = |text: &[u8]| fs::write(self.tree.join(name), text).map_err(|e| format!("{name}: {e}"));
        let right = fs::read(self.tree.join(name)).map_err(|e| format!("{name}: {e}"))?;
        write(text.as_bytes())?;
        let done = work();
        write(&right)?;
        done
    }

    /// Builds these tests, and returns the path of their program.
    pub(super) fn build(&self, package: &str, tests: &str) -> Result<PathBuf, String> {
        let arguments = ["test", "--quiet", "--no-run", "--all-features", "--message-format=json"];
        let target = if tests == "lib" { vec!["--lib"] } else { vec!["--test", tests] };
        let mut command = cargo();
        command
            .args(arguments)
            .args(target)
            .args(["-p", package])
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target);
        let built = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo test --no-run: {e}"))?;
        let messages = String::from_utf8_lossy(&built.stdout);
        let program = messages.lines().filter_map(TestProgram::read).next_back();
        program
            .map(|program| program.executable)
            .filter(|_| built.status.success())
            .ok_or_else(|| format!("{package} does not build"))
    }
}
