use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    BoxFuture, Error, ErrorKind, LockKey, Notification, Notifications, OwnerId, Result, Subscription,
};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use crate::failure::classify;
use crate::sessions::{LIMIT, Session, Sessions, Step};

/// Hears of releases on a connection of its own, which has to lead to the server itself: a pooler that lends a connection for
/// one transaction only does not pass notifications on. A clone shares the connection.
#[derive(Clone, Debug)]
pub(crate) struct Subscriptions {
    sessions: Sessions,
    /// Locked while something is asked on it, so that nobody stops listening to what another one begins with.
    connection: Arc<tokio::sync::Mutex<Option<Listening>>>,
}

/// A connection that listens.
#[derive(Debug)]
pub(crate) struct Listening {
    session: Session,
    channels: Arc<Channels>,
}

/// The channels to which a connection listens. When they are gone, their subscriptions have ended.
#[derive(Debug, Default)]
struct Channels(Mutex<HashMap<String, watch::Sender<()>>>);

/// Empties the channels when the connection ends.
struct Ears(Arc<Channels>);

/// How long a notification may take from the pool to the listening connection.
const TRIAL: Duration = Duration::from_secs(1);

/// The operation that errors name.
const SUBSCRIBE: &str = "subscribe";

impl Subscriptions {
    /// Nothing is sent. `None`: the settings say that nobody listens.
    pub(crate) fn new(sessions: &Sessions) -> Option<Self> {
        sessions.address().listen.as_ref()?;
        Some(Self { sessions: sessions.clone(), connection: Arc::default() })
    }

    fn listen(&self, channel: String) -> BoxFuture<'_, Result<Listened>> {
        Box::pin(async move {
            let mut connection = self.connection.lock().await;
            let listening = match connection.take() {
                Some(listening) if !listening.session.client.is_closed() => listening,
                _ => self.open().await?,
            };
            let (freed, is_new) = listening.channels.subscribe(&channel);
            let leaving = Leaving { subscriptions: self.clone(), channel };
            let asked = if is_new { Some(format!("LISTEN {}", leaving.channel)) } else { None };
            let listening = connection.insert(listening);
            if let Some(statement) = asked
                && let Err(failed) = self.ask(listening, &statement).await
            {
                *connection = None;
                return Err(failed);
            }
            Ok(Listened { freed, _leaving: leaving })
        })
    }

    /// Connects, and finds out whether what is notified through the pool arrives.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when it does not, and the errors of connecting.
    pub(crate) async fn open(&self) -> Result<Listening> {
        let channels = Arc::<Channels>::default();
        let ears = Ears(Arc::clone(&channels));
        let config = self.sessions.address().listen.clone().unwrap_or_default();
        let session = self.sessions.connect(SUBSCRIBE, config, move |message| ears.hear(&message)).await;
        let listening = Listening { session: session.map_err(|(error, _)| error)?, channels };
        let trial = format!("leasehold_{}", OwnerId::random().to_hex());
        let (mut freed, _) = listening.channels.subscribe(&trial);
        self.ask(&listening, &format!("LISTEN {trial}")).await?;
        self.sessions.run(Step::new(SUBSCRIBE, "SELECT pg_notify($1, '')"), &[(&trial, Type::TEXT)]).await?;
        if !matches!(timeout(TRIAL, freed.changed()).await, Ok(Ok(()))) {
            let why = "no notification arrives, perhaps because of a pooler: name the server itself by listen=host:port, or \
                       say listen=false; waiters poll until then";
            return Err(Error::new(ErrorKind::Unavailable, SUBSCRIBE).detail(why));
        }
        self.ask(&listening, "UNLISTEN *").await?;
        listening.channels.locked().clear();
        Ok(listening)
    }

    async fn ask(&self, listening: &Listening, statement: &str) -> Result<()> {
        let answer = timeout(LIMIT, listening.session.client.batch_execute(statement)).await;
        let late = |_| Error::new(ErrorKind::Unavailable, SUBSCRIBE).detail(format!("no answer within {LIMIT:?}"));
        answer.map_err(late)?.map_err(|failure| classify(SUBSCRIBE, &failure, true, &self.sessions.address().secrets).0)
    }

    /// Stops listening to a channel that nobody is subscribed to any more.
    async fn leave(self, channel: String) {
        let mut connection = self.connection.lock().await;
        let Some(listening) = &*connection else { return };
        let is_left = |ours: &mut HashMap<String, watch::Sender<()>>| {
            ours.get(&channel).is_some_and(|freed| freed.receiver_count() == 0) && ours.remove(&channel).is_some()
        };
        let is_left = is_left(&mut listening.channels.locked());
        if is_left && self.ask(listening, &format!("UNLISTEN {channel}")).await.is_err() {
            *connection = None;
        }
    }
}

#[async_trait]
impl Notifications for Subscriptions {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let address = self.sessions.address();
        let channel = address.schema.channel(&address.namespace.name_of(key));
        Ok(Box::new(self.sessions.until_closed(SUBSCRIBE, self.listen(channel)).await??))
    }
}

impl Channels {
    /// A receiver of this channel, and whether it is the first.
    fn subscribe(&self, channel: &str) -> (watch::Receiver<()>, bool) {
        let mut channels = self.locked();
        if let Some(freed) = channels.get(channel) {
            return (freed.subscribe(), false);
        }
        let (freed, receiver) = watch::channel(());
        channels.insert(channel.to_owned(), freed);
        (receiver, true)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ears {
    fn hear(&self, message: &AsyncMessage) {
        if let AsyncMessage::Notification(notification) = message
            && let Some(freed) = self.0.locked().get(notification.channel())
        {
            freed.send_replace(());
        }
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.0.locked().clear();
    }
}

/// A subscription to one channel.
struct Listened {
    freed: watch::Receiver<()>,
    // Dropped after the receiver.
    _leaving: Leaving,
}

/// Stops listening when the last subscription of the channel is dropped. If the task never runs, the server notifies in vain.
struct Leaving {
    subscriptions: Subscriptions,
    channel: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(runtime) = self.subscriptions.sessions.runtime() {
            runtime.spawn(self.subscriptions.clone().leave(std::mem::take(&mut self.channel)));
        }
    }
}

#[async_trait]
impl Subscription for Listened {
    async fn next(&mut self) -> Notification {
        match self.freed.changed().await {
            Ok(()) => Notification::Freed,
            Err(_) => Notification::Ended,
        }
    }
}
