//! `cargo xtask model`: searches the states of the engine further than the tests do.

use std::process::ExitCode;

use crate::workspace::cargo;

/// Factor by which more situations are searched than in the tests: more than 20,000,000 in all.
const TIMES: &str = "16";

pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let filter = format!("engine::state::search::{}", words.first().unwrap_or(&""));
    let status = cargo()
        .args(["test", "--release", "--package", "leasehold-core", "--lib", "--", &filter])
        // One after the other, for each keeps a few gigabytes of situations that it has not gone on from.
        .args(["--skip", "::broken::", "--nocapture", "--test-threads=1"])
        .env("LEASEHOLD_SEARCH_TIMES", TIMES)
        .status()
        .map_err(|failure| failure.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
