//! What the published crates depend on: how many packages, which of them twice, and for which Rust.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::cargo;
use crate::repository::{backends, published, read, root};

/// The packages that a program gets with one backend, its driver among them, on Linux and without optional features.
///
/// `rslock` 0.10 with Tokio had 85 when this was decided, and has 82 by the versions of the lock file here; a lock with a token, a
/// lease that is renewed and waiting may cost fewer than 15 more.
const MOST_PACKAGES: usize = 85 + 15 - 1;

const BACKENDS: [&str; 10] = [
    "leasehold-agent",
    "leasehold-etcd",
    "leasehold-file",
    "leasehold-mysql-rw",
    "leasehold-mysql-unique",
    "leasehold-postgres",
    "leasehold-redis-reentrant",
    "leasehold-redis-rw",
    "leasehold-redis-single",
    "leasehold-redlock",
];

/// Backends whose driver alone has more than that, and how many packages they have.
const WITH_A_LARGE_DRIVER: [(&str, usize); 2] = [("leasehold-mysql-rw", 116), ("leasehold-mysql-unique", 116)];

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
fn one_backend_brings_few_packages() {
    let mut measured = 0;
    for backend in BACKENDS {
        let most =
            WITH_A_LARGE_DRIVER.iter().find(|(name, _)| *name == backend).map_or(MOST_PACKAGES, |(_, most)| *most);
        let packages = packages(backend).len();
        assert!(packages > 20, "{backend}: the packages were not read");
        assert!(packages <= most, "{backend} has {packages} packages; {most} are the most");
        measured += 1;
    }
    assert_eq!(measured, backends().len(), "a backend is not measured");
}

#[test]
fn no_package_comes_twice_with_a_backend_where_that_can_be_avoided() {
    let mut needed = BTreeSet::new();
    for backend in BACKENDS {
        let mut versions: BTreeMap<String, usize> = BTreeMap::new();
        for package in packages(backend) {
            let name = package.split(' ').next().unwrap_or_default().to_owned();
            *versions.entry(name).or_default() += 1;
        }
        for (name, _) in versions.into_iter().filter(|(_, count)| *count > 1) {
            let known = TWICE.iter().position(|(of, twice, _)| backend.starts_with(of) && *twice == name);
            needed.insert(known.unwrap_or_else(|| panic!("{backend} has two versions of {name}")));
        }
    }
    let idle: Vec<_> = TWICE.iter().enumerate().filter(|(at, _)| !needed.contains(at)).map(|(_, line)| line).collect();
    assert!(idle.is_empty(), "come once by now: {idle:?}");
}

/// With the locked versions the oldest Rust that is promised is enough on this platform, for every optional feature too.
#[test]
fn no_dependency_needs_a_newer_rust_than_is_promised() {
    let said = cargo(&["--version", "--verbose"]);
    let here = said.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo says where it runs");
    let filter = format!("--filter-platform={here}");
    let metadata = cargo(&["metadata", "--locked", "--all-features", "--format-version=1", &filter]);
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo prints JSON");
    let manifest = read(&root().join("Cargo.toml"));
    let promised = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).expect("it is promised");
    let promised = version(promised.trim_matches('"'));

    let mut states_one = 0;
    let mut too_new = Vec::new();
    let needed = needed_by_what_is_published(&metadata);
    for package in list(&metadata["packages"]).iter().filter(|package| needed.contains(text(&package["id"]))) {
        let Some(wanted) = package["rust_version"].as_str() else { continue };
        states_one += 1;
        if version(wanted) > promised {
            too_new.push(format!("{} {} needs Rust {wanted}", package["name"], package["version"]));
        }
    }
    assert!(states_one > 100, "the packages were not read");
    assert!(too_new.is_empty(), "\n{}\n", too_new.join("\n"));
}

/// The ids of the published crates and of all that they need to be built, but not of what only tests need.
fn needed_by_what_is_published(metadata: &Value) -> BTreeSet<&str> {
    let published: BTreeSet<String> = published().into_iter().map(|package| package.name).collect();
    let is_ours = |package: &&Value| published.contains(text(&package["name"])) && package["source"].is_null();
    let packages = list(&metadata["packages"]);
    let mut open: Vec<&str> = packages.iter().filter(is_ours).map(|package| text(&package["id"])).collect();
    assert_eq!(open.len(), published.len());

    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let mut needed = BTreeSet::new();
    while let Some(id) = open.pop() {
        if needed.insert(id) {
            let not_for_tests = |of: &&Value| list(&of["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            open.extend(list(&nodes[id]["deps"]).iter().filter(not_for_tests).map(|of| text(&of["pkg"])));
        }
    }
    needed
}

/// The packages of a program that depends on this one, each as `name version`.
fn packages(name: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--locked", "-e=normal", "--prefix=none", "-p", name]);
    tree.lines()
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

/// `1.89` and `1.89.0` are one version.
fn version(text: &str) -> Vec<u32> {
    let mut parts: Vec<u32> = text.split('.').map(|part| part.parse().expect("a version has numbers")).collect();
    parts.resize(3, 0);
    parts
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("cargo answers with a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo answers with a text")
}
