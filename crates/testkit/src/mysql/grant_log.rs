//! What the processes of a test were granted, in the order of the grants.

use std::fs::File;
use std::io::Write;

use leasehold_core::{Guard, GuardMode, Mode};

/// The file in which a process writes down what it was granted.
#[derive(Debug)]
pub struct GrantLog<'f> {
    file: &'f mut File,
}

impl<'f> GrantLog<'f> {
    pub(super) fn new(file: &'f mut File) -> Self {
        Self { file }
    }

    /// Writes one line, while the lock is held: so the order of the lines is the order of the grants.
    pub fn write<M: GuardMode>(self, guard: &Guard<M>) {
        if guard.is_held() {
            let mode = if M::MODE == Mode::Exclusive { "w" } else { "r" };
            let line = format!("{} {mode} {}.\n", guard.key(), guard.fencing_token().unwrap());
            self.file.write_all(line.as_bytes()).unwrap();
        }
    }
}
