use std::collections::HashSet;
use std::iter;
use std::pin::pin;
use std::sync::Arc;

use fred::clients::{Client, Pipeline};
use fred::error::Error as DriverError;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::{ClusterHash, CustomCommand, Value};
use fred::util::redis_keyslot;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};

use crate::client::connection::PubSubRoute;
use crate::client::supervisor::Router;
use crate::pubsub::subscribers::Subscribers;

/// The task that reads the pub/sub connection: it subscribes, unsubscribes and passes messages on to the subscribers.
pub(super) struct PubSubTask {
    pub(super) client: Client,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) subscribed: HashSet<String>,
    pub(super) requested: mpsc::UnboundedReceiver<SubscribeRequest>,
    pub(super) left: mpsc::UnboundedReceiver<String>,
}

impl PubSubTask {
    /// Until the connection is of no use any more. A new connection subscribes to everything that is wanted.
    pub(super) async fn run(mut self, mut router: Router, route: PubSubRoute) {
        let mut messages = self.client.message_rx();
        let mut reconnected = self.client.reconnect_rx();
        let mut moved = self.client.cluster_change_rx();
        if let Err(error) = self.subscribe(self.subscribers.channels()).await {
            return self.fail(&error).await;
        }
        let mut left = pin!(route.replaced());
        loop {
            let done_so_far = tokio::select! {
                _ = &mut router.0 => return,
                () = &mut left => return,
                message = messages.recv() => match message {
                    Ok(message) => {
                        self.subscribers.received(&message.channel, &message.value.as_str().unwrap_or_default());
                        Ok(())
                    }
                    Err(RecvError::Lagged(_)) => {
                        self.subscribers.wake_all();
                        Ok(())
                    }
                    Err(RecvError::Closed) => return,
                },
                Some(request) = self.requested.recv() => self.subscribe_all(request).await,
                Some(channel) = self.left.recv() => self.leave(channel).await,
                Ok(_) = reconnected.recv() => self.start_over().await,
                Ok(_) = moved.recv() => self.start_over().await,
            };
            if done_so_far.is_err() {
                return;
            }
        }
    }

    /// Serves all requests that are there with one round trip.
    async fn subscribe_all(&mut self, first: SubscribeRequest) -> Result<(), DriverError> {
        let more = iter::from_fn(|| self.requested.try_recv().ok());
        let requests: Vec<_> = iter::once(first).chain(more).collect();
        let new = requests.iter().map(|request| request.channel.clone());
        let new: HashSet<_> = new.filter(|channel| !self.subscribed.contains(channel)).collect();
        let done = self.subscribe(new).await;
        for request in requests {
            // The subscriber may have gone meanwhile and needs no answer.
            let _ = request.confirmed.send(done.clone());
        }
        done
    }

    async fn leave(&mut self, first: String) -> Result<(), DriverError> {
        let more = iter::from_fn(|| self.left.try_recv().ok());
        let mut channels: Vec<_> = iter::once(first).chain(more).collect();
        channels.retain(|channel| !self.subscribers.is_wanted(channel) && self.subscribed.remove(channel));
        if channels.is_empty() {
            return Ok(());
        }
        let batch = self.client.pipeline();
        batch.unsubscribe(channels).await?;
        self.confirmed(batch).await
    }

    /// After a break: what was published meanwhile is lost.
    async fn start_over(&mut self) -> Result<(), DriverError> {
        self.subscribers.set_open(false);
        self.subscribed.clear();
        let subscribed = self.subscribe(self.subscribers.channels()).await;
        self.subscribers.wake_all();
        subscribed
    }

    async fn subscribe(&mut self, channels: impl IntoIterator<Item = String>) -> Result<(), DriverError> {
        let channels: Vec<String> = channels.into_iter().collect();
        if channels.is_empty() {
            return Ok(());
        }
        let batch = self.client.pipeline();
        batch.subscribe(channels.clone()).await?;
        self.confirmed(batch).await?;
        self.subscribed.extend(channels);
        self.subscribers.set_open(true);
        Ok(())
    }

    /// Sends the batch, and waits until the server has carried it out.
    ///
    /// For the driver a subscription is done when it is sent. Answers come in request, so that to a PING right behind
    /// it tells; a refusal is taken for the answer to the PING, and nothing is in step after it.
    async fn confirmed(&self, batch: Pipeline<Client>) -> Result<(), DriverError> {
        // To the node to which the driver sends subscriptions.
        let slot = redis_keyslot(self.client.id().as_bytes());
        let ping = CustomCommand::new_static("PING", ClusterHash::Custom(slot), false);
        batch.custom::<Value, Value>(ping, Vec::new()).await?;
        batch.last::<Value>().await.map(drop)
    }

    /// Answers all requests with the reason why this connection is of no use.
    async fn fail(&mut self, error: &DriverError) {
        let mut request = self.requested.recv().await;
        while let Some(SubscribeRequest { confirmed, .. }) = request {
            let _ = confirmed.send(Err(error.clone()));
            request = self.requested.try_recv().ok();
        }
    }
}

impl Drop for PubSubTask {
    fn drop(&mut self) {
        self.subscribers.end();
    }
}

/// A request to subscribe to a channel, answered when the server has confirmed it.
#[derive(Debug)]
pub(super) struct SubscribeRequest {
    pub(super) channel: String,
    pub(super) confirmed: oneshot::Sender<Result<(), DriverError>>,
}
