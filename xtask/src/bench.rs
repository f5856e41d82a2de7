//! `cargo xtask bench`: how fast the locks are, beside bare round trips and beside other locks.

use std::process::ExitCode;

use crate::workspace::{cargo, target};

/// Passes everything on to the program that measures. It fails if a lock was none, never because one was slow.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    // The program whose start is timed beside flock(1).
    let built = cargo().args(["build", "--release", "--package", "leasehold-cli", "--bin", "leasehold"]).status();
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
