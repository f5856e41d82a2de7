use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::clock::Moment;
use crate::memory_faults::Faults;
use crate::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, ErrorKind, FencingToken, GrantRef, Holder,
    Holders, LeaseStatus, LockKey, Mode, Notification, Notifications, OwnerId, Page, Renewal, Result, SharedBackend,
    Subscription,
};

/// The store of [`Memory`](crate::Memory), as a backend. Clones share one store.
#[derive(Clone, Debug)]
pub struct MemoryBackend {
    store: Arc<Store>,
    namespace: Arc<str>,
}

#[derive(Debug)]
struct Store {
    clock: Clock,
    /// The time from 1970 to the zero of the clock, so that its epochs are above those of every store before it.
    zero: Duration,
    state: Mutex<State>,
    faults: Faults,
    released: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Keys that are held, or were of late, by namespace and key.
    keys: BTreeMap<(Arc<str>, LockKey), Key>,
    /// Before the first epoch: what a key that is not there counts on from. The clock has passed all that was forgotten.
    zeroth: u64,
    /// Owners whose grant was released by force, until their lease would have ended.
    forced: HashMap<OwnerId, Moment>,
    /// When what expired is forgotten next.
    tidy_at: Moment,
}

#[derive(Debug, Default)]
struct Key {
    grants: Vec<Grant>,
    /// The newest epoch.
    epoch: u64,
}

#[derive(Clone, Debug)]
struct Grant {
    claim: Claim,
    epoch: u64,
    ends: Moment,
}

impl Store {
    /// The epoch that the clock has reached. It follows the store's own clock, which nobody sets back.
    fn epoch_at(&self, now: Moment) -> u64 {
        FencingToken::epoch_at(self.zero + now.since(Moment::default()))
    }
}

impl State {
    /// Forgets what expired or was released, so that keys that nobody asks for again leave nothing behind: once a second
    /// at most, for it looks at all.
    fn tidy(&mut self, now: Moment, clock: u64) {
        if now < self.tidy_at {
            return;
        }
        self.tidy_at = now.plus(Duration::from_secs(1));
        self.forced.retain(|_, until| *until > now);
        self.keys.retain(|_, key| key.epoch >= clock || key.grants.iter().any(|grant| grant.ends > now));
    }
}

impl MemoryBackend {
    /// An empty store in the namespace `leasehold`.
    pub fn new(clock: Clock) -> Self {
        let since_1970 = clock.since_1970();
        let zero = since_1970.saturating_sub(clock.now().since(Moment::default()));
        let first = FencingToken::next_epoch(None, FencingToken::epoch_at(since_1970)).unwrap_or_default();
        let state = State { zeroth: first.saturating_sub(1), ..State::default() };
        let (faults, released) = (Faults::default(), watch::Sender::new(()));
        let store = Store { clock, zero, state: Mutex::new(state), faults, released };
        Self { store: Arc::new(store), namespace: "leasehold".into() }
    }

