//! Finds the folders of the workspace, the packages in it and their files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// A package below `crates`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// From the root of the workspace.
    pub(crate) folder: String,
    manifest: String,
}

impl Package {
    pub(crate) fn at(folder: &str) -> Result<Self, String> {
        let manifest = read(&root().join(folder).join("Cargo.toml"))?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let name = name.ok_or_else(|| format!("{folder} has no name"))?.to_owned();
        Ok(Self { name, folder: folder.to_owned(), manifest })
    }

    pub(crate) fn has_tests(&self) -> bool {
        !self.manifest.contains("proc-macro = true")
    }

    pub(crate) fn has_library(&self) -> bool {
        root().join(&self.folder).join("src/lib.rs").is_file()
    }

    /// Whether its tests that need quiet run by themselves.
    pub(crate) fn has_own_harness(&self) -> bool {
        self.manifest.contains("harness = false")
    }
}

/// The packages below `crates`, in the order of their names.
pub(crate) fn packages() -> Result<Vec<Package>, String> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|failure| format!("{}: {failure}", crates.display()))?;
    let folders = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let folders = folders.filter(|folder| crates.join(folder).join("Cargo.toml").is_file());
    let mut packages = folders.map(|folder| Package::at(&format!("crates/{folder}"))).collect::<Result<Vec<_>, _>>()?;
    packages.sort();
    Ok(packages)
}

/// The libraries that are published.
pub(crate) fn libraries() -> Result<Vec<Package>, String> {
    let is_published = |package: &Package| package.has_library() && !package.manifest.contains("publish = false");
    Ok(packages()?.into_iter().filter(is_published).collect())
}

/// The names of all backends: `memory`, which is in core, and every crate with a conformance suite, such as `redis-single`.
pub(crate) fn backends() -> Result<Vec<String>, String> {
    let folders = packages()?.into_iter().map(|package| package.folder);
    let with_suite = folders.filter(|folder| root().join(folder).join("tests/it/conformance.rs").is_file());
    let others = with_suite.filter_map(|folder| folder.strip_prefix("crates/").map(str::to_owned));
    Ok(["memory".to_owned()].into_iter().chain(others.filter(|name| name != "core")).collect())
}

/// The name of the folder below `crates` in which a backend is. Its package has that name, too. The engine is searched in one of its own.
pub(crate) fn crate_of(backend: &str) -> &str {
    match backend {
        "memory" => "core",
        "engine" => "search",
        backend => backend,
    }
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

/// A command for git, in this folder.
pub(crate) fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder);
    git
}

/// The text of a file. The error names it.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|failure| format!("{}: {failure}", file.display()))
}

/// Writes a file, and makes its folder. The error names it.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, text));
    written.map_err(|failure| format!("{}: {failure}", file.display()))
}

/// All files below a folder. What cannot be read has none.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_the_one_that_it_runs_in_and_not_the_one_that_it_was_built_in() {
        let folder = target().join("tests/workspaces");
        let _ = fs::remove_dir_all(&folder);
        for package in ["one/xtask", "one/crates/core", "other/xtask", "other/crates/core"] {
            write(&folder.join(package).join("Cargo.toml"), "").expect("it is written");
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
