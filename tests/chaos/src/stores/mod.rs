//! The stores under test: their servers, and the ways to them.

pub(crate) mod etcd;
mod node;
mod redis;
mod servers;
mod session;
mod shim;
mod size;
mod store;

pub(crate) use self::etcd::start as start_etcd;
pub(crate) use self::node::{LINKS, Node, Program};
pub(crate) use self::redis::{start as start_redis, start_agents, start_cluster, start_sentinel_set};
pub(crate) use self::servers::{start_mariadb, start_mariadb_pair, start_postgres};
pub(crate) use self::session::{Session, sql};
pub(crate) use self::shim::{ALL_WRITES, Library, Number, Shim, WRITES_AT_A_PLACE, set_for};
pub(crate) use self::size::size;
pub(crate) use self::store::{LOCKS, Shape, Store, start_file};
