use std::cmp::Ordering;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Error, ErrorKind, GrantRef, LeaseStatus, OwnerId, Renewal, Result};
use prost::Message;
use tokio::time::timeout;

use crate::line::{Base, Entry, Text};
use crate::proto::{Compare, KeyValue, Operation, TxnRequest};
use crate::release::gone;
use crate::store::{ROUNDS, Store, seconds};

/// How many renewals fit into one transaction, which has three reads for each. A server takes 128 operations unless told otherwise.
pub(crate) const BATCH: usize = 40;

const RENEW: &str = "renew";

/// Prolongs grants whose owner etcd still has, under the same epoch. All are read in one transaction, and then their leases are
/// prolonged, which the leader does without a write.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    let mut statuses = Vec::with_capacity(renewals.len());
    for batch in renewals.chunks(BATCH) {
        let late = || Error::new(ErrorKind::Indeterminate, RENEW).detail(format!("no answer within {within:?}"));
        let done = timeout(within, some(store, batch)).await.unwrap_or_else(|_| Err(late()));
        statuses.extend(done.unwrap_or_else(|error| batch.iter().map(|_| Err(error.retell())).collect()));
    }
    statuses
}

async fn some(store: &Store, renewals: &[Renewal]) -> Result<Vec<Result<LeaseStatus>>> {
    let base = store.base(RENEW).await?;
    let names = |grant: &GrantRef| names(store, grant).map(|name| Operation::get_one(&name));
    let mut reads = reads(store, base, renewals.iter().flat_map(|renewal| names(&renewal.grant)).collect()).await?;
    let mut read = |renewal: &Renewal| {
        let places = reads.next().into_iter().chain(reads.next()).flatten().collect();
        read(store, base, &renewal.grant, (places, reads.next().unwrap_or_default()))
    };
    let entries = renewals.iter().map(&mut read).collect::<Vec<_>>();
    let kept = |(renewal, entry): (&Renewal, &Result<Entry, Gone>)| {
        let is_kept = |entry: &&Entry| entry.text.ttl == seconds(renewal.ttl) && !store.is_unanswered(entry.owner);
        entry.as_ref().ok().filter(is_kept).map(|entry| entry.lease)
    };
    let kept: Vec<i64> = renewals.iter().zip(&entries).filter_map(kept).collect();
    let alive = if kept.is_empty() { Vec::new() } else { store.keep_alive(RENEW, &kept).await? };
    let alive = kept.iter().zip(alive).filter_map(|(lease, alive)| alive.then_some(*lease)).collect::<Vec<_>>();
    let status = renewals.iter().zip(entries).map(|(renewal, entry)| {
        let as_asked = |entry: &Entry| entry.text.ttl == seconds(renewal.ttl) && alive.contains(&entry.lease);
        let kept = entry.as_ref().is_ok_and(as_asked);
        async move {
            match entry {
                Ok(_) if kept => Ok(LeaseStatus::Held),
                Err(Gone::Odd(error)) => Err(error),
                // What is missing may be in the place of another process, such as an agent before this one.
                Ok(_) | Err(Gone::Missing(_) | Gone::Replaced) => prolong(store, base, renewal).await,
            }
        }
    });
    Ok(join_all(status).await)
}

/// What is there under the base of the namespace. Without that, nothing of the namespace is there: nothing is read, and nothing is held.
async fn reads(store: &Store, base: Base, success: Vec<Operation>) -> Result<impl Iterator<Item = Vec<KeyValue>>> {
    let compare = vec![Compare::value(&store.names().base(), &base.text())];
    let answer = store.txn(RENEW, false, TxnRequest { compare, success, failure: Vec::new() }).await?;
    Ok(answer.reads().into_iter())
}

/// Of the two places that this process has for the entry of a grant, and of the mark that it was released by force.
fn names(store: &Store, grant: &GrantRef) -> [Vec<u8>; 3] {
    let GrantRef { key, mode, owner, .. } = grant;
    let named_after_it = store.names().entry(key, *mode, *owner);
    [store.place(key, *mode), named_after_it, store.names().forced(key, *owner)]
}

enum Gone {
    /// There is no entry of its owner.
    Missing(LeaseStatus),
    /// Its owner has a grant under another epoch.
    Replaced,
    Odd(Error),
}

