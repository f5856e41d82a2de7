//! The book builds, and what it links to is there.

use std::fs;
use std::path::Path;

use leasehold_book::{PROOF, broken_links, build, root, with_figures};

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
fn the_figures_of_the_last_run_are_those_of_its_report() {
    let [chapter, report] = PROOF.map(|file| fs::read_to_string(root().join(file)).expect("the file is there"));
    let text = with_figures(&chapter, &report).expect("the report of a run");
    assert!(text == chapter, "{} is out of date; `cargo run -p leasehold-book` writes it", PROOF[0]);
    assert!(
        with_figures(&chapter, &report.replacen("\"overlaps\": 0", "\"overlaps\": 1", 1)).expect("a report") != chapter
    );
}

/// A column, a part of a name or a number that is changed in the code and not in the text would mislead whoever writes a client.
#[test]
fn the_storage_formats_are_those_of_the_code() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file is there");
    let text = read("docs/storage-formats.md");
    let part = |from: &str, to: &str| {
        let from = text.find(from).expect("the part is there");
        &text[from..from + text[from..].find(to).expect("another part follows")]
    };
    let (redis, mysql, postgres) =
        (part("## `redis:`", "\n## "), part("## `mysql:`", "\n## "), part("## `postgres:`", "\n## "));
    let rw = part("| `mysql-rw:`", "\n");
    let mut wanted: Vec<(&str, String)> = Vec::new();

    for (source, part) in [("mysql-unique", mysql), ("mysql-rw", rw)] {
        let source = read(&format!("crates/{source}/src/sql.rs"));
        let names = source.split("Column { name: \"").skip(1).filter_map(|rest| rest.split('"').next());
        wanted.extend(names.map(|name| (part, format!("`{name}`"))));
    }
    let tables = read("crates/postgres/src/sql/tables.sql");
    let columns = tables.lines().take_while(|line| !line.contains("VIEW")).filter_map(|line| line.strip_prefix("  "));
    let columns = columns.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    wanted.extend(columns.filter_map(|line| Some((postgres, format!("`{}`", line.split_once(' ')?.0)))));
    assert!(wanted.len() > 30, "the columns were not read: {wanted:?}");

    wanted.extend(["lock", "queue", "forced", "freed"].map(|part| (redis, format!("`{{…}}:{part}`"))));
    wanted.push((redis, "`{NAMESPACE:WORD}:epoch`".to_owned()));
    let (queue, epoch) = (read("crates/redis/src/lua/queue.lua"), read("crates/redis/src/lua/next_epoch.lua"));
    for (number, source, line) in [
        ("3000", &queue, "COUNTS, KEPT = 3000, 60000"),
        ("140737488355327", &epoch, "number > 140737488355327"),
        ("16,016", &epoch, "number <= most + 16000"),
        ("clock plus 16", &epoch, "most = now + 16"),
    ] {
        assert!(source.contains(line), "the code has no {line:?} any more: see what the text says of it");
        wanted.push((text.as_str(), number.to_owned()));
    }
    // A cell may have several columns before their type.
    let is_missing =
        |(part, what): &&(&str, String)| !part.replace([',', ' '], "`").contains(what) && !part.contains(what);
    let missing: Vec<_> = wanted.iter().filter(is_missing).map(|(_, what)| what).collect();
    assert!(missing.is_empty(), "docs/storage-formats.md does not have {missing:?}");
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
