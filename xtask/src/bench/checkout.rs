//! Checkouts of commits of this repository, each in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::command::printed;
use crate::workspace::{cargo, git, root, target};

/// The commit of this name, such as `HEAD~3` or `v1.0`.
pub(super) fn commit(name: &str) -> Result<String, String> {
    let commit = format!("{name}^{{commit}}");
    let found =
        printed(git(&root()).args(["rev-parse", "--short=9", "--verify", "--quiet", "--end-of-options", &commit]));
    found.map(|hash| hash.trim().to_owned()).map_err(|_| format!("there is no commit {name} here"))
}

/// A checkout, and the folder of what is built of it.
#[derive(Debug)]
pub(super) struct Checkout {
    tree: PathBuf,
    pub(super) target: PathBuf,
}

impl Checkout {
    /// The one that this command runs in.
    pub(super) fn here() -> Self {
        Self { tree: root(), target: target() }
    }

    /// The checkout of that name in this workspace's target folder. It stays there for the next comparison; when it is of
    /// another commit, it and all that was built in it is replaced.
    pub(super) fn of(commit: &str, name: &str) -> Result<Self, String> {
        let folder = target().join("bench").join(name);
        let checkout = Self { tree: folder.join("tree"), target: folder.join("target") };
        // Without its own `.git`, git would answer for the repository around it.
        let is_there = checkout.tree.join(".git").exists()
            && checkout.is_clean().is_ok()
            && printed(git(&checkout.tree).args(["rev-parse", "HEAD"])).is_ok_and(|hash| hash.starts_with(commit));
        if !is_there {
            checkout.remove()?;
            printed(git(&root()).args(["worktree", "add", "--quiet", "--detach"]).arg(&checkout.tree).arg(commit))?;
        }
        Ok(checkout)
    }

    /// Fails if a file differs from its commit: the figures would be of no commit.
    pub(super) fn is_clean(&self) -> Result<(), String> {
        let changed = printed(git(&self.tree).args(["status", "--porcelain", "--untracked-files=no"]))?;
        let why = "these files differ from the commit; commit or stash them first";
        if changed.is_empty() { Ok(()) } else { Err(format!("{why}:\n{changed}")) }
    }

    pub(super) fn cargo(&self) -> Command {
        let mut cargo = cargo();
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }

    /// Removes the checkout and what was built in it.
    pub(super) fn remove(&self) -> Result<(), String> {
        for folder in [&self.tree, &self.target].into_iter().filter(|folder| folder.exists()) {
            fs::remove_dir_all(folder).map_err(|failure| format!("{}: {failure}", folder.display()))?;
        }
        // Git keeps a note of each checkout, also when its folder was removed by hand.
        printed(git(&root()).args(["worktree", "prune"])).map(drop)
    }
}
