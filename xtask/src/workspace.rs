//! Finds the folders of the workspace and the backends in it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A backend that has a conformance suite: `redis-single` in package `leasehold-redis-single`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) package: String,
}

/// All backends: `memory`, which is in core, and every crate with a conformance suite.
pub(crate) fn backends() -> Result<Vec<Backend>, String> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("tests/it/conformance.rs").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != "core")
        .collect();
    names.sort();
    let memory = Backend { name: "memory".into(), package: "leasehold-core".into() };
    let others = names.into_iter().map(|name| Backend { package: format!("leasehold-{name}"), name });
    Ok([memory].into_iter().chain(others).collect())
}

/// Every package below `crates` that has tests, with its folder from the root.
pub(crate) fn packages() -> Result<Vec<(String, String)>, String> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut packages = Vec::new();
    for name in entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()) {
        let manifest = fs::read_to_string(crates.join(&name).join("Cargo.toml")).unwrap_or_default();
        let package = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        if let Some(package) = package.filter(|_| !manifest.contains("proc-macro = true")) {
            packages.push((package.trim_matches('"').to_owned(), format!("crates/{name}")));
        }
    }
    packages.sort();
    Ok(packages)
}

/// The packages of the libraries that are published.
pub(crate) fn libraries() -> Result<Vec<String>, String> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut packages = Vec::new();
    for folder in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        if let Some(name) =
            name.filter(|_| folder.join("src/lib.rs").is_file() && !manifest.contains("publish = false"))
        {
            packages.push(name.trim_matches('"').to_owned());
        }
    }
    packages.sort();
    Ok(packages)
}

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // Read at run time first: a build of this program may outlive a move of the folder.
    let here = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

/// Cargo's target folder, in which this program also keeps files that outlive it.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A command for the cargo that runs this program, in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}
