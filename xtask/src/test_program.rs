//! The programs of tests that cargo builds, as it tells of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A program of tests that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestProgram {
    /// The folder of its package, in which it runs.
    pub(crate) folder: PathBuf,
    /// The name of its package.
    pub(crate) package: String,
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
        let folder = path(&message["manifest_path"])?.parent().map(Path::to_owned)?;
        is_test.then_some(Self {
            folder,
            package: package(message["package_id"].as_str()?)?.to_owned(),
            tests: tests.to_owned(),
            executable: path(&message["executable"])?,
        })
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

/// The names in what a program of tests lists.
pub(crate) fn names(listed: &str) -> Vec<String> {
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// The name in an id such as `path+file:///here/crates/file#leasehold-file@0.1.0`, or `path+file:///here/xtask#0.0.0` for a package
/// that is named like its folder.
fn package(id: &str) -> Option<&str> {
    let (folder, rest) = id.split_once('#')?;
    Some(rest.split_once('@').map_or_else(|| folder.rsplit('/').next().unwrap_or(folder), |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, test: bool, executable: Option<&str>) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///here/crates/file#leasehold-file@0.1.0",
            "manifest_path": "/here/crates/file/Cargo.toml",
            "target": {"kind": [kind], "name": "damage", "src_path": "/here/crates/file/tests/damage.rs"},
            "profile": {"test": test},
            "executable": executable,
        })
        .to_string()
    }

    #[test]
    fn listed_tests_are_told_from_what_else_is_printed() {
        let listed =
            "warning: x\nqueue::a_test: test\netcd::c01_one::queue_off: test\n2 tests, 0 benchmarks\nbench: bench\n";
        assert_eq!(names(listed), ["queue::a_test", "etcd::c01_one::queue_off"]);
    }

    #[test]
    fn a_program_of_tests_is_told_from_other_artifacts() {
        let program = TestProgram::read(&message("test", true, Some("/target/damage-1"))).unwrap();
        assert_eq!(program.folder, Path::new("/here/crates/file"));
        assert_eq!(program.executable, Path::new("/target/damage-1"));
        assert_eq!((program.package.as_str(), program.tests.as_str()), ("leasehold-file", "damage"));
        assert_eq!(package("path+file:///here/xtask#0.0.0"), Some("xtask"));
        assert_eq!(TestProgram::read(&message("lib", true, Some("/target/file-1"))).unwrap().tests, "lib");
        assert_eq!(TestProgram::read(&message("test", false, Some("/target/damage-1"))), None);
        assert_eq!(TestProgram::read(&message("test", true, None)), None);
        assert_eq!(TestProgram::read("     Running something"), None);
    }
}
