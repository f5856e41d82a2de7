//! Every test that a document names is there, and every file that the track record names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::repository::{files, has_extension, name, read, root, sources};
use crate::texts::functions;

/// It names tests and files alone.
const TRACK_RECORD: &str = "docs/track-record.md";
/// Its filters are beginnings of names.
const WITH_FILTERS: &str = "CONTRIBUTING.md";

#[test]
fn every_test_that_a_document_names_is_there() {
    let mut named = Named { files: sources(), ..Named::default() };
    for file in &sources() {
        named.add(&read(file));
    }
    let documents = files(root()).into_iter().filter(|file| has_extension(file, "md"));
    let faults: Vec<String> = documents.flat_map(|file| named.faults(&name(&file), &read(&file))).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn names_of_tests_that_are_not_there_are_told() {
    let mut named = Named { files: vec!["crates/x/tests/it/tls.rs".into()], ..Named::default() };
    named.add("/// Not fn c03_of_a_comment.\n#[test] fn c02_a_test_is_here() { set(\"innodb_lock_wait_timeout\"); }");
    for (document, gone, there) in [
        (
            TRACK_RECORD,
            "c02_a_test a_test_that_is_gone c03_of_a_comment ls.rs",
            "c02_a_test_is_here it/tls.rs max_hold",
        ),
        (TRACK_RECORD, "innodb_lock_wait_timeout", "c02_a_test_is_here"),
        (WITH_FILTERS, "c03_ c02_a_guard", "c02_ c02_a_test"),
        ("README.md", "c02_a_test a_test_that_is_gone", "innodb_lock_wait_timeout"),
    ] {
        let told = |name: &str| !named.faults(document, &format!("A `{name}`.")).is_empty();
        assert!(gone.split(' ').all(told) && !there.split(' ').any(told), "{document}: {gone}; {there}");
    }
}

/// What documents can name.
#[derive(Default)]
struct Named {
    functions: BTreeSet<String>,
    /// Every name of four words, also in texts: metrics, settings of servers, columns.
    words: BTreeSet<String>,
    files: Vec<PathBuf>,
}

impl Named {
    fn add(&mut self, text: &str) {
        self.functions.extend(functions(text));
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
        // Cases of the suite begin with the clause of the contract: `c09_`.
        let is_case = matches!(name.as_bytes(), [b'c', b'0'..=b'9', b'0'..=b'9', b'_', ..]);
        let is_name = name.bytes().all(|letter| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if !is_name || !(is_case || has_four_words(name)) {
            return false;
        }
        match document {
            WITH_FILTERS if is_case => {
                !self.functions.range(name.to_owned()..).next().is_some_and(|at| at.starts_with(name))
            }
            _ if is_case || document == TRACK_RECORD => !self.functions.contains(name),
            _ => !self.words.contains(name),
        }
    }
}

fn has_four_words(name: &str) -> bool {
    name.matches('_').count() >= 3
}
