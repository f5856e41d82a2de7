//! B: the first command of the README on a clean checkout, and the size of the program, beside an earlier commit.

use std::fs;
use std::time::Instant;

use super::checkout::Checkout;
use super::comparison::Row;
use crate::command::succeed;

/// The id of this workload. It takes minutes, and runs only when it is named.
pub(super) const BUILD: &str = "B";

const FIGURES: [&str; 3] =
    ["`cargo build --release --bin leasehold`, s", "the same, processor time, s", "the program without symbols, KiB"];

/// Builds both commits, each in a new checkout. They are removed afterwards.
pub(super) fn compare(before: &str, now: &str) -> Result<Vec<Row>, String> {
    let (before, now) = (figures_of(before)?, figures_of(now)?);
    let row = |at: usize| Row {
        id: BUILD.to_owned(),
        what: FIGURES[at].to_owned(),
        before: vec![before[at]],
        now: vec![now[at]],
        less_is_better: true,
    };
    Ok((0..FIGURES.len()).map(row).collect())
}

fn figures_of(commit: &str) -> Result<[f64; 3], String> {
    println!("building {commit} on a clean checkout …");
    let checkout = Checkout::of(commit, "first-build")?;
    let figures = measured(&checkout);
    checkout.remove()?;
    figures
}

fn measured(checkout: &Checkout) -> Result<[f64; 3], String> {
    // What the network takes is not measured.
    succeed(checkout.cargo().args(["fetch", "--quiet", "--locked"]))?;
    let (began, cpu) = (Instant::now(), cpu_seconds_of_children());
    let mut build = checkout.cargo();
    build.args(["build", "--quiet", "--locked", "--release", "--bin", "leasehold"]);
    // Of earlier commits, the profile keeps them.
    succeed(build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols"))?;
    let (seconds, cpu_seconds) = (began.elapsed().as_secs_f64(), cpu_seconds_of_children() - cpu);
    let program = checkout.target.join("release/leasehold");
    let size = fs::metadata(&program).map_err(|failure| format!("{}: {failure}", program.display()))?.len();
    Ok([seconds, cpu_seconds, u32::try_from(size / 1024).unwrap_or(u32::MAX).into()])
}

/// Processor time of all processes that this one has waited for, and of theirs; not a number where the system does not say.
fn cpu_seconds_of_children() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may contain anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(13) + ticks(14)) / TICKS_PER_SECOND
}
