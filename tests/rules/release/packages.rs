//! What is in the packages, and what their pages on crates.io and docs.rs show.

use std::collections::BTreeSet;

use super::cargo;
use crate::repository::{Published, published, read, root, rust_files};

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
const REPOSITORY: &str = "https://github.com/leasehold/leasehold";
const DOCS: &str = "https://docs.rs/";

#[test]
fn every_package_has_the_texts_of_both_licences_and_its_readme() {
    for package in published() {
        let listed = cargo(&["package", "--list", "--allow-dirty", "-p", &package.name]);
        let files: BTreeSet<&str> = listed.lines().collect();
        for licence in LICENCES {
            assert!(files.contains(licence), "{} is published without {licence}", package.name);
            let same = read(&package.folder.join(licence)) == read(&root().join(licence));
            assert!(same, "{}: {licence} is not the text of the repository", package.name);
        }
        assert!(files.contains("README.md"), "{} is published without its README", package.name);
    }
}

#[test]
fn every_package_says_where_it_is_documented_and_what_it_needs() {
    let fields = ["description = ", "documentation = ", "readme = \"README.md\"", "rust-version.workspace = true"];
    let inherited = ["version", "license", "repository", "authors"].map(|field| format!("{field}.workspace = true"));
    for package in published() {
        let lines: Vec<&str> = package.manifest.lines().collect();
        let wanted = fields.into_iter().chain(inherited.iter().map(String::as_str));
        for field in wanted {
            assert!(lines.iter().any(|line| line.starts_with(field)), "{} lacks `{field}`", package.name);
        }
    }
}

/// The suite is behind a feature, and so are TLS and the stores of `leasehold`.
#[test]
fn docs_rs_shows_what_is_behind_features() {
    for package in published().iter().filter(|package| package.name != "leasehold-cli") {
        let (_, shown) = package.manifest.split_once("[package.metadata.docs.rs]\n").unwrap_or_default();
        let shown = shown.split("\n[").next().unwrap_or_default();
        let wanted = match package.name.as_str() {
            "leasehold-core" => "features = [\"conformance\"]",
            _ if package.manifest.contains("[features]") => "all-features = true",
            _ => "targets = ",
        };
        assert!(shown.contains(wanted), "{}: docs.rs is not told `{wanted}`", package.name);
    }
}

/// crates.io shows a README beside no other file, and docs.rs in a folder of its own.
#[test]
fn links_of_a_packaged_readme_lead_somewhere() {
    let mut faults = Vec::new();
    for package in published() {
        let readme = read(&package.folder.join("README.md"));
        let wrong = links(&readme).into_iter().filter_map(|link| Some(format!("{link} {}", fault(&package, &link)?)));
        faults.extend(wrong.map(|fault| format!("{}: {fault}", package.name)));
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn links_are_found_in_line_and_by_reference_and_not_in_code() {
    let text = "[a](b/c.md), [d\ne](https://f#g) `[h](i)`\n```rust\n[j](k)\n```\n[l]: m.md\n![n](o.svg) [p]";
    assert_eq!(links(text), ["b/c.md", "https://f#g", "o.svg", "m.md"]);
}

#[test]
fn links_that_lead_nowhere_are_told() {
    let package = published().into_iter().find(|package| package.name == "leasehold-file").expect("it is published");
    let wrong = |link: &str| fault(&package, link).is_some();
    assert!(wrong("../core/README.md") && wrong("FileLocks::open") && wrong("#no-such-heading"));
    assert!(wrong("https://github.com/leasehold/leasehold/blob/main/docs/no.md"));
    assert!(
        wrong("https://docs.rs/leasehold-no") && wrong("https://docs.rs/leasehold-file/latest/#method.no_such_thing")
    );
    let right =
        ["#tuning", "https://docs.rs/leasehold-core", "https://github.com/leasehold/leasehold/blob/main/README.md"];
    assert_eq!(right.map(wrong), [false; 3]);
}

/// Why a link of a package's README leads nowhere.
fn fault(package: &Published, link: &str) -> Option<String> {
    if let Some(path) = link.strip_prefix(REPOSITORY) {
        let path = path.split('#').next().unwrap_or_default();
        let file = path.strip_prefix("/blob/main/").or_else(|| path.strip_prefix("/tree/main/")).unwrap_or_default();
        return (!root().join(file).exists()).then(|| "is no file of the repository".to_owned());
    }
    if let Some(path) = link.strip_prefix(DOCS) {
        let name = path.split('/').next().unwrap_or_default();
        let Some(shown) = published().into_iter().find(|package| package.name == name) else {
            return Some("is no package of the repository".to_owned());
        };
        let item = link.split_once("#method.").map(|(_, item)| item)?;
        let sources = [shown.folder.join("src"), root().join("crates/redis/src")];
        let has_item = |text: &str| text.contains(&format!("fn {item}("));
        let defined = sources.iter().flat_map(|folder| rust_files(folder)).any(|file| has_item(&read(&file)));
        return (!defined).then(|| format!("names a method {item} that is not there"));
    }
    if let Some(heading) = link.strip_prefix('#') {
        let readme = read(&package.folder.join("README.md"));
        let there = readme.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
        return (!there).then(|| "is no heading".to_owned());
    }
    (!link.starts_with("https://")).then(|| "is not an address that can be opened from elsewhere".to_owned())
}

/// The targets of the links in a text of Markdown: those in line, then those of reference definitions.
fn links(text: &str) -> Vec<String> {
    let prose = without_code(text);
    let in_line = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let referred = prose.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
    in_line.chain(referred.map(|(_, target)| target)).map(|target| target.trim().to_owned()).collect()
}

/// The text without its blocks of code and without what stands between backticks in a line.
fn without_code(text: &str) -> String {
    let mut in_block = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            prose.extend(line.split('`').step_by(2));
            prose.push('\n');
        }
    }
    prose
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
