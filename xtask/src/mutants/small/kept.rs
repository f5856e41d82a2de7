//! What earlier runs noticed: `ends.json` beside the copy, so that a run can be taken up again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::generated::{Mutant, names};
use super::subject::Subject;
use crate::mutants::end::End;
use crate::workspace::{read, write};

const HANGS: &str = "hangs";

/// How the mutants that were noticed ended.
#[derive(Debug)]
pub(super) struct Kept {
    file: PathBuf,
    names: Vec<String>,
    ends: BTreeMap<String, String>,
}

impl Kept {
    pub(super) fn of(subject: &Subject, mutants: &[Mutant]) -> Self {
        let file = subject.copy.target.join("ends.json");
        let ends = serde_json::from_str(&read(&file).unwrap_or_default()).unwrap_or_default();
        Self { file, names: names(mutants), ends }
    }

    /// How this mutant ended in an earlier run that noticed it.
    pub(super) fn end(&self, number: usize) -> Option<End> {
        let end = self.ends.get(&self.names[number])?;
        Some(if end == HANGS { End::Hung } else { End::Noticed(end.clone()) })
    }

    /// Writes down how a mutant ended, at once: a run may be broken off.
    pub(super) fn keep(&mut self, number: usize, end: &End) -> Result<(), String> {
        let end = match end {
            End::Noticed(by) => by.clone(),
            End::Hung => HANGS.to_owned(),
            End::Survived => return Ok(()),
        };
        self.ends.insert(self.names[number].clone(), end);
        let kept = serde_json::to_string_pretty(&self.ends).map_err(|failure| failure.to_string())?;
        write(&self.file, &kept)
    }
}
