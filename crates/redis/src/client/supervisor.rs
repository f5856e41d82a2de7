use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::Options;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

/// Keeps a client of ours going as long as it is wanted, and ends it when dropped.
///
/// The driver reconnects by itself after a lost connection. What it does not notice, and what this is for: its
/// routing task gave up, a server that hangs with its connection open, a server that is not the primary any more.
#[derive(Debug)]
pub(crate) struct Supervisor {
    client: Client,
    task: AbortOnDrop<()>,
    probes: mpsc::Sender<ProbeReason>,
    flags: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    closing: AtomicBool,
    /// Between two routing tasks. The driver itself goes on to say that it is connected.
    down: AtomicBool,
}

/// Why the connection is probed: it may be of no use any more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProbeReason {
    /// A command got no answer.
    Silence,
    /// The server says that it is not the one to ask.
    WrongServer,
}

impl Supervisor {
    /// Connects. On failure, or when this future is dropped, nothing is left behind.
    pub(crate) async fn start(client: &Client) -> Result<Self, DriverError> {
        Ok(Self::keep(client, Some(connect(client).await?)))
    }

    /// Begins to connect, and goes on until it has.
    pub(crate) fn launch(client: &Client) -> Self {
        Self::keep(client, None)
    }

    fn keep(client: &Client, router: Option<Router>) -> Self {
        let (probes, asked) = mpsc::channel(1);
        let flags = Arc::new(Flags { down: AtomicBool::new(router.is_none()), ..Flags::default() });
        let task = tokio::spawn(watch_over(client.clone(), router, asked, Arc::clone(&flags)));
        Self { client: client.clone(), task: AbortOnDrop(task), probes, flags }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.flags.down.load(Ordering::Acquire)
    }

    /// Has the connection probed, and made anew if it is of no use.
    pub(crate) fn probe(&self, reason: ProbeReason) {
        // A full channel says that it is under way.
        let _ = self.probes.try_send(reason);
    }

    /// Says goodbye to the server and ends the client, also if this future is dropped.
    pub(crate) async fn close(&self) {
        self.flags.closing.store(true, Ordering::Release);
        let _end = Abort(self.task.0.abort_handle());
        let _ = timeout(Duration::from_secs(1), self.client.quit()).await;
    }
}

/// Ends a task with its owner. The driver's own handles leave theirs running.
#[derive(Debug)]
pub(crate) struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Ends somebody else's task when dropped.
struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The driver's task that owns the sockets.
pub(crate) type Router = AbortOnDrop<Result<(), DriverError>>;

/// Starts a client's routing task and waits until it is connected or has failed.
///
/// Not `init`, which leaves the task to itself when its future is dropped.
pub(crate) async fn connect(client: &Client) -> Result<Router, DriverError> {
    const SLICE: Duration = Duration::from_millis(20);
    let mut news = client.reconnect_rx();
    let mut router = AbortOnDrop(client.connect());
    let connected = async {
        // What the client says of itself may still be about an earlier task.
        let _ = news.recv().await;
        while !client.is_connected() {
            // In slices: the news may come just before this starts to listen.
            let _ = timeout(SLICE, client.wait_for_connect()).await;
        }
    };
    tokio::select! {
        ended = &mut router.0 => {
            let closed = DriverError::new(DriverKind::Canceled, "Closed while connecting.");
            return Err(ended.ok().and_then(Result::err).unwrap_or(closed));
        }
        () = connected => {}
    }
    Ok(router)
}

/// Replaces the routing task when it ended or is of no use. Ends when the client is closed.
async fn watch_over(
    client: Client,
    mut router: Option<Router>,
    mut probes: mpsc::Receiver<ProbeReason>,
    flags: Arc<Flags>,
) {
    loop {
        let mut going = match router.take() {
            Some(router) => router,
            None => connect_again(&client).await,
        };
        flags.down.store(false, Ordering::Release);
        let useless = async {
            loop {
                tokio::select! {
                    _ = &mut going.0 => return,
                    Some(reason) = probes.recv() => if is_useless(&client, reason).await { return },
                }
            }
        };
        useless.await;
        if flags.closing.load(Ordering::Acquire) {
            return;
        }
        flags.down.store(true, Ordering::Release);
        drop(going);
        sleep(PAUSE).await;
    }
}

/// Before a connection that is of no use is made anew.
const PAUSE: Duration = Duration::from_millis(50);

async fn is_useless(client: &Client, reason: ProbeReason) -> bool {
    match reason {
        ProbeReason::WrongServer => true,
        ProbeReason::Silence => {
            let options =
                Options { max_attempts: Some(1), timeout: Some(Duration::from_secs(1)), ..Options::default() };
            let answer: Result<(), _> = client.with_options(&options).ping(None).await;
            answer.is_err_and(|error| crate::client::error::refusal(&error).is_none())
        }
    }
}

async fn connect_again(client: &Client) -> Router {
    let mut pause = PAUSE;
    loop {
        if let Ok(router) = connect(client).await {
            return router;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}
