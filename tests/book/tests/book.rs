//! The book builds, and what it links to is there.

use std::fs;
use std::path::Path;

use leasehold_book::{CLIENTS, SCRIPTS, broken_links, build, root};

#[test]
fn the_book_builds_and_what_it_links_to_is_there() {
    let book = root().join("target/book");
    build(&book).expect("the book builds");
    let broken = broken_links(&book, &root()).expect("the pages can be read");
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    let chapters = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the list of chapters can be read");
    for file in fs::read_dir(root().join("docs")).expect("the chapters can be read").flatten() {
        let name = file.file_name().into_string().expect("a name in UTF-8");
        let is_chapter = name != "SUMMARY.md" && file.path().extension().is_some_and(|extension| extension == "md");
        assert!(!is_chapter || chapters.contains(&format!("({name})")), "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn the_scripts_for_other_languages_are_those_of_the_crate() {
    for (name, text) in SCRIPTS {
        let written = fs::read_to_string(root().join(CLIENTS).join(name)).expect("the script is there");
        assert!(written == text, "{CLIENTS}/{name} is out of date; `cargo run -p leasehold-book` writes it");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let link = |to: &str| format!("<a class=\"x\" href=\"{to}\">x</a>");
    let repository = leasehold_book::REPOSITORY;
    let well = ["b.html#there", "b.html", "a.css", "#here", "https://example.org/x"].map(link);
    let in_repository = ["README.md", "README.md#which-backend", "docs/contract.md", "crates"];
    let in_repository = in_repository.map(|file| link(&format!("{repository}{file}")));
    let bad = ["b.html#gone", "c.html", "../c.css", "#gone", "http://example.org", "https://x", "mailto:x"].map(link);
    let not_there = ["GONE.md", "README.md#gone"].map(|file| link(&format!("{repository}{file}")));
    let image = "<img src=\"gone.svg\" />".to_owned();
    let page = [&well[..], &in_repository, &bad, &not_there, &[image, "<p id=\"here\">".to_owned()]].concat();
    fs::write(folder.join("a.html"), page.concat()).expect("a page can be written");
    fs::write(folder.join("b.html"), "<h2 id=\"there\">").expect("a page can be written");
    fs::write(folder.join("a.css"), "").expect("a file can be written");
    let broken = broken_links(&folder, &root()).expect("the pages can be read");
    assert_eq!(broken.len(), bad.len() + not_there.len() + 1, "{broken:#?}");
}
