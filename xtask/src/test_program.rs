//! The programs of tests that cargo builds, as it tells of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A program of tests that cargo has built.
#[derive(Clone, Debug)]
pub(crate) struct TestProgram {
    /// The folder of its package, in which it runs.
    pub(crate) folder: PathBuf,
    /// The name of the tests: `lib` for those of units.
    pub(crate) tests: String,
    pub(crate) executable: PathBuf,
}

impl TestProgram {
    /// Reads what cargo prints with `test --no-run --message-format=json`.
    pub(crate) fn read_all(messages: &str) -> Vec<Self> {
        messages.lines().filter_map(Self::read).collect()
    }

    /// Reads a line of it: `None` where it is not about a program of tests.
    fn read(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let target = &message["target"];
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let tests = if target["kind"][0] == "test" { target["name"].as_str()? } else { "lib" };
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let executable = message["executable"].as_str()?.into();
        is_test.then(|| Self { folder, tests: tests.to_owned(), executable })
    }
}

/// Tests of a package: those of its units (`lib`), the conformance suite, a module of its program `it`, or another program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a>(pub(crate) &'a str);

impl<'a> Part<'a> {
    /// The name of the program.
    pub(crate) fn program(self) -> &'a str {
        if ["lib", "model"].contains(&self.0) { self.0 } else { "it" }
    }

    /// The arguments by which cargo builds the program.
    pub(crate) fn target(self) -> Vec<&'a str> {
        if self.0 == "lib" { vec!["--lib"] } else { vec!["--test", self.program()] }
    }

    /// Lets the program run these tests, or of them only those with these names.
    pub(crate) fn select(self, command: &mut Command, only: Option<&[&str]>) {
        let is_suite = self.0 == "conformance";
        match only {
            Some(names) => _ = command.arg("--exact").args(names),
            None if self.program() == "it" && !is_suite => _ = command.arg(format!("{}::", self.0)),
            None => {}
        }
        if is_suite {
            command.env("LEASEHOLD_TESTS", "suite");
        }
    }
}
