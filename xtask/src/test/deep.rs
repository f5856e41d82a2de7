//! What `cargo xtask test --deep` runs beyond the tests: what takes long and finds something rarely.

use crate::steps::Steps;
use crate::workspace::cargo;
use crate::{chaos, model, mutants, release};

/// The packages whose tests are run only here, and their folders.
pub(super) const PACKAGES: [(&str, &str); 2] =
    [("leasehold-chaos", "tests/chaos"), ("leasehold-examples", "tests/examples")];

/// So long a setup of chaos runs, in seconds.
const CHAOS: &str = "15";

/// Hundreds of millions of states: only in `cargo xtask model redlock` itself, before a release.
const LONGEST_MODEL: &str = "one_round_holds_for_three_attempts";

/// The faults of the list of `mutants --suite` of which one word is in the backend or the description: a sample.
const SAMPLE: [&str; 1] = ["memory"];

pub(super) fn run(steps: &mut Steps) {
    steps.run("new backend", cargo().args(["test", "--quiet", "-p", "xtask", "--test", "new_backend"]));
    let words = ["redlock", "--skip", LONGEST_MODEL];
    Steps::announce("model", &format!("cargo xtask model {}", words.join(" ")));
    steps.note_code("model", model::run(&words));
    Steps::announce("chaos", "cargo xtask chaos --seconds 15");
    steps.note_code("chaos", chaos::run(&["--seconds", CHAOS]));
    Steps::announce("mutants", "cargo xtask mutants --suite memory");
    steps.note_code("mutants", mutants::run(&SAMPLE));
    release::steps(steps);
}
