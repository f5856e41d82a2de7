//! `cargo xtask release`: whether a release could be made, beyond what `cargo xtask check` says: the packages, and the public interface.

use std::process::{Command, ExitCode};

use crate::steps::Steps;
use crate::tools;
use crate::workspace::{self, cargo};

/// All published crates are the default members. That the packages compile is part of `RELEASING.md`.
const PACKAGE: &[&str] = &["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"];

const SEMVER_VERSION: &str = "0.51.0";

pub(crate) fn run(install: bool) -> ExitCode {
    let mut steps = Steps::default();
    if install {
        steps.note("install", install_tools());
    }
    self::steps(&mut steps);
    steps.end()
}

pub(crate) fn steps(steps: &mut Steps) {
    steps.run("package", cargo().args(PACKAGE));
    interface(steps);
}

/// `cargo-semver-checks` is compiled only if there is a release to compare with.
fn install_tools() -> Result<(), String> {
    if latest_release()?.is_some() && tools::installed("cargo-semver-checks").is_none() {
        tools::compile("cargo-semver-checks", SEMVER_VERSION, &["--debug"])?;
    }
    Ok(())
}

/// Whether the next version may be what `Cargo.toml` says, by what users of the latest release depend on.
fn interface(steps: &mut Steps) {
    let release = match latest_release() {
        Ok(Some(release)) => release,
        Ok(None) => return steps.skip("semver", "there is no release yet to compare with, that is no tag `v…`"),
        Err(why) => return steps.note("semver", Err(why)),
    };
    let Some(program) = tools::installed("cargo-semver-checks") else {
        return steps.skip("semver", "there is no cargo-semver-checks: install with `cargo xtask release --install`");
    };
    match workspace::libraries() {
        Ok(libraries) => {
            let mut semver = Command::new(program);
            semver.args(["semver-checks", "--all-features", "--baseline-rev", &release]);
            semver.args(libraries.iter().flat_map(|(package, _)| ["-p", package])).current_dir(workspace::root());
            steps.run("semver", &mut semver);
        }
        Err(why) => steps.note("semver", Err(why)),
    }
}

/// The newest tag `v…` from which this commit comes.
fn latest_release() -> Result<Option<String>, String> {
    let mut git = Command::new("git");
    git.args(["tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname"]).current_dir(workspace::root());
    let output = git.output().map_err(|failure| format!("git: {failure}"))?;
    if !output.status.success() {
        return Err(format!("git tag: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
}
