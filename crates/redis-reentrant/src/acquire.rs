use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Renewal, Result};
use leasehold_redis::{Lease, NEXT_EPOCH, ScriptArguments, ScriptFunction, encode_metadata, read_epoch};

use crate::release::release;
use crate::renew::{RENEW, renew_arguments};
use crate::store::{LOCK, Store, session_id};

/// What the scripts share that look who holds a key.
pub(crate) const HOLDER_LUA: &str = include_str!("lua/holder.lua");
pub(crate) static TRY_ACQUIRE: ScriptFunction =
    ScriptFunction::new("try_acquire", 2, 6, &[NEXT_EPOCH, HOLDER_LUA, include_str!("lua/try_acquire.lua")]);

/// Takes a key for the session `id`, or takes it once more, or says which session is in the way. The owner id of `claim`
/// names the level.
pub(crate) async fn try_acquire(store: &Store, id: &str, claim: &Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        return Err(Error::new(ErrorKind::Unsupported, "acquire"));
    }
    let names = store.redis.names(&claim.key);
    let arguments = ScriptArguments::default()
        .name(&names, LOCK)
        .counter(&names)
        .text(id)
        .text(claim.owner.to_hex())
        .text(claim.ttl.as_millis())
        .text(store.max_depth)
        .text(claim.lost.map(|lost| lost.to_string()).unwrap_or_default())
        .text(encode_metadata(claim));
    let reply = store.redis.run_function(&TRY_ACQUIRE, arguments, None).await?;
    match *reply.words() {
        ["granted", epoch] => {
            let lost = || store.redis.refusal(&format!("the entry of {} has lost its token", claim.key));
            let epoch = read_epoch(epoch).ok_or_else(lost)?;
            let grant = claim.grant(Some(epoch));
            let renewals = [Renewal { grant: grant.clone(), ttl: claim.ttl }];
            let renewal = || (&RENEW, renew_arguments(store, id, &renewals));
            store.redis.confirm(&grant, renewal, || Box::pin(release(store, id, &grant))).await
        }
        ["busy", left, by] => match (Lease::read(left), session_id(by)) {
            (Some(Lease::Ends(left)), Some(session)) => Ok(Attempt::HeldBy { session, retry_in: Some(left) }),
            _ => Err(store.redis.script_error(&[])),
        },
        ["soon"] => Ok(Attempt::AHEAD_OF_THE_CLOCK),
        ["deep", levels] => Err(store.redis.refusal(&format!(
            "the session has taken the key {levels} times, and max_depth allows no more; \
             is there a recursion without an end, or a guard that nobody drops?"
        ))),
        ref words => Err(store.redis.script_error(words)),
    }
}
