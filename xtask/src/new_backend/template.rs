//! The files of a new crate: those of `xtask/templates/backend`, under another name.

use std::fs;
use std::path::Path;

use super::name::Name;

macro_rules! templates {
    ($($file:literal)+) => {
        &[$(($file, include_str!(concat!("../../templates/backend/", $file)))),+]
    };
}

macro_rules! with_fixture {
    ($file:literal) => {
        concat!(
            include_str!(concat!("../../templates/backend/tests/", $file)),
            include_str!("../../templates/backend/tests/fixture.rs")
        )
    };
}

/// What every backend has. The template is the crate of a store that is named `new-store`.
const FILES: &[(&str, &str)] = templates! {
    "README.md"
    "src/acquire.rs"
    "src/admin.rs"
    "src/backend.rs"
    "src/builder.rs"
    "src/kind.rs"
    "src/lib.rs"
    "src/locker.rs"
    "src/release.rs"
    "src/renew.rs"
    "src/store.rs"
};
const WORKSPACE: &str = include_str!("../../templates/backend/workspace.toml");
const STANDALONE: &str = include_str!("../../templates/backend/standalone.toml");

/// The tests: here the suite is a module of the crate's one program of tests, elsewhere it is a program.
const TESTS_HERE: &[(&str, &str)] = &[
    ("tests/it/main.rs", include_str!("../../templates/backend/tests/main.rs")),
    ("tests/it/conformance.rs", with_fixture!("workspace.rs")),
];
const TESTS_ELSEWHERE: &[(&str, &str)] = &[("tests/conformance.rs", with_fixture!("standalone.rs"))];

/// The files of a crate of this workspace.
pub(crate) fn workspace(name: &Name) -> Vec<(&'static str, String)> {
    files(name, WORKSPACE, TESTS_HERE)
}

/// The files of a crate that depends on the checkout in this folder.
pub(crate) fn standalone(name: &Name, checkout: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let manifest = checkout.join("Cargo.toml");
    let workspace = fs::read_to_string(&manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let value = |key: &str| {
        let found = workspace.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
        found.ok_or_else(|| format!("{} does not say {key}", manifest.display()))
    };
    // A text in JSON is one in TOML.
    let core = serde_json::to_string(&checkout.join("crates/core").to_string_lossy()).map_err(|e| e.to_string())?;
    let manifest = STANDALONE
        .replace("RUST_VERSION", value("rust-version")?)
        .replace("REPOSITORY", value("repository")?)
        .replace("CORE_VERSION", value("version")?)
        .replace("CORE_PATH", &core);
    let mut files = files(name, &manifest, TESTS_ELSEWHERE);
    files.push((".gitignore", "/target\n".to_owned()));
    Ok(files)
}

fn files(name: &Name, manifest: &str, tests: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let named = |text: &str| {
        text.replace("new-store", name.as_str())
            .replace("new_store", &name.module())
            .replace("NEW_STORE", &name.variable())
            .replace("NewStore", &name.type_name())
    };
    let manifest = ("Cargo.toml", named(manifest));
    FILES.iter().chain(tests).map(|(file, text)| (*file, named(text))).chain([manifest]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn a_crate_of_its_own_keeps_what_is_built_out_of_its_repository() {
        let name = Name::new("own-store").unwrap();
        let ignored = |files: Vec<(&str, String)>| {
            files.into_iter().find(|(file, _)| *file == ".gitignore").map(|(_, text)| text)
        };
        assert_eq!(ignored(standalone(&name, &root()).unwrap()).as_deref(), Some("/target\n"));
        assert_eq!(ignored(workspace(&name)), None, "this repository has one");
    }

    #[test]
    fn every_file_of_the_template_is_written() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/backend");
        let mut there = BTreeSet::new();
        for below in ["", "src"] {
            let files = fs::read_dir(folder.join(below)).unwrap().map(|entry| entry.unwrap().path());
            let files = files.filter(|file| file.is_file());
            there.extend(files.map(|file| file.strip_prefix(&folder).unwrap().to_path_buf()));
        }
        let manifests = ["workspace.toml", "standalone.toml"].map(PathBuf::from);
        let written: BTreeSet<_> = FILES.iter().map(|(file, _)| PathBuf::from(file)).chain(manifests).collect();
        assert_eq!(there, written);
    }
}
