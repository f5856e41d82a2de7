use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Result};
use leasehold_redis::{KeyNames, Lease, Metadata, NEXT_EPOCH, Reply, ScriptArguments, ScriptFunction, lease, number};

use crate::release::release;
use crate::store::{FENCE, LOCK, Store, session_id};

const EPOCH_LUA: &str = include_str!("lua/epoch.lua");
pub(crate) static TRY_ACQUIRE: ScriptFunction =
    ScriptFunction::new("try_acquire", 2, 7, &[NEXT_EPOCH, EPOCH_LUA, include_str!("lua/try_acquire.lua")]);

/// Takes a key for the session `id`, or takes it once more, or says which session is in the way. The owner id of `claim`
/// names the level.
pub(crate) async fn try_acquire(store: &Store, id: &str, claim: &Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        return Err(Error::new(ErrorKind::Unsupported, "acquire"));
    }
    let names = store.names.of(&claim.key);
    let words = ScriptArguments::new()
        .name(&names, LOCK)
        .name(&names, FENCE)
        .text(id)
        .owner(claim.owner)
        .millis(claim.ttl)
        .millis(store.fence_retention)
        .text(&store.max_depth.to_string())
        .text(&claim.lost.map(|lost| lost.to_string()).unwrap_or_default())
        .text(&Metadata::of(claim).tail());
    let reply = store.commits.run(&TRY_ACQUIRE, words, None).await?;
    answered(store, id, claim, &names, &reply).await
}

/// Reads the answer of `try_acquire.lua`.
async fn answered(store: &Store, id: &str, claim: &Claim, names: &KeyNames, reply: &Reply) -> Result<Attempt> {
    let refused = |told: String| Err(Error::new(ErrorKind::Backend, "acquire").detail(store.connection.quote(&told)));
    match *reply.words() {
        ["granted", epoch] => match number(epoch) {
            Some(epoch) => granted(store, id, claim, names, epoch).await,
            None => refused(format!("the entry of {} has lost its token", claim.key)),
        },
        ["busy", left, by] => match (lease(left), session_id(by)) {
            (Some(Lease::Ends(left)), Some(session)) => Ok(Attempt::HeldBy { session, retry_in: Some(left) }),
            _ => Err(store.script_error(&[])),
        },
        ["deep", levels] => refused(format!(
            "the session has taken the key {levels} times, and max_depth allows no more; \
             is there a recursion without an end, or a guard that nobody drops?"
        )),
        ["endless", key] => {
            refused(format!("the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"))
        }
        ["spent", key] => refused(format!("the counter `{key}` is beyond 2^53; delete it")),
        ref words => Err(store.script_error(words)),
    }
}

/// Has the replicas confirm a grant, where the builder asked for that; gives it back if they do not.
async fn granted(store: &Store, id: &str, claim: &Claim, names: &KeyNames, epoch: u64) -> Result<Attempt> {
    let Some(confirmation) = store.confirmation else { return Ok(Attempt::Granted { epoch: Some(epoch) }) };
    let grant = claim.grant(Some(epoch));
    let give_back = release(store, id, &grant);
    Box::pin(confirmation.confirm(&store.connection, &names.part(LOCK), epoch, give_back)).await
}
