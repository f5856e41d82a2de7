use crate::script::source::Script;

/// Reads locks that are an [`Entry`](crate::Entry), and answers for each: `held`, entry, ms left · `free` · what means
/// [`script_error`](crate::script_error).
pub static INSPECT: Script = Script::new(include_str!("../lua/inspect.lua"));

/// Frees a lock that is an [`Entry`](crate::Entry), whoever holds it, and answers what it was, as [`INSPECT`] does, and behind that
/// why those who wait were not told: see [`PubSub::forced`](crate::PubSub::forced). Takes its name
/// and that of a part for the word to its holder; the channel, and how many ms beyond the lease the word is kept.
pub static FORCE_RELEASE: Script = Script::new(include_str!("../lua/force_release.lua"));
