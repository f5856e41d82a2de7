use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::clock::Moment;
use leasehold_core::{
    Attempt, BoxFuture, Claim, Clock, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, Namespace, OwnerId, Renewal,
    Subscription,
};
use leasehold_core::{Notifications, Result};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::lock::{AdvisoryLock, State};
use super::subscription::AdvisorySubscription;
use crate::names::TableName;
use crate::server::connections::Connections;
use crate::server::pools::PoolKind;
use crate::server::sessions::Sessions;

/// A queue of waiters in the server: the waiter that has the advisory lock of a key (`GET_LOCK`) is the next to claim it.
///
/// The queue never decides who holds a key: the row does. It makes releases quick to notice, and lets waiters come one at
/// a time and in their order, also across processes. Where it fails (behind a proxy, in a cluster with several primaries,
/// when a connection breaks or none is left), waiters poll as they do without it.
///
/// Each key that is waited for, or held after a wait, takes a connection of its own. There are at most as many as
/// `pool_max` says, beside those of the pool. A clone shares the queue.
#[derive(Clone)]
pub struct AdvisoryQueue {
    connections: Connections,
    permits: Arc<Semaphore>,
    /// Database and table, which are part of the names of the locks: the locks of `GET_LOCK` are the server's.
    scope: Arc<[u8]>,
    namespace: Namespace,
    clock: Clock,
    keys: Arc<Mutex<Keys>>,
    closed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Keys {
    open: Vec<Weak<AdvisoryLock>>,
    /// The locks that stay with a grant until it ends.
    kept: HashMap<OwnerId, Arc<AdvisoryLock>>,
    contended: HashMap<LockKey, ContendedKey>,
}

impl Keys {
    /// Adds the lock of a subscription, and forgets those of subscriptions and grants that have ended.
    fn add(&mut self, lock: &Arc<AdvisoryLock>) {
        self.open.retain(|lock| lock.strong_count() > 0);
        self.open.push(Arc::downgrade(lock));
    }
}

/// A key that other processes wanted a moment ago.
#[derive(Debug)]
struct ContendedKey {
    until: Moment,
    /// Waiters for the advisory lock do not ask the row before this moment.
    ask_row_at: Moment,
    /// Whether the next claim would overtake the waiters for the advisory lock, because one was just given up.
    overtakes: bool,
}

/// For how long after the last sign of other claimants a key counts as contended.
const CONTENDED: Duration = Duration::from_secs(2);

/// For how long a waiter for the advisory lock trusts that the lock works, before it asks the row.
const TRUST: Duration = Duration::from_secs(1);

/// The number of contended keys beyond which those are dropped that nobody wants any more.
const MANY: usize = 1000;

/// How long [`AdvisoryQueue::close`] takes at most.
const CLOSE: Duration = Duration::from_secs(1);

impl AdvisoryQueue {
    pub(crate) fn new(sessions: &Sessions, namespace: &Namespace, table: &TableName) -> Self {
        let connections = sessions.connections.clone();
        let scope = [connections.database().as_bytes(), table.as_str().as_bytes()].join(&b"\0"[..]);
        let permits = Arc::new(Semaphore::new(connections.max(PoolKind::AdvisoryQueue)));
        Self {
            connections,
            permits,
            scope: scope.into(),
            namespace: namespace.clone(),
            clock: Clock::system(),
            keys: Arc::default(),
            closed: watch::Sender::new(false),
        }
    }

    /// Whether this claim should be answered "busy" without asking the row, and for how long: other claimants want the
    /// key, and the advisory lock says when it is this one's turn. Claims that ask the row all the same sometimes win
    /// before the claimants whose turn it is.
    ///
    /// The time is a second at most, and there is none where the advisory lock is known to be broken, so that nothing
    /// depends on it.
    pub fn defer(&self, claim: &Claim) -> Option<Duration> {
        if !claim.waits {
            return None;
        }
        let now = self.clock.now();
        let mut keys = self.keys();
        let mut locks = keys.open.iter().filter_map(Weak::upgrade).filter(|lock| lock.key == claim.key).peekable();
        let waited_for = locks.peek().is_some();
        if locks.any(|lock| lock.state() != State::WaitedFor) {
            return None;
        }
        let contended = keys.contended.get_mut(&claim.key).filter(|contended| now < contended.until)?;
        if waited_for {
            return (now < contended.ask_row_at).then(|| contended.ask_row_at.since(now));
        }
        // Only once: where no subscription is possible, the next claim asks the row.
        std::mem::take(&mut contended.overtakes).then_some(TRUST)
    }

