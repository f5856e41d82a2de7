mod bell;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::clock::Moment;
use leasehold_core::{Attempt, Claim, Clock, Error, ErrorKind, GrantRef, Held, Listener, LockKey, OwnerId, Renewal};
use leasehold_core::{Result, Wakeups};
use mysql_async::Pool;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::bell::{Bell, Ear};
use crate::{Address, Namespace, TableName, Tuning};

/// A queue of the server's for who asks for a key next: whoever holds the key's `GET_LOCK` is the one to ask for it.
///
/// It never decides who holds: the row does. It makes releases quick to notice, and waiters come one at a time, in
/// their order, also across processes. Where it fails (a proxy, a cluster of several primaries, a connection that
/// breaks, none left), waiters poll as they do without it.
///
/// Each key that is waited for, or held after a wait, takes a connection of its own; there are at most as many as
/// the URL's `pool_max`, beside those of the pool.
#[derive(Clone)]
pub struct Doorbell {
    pool: Pool,
    free: Arc<Semaphore>,
    /// Database, table and namespace: `GET_LOCK` knows none of them.
    scope: Arc<[u8]>,
    namespace: Namespace,
    clock: Clock,
    keys: Arc<Mutex<Keys>>,
}

#[derive(Debug, Default)]
struct Keys {
    open: Vec<Weak<Bell>>,
    /// Those that stay with a grant until it ends.
    kept: HashMap<OwnerId, Arc<Bell>>,
    sought: HashMap<LockKey, Sought>,
}

/// A key that others were after.
#[derive(Debug)]
struct Sought {
    until: Moment,
    /// The next claim would overtake them, or comes before their turn is over.
    wait_first: bool,
}

/// For so long after the last sign of others, claims wait for the bell first.
const A_MOMENT: Duration = Duration::from_secs(2);

/// Beyond as many keys, those that nobody is after any more are forgotten.
const MANY: usize = 1000;

/// How long it may take to get a connection.
const CHECKOUT: Duration = Duration::from_secs(1);

impl Doorbell {
    pub(crate) fn new(address: &Address, namespace: &Namespace, table: &TableName) -> Self {
        let opts = address.opts(Tuning::Doorbell);
        let most = mysql_async::Opts::from(opts.clone()).pool_opts().constraints().max();
        let scope = [address.database().as_bytes(), table.as_str().as_bytes()].join(&b"\0"[..]);
        Self {
            pool: Pool::new(opts),
            free: Arc::new(Semaphore::new(most)),
            scope: scope.into(),
            namespace: namespace.clone(),
            clock: Clock::system(),
            keys: Arc::default(),
        }
    }

    /// Whether this claim is to be answered "busy" without asking: others are after the key, and the bell says when
    /// it is our turn. Never twice for one [`listen`](Wakeups::listen), so nothing depends on the bell.
    pub fn goes_first(&self, claim: &Claim) -> bool {
        let now = self.clock.now();
        let mut keys = self.keys();
        let rung = |bell: &Weak<Bell>| bell.upgrade().is_some_and(|bell| bell.key == claim.key && !bell.is_awaited());
        if !claim.waits || keys.open.iter().any(rung) {
            return false;
        }
        let sought = keys.sought.get_mut(&claim.key).filter(|sought| now < sought.until);
        sought.is_some_and(|sought| std::mem::take(&mut sought.wait_first))
    }

    /// What the row said. With a grant stays the bell that led to it.
    pub fn answered(&self, claim: &Claim, attempt: Attempt) {
        let mut keys = self.keys();
        match attempt {
            Attempt::Granted { .. } => {
                keys.kept.retain(|_, bell| !bell.is_over());
                let mut open = keys.open.iter().filter_map(Weak::upgrade);
                let Some(bell) = open.find(|bell| bell.key == claim.key && bell.is_ours()) else { return };
                drop(open);
                bell.keep_for(claim.ttl);
                if bell.came_after_others() {
                    self.seek(&mut keys, &claim.key);
                }
                keys.kept.insert(claim.owner, bell);
            }
            Attempt::Busy { .. } | Attempt::Queued { .. } => self.seek(&mut keys, &claim.key),
        }
    }

    fn seek(&self, keys: &mut Keys, key: &LockKey) {
        let now = self.clock.now();
        if keys.sought.len() >= MANY {
            keys.sought.retain(|_, sought| now < sought.until);
        }
        let new = || Sought { until: now, wait_first: false };
        keys.sought.entry(key.clone()).or_insert_with(new).until = now.plus(A_MOMENT);
    }

    /// What the row said of a lease.
    pub fn renewed(&self, renewal: &Renewal, answer: &Result<Held>) {
        let mut keys = self.keys();
        match answer {
            Ok(Held::Yes) => {
                if let Some(bell) = keys.kept.get(&renewal.grant.owner) {
                    bell.keep_for(renewal.ttl);
                }
            }
            Ok(Held::No | Held::Forced) => drop(keys.kept.remove(&renewal.grant.owner)),
            Err(_) => {}
        }
    }

    /// Rings for the next in the queue, after the row was freed.
    pub async fn let_go(&self, grant: &GrantRef) {
        let bell = {
            let mut keys = self.keys();
            let Some(bell) = keys.kept.remove(&grant.owner) else { return };
            if let Some(sought) = keys.sought.get_mut(&grant.key) {
                sought.wait_first = true;
            }
            bell
        };
        bell.give_up().await;
    }

    /// Gives all of them up, and closes the connections.
    pub async fn close(&self) {
        let open: Vec<_> = self.keys().open.drain(..).filter_map(|bell| bell.upgrade()).collect();
        for bell in open {
            bell.give_up().await;
        }
        drop(timeout(CHECKOUT, self.pool.clone().disconnect()).await);
    }

    /// At most 64 characters, of which the server may ignore the case.
    fn name_of(&self, key: &LockKey) -> String {
        let scoped = [&*self.scope, b"\0", &self.namespace.name_of(key)].concat();
        let digest = Sha256::digest(scoped);
        let hex = digest.iter().take(20).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        format!("leasehold:{hex}")
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Wakeups for Doorbell {
    async fn listen(&self, key: &LockKey) -> Result<Box<dyn Listener>> {
        let unavailable = |why: String| Error::new(ErrorKind::Unavailable, "listen").key(key).detail(why);
        let free = Arc::clone(&self.free).try_acquire_owned();
        let free = free.map_err(|_| unavailable("the doorbell has no connection left; see pool_max".into()))?;
        let session = timeout(CHECKOUT, self.pool.get_conn()).await;
        let session = session.map_err(|_| unavailable("no connection for the doorbell within 1 s".into()))?;
        let session = session.map_err(|failure| unavailable(failure.to_string()))?;
        let bell = Arc::new(Bell::wait(key.clone(), self.name_of(key), session, free));
        let mut keys = self.keys();
        keys.open.retain(|bell| bell.strong_count() > 0);
        keys.open.push(Arc::downgrade(&bell));
        if let Some(sought) = keys.sought.get_mut(key) {
            sought.wait_first = true;
        }
        Ok(Box::new(Ear::of(bell)))
    }
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pool would print the password.
        f.debug_struct("Doorbell").field("free", &self.free.available_permits()).finish_non_exhaustive()
    }
}
