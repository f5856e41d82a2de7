//! `cargo xtask model`: searches the states of the engine, or of Redlock, further than the tests do.

use std::process::ExitCode;

use crate::workspace::cargo;

/// Factor by which more situations are searched than in the tests: more than 20,000,000 in all.
const TIMES: &str = "16";

/// The name for the model of Redlock.
const REDLOCK: &str = "redlock";

pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let status = match words {
        [name, filters @ ..] if *name == REDLOCK => cargo()
            .args(["test", "--release", "--package", "leasehold-redlock", "--test", "model", "--"])
            .args(filters)
            .args(["--include-ignored", "--nocapture", "--test-threads=1"])
            .status(),
        words => {
            let filter = format!("engine::state::search::{}", words.first().unwrap_or(&""));
            cargo()
                .args(["test", "--release", "--package", "leasehold-search", "--lib", "--", &filter])
                // One after the other, for each keeps a few gigabytes of situations that it has not gone on from.
                .args(["--nocapture", "--test-threads=1"])
                .env("LEASEHOLD_SEARCH_TIMES", TIMES)
                .status()
        }
    };
    let status = status.map_err(|failure| failure.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
