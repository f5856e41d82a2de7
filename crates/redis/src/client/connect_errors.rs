use std::sync::{Mutex, MutexGuard, PoisonError};

use fred::clients::Client;
use fred::error::Error as DriverError;
use fred::interfaces::EventInterface;
use fred::types::config::Server;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

/// Why a client has no connection: how the last try to make one ended.
///
/// The driver tries for ever, and reports why it fails only to those who listen.
#[derive(Debug)]
pub(crate) struct ConnectErrors(Mutex<Heard>);

#[derive(Debug)]
struct Heard {
    /// With a server: the connection to it broke. Without: a try to connect failed.
    news: Receiver<(DriverError, Option<Server>)>,
    last: Option<DriverError>,
}

impl ConnectErrors {
    pub(crate) fn of(client: &Client) -> Self {
        Self(Mutex::new(Heard { news: client.error_rx(), last: None }))
    }

    /// Why the last one failed; nothing, if none has since the connection was lost.
    pub(crate) fn last(&self, client: &Client) -> Option<DriverError> {
        let mut heard = self.heard();
        heard.subscribe(client);
        heard.last.clone()
    }

    /// There is a connection: what was wrong before is not why the next one is lost.
    pub(crate) fn forget(&self, client: &Client) {
        let mut heard = self.heard();
        heard.subscribe(client);
        heard.last = None;
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn subscribe(&mut self, client: &Client) {
        loop {
            match self.news.try_recv() {
                Ok((error, None)) => self.last = Some(error),
                Ok((_, Some(_))) => self.last = None,
                Err(TryRecvError::Lagged(_)) => {}
                // As when somebody has the client quit, which the supervisor starts again.
                Err(TryRecvError::Closed) => self.news = client.error_rx(),
                Err(TryRecvError::Empty) => return,
            }
        }
    }
}
