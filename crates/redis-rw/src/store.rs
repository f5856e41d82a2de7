use leasehold_core::Mode;
pub(crate) use leasehold_redis::{FORCED, LOCK, QUEUE, Store};
use leasehold_redis::{NEXT_EPOCH, PROLONG, Script};

/// The part of a key's names that says where to look for readers first.
pub(crate) const READERS: &str = "readers";

/// What all scripts share: the holders of a key.
pub(crate) const HOLDERS_LUA: &str = include_str!("lua/holders.lua");

/// What the scripts share that let somebody in: who waits goes first.
pub(crate) const SERVE_LUA: &str = include_str!("lua/serve.lua");

/// A mode as scripts take it.
pub(crate) fn word_of(mode: Mode) -> &'static str {
    if mode == Mode::Exclusive { "w" } else { "r" }
}

pub(crate) static RENEW: Script = Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, include_str!("lua/renew.lua")]);
