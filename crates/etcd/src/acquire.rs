use std::ops::ControlFlow;
use std::time::Duration;

use leasehold_core::{Attempt, Claim, Error, ErrorKind, GrantRef, Mode, Result};
use prost::Message;

use crate::failure::is_lease_gone;
use crate::line::{Entry, Line, Text};
use crate::proto::{Compare, Operation, Range, TxnRequest};
use crate::store::{ROUNDS, Store, seconds};

/// The lease of who waits, and the first lease of a grant out of the line: a waiter that died keeps the others for no longer.
const WAITS: Duration = Duration::from_secs(5);

/// Takes a key for the owner of `claim`, or says that another is in the way, or puts the owner at the end of the line.
///
/// Who would wait, and knows of nobody who does, asks for a free key at once. Else the line is read first: a transaction that may
/// write goes to the disks of a majority, also where it finds the key busy.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    let is_hopeful = claim.waits && store.waiters(&claim.key).is_empty();
    let line = if is_hopeful {
        match take(store, claim).await? {
            ControlFlow::Break(granted) => return Ok(granted),
            ControlFlow::Continue(line) => line,
        }
    } else {
        store.line("acquire", &claim.key).await?.0
    };
    if let Some(ours) = line.of(claim.owner, claim.mode) {
        // Who waits is in the line for as long as it asks.
        let holds = line.before(ours).is_none();
        if holds || store.keep_alive("acquire", &[ours.lease]).await? == [true] {
            return found(store, claim, &line, ours).await;
        }
    }
    if !is_hopeful
        && line.admits(claim.mode)
        && let ControlFlow::Break(granted) = take(store, claim).await?
    {
        return Ok(granted);
    }
    if !claim.waits {
        return busy(store, &line).await;
    }
    let (line, lease) = put(store, claim, Some(&line), claim.ttl.min(WAITS), None).await?;
    match line.of(claim.owner, claim.mode) {
        // Not as granted, also where it is first by now: its lease is not the one that was asked for.
        Some(ours) if lasts(store, ours, lease).await? => Ok(queued(store, claim, &line, ours)),
        _ => Ok(Attempt::Busy { retry_in: None }),
    }
}

/// Takes the key if nobody is in the way, or answers the line as it is.
async fn take(store: &Store, claim: &Claim) -> Result<ControlFlow<Attempt, Line>> {
    let in_the_way = match claim.mode {
        Mode::Exclusive => store.names().line(&claim.key),
        Mode::Shared => store.names().writers(&claim.key),
    };
    let mut seen = None;
    for _ in 0..ROUNDS {
        let (line, lease) = put(store, claim, seen.as_ref(), claim.ttl, Some(in_the_way.clone())).await?;
        match line.of(claim.owner, claim.mode) {
            Some(ours) if lasts(store, ours, lease).await? => {
                return Ok(ControlFlow::Break(found(store, claim, &line, ours).await?));
            }
            // Only its place was taken.
            None if line.admits(claim.mode) => seen = Some(line),
            _ => return Ok(ControlFlow::Continue(line)),
        }
    }
    Ok(ControlFlow::Break(Attempt::Busy { retry_in: None }))
}

/// Where a claim is written: in the place of this process, unless another owner has that in the line that was seen last. And what
/// keeps an earlier request of the same claim, which may come later than this one, from writing a second entry into the other place.
fn place(store: &Store, claim: &Claim, seen: Option<&Line>) -> (Vec<u8>, Compare) {
    let Claim { key, mode, owner, .. } = claim;
    let (place, own) = (store.place(key, *mode), store.names().entry(key, *mode, *owner));
    let taken = |entry: &&Entry| entry.name == place && entry.owner != *owner;
    match seen.and_then(|line| line.entries.iter().find(taken)) {
        Some(taken) => (own, Compare::unchanged(&place, taken.modified)),
        None => (place, Compare::absent((own, Vec::new()))),
    }
}

/// Whether the lease of an entry counts from this request. An entry with another lease than the one that is granted now was written
/// by an earlier request, which was late.
async fn lasts(store: &Store, entry: &Entry, granted: i64) -> Result<bool> {
    Ok(entry.lease == granted || store.keep_alive("acquire", &[entry.lease]).await? == [true])
}

