//! What is published is fit to be published: what the packages contain, and what they depend on.

mod dependencies;
mod image;
mod packages;

use std::env;
use std::process::Command;

use crate::repository::root;

/// What cargo prints. It needs the network only for packages that no build here has fetched.
fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output();
    let output = output.expect("cargo can be started");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}
