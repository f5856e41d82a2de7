//! F1: locks in files beside the bare system calls, and the `leasehold` program beside flock(1).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Row, Side, interleave};
use crate::job::Job;
use crate::load::{Result, now};
use crate::log::{P50, P99, PER_SECOND, Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers;

const OURS: &str = "file";

/// Workload F1: one process, and as many keys as it keeps files open. One key alone would measure the rule that a store grants a
/// key 16,000 times a second at most.
pub(crate) fn f1(pace: Pace) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    let (ours, raw) = (folder.path().join("locks"), folder.path().join("raw"));
    std::fs::create_dir(&raw)?;
    let job = |locks| Job::own_keys(locks, 16);
    let sides = vec![
        Side::job(Role::Ours, OURS, job(Locks::File { folder: ours.clone() })),
        Side::job(Role::Floor, "flock(2) + write", job(Locks::RawFile { folder: raw.clone() })),
    ];
    let rounds = interleave(pace, sides)?;
    let mut report = Report::of([
        rounds.row("F1", "16 keys of one thread: cycles/s", OURS, PER_SECOND, &[Aim::FloorTimes(0.5)]),
        rounds.row("F1", "16 keys of one thread: p50 of a cycle, µs", OURS, P50, &[]),
    ]);
    report.extend(program(pace, &ours, &raw)?);
    Ok(report)
}

/// Measures the time from the start of the program to its end, with a command under the lock that does nothing.
fn program(pace: Pace, ours: &Path, raw: &Path) -> Result<Report> {
    let Some(program) = servers::program() else { return Ok(servers::not_built("F1")) };
    if Command::new("flock").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(Report::absent("F1", "the program: no flock(1) to compare with"));
    }
    let leasehold = move || {
        let mut command = Command::new(&program);
        command.arg("--backend").arg(format!("file:{}", ours.display())).args(["run", "program", "--", "true"]);
        command
    };
    let flock = || {
        let mut command = Command::new("flock");
        command.arg(raw.join("program")).arg("true");
        command
    };
    let sides = vec![
        Side::new(Role::Ours, "leasehold run", move |_| starts(&leasehold)),
        Side::new(Role::Floor, "flock(1)", move |_| starts(&flock)),
    ];
    let rounds = interleave(pace, sides)?;
    let what = "`leasehold run k -- true` (floor: flock(1)): p50 to its end, µs";
    let row: Row = rounds.row("F1", what, "leasehold run", P50, &[Aim::WithinFloor(1.3)]);
    Ok(Report::of([row]))
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
