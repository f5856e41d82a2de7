//! `cargo xtask chaos`: real clients on real servers under faults.

use crate::command::passes;
use crate::workspace::{cargo, target};

/// Runs the program `leasehold-chaos` with these words.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let mut chaos = cargo();
    chaos.args(["run", "--quiet", "--package", "leasehold-chaos", "--", "--output"]).arg(target().join("chaos"));
    passes(chaos.args(words))
}
