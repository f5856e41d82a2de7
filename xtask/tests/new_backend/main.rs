//! `cargo xtask new-backend`: what it writes compiles, and fails the suite for the reason that it gives. With the steps of
//! the memory backend in it, it passes.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The cases that pass on a backend of which no step is written: the engine alone decides them, or faults that it is given.
const PASS_WITHOUT_A_STORE: [&str; 3] = [
    "c19_bad_leases_are_refused_before_anything_is_sent",
    "c22_bad_keys_are_refused",
    "c23_errors_name_key_operation_and_backend",
];

#[test]
fn a_new_crate_compiles_and_fails_each_case_that_asks_the_store_because_no_step_is_written() {
    let folder = standalone("unwritten-store");
    let run = told(&cargo(&folder, &["test", "--offline", "--no-fail-fast"]));
    assert!(run.contains("test builder::tests::a_bad_url_is_refused_and_not_shown ... ok"), "{run}");
    assert!(run.contains("README.md - (line 5) - compile ... ok"), "{run}");

    let passed = |line: &str| {
        let case = line.strip_prefix("test unwritten-store::")?.strip_suffix("... ok")?.trim_end();
        (!case.ends_with("local_handoff_off")).then(|| case.to_owned())
    };
    let mut passed: Vec<_> = run.lines().filter_map(passed).collect();
    passed.sort();
    assert_eq!(passed, PASS_WITHOUT_A_STORE, "{run}");
    let failed: Vec<&str> = run.split("\n---- ").skip(1).collect();
    assert!(failed.len() > 70, "{} cases failed: {run}", failed.len());
    for case in failed {
        assert!(case.contains("is not written yet"), "it does not say why: {case}");
    }
}

#[test]
fn a_new_crate_with_the_steps_of_the_memory_backend_passes() {
    let folder = standalone("sample-store");
    let filled = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/new_backend/filled");
    copy(&filled.join("store.rs"), &folder.join("src/store.rs"));
    copy(&filled.join("frame.rs"), &folder.join("tests/frame.rs"));
    for (file, step, arguments, of_memory) in [
        ("acquire", "try_acquire", "claim.key.as_str()", "claim"),
        ("release", "release", "grant.key.as_str()", "grant"),
        ("admin", "inspect", "key.as_str()", "key"),
        ("admin", "list", "prefix", "prefix, after"),
        ("admin", "force_release", "key.as_str()", "key, only"),
    ] {
        let not_written = format!("store.not_written(\"{step}\", {arguments})");
        let written = format!("leasehold_core::Backend::{step}(store.memory()?, {of_memory})");
        change(&folder.join(format!("src/{file}.rs")), &not_written, &written);
    }
    change(
        &folder.join("src/renew.rs"),
        "store.not_written(\"renew\", grant.key.as_str())",
        "store.renew_one(Renewal { grant: grant.clone(), ttl: _ttl })",
    );
    change(&folder.join("src/backend.rs"), ".with(Capability::CrossProcess)\n", "\n");
    change(
        &folder.join("Cargo.toml"),
        "[dev-dependencies]\n",
        "[dev-dependencies]\ntokio = { version = \"1\", features = [\"macros\"] }\n",
    );
    let run = cargo(&folder, &["test", "--offline", "--no-fail-fast", "--tests"]);
    let told = told(&run);
    assert!(run.status.success(), "{told}");
    assert!(told.contains("test closing_closes_the_store ... ok"), "{told}");
    let ran = told.lines().find_map(|line| line.strip_prefix("sample-store  passed ")?.split_once(' ')?.0.parse().ok());
    assert!(ran.is_some_and(|passed: usize| passed > 75), "{told}");
}

