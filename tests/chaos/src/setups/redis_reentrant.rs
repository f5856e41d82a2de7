//! `redis-reentrant` on one server.

use leasehold_redis_reentrant::RedisReentrant;

use super::decks::{ON_THE_WAY, TO_A_SERVER, TO_REDIS};
use super::exemptions::OF_ONE_REDIS;
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::{Locks, patiently};
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "redis-reentrant",
    backend: "redis-reentrant",
    in_words: "Sessions on one Redis with `appendfsync always`.",
    start: |folder, library| stores::start_redis(folder, library, 1, ""),
    connect: |url| Box::pin(async move { Ok(Locks::Sessions(patiently(|| RedisReentrant::connect(url)).await?)) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[ON_THE_WAY, TO_A_SERVER, TO_REDIS],
    // What a server forgot cannot protect tokens from its clock.
    either: Some([Fault::EmptyServer, Fault::ServerClockBack]),
    exempt: OF_ONE_REDIS,
    stays: Stays { entries: 1, more_of_readers: 0, bytes: 200 },
};
