use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// A TCP proxy in front of a server on 127.0.0.1, with faults that a test switches on and off.
///
/// It runs on a thread of its own, so that a test without a runtime can use it too. Dropping it breaks all connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    /// Dropped with the proxy, which ends its thread.
    _running: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Shared {
    faults: Mutex<Faults>,
    cuts: watch::Sender<()>,
    releases: watch::Sender<()>,
}

#[derive(Clone, Copy, Debug)]
struct Faults {
    server: u16,
    delay: Duration,
    refuses: bool,
    drops_next_reply: bool,
    dropped_replies: u64,
    /// How many connections there have been. A connection's number is the count before it.
    connections: u64,
    /// Connections with a smaller number carry nothing any more.
    silent_below: u64,
    /// Connections with a smaller number carry no replies any more.
    without_replies_below: u64,
    /// Connections with a smaller number hold their next request.
    holding_below: u64,
    held: u64,
}

impl Proxy {
    /// Starts a proxy in front of the server on this port.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start(server: u16) -> Self {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        listener.set_nonblocking(true).expect("a listener for a runtime");
        let faults = Faults {
            server,
            delay: Duration::ZERO,
            refuses: false,
            drops_next_reply: false,
            dropped_replies: 0,
            connections: 0,
            silent_below: 0,
            without_replies_below: 0,
            holding_below: 0,
            held: 0,
        };
        let (cuts, releases) = (watch::Sender::new(()), watch::Sender::new(()));
        let shared = Arc::new(Shared { faults: Mutex::new(faults), cuts, releases });
        let (running, ended) = oneshot::channel();
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || run(listener, shared, ended)
        });
        Self { port, shared, _running: running }
    }

    /// The port on which the proxy listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a server on 127.0.0.1, with the proxy's port in place of the server's.
    ///
    /// # Panics
    /// When the URL has no such address.
    pub fn url(&self, url: &str) -> String {
        const HOST: &str = "127.0.0.1:";
        let (before, after) = url.split_once(HOST).expect("a URL with an address of this machine and a port");
        format!("{before}{HOST}{}{}", self.port, after.trim_start_matches(|c: char| c.is_ascii_digit()))
    }

    /// Has new connections lead to the server on this port. Existing connections stay where they are.
    pub fn redirect(&self, server: u16) {
        self.change(|faults| faults.server = server);
    }

    /// Delays everything by so much, in each direction.
    pub fn delay(&self, one_way: Duration) {
        self.change(|faults| faults.delay = one_way);
    }

    /// Drops the next bytes that the server sends, and breaks that connection: the server has carried out a request to which
    /// the client gets no reply.
    pub fn drop_next_reply(&self) {
        self.change(|faults| faults.drops_next_reply = true);
    }

    /// How many replies were dropped.
    pub fn dropped_replies(&self) -> u64 {
        self.faults().dropped_replies
    }

    /// Breaks all existing connections for their clients. What a client sent before, and the proxy delays or holds, still
    /// reaches the server.
    pub fn cut(&self) {
        self.shared.cuts.send_replace(());
    }

    /// Holds the next request on each existing connection until [`release`](Self::release), also when the connection is
    /// [cut](Self::cut), and drops what the client sends after it. New connections are as before.
    pub fn hold_requests(&self) {
        self.change(|faults| faults.holding_below = faults.connections);
    }

    /// How many requests were held so far, whether or not they were released.
    pub fn held(&self) -> u64 {
        self.faults().held
    }

    /// Delivers the requests that were held.
    pub fn release(&self) {
        self.change(|faults| faults.holding_below = 0);
        self.shared.releases.send_replace(());
    }

    /// Drops the replies on all existing connections from now on. Requests still arrive.
    pub fn drop_replies(&self) {
        self.change(|faults| faults.without_replies_below = faults.connections);
    }

    /// Drops everything on all existing connections from now on; they stay open. New connections are as before.
    pub fn black_hole(&self) {
        self.change(|faults| faults.silent_below = faults.connections);
    }

    /// Drops everything on existing and new connections from now on; they stay open.
    pub fn black_hole_all(&self) {
        self.change(|faults| faults.silent_below = u64::MAX);
    }

    /// Says whether new connections are broken at once.
    pub fn refuse(&self, refuses: bool) {
        self.change(|faults| faults.refuses = refuses);
    }

    fn faults(&self) -> Faults {
        self.shared.faults()
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.change(change);
    }
}

impl Shared {
    fn faults(&self) -> Faults {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        change(&mut self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Until the proxy is dropped.
fn run(listener: StdListener, shared: Arc<Shared>, ended: oneshot::Receiver<()>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener).expect("a listener that does not block");
        tokio::select! {
            () = accept(listener, shared) => {}
            _ = ended => {}
        }
    });
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        // Before its task runs, so that a fault that is switched on now counts it.
        let (refuses, server, number) = shared.change(|faults| {
            faults.connections += u64::from(!faults.refuses);
            (faults.refuses, faults.server, faults.connections.saturating_sub(1))
        });
        if !refuses {
            connections.spawn(relay(client, server, number, Arc::clone(&shared)));
        }
    }
}

async fn relay(client: TcpStream, server: u16, number: u64, shared: Arc<Shared>) -> io::Result<()> {
    let mut cuts = shared.cuts.subscribe();
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = forward_requests(from_client, to_server, number, &shared);
    let replies = async {
        tokio::select! {
            ended = forward_replies(from_server, to_client, number, &shared) => ended,
            _ = cuts.changed() => Ok(()),
        }
    };
    tokio::join!(requests, replies).0
}

/// Until the client closes the connection, or its request was held.
async fn forward_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    shared: &Shared,
) -> io::Result<()> {
    let (mut cuts, mut releases) = (shared.cuts.subscribe(), shared.releases.subscribe());
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        let faults = shared.faults();
        if number < faults.silent_below {
            drop(cuts.changed().await);
            return Ok(());
        }
        if number < faults.holding_below {
            // With this half, so that a cut closes the connection of the client altogether.
            drop(from);
            shared.change(|faults| faults.held += 1);
            while number < shared.faults().holding_below {
                drop(releases.changed().await);
            }
            return to.write_all(&bytes[..count]).await;
        }
        delay(faults.delay).await;
        to.write_all(&bytes[..count]).await?;
    }
}

/// Until the server closes the connection, or a reply was dropped together with the connection.
async fn forward_replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    shared: &Shared,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        let faults = shared.faults();
        if number < faults.silent_below.max(faults.without_replies_below) {
            return pending().await;
        }
        let drops = shared.change(|faults| {
            let drops = std::mem::take(&mut faults.drops_next_reply);
            faults.dropped_replies += u64::from(drops);
            drops
        });
        if drops {
            return Ok(());
        }
        delay(faults.delay).await;
        to.write_all(&bytes[..count]).await?;
    }
}

async fn delay(one_way: Duration) {
    if !one_way.is_zero() {
        sleep(one_way).await;
    }
}