/// The entry of a grant, if it is the grant under that epoch.
fn read(
    store: &Store,
    base: Base,
    grant: &GrantRef,
    (places, mark): (Vec<KeyValue>, Vec<KeyValue>),
) -> Result<Entry, Gone> {
    let places = Entry::read_all(RENEW, store.names(), places).map_err(Gone::Odd)?;
    let Some(entry) = places.into_iter().find(|entry| (entry.owner, entry.mode) == (grant.owner, grant.mode)) else {
        return Err(Gone::Missing(gone(&mark)));
    };
    let is_the_same = grant.epoch.is_none_or(|epoch| epoch == entry.epoch(base));
    if is_the_same { Ok(entry) } else { Err(Gone::Replaced) }
}

/// Gives one grant a lease of another length, or of the same once more if its lease was replaced meanwhile, or may still be. etcd
/// keeps the length of a lease, so that another length takes another lease.
async fn prolong(store: &Store, base: Base, renewal: &Renewal) -> Result<LeaseStatus> {
    let Renewal { grant, ttl } = renewal;
    let ttl = seconds(*ttl);
    for _ in 0..ROUNDS {
        let [.., mark] = names(store, grant);
        let line = vec![Operation::get(store.names().line(&grant.key)), Operation::get_one(&mark)];
        let mut reads = reads(store, base, line).await?;
        let mut next = || reads.next().unwrap_or_default();
        let entry = match read(store, base, grant, (next(), next())) {
            Ok(entry) => entry,
            Err(Gone::Missing(status)) => {
                store.gone(grant.owner);
                return Ok(status);
            }
            Err(Gone::Replaced) => return Ok(LeaseStatus::NotHeld),
            Err(Gone::Odd(error)) => return Err(error),
        };
        let stays = !store.is_unanswered(grant.owner);
        let (is_enough, ttl) = match entry.text.ttl.cmp(&ttl) {
            Ordering::Equal if stays => (store.keep_alive(RENEW, &[entry.lease]).await? == [true], ttl),
            // A lease that lasts longer than asked is not made shorter. What is left is told in whole seconds, rounded down.
            Ordering::Greater => {
                let left = store.left(RENEW, entry.lease).await?.unwrap_or(-1);
                (stays && left >= ttl, ttl.max(left.saturating_add(1)))
            }
            Ordering::Less | Ordering::Equal => (false, ttl),
        };
        if is_enough || replace(store, RENEW, &entry, entry.owner, &entry.name, ttl).await? {
            return Ok(LeaseStatus::Held);
        }
    }
    Err(Error::new(ErrorKind::Unavailable, RENEW).detail("the grant changes all the time"))
}

/// Puts an entry of this owner, under a name and with a new lease, instead of another, if nobody changed that one meanwhile.
async fn replace(
    store: &Store,
    operation: &'static str,
    entry: &Entry,
    owner: OwnerId,
    name: &[u8],
    ttl: i64,
) -> Result<bool> {
    let lease = store.lease(operation, ttl).await?;
    let text = Text { owner: owner.to_hex(), ttl, position: entry.position, ..entry.text.clone() };
    let mut success = vec![Operation::put(name, text.encode_to_vec(), lease)];
    if name != entry.name {
        success.push(Operation::delete(&entry.name));
    }
    let compare = vec![Compare::unchanged(&entry.name, entry.modified)];
    let txn = TxnRequest { compare, success, failure: Vec::new() };
    let done = if name == entry.name {
        store.replace(operation, entry.owner, entry.modified, txn).await?
    } else {
        store.txn(operation, true, txn).await?.succeeded
    };
    if done {
        store.lease_of(entry);
    } else {
        store.take_back(lease, ttl);
    }
    Ok(done)
}

/// Gives a grant to `new_owner`, with a lease of `ttl` or what is left if that is more.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    const ATTACH: &str = "attach";
    let name = store.names().entry(&grant.key, grant.mode, new_owner);
    for _ in 0..ROUNDS {
        let (line, _) = store.line(ATTACH, &grant.key).await?;
        if line.held(new_owner, grant.mode, grant.epoch).is_some() {
            return Ok(LeaseStatus::Held);
        }
        let Some(held) = line.held(grant.owner, grant.mode, grant.epoch) else {
            let mark = store.range(ATTACH, (store.names().forced(&grant.key, grant.owner), Vec::new()), 1).await?;
            return Ok(gone(&mark.kvs));
        };
        let left = store.left(ATTACH, held.lease).await?.unwrap_or(0);
        // What is left is told in whole seconds, rounded down.
        if replace(store, ATTACH, held, new_owner, &name, seconds(ttl).max(left.saturating_add(1))).await? {
            return Ok(LeaseStatus::Held);
        }
    }
    Err(Error::new(ErrorKind::Unavailable, ATTACH).detail("the grant changes all the time"))
}
