//! What a run of the tests is asked for: `[--install] [--deep] [CRATE...] [-- FILTER...]`.

use std::fs;
use std::path::Path;

use super::deep;
use crate::workspace::{packages, root};

/// What is run.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) install: bool,
    pub(super) deep: bool,
    /// The packages, and their folders from the root of the workspace.
    packages: Vec<(String, String)>,
    /// Whether the packages were named.
    named: bool,
    pub(super) filters: Vec<String>,
}

/// What is not in a crate: the tests of these tasks, and the search through the states of the engine.
const BESIDE_THE_CRATES: [(&str, &str); 2] = [("xtask", "xtask"), ("leasehold-search", "tests/search")];

/// So many times less is searched than in a deep run.
const SEARCH_SHARE: &str = "16";

impl Selection {
    pub(super) fn read(words: &[&str]) -> Result<Self, String> {
        let split = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let filters = words.get(split + 1..).unwrap_or_default().iter().map(ToString::to_string).collect();
        let (mut install, mut deep, mut names) = (false, false, Vec::new());
        for word in &words[..split] {
            match *word {
                "--install" => install = true,
                "--deep" => deep = true,
                option if option.starts_with('-') => return Err(format!("`test` has no option {option}")),
                name => names.push(name),
            }
        }
        let mut all = packages()?;
        all.extend(BESIDE_THE_CRATES.map(|(package, folder)| (package.to_owned(), folder.to_owned())));
        if deep || !names.is_empty() {
            all.extend(deep::PACKAGES.map(|(package, folder)| (package.to_owned(), folder.to_owned())));
        }
        let is = |name: &str, package: &str| package == name || package.strip_prefix("leasehold-") == Some(name);
        if let Some(unknown) = names.iter().find(|name| all.iter().all(|(package, _)| !is(name, package))) {
            let known: Vec<&str> = all.iter().map(|(package, _)| package.as_str()).collect();
            return Err(format!("no package is named {unknown}; there are: {}", known.join(", ")));
        }
        let some = !names.is_empty();
        all.retain(|(package, _)| !some || names.iter().any(|name| is(name, package)));
        Ok(Self { install, deep, packages: all, named: some, filters })
    }

    /// Whether one of the packages asks for the server that this variable names.
    pub(super) fn needs(&self, variable: &str) -> bool {
        !self.named || self.packages.iter().any(|(_, folder)| mentions(&root().join(folder).join("tests"), variable))
    }

    pub(super) fn package_arguments(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().flat_map(|(package, _)| ["-p", package])
    }

    /// Whether the examples in the documents run, too. With a filter none is asked for, and a program alone has none.
    pub(super) fn has_doc_tests(&self) -> bool {
        let has_library = |folder: &str| root().join(folder).join("src/lib.rs").is_file();
        self.filters.is_empty() && self.packages.iter().any(|(_, folder)| has_library(folder))
    }

    /// Whether what is no test runs, too.
    pub(super) fn is_all_of_the_deep_run(&self) -> bool {
        self.deep && !self.named && self.filters.is_empty()
    }

    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        let chosen: &[_] = if self.deep {
            &[("LEASEHOLD_DEEP", "1")]
        } else {
            &[("LEASEHOLD_SEARCH_SHARE", SEARCH_SHARE), ("LEASEHOLD_CONFORMANCE_BRIEF", "1")]
        };
        chosen.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    }
}

fn mentions(folder: &Path, word: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.into_iter().any(|path| {
        if path.is_dir() {
            mentions(&path, word)
        } else {
            fs::read_to_string(&path).is_ok_and(|text| names(&text, word))
        }
    })
}

/// Whether the word stands there by itself, and not as the beginning of another.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[at + word.len()..].starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_one_crate_has_its_servers_and_filters() {
        let selection = Selection::read(&["--install", "etcd", "--", "c01_", "late"]).unwrap();
        assert!(selection.install && !selection.deep);
        assert_eq!(selection.package_arguments().collect::<Vec<_>>(), ["-p", "leasehold-etcd"]);
        assert_eq!(selection.filters, ["c01_", "late"]);
        assert!(selection.needs("LEASEHOLD_TEST_ETCD") && !selection.needs("LEASEHOLD_TEST_REDIS"));
        assert!(!selection.has_doc_tests());
        assert!(names("(LEASEHOLD_TEST_REDIS)", "LEASEHOLD_TEST_REDIS"));
        assert!(!names("LEASEHOLD_TEST_REDIS_CLUSTER", "LEASEHOLD_TEST_REDIS"));
    }

    #[test]
    fn without_a_name_all_crates_are_tested_and_every_server_is_there() {
        let selection = Selection::read(&[]).unwrap();
        assert!(selection.packages.len() > 15 && selection.needs("LEASEHOLD_TEST_REDLOCK"));
        assert!(selection.has_doc_tests());
        let refusal = Selection::read(&["oracle"]).expect_err("there is no such package");
        assert!(refusal.contains("leasehold-core"), "{refusal}");
        assert!(Selection::read(&["--isntall"]).is_err());
    }
}
