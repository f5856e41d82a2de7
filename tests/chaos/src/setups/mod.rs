//! What is tested: backends on servers that are arranged in some way. Each has a file, and a line in the list.

mod agent;
mod always_grants;
mod decks;
mod etcd;
mod exemptions;
mod file;
mod mysql_pair;
mod mysql_rw;
mod mysql_unique;
mod postgres;
mod redis_cluster;
mod redis_confirmed;
mod redis_reentrant;
mod redis_rw;
mod redis_rw_cluster;
mod redis_rw_sentinel;
mod redis_sentinel;
mod redis_single;
mod redlock;
mod redlock_five;
mod setup;

pub(crate) use self::setup::{Setup, Stays};

/// All of them, in the order of documents and reports.
pub(crate) static ALL: [&Setup; 17] = [
    &file::SETUP,
    &redis_single::SETUP,
    &redis_sentinel::SETUP,
    &redis_confirmed::SETUP,
    &redis_cluster::SETUP,
    &redis_reentrant::SETUP,
    &redis_rw::SETUP,
    &redis_rw_sentinel::SETUP,
    &redis_rw_cluster::SETUP,
    &redlock::SETUP,
    &redlock_five::SETUP,
    &mysql_unique::SETUP,
    &mysql_pair::SETUP,
    &mysql_rw::SETUP,
    &postgres::SETUP,
    &etcd::SETUP,
    &agent::SETUP,
];

/// The setup of this name; also the one that shows that a broken lock is found out.
pub(crate) fn named(name: &str) -> Result<&'static Setup, String> {
    let known = || ALL.map(|setup| setup.name).join(", ");
    let found = ALL.into_iter().chain([&always_grants::SETUP]).find(|setup| setup.name == name);
    found.ok_or_else(|| format!("no backend is named {name}; there are: {}", known()))
}