    /// This store under another namespace: its keys are apart from those of every other namespace.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Self {
        Self { store: Arc::clone(&self.store), namespace: namespace.into() }
    }

    /// Makes the next `operations` fail: see [`Memory::fail_next`](crate::Memory::fail_next).
    pub fn fail_next(&self, operations: usize, kind: ErrorKind) {
        self.store.faults.fail_next(operations, kind);
    }

    /// Gives no answers for `time`: see [`Memory::silent_for`](crate::Memory::silent_for).
    pub fn silent_for(&self, time: Duration) {
        self.store.faults.silent_until(self.store.clock.now().plus(time));
    }

    /// Forgets who holds `key`: see [`Memory::forget`](crate::Memory::forget).
    pub fn forget(&self, key: &LockKey) {
        if let Some(key) = self.state().keys.get_mut(&self.place(key)) {
            key.grants.clear();
        }
        self.store.released.send_replace(());
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.store.clock
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.store.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, key: &LockKey) -> (Arc<str>, LockKey) {
        (Arc::clone(&self.namespace), key.clone())
    }

    fn find<'s>(&self, state: &'s mut State, grant: &GrantRef) -> Result<&'s mut Grant, LeaseStatus> {
        let now = self.store.clock.now();
        let forced = state.forced.contains_key(&grant.owner);
        let live = state.keys.get_mut(&self.place(&grant.key)).into_iter().flat_map(|key| &mut key.grants);
        live.filter(|held| held.ends > now).find(|held| held.claim.owner == grant.owner).ok_or(if forced {
            LeaseStatus::ForceReleased
        } else {
            LeaseStatus::NotHeld
        })
    }

    fn holders(&self, key: &LockKey, grants: &[Grant]) -> Holders {
        let now = self.store.clock.now();
        let holders = grants.iter().filter(|grant| grant.ends > now).map(|grant| Holder {
            remaining: Some(grant.ends.since(now)),
            label: grant.claim.label.as_deref().map(str::to_owned),
            reason: grant.claim.reason.as_deref().map(str::to_owned),
            ..Holder::of_epoch(grant.claim.mode, grant.epoch)
        });
        Holders::new(key, holders.collect())
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("memory")
            .with(Capability::Shared)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::ForceNotice)
            .with(Capability::Detach)
            .with(Capability::LocalHandoff)
            .without(Capability::CrossProcess, "it lives in one process")
            .without(Capability::CrossHost, "it lives in one process")
            .without(Capability::WriterIntent, "a waiting writer is known to its own engine only")
            .without(Capability::Reentrancy, "every acquire is an owner of its own")
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.answer("acquire", || self.grant_to(claim)).await
    }

    async fn renew(&self, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
        let done = self.answer("renew", || self.prolong(renewals)).await;
        done.unwrap_or_else(|error| vec![Err(error); renewals.len()])
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.answer("attach", || self.give_to(grant, new_owner, ttl)).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.answer("downgrade", || self.make_reader(writer, claim)).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.answer("release", || self.free(grant)).await
    }

    fn releases_in_place(&self) -> bool {
        true
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.answer("inspect", || self.seen(key)).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.answer("list", || self.page(prefix, after)).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.answer("force-release", || self.free_by_force(key, only)).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(self)
    }
}

/// The steps of the store, each under one lock.
impl MemoryBackend {
    async fn answer<T>(&self, operation: &'static str, carry_out: impl FnOnce() -> T) -> Result<T> {
        self.store.faults.answer(&self.store.clock, operation, carry_out).await
    }

    fn grant_to(&self, claim: &Claim) -> Attempt {
        let now = self.store.clock.now();
        let clock = self.store.epoch_at(now);
        let mut state = self.state();
        let state = &mut *state;
        state.tidy(now, clock);
        let fresh = || Key { grants: Vec::new(), epoch: state.zeroth };
        let Key { grants, epoch } = state.keys.entry(self.place(&claim.key)).or_insert_with(fresh);
        grants.retain(|grant| grant.ends > now);
        if let Some(ours) = grants.iter().find(|grant| grant.claim.owner == claim.owner) {
            return Attempt::Granted { epoch: Some(ours.epoch) };
        }
        let in_the_way =
            grants.iter().filter(|grant| claim.mode == Mode::Exclusive || grant.claim.mode == Mode::Exclusive);
        if let Some(ends) = in_the_way.map(|grant| grant.ends).max() {
            return Attempt::Busy { retry_in: Some(ends.since(now)) };
        }
        let Some(next) = FencingToken::next_epoch(Some(*epoch), clock) else { return Attempt::AHEAD_OF_THE_CLOCK };
        *epoch = next;
        grants.push(Grant { claim: claim.clone(), epoch: next, ends: now.plus(claim.ttl) });
        Attempt::Granted { epoch: Some(next) }
    }

    fn prolong(&self, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let now = self.store.clock.now();
        let mut state = self.state();
        let renew = |renewal: &Renewal| match self.find(&mut state, &renewal.grant) {
            Ok(grant) if renewal.grant.epoch != Some(grant.epoch) => Ok(LeaseStatus::NotHeld),
            Ok(grant) => {
                // A renewal may come late, after a longer one.
                grant.ends = grant.ends.max(now.plus(renewal.ttl));
                Ok(LeaseStatus::Held)
            }
            Err(held) => Ok(held),
        };
        renewals.iter().map(renew).collect()
    }

