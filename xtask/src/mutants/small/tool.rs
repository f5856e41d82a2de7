//! Installs and runs the program `cargo-mutants`, which lists the mutants.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::workspace::{cargo, target};
use leasehold_testkit::launch::find;

/// The version. Another version may generate other mutants, and the list of equivalent ones is for this version.
const VERSION: &str = "27.1.0";

fn folder() -> PathBuf {
    target().join("tools")
}

/// Installs the program below the target folder.
pub(super) fn install() -> Result<(), String> {
    let status = cargo()
        .args(["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"])
        .arg(folder())
        .status()
        .map_err(|failure| format!("cargo install: {failure}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo install cargo-mutants: {status}")) }
}

/// A command for `cargo mutants`, without arguments.
pub(super) fn command() -> Result<Command, String> {
    let own = folder().join("bin/cargo-mutants");
    let program = Some(own).filter(|own| own.is_file()).or_else(|| find("cargo-mutants"));
    let program = program.ok_or("there is no cargo-mutants: cargo xtask mutants --install")?;
    let said = Command::new(&program).args(["mutants", "--version"]).output();
    let said = said.map_err(|failure| format!("{}: {failure}", program.display()))?;
    let said = String::from_utf8_lossy(&said.stdout);
    if said.split_whitespace().next_back() != Some(VERSION) {
        return Err(format!("this is {}, and not {VERSION}: cargo xtask mutants --install", said.trim()));
    }
    let mut command = Command::new(program);
    command.arg("mutants").env("CARGO", env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    Ok(command)
}
