//! The name of a new backend.

use std::fmt;

use crate::workspace::{read, root};

/// The name of a backend that can be a folder, a package, a feature, a module and a URL scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

/// The words of Rust that cannot be the name of a module, in so far as they can be the name of a package.
const RESERVED: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final fn for \
    gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type \
    typeof unsafe unsized use virtual where while yield";

/// Files that give names, what they name, and how a name stands there.
const TAKEN: [(&str, &str, &str); 6] = [
    ("Cargo.lock", "a package of Leasehold", "\nname = \"leasehold-NAME\"\n"),
    ("crates/leasehold/src/backends.rs", "a feature or a scheme of another store", "\"NAME\""),
    ("crates/leasehold/Cargo.toml", "a feature", "\nNAME = "),
    ("crates/cli/Cargo.toml", "a feature", "\nNAME = "),
    // Also a private one hides what comes from the list of backends.
    ("crates/leasehold/src/lib.rs", "a module of the library", "mod MODULE;"),
    // The library gives all of it on, and of two modules with one name neither.
    ("crates/core/src/lib.rs", "a module of the library", "\npub mod MODULE;"),
];

impl Name {
    /// Refuses, with the reason, what can be the name of no backend.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_letter);
        let refused = |why: &str| Err(format!("a backend cannot be named {name:?}: {why}"));
        if !name.split('-').all(is_word) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            return refused(
                "it has to be words of a-z and 0-9 with single hyphens between them, and begin with a letter",
            );
        } else if name.len() > 40 {
            return refused("40 characters are the most");
        } else if RESERVED.split_whitespace().any(|word| word == name) {
            return refused("it is a word of Rust, and becomes the name of a module");
        } else if name == "memory" {
            return refused("it is the backend of core");
        }
        let checked = Self(name.to_owned());
        for (file, what, stands) in TAKEN {
            let stands = stands.replace("NAME", name).replace("MODULE", &checked.module());
            if read(&root().join(file))?.contains(&stands) {
                return refused(&format!("{what} has this name already, in {file}"));
            }
        }
        Ok(checked)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// `leasehold-some-store`
    pub(crate) fn package(&self) -> String {
        format!("leasehold-{}", self.0)
    }

    /// `some_store`
    pub(crate) fn module(&self) -> String {
        self.0.replace('-', "_")
    }

    /// `SomeStore`
    pub(crate) fn type_name(&self) -> String {
        let capital = |word: &str| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default();
        self.0.split('-').map(capital).collect()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_rust_and_cargo_want_it() {
        let name = Name::new("dynamo-db2").unwrap();
        assert_eq!((name.package(), name.module()), ("leasehold-dynamo-db2".to_owned(), "dynamo_db2".to_owned()));
        assert_eq!(name.type_name(), "DynamoDb2");
    }

    #[test]
    fn what_cannot_be_a_name_is_refused_with_the_reason() {
        for (bad, why) in [
            ("", "begin with a letter"),
            ("dynamo_db", "words of a-z"),
            ("dynamo--db", "single hyphens"),
            ("-dynamo", "single hyphens"),
            ("2dynamo", "begin with a letter"),
            ("../dynamo", "words of a-z"),
            ("gen", "a word of Rust"),
            ("memory", "the backend of core"),
            (&"x".repeat(41), "40 characters"),
            ("etcd", "a package of Leasehold"),
            ("testkit", "a package of Leasehold"),
            ("watch", "a feature has this name already, in crates/cli/Cargo.toml"),
            ("tls-rustls", "a feature has this name already, in crates/leasehold/Cargo.toml"),
            ("etcds", "a scheme of another store has this name already, in crates/leasehold/src/backends.rs"),
            ("fenced", "a module of the library has this name already, in crates/leasehold/src/lib.rs"),
            ("unknown-scheme", "crates/leasehold/src/lib.rs"),
            ("conformance", "crates/core/src/lib.rs"),
        ] {
            let refusal = Name::new(bad).unwrap_err();
            assert!(refusal.contains(why), "{bad}: {refusal}");
        }
        for good in ["dynamo", "watched", "etcd2", "etc", "fenced-file", "redisson"] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
    }
}
