//! The kinds of services, each started by the launcher that the tests use too.

use leasehold_testkit::launch::{Process, Settings, etcd, mariadb, postgres, redis};

use super::service::{Running, Service, Site};

/// One Redis server.
#[derive(Debug)]
pub(super) struct Redis;

/// Five Redis servers that know nothing of each other.
#[derive(Debug)]
pub(super) struct Redlock;

/// A Redis Cluster of three nodes without replicas.
#[derive(Debug)]
pub(super) struct RedisCluster;

/// One `MariaDB` server with an empty database `leasehold` and a root user without a password.
#[derive(Debug)]
pub(super) struct MariaDb;

/// One `PostgreSQL` server with an empty database `leasehold` and a superuser leasehold without a password.
#[derive(Debug)]
pub(super) struct Postgres;

/// One etcd server.
#[derive(Debug)]
pub(super) struct Etcd;

/// An etcd cluster of three members.
#[derive(Debug)]
pub(super) struct EtcdCluster;

impl Service for Redis {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_REDIS"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[redis::PROGRAM]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let server = redis::start(&site.folder, &Settings::default(), site.lifetime)?;
        Ok(Running { url: redis::url(server.port()), processes: vec![server] })
    }
}

impl Service for Redlock {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_REDLOCK"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[redis::PROGRAM]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let processes = redis::start_many(5, &site.folder, &Settings::default(), site.lifetime)?;
        let urls: Vec<String> = processes.iter().map(|node| redis::url(node.port())).collect();
        Ok(Running { url: urls.join(","), processes })
    }
}

impl Service for RedisCluster {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_REDIS_CLUSTER"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[redis::PROGRAM]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let processes = redis::start_cluster(&site.folder, site.lifetime)?;
        let ports: Vec<u16> = processes.iter().map(Process::port).collect();
        Ok(Running { url: redis::cluster_url(&ports), processes })
    }
}

impl Service for MariaDb {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_MYSQL"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[mariadb::PROGRAM, mariadb::INSTALL]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let settings = Settings::arguments(&["--max-connections=1000"]);
        let server = mariadb::start(&site.folder, &settings, site.lifetime)?;
        Ok(Running { url: mariadb::url(server.port()), processes: vec![server] })
    }
}

impl Service for Postgres {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_POSTGRES"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[postgres::PROGRAM, postgres::INSTALL, postgres::POOLER]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let server = postgres::start(&site.folder, &Settings::default(), site.lifetime)?;
        Ok(Running { url: postgres::url(server.port()), processes: vec![server] })
    }
}

impl Service for Etcd {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_ETCD"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[etcd::PROGRAM, etcd::CONTROL]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let server = etcd::start(&site.folder, &Settings::default(), site.lifetime)?;
        Ok(Running { url: etcd::url(&[server.port()]), processes: vec![server] })
    }
}

impl Service for EtcdCluster {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_ETCD_CLUSTER"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[etcd::PROGRAM]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let processes = etcd::start_cluster(3, &site.folder, site.lifetime)?;
        let ports: Vec<u16> = processes.iter().map(Process::port).collect();
        Ok(Running { url: etcd::url(&ports), processes })
    }
}
