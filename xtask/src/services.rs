//! The servers that the suites talk to: private ones, on free ports of 127.0.0.1, in a folder of their own.

pub(crate) mod by_hand;
mod folder;
mod kinds;
mod service;

use std::env;
use std::thread;

use leasehold_testkit::launch::{Lifetime, find};

use folder::Folder;
use service::{Running, Service, Site};

const ALL: [&dyn Service; 7] = [
    &kinds::Redis,
    &kinds::Redlock,
    &kinds::RedisCluster,
    &kinds::MariaDb,
    &kinds::Postgres,
    &kinds::Etcd,
    &kinds::EtcdCluster,
];

/// The servers of one run. They end, and their folder goes, when this is dropped.
#[derive(Debug)]
pub(crate) struct Fleet {
    started: Vec<(&'static str, Running)>,
    /// One line for each service that cannot run here, with the reason.
    pub(crate) absent: Vec<String>,
    /// One message for each service that could run here and did not.
    pub(crate) failed: Vec<String>,
    // Last, so that the servers are gone before their folder is.
    _folder: Folder,
}

impl Fleet {
    /// Starts every service that is needed, by the name of its variable, whose programs are here and whose variable the caller has
    /// not set.
    pub(crate) fn start(needed: impl Fn(&str) -> bool) -> Result<Self, String> {
        let folder = Folder::create()?;
        let site = Site { folder: folder.path(), lifetime: Lifetime::WithOwner };
        let mut fleet = Self { started: Vec::new(), absent: Vec::new(), failed: Vec::new(), _folder: folder };
        for (variable, outcome) in start(&wanted(needed), &site) {
            match outcome {
                Outcome::Started(running) => fleet.started.push((variable, running)),
                Outcome::Absent(reason) => fleet.absent.push(reason),
                Outcome::Failed(why) => fleet.failed.push(why),
            }
        }
        Ok(fleet)
    }

    /// The variables for the programs under test. With every server there, a suite that finds none is a failure.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        // Also those that these tests did not name: a test that starts a server of its own names no variable.
        let complete = missing_programs().is_empty() && self.absent.is_empty() && self.failed.is_empty();
        let required = complete.then(|| ("LEASEHOLD_CONFORMANCE_REQUIRED", "1".to_owned()));
        let addresses = self.started.iter().map(|(variable, running)| (*variable, running.url.clone()));
        addresses.chain(required).collect()
    }

    /// Says what the suites will talk to.
    pub(crate) fn describe(&self) {
        for service in ALL {
            let ours = self.started.iter().find(|(variable, _)| *variable == service.variable());
            match ours {
                Some((variable, running)) => println!("{variable}={}", running.url),
                None if is_set(service.variable()) => println!("{} is set: using that server", service.variable()),
                None => {}
            }
        }
        if !self.absent.is_empty() {
            println!(
                "{}; their suites report as ignored: install with `cargo xtask test --install`, or run `docker compose \
                 -f docker/compose.yaml up` and export the variables in its header",
                self.absent.join(", ")
            );
        }
    }
}

/// The programs that are missing for the services that are to be started here.
pub(crate) fn missing_programs() -> Vec<&'static str> {
    wanted(|_| true).iter().flat_map(|service| missing(*service)).collect()
}

enum Outcome {
    Started(Running),
    Absent(String),
    Failed(String),
}

/// All at the same time.
fn start(services: &[&'static dyn Service], site: &Site) -> Vec<(&'static str, Outcome)> {
    thread::scope(|scope| {
        let starting: Vec<_> = services.iter().map(|service| scope.spawn(|| start_one(*service, site))).collect();
        let outcomes = starting
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Outcome::Failed("a thread that starts a server panicked".into())));
        services.iter().map(|service| service.variable()).zip(outcomes).collect()
    })
}

fn start_one(service: &dyn Service, site: &Site) -> Outcome {
    let missing = missing(service);
    if !missing.is_empty() {
        return Outcome::Absent(format!("{}: no {}", service.variable(), missing.join(", no ")));
    }
    match service.start(site) {
        Ok(running) => Outcome::Started(running),
        Err(why) => Outcome::Failed(format!("{}: {why}", service.variable())),
    }
}

fn wanted(needed: impl Fn(&str) -> bool) -> Vec<&'static dyn Service> {
    ALL.into_iter().filter(|service| needed(service.variable()) && !is_set(service.variable())).collect()
}

fn missing(service: &dyn Service) -> Vec<&'static str> {
    service.programs().iter().copied().filter(|program| find(program).is_none()).collect()
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}
