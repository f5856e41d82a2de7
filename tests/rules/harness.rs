//! Where a test program has its own `main`, rustc drops what `#[test]` marks, unless that is the attribute of the testkit.

use crate::repository::{check, crates, read, root, rust_files};
use crate::source::{Parsed, parse, tokens};

#[test]
fn a_program_with_its_own_main_has_no_test_that_is_dropped() {
    let elsewhere = ["tests/chaos", "tests/examples"].map(|folder| root().join(folder));
    let own_main = crates()
        .into_iter()
        .chain(elsewhere)
        .filter(|folder| read(&folder.join("Cargo.toml")).contains("harness = false"));
    let programs = own_main.map(|folder| folder.join("tests/it")).filter(|folder| folder.is_dir());
    let files: Vec<_> = programs.flat_map(|folder| rust_files(&folder)).collect();
    assert!(!files.is_empty(), "no such program was found");
    check(files, dropped);
}

#[test]
fn a_library_of_which_no_tests_are_built_has_none() {
    let is_untested = |manifest: &str| {
        let library =
            manifest.split_once("\n[lib]\n").map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or_default());
        library.lines().any(|line| line == "test = false")
    };
    let untested = crates().into_iter().filter(|folder| is_untested(&read(&folder.join("Cargo.toml"))));
    let files: Vec<_> = untested.flat_map(|folder| rust_files(&folder.join("src"))).collect();
    assert!(!files.is_empty(), "no such library was found");
    check(files, |text| {
        let has_one = text.lines().any(|line| line.trim() == "#[cfg(test)]");
        has_one.then(|| "has tests, which `test = false` drops".to_owned()).into_iter().collect()
    });
}

#[test]
fn tests_that_would_be_dropped_are_told() {
    let marked = "\n    #[test]\n    fn x() {}\n    #[test(flavor = \"multi_thread\")]\n    async fn y() {}\n";
    for fine in [
        "use leasehold_testkit::test;",
        "use leasehold_testkit::{\n    launch::{Server, ports},\n    needs, test,\n};",
        "mod inner {\n    use leasehold_testkit::{self, test};\n}",
    ] {
        assert!(dropped(&format!("{fine}{marked}")).is_empty(), "{fine}");
    }
    for wrong in
        ["", "use leasehold_testkit::tested;", "use leasehold_testkit::test as case;", "// leasehold_testkit::test"]
    {
        assert_eq!(dropped(&format!("{wrong}{marked}")).len(), 1, "{wrong}");
    }
    assert_eq!(dropped("use leasehold_testkit::test;\n#[tokio::test(start_paused = true)]\nasync fn z() {}").len(), 1);
    assert!(dropped("#[leasehold_testkit::test]\nfn x() {}").is_empty());
}

fn dropped(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let marked = |by: &str| lines.iter().any(|line| line.starts_with(by));
    let not_ours = (marked("#[test]") || marked("#[test(")) && !imports_ours(&parse(&tokens(text)));
    let mut faults = Vec::new();
    faults.extend(not_ours.then(|| "has a `#[test]` and lacks `use leasehold_testkit::test`".to_owned()));
    faults.extend(marked("#[tokio::test").then(|| "has a `#[tokio::test]`".to_owned()));
    faults
}

fn imports_ours(file: &Parsed) -> bool {
    let ours = file.uses.iter().any(|used| used.path == ["leasehold_testkit", "test"] && used.name == "test");
    ours || file.inline.iter().any(imports_ours)
}
