//! The words of this project are those of `docs/glossary.md`: the names that it had before stay away.

use crate::repository::{check, crates, files, root};

/// Names and phrases that were replaced. The history (`CHANGELOG.md`) may have them.
const REPLACED: &str = "Agenda, Asking, Attendant, Beside whom, Callee, Census, Doorbell, Doubt, Errand, Flocked, Grip, HandOff, \
     HandOver, HardOfHearing, Hub, Keeper, LetGo, Lifeline, Listener, SeenThrough, Sought, Station, StepDown, Steward, Stint, \
     Subordinate, Tenure, The same., Ticket, Wakeups, Wish, Words, adopt, adopted, amid, backend_name, doorbell, echoes, \
     hand-over, hand_over, let_go, mended, mends, rider, teach, trouble";

/// In what users and contributors read: sources of the crates, documents and READMEs.
#[test]
fn replaced_names_stay_away() {
    let documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "benches/README.md"];
    let mut read_by_many: Vec<_> = documents.iter().map(|file| root().join(file)).collect();
    for folder in crates() {
        read_by_many.push(folder.join("README.md"));
        read_by_many.extend(files(&folder.join("src")));
    }
    read_by_many.extend(files(&root().join("docs")));
    check(read_by_many, |text| {
        let lines = text.lines().enumerate();
        let found = lines.flat_map(|(at, line)| {
            let words = REPLACED.split(", ").filter(move |word| contains_word(line, word));
            words.map(move |word| format!("line {}: {word}", at + 1))
        });
        found.collect()
    });
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
