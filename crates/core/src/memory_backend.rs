use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::clock::Moment;
use crate::memory_faults::Faults;
use crate::reference::{Claimed, Key, Lease};
use crate::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, ErrorKind, FencingToken, GrantRef, Holder,
    Holders, LeaseStatus, LockKey, Notification, Notifications, OwnerId, Page, Renewal, Result, SharedBackend,
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
}

#[derive(Debug, Default)]
struct State {
    /// Keys that are held, or were of late, by namespace and key.
    keys: BTreeMap<(Arc<str>, LockKey), Key<Moment>>,
    /// Before the first epoch: what a key that is not there counts on from. The clock has passed all that was forgotten.
    zeroth: u64,
    /// Who wants to hear that a key was freed.
    subscribed: HashMap<(Arc<str>, LockKey), watch::Sender<()>>,
    /// When what expired is forgotten next.
    tidy_at: Moment,
}

impl Store {
    /// The epoch that the clock has reached. It follows the store's own clock, which nobody sets back.
    fn epoch_at(&self, now: Moment) -> u64 {
        FencingToken::epoch_at(self.zero + now.since(Moment::default()))
    }
}

impl State {
    /// Forgets what expired or was released, so that keys that nobody asks for again leave nothing behind: once a second
    /// at most, for it looks at all. That a lease was ended by force is told for a minute after its end.
    fn tidy(&mut self, now: Moment, clock: u64) {
        const TOLD: Duration = Duration::from_secs(60);
        if now < self.tidy_at {
            return;
        }
        self.tidy_at = now.plus(Duration::from_secs(1));
        self.subscribed.retain(|_, subscribed| subscribed.receiver_count() > 0);
        self.keys.retain(|_, key| {
            key.forced.retain(|lease| lease.ends.plus(TOLD) > now);
            key.epoch >= clock || !key.forced.is_empty() || key.leases.iter().any(|lease| lease.ends > now)
        });
    }
}

impl MemoryBackend {
    /// An empty store in the namespace `leasehold`.
    pub fn new(clock: Clock) -> Self {
        let since_1970 = clock.since_1970();
        let zero = since_1970.saturating_sub(clock.now().since(Moment::default()));
        let first = FencingToken::next_epoch(None, FencingToken::epoch_at(since_1970)).unwrap_or_default();
        let state = State { zeroth: first.saturating_sub(1), ..State::default() };
        let store = Store { clock, zero, state: Mutex::new(state), faults: Faults::default() };
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
        self.at(key, |key, _| key.leases.clear());
        self.tell(key);
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

    /// Carries out a step on a key, at this moment. A key that is not there is as one that nobody has had.
    fn at<T>(&self, key: &LockKey, step: impl FnOnce(&mut Key<Moment>, Moment) -> T) -> T {
        let now = self.store.clock.now();
        let mut state = self.state();
        state.tidy(now, self.store.epoch_at(now));
        let zeroth = state.zeroth;
        let key = state.keys.entry(self.place(key)).or_insert_with(|| Key::new(zeroth));
        key.end(|ends| ends <= now);
        step(key, now)
    }

    /// Tells who subscribed to a key that it may be free.
    fn tell(&self, key: &LockKey) {
        let state = self.state();
        // Most stores have waiters in one process, and then nobody subscribes.
        if state.subscribed.is_empty() {
            return;
        }
        if let Some(subscribed) = state.subscribed.get(&self.place(key)) {
            subscribed.send_replace(());
        }
    }

    fn holders(key: &LockKey, leases: &[Lease<Moment>], now: Moment) -> Holders {
        let holders = leases.iter().filter(|lease| lease.ends > now).map(|lease| Holder {
            remaining: Some(lease.ends.since(now)),
            label: lease.label.as_deref().map(str::to_owned),
            reason: lease.reason.as_deref().map(str::to_owned),
            ..Holder::of_epoch(lease.mode, lease.epoch)
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
        let step = |key: &mut Key<Moment>, now: Moment| key.take_over(grant, new_owner, now.plus(ttl));
        self.answer("attach", || self.at(&grant.key, step)).await
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
        self.at(&claim.key, |key, now| {
            let clock = self.store.epoch_at(now);
            match key.claim(claim, |newest| FencingToken::next_epoch(Some(newest), clock), now.plus(claim.ttl)) {
                Claimed::Granted(epoch) => Attempt::Granted { epoch: Some(epoch) },
                Claimed::Busy(leases) => {
                    Attempt::Busy { retry_in: leases.iter().map(|lease| lease.ends.since(now)).max() }
                }
                Claimed::TooSoon => Attempt::AHEAD_OF_THE_CLOCK,
            }
        })
    }

    fn prolong(&self, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let renew = |renewal: &Renewal| {
            self.at(&renewal.grant.key, |key, now| Ok(key.renew(&renewal.grant, now.plus(renewal.ttl))))
        };
        renewals.iter().map(renew).collect()
    }

    fn make_reader(&self, writer: &GrantRef, claim: &Claim) -> Attempt {
        let attempt = self.at(&writer.key, |key, now| {
            let epoch = (key.epoch + 1).max(self.store.epoch_at(now));
            if !key.downgrade(writer, claim, epoch, now.plus(claim.ttl)) {
                return Attempt::Busy { retry_in: None };
            }
            Attempt::Granted { epoch: Some(epoch) }
        });
        if let Attempt::Granted { .. } = attempt {
            self.tell(&writer.key);
        }
        attempt
    }

    fn free(&self, grant: &GrantRef) -> LeaseStatus {
        let status = self.at(&grant.key, |key, _| key.release(grant));
        if status == LeaseStatus::Held {
            self.tell(&grant.key);
        }
        status
    }

    fn seen(&self, key: &LockKey) -> Holders {
        let (now, state) = (self.store.clock.now(), self.state());
        let leases = state.keys.get(&self.place(key)).map_or(&[][..], |key| &key.leases);
        Self::holders(key, leases, now)
    }

    fn page(&self, prefix: &str, after: Option<&Cursor>) -> Page {
        const PAGE: usize = 100;
        let (now, state) = (self.store.clock.now(), self.state());
        let ours = state.keys.iter().filter(|((namespace, key), _)| {
            *namespace == self.namespace
                && key.as_str().starts_with(prefix)
                && after.is_none_or(|after| key.as_str() > after.0.as_str())
        });
        let mut keys: Vec<_> = ours.map(|((_, key), held)| Self::holders(key, &held.leases, now)).collect();
        keys.retain(|holders| !holders.holders.is_empty());
        let more = keys.len() > PAGE;
        keys.truncate(PAGE);
        let next = keys.last().filter(|_| more).map(|last| Cursor(last.key.as_str().to_owned()));
        Page { keys, next }
    }

    fn free_by_force(&self, key: &LockKey, only: Option<u64>) -> Holders {
        let (leases, now) = self.at(key, |key, now| (key.force(only), now));
        self.tell(key);
        Self::holders(key, &leases, now)
    }
}

impl SharedBackend for MemoryBackend {}

#[async_trait]
impl Notifications for MemoryBackend {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let mut state = self.state();
        let subscribed = state.subscribed.entry(self.place(key)).or_default();
        Ok(Box::new(Freed(subscribed.subscribe())))
    }
}

struct Freed(watch::Receiver<()>);

#[async_trait]
impl Subscription for Freed {
    async fn next(&mut self) -> Notification {
        if self.0.changed().await.is_err() {
            // The store is gone, and with it every release that could come.
            std::future::pending::<()>().await;
        }
        Notification::Freed
    }
}
