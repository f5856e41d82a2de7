//! The stores under test: their servers, and the ways to them.

mod agent;
pub(crate) mod etcd;
mod file;
mod mariadb;
mod node;
pub(crate) mod postgres;
mod redis;
mod shim;
mod size;
mod store;

pub(crate) use self::agent::start as start_agents;
pub(crate) use self::etcd::start as start_etcd;
pub(crate) use self::file::{LOCKS, start as start_file};
pub(crate) use self::mariadb::{follow, start as start_mariadb, start_pair as start_mariadb_pair};
pub(crate) use self::node::{LINKS, Node, Program};
pub(crate) use self::postgres::start as start_postgres;
pub(crate) use self::redis::{start as start_redis, start_cluster, start_sentinel_set};
pub(crate) use self::shim::{Full, Library, Shim};
pub(crate) use self::size::size;
pub(crate) use self::store::{Shape, Store, USER};

/// A store without servers, for clients that need none.
pub(crate) fn nowhere() -> Store {
    Store::without_servers(String::new())
}
