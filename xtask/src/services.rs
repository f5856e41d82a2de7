//! The servers that the suites talk to: private ones, on free ports of 127.0.0.1, in a folder of their own.

mod kinds;

use std::env;
use std::process::Command;

use leasehold_testkit::launch::{Process, place};
use tempfile::TempDir;

use self::kinds::{ALL, Service};
use crate::command::{at_once, passes};

/// The servers of one run. They end, and their folder goes, when this is dropped.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The variables of those that were started, and where they answer.
    addresses: Vec<(&'static str, String)>,
    /// One message for each service that could run here and did not.
    pub(crate) failed: Vec<String>,
    processes: Vec<Process>,
    // Last, so that the servers are gone before their folder is.
    _folder: TempDir,
}

impl Fleet {
    /// Starts every service that is needed, by the name of its variable, whose programs are here and whose variable the caller has
    /// not set, all at the same time, and says what the suites will talk to.
    pub(crate) fn start(needed: impl Fn(&str) -> bool) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("leasehold-test-").tempdir_in(place());
        let folder = folder.map_err(|failure| format!("a folder in {}: {failure}", place().display()))?;
        let (here, absent): (Vec<_>, Vec<_>) =
            wanted(needed).into_iter().partition(|service| service.missing().is_empty());
        let ended = at_once(&here, here.len(), |service| Ok(service.start(folder.path())))?;
        let mut fleet = Self { addresses: Vec::new(), failed: Vec::new(), processes: Vec::new(), _folder: folder };
        for (service, ended) in here.iter().zip(ended) {
            match ended {
                Ok((url, processes)) => {
                    fleet.addresses.push((service.variable, url));
                    fleet.processes.extend(processes);
                }
                Err(why) => fleet.failed.push(format!("{}: {why}", service.variable)),
            }
        }
        for service in ALL.iter().filter(|service| is_set(service)) {
            println!("{} is set: using that server", service.variable);
        }
        for (variable, url) in &fleet.addresses {
            println!("{variable}={url}");
        }
        if !absent.is_empty() {
            let why = |service: &&Service| format!("{}: no {}", service.variable, service.missing().join(", no "));
            println!(
                "{}; their suites report as ignored: install with `cargo xtask test --install`, or run `docker compose \
                 -f docker/compose.yaml up` and export the variables in its header",
                absent.iter().map(why).collect::<Vec<_>>().join(", ")
            );
        }
        Ok(fleet)
    }

    /// The variables for the programs under test. With every server there, a suite that finds none is a failure.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        // Also those that these tests did not name: a test that starts a server of its own names no variable.
        let complete = missing_programs().is_empty() && self.failed.is_empty();
        let required = complete.then(|| ("LEASEHOLD_CONFORMANCE_REQUIRED", "1".to_owned()));
        self.addresses.iter().cloned().chain(required).collect()
    }
}

/// Runs a command with the variables of servers, which end with it.
pub(crate) fn beside(words: &[&str]) -> Result<bool, String> {
    let fleet = Fleet::start(|_| true)?;
    fleet.failed.iter().for_each(|why| println!("failed: {why}"));
    let (program, arguments) = words.split_first().unwrap_or((&"sh", &[]));
    passes(Command::new(program).args(arguments).envs(fleet.environment()))
}

/// The programs that are missing for the services that are to be started here.
pub(crate) fn missing_programs() -> Vec<&'static str> {
    wanted(|_| true).iter().flat_map(|service| service.missing()).collect()
}

fn wanted(needed: impl Fn(&str) -> bool) -> Vec<&'static Service> {
    ALL.iter().filter(|service| needed(service.variable) && !is_set(service)).collect()
}

fn is_set(service: &Service) -> bool {
    env::var_os(service.variable).is_some_and(|value| !value.is_empty())
}