    /// Notes what the row answered to a claim. The advisory lock that led to a grant is kept until the grant ends.
    pub fn claimed(&self, claim: &Claim, attempt: Attempt) {
        let mut keys = self.keys();
        match attempt {
            Attempt::Granted { .. } => {
                keys.kept.retain(|_, lock| !lock.is_over());
                let mut open = keys.open.iter().filter_map(Weak::upgrade);
                let held = open.find(|lock| lock.key == claim.key && matches!(lock.state(), State::Held { .. }));
                let Some(lock) = held else { return };
                drop(open);
                lock.keep_for(claim.ttl);
                if lock.state() == (State::Held { after_others: true }) {
                    // The lock was handed on, so it works.
                    self.contend(&mut keys, &claim.key).ask_row_at = self.clock.now().plus(TRUST);
                }
                keys.kept.insert(claim.owner, lock);
            }
            Attempt::Busy { retry_in } | Attempt::HeldBy { retry_in, .. } => {
                let ask_in = retry_in.unwrap_or(TRUST).min(TRUST);
                self.contend(&mut keys, &claim.key).ask_row_at = self.clock.now().plus(ask_in);
            }
            Attempt::Queued { .. } => _ = self.contend(&mut keys, &claim.key),
        }
    }

    fn contend<'k>(&self, keys: &'k mut Keys, key: &LockKey) -> &'k mut ContendedKey {
        let now = self.clock.now();
        if keys.contended.len() >= MANY {
            keys.contended.retain(|_, contended| now < contended.until);
        }
        let new = || ContendedKey { until: now, ask_row_at: now, overtakes: false };
        let contended = keys.contended.entry(key.clone()).or_insert_with(new);
        contended.until = now.plus(CONTENDED);
        contended
    }

    /// Notes what the row answered to a renewal. The advisory lock is kept for as long as the lease.
    pub fn renewed(&self, renewal: &Renewal, answer: &Result<LeaseStatus>) {
        let mut keys = self.keys();
        match answer {
            Ok(LeaseStatus::Held) => {
                if let Some(lock) = keys.kept.get(&renewal.grant.owner) {
                    lock.keep_for(renewal.ttl);
                }
            }
            Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased) => drop(keys.kept.remove(&renewal.grant.owner)),
            Err(_) => {}
        }
    }

    /// Gives up the advisory lock of a grant whose row was released, so that the next in the queue gets it.
    pub fn released<'a>(&'a self, grant: &'a GrantRef) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let lock = {
                let mut keys = self.keys();
                let Some(lock) = keys.kept.remove(&grant.owner) else { return };
                if let Some(contended) = keys.contended.get_mut(&grant.key) {
                    contended.overtakes = true;
                }
                lock
            };
            lock.give_up();
            lock.ended().await;
        })
    }

    /// Gives up all advisory locks, within a second. Their connections end with those of the [`Sessions`].
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.closed.send_replace(true);
            let open: Vec<_> = self.keys().open.drain(..).filter_map(|lock| lock.upgrade()).collect();
            for lock in &open {
                lock.give_up();
            }
            let all_ended = async {
                for lock in &open {
                    lock.ended().await;
                }
            };
            drop(timeout(CLOSE, all_ended).await);
        })
    }

    /// The name of a key's advisory lock. The server allows 64 characters, and may ignore their case.
    fn name_of(&self, key: &LockKey) -> String {
        let scoped = [&*self.scope, b"\0", &self.namespace.name_of(key)].concat();
        format!("leasehold:{}", &format!("{:x}", Sha256::digest(scoped))[..40])
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Notifications for AdvisoryQueue {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let unavailable = |why: String| Error::new(ErrorKind::Unavailable, "subscribe").key(key).detail(why);
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit =
            permit.map_err(|_| unavailable("the advisory queue has no connection left; see pool_max".into()))?;
        let checked_out = self.connections.check_out(PoolKind::AdvisoryQueue, "subscribe").await;
        let session = checked_out.map_err(|error| error.key(key))?;
        let left = self.connections.left(&session.id);
        let lock = Arc::new(AdvisoryLock::wait(key.clone(), self.name_of(key), session, left, permit));
        let mut keys = self.keys();
        keys.add(&lock);
        let now = self.clock.now();
        if let Some(contended) = keys.contended.get_mut(key).filter(|contended| contended.ask_row_at <= now) {
            contended.ask_row_at = now.plus(TRUST);
        }
        Ok(Box::new(AdvisorySubscription::of(lock, self.closed.subscribe())))
    }
}

