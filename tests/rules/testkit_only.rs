//! What serves tests alone is in `crates/testkit`: not in a published crate, and not in a second copy.

use std::path::PathBuf;

use crate::repository::{published, read, root, rust_files, sources};

/// Packages that only tests need. `libtest-mimic` and `proptest` are not among them: the conformance suite of the core crate is a
/// product.
const FOR_TESTS: [&str; 2] = ["leasehold-testkit", "tempfile"];

/// The programs that a test talks to. Put together here, so that this file is not what it finds.
const SERVERS: [&str; 5] = [
    concat!("\"redis-", "server\""),
    concat!("\"maria", "dbd\""),
    concat!("\"mariadb-", "install-db\""),
    concat!("\"init", "db\""),
    concat!("\"pg", "bouncer\""),
];

#[test]
fn no_published_crate_has_a_feature_or_a_dependency_for_tests_alone() {
    let mut faults = Vec::new();
    for package in published() {
        let mut section = "";
        for line in package.manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let unwanted = match section {
                "[features]" => name == "testing",
                "[dependencies]" | "[build-dependencies]" => FOR_TESTS.contains(&name),
                _ => false,
            };
            if unwanted {
                faults.push(format!("{}: {section} {line}", package.name));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The pattern `crates/[!t]*` of the workspace's default members leaves out the testkit, and what else begins like it: such a
/// crate is named beside it.
#[test]
fn every_published_crate_is_a_default_member() {
    let manifest = read(&root().join("Cargo.toml"));
    let members = manifest.lines().find(|line| line.starts_with("default-members = [\"crates/[!t]*\""));
    let members = members.expect("the pattern is there");
    let missed = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('t') && !members.contains(&format!("\"crates/{name}\""))
    };
    let missed: Vec<PathBuf> = published().into_iter().map(|package| package.folder).filter(missed).collect();
    assert!(missed.is_empty(), "`cargo build` leaves these out: {missed:?}");
}

#[test]
fn no_published_crate_has_a_module_for_tests_alone() {
    let sources = published().into_iter().flat_map(|package| rust_files(&package.folder.join("src")));
    let for_tests = sources.filter(|file| {
        let declares = |line: &str| line.trim_start_matches("pub ").starts_with("mod testing");
        file.components().any(|part| part.as_os_str() == "testing") || read(file).lines().any(declares)
    });
    let found: Vec<PathBuf> = for_tests.collect();
    assert!(found.is_empty(), "a module for tests is published: {found:?}");
}

#[test]
fn servers_are_launched_by_the_testkit_alone() {
    let launcher = root().join("crates/testkit/src/launch");
    // It installs the packages of these names, and starts nothing.
    let install = root().join("xtask/src/install.rs");
    let mut faults = Vec::new();
    for file in sources().into_iter().filter(|file| !file.starts_with(&launcher) && *file != install) {
        for (number, line) in read(&file).lines().enumerate() {
            // The name of what is absent, and the question which version is installed, launch no server.
            let launches_none = ["needs(", "absent(", "--version"].iter().any(|word| line.contains(word));
            if !launches_none && SERVERS.iter().any(|server| line.contains(server)) {
                faults.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "use `leasehold_testkit::launch` instead:\n{}\n", faults.join("\n"));
}
