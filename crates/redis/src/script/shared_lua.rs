use crate::script::source::Script;

/// A source for a [`ScriptFunction`](crate::ScriptFunction) that grants: `draw(fence)` takes the next epoch from a counter, by the rule of
/// `FencingToken::next_epoch`, if there is one so soon; `number_after(fence, last)` says it where the counter was read before. `clock()` is the server's clock in ms, `clock_ticks()` the same as epochs count.
pub const NEXT_EPOCH: &str = include_str!("../lua/next_epoch.lua");

/// A part of a [`Script`] that renews: `prolong(lock, lease)` prolongs the lease of a lock, unless it is longer already, and
/// answers `held`.
pub const PROLONG: &str = include_str!("../lua/prolong.lua");

/// A part of a [`Script`] that gives a lock to a new owner: `rewrite(lock, entry, lease)` writes a new [`Entry`](crate::Entry),
/// prolongs its lease as [`PROLONG`] does, and answers `held`.
pub const REWRITE: &str = include_str!("../lua/rewrite.lua");

/// Reads who holds locks that are an [`Entry`](crate::Entry). Keys: their names. It answers a list for each: `held`, entry,
/// ms left · `free` · an answer that [`Store::script_error`](crate::Store::script_error) reads.
pub static INSPECT: Script = Script::new(&[include_str!("../lua/inspect.lua")]);

/// Frees a lock that is an [`Entry`](crate::Entry), whoever holds it, or only if this owner or this epoch does. Keys: its name, and
/// the name under which the owner id is kept for the holder to find. Arguments: the channel for the notification, how many ms beyond
/// the lease the owner id is kept, the owner or epoch that is meant, or nothing; and, where there are inboxes, the
/// [channel](crate::Store::forced_channel) that they share. It answers what the lock was, as [`INSPECT`] does, and then why waiters
/// were not notified: see
/// [`Store::warn_of_waiters`](crate::Store::warn_of_waiters).
pub static FORCE_RELEASE: Script = Script::new(&[include_str!("../lua/force_release.lua")]);
