//! Finds the folders of the workspace and the backends in it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

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
    let with_tests = manifests()?.into_iter().filter(|(_, _, manifest)| !manifest.contains("proc-macro = true"));
    Ok(with_tests.map(|(package, folder, _)| (package, format!("crates/{folder}"))).collect())
}

/// The packages of the libraries that are published, with their folders.
pub(crate) fn libraries() -> Result<Vec<(String, PathBuf)>, String> {
    let folders = manifests()?
        .into_iter()
        .map(|(package, folder, manifest)| (package, root().join("crates").join(folder), manifest));
    let published = folders
        .filter(|(_, folder, manifest)| folder.join("src/lib.rs").is_file() && !manifest.contains("publish = false"));
    Ok(published.map(|(package, folder, _)| (package, folder)).collect())
}

/// The packages below `crates`: the name of each, its folder there, and its manifest.
fn manifests() -> Result<Vec<(String, String, String)>, String> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut packages = Vec::new();
    for folder in entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()) {
        let manifest = fs::read_to_string(crates.join(&folder).join("Cargo.toml")).unwrap_or_default();
        if let Some(package) = manifest.lines().find_map(|line| line.strip_prefix("name = ")) {
            packages.push((package.trim_matches('"').to_owned(), folder, manifest));
        }
    }
    packages.sort();
    Ok(packages)
}

/// The folder of the workspace's `Cargo.toml`. Where this is no workspace of Leasehold, it says so and ends the program.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = env::current_dir().unwrap_or_default();
    located(package.as_deref(), &here).unwrap_or_else(|why| {
        eprintln!("xtask: {why}");
        process::exit(1)
    })
}

/// The workspace of the package whose program cargo runs, or else the one around the current folder. Never the one in which this
/// program was built: checkouts may share a target folder.
fn located(package: Option<&Path>, here: &Path) -> Result<PathBuf, String> {
    let is_ours =
        |folder: &&Path| ["xtask", "crates/core"].iter().all(|of| folder.join(of).join("Cargo.toml").is_file());
    let found = package.and_then(Path::parent).filter(is_ours).or_else(|| here.ancestors().find(is_ours));
    found.map(Path::to_path_buf).ok_or_else(|| {
        format!("{} is in no checkout of Leasehold: run `cargo xtask` in the one that is meant", here.display())
    })
}

/// Cargo's target folder, in which this program also keeps files that outlive it.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A command for the cargo that runs this program, in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    // Of what cargo tells this program about itself: the build of `ring`, and of all that needs it, would begin anew.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG_")) {
        cargo.env_remove(name);
    }
    cargo.env_remove("CARGO_MANIFEST_DIR");
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_the_one_that_it_runs_in_and_not_the_one_that_it_was_built_in() {
        let folder = target().join("tests/workspaces");
        let _ = fs::remove_dir_all(&folder);
        for checkout in ["one", "other"] {
            for package in ["xtask", "crates/core"] {
                let package = folder.join(checkout).join(package);
                fs::create_dir_all(&package).and_then(|()| fs::write(package.join("Cargo.toml"), "")).expect("written");
            }
        }
        let at = |path: &str| folder.join(path);
        let xtask = at("one/xtask");
        assert_eq!(located(Some(&xtask), &at("other")), Ok(at("one")), "the cargo that runs it is asked first");
        assert_eq!(located(None, &at("other/crates/core")), Ok(at("other")));
        assert_eq!(located(Some(&at("elsewhere/package")), &at("other")), Ok(at("other")));
        let nowhere = located(None, Path::new("/"));
        assert!(nowhere.is_err_and(|why| why.contains("no checkout of Leasehold")));
    }
}
