//! The mutants that change nothing, each with the reason.

use super::generated::Mutant;

/// A change that nobody can notice.
#[derive(Debug)]
pub(super) struct Equivalent {
    pub(super) file: &'static str,
    /// What `cargo-mutants` calls it.
    pub(super) mutant: &'static str,
    /// A part of the line as it is then.
    pub(super) line: &'static str,
    #[allow(dead_code, reason = "for who reads it here")]
    pub(super) why: &'static str,
}

impl Equivalent {
    pub(super) fn is(&self, mutant: &Mutant) -> bool {
        mutant.file == self.file && mutant.what == self.mutant && mutant.line.contains(self.line)
    }
}

pub(super) const EQUIVALENT: &[Equivalent] = &[];
