use std::io::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::tasks::AbortOnDrop;

/// A network between client and server that can be made slow or lossy.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    faults: Arc<Faults>,
    _accepting: AbortOnDrop<()>,
}

#[derive(Debug)]
struct Faults {
    delay_ms: AtomicU64,
    swallow: AtomicBool,
    swallowed: AtomicU64,
    refuse: AtomicBool,
    cuts: watch::Sender<()>,
    connections: AtomicU64,
    /// Connections with a smaller number carry nothing any more.
    stalled_below: AtomicU64,
    /// On connections with a smaller number, what the client sent is kept until this is zero again.
    frozen_below: watch::Sender<u64>,
    frozen: AtomicU64,
}

impl Proxy {
    /// In front of a server on 127.0.0.1.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let faults = Arc::new(Faults {
            delay_ms: AtomicU64::new(0),
            swallow: AtomicBool::new(false),
            swallowed: AtomicU64::new(0),
            refuse: AtomicBool::new(false),
            cuts: watch::Sender::new(()),
            connections: AtomicU64::new(0),
            stalled_below: AtomicU64::new(0),
            frozen_below: watch::Sender::new(0),
            frozen: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&faults)));
        Self { port, faults, _accepting: AbortOnDrop(accepting) }
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How to connect through it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Holds everything back for so long, each way.
    pub fn delay(&self, delay: Duration) {
        self.faults.delay_ms.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Loses the next bytes that the server sends, and with them the connection: the server has carried out what the
    /// client gets no answer to.
    pub fn swallow_next_reply(&self) {
        self.faults.swallow.store(true, Ordering::Release);
    }

    /// How many replies were lost.
    pub fn swallowed(&self) -> u64 {
        self.faults.swallowed.load(Ordering::Acquire)
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        self.faults.cuts.send_replace(());
    }

    /// Leaves all connections open, but nothing comes through them any more. New ones are as before.
    pub fn stall(&self) {
        self.faults.stalled_below.store(self.faults.connections.load(Ordering::Acquire), Ordering::Release);
    }

    /// Keeps back what is sent next on each of the connections that there are, also when they break, and loses what
    /// is sent after it. New ones are as before.
    pub fn freeze(&self) {
        self.faults.frozen_below.send_replace(self.faults.connections.load(Ordering::Acquire));
    }

    /// How many connections keep something back.
    pub fn frozen(&self) -> u64 {
        self.faults.frozen.load(Ordering::Acquire)
    }

    /// Delivers what was kept back.
    pub fn thaw(&self) {
        self.faults.frozen_below.send_replace(0);
    }

    /// Whether new connections are broken at once.
    pub fn refuse(&self, refuse: bool) {
        self.faults.refuse.store(refuse, Ordering::Release);
    }
}

async fn accept(listener: TcpListener, server: u16, faults: Arc<Faults>) {
    while let Ok((client, _)) = listener.accept().await {
        if !faults.refuse.load(Ordering::Acquire) {
            tokio::spawn(relay(client, server, Arc::clone(&faults)));
        }
    }
}

/// Until either side ends or the connection is cut; both sides are closed then.
async fn relay(client: TcpStream, server: u16, faults: Arc<Faults>) -> Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let number = faults.connections.fetch_add(1, Ordering::AcqRel);
    let mut cuts = faults.cuts.subscribe();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        ended = pump(from_client, to_server, &faults, number, false) => ended,
        ended = pump(from_server, to_client, &faults, number, true) => ended,
        _ = cuts.changed() => Ok(()),
    }
}

/// When it thaws, whether or not the client is still there.
async fn deliver(mut to: OwnedWriteHalf, bytes: Vec<u8>, mut frozen_below: watch::Receiver<u64>) -> Result<()> {
    let _ = frozen_below.wait_for(|below| *below == 0).await;
    to.write_all(&bytes).await
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    faults: &Faults,
    number: u64,
    replies: bool,
) -> Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        if number < faults.stalled_below.load(Ordering::Acquire) {
            return std::future::pending().await;
        }
        if replies && faults.swallow.swap(false, Ordering::AcqRel) {
            faults.swallowed.fetch_add(1, Ordering::AcqRel);
            return Ok(());
        }
        if !replies && number < *faults.frozen_below.borrow() {
            bytes.truncate(count);
            tokio::spawn(deliver(to, bytes, faults.frozen_below.subscribe()));
            faults.frozen.fetch_add(1, Ordering::AcqRel);
            return std::future::pending().await;
        }
        let delay = Duration::from_millis(faults.delay_ms.load(Ordering::Relaxed));
        if !delay.is_zero() {
            sleep(delay).await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}
