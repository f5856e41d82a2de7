//! What the published crates depend on: how many packages, which of them twice, and for which Rust.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::repository::{backends, cargo, published};

/// The packages that a program gets with one backend, its driver among them, on Linux and without optional features.
///
/// `rslock` 0.10 with Tokio had 85 when this was decided, and has 82 by the versions of the lock file here; a lock with a token, a
/// lease that is renewed and waiting may cost fewer than 15 more.
const MOST_PACKAGES: usize = 85 + 15 - 1;

/// Of those whose driver alone has more than that.
const MOST_WITH_MYSQL: usize = 116;

/// Packages of which a backend has two versions, by its name or its beginning, and why.
const TWICE: [(&str, &str, &str); 6] = [
    ("leasehold-red", "getrandom", "fred 10 draws random numbers by rand 0.8"),
    ("leasehold-red", "socket2", "fred 10 sets options of sockets by socket2 0.5, and tokio by 0.6"),
    ("leasehold-red", "syn", "the macros of fred 10 are read by syn 2"),
    ("leasehold-mysql", "cpufeatures", "mysql_common 0.37 has sha1 and sha2 0.10, and mysql_async rand 0.10"),
    ("leasehold-mysql", "getrandom", "mysql_common 0.37 has 0.3, and mysql_async rand 0.10"),
    ("leasehold-etcd", "syn", "the macros of prost and pin-project are read by syn 2"),
];

#[test]
fn one_backend_brings_few_packages_and_none_twice_where_that_can_be_avoided() {
    let mut needed = BTreeSet::new();
    for folder in backends() {
        let backend = format!("leasehold-{}", folder.file_name().expect("a name").display());
        let packages = packages(&["-e=normal", "-p", &backend]);
        let most = if backend.starts_with("leasehold-mysql") { MOST_WITH_MYSQL } else { MOST_PACKAGES };
        assert!(packages.len() > 20, "{backend}: the packages were not read");
        assert!(packages.len() <= most, "{backend} has {} packages; {most} are the most", packages.len());
        let mut versions: BTreeMap<String, usize> = BTreeMap::new();
        for (name, _) in packages {
            *versions.entry(name).or_default() += 1;
        }
        for (name, _) in versions.into_iter().filter(|(_, count)| *count > 1) {
            let known = TWICE.iter().find(|(of, twice, _)| backend.starts_with(of) && *twice == name);
            needed.insert(*known.unwrap_or_else(|| panic!("{backend} has two versions of {name}")));
        }
    }
    let idle: Vec<_> = TWICE.iter().filter(|line| !needed.contains(line)).collect();
    assert!(idle.is_empty(), "come once by now: {idle:?}");
}

/// With the locked versions the oldest Rust that is promised is enough on this platform, for every optional feature too.
#[test]
fn no_dependency_needs_a_newer_rust_than_is_promised() {
    let mut arguments = vec!["-e=no-dev", "--all-features"];
    arguments.extend(published().iter().flat_map(|package| ["-p", &package.name]));
    let needed = packages(&arguments);
    let metadata = cargo(&["metadata", "--locked", "--all-features", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo prints JSON");
    let text = |package: &Value, field: &str| package[field].as_str().map(str::to_owned);
    let promised = version(&(text(&published()[0].metadata, "rust_version").expect("it is promised") + ".0"));

    let mut states_one = 0;
    for package in metadata["packages"].as_array().expect("a list") {
        let (name, its_version) =
            (text(package, "name").expect("a name"), text(package, "version").expect("a version"));
        if needed.contains(&(name.clone(), format!("v{its_version}")))
            && let Some(wanted) = text(package, "rust_version")
        {
            states_one += 1;
            assert!(version(&wanted) <= promised, "{name} {its_version} needs Rust {wanted}");
        }
    }
    assert!(states_one > 100, "the packages were not read");
}

/// Name and version of each package of a tree.
fn packages(of: &[&str]) -> BTreeSet<(String, String)> {
    let tree = cargo(&[&["tree", "--locked", "--prefix=none"], of].concat());
    let packages = tree.lines().filter_map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        Some((words.next()?, words.next()?))
    });
    packages.collect()
}

/// `1.89` is smaller than `1.89.0`.
fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|part| part.parse().expect("a version has numbers")).collect()
}
