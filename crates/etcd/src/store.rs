use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Clock, Error, ErrorKind, FencingToken, GroupCommit, LockKey, Mode, OwnerId, Result, Turns};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::commits::Commits;
use crate::failure::odd;
use crate::leases::{Idle, Leases, SPARE};
use crate::line::{Base, Entry, Line};
use crate::names::Names;
use crate::nodes::{Nodes, Step, locked};
use crate::proto::{
    Compare, LEASE_GRANT, LEASE_KEEP_ALIVE, LEASE_REVOKE, LEASE_TIME_TO_LIVE, LeaseGrantRequest, LeaseRequest,
    LeaseResponse, Operation, RANGE, Range, RangeRequest, RangeResponse, TXN, TxnRequest, TxnResponse,
};
use crate::unanswered::Unanswered;

/// The locks of one namespace: the servers, the names, and who of this process waits. A clone shares them.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    nodes: Arc<Nodes>,
    names: Names,
    /// After which one writer and one reader of this process in each line are named: a key is slower by each name that it ever had,
    /// until etcd's history is compacted.
    place: OwnerId,
    commits: GroupCommit<Commits>,
    leases: Leases,
    clock: Clock,
    base: Mutex<Option<Base>>,
    waiting: Mutex<HashMap<LockKey, Waiters>>,
    unanswered: Mutex<Unanswered>,
    /// Sent whenever somebody else waits, or waits no more.
    changed: watch::Sender<()>,
}

/// Who of this process waits in one line. One engine has one waiter there; behind an agent there are several.
pub(crate) type Waiters = Vec<(OwnerId, Mode)>;

/// How often a transaction is tried again because what it compares was changed meanwhile.
pub(crate) const ROUNDS: usize = 5;

/// A request that changes nothing about who holds a key.
pub(crate) fn read(operation: &'static str, path: &'static str) -> Step {
    Step { operation, path, writes: false }
}