/// Writes the entry of a claim, with a lease of its own, if it is not there, and nothing in this range. Answers the line after it, and
/// that lease.
async fn put(
    store: &Store,
    claim: &Claim,
    seen: Option<&Line>,
    ttl: Duration,
    in_the_way: Option<Range>,
) -> Result<(Line, i64)> {
    let (name, is_alone) = place(store, claim, seen);
    for _ in 0..ROUNDS {
        let base = store.base("acquire").await?;
        let lease = store.lease("acquire", seconds(ttl)).await?;
        // A store that lost its data counts revisions anew.
        let same_base = Compare::value(&store.names().base(), &base.text());
        let mut compare = vec![same_base, Compare::absent((name.clone(), Vec::new())), is_alone.clone()];
        compare.extend(in_the_way.clone().map(Compare::absent));
        let failure = store.reads(&claim.key).to_vec();
        let mut success = vec![Operation::put(&name, Text::of(claim, seconds(ttl)).encode_to_vec(), lease)];
        success.extend(failure.iter().cloned());
        let answer = match store.commit(&claim.key, TxnRequest { compare, success, failure }).await {
            Ok(answer) => answer,
            // It had just enough left, and the claim was long on its way.
            Err(error) if is_lease_gone(&error) => continue,
            Err(error) => {
                if error.kind() != ErrorKind::Indeterminate {
                    store.take_back(lease, seconds(ttl));
                }
                return Err(error);
            }
        };
        if !answer.succeeded {
            store.take_back(lease, seconds(ttl));
        }
        match Line::read("acquire", store.names(), answer.reads()) {
            Ok(line) if line.base == base => return Ok((line, lease)),
            Ok(_) => store.forget_base(),
            Err(error) if error.kind() == ErrorKind::Unavailable => store.forget_base(),
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "acquire").detail("the namespace loses its base again and again"))
}

/// What a claim is told whose owner is in the line.
async fn found(store: &Store, claim: &Claim, line: &Line, ours: &Entry) -> Result<Attempt> {
    if line.before(ours).is_none() {
        store.waits_no_more(&claim.key, claim.owner);
        return Ok(Attempt::Granted { epoch: Some(line.epoch(ours)) });
    }
    if claim.waits { Ok(queued(store, claim, line, ours)) } else { busy(store, line).await }
}

/// What is left of the lease that came last of those that hold the key. etcd tells it in whole seconds.
async fn busy(store: &Store, line: &Line) -> Result<Attempt> {
    let Some(holder) = line.holders().last() else { return Ok(Attempt::Busy { retry_in: None }) };
    let left = store.left("acquire", holder.lease).await?.and_then(|left| u64::try_from(left).ok());
    Ok(Attempt::Busy { retry_in: left.map(|left| Duration::from_secs(left.max(1))) })
}

fn queued(store: &Store, claim: &Claim, line: &Line, ours: &Entry) -> Attempt {
    store.waits(&claim.key, claim.owner, claim.mode);
    let lease = claim.ttl.min(WAITS);
    let is_first = line.before(ours).is_none();
    let others = line.holders().filter(|holder| holder.owner != claim.owner);
    Attempt::Queued {
        epoch_of_holder: others.map(|holder| line.epoch(holder)).max(),
        latest_epoch: None,
        retry_in: if is_first { Duration::from_millis(1) } else { lease / 3 },
        notifies: true,
        lease,
    }
}

/// Makes a reader of a writer, which keeps its place at the head of the line.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    let name = store.names().entry(&claim.key, Mode::Shared, claim.owner);
    for _ in 0..ROUNDS {
        let (line, _) = store.line("downgrade", &claim.key).await?;
        let held = line.held(writer.owner, Mode::Exclusive, writer.epoch);
        let Some(held) = held else { break };
        let lease = store.lease("downgrade", seconds(claim.ttl)).await?;
        let text = Text { position: held.position, downgraded: true, ..Text::of(claim, seconds(claim.ttl)) };
        let success = vec![Operation::delete(&held.name), Operation::put(&name, text.encode_to_vec(), lease)];
        let compare = vec![Compare::unchanged(&held.name, held.modified)];
        let txn = TxnRequest { compare, success, failure: Vec::new() };
        if store.txn("downgrade", true, txn).await?.succeeded {
            store.lease_of(held);
            return Ok(Attempt::Granted { epoch: Some(line.base.epoch(held.position).saturating_add(1)) });
        }
        // The writer was renewed or released meanwhile.
        store.take_back(lease, seconds(claim.ttl));
    }
    Ok(Attempt::Busy { retry_in: None })
}
