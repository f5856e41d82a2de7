//! A process `leasehold agent`, and the program that it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use leasehold_testkit::{Deadline, KilledOnDrop, PATIENCE};
use tempfile::TempDir;

use crate::load::Result;

/// Why there is no program.
pub(crate) const NOT_BUILT: &str = "the program: not built; cargo xtask bench builds it";

/// The `leasehold` program. `None`: `cargo xtask bench` has not built it.
pub(crate) fn program() -> Option<PathBuf> {
    std::env::var_os("LEASEHOLD_BENCH_PROGRAM").map(PathBuf::from).filter(|path| path.exists())
}

/// An agent, until this is dropped.
pub(crate) struct Agent {
    _program: KilledOnDrop,
    folder: TempDir,
}

impl Agent {
    /// Starts one before this store, and waits until it listens.
    pub(crate) fn start(url: &str) -> Result<Result<Self, String>> {
        let Some(program) = program() else { return Ok(Err(NOT_BUILT.to_owned())) };
        let folder = tempfile::tempdir()?;
        let policy = folder.path().join("policy");
        fs::write(&policy, "* * keys=100000 connections=100000")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600))?;
        let mut command = Command::new(program);
        command.arg("--backend").arg(url).arg("agent").arg("--policy").arg(policy);
        command.arg("--socket").arg(folder.path().join("sock")).stdin(Stdio::null());
        let agent = Self { _program: KilledOnDrop::spawn(&mut command)?, folder };
        let deadline = Deadline::after(PATIENCE);
        while UnixStream::connect(agent.socket()).is_err() {
            if deadline.is_over() {
                return Err("the agent does not listen".into());
            }
        }
        Ok(Ok(agent))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }
}
