//! The files of the repository that rules look at.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// A crate that is published.
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// What `cargo metadata` says of it.
    pub(crate) metadata: Value,
    pub(crate) is_default: bool,
}

pub(crate) fn published() -> &'static [Published] {
    static PUBLISHED: LazyLock<Vec<Published>> = LazyLock::new(|| {
        let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version=1"])).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter().filter(|package| package["publish"].is_null());
        let published = packages.map(|package| Published {
            name: package["name"].as_str().unwrap().to_owned(),
            folder: Path::new(package["manifest_path"].as_str().unwrap()).with_file_name(""),
            metadata: package.clone(),
            is_default: metadata["workspace_default_members"].as_array().unwrap().contains(&package["id"]),
        });
        published.collect()
    });
    assert!(PUBLISHED.len() >= 14, "too few crates were found");
    &PUBLISHED
}

/// What cargo prints. It needs the network only for packages that no build here has fetched.
pub(crate) fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo can be started");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}

/// The folders of the crates.
pub(crate) fn crates() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("crates")).expect("the folder of the crates can be read");
    let folders = entries.flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.join("Cargo.toml").is_file()).collect();
    folders.sort();
    folders
}

/// The folders of the crates that run the suite on a store of their own: all but the core crate.
pub(crate) fn backends() -> Vec<PathBuf> {
    let with_suite = crates().into_iter().filter(|folder| folder.join("tests/it/conformance.rs").is_file());
    let backends: Vec<PathBuf> = with_suite.filter(|folder| !folder.ends_with("core")).collect();
    assert!(backends.len() >= 9, "too few backends were found: {backends:?}");
    backends
}

/// Every Rust file of the workspace.
pub(crate) fn sources() -> Vec<PathBuf> {
    ["crates", "xtask", "tests", "benches"].iter().flat_map(|folder| rust_files(&root().join(folder))).collect()
}

pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|file| has_extension(file, "rs")).collect()
}

pub(crate) fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|its| its == extension)
}

/// Every file below, without what git, cargo, npm and pip keep for themselves. None where there is no such folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut below = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            below.push(path);
        } else if kind.is_dir() && ![".git", "target", "node_modules", ".venv"].iter().any(|name| path.ends_with(name))
        {
            below.extend(files(&path));
        }
    }
    below
}

/// Fails with every fault of every file, and where there is no file. What is no text has none.
pub(crate) fn check(files: Vec<PathBuf>, faults: impl Fn(&str) -> Vec<String>) {
    assert!(!files.is_empty(), "no file was found");
    let mut all = Vec::new();
    for file in files {
        let Ok(text) = String::from_utf8(fs::read(&file).expect("the file was listed")) else { continue };
        all.extend(faults(&text).into_iter().map(|fault| format!("{}: {fault}", name(&file))));
    }
    assert!(all.is_empty(), "\n{}\n", all.join("\n"));
}

pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The path from the root of the repository.
pub(crate) fn name(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is in a folder of the workspace")
}
