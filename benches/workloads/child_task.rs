//! Measurements that a child process makes alone, so that its memory and processor time contain nothing else.

use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::load::Result;

/// What the child process measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ChildTask {
    /// Holds leases of `redis-single`. The answer is a [`HoldCost`].
    Hold { url: String, leases: usize, seconds: u64 },
    /// Holds leases on a bare client, with a task for each. The answer is a [`HoldCost`].
    HoldByTasks { url: String, leases: usize, seconds: u64 },
    /// Waits for a key that is held. The answer is the number of bytes per waiter.
    Wait { url: String, waiters: usize },
}

/// What it costs a client to hold leases.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct HoldCost {
    pub(crate) core_percent: f64,
    pub(crate) bytes_per_lease: f64,
    pub(crate) latest_millis: f64,
}

/// Runs the task in a child process of this program, and returns its answer. The parent's side.
///
/// # Errors
/// The text that the child printed instead of an answer.
pub(crate) fn run<T: DeserializeOwned>(task: &ChildTask) -> Result<T> {
    let argument = serde_json::to_string(task)?;
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--child-task", &argument]).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    serde_json::from_str(&text).map_err(|_| format!("{task:?}: {}", text.trim()).into())
}
