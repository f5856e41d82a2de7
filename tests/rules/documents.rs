//! Every test that a document names is there, and every file that the track record names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::repository::{files, has_extension, name, read, root, sources};
use crate::source::tokens;

/// It names tests and files alone.
const TRACK_RECORD: &str = "docs/track-record.md";
/// Its filters are beginnings of names.
const WITH_FILTERS: &str = "CONTRIBUTING.md";

#[test]
fn every_test_that_a_document_names_is_there() {
    let sources = Sources::read();
    let documents = files(root()).into_iter().filter(|file| has_extension(file, "md"));
    let faults: Vec<String> = documents.flat_map(|file| sources.faults(&name(&file), &read(&file))).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn names_of_tests_that_are_not_there_are_told() {
    let mut sources = Sources { files: vec!["crates/x/tests/it/tls.rs".into()], ..Sources::default() };
    sources.add("/// Not fn c03_of_a_comment.\n#[test] fn c02_a_test_is_here() { set(\"innodb_lock_wait_timeout\"); }");
    let told = |document: &str, name: &str| !sources.faults(document, &format!("A `{name}`.")).is_empty();
    for named in ["c02_a_test_is_here", "tls.rs", "it/tls.rs", "crates/x/tests/it/tls.rs", "max_hold"] {
        assert!(!told(TRACK_RECORD, named), "{named}");
    }
    for gone in ["c02_a_test", "a_test_that_is_gone", "c03_of_a_comment", "innodb_lock_wait_timeout", "no.rs", "ls.rs"]
    {
        assert!(told(TRACK_RECORD, gone), "{gone}");
    }
    assert!(!told(WITH_FILTERS, "c02_") && !told(WITH_FILTERS, "c02_a_test"));
    assert!(told(WITH_FILTERS, "c03_") && told(WITH_FILTERS, "c02_a_guard") && told("README.md", "c02_a_test"));
    assert!(!told("README.md", "innodb_lock_wait_timeout") && told("README.md", "a_test_that_is_gone"));
}

/// What documents can name.
#[derive(Default)]
struct Sources {
    functions: BTreeSet<String>,
    /// Every name of four words, also in texts: metrics, settings of servers, columns.
    words: BTreeSet<String>,
    files: Vec<PathBuf>,
}

impl Sources {
    fn read() -> Self {
        let mut all = Self { files: sources(), ..Self::default() };
        for file in sources() {
            all.add(&read(&file));
        }
        assert!(all.functions.len() > 1000, "the functions were not read");
        all
    }

    fn add(&mut self, text: &str) {
        let mut defined: BTreeSet<String> =
            tokens(text).windows(2).filter(|pair| pair[0] == "fn").map(|pair| pair[1].to_owned()).collect();
        self.functions.append(&mut defined);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        self.words.extend(words.filter(|word| has_four_words(word)).map(str::to_owned));
    }

    fn faults(&self, document: &str, text: &str) -> Vec<String> {
        // Each text between two backticks, on whichever side of them it is: one backtick too many must not hide the rest.
        let named = text.split('`').filter(|name| self.is_gone(document, name));
        named.map(|name| format!("{document} names `{name}`, which is not there")).collect()
    }

    fn is_gone(&self, document: &str, name: &str) -> bool {
        if document == TRACK_RECORD && has_extension(Path::new(name), "rs") {
            return !self.files.iter().any(|file| file.ends_with(name));
        }
        let is_case = is_case(name);
        if !is_name(name) || !(is_case || has_four_words(name)) {
            return false;
        }
        let begins_one = || self.functions.range(name.to_owned()..).next().is_some_and(|at| at.starts_with(name));
        match document {
            WITH_FILTERS if is_case => !begins_one(),
            _ if is_case || document == TRACK_RECORD => !self.functions.contains(name),
            _ => !self.words.contains(name),
        }
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// Cases of the suite begin with the clause of the contract: `c09_`.
fn is_case(name: &str) -> bool {
    matches!(name.as_bytes(), [b'c', first, second, b'_', ..] if first.is_ascii_digit() && second.is_ascii_digit())
}

fn has_four_words(name: &str) -> bool {
    name.matches('_').count() >= 3
}