    fn give_to(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> LeaseStatus {
        let now = self.store.clock.now();
        let mut state = self.state();
        let again = GrantRef { owner: new_owner, ..grant.clone() };
        let which = if self.find(&mut state, &again).is_ok() { &again } else { grant };
        match self.find(&mut state, which) {
            Ok(held) if Some(held.epoch) == grant.epoch => {
                held.claim.owner = new_owner;
                held.ends = held.ends.max(now.plus(ttl));
                LeaseStatus::Held
            }
            Ok(_) => LeaseStatus::NotHeld,
            Err(held) => held,
        }
    }

    fn make_reader(&self, writer: &GrantRef, claim: &Claim) -> Attempt {
        let now = self.store.clock.now();
        let mut state = self.state();
        match self.find(&mut state, writer) {
            Ok(held) if Some(held.epoch) == writer.epoch && held.claim.mode == Mode::Exclusive => {
                let epoch = held.epoch + 1;
                *held = Grant { claim: claim.clone(), epoch, ends: now.plus(claim.ttl) };
                if let Some(key) = state.keys.get_mut(&self.place(&writer.key)) {
                    key.epoch = epoch;
                }
                self.store.released.send_replace(());
                Attempt::Granted { epoch: Some(epoch) }
            }
            _ => Attempt::Busy { retry_in: None },
        }
    }

    fn free(&self, grant: &GrantRef) -> LeaseStatus {
        let mut state = self.state();
        if let Err(held) = self.find(&mut state, grant) {
            return held;
        }
        if let Some(key) = state.keys.get_mut(&self.place(&grant.key)) {
            key.grants.retain(|held| held.claim.owner != grant.owner);
        }
        self.store.released.send_replace(());
        LeaseStatus::Held
    }

    fn seen(&self, key: &LockKey) -> Holders {
        let state = self.state();
        let grants = state.keys.get(&self.place(key)).map_or(&[][..], |key| &key.grants);
        self.holders(key, grants)
    }

    fn page(&self, prefix: &str, after: Option<&Cursor>) -> Page {
        const PAGE: usize = 100;
        let state = self.state();
        let ours = state.keys.iter().filter(|((namespace, key), _)| {
            *namespace == self.namespace
                && key.as_str().starts_with(prefix)
                && after.is_none_or(|after| key.as_str() > after.0.as_str())
        });
        let mut keys: Vec<_> = ours.map(|((_, key), held)| self.holders(key, &held.grants)).collect();
        keys.retain(|holders| !holders.holders.is_empty());
        let more = keys.len() > PAGE;
        keys.truncate(PAGE);
        let next = keys.last().filter(|_| more).map(|last| Cursor(last.key.as_str().to_owned()));
        Page { keys, next }
    }

    fn free_by_force(&self, key: &LockKey, only: Option<u64>) -> Holders {
        let mut state = self.state();
        let meant = |grant: &mut Grant| only.is_none_or(|epoch| epoch == grant.epoch);
        let place = state.keys.get_mut(&self.place(key));
        let grants: Vec<_> = place.map(|key| key.grants.extract_if(.., meant).collect()).unwrap_or_default();
        state.forced.extend(grants.iter().map(|grant| (grant.claim.owner, grant.ends.plus(Duration::from_secs(60)))));
        self.store.released.send_replace(());
        self.holders(key, &grants)
    }
}

impl SharedBackend for MemoryBackend {}

#[async_trait]
impl Notifications for MemoryBackend {
    async fn subscribe(&self, _key: &LockKey) -> Result<Box<dyn Subscription>> {
        Ok(Box::new(Released(self.store.released.subscribe())))
    }
}

struct Released(watch::Receiver<()>);

#[async_trait]
impl Subscription for Released {
    async fn next(&mut self) -> Notification {
        if self.0.changed().await.is_err() {
            // The store is gone, and with it every release that could come.
            std::future::pending::<()>().await;
        }
        Notification::Freed
    }
}
