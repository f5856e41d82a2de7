//! One subscription to the store for each key, however many clients of the agent wait for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use leasehold_core::{LockKey, Notification, Notifications, Result, Subscription};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

/// So many notifications of a key are kept for a client that does not read, and for one that subscribes after its claim was granted.
const KEPT: usize = 64;

/// The keys to which clients have subscribed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<HashMap<LockKey, Key>>>);

#[derive(Debug)]
struct Key {
    tell: Sender<Notification>,
    /// The last grants of which the store told, the oldest first.
    grants: VecDeque<Notification>,
}

/// What one client hears.
struct Joined {
    grants: VecDeque<Notification>,
    told: Receiver<Notification>,
}

impl Subscriptions {
    /// Subscribes to a key, by way of what another client has subscribed to, if that is there.
    pub(crate) async fn subscribe(&self, store: &dyn Notifications, key: &LockKey) -> Result<Box<dyn Subscription>> {
        if let Some(joined) = self.all().get(key).map(Joined::to) {
            return Ok(Box::new(joined));
        }
        let subscription = store.subscribe(key).await?;
        let there = Key { tell: channel(KEPT).0, grants: VecDeque::new() };
        let (joined, tell) = (Joined::to(&there), there.tell.clone());
        // One who did so meanwhile goes on with another subscription.
        self.all().insert(key.clone(), there);
        tokio::spawn(self.clone().pass_on(key.clone(), subscription, tell));
        Ok(Box::new(joined))
    }

    async fn pass_on(self, key: LockKey, mut subscription: Box<dyn Subscription>, tell: Sender<Notification>) {
        loop {
            let goes_on = tokio::select! {
                notification = subscription.next() => self.tell(&key, &tell, notification),
                () = tell.closed() => self.is_heard(&key, &tell),
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Tells all who hear it, and answers whether there will be more.
    fn tell(&self, key: &LockKey, tell: &Sender<Notification>, notification: Notification) -> bool {
        let mut all = self.all();
        match notification {
            Notification::Freed => {}
            Notification::Granted { .. } => {
                if let Some(there) = all.get_mut(key).filter(|there| there.tell.same_channel(tell)) {
                    there.grants.truncate(KEPT - 1);
                    there.grants.push_front(notification);
                }
            }
            Notification::Ended => forget(&mut all, key, tell),
        }
        let _ = tell.send(notification);
        notification != Notification::Ended
    }

    /// Whether somebody hears it, maybe one who has just come. If not, nobody can join it any more.
    fn is_heard(&self, key: &LockKey, tell: &Sender<Notification>) -> bool {
        let mut all = self.all();
        if tell.receiver_count() > 0 {
            return true;
        }
        forget(&mut all, key, tell);
        false
    }

    fn all(&self) -> MutexGuard<'_, HashMap<LockKey, Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget(all: &mut HashMap<LockKey, Key>, key: &LockKey, tell: &Sender<Notification>) {
    if all.get(key).is_some_and(|there| there.tell.same_channel(tell)) {
        all.remove(key);
    }
}

impl Joined {
    fn to(key: &Key) -> Self {
        Self { grants: key.grants.clone(), told: key.tell.subscribe() }
    }
}

#[async_trait]
impl Subscription for Joined {
    async fn next(&mut self) -> Notification {
        // The client may have got this one before it subscribed.
        if let Some(granted) = self.grants.pop_back() {
            return granted;
        }
        match self.told.recv().await {
            Ok(notification) => notification,
            // A grant may be among what was missed: who asks again hears of it.
            Err(RecvError::Lagged(_)) => Notification::Freed,
            Err(RecvError::Closed) => Notification::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::OwnerId;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    /// The ends at which the store tells, one for each subscription that was made.
    #[derive(Default)]
    struct Store(Mutex<Vec<UnboundedSender<Notification>>>);

    struct Stored(UnboundedReceiver<Notification>);

    #[async_trait]
    impl Notifications for Store {
        async fn subscribe(&self, _: &LockKey) -> Result<Box<dyn Subscription>> {
            let (tell, told) = unbounded_channel();
            self.0.lock().unwrap().push(tell);
            Ok(Box::new(Stored(told)))
        }
    }

    #[async_trait]
    impl Subscription for Stored {
        async fn next(&mut self) -> Notification {
            self.0.recv().await.unwrap_or(Notification::Ended)
        }
    }

    fn granted(epoch: u64) -> Notification {
        Notification::Granted { owner: OwnerId::random(), epoch: Some(epoch) }
    }

    #[tokio::test]
    async fn one_subscription_tells_all_also_those_who_come_after_their_grant() {
        let (store, all, key) = (Store::default(), Subscriptions::default(), LockKey::new("k").unwrap());
        let subscribe = async || all.subscribe(&store, &key).await.unwrap();
        let tell = |notification| store.0.lock().unwrap()[0].send(notification).unwrap();
        let (mut one, mut another) = (subscribe().await, subscribe().await);
        let (first, second) = (granted(1), granted(2));
        for notification in [Notification::Freed, first, second] {
            tell(notification);
            assert_eq!((one.next().await, another.next().await), (notification, notification));
        }
        let mut late = subscribe().await;
        assert_eq!((late.next().await, late.next().await), (first, second));
        assert_eq!(store.0.lock().unwrap().len(), 1);

        // Nobody hears of the end who comes after it.
        tell(Notification::Ended);
        assert_eq!((one.next().await, another.next().await), (Notification::Ended, Notification::Ended));
        let _new = subscribe().await;
        assert_eq!(store.0.lock().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_subscription_ends_with_the_last_who_hears_it_and_one_who_does_not_read_misses_no_release() {
        let (store, all, key) = (Store::default(), Subscriptions::default(), LockKey::new("k").unwrap());
        let subscribe = async || all.subscribe(&store, &key).await.unwrap();
        let (mut slow, gone) = (subscribe().await, subscribe().await);
        drop(gone);
        let tell = store.0.lock().unwrap()[0].clone();
        let grants: Vec<_> = (0..2 * KEPT as u64).map(granted).collect();
        for granted in &grants {
            tell.send(*granted).unwrap();
        }
        while all.all()[&key].grants.front() != grants.last() {
            tokio::task::yield_now().await;
        }
        assert_eq!(all.all()[&key].grants.len(), KEPT);
        assert_eq!(slow.next().await, Notification::Freed);
        drop(slow);
        tell.closed().await;
        assert!(all.all().is_empty());
    }
}
