use std::future::pending;
use std::io;
use std::mem::take;
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

#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    server: u16,
    delay: Duration,
    refuses: bool,
    drops_next_reply: bool,
    tears_next_reply: bool,
    /// How many connections there have been. A connection's number is the count before it.
    connections: u64,
    /// Connections with a smaller number carry no requests any more.
    without_requests_below: u64,
    /// Connections with a smaller number carry no replies any more.
    without_replies_below: u64,
    /// Connections with a smaller number hold their next request.
    holding_below: u64,
    /// How many connections are open now.
    open: u64,
    effects: Effects,
}

/// How often each fault of a [`Proxy`] had an effect: a fault that hit nothing shows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Connections that were [cut](Proxy::cut).
    pub cut: u64,
    /// Connections that were [refused](Proxy::refuse).
    pub refused: u64,
    /// Pieces that were [delayed](Proxy::delay).
    pub delayed: u64,
    /// Requests that were [held](Proxy::hold_requests), whether or not they were released.
    pub held: u64,
    /// Requests that never reached the server: one for each connection that fell silent.
    pub lost_requests: u64,
    /// Replies that never reached the client: one for each connection that fell silent.
    pub lost_replies: u64,
    /// Replies that were [dropped](Proxy::drop_next_reply) together with their connection.
    pub dropped_replies: u64,
    /// Replies of which a part was [delivered](Proxy::tear_next_reply).
    pub torn_replies: u64,
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
        let faults = Faults { server, ..Faults::default() };
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
        self.effects().dropped_replies
    }

    /// Delivers the first half of the next bytes that the server sends, and breaks that connection.
    pub fn tear_next_reply(&self) {
        self.change(|faults| faults.tears_next_reply = true);
    }

    /// How often the faults had an effect so far.
    pub fn effects(&self) -> Effects {
        self.shared.faults().effects
    }

    /// How many connections clients have open.
    pub fn open(&self) -> u64 {
        self.shared.faults().open
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
        self.effects().held
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
        self.change(|faults| faults.lose(faults.connections, faults.connections));
    }

    /// Drops everything on existing and new connections from now on; they stay open.
    pub fn black_hole_all(&self) {
        self.change(|faults| faults.lose(u64::MAX, u64::MAX));
    }

    /// Drops the requests on existing and new connections from now on; they stay open, and replies still arrive.
    pub fn lose_all_requests(&self) {
        self.change(|faults| faults.lose(u64::MAX, 0));
    }

    /// Drops the replies on existing and new connections from now on; they stay open, and requests still arrive.
    pub fn lose_all_replies(&self) {
        self.change(|faults| faults.lose(0, u64::MAX));
    }

    /// Ends all faults, and cuts the existing connections, of which some have lost a part of what they carried.
    pub fn heal(&self) {
        self.change(|faults| {
            faults.lose(0, 0);
            (faults.delay, faults.refuses) = (Duration::ZERO, false);
            (faults.drops_next_reply, faults.tears_next_reply) = (false, false);
        });
        self.release();
        self.cut();
    }

    /// Says whether new connections are broken at once.
    pub fn refuse(&self, refuses: bool) {
        self.change(|faults| faults.refuses = refuses);
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.change(change);
    }
}

impl Faults {
    /// Connections with a smaller number carry no requests, or no replies.
    fn lose(&mut self, requests_below: u64, replies_below: u64) {
        (self.without_requests_below, self.without_replies_below) = (requests_below, replies_below);
    }
}

impl Shared {
    fn faults(&self) -> Faults {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        change(&mut self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn delay(&self, one_way: Duration) {
        if !one_way.is_zero() {
            self.change(|faults| faults.effects.delayed += 1);
            sleep(one_way).await;
        }
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
            faults.effects.refused += u64::from(faults.refuses);
            (faults.refuses, faults.server, faults.connections.saturating_sub(1))
        });
        if !refuses {
            shared.change(|faults| faults.open += 1);
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                // A connection that broke is one that ended.
                drop(relay(client, server, number, &shared).await);
                shared.change(|faults| faults.open -= 1);
            });
        }
    }
}

async fn relay(client: TcpStream, server: u16, number: u64, shared: &Shared) -> io::Result<()> {
    let mut cuts = shared.cuts.subscribe();
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = forward_requests(from_client, to_server, number, shared);
    let replies = async {
        tokio::select! {
            ended = forward_replies(from_server, to_client, number, shared) => ended,
            _ = cuts.changed() => {
                shared.change(|faults| faults.effects.cut += 1);
                Ok(())
            }
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
        if number < faults.without_requests_below {
            shared.change(|faults| faults.effects.lost_requests += 1);
            drop(cuts.changed().await);
            return Ok(());
        }
        if number < faults.holding_below {
            // With this half, so that a cut closes the connection of the client altogether.
            drop(from);
            shared.change(|faults| faults.effects.held += 1);
            while number < shared.faults().holding_below {
                drop(releases.changed().await);
            }
            return to.write_all(&bytes[..count]).await;
        }
        shared.delay(faults.delay).await;
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
        if number < faults.without_replies_below {
            shared.change(|faults| faults.effects.lost_replies += 1);
            return pending().await;
        }
        let (drops, tears) = shared.change(|faults| {
            let drops = take(&mut faults.drops_next_reply);
            let tears = !drops && take(&mut faults.tears_next_reply);
            faults.effects.dropped_replies += u64::from(drops);
            faults.effects.torn_replies += u64::from(tears);
            (drops, tears)
        });
        if drops {
            return Ok(());
        }
        if tears {
            return to.write_all(&bytes[..count / 2]).await;
        }
        shared.delay(faults.delay).await;
        to.write_all(&bytes[..count]).await?;
    }
}
