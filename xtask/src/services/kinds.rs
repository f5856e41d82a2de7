//! The kinds of servers, each started by the launcher that the tests use too.

use std::path::Path;

use leasehold_testkit::launch::{Process, Settings, etcd, find, mariadb, postgres, redis};

/// A kind of server.
#[derive(Debug)]
pub(super) struct Service {
    /// The environment variable in which a suite finds its address.
    pub(super) variable: &'static str,
    /// What must be installed for it.
    programs: &'static [&'static str],
    /// Starts it below this folder, and returns when it answers.
    launch: fn(&Path) -> Result<Vec<Process>, String>,
    /// Its address, by the ports of its processes.
    url: fn(&[u16]) -> String,
}

pub(super) const ALL: &[Service] = &[
    Service {
        variable: "LEASEHOLD_TEST_REDIS",
        programs: &[redis::PROGRAM],
        launch: |folder| Ok(vec![redis::start(folder, &Settings::default())?]),
        url: |ports| redis::url(ports[0]),
    },
    // Five servers that know nothing of each other.
    Service {
        variable: "LEASEHOLD_TEST_REDLOCK",
        programs: &[redis::PROGRAM],
        launch: |folder| redis::start_many(5, folder, &Settings::default()),
        url: |ports| ports.iter().map(|port| redis::url(*port)).collect::<Vec<_>>().join(","),
    },
    // Three nodes without replicas.
    Service {
        variable: "LEASEHOLD_TEST_REDIS_CLUSTER",
        programs: &[redis::PROGRAM],
        launch: redis::start_cluster,
        url: redis::cluster_url,
    },
    // An empty database `leasehold` and a root user without a password.
    Service {
        variable: "LEASEHOLD_TEST_MYSQL",
        programs: &[mariadb::PROGRAM, mariadb::INSTALL],
        launch: |folder| Ok(vec![mariadb::start(folder, &Settings::arguments(["--max-connections=1000"]))?]),
        url: |ports| mariadb::url(ports[0]),
    },
    // An empty database `leasehold` and a superuser leasehold without a password.
    Service {
        variable: "LEASEHOLD_TEST_POSTGRES",
        programs: &[postgres::PROGRAM, postgres::INSTALL, postgres::POOLER],
        launch: |folder| Ok(vec![postgres::start(folder, &Settings::default())?]),
        url: |ports| postgres::url(ports[0]),
    },
    Service {
        variable: "LEASEHOLD_TEST_ETCD",
        programs: &[etcd::PROGRAM, etcd::CONTROL],
        launch: |folder| Ok(vec![etcd::start(folder, &Settings::default())?]),
        url: etcd::url,
    },
    Service {
        variable: "LEASEHOLD_TEST_ETCD_CLUSTER",
        programs: &[etcd::PROGRAM],
        launch: |folder| etcd::start_cluster(3, folder, &Settings::default()),
        url: etcd::url,
    },
];

impl Service {
    /// The programs that are not installed.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        self.programs.iter().copied().filter(|program| find(program).is_none()).collect()
    }

    /// Starts it below this folder, and returns when it answers: its URL, and its processes, which end with these.
    pub(super) fn start(&self, folder: &Path) -> Result<(String, Vec<Process>), String> {
        let processes = (self.launch)(folder)?;
        let ports: Vec<u16> = processes.iter().map(Process::port).collect();
        Ok(((self.url)(&ports), processes))
    }
}
