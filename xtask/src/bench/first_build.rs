//! B: the first command of the README on a clean checkout, and the size of the program, beside an earlier commit.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::workspace::cargo;

use super::checkout::{Checkout, Commit};
use super::comparison::Row;

/// The id of this workload. It takes minutes, and runs only when it is named.
pub(super) const BUILD: &str = "B";

/// Builds both commits, each in a new checkout. They are removed afterwards.
pub(super) fn compare(before: &Commit, now: &Commit) -> Result<Vec<Row>, String> {
    let (before, now) = (Built::of(before)?, Built::of(now)?);
    let row = |what: &str, figure: fn(&Built) -> f64, aim| {
        Row::measured(BUILD, what, [figure(&before), figure(&now)]).with_aim(aim)
    };
    Ok(vec![
        row("`cargo build --release --bin leasehold`, s", |built| built.seconds, 0.65),
        row("the same, processor time, s", |built| built.cpu_seconds, 0.65),
        row("the program without symbols, KiB", |built| built.kilobytes, 0.6),
    ])
}

struct Built {
    seconds: f64,
    cpu_seconds: f64,
    kilobytes: f64,
}

impl Built {
    fn of(commit: &Commit) -> Result<Self, String> {
        println!("building {} on a clean checkout …", commit.short());
        let checkout = Checkout::of(commit, "first-build")?;
        let built = Self::in_checkout(&checkout);
        checkout.remove()?;
        built
    }

    fn in_checkout(checkout: &Checkout) -> Result<Self, String> {
        let run = |arguments: &[&str]| {
            let mut command = cargo();
            command.args(arguments).current_dir(checkout.tree()).env("CARGO_TARGET_DIR", checkout.target());
            succeeded(&mut command)
        };
        // What the network takes is not measured.
        run(&["fetch", "--quiet", "--locked"])?;
        let (begin, cpu) = (Instant::now(), cpu_seconds_of_children());
        run(&["build", "--quiet", "--locked", "--release", "--bin", "leasehold"])?;
        let (seconds, cpu_seconds) = (begin.elapsed().as_secs_f64(), cpu_seconds_of_children() - cpu);
        let program = checkout.target().join("release/leasehold");
        let kilobytes = size_without_symbols(&program).map_err(|e| format!("{}: {e}", program.display()))?;
        Ok(Self { seconds, cpu_seconds, kilobytes })
    }
}

fn succeeded(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// In KiB. Without `strip`, the size as it is.
fn size_without_symbols(program: &Path) -> io::Result<f64> {
    let stripped = program.with_extension("stripped");
    fs::copy(program, &stripped)?;
    let _ = Command::new("strip").arg(&stripped).status();
    let kilobytes = u32::try_from(fs::metadata(&stripped)?.len() / 1024).map_err(io::Error::other)?;
    Ok(kilobytes.into())
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
