use leasehold_core::{GrantRef, LeaseStatus, Result};

use crate::line::Line;
use crate::proto::{Compare, KeyValue, Operation, TxnRequest};
use crate::store::Store;

/// Deletes the entry of an owner, which holds the key or waits for it. An owner that etcd does not have is one that was released
/// before, by force, or by the end of its lease.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    store.waits_no_more(&grant.key, grant.owner);
    store.settled(grant.owner);
    let name = store.names().entry(&grant.key, grant.mode, grant.owner);
    let mut success = store.reads(&grant.key).to_vec();
    success.push(Operation::delete(&name));
    let failure = vec![Operation::get_one(&store.names().forced(&grant.key, grant.owner))];
    let answer =
        store.txn("release", true, TxnRequest { compare: vec![Compare::present(&name)], success, failure }).await?;
    if !answer.succeeded {
        return Ok(gone(&answer.reads().into_iter().flatten().collect::<Vec<_>>()));
    }
    let line = Line::read("release", store.names(), answer.reads())?;
    let Some(ours) = line.of(grant.owner, grant.mode) else { return Ok(LeaseStatus::NotHeld) };
    store.revoke([ours.lease]);
    Ok(if line.before(ours).is_none() { LeaseStatus::Held } else { LeaseStatus::NotHeld })
}

/// Why an owner is gone, by what there is of a mark of a forced release.
pub(crate) fn gone(mark: &[KeyValue]) -> LeaseStatus {
    if mark.is_empty() { LeaseStatus::NotHeld } else { LeaseStatus::ForceReleased }
}
