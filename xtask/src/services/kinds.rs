//! The kinds of servers, each started by the launcher that the tests use too.

use std::path::PathBuf;

use leasehold_testkit::launch::{Lifetime, Process, Settings, etcd, find, mariadb, postgres, redis};

/// A kind of server.
#[derive(Debug)]
pub(super) struct Service {
    /// The environment variable in which a suite finds its address.
    pub(super) variable: &'static str,
    /// What must be installed for it.
    programs: &'static [&'static str],
    /// Starts it and returns when it answers.
    pub(super) start: fn(&Site) -> Result<Running, String>,
}

/// Where servers of one run live, and for how long.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) folder: PathBuf,
    pub(super) lifetime: Lifetime,
}

/// A service that answers at `url`.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) url: String,
    pub(super) processes: Vec<Process>,
}

pub(super) const ALL: &[Service] = &[
    Service {
        variable: "LEASEHOLD_TEST_REDIS",
        programs: &[redis::PROGRAM],
        start: |site| {
            let server = redis::start(&site.folder, &Settings::default(), site.lifetime)?;
            Ok(running(vec![server], |ports| redis::url(ports[0])))
        },
    },
    // Five servers that know nothing of each other.
    Service {
        variable: "LEASEHOLD_TEST_REDLOCK",
        programs: &[redis::PROGRAM],
        start: |site| {
            let servers = redis::start_many(5, &site.folder, &Settings::default(), site.lifetime)?;
            Ok(running(servers, |ports| ports.iter().map(|port| redis::url(*port)).collect::<Vec<_>>().join(",")))
        },
    },
    // Three nodes without replicas.
    Service {
        variable: "LEASEHOLD_TEST_REDIS_CLUSTER",
        programs: &[redis::PROGRAM],
        start: |site| Ok(running(redis::start_cluster(&site.folder, site.lifetime)?, redis::cluster_url)),
    },
    // An empty database `leasehold` and a root user without a password.
    Service {
        variable: "LEASEHOLD_TEST_MYSQL",
        programs: &[mariadb::PROGRAM, mariadb::INSTALL],
        start: |site| {
            let settings = Settings::arguments(&["--max-connections=1000"]);
            let server = mariadb::start(&site.folder, &settings, site.lifetime)?;
            Ok(running(vec![server], |ports| mariadb::url(ports[0])))
        },
    },
    // An empty database `leasehold` and a superuser leasehold without a password.
    Service {
        variable: "LEASEHOLD_TEST_POSTGRES",
        programs: &[postgres::PROGRAM, postgres::INSTALL, postgres::POOLER],
        start: |site| {
            let server = postgres::start(&site.folder, &Settings::default(), site.lifetime)?;
            Ok(running(vec![server], |ports| postgres::url(ports[0])))
        },
    },
    Service {
        variable: "LEASEHOLD_TEST_ETCD",
        programs: &[etcd::PROGRAM, etcd::CONTROL],
        start: |site| {
            let server = etcd::start(&site.folder, &Settings::default(), site.lifetime)?;
            Ok(running(vec![server], etcd::url))
        },
    },
    Service {
        variable: "LEASEHOLD_TEST_ETCD_CLUSTER",
        programs: &[etcd::PROGRAM],
        start: |site| Ok(running(etcd::start_cluster(3, &site.folder, site.lifetime)?, etcd::url)),
    },
];

fn running(processes: Vec<Process>, url: fn(&[u16]) -> String) -> Running {
    let ports: Vec<u16> = processes.iter().map(Process::port).collect();
    Running { url: url(&ports), processes }
}

impl Service {
    /// The programs that are not installed.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        self.programs.iter().copied().filter(|program| find(program).is_none()).collect()
    }
}
