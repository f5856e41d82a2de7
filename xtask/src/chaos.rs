//! `cargo xtask chaos`: real clients on real servers under faults.

use std::process::ExitCode;

use crate::workspace::{cargo, target};

/// Runs the program `leasehold-chaos` with these words.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let status = cargo()
        .args(["run", "--quiet", "--package", "leasehold-chaos", "--", "--output"])
        .arg(target().join("chaos"))
        .args(words)
        .status()
        .map_err(|failure| failure.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
