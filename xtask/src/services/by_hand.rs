//! `cargo xtask services up | env | down`: servers that stay until they are told to go.
//!
//! All that is known of them is in one folder: `variables`, and a folder for each server.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use leasehold_testkit::launch::{Identity, Lifetime, Process, Settings};

use super::Fleet;
use super::kinds::{ALL, Running};
use crate::workspace::{read, target, write};

/// Starts whatever can run here.
pub(crate) fn up() -> Result<bool, String> {
    if !running().is_empty() {
        println!("the servers are up already; `cargo xtask services down` ends them");
        return Ok(true);
    }
    let folder = folder();
    let _ = fs::remove_dir_all(&folder);
    // This folder alone is private: a server that runs as another user has to come through those above it.
    let above = fs::create_dir_all(target().join("services"));
    let made = above.and_then(|()| DirBuilder::new().mode(0o700).create(&folder));
    made.map_err(|failure| format!("{}: {failure}", folder.display()))?;

    let settings = Settings { lifetime: Lifetime::Detached, ..Settings::default() };
    let fleet = Fleet::of(ALL.iter().collect(), &folder, &settings);
    fleet.absent.iter().for_each(|reason| println!("not started: {reason}"));
    fleet.failed.iter().for_each(|why| println!("failed: {why}"));
    let export = |(variable, running): &(&str, Running)| format!("export {variable}='{}'\n", running.url);
    write(&folder.join("variables"), &fleet.started.iter().map(export).collect::<String>())?;
    let processes: Vec<Process> = fleet.started.into_iter().flat_map(|(_, running)| running.processes).collect();
    println!("{} servers are up; eval \"$(cargo xtask services env)\"", processes.len());
    processes.into_iter().for_each(Process::leave_running);
    Ok(fleet.failed.is_empty())
}

/// Prints what a shell can evaluate.
pub(crate) fn print_environment() -> Result<bool, String> {
    if running().is_empty() {
        return Err("the servers are not up".into());
    }
    let variables = read(&folder().join("variables"));
    print!("{}", variables.map_err(|why| format!("the servers have not all been started: {why}"))?);
    Ok(true)
}

/// Ends what `up` started, and nothing else.
pub(crate) fn down() -> Result<bool, String> {
    let folder = folder();
    if !folder.exists() {
        println!("the servers are not up");
        return Ok(true);
    }
    let running = running();
    running.iter().try_for_each(Identity::end)?;
    fs::remove_dir_all(&folder).map_err(|failure| format!("{}: {failure}", folder.display()))?;
    println!("{} servers ended", running.len());
    Ok(true)
}

fn folder() -> PathBuf {
    target().join("services/by-hand")
}

/// Each server that was started in the folder, and still runs.
fn running() -> Vec<Identity> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    entries.filter_map(|entry| Identity::read(&entry.path())).filter(Identity::is_running).collect()
}
