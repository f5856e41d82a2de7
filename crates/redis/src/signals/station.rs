use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;

use fred::clients::{Client, Pipeline};
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::{ClusterHash, CustomCommand, Value};
use fred::util::redis_keyslot;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};

use super::hub::Hub;
use crate::connection::Post;
use crate::lifeline::{self, AbortOnDrop, Router};
use crate::{Connection, settings};

/// The connection on which signals come in, and the task that attends to it.
#[derive(Debug)]
pub(super) struct Station {
    client: Client,
    orders: mpsc::UnboundedSender<Order>,
    /// If it never runs again, the runtime is gone, and with it everybody who waits.
    task: AbortOnDrop<()>,
}

#[derive(Debug)]
struct Order {
    channel: String,
    confirmed: oneshot::Sender<Result<(), DriverError>>,
}

impl Station {
    pub(super) async fn open(connection: &Connection, hub: &Arc<Hub>) -> Result<Self, DriverError> {
        let post = connection.post()?;
        let settings = if post.stays() { settings::builder } else { settings::without_reconnecting };
        let client = settings(post.config.clone(), connection.command_timeout()).build()?;
        let router = lifeline::connect(&client).await?;
        let (orders, ordered) = mpsc::unbounded_channel();
        let (leaving, left) = mpsc::unbounded_channel();
        hub.tell_leaving(leaving);
        let attendant =
            Attendant { client: client.clone(), hub: Arc::clone(hub), subscribed: HashSet::new(), ordered, left };
        Ok(Self { client, orders, task: AbortOnDrop(tokio::spawn(attendant.attend(router, post))) })
    }

    pub(super) fn is_running(&self) -> bool {
        !self.task.0.is_finished()
    }

    /// The answer comes when the server has confirmed the subscription.
    pub(super) fn subscribe(&self, channel: String) -> impl Future<Output = Result<(), DriverError>> + use<> {
        let (confirmed, confirmation) = oneshot::channel();
        // If the task is gone, so is the order, and the confirmation fails.
        let _ = self.orders.send(Order { channel, confirmed });
        async move {
            let gone = || DriverError::new(DriverKind::Canceled, "The connection for signals ended.");
            confirmation.await.unwrap_or_else(|_| Err(gone()))
        }
    }

    pub(super) async fn close(self) {
        // The task sees that the client ended and ends too; else dropping the station ends it.
        let _ = self.client.quit().await;
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.hub.end();
    }
}

struct Attendant {
    client: Client,
    hub: Arc<Hub>,
    subscribed: HashSet<String>,
    ordered: mpsc::UnboundedReceiver<Order>,
    left: mpsc::UnboundedReceiver<String>,
}

impl Attendant {
    /// Until the connection is of no use any more. A new station subscribes to everything that is wanted.
    async fn attend(mut self, mut router: Router, post: Post) {
        let mut messages = self.client.message_rx();
        let mut reconnected = self.client.reconnect_rx();
        let mut moved = self.client.cluster_change_rx();
        if let Err(error) = self.subscribe(self.hub.channels()).await {
            return self.fail(&error).await;
        }
        let mut left = pin!(post.left());
        loop {
            let attended = tokio::select! {
                _ = &mut router.0 => return,
                () = &mut left => return,
                message = messages.recv() => match message {
                    Ok(message) => {
                        self.hub.received(&message.channel, &message.value.as_str().unwrap_or_default());
                        Ok(())
                    }
                    Err(RecvError::Lagged(_)) => {
                        self.hub.wake_all();
                        Ok(())
                    }
                    Err(RecvError::Closed) => return,
                },
                Some(order) = self.ordered.recv() => self.obey(order).await,
                Some(channel) = self.left.recv() => self.leave(channel).await,
                Ok(_) = reconnected.recv() => self.start_over().await,
                Ok(_) = moved.recv() => self.start_over().await,
            };
            if attended.is_err() {
                return;
            }
        }
    }

    /// Serves all orders that are there with one round trip.
    async fn obey(&mut self, first: Order) -> Result<(), DriverError> {
        let mut orders = vec![first];
        while let Ok(order) = self.ordered.try_recv() {
            orders.push(order);
        }
        let new = orders.iter().map(|order| order.channel.clone());
        let new: HashSet<_> = new.filter(|channel| !self.subscribed.contains(channel)).collect();
        let done = if new.is_empty() { Ok(()) } else { self.subscribe(new).await };
        for order in orders {
            // Whoever left meanwhile does not need the answer.
            let _ = order.confirmed.send(done.clone());
        }
        done
    }

    async fn leave(&mut self, first: String) -> Result<(), DriverError> {
        let mut channels = vec![first];
        while let Ok(channel) = self.left.try_recv() {
            channels.push(channel);
        }
        channels.retain(|channel| !self.hub.is_wanted(channel) && self.subscribed.remove(channel));
        if channels.is_empty() {
            return Ok(());
        }
        let batch = self.client.pipeline();
        batch.unsubscribe(channels).await?;
        self.confirmed(batch).await
    }

    /// After a break: what was published meanwhile is lost.
    async fn start_over(&mut self) -> Result<(), DriverError> {
        self.hub.set_open(false);
        self.subscribed.clear();
        let subscribed = self.subscribe(self.hub.channels()).await;
        self.hub.wake_all();
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
        self.hub.set_open(true);
        Ok(())
    }

    /// Sends the batch, and waits until the server has carried it out.
    ///
    /// For the driver a subscription is done when it is sent. Answers come in order, so that to a PING right behind
    /// it tells; a refusal is taken for the answer to the PING, and nothing is in step after it.
    async fn confirmed(&self, batch: Pipeline<Client>) -> Result<(), DriverError> {
        // To the node to which the driver sends subscriptions.
        let slot = redis_keyslot(self.client.id().as_bytes());
        let ping = CustomCommand::new_static("PING", ClusterHash::Custom(slot), false);
        batch.custom::<Value, Value>(ping, Vec::new()).await?;
        batch.last::<Value>().await.map(drop)
    }

    /// Tells whoever made this station why it is of no use.
    async fn fail(&mut self, error: &DriverError) {
        let mut order = self.ordered.recv().await;
        while let Some(Order { confirmed, .. }) = order {
            let _ = confirmed.send(Err(error.clone()));
            order = self.ordered.try_recv().ok();
        }
    }
}
