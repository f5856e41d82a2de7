//! Errands in a process of their own, whose memory and processor time are nobody else's.

use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::job::runtime;
use crate::load::Result;
use crate::{growth, keeper};

/// What such a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Errand {
    /// Holds leases of `redis-single`: answers [`Upkeep`].
    Keep { url: String, leases: usize, seconds: u64 },
    /// Holds leases on a bare client, a task each: answers [`Upkeep`].
    KeepByTasks { url: String, leases: usize, seconds: u64 },
    /// Waits for a key that is held: answers the bytes per waiter.
    Wait { url: String, waiters: usize },
}

/// What it takes to hold leases.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Upkeep {
    pub(crate) core_percent: f64,
    pub(crate) bytes_per_lease: f64,
    pub(crate) latest_millis: f64,
}

/// The parent's side: the answer.
///
/// # Errors
/// What the process said instead.
pub(crate) fn run<T: DeserializeOwned>(errand: &Errand) -> Result<T> {
    let orders = serde_json::to_string(errand)?;
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--errand", &orders]).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    serde_json::from_str(&text).map_err(|_| format!("{errand:?}: {}", text.trim()).into())
}

/// The child's side: prints the answer.
pub(crate) fn obey(orders: &str) -> Result<()> {
    let answer = match serde_json::from_str(orders)? {
        Errand::Keep { url, leases, seconds } => {
            serde_json::to_string(&runtime(0)?.block_on(keeper::keep(&url, leases, seconds))?)?
        }
        Errand::KeepByTasks { url, leases, seconds } => {
            serde_json::to_string(&runtime(0)?.block_on(keeper::keep_by_tasks(&url, leases, seconds))?)?
        }
        Errand::Wait { url, waiters } => {
            serde_json::to_string(&runtime(0)?.block_on(growth::bytes_per_waiter(&url, waiters))?)?
        }
    };
    println!("{answer}");
    Ok(())
}