#[test]
fn a_new_crate_of_the_workspace_is_in_the_library_and_in_the_program() {
    let copy = copy_of_the_workspace();
    let run = xtask(&["new-backend", "tried-store"], &copy);
    assert!(run.status.success(), "{}", told(&run));
    let check = ["check", "--offline", "-p", "leasehold", "--no-default-features", "--features", "tried-store"];
    let run = cargo(&copy, &check);
    assert!(run.status.success() && !told(&run).contains("warning"), "{}", told(&run));
    let tree = ["tree", "--offline", "-p", "leasehold-cli", "--no-default-features", "--features", "tried-store"];
    let run = cargo(&copy, &tree);
    assert!(run.status.success() && told(&run).contains("leasehold-tried-store v"), "{}", told(&run));
    let run = cargo(&copy, &["tree", "--offline", "--depth", "0"]);
    assert!(told(&run).contains("leasehold-tried-store v"), "it is no default member: {}", told(&run));

    let run = told(&xtask(&["new-backend", "tried-store"], &copy));
    assert!(run.contains("has this name already"), "{run}");
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let folder = standalone("used-store");
    let before = fs::read(folder.join("src/lib.rs")).expect("it was written");
    let run = xtask(&["new-backend", "other-store", "--standalone", &folder.to_string_lossy()], root());
    assert!(!run.status.success() && told(&run).contains("exists already, and is not empty"), "{}", told(&run));
    assert_eq!(fs::read(folder.join("src/lib.rs")).expect("it is there"), before);
}

/// A new crate in an own folder, with the versions of dependencies that this workspace has. Each test has a name of its own:
/// cargo takes two crates that are called alike for one, wherever they are.
fn standalone(name: &str) -> PathBuf {
    let folder = scratch().join(name);
    let _ = fs::remove_dir_all(&folder);
    let run = xtask(&["new-backend", name, "--standalone", &folder.to_string_lossy()], root());
    assert!(run.status.success(), "{}", told(&run));
    assert_eq!(fs::read(folder.join(".gitignore")).expect("it was written"), b"/target\n");
    copy(&root().join("Cargo.lock"), &folder.join("Cargo.lock"));
    folder
}

/// This workspace in another folder: copies of what a new backend changes, and links to the rest.
fn copy_of_the_workspace() -> PathBuf {
    let folder = scratch().join("workspace");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("crates/leasehold/src")).expect("the folder is made");
    fs::create_dir_all(folder.join("crates/cli")).expect("the folder is made");
    for file in ["Cargo.toml", "Cargo.lock", "crates/leasehold/Cargo.toml", "crates/cli/Cargo.toml"] {
        copy(&root().join(file), &folder.join(file));
    }
    copy(&root().join("crates/leasehold/src/backends.rs"), &folder.join("crates/leasehold/src/backends.rs"));
    for below in ["", "crates", "crates/leasehold", "crates/leasehold/src", "crates/cli"] {
        for entry in fs::read_dir(root().join(below)).expect("the folder is there").flatten() {
            let (name, link) = (entry.file_name(), folder.join(below).join(entry.file_name()));
            if !link.exists() && name != "target" && name != ".git" {
                std::os::unix::fs::symlink(entry.path(), link).expect("a link is made");
            }
        }
    }
    folder
}

fn xtask(arguments: &[&str], workspace: impl AsRef<Path>) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.env("CARGO_MANIFEST_DIR", workspace.as_ref().join("xtask")).args(arguments);
    xtask.output().expect("the program runs")
}

/// Runs cargo on the target folder of this workspace, so that what it has built is not built again.
fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    cargo.current_dir(folder).args(arguments).output().expect("cargo runs")
}

fn told(run: &Output) -> String {
    String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr)
}

fn change(file: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(file).expect("it was written");
    let after = before.replacen(from, to, 1);
    assert_ne!(before, after, "{} has no {from:?}", file.display());
    fs::write(file, after).expect("it is written");
}

fn copy(from: &Path, to: &Path) {
    // `fs::copy` would take over that a file is read-only.
    fs::write(to, fs::read(from).expect("the file is there")).expect("the file is written");
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-backend")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the workspace")
}
