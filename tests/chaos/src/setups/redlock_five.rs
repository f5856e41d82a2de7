//! `redlock` on five servers, two of which are a minority.

use leasehold_redlock::Redlock;

use super::redlock::repair;
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redlock-five",
    backend: "redlock",
    in_words: "Five Redis servers with `appendfsync always`; two are stopped at a time, which is a minority.",
    start: |folder, library| stores::start_redis(folder, library, 5, "redlock:"),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| Redlock::connect(url)).await?)) }),
    repair: Some(|url| Box::pin(repair(url))),
    ttl_ms: TTL_MS,
    deck: &[&[Fault::StopTwoServers, Fault::StopServer, Fault::RestartServer, Fault::KillConnections]],
    either: None,
    exempt: &[],
    stays: Stays { entries: 5, more_of_readers: 0, bytes: 5 * 200 },
};
