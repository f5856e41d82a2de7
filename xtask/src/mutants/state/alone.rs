//! Copies the core into a package of its own, without what only its other tests need. That builds in less than a minute.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::{cargo, root, target};

/// The function that reads the number of the active mutant from the environment. It is added to the copy.
const WHICH: &str = "
pub(crate) fn mutant() -> usize {
    static WHICH: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {
        std::env::var(\"LEASEHOLD_MUTANT\").map_or(usize::MAX, |number| number.parse().unwrap())
    });
    *WHICH
}
";

/// The folders of the state machine, in the core and in the copy.
pub(super) const STATE: &str = "src/engine/state";

#[derive(Debug)]
pub(super) struct Alone(pub(super) PathBuf);

impl Alone {
    pub(super) fn create() -> Result<Self, String> {
        let alone = Self(target().join("mutants/state"));
        let core = root().join("crates/core");
        // What is gone in the core is gone here.
        let _ = fs::remove_dir_all(alone.0.join("src"));
        for name in sources(&core, Path::new("src"))? {
            alone.write(&name, &alone_text(&name, &read(&core.join(&name))?))?;
        }
        alone.write("Cargo.toml", &manifest(&read(&core.join("Cargo.toml"))?, &read(&root().join("Cargo.toml"))?))?;
        alone.write("Cargo.lock", &read(&root().join("Cargo.lock"))?)?;
        Ok(alone)
    }

    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        read(&self.0.join(name))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|failure| format!("{}: {failure}", path.display()))
    }

    /// Builds the tests. Returns the compiler's output, with one error a line, and the program of the tests if it was built.
    pub(super) fn build(&self) -> Result<(String, Option<PathBuf>), String> {
        let built = self
            .cargo(&["test", "--lib", "--no-run", "--message-format=json-diagnostic-short"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .map_err(|failure| format!("cargo test --no-run: {failure}"))?;
        let said = String::from_utf8_lossy(&built.stdout);
        let program = said.lines().filter_map(super::super::executable).next_back();
        let errors = String::from_utf8_lossy(&built.stderr).into_owned() + &said;
        Ok((errors, program.filter(|_| built.status.success())))
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        // Here it pays to keep what an earlier build knows.
        command.args(arguments).current_dir(&self.0).env("CARGO_INCREMENTAL", "1");
        command.env("CARGO_TARGET_DIR", self.0.join("target"));
        command
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|failure| format!("{}: {failure}", path.display()))
}

/// The names of the Rust files below a folder of the core, without the suite of the backends.
fn sources(core: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let failure = |failure| format!("{}: {failure}", folder.display());
    for entry in fs::read_dir(core.join(folder)).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let name = folder.join(entry.file_name());
        if entry.path().is_dir() && !name.ends_with("conformance") {
            names.extend(sources(core, &name)?);
        } else if name.extension().is_some_and(|kind| kind == "rs") {
            names.extend(name.to_str().map(str::to_owned));
        }
    }
    Ok(names)
}

/// The content of a file of the core in this copy.
fn alone_text(name: &str, text: &str) -> String {
    if name.starts_with(STATE) {
        return text.to_owned();
    }
    // Tests of other things are no business of the state's.
    let text = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    if name != "src/lib.rs" {
        return text.to_owned();
    }
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("#![doc")).collect();
    ["#![allow(warnings, arithmetic_overflow, unconditional_panic)]", &lines.join("\n"), WHICH].join("\n")
}

/// The core's package as its own workspace, without what only other tests of it need.
fn manifest(core: &str, workspace: &str) -> String {
    let package = core.split("\n[dev-dependencies]").next().unwrap_or_default();
    let rest: Vec<_> = workspace.lines().filter(|line| !line.contains("members = ")).collect();
    format!("{package}\n[lib]\ndoctest = false\n\n{}\n", rest.join("\n").replace("\"line-tables-only\"", "false"))
}
