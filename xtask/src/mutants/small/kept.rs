//! What earlier runs noticed: `ends.json` beside the copy, so that a run can be taken up again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::generated::Mutant;
use super::subject::{Subject, read, write};
use crate::mutants::end::End;

const HANGS: &str = "hangs";

/// How the mutants that were noticed ended. A mutant is known by its file, its description, and the line as it is changed:
/// other lines may come and go above it.
#[derive(Debug)]
pub(super) struct Kept {
    file: PathBuf,
    /// The keys of the mutants, in their order.
    keys: Vec<String>,
    ends: BTreeMap<String, String>,
}

impl Kept {
    pub(super) fn of(subject: &Subject, mutants: &[Mutant]) -> Self {
        let file = subject.target.join("ends.json");
        let ends = serde_json::from_str(&read(&file).unwrap_or_default()).unwrap_or_default();
        Self { file, keys: keys(mutants), ends }
    }

    /// How this mutant ended in an earlier run that noticed it.
    pub(super) fn end(&self, number: usize) -> Option<End> {
        let end = self.ends.get(&self.keys[number])?;
        Some(if end == HANGS { End::Hung } else { End::Noticed(end.clone()) })
    }

    /// Writes down how a mutant ended, at once: a run may be broken off.
    pub(super) fn keep(&mut self, number: usize, end: &End) -> Result<(), String> {
        let end = match end {
            End::Noticed(by) => by.clone(),
            End::Hung => HANGS.to_owned(),
            End::Survived => return Ok(()),
        };
        self.ends.insert(self.keys[number].clone(), end);
        let kept = serde_json::to_string_pretty(&self.ends).map_err(|failure| failure.to_string())?;
        write(&self.file, &kept)
    }
}

/// The keys of these mutants. Two that are alike are told apart by their order.
fn keys(mutants: &[Mutant]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let key = |mutant: &Mutant| {
        let key = format!("{}: {}: {}", mutant.file, mutant.what, mutant.line);
        let times = seen.entry(key.clone()).or_default();
        *times += 1;
        if *times == 1 { key } else { format!("{key} ({times})") }
    };
    mutants.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_known_again_where_its_line_has_moved_and_is_told_from_one_that_is_alike() {
        let mutant = |line: usize, what: &str| Mutant {
            file: "a.rs".to_owned(),
            what: what.to_owned(),
            replacement: String::new(),
            span: ((line, 1), (line, 2)),
            function: ((1, 1), (9, 1)),
            line: "a += 1".to_owned(),
        };
        let before = keys(&[mutant(2, "x"), mutant(4, "x"), mutant(5, "y")]);
        assert_eq!(before, keys(&[mutant(3, "x"), mutant(5, "x"), mutant(6, "y")]));
        assert!(before[0] != before[1] && before[1] != before[2] && before[0] != before[2], "{before:?}");
    }
}
