//! What a run of the tests is asked for: `[--install] [--deep] [CRATE...] [-- FILTER...]`.

use super::deep;
use crate::workspace::{Package, files, packages, read, root};

/// What is run.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) install: bool,
    pub(super) deep: bool,
    packages: Vec<Package>,
    /// Whether the packages were named.
    named: bool,
    pub(super) filters: Vec<String>,
}

/// What is not in a crate: the tests of these tasks, and the search through the states of the engine.
const BESIDE_THE_CRATES: [&str; 2] = ["xtask", "tests/search"];

/// So many times less is searched than in a deep run.
const SEARCH_SHARE: &str = "16";

impl Selection {
    pub(super) fn read(words: &[&str]) -> Result<Self, String> {
        let split = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let filters = words.get(split + 1..).unwrap_or_default().iter().map(ToString::to_string).collect();
        let (options, chosen): (Vec<&str>, Vec<&str>) = words[..split].iter().partition(|word| word.starts_with('-'));
        if let Some(unknown) = options.iter().find(|option| !["--install", "--deep"].contains(option)) {
            return Err(format!("`test` has no option {unknown}"));
        }
        let [install, deep] = ["--install", "--deep"].map(|option| options.contains(&option));
        let named = !chosen.is_empty();
        let only_deep = deep::PACKAGES.into_iter().filter(|_| deep || named);
        let beside = BESIDE_THE_CRATES.into_iter().chain(only_deep).map(Package::at).collect::<Result<Vec<_>, _>>()?;
        let mut all: Vec<_> = packages()?.into_iter().filter(Package::has_tests).chain(beside).collect();
        let is = |name: &str, package: &Package| {
            package.name == name || package.name.strip_prefix("leasehold-") == Some(name)
        };
        if let Some(unknown) = chosen.iter().find(|name| !all.iter().any(|package| is(name, package))) {
            let known: Vec<&str> = all.iter().map(|package| package.name.as_str()).collect();
            return Err(format!("no package is named {unknown}; there are: {}", known.join(", ")));
        }
        all.retain(|package| !named || chosen.iter().any(|name| is(name, package)));
        Ok(Self { install, deep, packages: all, named, filters })
    }

    /// Whether one of the packages asks for the server that this variable names.
    pub(super) fn needs(&self, variable: &str) -> bool {
        let tests = self.packages.iter().flat_map(|package| files(&root().join(&package.folder).join("tests")));
        !self.named || tests.into_iter().any(|file| read(&file).is_ok_and(|text| names(&text, variable)))
    }

    pub(super) fn package_arguments(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().flat_map(|package| ["-p", &package.name])
    }

    /// Whether the examples in the documents run, too. With a filter none is asked for, and a program alone has none.
    pub(super) fn has_doc_tests(&self) -> bool {
        self.filters.is_empty() && self.packages.iter().any(Package::has_library)
    }

    /// Whether what is no test runs, too.
    pub(super) fn is_all_of_the_deep_run(&self) -> bool {
        self.deep && !self.named && self.filters.is_empty()
    }

    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        let on = "1".to_owned();
        if self.deep {
            vec![("LEASEHOLD_DEEP", on)]
        } else {
            vec![("LEASEHOLD_SEARCH_SHARE", SEARCH_SHARE.to_owned()), ("LEASEHOLD_CONFORMANCE_BRIEF", on)]
        }
    }
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
