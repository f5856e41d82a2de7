//! The state machine of the engine: the core in a package of its own, without what only its other tests need. That builds in
//! less than a minute.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::equivalent::STATE as EQUIVALENT;
use super::rules;
use super::subject::{self, Look, Patience, Program, Subject, read, write};
use crate::workspace::{root, target};

/// The folder of the state machine, in the core and in the copy.
const STATE: &str = "src/engine/state";
const ROOT: &str = "src/lib.rs";

/// The state machine's text is another in the copy.
const UNITS: &[&str] = &["tests::", "--skip", "imports::"];
const ALL: &[&str] = &["--skip", "imports::"];
/// The runs, in this order, each with the factor by which fewer situations are searched than in the tests. Most mutants are
/// noticed by the first one, which takes less than a second.
const LOOKS: [(&[&str], u32, bool); 4] = [(UNITS, 1, false), (ALL, 256, false), (ALL, 16, false), (ALL, 1, true)];

pub(super) fn subject() -> Result<Subject, String> {
    let tree = target().join("mutants/state");
    let core = root().join("crates/core");
    // What is gone in the core is gone here.
    let _ = fs::remove_dir_all(tree.join("src"));
    for name in sources(&core, Path::new("src"))? {
        write(&tree.join(&name), &alone(&name, &read(&core.join(&name))?))?;
    }
    let manifest = manifest(&read(&core.join("Cargo.toml"))?, &read(&root().join("Cargo.toml"))?);
    write(&tree.join("Cargo.toml"), &manifest)?;
    write(&tree.join("Cargo.lock"), &read(&root().join("Cargo.lock"))?)?;
    let look = |(filter, share, thorough): (_, u32, _)| Look {
        program: Program { folder: "", tests: "lib" },
        filter,
        environment: vec![("LEASEHOLD_SEARCH_SHARE", share.to_string()), ("RUST_TEST_THREADS", "1".to_owned())],
        thorough,
    };
    Ok(Subject {
        target: tree.join("target"),
        originals: tree.clone(),
        tree,
        // Here it pays to keep what an earlier build knows.
        incremental: true,
        // The suite is not there.
        features: &[],
        package: "leasehold-core",
        root: ROOT,
        sources: STATE,
        // They are not part of the state machine, but observe it.
        left_out: &["check.rs", "search/**", "tests/**"],
        looks: LOOKS.map(look).into(),
        patience: Patience { slower: 10, least: Duration::from_secs(5) },
        asks_twice: false,
        at_once: 1,
        equivalent: EQUIVALENT,
        rules: rules::STATE,
        enough: 98,
    })
}

/// The names of the Rust files below a folder of the core, without the suite of the backends.
fn sources(core: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let failure = |failure| format!("{}: {failure}", folder.display());
    for entry in fs::read_dir(core.join(folder)).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let name = folder.join(entry.file_name());
        if entry.path().is_dir() && !name.ends_with("conformance") {
            names.extend(sources(core, &name)?);
        } else if name.extension().is_some_and(|kind| kind == "rs") {
            names.extend(name.to_str().map(str::to_owned));
        }
    }
    Ok(names)
}

/// The content of a file of the core in this copy. Tests of other things are no business of the state's.
fn alone(name: &str, text: &str) -> String {
    if name.starts_with(STATE) {
        // Here, the search and the unit tests are in one program.
        return text.replace("all(test, leasehold_search)", "test").replace("all(test, not(leasehold_search))", "test");
    }
    let text = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    if name == ROOT { subject::root(text) } else { text.to_owned() }
}

const RAND: &str = "rand.workspace = true";

/// The core's package as its own workspace, without what only other tests of it need.
fn manifest(core: &str, workspace: &str) -> String {
    let package = core.split("\n[dev-dependencies]").next().unwrap_or_default();
    // The search draws its paths at random.
    let package = package.replace("\"dep:rand\", ", "").replace("rand = { workspace = true, optional = true }", RAND);
    let rest = workspace.find("[workspace.package]").map_or("", |at| &workspace[at..]);
    let rest = rest.replace("\"line-tables-only\"", "false").replace("leasehold-search", "leasehold-core");
    format!("{package}\n[lib]\ndoctest = false\n\n[workspace]\nresolver = \"3\"\n\n{rest}")
}
