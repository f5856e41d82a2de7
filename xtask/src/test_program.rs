//! The programs of tests that cargo builds, as it tells of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A program of tests that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestProgram {
    /// The folder of its package, in which it runs.
    pub(crate) folder: PathBuf,
    /// The file that it is built from.
    pub(crate) source: PathBuf,
    /// The name of the tests: `lib` for those of units.
    pub(crate) tests: String,
    pub(crate) executable: PathBuf,
}

impl TestProgram {
    /// Reads a line of `cargo test --no-run --message-format=json`: `None` where it is not about a program of tests.
    pub(crate) fn read(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let target = &message["target"];
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let tests = if target["kind"][0] == "test" { target["name"].as_str()? } else { "lib" };
        is_test.then_some(Self {
            folder: path(&message["manifest_path"])?.parent().map(Path::to_owned)?,
            source: path(&target["src_path"])?,
            tests: tests.to_owned(),
            executable: path(&message["executable"])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, test: bool, executable: Option<&str>) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/here/crates/file/Cargo.toml",
            "target": {"kind": [kind], "name": "damage", "src_path": "/here/crates/file/tests/damage.rs"},
            "profile": {"test": test},
            "executable": executable,
        })
        .to_string()
    }

    #[test]
    fn a_program_of_tests_is_told_from_other_artifacts() {
        let program = TestProgram::read(&message("test", true, Some("/target/damage-1"))).unwrap();
        assert_eq!(program.folder, Path::new("/here/crates/file"));
        assert_eq!(program.executable, Path::new("/target/damage-1"));
        assert_eq!(program.tests, "damage");
        assert_eq!(TestProgram::read(&message("lib", true, Some("/target/file-1"))).unwrap().tests, "lib");
        assert_eq!(TestProgram::read(&message("test", false, Some("/target/damage-1"))), None);
        assert_eq!(TestProgram::read(&message("test", true, None)), None);
        assert_eq!(TestProgram::read("     Running something"), None);
    }
}
