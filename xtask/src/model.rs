//! `cargo xtask model`: searches the states of the engine, or of Redlock, further than the tests do.

use crate::command::passes;
use crate::workspace::cargo;

/// Factor by which more situations are searched than in the tests: more than 20,000,000 in all.
const TIMES: &str = "16";

pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let mut search = cargo();
    search.args(["test", "--release", "--package"]).env("LEASEHOLD_SEARCH_TIMES", TIMES);
    match words {
        ["redlock", filters @ ..] => {
            search.args(["leasehold-redlock", "--test", "model", "--", "--include-ignored"]).args(filters);
        }
        words => {
            search.args(["leasehold-search", "--lib", "--"]);
            search.arg(format!("engine::state::search::{}", words.first().unwrap_or(&"")));
        }
    }
    // One after the other, for each keeps a few gigabytes of situations that it has not gone on from.
    passes(search.args(["--nocapture", "--test-threads=1"]))
}
