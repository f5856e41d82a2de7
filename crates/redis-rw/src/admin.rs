use std::time::Duration;

use leasehold_core::{Holder, Holders, LockKey, Mode, OwnerId, Result};
use leasehold_redis::{Entry, Lease, NEXT_EPOCH, PROLONG, Script, ScriptArguments};

use crate::release::release_owner;
use crate::store::{FORCED, HOLDERS_LUA, LOCK, READERS, Store, word_of};

const HOLDERS_OF_LUA: &str = include_str!("lua/holders_of.lua");

pub(crate) static INSPECT: Script =
    Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, HOLDERS_OF_LUA, include_str!("lua/inspect.lua")]);

static FORCE_RELEASE: Script =
    Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, HOLDERS_OF_LUA, include_str!("lua/force_release.lua")]);

/// Frees a key whoever holds it, or ends the grant with this epoch alone, leaves word for the holders, and answers who they were.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    /// How long beyond its lease a holder may come and ask what became of it.
    const GRACE: Duration = Duration::from_secs(60);
    let names = store.names(key);
    let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED).name(&names, READERS);
    let arguments = arguments.text(GRACE.as_millis()).text(only.map(|epoch| epoch.to_string()).unwrap_or_default());
    let arguments = arguments.text(store.forced_channel());
    let reply = store.run(&FORCE_RELEASE, 3, arguments, None).await?;
    // The release of an owner that holds nothing grants a free key to the first in the queue. If this one fails, those in the
    // queue ask again.
    let _ = release_owner(store, &names, OwnerId::random()).await;
    Ok(Holders::new(key, holders(store, &reply.words())?))
}

/// Reads what `holders_of.lua` says of one key.
pub(crate) fn holders(store: &Store, words: &[&str]) -> Result<Vec<Holder>> {
    let read = |of_one: &[&str]| {
        let [mode, left, entry] = *of_one else { return None };
        let mut holder = Entry::read(entry).to_holder();
        holder.mode = [Mode::Exclusive, Mode::Shared].into_iter().find(|known| word_of(*known) == mode)?;
        holder.remaining = Lease::read(left)?.remaining();
        Some(holder)
    };
    let holders = match words {
        ["free"] => Some(Vec::new()),
        ["held", each @ ..] => each.chunks(3).map(read).collect(),
        _ => None,
    };
    holders.ok_or_else(|| store.script_error(words))
}
