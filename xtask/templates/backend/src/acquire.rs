use leasehold_core::{Attempt, Claim, Result};

use crate::store::Store;

/// Takes a key for the owner of `claim`, or answers for how long the lease in the way lasts.
///
/// One atomic step, on the entry that [`Store::namespace`] names for the key, and by the store's clock:
///
/// 1. The entry has `claim.owner`, and its lease has not ended: [`Attempt::Granted`] with the epoch of the entry. Nothing is
///    changed: the engine repeats a claim whose answer was lost, and a repeated claim prolongs nothing.
/// 2. It has another owner, and its lease has not ended: [`Attempt::Busy`] with what is left of that lease.
/// 3. Else the new epoch is `FencingToken::next_epoch(epoch of the entry, clock)`. If there is none, nothing is changed, and the
///    answer is [`Attempt::AHEAD_OF_THE_CLOCK`]. A store that computes the epoch itself, in SQL or a script, has the same rule.
/// 4. Write owner, epoch, end of the lease (the clock plus `claim.ttl`), label and reason, and answer [`Attempt::Granted`].
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    store.not_written("try_acquire", claim.key.as_str()).await
}
