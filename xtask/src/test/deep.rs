//! What `cargo xtask test --deep` runs beyond the tests: what takes long and finds something rarely.

use crate::steps::Steps;
use crate::workspace::cargo;
use crate::{chaos, model, mutants, release};

/// The folders of the packages whose tests are run only here.
pub(super) const PACKAGES: [&str; 2] = ["tests/chaos", "tests/examples"];

/// Hundreds of millions of states: only in `cargo xtask model redlock` itself, before a release.
const LONGEST_MODEL: &str = "one_round_holds_for_three_attempts";

pub(super) fn run(steps: &mut Steps) {
    steps.run("new backend", cargo().args(["test", "--quiet", "-p", "xtask", "--test", "new_backend"]));
    steps.run_task("model", &["model", "redlock", "--skip", LONGEST_MODEL], model::run);
    steps.run_task("chaos", &["chaos", "--seconds", "15"], chaos::run);
    // The faults of which one word is in the backend or the description: a sample.
    steps.run_task("mutants", &["mutants", "--suite", "memory"], |words| mutants::seeded::run(&words[1..]));
    release::steps(steps);
}
