//! A copy of the workspace, in which what is wrong is built.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::printed;
use crate::workspace::{cargo, files, git, root, target};

/// A copy of the workspace, with a target folder of its own: cargo gives the same names to what it builds of two copies.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) tree: PathBuf,
    pub(super) target: PathBuf,
}

impl Copy {
    /// Copies what is under version control, and is answered by `text` from a file's name and content. Other files stay as they are.
    pub(super) fn create(name: &str, text: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> Result<Self, String> {
        let folder = target().join("mutants").join(name);
        let copy = Self { tree: folder.join("tree"), target: folder.join("target") };
        let listed = printed(git(&root()).args(["ls-files", "-z"]))?;
        let names: HashSet<&str> = listed.split_terminator('\0').collect();
        // Files of an earlier copy that the workspace does not have any more: cargo would take them for tests.
        for file in files(&copy.tree) {
            let name = file.strip_prefix(&copy.tree).ok().and_then(Path::to_str);
            if !name.is_some_and(|name| names.contains(name)) {
                fs::remove_file(&file).map_err(|failure| format!("{}: {failure}", file.display()))?;
            }
        }
        for name in names {
            // It may be deleted, and not yet in a commit.
            if let Some(text) = fs::read(root().join(name)).ok().and_then(|is| text(name, is)) {
                copy.write(name, &text)?;
            }
        }
        Ok(copy)
    }

    /// Writes a file that differs. Others stay as they are, so that cargo does not build them again.
    pub(super) fn write(&self, name: &str, text: &[u8]) -> Result<(), String> {
        let file = self.tree.join(name);
        if fs::read(&file).is_ok_and(|there| there == text) {
            return Ok(());
        }
        let written = fs::create_dir_all(file.parent().unwrap_or(&file)).and_then(|()| fs::write(&file, text));
        written.map_err(|failure| format!("{}: {failure}", file.display()))
    }

    pub(super) fn cargo(&self) -> Command {
        let mut cargo = cargo();
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }
}
