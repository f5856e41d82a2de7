//! The programs of the workspace's tests: built once, and run in two lanes at the same time, because most of them wait for a
//! lease or a server most of their time.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::tally::Tally;
use crate::test_program::TestProgram;
use crate::workspace::root;

/// What a package of the first lane has in its manifest. Those around Redis take about half of the time, and no two programs that
/// change a server of Redis run at the same time.
const FIRST_LANE: &str = "\nleasehold-redis.workspace";

fn name(program: &TestProgram) -> String {
    program.source.strip_prefix(root()).unwrap_or(&program.source).display().to_string()
}

fn lane(program: &TestProgram) -> usize {
    let manifest = fs::read_to_string(program.folder.join("Cargo.toml")).unwrap_or_default();
    usize::from(!manifest.contains(FIRST_LANE) && !manifest.contains("\nname = \"leasehold-redis\"\n"))
}

/// Runs it, and returns what it printed. What it prints as errors is seen at once.
fn output(program: &TestProgram, environment: &[(&'static str, String)]) -> io::Result<(Vec<u8>, bool)> {
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).envs(environment.iter().cloned());
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    Ok((done.stdout, done.status.success()))
}

/// Runs all of them, prints the output of each when it has ended, and adds up the counts. Returns the names of those that failed.
pub(super) fn run(
    mut programs: Vec<TestProgram>,
    environment: &[(&'static str, String)],
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    programs.sort();
    let mut lanes = [VecDeque::new(), VecDeque::new()];
    for program in programs {
        lanes[lane(&program)].push_back(program);
    }
    let shared = Mutex::new((tally, Vec::new()));
    let through = |programs: VecDeque<TestProgram>| {
        programs.into_iter().try_for_each(|program| one(&program, environment, &shared))
    };
    thread::scope(|scope| {
        let lanes = lanes.map(|programs| scope.spawn(|| through(programs)));
        lanes
            .into_iter()
            .try_for_each(|ended| ended.join().unwrap_or_else(|_| Err(io::Error::other("a lane panicked"))))
    })?;
    Ok(shared.into_inner().map_err(|_| io::Error::other("a lane panicked"))?.1)
}

fn one(
    program: &TestProgram,
    environment: &[(&'static str, String)],
    shared: &Mutex<(&mut Tally, Vec<String>)>,
) -> io::Result<()> {
    let name = name(program);
    // A run that hangs is found by the programs that began and did not end.
    println!("     Running {name}");
    let (printed, passed) = output(program, environment)?;
    let mut shared = shared.lock().map_err(|_| io::Error::other("a lane panicked"))?;
    let mut out = io::stdout().lock();
    writeln!(out, "       Ended {name}")?;
    shared.0.stream(printed.as_slice(), out)?;
    if !passed {
        shared.1.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_around_redis_are_in_the_first_lane() {
        let of = |folder: &str| {
            let folder = root().join(folder);
            let (source, executable) = (folder.join("tests/x.rs"), folder.join("x"));
            lane(&TestProgram { source, executable, folder, tests: "x".to_owned() })
        };
        assert_eq!(["crates/redis", "crates/redis-single", "crates/redlock"].map(of), [0; 3]);
        assert_eq!(["crates/core", "crates/mysql-rw", "crates/etcd", "tests"].map(of), [1; 4]);
    }
}
