//! What stands in no file, and what stands in each.

use std::collections::BTreeSet;
use std::path::Path;

use crate::repository::{check, crates, files, has_extension, name, read, root, sources};

/// What no line of these files has. `…` stands for anything.
struct Absent {
    within: fn(&str) -> bool,
    words: &'static [&'static str],
    unless: &'static [&'static str],
    fault: &'static str,
}

const ABSENT: [Absent; 7] = [
    Absent { within: is_source, words: &["TODO", "FIXME", "XXX"], unless: &[], fault: "is left for later" },
    Absent {
        within: |_| true,
        words: &["/work/", "/root/", "/farm/"],
        unless: &[],
        fault: "is a folder of one machine",
    },
    // A future that is not boxed is compiled once more in every crate that awaits it, and with it the driver.
    Absent {
        within: |file| file.starts_with("crates/redis/src/") || file.starts_with("crates/mysql/src/"),
        words: &["pub async fn"],
        unless: &[],
        fault: "is a future that is not boxed",
    },
    // It would pass without having looked: `leasehold_testkit::needs` makes it ignored instead, with the reason.
    Absent {
        within: |file| is_source(file) && (file.contains("/tests/") || file.contains("/testkit/")),
        words: &["let Some(….await else { return };", "let Some(….await else { return Ok(()) };"],
        unless: &[],
        fault: "makes a test pass whose server is absent",
    },
    // The harness of unit tests cannot tell of what is ignored while it runs: a target in `tests` can.
    Absent {
        within: |file| file.contains("/src/") && is_source(file) && !file.starts_with("crates/testkit/"),
        words: &["Server::start(", "Server::needed("],
        unless: &[],
        fault: "needs a server outside of the targets in `tests`",
    },
    // The name of what is absent, and the question which version is installed, launch no server.
    Absent {
        within: |file| {
            is_source(file) && !file.starts_with("crates/testkit/src/launch/") && file != "xtask/src/install.rs"
        },
        words: &["\"redis-server\"", "\"mariadbd\"", "\"mariadb-install-db\"", "\"initdb\"", "\"pgbouncer\""],
        unless: &["needs(", "absent(", "--version"],
        fault: "launches a server: `leasehold_testkit::launch` does",
    },
    Absent {
        within: |file| file.contains("/src/"),
        words: &["mod testing;", "mod testing {"],
        unless: &[],
        fault: "is for tests alone: it belongs into the testkit",
    },
];

fn is_source(file: &str) -> bool {
    has_extension(Path::new(file), "rs")
}

#[test]
fn no_file_has_what_belongs_elsewhere_or_nowhere() {
    let mut faults = Vec::new();
    // This file has the words.
    for file in files(root()).into_iter().filter(|file| !file.ends_with("tests/rules/texts.rs")) {
        let (name, text) = (name(&file), std::fs::read(&file).map(String::from_utf8));
        let Ok(Ok(text)) = text else { continue };
        for rule in ABSENT.iter().filter(|rule| (rule.within)(&name)) {
            let is_wrong = |line: &&str| rule.words.iter().any(|word| has(line, word));
            let wrong =
                text.lines().filter(is_wrong).filter(|line| !rule.unless.iter().any(|word| line.contains(word)));
            faults.extend(wrong.map(|line| format!("{name}: {}: {}", rule.fault, line.trim())));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Whether the parts of the pattern come one after the other.
fn has(line: &str, pattern: &str) -> bool {
    let rest = pattern.split('…').try_fold(line, |rest, part| Some(rest.split_once(part)?.1));
    rest.is_some()
}

#[test]
fn every_file_has_what_it_has_to_have() {
    let clauses = read(&root().join("docs/contract.md")).lines().filter(|line| line.starts_with("| C")).count();
    let in_root = |file: &str, text: &str| (root().join(file), text.to_owned());
    let mut present = vec![
        in_root(".ci/run", "cargo xtask test --install"),
        in_root("README.md", "cargo xtask test --install"),
        in_root("README.md", &format!("the {clauses} clauses")),
    ];
    for manifest in crates().into_iter().map(|folder| folder.join("Cargo.toml")) {
        // The program's parent-death signal is the one exception to `forbid`, which cannot be overridden.
        let lints =
            if manifest.ends_with("cli/Cargo.toml") { "unsafe_code = \"deny\"" } else { "[lints]\nworkspace = true" };
        present.extend([(manifest.clone(), lints.to_owned()), (manifest, "edition.workspace = true".to_owned())]);
    }
    let missing: Vec<_> = present.into_iter().filter(|(file, text)| !read(file).contains(text)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn functions_of_the_engine_fit_on_a_screen() {
    const LONGEST: usize = 40;
    let engine = root().join("crates/core/src/engine");
    let search = engine.join("state/search");
    let files = files(&engine).into_iter().filter(|file| !file.starts_with(&search) && !file.ends_with("check.rs"));
    check(files.collect(), |text| {
        let lines: Vec<&str> = text.lines().collect();
        let indent = |line: &str| line.len() - line.trim_start().len();
        let begins =
            |line: &str| line.contains("fn ") && line.ends_with(['(', '{']) && !line.trim_start().starts_with("//");
        let long = (0..lines.len()).filter(|at| begins(lines[*at])).filter_map(|at| {
            let ends = |line: &&str| line.trim_start().starts_with('}') && indent(line) == indent(lines[at]);
            let length = lines[at..].iter().position(ends)? + 1;
            (length > LONGEST).then(|| format!("{}: {length} lines; {LONGEST} are the most", lines[at].trim()))
        });
        long.collect()
    });
}

#[test]
fn every_expected_failure_is_a_test() {
    let list = "crates/core/src/conformance/expected-failures.txt";
    let tests: BTreeSet<String> = sources().iter().flat_map(|file| functions(&read(file))).collect();
    assert!(tests.len() > 1000, "the functions were not read");
    check(vec![root().join(list)], |text| {
        let lines =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(" | ").collect::<Vec<_>>());
        let no_test = lines.filter(|columns| !matches!(columns[..], [_, _, test, _] if tests.contains(test)));
        no_test.map(|columns| format!("names no test: {columns:?}")).collect()
    });
}

/// The names of the functions of a file.
pub(crate) fn functions(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names = code.flat_map(|line| line.split("fn ").skip(1)).map(|rest| {
        rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next().unwrap_or_default()
    });
    names.map(str::to_owned).collect()
}