impl fmt::Debug for AdvisoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pool would print the password.
        f.debug_struct("AdvisoryQueue").field("permits", &self.permits.available_permits()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{Mode, Notification, SessionId};
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::advisory_queue::lock::tests::{Task, lock_in};
    use crate::server::address::Address;

    const TTL: Duration = Duration::from_secs(10);
    const BUSY: Attempt = Attempt::Busy { retry_in: None };
    const GRANTED: Attempt = Attempt::Granted { epoch: None };

    /// On a clock that moves only by [`advance`].
    fn queue() -> AdvisoryQueue {
        let sessions = Sessions::new(&Address::parse("mysql://u@h/db?pool_max=3").unwrap());
        let queue = AdvisoryQueue::new(&sessions, &Namespace::default(), &TableName::new("t").unwrap());
        AdvisoryQueue { clock: Clock::tokio(), ..queue }
    }

    fn claim(key: &str, waits: bool) -> Claim {
        Claim { waits, ..Claim::new(&LockKey::new(key).unwrap(), Mode::Exclusive, TTL) }
    }

    impl AdvisoryQueue {
        /// A subscription's lock of this key.
        fn open(&self, claim: &Claim, state: State) -> (Arc<AdvisoryLock>, Task) {
            let (lock, task) = lock_in(state, &claim.key);
            self.keys().add(&lock);
            (lock, task)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_lock_is_waited_for_the_row_is_asked_when_its_lease_may_be_over_and_within_a_second() {
        let (queue, claim, other) = (queue(), claim("k", true), claim("other", true));
        assert!(format!("{queue:?}").contains("permits: 3"), "{queue:?}");
        let (_lock, task) = queue.open(&claim, State::WaitedFor);
        assert_eq!(queue.defer(&claim), None, "nobody else is known to want the key");
        for (retry_in, expected) in [(None, TRUST), (Some(TRUST / 4), TRUST / 4), (Some(TRUST * 4), TRUST)] {
            for busy in [Attempt::Busy { retry_in }, Attempt::HeldBy { session: SessionId(1), retry_in }] {
                queue.claimed(&claim, busy);
                queue.claimed(&other, busy);
                assert_eq!(queue.defer(&claim), Some(expected), "{busy:?}");
                assert_eq!(queue.defer(&other), None, "nobody waits for its lock");
                assert_eq!(queue.defer(&Claim { waits: false, ..claim.clone() }), None);
                advance(expected / 2).await;
                assert_eq!(queue.defer(&claim), Some(expected / 2));
                advance(expected / 2).await;
                assert_eq!(queue.defer(&claim), None);
            }
        }
        queue.claimed(&claim, BUSY);
        for state in [State::Held { after_others: true }, State::Broken] {
            task.states.send_replace(state);
            assert_eq!(queue.defer(&claim), None, "{state:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_lock_that_led_to_a_grant_is_kept_for_as_long_as_its_lease() {
        let (queue, claim) = (queue(), claim("k", true));
        let (of_other, other) = queue.open(&self::claim("other", true), State::Held { after_others: true });
        let (lock, task) = queue.open(&claim, State::WaitedFor);
        queue.claimed(&claim, GRANTED);
        assert!(queue.keys().kept.is_empty(), "the grant came past the queue");

        task.states.send_replace(State::Held { after_others: false });
        queue.claimed(&claim, GRANTED);
        assert_eq!(*task.until.borrow(), Some(Instant::now() + TTL));
        assert!(queue.keys().contended.is_empty(), "nobody else wants it");
        let renewal = Renewal { grant: claim.grant(None), ttl: TTL * 2 };
        queue.renewed(&renewal, &Err(Error::new(ErrorKind::Unavailable, "renew")));
        assert_eq!(*task.until.borrow(), Some(Instant::now() + TTL));
        queue.renewed(&renewal, &Ok(LeaseStatus::Held));
        assert_eq!(*task.until.borrow(), Some(Instant::now() + TTL * 2));

        // That the lock was handed on shows that it works, and that there are others.
        let theirs = self::claim("other", true);
        queue.claimed(&theirs, GRANTED);
        assert_eq!(*other.until.borrow(), Some(Instant::now() + TTL));
        assert_eq!(queue.keys().contended[&theirs.key].ask_row_at, queue.clock.now().plus(TRUST));

        drop((lock, of_other));
        for (renewal, left) in [
            (renewal, LeaseStatus::NotHeld),
            (Renewal { grant: theirs.grant(None), ttl: TTL }, LeaseStatus::ForceReleased),
        ] {
            queue.renewed(&renewal, &Ok(left));
        }
        assert!(task.until.has_changed().is_err() && other.until.has_changed().is_err(), "they are not given up");
    }

    #[tokio::test(start_paused = true)]
    async fn locks_that_have_ended_do_not_pile_up() {
        let queue = queue();
        for _ in 0..3 {
            drop(queue.open(&claim("k", true), State::WaitedFor));
        }
        assert_eq!(queue.keys().open.len(), 1, "the next one takes the place of the last");
        let [first, second] = ["first", "second"].map(|key| claim(key, true));
        let (_lock, task) = queue.open(&first, State::Held { after_others: false });
        queue.claimed(&first, GRANTED);
        queue.claimed(&second, GRANTED);
        assert_eq!(queue.keys().kept.len(), 1);
        drop(task);
        queue.claimed(&second, GRANTED);
        assert!(queue.keys().kept.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn closing_gives_all_locks_up_and_waits_a_second_at_most() {
        let (queue, claim) = (queue(), claim("k", true));
        let (_first, one) = queue.open(&claim, State::Held { after_others: false });
        let (_second, other) = queue.open(&claim, State::WaitedFor);
        let tasks = [tokio::spawn(one.release()), tokio::spawn(other.release())];
        queue.close().await;
        assert!(tasks.iter().all(tokio::task::JoinHandle::is_finished));
        let (_stays, silent) = queue.open(&claim, State::WaitedFor);
        let began = Instant::now();
        queue.close().await;
        assert_eq!(began.elapsed().as_millis(), CLOSE.as_millis());
        drop(silent);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_on_behind_a_grant_asks_on_until_the_queue_is_closed() {
        let (queue, claim) = (queue(), claim("k", true));
        let (lock, task) = queue.open(&claim, State::Held { after_others: true });
        let mut subscription = AdvisorySubscription::of(lock, queue.closed.subscribe());
        queue.claimed(&claim, GRANTED);
        drop(task);
        for _ in 0..3 {
            assert_eq!(subscription.next().await, Notification::Freed);
        }
        queue.close().await;
        assert_eq!(subscription.next().await, Notification::Ended);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_nobody_wants_any_more_is_forgotten() {
        let queue = queue();
        queue.claimed(&claim("k", true), BUSY);
        queue.keys().contended.values_mut().for_each(|contended| contended.overtakes = true);
        advance(CONTENDED).await;
        assert_eq!(queue.defer(&claim("k", true)), None);
        for number in 1..MANY {
            queue.claimed(&claim(&number.to_string(), true), BUSY);
        }
        assert_eq!(queue.keys().contended.len(), MANY);
        queue.claimed(&claim("one more", true), BUSY);
        // All but the first are wanted still.
        assert_eq!(queue.keys().contended.len(), MANY);
        advance(CONTENDED).await;
        queue.claimed(&claim("the last", true), BUSY);
        assert_eq!(queue.keys().contended.len(), 1);
    }

    #[tokio::test]
    async fn each_key_of_each_database_table_and_namespace_has_a_valid_lock_name_of_its_own() {
        let mut names = Vec::new();
        for url in ["mysql://u@h/one", "mysql://u@h/other"] {
            for (table, namespace, key) in [("t", "n", "k"), ("t", "n", "K"), ("t", "m", "k"), ("s", "n", "k")] {
                let sessions = Sessions::new(&Address::parse(url).unwrap());
                let table = TableName::new(table).unwrap();
                let queue = AdvisoryQueue::new(&sessions, &Namespace::new(namespace).unwrap(), &table);
                names.push(queue.name_of(&LockKey::new(key).unwrap()));
            }
        }
        assert!(names.iter().all(|name| name.len() <= 64 && *name == name.to_ascii_lowercase()), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 8);
    }
}
