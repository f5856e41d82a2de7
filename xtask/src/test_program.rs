//! The programs of tests that cargo builds, as it tells of them.

use std::path::{Path, PathBuf};

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
