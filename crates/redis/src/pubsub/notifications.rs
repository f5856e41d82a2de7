use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, Error, ErrorKind, LockKey, Notifications, OwnerId, Result, Subscription};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::client::connection::Connection;
use crate::keyspace::names::Namespace;
use crate::pubsub::connection::PubSubConnection;
use crate::pubsub::subscribers::Subscribers;
use crate::pubsub::subscription::TopicSubscription;

/// The part of a key's names on which its releases are published.
pub const CHANNEL: &str = "freed";

/// How long no subscription is asked for after one was refused: an operator may have changed the rules since.
const REFUSED: Duration = Duration::from_secs(5);

/// Notifications over Redis pub/sub: a script that releases publishes on the key's [`CHANNEL`], and every process with a
/// subscription to that key receives it.
///
/// A second connection, made when somebody waits for the first time, one subscription per key that is waited for.
/// After a reconnection, and when messages came too fast, all subscriptions get a notification: a message may have been lost. Where the server
/// does not allow subscriptions, [`subscribe`](Notifications::subscribe) fails, and waiters poll; it is asked again after a few seconds.
pub(crate) struct PubSub {
    connection: Connection,
    namespace: Namespace,
    /// The part of a key's names that is its topic.
    part: &'static str,
    subscribers: Arc<Subscribers>,
    listening: Mutex<Option<PubSubConnection>>,
    /// Until then no subscription is asked for, because the server refused one.
    refused_until: std::sync::Mutex<Option<Moment>>,
    clock: Clock,
    closed: AtomicBool,
    /// Whether the warning was given that the server refuses what a release does for waiters.
    warned: AtomicBool,
}

impl PubSub {
    /// For the keys of one namespace. Connects later.
    pub(crate) fn new(connection: &Connection, namespace: &Namespace) -> Self {
        Self {
            connection: connection.clone(),
            namespace: namespace.clone(),
            part: CHANNEL,
            subscribers: Arc::default(),
            listening: Mutex::default(),
            refused_until: std::sync::Mutex::default(),
            clock: Clock::system(),
            closed: AtomicBool::new(false),
            warned: AtomicBool::new(false),
        }
    }

    /// For the keys of one namespace, with an inbox: a channel of this client's own, on which the grants of all keys come
    /// in, and no channel per key. Connects later.
    ///
    /// A message is the owner (32 hex digits), the epoch and the name of that `part` of the key. Every user who
    /// may publish can forge one: unless it is `trusted`, it is only a reason to ask.
    pub(crate) fn with_inbox(
        connection: &Connection,
        namespace: &Namespace,
        part: &'static str,
        trusted: bool,
    ) -> Self {
        let inbox = namespace.own(&format!("inbox:{}", OwnerId::random().to_hex()));
        let subscribers = Arc::new(Subscribers::with_inbox(inbox, namespace.clone(), part, trusted));
        Self { part, subscribers, ..Self::new(connection, namespace) }
    }

    /// The channel on which grants are received at this moment, if there is one and a subscription is open.
    pub(crate) fn inbox(&self) -> Option<&str> {
        self.subscribers.inbox()
    }

    /// Warns, once, if there is a reason why a release did not serve or notify those who wait.
    pub(crate) fn warn_of_waiters(&self, reason: &[&str]) {
        if !reason.is_empty() && !self.warned.swap(true, Ordering::AcqRel) {
            let refused = self.connection.quote(&reason.join(" "));
            tracing::warn!(refused, "Redis does not let a release serve those who wait; they find out by asking");
        }
    }

    /// Ends the second connection, within the connection's [`command_timeout`](Connection::command_timeout). Nobody is
    /// signalled any more.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let closing = async {
            let listening = self.listening.lock().await.take();
            if let Some(listening) = listening {
                listening.close().await;
            }
        };
        drop(timeout(self.connection.command_timeout(), closing).await);
    }

    fn refused_until(&self) -> MutexGuard<'_, Option<Moment>> {
        self.refused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes, on the connection there is or on a new one.
    async fn listen_to(&self, topic: &str) -> Result<()> {
        let mut slot = self.listening.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "listen for releases"));
        }
        let listening = match slot.take() {
            Some(listening) if listening.is_running() => slot.insert(listening),
            _ => {
                let opened = PubSubConnection::open(&self.connection, &self.subscribers).await;
                slot.insert(opened.map_err(|error| self.connection.failed(&error))?)
            }
        };
        let confirmed = listening.subscribe(self.subscribers.channel_of(topic));
        drop(slot);
        confirmed.await.map_err(|error| self.connection.failed(&error))
    }
}

#[async_trait]
impl Notifications for PubSub {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        if self.refused_until().is_some_and(|until| self.clock.now() < until) {
            return Err(Error::new(ErrorKind::Unsupported, "listen for releases"));
        }
        let subscription = TopicSubscription::new(&self.subscribers, self.namespace.of(key).part(self.part));
        // The waiter does not poll before this has an answer.
        let listening = timeout(self.connection.command_timeout(), self.listen_to(&subscription.topic));
        let outcome = listening.await.unwrap_or_else(|_| {
            let error = Error::new(ErrorKind::Unavailable, "listen for releases");
            Err(error.detail("the connection for signals takes too long"))
        });
        if let Err(error) = outcome {
            let until = self.clock.now().plus(REFUSED);
            if error.kind() == ErrorKind::Backend && self.refused_until().replace(until).is_none() {
                tracing::warn!(%error, "Redis refuses subscriptions; waiting goes on by polling");
            }
            return Err(error);
        }
        if self.refused_until().take().is_some() {
            tracing::info!("Redis takes subscriptions again");
        }
        Ok(Box::new(subscription))
    }
}

impl fmt::Debug for PubSub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubSub").field("channels", &self.subscribers.channels().len()).finish_non_exhaustive()
    }
}
