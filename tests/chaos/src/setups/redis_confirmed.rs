//! `redis-single` under Sentinels, where each grant waits for all replicas.

use std::time::Duration;

use leasehold_redis_single::RedisSingle;

use super::decks::TO_A_SENTINEL_SET;
use super::setup::{Setup, Stays};
use crate::locks::{Locks, patiently};
use crate::stores;

/// All that there are: the one that is promoted is among them.
const REPLICAS: u32 = 2;
const WITHIN: Duration = Duration::from_millis(300);

pub(super) static SETUP: Setup = Setup {
    name: "redis-confirmed",
    backend: "redis-single",
    in_words: "`redis-single` on a primary and two replicas under three Sentinels, where both replicas confirm each grant \
               (`confirm_replicas`).",
    start: |folder, _| stores::start_sentinel_set(folder, true),
    connect: |url| {
        Box::pin(async move {
            let connect = || RedisSingle::builder().url(url).confirm_replicas(REPLICAS, WITHIN).connect();
            Ok(Locks::exclusive(patiently(connect).await?))
        })
    },
    repair: None,
    // Another primary takes over before a lease of the old one ends.
    ttl_ms: 4000,
    deck: &[TO_A_SENTINEL_SET],
    either: None,
    exempt: &[],
    stays: Stays { entries: 3, more_of_readers: 0, bytes: 3 * 200 },
};
