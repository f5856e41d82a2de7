//! Commits of this repository, and checkouts of them in folders of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::{root, target};

/// A commit that exists.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) hash: String,
}

impl Commit {
    /// The commit of this name, such as `HEAD~3` or `v1.0`.
    pub(super) fn find(name: &str) -> Result<Self, String> {
        let commit = format!("{name}^{{commit}}");
        let found = git(&root(), &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]);
        Ok(Self { hash: found.map_err(|_| format!("there is no commit {name} here"))? })
    }

    /// The commit that is checked out in this folder, if no file differs from it: figures of other files would be of no commit.
    pub(super) fn clean(folder: &Path) -> Result<Self, String> {
        let changed = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        if !changed.is_empty() {
            return Err(format!("these files differ from the commit; commit or stash them first:\n{changed}"));
        }
        Ok(Self { hash: git(folder, &["rev-parse", "HEAD"])? })
    }

    pub(super) fn short(&self) -> &str {
        self.hash.get(..9).unwrap_or(&self.hash)
    }

    /// The text of a file of this commit.
    pub(super) fn file(&self, path: &str) -> Result<String, String> {
        git(&root(), &["show", &format!("{}:{path}", self.hash)])
    }
}

/// A checkout of a commit, with a target folder of its own beside it.
#[derive(Debug)]
pub(super) struct Checkout {
    /// Of the checkout and its target folder.
    folder: PathBuf,
}

impl Checkout {
    /// The checkout of that name in this workspace's target folder. It stays there for the next comparison; when it is of
    /// another commit, it and all that was built in it is replaced.
    pub(super) fn of(commit: &Commit, name: &str) -> Result<Self, String> {
        let checkout = Self { folder: target().join("bench").join(name) };
        let tree = checkout.tree();
        // Without its own `.git`, git would answer for the repository around it.
        let is_there = tree.join(".git").exists() && Commit::clean(&tree).is_ok_and(|found| found.hash == commit.hash);
        if !is_there {
            checkout.remove()?;
            git(&root(), &["worktree", "add", "--quiet", "--detach", &tree.display().to_string(), &commit.hash])?;
        }
        Ok(checkout)
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    pub(super) fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Removes the checkout and what was built in it.
    pub(super) fn remove(&self) -> Result<(), String> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).map_err(|e| format!("{}: {e}", self.folder.display()))?;
        }
        // Git keeps a note of each checkout, also when its folder was removed by hand.
        git(&root(), &["worktree", "prune"]).map(drop)
    }
}

/// What git prints.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let failed = |why: &str| format!("git {}: {}", arguments.join(" "), why.trim());
    let output = Command::new("git").args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
