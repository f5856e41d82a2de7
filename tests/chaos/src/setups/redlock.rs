//! `redlock` on three servers.

use std::time::Duration;

use leasehold_redlock::{NodeCondition, Redlock};
use tokio::time::sleep;

use super::decks::{ON_THE_WAY, TO_A_SERVER, TO_REDIS};
use super::exemptions::Exemption;
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redlock",
    backend: "redlock",
    in_words: "Three Redis servers with `appendfsync always`. One is hit at a time, or two, which is a majority.",
    start: |folder, library| stores::start_redis(folder, library, 3, "redlock:"),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| Redlock::connect(url)).await?)) }),
    repair: Some(|url| Box::pin(repair(url))),
    ttl_ms: TTL_MS,
    deck: &[ON_THE_WAY, TO_A_SERVER, TO_REDIS, &[Fault::StopTwoServers]],
    either: None,
    exempt: &[Exemption::from_exclusion(
        Fault::ServerClockAhead,
        "where the lock is on no more nodes than a majority, or more clocks jump: leases end early there",
    )],
    stays: Stays { entries: 3, more_of_readers: 0, bytes: 3 * 200 },
};

/// Has nodes that lost their data serve again.
pub(super) async fn repair(url: &str) -> Result<(), String> {
    const ATTEMPTS: u32 = 200;
    let locks = Redlock::connect(url).await.map_err(|error| error.to_string())?;
    let mut told = String::new();
    for _ in 0..ATTEMPTS {
        match locks.repair().await {
            Ok(states) if states.iter().all(|state| state.condition == NodeCondition::Serving) => {
                locks.close().await;
                return Ok(());
            }
            Ok(states) => told = format!("{states:?}"),
            Err(error) => told = error.to_string(),
        }
        sleep(Duration::from_millis(50)).await;
    }
    Err(format!("the nodes were not repaired: {told}"))
}
