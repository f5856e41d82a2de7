//! `cargo xtask services up | env | down`: servers that stay until they are told to go.
//!
//! All that is known of them is in one folder: `variables`, and a folder for each server.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use leasehold_testkit::launch::{Identity, Lifetime, Process};

use super::service::Site;
use super::{ALL, Outcome, start};
use crate::workspace::target;

/// Starts whatever can run here.
pub(crate) fn up() -> Result<ExitCode, String> {
    let folder = folder();
    if servers(&folder).iter().any(Identity::is_running) {
        println!("the servers are up already; `cargo xtask services down` ends them");
        return Ok(ExitCode::SUCCESS);
    }
    let shown = |e| format!("{}: {e}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(shown)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(shown)?;

    let site = Site { folder: folder.clone(), lifetime: Lifetime::Detached };
    let mut code = ExitCode::SUCCESS;
    let (mut variables, mut processes) = (Vec::new(), Vec::new());
    for (variable, outcome) in start(&ALL, &site) {
        match outcome {
            Outcome::Started(service) => {
                variables.push(format!("export {variable}='{}'\n", service.url));
                processes.extend(service.processes);
            }
            Outcome::Absent(reason) => println!("not started: {reason}"),
            Outcome::Failed(why) => {
                println!("failed: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    fs::write(folder.join("variables"), variables.concat()).map_err(shown)?;
    println!("{} servers are up; eval \"$(cargo xtask services env)\"", processes.len());
    processes.into_iter().for_each(Process::leave_running);
    Ok(code)
}

/// Prints what a shell can evaluate.
pub(crate) fn print_environment() -> Result<ExitCode, String> {
    if !servers(&folder()).iter().any(Identity::is_running) {
        return Err("the servers are not up".into());
    }
    let variables = fs::read_to_string(folder().join("variables"));
    print!("{}", variables.map_err(|e| format!("the servers have not all been started: {e}"))?);
    Ok(ExitCode::SUCCESS)
}

/// Ends what `up` started, and nothing else.
pub(crate) fn down() -> Result<ExitCode, String> {
    let folder = folder();
    if !folder.exists() {
        println!("the servers are not up");
        return Ok(ExitCode::SUCCESS);
    }
    let running: Vec<Identity> = servers(&folder).into_iter().filter(Identity::is_running).collect();
    for server in &running {
        server.end()?;
    }
    fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    println!("{} servers ended", running.len());
    Ok(ExitCode::SUCCESS)
}

fn folder() -> PathBuf {
    target().join("services/by-hand")
}

/// Each server that was started in the folder, whether it still runs or not.
fn servers(folder: &Path) -> Vec<Identity> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Identity::read(&entry.path())).collect()
}
