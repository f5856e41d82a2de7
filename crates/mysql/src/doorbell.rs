mod bell;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::clock::Moment;
use leasehold_core::{
    Attempt, Claim, Clock, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, OwnerId, Renewal, Subscription,
};
use leasehold_core::{Notifications, Result};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::bell::{Bell, Ear};
use crate::connections::{Connections, Lane};
use crate::{Namespace, Sessions, TableName};

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
    connections: Connections,
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
    /// Whoever waits for the bell leaves the row alone until then.
    look_at: Moment,
    /// The next claim would overtake those who wait for the bell.
    overtakes: bool,
}

/// For so long after the last sign of others, claims wait for the bell first.
const A_MOMENT: Duration = Duration::from_secs(2);

/// How long whoever waits for the bell trusts that it works.
const TRUST: Duration = Duration::from_secs(1);

/// Beyond as many keys, those that nobody is after any more are forgotten.
const MANY: usize = 1000;

/// How long the server may take to hear that they are given up.
const CLOSE: Duration = Duration::from_secs(1);

impl Doorbell {
    pub(crate) fn new(sessions: &Sessions, namespace: &Namespace, table: &TableName) -> Self {
        let connections = sessions.connections().clone();
        let scope = [connections.database().as_bytes(), table.as_str().as_bytes()].join(&b"\0"[..]);
        let free = Arc::new(Semaphore::new(connections.most(Lane::Doorbell)));
        Self {
            connections,
            free,
            scope: scope.into(),
            namespace: namespace.clone(),
            clock: Clock::system(),
            keys: Arc::default(),
        }
    }

    /// Whether this claim is to be answered "busy" without asking, and for how long: others are after the key, and the
    /// bell says when it is our turn. Claims that look all the same sometimes win, before those whose turn it is.
    ///
    /// For a second at most, and not where the bell is known to be broken, so nothing depends on it.
    pub fn puts_off(&self, claim: &Claim) -> Option<Duration> {
        if !claim.waits {
            return None;
        }
        let now = self.clock.now();
        let mut keys = self.keys();
        let mut bells = keys.open.iter().filter_map(Weak::upgrade).filter(|bell| bell.key == claim.key).peekable();
        let awaited = bells.peek().is_some();
        if bells.any(|bell| !bell.is_awaited()) {
            return None;
        }
        let sought = keys.sought.get_mut(&claim.key).filter(|sought| now < sought.until)?;
        if awaited {
            return (now < sought.look_at).then(|| sought.look_at.since(now));
        }
        // Once: where nobody can listen, the next one asks.
        std::mem::take(&mut sought.overtakes).then_some(TRUST)
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
                    // So it works.
                    self.seek(&mut keys, &claim.key).look_at = self.clock.now().plus(TRUST);
                }
                keys.kept.insert(claim.owner, bell);
            }
            Attempt::Busy { retry_in } | Attempt::HeldBy { retry_in, .. } => {
                let look_in = retry_in.unwrap_or(TRUST).min(TRUST);
                self.seek(&mut keys, &claim.key).look_at = self.clock.now().plus(look_in);
            }
            Attempt::Queued { .. } => _ = self.seek(&mut keys, &claim.key),
        }
    }

    fn seek<'k>(&self, keys: &'k mut Keys, key: &LockKey) -> &'k mut Sought {
        let now = self.clock.now();
        if keys.sought.len() >= MANY {
            keys.sought.retain(|_, sought| now < sought.until);
        }
        let new = || Sought { until: now, look_at: now, overtakes: false };
        let sought = keys.sought.entry(key.clone()).or_insert_with(new);
        sought.until = now.plus(A_MOMENT);
        sought
    }

    /// What the row said of a lease.
    pub fn renewed(&self, renewal: &Renewal, answer: &Result<LeaseStatus>) {
        let mut keys = self.keys();
        match answer {
            Ok(LeaseStatus::Held) => {
                if let Some(bell) = keys.kept.get(&renewal.grant.owner) {
                    bell.keep_for(renewal.ttl);
                }
            }
            Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased) => drop(keys.kept.remove(&renewal.grant.owner)),
            Err(_) => {}
        }
    }

    /// Rings for the next in the queue, after the row was freed.
    pub async fn let_go(&self, grant: &GrantRef) {
        let bell = {
            let mut keys = self.keys();
            let Some(bell) = keys.kept.remove(&grant.owner) else { return };
            if let Some(sought) = keys.sought.get_mut(&grant.key) {
                sought.overtakes = true;
            }
            bell
        };
        bell.let_go();
        bell.ended().await;
    }

    /// Gives all of them up, for at most a second. The connections end with those of the [`Sessions`].
    pub async fn close(&self) {
        let open: Vec<_> = self.keys().open.drain(..).filter_map(|bell| bell.upgrade()).collect();
        for bell in &open {
            bell.let_go();
        }
        let heard = async {
            for bell in &open {
                bell.ended().await;
            }
        };
        drop(timeout(CLOSE, heard).await);
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
impl Notifications for Doorbell {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let unavailable = |why: String| Error::new(ErrorKind::Unavailable, "subscribe").key(key).detail(why);
        let free = Arc::clone(&self.free).try_acquire_owned();
        let free = free.map_err(|_| unavailable("the doorbell has no connection left; see pool_max".into()))?;
        let session = self.connections.check_out(Lane::Doorbell, "subscribe").await.map_err(|error| error.key(key))?;
        let left = self.connections.left(&session.origin);
        let bell = Arc::new(Bell::wait(key.clone(), self.name_of(key), session, left, free));
        let mut keys = self.keys();
        keys.open.retain(|bell| bell.strong_count() > 0);
        keys.open.push(Arc::downgrade(&bell));
        let now = self.clock.now();
        if let Some(sought) = keys.sought.get_mut(key).filter(|sought| sought.look_at <= now) {
            sought.look_at = now.plus(TRUST);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    #[tokio::test]
    async fn each_key_of_each_place_has_a_name_that_the_server_takes() {
        let mut names = Vec::new();
        for url in ["mysql://u@h/one", "mysql://u@h/other"] {
            for (table, namespace, key) in [("t", "n", "k"), ("t", "n", "K"), ("t", "m", "k"), ("s", "n", "k")] {
                let sessions = Sessions::new(&Address::parse(url).unwrap());
                let table = TableName::new(table).unwrap();
                let bell = Doorbell::new(&sessions, &Namespace::new(namespace).unwrap(), &table);
                names.push(bell.name_of(&LockKey::new(key).unwrap()));
            }
        }
        assert!(names.iter().all(|name| name.len() <= 64 && *name == name.to_ascii_lowercase()), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 8);
    }
}
