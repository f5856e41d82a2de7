use std::collections::HashSet;
use std::sync::Arc;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::ClientLike;
use tokio::sync::{mpsc, oneshot};

use crate::client::connection::Connection;
use crate::client::driver;
use crate::client::supervisor::{self, AbortOnDrop};
use crate::pubsub::subscribers::Subscribers;
use crate::pubsub::task::{PubSubTask, SubscribeRequest};

/// The connection on which messages come in, and the task that reads it.
#[derive(Debug)]
pub(super) struct PubSubConnection {
    client: Client,
    requests: mpsc::UnboundedSender<SubscribeRequest>,
    /// If it never runs again, the runtime is gone, and with it everybody who waits.
    task: AbortOnDrop<()>,
}

impl PubSubConnection {
    pub(super) async fn open(connection: &Connection, subscribers: &Arc<Subscribers>) -> Result<Self, DriverError> {
        let route = connection.pubsub_route()?;
        let configure = if route.stays { driver::builder } else { driver::without_reconnecting };
        let client = configure(route.config.clone(), connection.command_timeout()).build()?;
        let router = supervisor::connect(&client).await?;
        let (requests, requested) = mpsc::unbounded_channel();
        let (leaving, left) = mpsc::unbounded_channel();
        subscribers.report_left(leaving);
        let task = PubSubTask {
            client: client.clone(),
            subscribers: Arc::clone(subscribers),
            subscribed: HashSet::new(),
            requested,
            left,
        };
        Ok(Self { client, requests, task: AbortOnDrop(tokio::spawn(task.run(router, route))) })
    }

    pub(super) fn is_running(&self) -> bool {
        !self.task.0.is_finished()
    }

    /// The answer comes when the server has confirmed the subscription.
    pub(super) fn subscribe(&self, channel: String) -> impl Future<Output = Result<(), DriverError>> + use<> {
        let (confirmed, confirmation) = oneshot::channel();
        // If the task is gone, so is the request, and the confirmation fails.
        let _ = self.requests.send(SubscribeRequest { channel, confirmed });
        async move {
            let gone = || DriverError::new(DriverKind::Canceled, "The connection for signals ended.");
            confirmation.await.unwrap_or_else(|_| Err(gone()))
        }
    }

    pub(super) async fn close(self) {
        // The task sees that the client ended and ends too; else dropping the connection ends it.
        let _ = self.client.quit().await;
    }
}
