//! What the README of a crate is like, and where its links lead.

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag};

use crate::repository::{backends, check, published, read, root};

/// The headings of a backend's README; the fifth says what the backend writes.
const HEADINGS: [&str; 6] =
    ["When to choose it", "Guarantees and limits", "Example", "Server requirements", "", "Tuning"];
const WHAT_IT_WRITES: [&str; 3] = ["Keys it writes", "Tables it writes", "Files it writes"];

const REPOSITORY: &str = "https://github.com/leasehold/leasehold/";
const DOCS: &str = "https://docs.rs/";

#[test]
fn every_backend_is_described_under_the_same_headings() {
    check(backends().into_iter().map(|folder| folder.join("README.md")).collect(), |text| {
        let starts = Parser::new(text).into_offset_iter().filter_map(|(event, at)| match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => Some(text[at].trim_matches(['#', ' ', '\n'])),
            _ => None,
        });
        let mut headings: Vec<&str> = starts.collect();
        if let Some(what) = headings.get_mut(4).filter(|what| WHAT_IT_WRITES.contains(what)) {
            *what = "";
        }
        if headings == HEADINGS { Vec::new() } else { vec![format!("its headings are {headings:?}")] }
    });
}

/// crates.io shows a README beside no other file, and docs.rs in a folder of its own.
#[test]
fn links_of_a_packaged_readme_lead_somewhere() {
    let mut faults = Vec::new();
    for package in published() {
        let readme = read(&package.folder.join("README.md"));
        let links = Parser::new(&readme).filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
            _ => None,
        });
        faults.extend(links.filter_map(|link| Some(format!("{}: {link}: {}", package.name, fault(&readme, &link)?))));
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn links_that_lead_nowhere_are_told() {
    let repository = |path: &str| format!("{REPOSITORY}blob/main/{path}");
    let docs = |path: &str| format!("{DOCS}leasehold-{path}");
    let wrong = |link: &str| fault("## Tuning\n", link).is_some();
    for link in ["../core/README.md", "FileLocks::open", "#no-such-heading", &repository("docs/no.md")] {
        assert!(wrong(link), "{link}");
    }
    assert!(wrong(&docs("no")) && wrong(&docs("file/latest/#method.no_such_thing")));
    for link in ["#tuning", &docs("core"), &docs("file/latest/#method.namespace"), &repository("README.md")] {
        assert!(!wrong(link), "{link}");
    }
}

/// Why a link of this README leads nowhere.
fn fault(readme: &str, link: &str) -> Option<&'static str> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    if let Some(file) = path.strip_prefix(REPOSITORY) {
        let file = file.strip_prefix("blob/main/").or_else(|| file.strip_prefix("tree/main/")).unwrap_or(file);
        return (!root().join(file).exists()).then_some("is no file of the repository");
    }
    if let Some(path) = path.strip_prefix(DOCS) {
        let shown = published().iter().find(|package| path.split('/').next() == Some(&package.name));
        let Some(shown) = shown else { return Some("is no package of the repository") };
        let (_, item) = heading.split_once('.')?;
        let has_item = read(&shown.folder.join("api.txt")).contains(&format!("::{item}"));
        return (!has_item).then_some("names what is not there");
    }
    if path.is_empty() {
        let is_there = readme.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
        return (!is_there).then_some("is no heading");
    }
    (!link.starts_with("https://")).then_some("is not an address that can be opened from elsewhere")
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
