//! `redis-single` on servers of which Sentinels choose the primary.

use leasehold_redis_single::RedisSingle;

use super::decks::TO_A_SENTINEL_SET;
use super::exemptions::OF_A_SENTINEL_SET;
use super::setup::{Setup, Stays};
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redis-sentinel",
    backend: "redis-single",
    in_words: "`redis-single` on a primary and two replicas under three Sentinels, where nothing confirms replication.",
    start: |folder, _| stores::start_sentinel_set(folder, false),
    connect: |url| Box::pin(async move { Ok(Locks::exclusive(patiently(|| RedisSingle::connect(url)).await?)) }),
    repair: None,
    // Another primary takes over before a lease of the old one ends.
    ttl_ms: 4000,
    deck: &[TO_A_SENTINEL_SET],
    either: None,
    exempt: OF_A_SENTINEL_SET,
    stays: Stays { entries: 3, more_of_readers: 0, bytes: 3 * 200 },
};
