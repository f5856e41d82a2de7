//! The spans and events of `docs/observability.md`, beside those in the code.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use crate::repository::{crates, read, root, rust_files};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// A span or an event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    by: String,
    name: String,
    level: String,
    fields: BTreeSet<String>,
}

/// In the code of the published crates, so that also those are found that take a fault of a server. The suite emits nothing.
#[test]
fn every_span_and_event_of_the_code_is_documented_and_nothing_else() {
    let mut found = BTreeSet::new();
    for folder in crates().iter().filter(|folder| !folder.ends_with("testkit")) {
        let by = format!("leasehold_{}", folder.file_name().unwrap().to_string_lossy().replace('-', "_"));
        let files =
            rust_files(&folder.join("src")).into_iter().filter(|file| !is_of_the_suite(file)).map(|file| read(&file));
        for text in files.filter(|text| text.contains("tracing::")) {
            add_told_in(text.parse().unwrap(), &by, &mut found);
        }
    }
    let text = read(&root().join("docs/observability.md"));
    let documented: BTreeSet<Told> = text.lines().filter_map(documented).collect();
    assert!(documented.len() > 30, "the tables were not found");
    let undocumented: Vec<_> = found.difference(&documented).collect();
    let absent: Vec<_> = documented.difference(&found).collect();
    assert!(undocumented.is_empty() && absent.is_empty(), "undocumented: {undocumented:#?}\ngone: {absent:#?}");
}

fn is_of_the_suite(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "conformance")
}

/// What a row of a table tells, if it has a level: those of one kind of store have their crate behind it.
fn documented(row: &str) -> Option<Told> {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let [_, name, level, rest @ ..] = &cells[..] else { return None };
    let codes = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let by = rest.first().and_then(|cell| codes(cell).pop()).filter(|by| by.starts_with("leasehold_"));
    let fields = rest.get(usize::from(by.is_some()))?;
    let by = by.unwrap_or_else(|| "leasehold_core".to_owned());
    let told = || {
        Some(Told {
            by,
            name: codes(name).pop()?,
            level: (*level).to_owned(),
            fields: codes(fields).into_iter().collect(),
        })
    };
    LEVELS.contains(level).then(told)?
}

/// Adds `tracing::warn!(fields, "name")` and `tracing::debug_span!("name", fields)`.
fn add_told_in(code: TokenStream, by: &str, told: &mut BTreeSet<Told>) {
    let mut before = Vec::new();
    for token in code {
        if let TokenTree::Group(group) = &token {
            let called: String = before.iter().rev().take(5).rev().map(String::as_str).collect();
            let kind = called.strip_prefix("tracing::").and_then(|called| called.strip_suffix('!'));
            let level = kind.map_or("", |kind| kind.strip_suffix("_span").unwrap_or(kind));
            if LEVELS.contains(&level) {
                let (name, fields) = name_and_fields(group.stream());
                told.insert(Told { by: by.to_owned(), name, level: level.to_owned(), fields });
            }
            add_told_in(group.stream(), by, told);
        }
        before.push(token.to_string());
    }
}

fn name_and_fields(arguments: TokenStream) -> (String, BTreeSet<String>) {
    let (mut name, mut fields) = (String::new(), BTreeSet::new());
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    for argument in arguments.split(|token| token.to_string() == ",") {
        if let [TokenTree::Literal(text)] = argument {
            // A text of several lines is one.
            name = text.to_string().trim_matches('"').split("\\\n").map(str::trim_start).collect();
        } else if let Some(field) = argument.iter().find(|token| matches!(token, TokenTree::Ident(_))) {
            fields.insert(field.to_string());
        }
    }
    (name, fields)
}
