//! What every file, crate and README has to be like.

use std::path::{Path, PathBuf};

use crate::repository::{backends, check, crates, files, read, root, sources};

const LONGEST_FUNCTION: usize = 40;
const TEST_COMMAND: &str = "cargo xtask test --install";

// Put together here, so that this file is not what it finds.
const LEFT_FOR_LATER: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];
const ONE_MACHINES_FOLDERS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/")];

/// The headings of a backend's README; the fifth says what the backend writes.
const HEADINGS: [&str; 6] =
    ["When to choose it", "Guarantees and limits", "Example", "Server requirements", "", "Tuning"];
const WHAT_IT_WRITES: [&str; 3] = ["Keys it writes", "Tables it writes", "Files it writes"];

#[test]
fn nothing_is_left_for_later() {
    check(sources(), |text| {
        let lines = text.lines().enumerate();
        lines.flat_map(|(at, line)| found(&LEFT_FOR_LATER, at, line)).collect()
    });
}

#[test]
fn functions_of_the_engine_fit_on_a_screen() {
    let engine = root().join("crates/core/src/engine");
    let search = engine.join("state/search");
    let files = files(&engine).into_iter().filter(|file| !file.starts_with(&search) && !file.ends_with("check.rs"));
    check(files.collect(), |text| {
        let lines: Vec<&str> = text.lines().collect();
        let begins =
            |line: &str| line.trim_start().trim_start_matches("pub").contains("fn ") && line.ends_with(['(', '{']);
        let indent = |line: &str| line.len() - line.trim_start().len();
        let starts = (0..lines.len()).filter(|at| begins(lines[*at]) && !lines[*at].trim_start().starts_with("//"));
        let long = starts.filter_map(|at| {
            let ends = |line: &&str| line.trim_start().starts_with('}') && indent(line) == indent(lines[at]);
            let length = lines[at..].iter().position(ends)? + 1;
            (length > LONGEST_FUNCTION)
                .then(|| format!("{}: {length} lines; {LONGEST_FUNCTION} are the most", lines[at].trim()))
        });
        long.collect()
    });
}

/// A future that is not boxed is compiled once more in every crate that awaits it, and with it the driver.
#[test]
fn what_the_crates_around_a_driver_await_is_boxed() {
    let around_a_driver =
        |file: &PathBuf| ["crates/redis/src", "crates/mysql/src"].iter().any(|of| file.starts_with(root().join(of)));
    let files: Vec<_> = sources().into_iter().filter(around_a_driver).collect();
    assert!(files.len() > 20, "too few files were found: {files:?}");
    check(files, |text| text.lines().enumerate().flat_map(|(at, line)| found(&["pub async fn"], at, line)).collect());
}

#[test]
fn no_file_names_a_folder_of_one_machine() {
    check(files(root()), |text| {
        let lines = text.lines().enumerate();
        lines.flat_map(|(at, line)| found(&ONE_MACHINES_FOLDERS, at, line)).collect()
    });
}

#[test]
fn every_crate_has_a_readme_and_takes_edition_and_lints_from_the_workspace() {
    let manifests: Vec<PathBuf> = crates().into_iter().map(|folder| folder.join("Cargo.toml")).collect();
    check(manifests, |text| {
        // The program's parent-death signal is the one exception to `forbid`, which cannot be overridden.
        let own_lints = text.contains("name = \"leasehold-cli\"") && text.contains("unsafe_code = \"deny\"");
        let lints = own_lints || text.contains("[lints]\nworkspace = true");
        let edition = text.contains("edition.workspace = true");
        let missing = [(lints, "the workspace's lints"), (edition, "the workspace's edition")];
        missing.into_iter().filter(|(there, _)| !there).map(|(_, what)| format!("lacks {what}")).collect()
    });
    let bare: Vec<PathBuf> = crates().into_iter().filter(|folder| !folder.join("README.md").is_file()).collect();
    assert!(bare.is_empty(), "no README.md in {bare:?}");
}

#[test]
fn every_backend_is_described_under_the_same_headings() {
    check(backends().into_iter().map(|folder| folder.join("README.md")).collect(), |text| {
        let headings = headings(text);
        let alike = headings.len() == HEADINGS.len()
            && headings.iter().zip(HEADINGS).all(|(heading, expected)| match expected {
                "" => WHAT_IT_WRITES.contains(heading),
                _ => *heading == expected,
            });
        if alike { Vec::new() } else { vec![format!("its headings are {headings:?}")] }
    });
}

#[test]
fn what_ci_runs_is_what_the_readme_says() {
    check(vec![root().join(".ci/run"), root().join("README.md")], |text| {
        if text.contains(TEST_COMMAND) { Vec::new() } else { vec![format!("does not name `{TEST_COMMAND}`")] }
    });
}

/// It would pass without having looked: `leasehold_testkit::needs` makes it ignored instead, with the reason.
#[test]
fn no_test_returns_early_because_its_server_is_absent() {
    const RETURNS: [&str; 2] = [".await else { return };", ".await else { return Ok(()) };"];
    let in_tests =
        |file: &Path| file.components().any(|part| ["tests", "testkit"].iter().any(|name| part.as_os_str() == *name));
    check(sources().into_iter().filter(|file| in_tests(file)).collect(), |text| {
        let lines = text.lines().map(str::trim);
        let early = lines.filter(|line| line.starts_with("let Some(") && RETURNS.iter().any(|end| line.ends_with(end)));
        early.map(|line| format!("passes without a server: {line}")).collect()
    });
    // The harness of unit tests cannot tell of what is ignored while it runs: a target in `tests` can.
    let units =
        sources().into_iter().filter(|file| !in_tests(file) && file.components().any(|part| part.as_os_str() == "src"));
    check(units.collect(), |text| {
        let unit_tests = text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests);
        let unit_tests = if text.contains("#[tokio::test") { text } else { unit_tests };
        let servers =
            unit_tests.lines().filter(|line| line.contains("Server::start") || line.contains("Server::needed"));
        servers.map(|line| format!("a unit test needs a server: {}", line.trim())).collect()
    });
}

#[test]
fn every_expected_failure_is_a_test() {
    let list = "crates/core/src/conformance/expected-failures.txt";
    let tests: String = sources().iter().map(|file| read(file)).collect();
    check(vec![root().join(list)], |text| {
        let lines =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(" | ").collect::<Vec<_>>());
        let no_test = lines.filter(|columns| match columns.as_slice() {
            [_, _, test, _] => !["(", "<"].iter().any(|next| tests.contains(&format!("fn {test}{next}"))),
            _ => true,
        });
        no_test.map(|columns| format!("names no test: {columns:?}")).collect()
    });
}

#[test]
fn headings_in_code_do_not_count() {
    assert_eq!(headings("# Title\n## One\n```sh\n## not one\n```\n### Deeper\n## Two\n"), ["One", "Two"]);
}

fn found(needles: &[&str], at: usize, line: &str) -> Vec<String> {
    let present = needles.iter().filter(|needle| line.contains(**needle));
    present.map(|needle| format!("line {}: {needle}", at + 1)).collect()
}

/// Headings of the second level.
fn headings(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let prose = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    });
    prose.filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect()
}
