use leasehold_core::{Error, ErrorKind, GrantRef, LeaseStatus, Result};

use crate::line::{Entry, Line, Text};
use crate::proto::{Compare, KeyValue, Operation, TxnRequest};
use crate::store::{ROUNDS, Store};

const RELEASE: &str = "release";

/// Deletes the entry of an owner, which holds the key or waits for it. An owner that etcd does not have is one that was released
/// before, by force, or by the end of its lease.
pub(crate) async fn release(store: &Store, grant: &GrantRef) -> Result<LeaseStatus> {
    store.waits_no_more(&grant.key, grant.owner);
    store.gone(grant.owner);
    let names = store.names();
    let mut name = store.place(&grant.key, grant.mode);
    let mut is_ours = Compare::begins(&name, &Text::beginning(grant.owner)).to_vec();
    for _ in 0..ROUNDS {
        let mut success = store.reads(&grant.key).to_vec();
        success.push(Operation::delete(&name));
        let mark = Operation::get_one(&names.forced(&grant.key, grant.owner));
        let failure = vec![Operation::get(names.line(&grant.key)), mark];
        let answer = store.commit(&grant.key, TxnRequest { compare: is_ours, success, failure }).await?;
        let is_done = answer.succeeded;
        let mut reads = answer.reads();
        if is_done {
            let line = Line::read(RELEASE, names, reads)?;
            let Some(ours) = line.of(grant.owner, grant.mode) else { return Ok(LeaseStatus::NotHeld) };
            store.lease_of(ours);
            return Ok(if line.before(ours).is_none() { LeaseStatus::Held } else { LeaseStatus::NotHeld });
        }
        let mark = reads.pop().unwrap_or_default();
        let line = Entry::read_all(RELEASE, names, reads.pop().unwrap_or_default())?;
        let found = line.into_iter().find(|entry| entry.owner == grant.owner && entry.mode == grant.mode);
        let Some(ours) = found else { return Ok(gone(&mark)) };
        // It has another place, or its lease was replaced meanwhile.
        is_ours = vec![Compare::unchanged(&ours.name, ours.modified)];
        name = ours.name;
    }
    Err(Error::new(ErrorKind::Unavailable, RELEASE).detail("the grant changes all the time"))
}

/// Why an owner is gone, by what there is of a mark of a forced release.
pub(crate) fn gone(mark: &[KeyValue]) -> LeaseStatus {
    if mark.is_empty() { LeaseStatus::NotHeld } else { LeaseStatus::ForceReleased }
}
