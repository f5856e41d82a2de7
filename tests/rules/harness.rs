//! What is marked as a test, and would not be run.

use std::path::Path;

use crate::repository::{check, crates, read, root, rust_files};

/// Where a test program has its own `main`, rustc drops what `#[test]` marks, unless that is the attribute of the testkit.
#[test]
fn a_program_with_its_own_main_has_no_test_that_is_dropped() {
    let elsewhere = ["tests/chaos", "tests/examples"].map(|folder| root().join(folder));
    let own_main = crates().into_iter().chain(elsewhere).filter(|folder| has_line(folder, "harness = false"));
    let files: Vec<_> = own_main.flat_map(|folder| rust_files(&folder.join("tests/it"))).collect();
    check(files, |text| {
        let imports = text.split("use leasehold_testkit::").skip(1).filter_map(|rest| rest.split(';').next());
        let mut names = imports.flat_map(|import| import.split([',', '{', '}']));
        let is_ours = names.any(|name| name.trim() == "test");
        let mut lines = text.lines().map(str::trim);
        let is_dropped = |line: &str| line.starts_with("#[test") && !is_ours || line.starts_with("#[tokio::test");
        let dropped = lines.any(is_dropped);
        dropped.then(|| "lacks `use leasehold_testkit::test` for its tests".to_owned()).into_iter().collect()
    });
}

#[test]
fn a_library_of_which_no_tests_are_built_has_none() {
    let is_untested = |folder: &Path| {
        let manifest = read(&folder.join("Cargo.toml"));
        let library =
            manifest.split_once("\n[lib]\n").map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or_default());
        library.lines().any(|line| line == "test = false")
    };
    let untested = crates().into_iter().filter(|folder| is_untested(folder));
    check(untested.flat_map(|folder| rust_files(&folder.join("src"))).collect(), |text| {
        let has_one = text.lines().any(|line| line.trim() == "#[cfg(test)]");
        has_one.then(|| "has tests, which `test = false` drops".to_owned()).into_iter().collect()
    });
}

fn has_line(folder: &Path, line: &str) -> bool {
    read(&folder.join("Cargo.toml")).lines().any(|found| found == line)
}
