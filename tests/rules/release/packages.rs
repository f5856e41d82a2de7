//! What is in the packages, and what they say of themselves.

use crate::repository::{cargo, published, read, root};

#[test]
fn every_package_has_the_texts_of_both_licences_and_its_readme() {
    for package in published() {
        let listed = cargo(&["package", "--list", "--allow-dirty", "-p", &package.name]);
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            assert!(listed.lines().any(|listed| listed == file), "{} is published without {file}", package.name);
            let is_same = file == "README.md" || read(&package.folder.join(file)) == read(&root().join(file));
            assert!(is_same, "{}: {file} is not the text of the repository", package.name);
        }
    }
}

#[test]
fn every_package_says_where_it_is_documented_and_what_it_needs() {
    let first = &published()[0].metadata;
    for package in published() {
        let of = |field: &str| &package.metadata[field];
        assert!(of("description").is_string() && of("documentation").is_string(), "{}", package.name);
        for field in ["version", "license", "repository", "authors", "rust_version", "readme"] {
            assert!(!of(field).is_null() && of(field) == &first[field], "{}: {field}", package.name);
        }
        // The suite is behind a feature, and so are TLS and the stores of `leasehold`.
        let shown = &of("metadata")["docs"]["rs"];
        let has_features = of("features").as_object().is_some_and(|features| !features.is_empty());
        let is_shown = match package.name.as_str() {
            "leasehold-cli" => true,
            "leasehold-core" => shown["features"][0] == "conformance",
            _ => shown["targets"].is_array() && (shown["all-features"] == true || !has_features),
        };
        assert!(is_shown, "{}: docs.rs is not told what to show", package.name);
    }
}

/// The pattern `crates/[!t]*` of the workspace's default members leaves out the testkit, and what else begins like it: such a
/// crate is named beside it. `libtest-mimic` and `proptest` are no packages for tests alone: the suite of core is a product.
#[test]
fn every_package_is_built_by_default_and_without_what_serves_tests_alone() {
    for package in published() {
        assert!(package.is_default, "`cargo build` leaves out {}", package.name);
        assert!(package.metadata["features"]["testing"].is_null(), "{} has a feature for tests", package.name);
        for needed in package.metadata["dependencies"].as_array().expect("a list") {
            let is_for_tests = needed["name"] == "leasehold-testkit" || needed["name"] == "tempfile";
            assert!(needed["kind"] == "dev" || !is_for_tests, "{} needs {}", package.name, needed["name"]);
        }
    }
}
