//! Reads from the operating system what this process and this machine use and are.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process, user and system, in microseconds.
pub(crate) fn cpu_micros() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// Processor time of another process, in milliseconds.
pub(crate) fn cpu_millis_of(process: u32) -> std::io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // Behind the name, which may contain anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) * 1e3 / rustix::param::clock_ticks_per_second() as f64)
}

/// Memory of this process that is in use, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Describes the machine, without its name: its cores, then the versions of the compiler and the servers.
pub(crate) fn description() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let versions = [("rustc", "--version"), ("redis-server", "--version"), ("mariadbd", "--version")];
    let found = versions.iter().filter_map(|(program, flag)| first_line(program, flag));
    std::iter::once(format!("{cores} cores, {}", std::env::consts::ARCH)).chain(found).collect()
}

/// The current date: `2026-01-31`.
pub(crate) fn date() -> String {
    first_line("date", "+%F").unwrap_or_default()
}

fn first_line(program: &str, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.split(" sha=").next().unwrap_or(line).to_owned())
}

/// The folder of this package.
pub(crate) fn package() -> PathBuf {
    // Read at run time first: a build of this program may outlive a move of the folder.
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The folder for the report and the plots of this run: `bench` in the target folder.
pub(crate) fn output() -> PathBuf {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().map_or_else(|| scratch.clone(), PathBuf::from).join("bench")
}