impl Store {
    pub(crate) fn new(nodes: Nodes) -> Self {
        let (names, nodes) = (Names::new(&nodes.address.namespace), Arc::new(nodes));
        let commits = GroupCommit::new(Commits(Arc::clone(&nodes)), nodes.address.group_commit, &Turns::default());
        Self(Arc::new(Shared {
            nodes,
            names,
            place: OwnerId::random(),
            commits,
            leases: Leases::default(),
            clock: Clock::system(),
            base: Mutex::default(),
            waiting: Mutex::default(),
            unanswered: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.0.nodes
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    /// The place of this process in a line. One who finds it taken has one that is named after itself.
    pub(crate) fn place(&self, key: &LockKey, mode: Mode) -> Vec<u8> {
        self.names().entry(key, mode, self.0.place)
    }

    /// From where epochs are counted. The first who uses a namespace writes it down, as its clock says.
    pub(crate) async fn base(&self, operation: &'static str) -> Result<Base> {
        let known = *locked(&self.0.base);
        if let Some(base) = known {
            return Ok(base);
        }
        let name = self.names().base();
        for _ in 0..ROUNDS {
            let range = RangeRequest { key: name.clone(), ..RangeRequest::default() };
            let found: RangeResponse = self.nodes().ask(read(operation, RANGE), range).await?;
            if let Some(found) = found.kvs.first() {
                let base = Base::read(&found.value).ok_or_else(|| odd(operation, &name))?;
                *locked(&self.0.base) = Some(base);
                return Ok(base);
            }
            let clock = FencingToken::epoch_at(Clock::system().since_1970());
            let first = FencingToken::next_epoch(None, clock).unwrap_or(clock);
            let base = Base::at(first, found.header.map_or(0, |header| header.revision));
            let compare = vec![Compare::absent((name.clone(), Vec::new()))];
            let success = vec![Operation::put(&name, base.text(), 0)];
            // It is read back, also where another was faster.
            self.txn(operation, false, TxnRequest { compare, success, failure: Vec::new() }).await?;
        }
        Err(Error::new(ErrorKind::Unavailable, operation).detail("the namespace loses its base again and again"))
    }

    /// Has the base read again, because the store has another one.
    pub(crate) fn forget_base(&self) {
        *locked(&self.0.base) = None;
    }

    /// What [`Line::read`] needs.
    pub(crate) fn reads(&self, key: &LockKey) -> [Operation; 2] {
        [Operation::get_one(&self.names().base()), Operation::get(self.names().line(key))]
    }

    /// The line of a key, and the revision at which it was read.
    pub(crate) async fn line(&self, operation: &'static str, key: &LockKey) -> Result<(Line, i64)> {
        self.base(operation).await?;
        let success = self.reads(key).to_vec();
        let answer = self.txn(operation, false, TxnRequest { success, ..TxnRequest::default() }).await?;
        let revision = answer.header.as_ref().map_or(0, |header| header.revision);
        let line = Line::read(operation, self.names(), answer.reads());
        if line.is_err() {
            self.forget_base();
        }
        Ok((line?, revision))
    }

    /// Carries out a transaction. `writes`: whether it changes who holds a key.
    pub(crate) async fn txn(&self, operation: &'static str, writes: bool, txn: TxnRequest) -> Result<TxnResponse> {
        self.nodes().ask(Step { operation, path: TXN, writes }, txn).await
    }

    /// As [`txn`](Self::txn), for one that changes who holds this key, and no other: together with those about other keys that come
    /// in at the same time.
    pub(crate) async fn commit(&self, key: &LockKey, txn: TxnRequest) -> Result<TxnResponse> {
        self.0.commits.run((self.names().line(key).0, txn)).await
    }

    pub(crate) async fn range(&self, operation: &'static str, range: Range, limit: i64) -> Result<RangeResponse> {
        self.nodes().ask(read(operation, RANGE), RangeRequest::all(range, limit)).await
    }

    /// A lease that lasts so many seconds from now on, less [`SPARE`], and that no entry has. If the answer is lost, etcd has a lease
    /// without keys, which ends by itself.
    pub(crate) async fn lease(&self, operation: &'static str, ttl: i64) -> Result<i64> {
        let Shared { leases, clock, .. } = &*self.0;
        if let Some(Idle { id, lasts }) = leases.take(ttl, clock.now()) {
            if lasts || self.keep_alive(operation, &[id]).await? == [true] {
                return Ok(id);
            }
            leases.forget(ttl);
        }
        let sent = clock.now();
        let granted: LeaseResponse = self.nodes().ask(read(operation, LEASE_GRANT), LeaseGrantRequest { ttl }).await?;
        leases.was_alive(granted.id, sent, clock.now());
        Ok(granted.id)
    }

    /// Takes the lease back of an entry that is there no more.
    pub(crate) fn lease_of(&self, entry: &Entry) {
        self.take_back(entry.lease, entry.text.ttl);
    }

    /// Takes a lease back that no entry has, and that no request can give to one any more: the answers to all that could are there.
    pub(crate) fn take_back(&self, lease: i64, ttl: i64) {
        if lease != 0
            && self.0.leases.give(lease, ttl, self.0.clock.now())
            && let Some(runtime) = self.nodes().runtime()
        {
            let store = self.clone();
            runtime.spawn(async move {
                sleep(SPARE).await;
                while let Some(unused) = store.0.leases.unused(store.0.clock.now()) {
                    store.revoke(unused);
                    sleep(SPARE).await;
                }
            });
        }
    }

    /// Closes the connections, once the leases are given back that no entry has.
    pub(crate) async fn close(&self) {
        let revoked = self.0.leases.all().into_iter().map(|id| self.ask_to_revoke(id));
        let _ = timeout(SPARE, join_all(revoked)).await;
        self.nodes().close();
    }

    async fn ask_to_revoke(&self, id: i64) {
        let _: Result<LeaseResponse> = self.nodes().ask(read("release", LEASE_REVOKE), LeaseRequest { id }).await;
    }

    /// Gives these leases, which no entry has any more, back in the background. If that task never runs, they end by themselves.
    pub(crate) fn revoke(&self, leases: impl IntoIterator<Item = i64>) {
        for id in leases.into_iter().filter(|id| *id != 0) {
            let store = self.clone();
            if let Some(runtime) = self.nodes().runtime() {
                runtime.spawn(async move { store.ask_to_revoke(id).await });
            }
        }
    }

    /// Prolongs each of these leases to the length with which it was granted. The answers say which were there.
    pub(crate) async fn keep_alive(&self, operation: &'static str, leases: &[i64]) -> Result<Vec<bool>> {
        let requests = leases.iter().map(|id| LeaseRequest { id: *id }).collect();
        let sent = self.0.clock.now();
        let answers: Vec<LeaseResponse> = self.nodes().ask_each(read(operation, LEASE_KEEP_ALIVE), requests).await?;
        let is_alive = |(answer, id): (&LeaseResponse, &i64)| {
            let is_alive = answer.id == *id && answer.ttl > 0;
            if is_alive {
                self.0.leases.was_alive(*id, sent, self.0.clock.now());
            }
            is_alive
        };
        Ok(answers.iter().zip(leases).map(is_alive).collect())
    }

    /// What is left of a lease, in whole seconds. `None`: it has ended.
    pub(crate) async fn left(&self, operation: &'static str, lease: i64) -> Result<Option<i64>> {
        let asked = self.nodes().ask(read(operation, LEASE_TIME_TO_LIVE), LeaseRequest { id: lease });
        let answer: LeaseResponse = asked.await?;
        Ok((answer.ttl >= 0).then_some(answer.ttl))
    }

    /// Notes that this owner waits in the line of a key.
    pub(crate) fn waits(&self, key: &LockKey, owner: OwnerId, mode: Mode) {
        let mut waiting = locked(&self.0.waiting);
        let waiters = waiting.entry(key.clone()).or_default();
        if !waiters.contains(&(owner, mode)) {
            waiters.push((owner, mode));
            self.0.changed.send_replace(());
        }
    }

    pub(crate) fn waits_no_more(&self, key: &LockKey, owner: OwnerId) {
        let mut waiting = locked(&self.0.waiting);
        if let Some(waiters) = waiting.get_mut(key) {
            let before = waiters.len();
            waiters.retain(|(waits, _)| *waits != owner);
            if waiters.len() < before {
                self.0.changed.send_replace(());
            }
            if waiters.is_empty() {
                waiting.remove(key);
            }
        }
    }

    /// Who of this process waits for a key, or was granted it while it waited.
    pub(crate) fn waiters(&self, key: &LockKey) -> Waiters {
        locked(&self.0.waiting).get(key).cloned().unwrap_or_default()
    }

    /// Carries out a transaction that replaces the lease of this owner's entry, if nobody changed the entry since it was read.
    /// If the answer does not come, or is not waited for, [`is_unanswered`](Self::is_unanswered) holds of the owner from then on.
    pub(crate) async fn replace(
        &self,
        operation: &'static str,
        owner: OwnerId,
        modified: i64,
        txn: TxnRequest,
    ) -> Result<bool> {
        locked(&self.0.unanswered).sent(owner, modified);
        let done = self.txn(operation, true, txn).await?;
        locked(&self.0.unanswered).answered(owner, modified);
        Ok(done.succeeded)
    }

    /// Whether the lease of this owner's entry may still be replaced by one that was granted earlier, so that to keep the present
    /// one alive says nothing. Only to replace the lease, which changes the entry, keeps that from happening.
    pub(crate) fn is_unanswered(&self, owner: OwnerId) -> bool {
        locked(&self.0.unanswered).contains(owner)
    }

    /// Notes that this owner is gone.
    pub(crate) fn gone(&self, owner: OwnerId) {
        locked(&self.0.unanswered).gone(owner);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }
}

/// A lease in whole seconds, longer than asked for by [`SPARE`] at least.
pub(crate) fn seconds(ttl: Duration) -> i64 {
    i64::try_from((ttl + SPARE).as_nanos().div_ceil(1_000_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_rounded_up_to_seconds_and_has_some_to_spare() {
        for (millis, rounded) in [(2_000, 3), (2_001, 4), (2_999, 4), (86_400_000, 86_401)] {
            assert_eq!(seconds(Duration::from_millis(millis)), rounded);
        }
    }
}
