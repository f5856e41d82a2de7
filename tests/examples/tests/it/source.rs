//! The events and spans in the code of the published crates, against the tables: also those that take a fault of a server.

use leasehold_testkit::test;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::document::{Document, Told, root};

#[test]
fn every_event_of_the_code_is_documented() {
    let document = Document::read();
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(root().join("crates")).expect("the crates").flatten().map(|entry| entry.path()) {
        let name = folder.file_name().expect("a name").to_string_lossy().replace('-', "_");
        // The suite emits nothing, and the testkit is not published.
        for file in
            rust_files(&folder.join("src")).into_iter().filter(|file| !file.to_string_lossy().contains("conformance"))
        {
            let text = fs::read_to_string(&file).expect("a source file");
            let events = events_of(&text).into_iter();
            found.extend(events.filter(|_| name != "testkit").map(|event| (format!("leasehold_{name}"), event)));
        }
    }
    let core = document.spans.iter().chain(&document.events).map(|told| ("leasehold_core".to_owned(), told.clone()));
    let documented: BTreeSet<_> = core.chain(document.events_of_stores.iter().cloned()).collect();
    let undocumented: Vec<_> = found.difference(&documented).collect();
    let absent: Vec<_> = documented.difference(&found).collect();
    assert!(
        undocumented.is_empty() && absent.is_empty(),
        "undocumented: {undocumented:#?}\nnot in the code: {absent:#?}"
    );
}

/// The events and spans of a file: `tracing::warn!(fields, "name")` and `tracing::debug_span!("name", fields)`.
fn events_of(text: &str) -> Vec<Told> {
    let mut events = Vec::new();
    for (at, _) in text.match_indices("tracing::") {
        let Some((kind, rest)) = text[at + "tracing::".len()..].split_once("!(") else { continue };
        let level = kind.strip_suffix("_span").unwrap_or(kind);
        if !["error", "warn", "info", "debug", "trace"].contains(&level) {
            continue;
        }
        let arguments = arguments_of(rest);
        let (names, fields): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with('"'));
        let [name] = names.as_slice() else { panic!("{arguments:?} has not one name") };
        let field = |argument: &&String| {
            let name = argument.split('=').next().unwrap_or_default().trim().trim_start_matches(['%', '?']);
            name.to_owned()
        };
        let fields = fields.iter().map(field).collect();
        events.push(Told { name: unescaped(name), level: level.to_owned(), fields });
    }
    events
}

/// What is between commas, up to the parenthesis that closes.
fn arguments_of(text: &str) -> Vec<String> {
    let (mut arguments, mut depth, mut quoted, mut escaped) = (vec![String::new()], 0, false, false);
    for letter in text.chars() {
        match letter {
            '"' if !escaped => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted && depth == 0 => break,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        if let Some(last) = arguments.last_mut() {
            last.push(letter);
        }
    }
    let arguments = arguments.iter().map(|argument| argument.trim().to_owned());
    arguments.filter(|argument| !argument.is_empty()).collect()
}

/// A string of several lines as one.
fn unescaped(literal: &str) -> String {
    let lines = literal.trim_matches('"').split("\\\n").map(str::trim_start);
    lines.collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|file| file.extension().is_some_and(|extension| extension == "rs")).collect()
}
