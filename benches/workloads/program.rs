//! F1: the `leasehold` program beside flock(1).

use std::process::{Command, Stdio};

use crate::agent::{NOT_BUILT, program};
use crate::harness::{Aim, Role, Side, interleave};
use crate::load::{Result, now};
use crate::log::{P50, P99, Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;

/// Measures the time from the start of the program to its end, with a command under the lock that does nothing.
pub(crate) fn beside_flock(pace: Pace) -> Result<Report> {
    let Some(program) = program() else { return Ok(Report::absent("F1", NOT_BUILT)) };
    if Command::new("flock").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(Report::absent("F1", "the program: no flock(1) to compare with"));
    }
    let folder = tempfile::tempdir()?;
    let leasehold = || {
        let mut command = Command::new(&program);
        command.arg("--backend").arg(format!("file:{}", folder.path().join("locks").display()));
        command.args(["run", "program", "--", "true"]);
        command
    };
    let flock = || {
        let mut command = Command::new("flock");
        command.arg(folder.path().join("program")).arg("true");
        command
    };
    let sides = vec![
        Side::new(Role::Ours, "leasehold run", |_| starts(&leasehold)),
        Side::new(Role::Floor, "flock(1)", |_| starts(&flock)),
    ];
    let rounds = interleave(pace, sides)?;
    let what = "`leasehold run k -- true` (floor: flock(1)): p50 to its end, µs";
    Ok(Report::of([rounds.row("F1", what, "leasehold run", P50, &[Aim::WithinFloor(1.3)])]))
}

fn starts(command: &impl Fn() -> Command) -> Result<Sample> {
    const STARTS: usize = 25;
    let mut latencies = histogram();
    for _ in 0..STARTS {
        let begin = now();
        let ended = command().stdin(Stdio::null()).status()?;
        latencies.saturating_record(now() - begin);
        if !ended.success() {
            return Err("the command failed".into());
        }
    }
    let micros = |share| latencies.value_at_quantile(share) as f64 / 1e3;
    let figures = [(P50, micros(0.5)), (P99, micros(0.99))].into();
    Ok(Sample { acquisitions: STARTS, figures, latencies })
}
