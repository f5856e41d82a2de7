//! One subscription to the store for each key, however many clients of the agent wait for it. Each hears of its own grants, and of
//! what concerns all.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::Stream;
use futures::future::{AbortHandle, abortable};
use leasehold_core::{LockKey, Notification, Notifications, Result, Subscription};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::positions::{ClientId, Positions};

/// So many notifications of a key are kept for a client that does not read, and for one that subscribes after its claim was granted.
const KEPT: usize = 64;

/// The keys to which clients have subscribed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscriptions(Arc<All>);

#[derive(Debug, Default)]
struct All {
    positions: Positions,
    keys: Mutex<HashMap<LockKey, Key>>,
    last: AtomicU64,
}

#[derive(Debug)]
struct Key {
    number: u64,
    clients: HashMap<u64, (ClientId, Sender<Notification>)>,
    /// The last grants of which the store told, the oldest first.
    grants: VecDeque<Notification>,
    end: AbortHandle,
}

/// What one client hears, until the store tells no more.
pub(crate) struct Joined {
    all: Subscriptions,
    key: LockKey,
    number: u64,
    told: Receiver<Notification>,
}

impl Subscriptions {
    /// Subscriptions of the clients that have these positions.
    pub(crate) fn of(positions: &Positions) -> Self {
        Self(Arc::new(All { positions: positions.clone(), ..All::default() }))
    }

    /// Subscribes to a key, by way of what another client has subscribed to, if that is there.
    pub(crate) async fn subscribe(&self, store: &dyn Notifications, key: &LockKey, client: ClientId) -> Result<Joined> {
        if let Some(there) = self.keys().get_mut(key) {
            return Ok(self.join(there, key, client));
        }
        let subscription = store.subscribe(key).await?;
        let mut keys = self.keys();
        // Another may have done so meanwhile.
        let there = keys.entry(key.clone()).or_insert_with(|| {
            let number = self.0.last.fetch_add(1, Ordering::Relaxed);
            let (passed_on, end) = abortable(self.clone().pass_on(key.clone(), number, subscription));
            tokio::spawn(passed_on);
            Key { number, clients: HashMap::new(), grants: VecDeque::new(), end }
        });
        Ok(self.join(there, key, client))
    }

    fn join(&self, there: &mut Key, key: &LockKey, client: ClientId) -> Joined {
        let (number, (tell, told)) = (self.0.last.fetch_add(1, Ordering::Relaxed), channel(KEPT));
        for granted in there.grants.iter().filter(|granted| self.is_for(client, key, granted)) {
            let _ = tell.try_send(*granted);
        }
        there.clients.insert(number, (client, tell));
        Joined { all: self.clone(), key: key.clone(), number, told }
    }

    async fn pass_on(self, key: LockKey, number: u64, mut subscription: Box<dyn Subscription>) {
        loop {
            let notification = subscription.next().await;
            let mut keys = self.keys();
            let Some(there) = keys.get_mut(&key).filter(|there| there.number == number) else { return };
            if notification == Notification::Ended {
                keys.remove(&key);
                return;
            }
            for (_, tell) in there.clients.values().filter(|(client, _)| self.is_for(*client, &key, &notification)) {
                // Whoever has so many to read asks the store after the first.
                let _ = tell.try_send(notification);
            }
            if notification != Notification::Freed {
                there.grants.push_back(notification);
                there.grants.drain(..there.grants.len().saturating_sub(KEPT));
            }
        }
    }

    fn is_for(&self, client: ClientId, key: &LockKey, notification: &Notification) -> bool {
        match notification {
            Notification::Granted { owner, .. } => self.0.positions.client_of(key, *owner) == Some(client),
            Notification::Freed | Notification::Ended => true,
        }
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<LockKey, Key>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream for Joined {
    type Item = Notification;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notification>> {
        self.told.poll_recv(context)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut keys = self.all.keys();
        let Some(there) = keys.get_mut(&self.key) else { return };
        if there.clients.remove(&self.number).is_some() && there.clients.is_empty() {
            there.end.abort();
            keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use futures::StreamExt;
    use leasehold_core::{Claim, GrantRef, Mode};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::task::yield_now;

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

    fn claim(key: &LockKey) -> (GrantRef, Notification) {
        let grant = Claim::new(key, Mode::Exclusive, Duration::from_secs(1)).grant(Some(1));
        let granted = Notification::Granted { owner: grant.owner, epoch: grant.epoch };
        (grant, granted)
    }

    #[tokio::test]
    async fn one_subscription_tells_each_client_of_its_grants_also_when_it_comes_after_them() {
        let (store, positions, key) = (Store::default(), Positions::default(), LockKey::new("k").unwrap());
        let all = Subscriptions::of(&positions);
        let [ours, theirs] = [(); 2].map(|()| positions.new_client());
        let tell = |notification| store.0.lock().unwrap().last().unwrap().send(notification).unwrap();
        let ((one, granted_one), (two, granted_two)) = (claim(&key), claim(&key));
        let _asked = (positions.take(&one, ours).unwrap(), positions.take(&two, theirs).unwrap());

        let mut first = all.subscribe(&store, &key, ours).await.unwrap();
        for notification in [granted_two, granted_one, Notification::Freed] {
            tell(notification);
        }
        assert_eq!((first.next().await, first.next().await), (Some(granted_one), Some(Notification::Freed)));
        let mut second = all.subscribe(&store, &key, theirs).await.unwrap();
        tell(Notification::Freed);
        assert_eq!((second.next().await, second.next().await), (Some(granted_two), Some(Notification::Freed)));
        assert_eq!(store.0.lock().unwrap().len(), 1);

        // Nobody hears of the end who comes after it.
        tell(Notification::Ended);
        assert_eq!((first.next().await, second.next().await), (Some(Notification::Freed), None));
        assert_eq!(first.next().await, None);
        let _new = all.subscribe(&store, &key, ours).await.unwrap();
        assert_eq!(store.0.lock().unwrap().len(), 2);
        drop((first, second));
        assert_eq!(all.keys().len(), 1, "what is gone ends no later subscription");
    }

    #[tokio::test]
    async fn a_subscription_ends_with_the_last_who_hears_it_and_keeps_little_for_one_who_does_not_read() {
        let (store, positions, key) = (Store::default(), Positions::default(), LockKey::new("k").unwrap());
        let (all, client) = (Subscriptions::of(&positions), positions.new_client());
        let mut slow = all.subscribe(&store, &key, client).await.unwrap();
        drop(all.subscribe(&store, &key, client).await.unwrap());
        let tell = store.0.lock().unwrap()[0].clone();
        let grants: Vec<_> = (0..2 * KEPT).map(|_| claim(&key).1).collect();
        for granted in &grants {
            tell.send(*granted).unwrap();
            tell.send(Notification::Freed).unwrap();
        }
        while all.keys()[&key].grants.back() != grants.last() {
            yield_now().await;
        }
        assert_eq!(all.keys()[&key].grants.len(), KEPT);
        tell.send(Notification::Ended).unwrap();
        for _ in 0..KEPT {
            assert_eq!(slow.next().await, Some(Notification::Freed));
        }
        assert_eq!(slow.next().await, None);

        let last = all.subscribe(&store, &key, client).await.unwrap();
        let tell = store.0.lock().unwrap()[1].clone();
        drop(last);
        tell.closed().await;
        assert!(all.keys().is_empty());
    }
}
