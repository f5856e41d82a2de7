//! Installs and runs the program `cargo-mutants`, which lists the mutants.

use std::env;
use std::process::Command;

use crate::tools;

/// The version. Another version may generate other mutants, and the list of equivalent ones is for this version.
const VERSION: &str = "27.1.0";

/// Installs the program below the target folder.
pub(super) fn install() -> Result<(), String> {
    tools::compile("cargo-mutants", VERSION, &[])
}

/// A command for `cargo mutants`, without arguments.
pub(super) fn command() -> Result<Command, String> {
    let program = tools::installed("cargo-mutants");
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
