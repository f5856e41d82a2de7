//! What serves tests alone is in `crates/testkit`: not in a published crate, and not in a second copy.

use std::fs;
use std::path::{Path, PathBuf};

/// Packages that only tests need. `libtest-mimic` is not among them: the conformance suite of the core crate is a product.
const FOR_TESTS: [&str; 3] = ["leasehold-testkit", "proptest", "tempfile"];

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
    for folder in published() {
        let manifest = read(&folder.join("Cargo.toml"));
        let mut section = "";
        for line in manifest.lines() {
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
                faults.push(format!("{}: {section} {line}", folder.display()));
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
    let missed: Vec<PathBuf> = published().into_iter().filter(missed).collect();
    assert!(missed.is_empty(), "`cargo build` leaves these out: {missed:?}");
}

#[test]
fn no_published_crate_has_a_module_for_tests_alone() {
    let sources = published().into_iter().flat_map(|folder| rust_files(&folder.join("src")));
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
    let folders = ["crates", "xtask", "tests", "benches"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| rust_files(folder));
    let mut faults = Vec::new();
    for file in files.filter(|file| !file.starts_with(&launcher) && *file != install) {
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

/// The folders of the crates that are published.
fn published() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("crates")).expect("the folder of the crates can be read");
    let folders = entries.flatten().map(|entry| entry.path()).filter(|folder| folder.join("Cargo.toml").is_file());
    let published: Vec<PathBuf> =
        folders.filter(|folder| !read(&folder.join("Cargo.toml")).contains("publish = false")).collect();
    assert!(published.len() >= 9, "too few published crates were found: {published:?}");
    published
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
        let path = entry.path();
        if path.is_dir() && !["target", "node_modules", ".venv"].iter().any(|name| path.ends_with(name)) {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the package is in a folder of the workspace").to_path_buf()
}
