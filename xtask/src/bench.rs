//! `cargo xtask bench`: measures the locks, beside bare round trips and other locks.

use std::process::ExitCode;

use crate::workspace::{cargo, target};

/// Runs the program that measures, with these arguments. It fails if a lock let two holders in, never because one was slow.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    // The program whose start is timed beside flock(1).
    let built =
        cargo().args(["build", "--profile", "bench", "--package", "leasehold-cli", "--bin", "leasehold"]).status();
    if !built.map_err(|failure| failure.to_string())?.success() {
        return Err("the leasehold program does not build".into());
    }
    let status = cargo()
        .args(["bench", "--package", "leasehold-benches", "--bench", "workloads", "--"])
        .args(arguments)
        .env("LEASEHOLD_BENCH_PROGRAM", target().join("release/leasehold"))
        .status()
        .map_err(|failure| failure.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
