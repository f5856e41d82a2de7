//! The state machine of the engine: the core alone, without what only its other tests need. That builds in less than a minute.

use std::time::Duration;

use super::equivalent::STATE as EQUIVALENT;
use super::rules;
use super::subject::{Look, Subject, is_rust, root_of_changed};
use crate::mutants::copy::Copy;

const ROOT: &str = "crates/core/src/lib.rs";
const SOURCES: &str = "crates/core/src/engine/state";

/// The state machine's text is another in the copy.
const UNITS: &[&str] = &["tests::", "--skip", "imports::"];
const ALL: &[&str] = &["--skip", "imports::"];
/// The runs, in this order, each with the factor by which fewer situations are searched than in the tests. Most mutants are
/// noticed by the first one, which takes less than a second.
const LOOKS: [(&[&str], u32, bool); 4] = [(UNITS, 1, false), (ALL, 256, false), (ALL, 16, false), (ALL, 1, true)];

pub(super) fn subject() -> Result<Subject, String> {
    let look = |(filter, share, thorough): (_, u32, _)| Look {
        folder: "crates/core",
        tests: "lib",
        filter,
        environment: vec![("LEASEHOLD_SEARCH_SHARE", share.to_string()), ("RUST_TEST_THREADS", "1".to_owned())],
        thorough,
    };
    Copy::create("state", alone).map(|copy| Subject {
        copy,
        // The suite is not there.
        features: &[],
        package: "leasehold-core".to_owned(),
        root: ROOT.to_owned(),
        sources: SOURCES.to_owned(),
        looks: LOOKS.map(look).into(),
        slower: 10,
        least: Duration::from_secs(5),
        asks_twice: false,
        at_once: 1,
        equivalent: EQUIVALENT,
        rules: rules::STATE,
        enough: 98,
    })
}

/// The content of a file in this copy. Tests of other things are no business of the state's, nor is the suite of the backends.
fn alone(name: &str, text: Vec<u8>) -> Option<Vec<u8>> {
    let text = String::from_utf8(text).ok()?;
    let text = match name {
        "Cargo.lock" => text,
        "Cargo.toml" => workspace(&text),
        "crates/core/Cargo.toml" => manifest(&text),
        ROOT => root_of_changed(&without_tests(&text)),
        name if name.starts_with("crates/core/src/conformance/") || name.starts_with(SOURCES) => return None,
        name if name.starts_with("crates/core/src/") && is_rust(name.as_ref()) => without_tests(&text),
        _ => return None,
    };
    Some(text.into_bytes())
}

fn without_tests(text: &str) -> String {
    text.split("\n#[cfg(test)]\n").next().unwrap_or_default().to_owned()
}

/// A workspace of the core alone.
fn workspace(text: &str) -> String {
    let rest = text.find("[workspace.package]").map_or("", |at| &text[at..]);
    let rest = rest.replace("\"line-tables-only\"", "false").replace("leasehold-search", "leasehold-core");
    format!("[workspace]\nresolver = \"3\"\nmembers = [\"crates/core\"]\n\n{rest}")
}

/// The core's package without what only other tests of it need.
fn manifest(text: &str) -> String {
    let package = text.split("\n[dev-dependencies]").next().unwrap_or_default().replace("\"dep:rand\", ", "");
    // The search draws its paths at random.
    package.replace("rand = { workspace = true, optional = true }", "rand.workspace = true")
}
