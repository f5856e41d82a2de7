use std::time::Duration;

use leasehold_core::{Holder, Holders, LockKey, Mode, Result};
use leasehold_redis::{CHANNEL, Lease, Script, ScriptArguments, decode_metadata, read_epoch};

use crate::acquire::HOLDER_LUA;
use crate::store::{FORCED, LOCK, Store};

pub(crate) static INSPECT: Script = Script::new(&[HOLDER_LUA, include_str!("lua/inspect.lua")]);
static FORCE_RELEASE: Script = Script::new(&[HOLDER_LUA, include_str!("lua/force_release.lua")]);

/// Frees a key with all its levels whoever holds it, or only the lease with this epoch, leaves word for the holder, and answers who that was.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    /// How long beyond its lease a holder may come and ask what became of it.
    const GRACE: Duration = Duration::from_secs(60);
    let names = store.redis.names(key);
    let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED);
    let arguments = arguments.name(&names, CHANNEL).text(GRACE.as_millis());
    let arguments = arguments.text(only.map(|epoch| epoch.to_string()).unwrap_or_default());
    let reply = store.redis.run(&FORCE_RELEASE, 2, arguments, None).await?;
    let words = reply.words();
    if let ["held", _, _, _, reason @ ..] = &words[..] {
        store.redis.warn_of_waiters(reason);
    }
    Ok(Holders::new(key, holders(store, &words)?))
}

/// Reads what a script says of one key.
pub(crate) fn holders(store: &Store, words: &[&str]) -> Result<Vec<Holder>> {
    match *words {
        ["free"] => Ok(Vec::new()),
        ["held", epoch, metadata, left, ..] => match holder(epoch, metadata, left) {
            Some(holder) => Ok(vec![holder]),
            None => Err(store.redis.script_error(&[])),
        },
        _ => Err(store.redis.script_error(words)),
    }
}

/// What the fields of a lock's hash, as text, say of its holder. `None`: they are none that a script tells.
fn holder(epoch: &str, metadata: &str, left: &str) -> Option<Holder> {
    let mut holder = Holder::of_epoch(Mode::Exclusive, read_epoch(epoch)?);
    holder.remaining = Lease::read(left)?.remaining();
    decode_metadata(metadata, &mut holder);
    Some(holder)
}
