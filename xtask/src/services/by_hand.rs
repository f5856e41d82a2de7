//! `cargo xtask services up | env | down`: servers that stay until they are told to go.
//!
//! A process of this program holds them: they end when it does. All that is known of it is in one folder: its process id, where the
//! servers have their files, and `variables`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use leasehold_testkit::{Deadline, PATIENCE};

use super::Fleet;
use super::kinds::ALL;
use crate::workspace::{read, target, write};

/// Starts whatever can run here.
pub(crate) fn up() -> Result<bool, String> {
    if holder().is_some() {
        println!("the servers are up already; `cargo xtask services down` ends them");
        return Ok(true);
    }
    let failed = |failure: std::io::Error| format!("{}: {failure}", folder().display());
    let _ = fs::remove_dir_all(folder());
    fs::create_dir_all(folder()).map_err(failed)?;
    let log = File::create(folder().join("log")).map_err(failed)?;
    let mut holder = Command::new(std::env::current_exe().map_err(failed)?);
    // A group of its own: Ctrl-C or the end of the terminal does not reach it.
    holder.args(HOLD).process_group(0).stdin(Stdio::null()).stderr(log.try_clone().map_err(failed)?).stdout(log);
    for service in ALL {
        holder.env_remove(service.variable);
    }
    let mut holder = holder.spawn().map_err(failed)?;
    while !folder().join("variables").exists() {
        if let Some(status) = holder.try_wait().map_err(failed)? {
            return Err(format!("the servers do not start ({status}):\n{}", read(&folder().join("log"))?));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let log = read(&folder().join("log"))?;
    println!("{log}the servers are up; eval \"$(cargo xtask services env)\"");
    Ok(!log.contains("\nfailed: "))
}

/// The words by which this program holds the servers.
const HOLD: [&str; 2] = ["services", "hold"];

/// Holds them until it is ended.
pub(crate) fn hold() -> Result<bool, String> {
    let fleet = Fleet::start(|_| true)?;
    fleet.failed.iter().for_each(|why| println!("failed: {why}"));
    let files = fleet.folder.path().display();
    write(&folder().join("holder"), &format!("{}\n{files}\n", process::id()))?;
    let export = |(variable, url)| format!("export {variable}='{url}'\n");
    write(&folder().join("unfinished"), &fleet.addresses().map(export).collect::<String>())?;
    // In one step, so that who waits for it finds all of it.
    let whole = fs::rename(folder().join("unfinished"), folder().join("variables"));
    whole.map_err(|failure| format!("{}: {failure}", folder().display()))?;
    loop {
        thread::park();
    }
}

/// Prints what a shell can evaluate.
pub(crate) fn print_environment() -> Result<bool, String> {
    holder().ok_or("the servers are not up")?;
    print!("{}", read(&folder().join("variables"))?);
    Ok(true)
}

/// Ends what `up` started, and nothing else.
pub(crate) fn down() -> Result<bool, String> {
    let Some((holder, files)) = holder() else {
        println!("the servers are not up");
        return Ok(true);
    };
    crate::command::succeed(Command::new("kill").args(["-9", &holder]))?;
    let deadline = Deadline::after(PATIENCE);
    // The last of the servers removes it.
    while files.exists() {
        if deadline.is_over() {
            return Err(format!("{} is still there after a minute", files.display()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    println!("the servers ended");
    Ok(true)
}

fn folder() -> PathBuf {
    target().join("services/by-hand")
}

/// The process that holds the servers, and where these have their files. Another one may have got its id by now.
fn holder() -> Option<(String, PathBuf)> {
    let text = fs::read_to_string(folder().join("holder")).ok()?;
    let (id, files) = text.trim_end().split_once('\n')?;
    let line = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
    line.contains(&HOLD.join("\0")).then(|| (id.to_owned(), files.into()))
}
