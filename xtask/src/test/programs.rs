//! The programs of the workspace's tests: built once, and run in two lanes at the same time, because most of them wait for a
//! lease or a server most of their time.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::tally::Tally;
use crate::workspace::root;

/// What a package of the first lane has in its manifest. Those around Redis take about half of the time, and no two programs that
/// change a server of Redis run at the same time.
const FIRST_LANE: &str = "\nleasehold-redis.workspace";

/// A program of tests that cargo has built.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Program {
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    /// The file that it is built from.
    source: PathBuf,
    executable: PathBuf,
}

impl Program {
    /// Reads a line of `cargo test --no-run --message-format=json`: `None` where it is not about a program of tests.
    pub(super) fn read(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let folder = path(&message["manifest_path"])?.parent()?.to_owned();
        let source = path(&message["target"]["src_path"])?;
        is_test.then_some(Self { folder, source, executable: path(&message["executable"])? })
    }

    fn name(&self) -> String {
        self.source.strip_prefix(root()).unwrap_or(&self.source).display().to_string()
    }

    fn lane(&self) -> usize {
        let manifest = fs::read_to_string(self.folder.join("Cargo.toml")).unwrap_or_default();
        usize::from(!manifest.contains(FIRST_LANE) && !manifest.contains("\nname = \"leasehold-redis\"\n"))
    }

    /// Runs it, and returns what it printed. What it prints as errors is seen at once.
    fn run(&self, environment: &[(&'static str, String)]) -> io::Result<(Vec<u8>, bool)> {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).envs(environment.iter().cloned());
        let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        Ok((done.stdout, done.status.success()))
    }
}

/// Runs all of them, prints the output of each when it has ended, and adds up the counts. Returns the names of those that failed.
pub(super) fn run(
    mut programs: Vec<Program>,
    environment: &[(&'static str, String)],
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    programs.sort();
    let mut lanes = [VecDeque::new(), VecDeque::new()];
    for program in programs {
        lanes[program.lane()].push_back(program);
    }
    let shared = Mutex::new((tally, Vec::new()));
    let lane =
        |programs: VecDeque<Program>| programs.into_iter().try_for_each(|program| one(&program, environment, &shared));
    thread::scope(|scope| {
        let lanes = lanes.map(|programs| scope.spawn(|| lane(programs)));
        lanes
            .into_iter()
            .try_for_each(|ended| ended.join().unwrap_or_else(|_| Err(io::Error::other("a lane panicked"))))
    })?;
    Ok(shared.into_inner().map_err(|_| io::Error::other("a lane panicked"))?.1)
}

fn one(
    program: &Program,
    environment: &[(&'static str, String)],
    shared: &Mutex<(&mut Tally, Vec<String>)>,
) -> io::Result<()> {
    let name = program.name();
    // A run that hangs is found by the programs that began and did not end.
    println!("     Running {name}");
    let (printed, passed) = program.run(environment)?;
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
    use std::path::Path;

    use super::*;

    fn message(test: bool, executable: Option<&str>) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/here/crates/file/Cargo.toml",
            "target": {"kind": ["test"], "name": "damage", "src_path": "/here/crates/file/tests/damage.rs"},
            "profile": {"test": test},
            "executable": executable,
        })
        .to_string()
    }

    #[test]
    fn a_program_of_tests_is_told_from_other_artifacts() {
        let program = Program::read(&message(true, Some("/target/damage-1"))).unwrap();
        assert_eq!(program.folder, Path::new("/here/crates/file"));
        assert_eq!(program.executable, Path::new("/target/damage-1"));
        assert_eq!(Program::read(&message(false, Some("/target/damage-1"))), None);
        assert_eq!(Program::read(&message(true, None)), None);
        assert_eq!(Program::read("     Running something"), None);
    }

    #[test]
    fn the_crates_around_redis_are_in_the_first_lane() {
        let lane = |folder: &str| {
            let folder = root().join(folder);
            Program { source: folder.join("tests/x.rs"), executable: folder.join("x"), folder }.lane()
        };
        assert_eq!(["crates/redis", "crates/redis-single", "crates/redlock"].map(lane), [0; 3]);
        assert_eq!(["crates/core", "crates/mysql-rw", "crates/etcd", "tests"].map(lane), [1; 4]);
    }
}
