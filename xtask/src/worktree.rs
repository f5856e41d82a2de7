//! Worktrees of this repository below the target folder: other commits, and copies in which something is wrong.

use std::path::PathBuf;
use std::process::Command;

use crate::command::printed;
use crate::workspace::{cargo, git, root, target};

/// A worktree, with a target folder of its own: cargo gives the same names to what it builds of two of them.
#[derive(Debug)]
pub(crate) struct Worktree {
    pub(crate) tree: PathBuf,
    pub(crate) target: PathBuf,
}

impl Worktree {
    /// The checkout that this command runs in.
    pub(crate) fn here() -> Self {
        Self { tree: root(), target: target() }
    }

    /// The worktree of this name, at a commit. What an earlier run changed in it is undone, and what it built stays.
    pub(crate) fn of(commit: &str, name: &str) -> Result<Self, String> {
        let folder = target().join("worktrees").join(name);
        let worktree = Self { tree: folder.join("tree"), target: folder.join("target") };
        // Without its own `.git`, git would answer for the repository around it.
        if worktree.tree.join(".git").exists() {
            printed(git(&worktree.tree).args(["checkout", "--quiet", "--force", "--detach", commit]))?;
        } else {
            let mut add = git(&root());
            // Forced, for git keeps a note of each, also when its folder was removed by hand.
            add.args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&worktree.tree).arg(commit);
            printed(&mut add)?;
        }
        Ok(worktree)
    }

    /// The same of what is checked out here, with the changes that are not in a commit yet.
    pub(crate) fn of_now(name: &str) -> Result<Self, String> {
        let stashed = printed(git(&root()).args(["stash", "create"]))?;
        Self::of(Some(stashed.trim()).filter(|commit| !commit.is_empty()).unwrap_or("HEAD"), name)
    }

    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = cargo();
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }
}
