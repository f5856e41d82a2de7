//! No lock at all: shows that the checker notices.

use super::setup::{Setup, Stays, TTL_MS};
use crate::locks::Locks;
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "always-grants",
    backend: "always-grants",
    in_words: "No lock at all.",
    start: |_, _| Ok(stores::nowhere()),
    connect: |_| Box::pin(async { Ok(Locks::AlwaysGrants) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[],
    either: None,
    exempt: &[],
    stays: Stays { entries: 0, more_of_readers: 0, bytes: 0 },
};
