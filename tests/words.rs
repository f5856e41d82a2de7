//! The words of this project are those of `docs/glossary.md`: the names that it had before stay away.

use std::fs;
use std::path::{Path, PathBuf};

/// Names and phrases that were replaced. The history (`docs/track-record.md`, `CHANGELOG.md`) may have them.
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
    let mut found = Vec::new();
    for file in files() {
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(root()).unwrap_or(&file).display();
        for (line, text) in text.lines().enumerate() {
            let words = REPLACED.iter().filter(|word| contains_word(text, word));
            found.extend(words.map(|word| format!("{name}:{}: {word}", line + 1)));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_contract_of_the_suite_is_the_one_that_is_documented() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file is there");
    let (documented, built_in) = (read("docs/contract.md"), read("crates/core/src/conformance/contract.md"));
    assert!(documented == built_in, "copy docs/contract.md to crates/core/src/conformance/contract.md");
}

#[test]
fn the_readme_gives_the_number_of_clauses() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file is there");
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
fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "benches/README.md"]
        .iter()
        .map(|file| root().join(file))
        .collect();
    for krate in below(&root().join("crates"), false) {
        files.push(krate.join("README.md"));
        files.extend(below(&krate.join("src"), true));
    }
    files.extend(below(&root().join("docs"), true));
    files.retain(|file| file.is_file() && !file.ends_with("docs/track-record.md"));
    assert!(files.len() > 100, "too few files were found: {}", files.len());
    files
}

/// What is in a folder; with `all`, the files in its folders, too.
fn below(folder: &Path, all: bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if all && path.is_dir() { below(&path, true) } else { vec![path] }).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is in a folder of the workspace")
}
