//! The words of this project are those of `docs/glossary.md`: the names that it had before stay away.

use std::path::PathBuf;

use crate::repository::{check, crates, files, read, root};

/// Names and phrases that were replaced. The history (`CHANGELOG.md`) may have them.
const REPLACED: &[&str] = &[
    "Agenda",
    "Asking",
    "Attendant",
    "Beside whom",
    "Callee",
    "Census",
    "Doorbell",
    "Doubt",
    "Errand",
    "Flocked",
    "Grip",
    "HandOff",
    "HandOver",
    "HardOfHearing",
    "Hub",
    "Keeper",
    "LetGo",
    "Lifeline",
    "Listener",
    "SeenThrough",
    "Sought",
    "Station",
    "StepDown",
    "Steward",
    "Stint",
    "Subordinate",
    "Tenure",
    "The same.",
    "Ticket",
    "Wakeups",
    "Wish",
    "Words",
    "adopt",
    "adopted",
    "amid",
    "backend_name",
    "doorbell",
    "echoes",
    "hand-over",
    "hand_over",
    "let_go",
    "mended",
    "mends",
    "rider",
    "teach",
    "trouble",
];

#[test]
fn replaced_names_stay_away() {
    let files = read_by_many();
    assert!(files.len() > 100, "too few files were found: {}", files.len());
    check(files, |text| {
        let lines = text.lines().enumerate();
        let found = lines.flat_map(|(at, line)| {
            let words = REPLACED.iter().filter(move |word| contains_word(line, word));
            words.map(move |word| format!("line {}: {word}", at + 1))
        });
        found.collect()
    });
}

#[test]
fn the_readme_gives_the_number_of_clauses() {
    let read = |path: &str| read(&root().join(path));
    let clauses = read("docs/contract.md").lines().filter(|line| line.starts_with("| C")).count();
    let said = format!("the {clauses} clauses");
    assert!(read("README.md").contains(&said), "README.md does not say \"{said}\"");
}

#[test]
fn only_whole_words_are_found() {
    assert!(contains_word("a Hint.", "Hint") && contains_word("/// The same.", "The same."));
    assert!(!contains_word("Hints", "Hint") && !contains_word("a_Hint", "Hint") && !contains_word("hint", "Hint"));
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let begins = word.starts_with(is_part) && text[..at].ends_with(is_part);
        let goes_on = word.ends_with(is_part) && text[at + word.len()..].starts_with(is_part);
        !begins && !goes_on
    })
}

/// What users and contributors read: sources of the crates, documents and READMEs.
fn read_by_many() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "benches/README.md"]
        .iter()
        .map(|file| root().join(file))
        .collect();
    for folder in crates() {
        all.push(folder.join("README.md"));
        all.extend(files(&folder.join("src")));
    }
    all.extend(files(&root().join("docs")));
    all
}
