use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, wait};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::Instant;

use crate::exit;
use crate::parent_death;

/// The environment variables that the command gets. Values that an outer `leasehold` set are replaced or removed.
pub(crate) const VARIABLES: [&str; 5] =
    ["LEASEHOLD_KEY", "LEASEHOLD_TOKEN", "LEASEHOLD_TOKENS", "LEASEHOLD_BACKEND", "LEASEHOLD_EXPIRES_IN_MS"];

/// The command, running as the leader of a process group of its own.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    changes: unix::Signal,
}

/// A change of the command's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command ended.
    Ended(Ended),
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(u8),
    Signal(i32),
}

impl Ended {
    /// The exit code of a program that ends as the command did.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => exit::of_signal(signal),
        }
    }
}

impl Child {
    /// Starts the command. When this returns, the child has executed the program.
    pub(crate) fn start(command: &[OsString], variables: [Option<String>; VARIABLES.len()]) -> io::Result<Self> {
        let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // Subscribed before the command starts, so that its end cannot be missed.
        let changes = unix::signal(SignalKind::child())?;
        let mut command = Command::new(program);
        command.args(args).process_group(0).env_remove("LEASEHOLD_PASSWORD");
        for (name, value) in VARIABLES.into_iter().zip(variables) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        parent_death::dies_with_us(&mut command);
        let started = command.spawn()?;
        Ok(Self { pid: Pid::from_child(&started), changes })
    }

    /// The process id of the command, which is also the id of its process group.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the whole process group. Does nothing if the group is gone.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Waits for the next change of the command's state. Cancel safe. Must not be called again after the command ended.
    pub(crate) async fn change(&mut self) -> Change {
        loop {
            if let Some(change) = self.look() {
                return change;
            }
            self.changes.recv().await;
        }
    }

    /// Waits until the process group is empty, or until `until`; then kills what is left of the group.
    pub(crate) async fn end_the_rest(&self, until: Instant) {
        const LOOK: Duration = Duration::from_millis(20);
        while test_kill_process_group(self.pid).is_ok() {
            // One that became our child counts as there until it is waited for.
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            if Instant::now() >= until {
                self.signal(Signal::KILL);
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn look(&self) -> Option<Change> {
        let status = loop {
            match wait(WaitOptions::UNTRACED | WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => break status,
                // As the first process of a container, this program is the parent of everything there that lost its own.
                Ok(Some(_)) => {}
                Ok(None) => return None,
                // Another part of the program waited for our child, so it is unknown how the child ended.
                Err(_) => return Some(Change::Ended(Ended::Code(exit::SYSTEM))),
            }
        };
        if let Some(signal) = status.stopping_signal() {
            return Some(Change::Stopped(signal));
        }
        let code = status.exit_status().map(|code| Ended::Code(u8::try_from(code & 0xff).unwrap_or(exit::SYSTEM)));
        code.or_else(|| status.terminating_signal().map(Ended::Signal)).map(Change::Ended)
    }
}
