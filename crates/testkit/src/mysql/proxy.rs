use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Server;

/// An address that can be made to lead to another server, or be far away. It ends with this value.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
    cut: watch::Sender<u64>,
    _tasks: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    target: u16,
    one_way: Duration,
    connections: u64,
    /// What those before this one send is kept back.
    kept_back: u64,
    /// And what they are answered.
    unanswered: u64,
}

impl Proxy {
    /// One that leads to this server.
    ///
    /// # Panics
    /// If there is no port.
    pub async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let port = listener.local_addr().map_or(0, |address| address.port());
        let state = Arc::new(Mutex::new(State {
            target: server.port(),
            one_way: Duration::ZERO,
            connections: 0,
            kept_back: 0,
            unanswered: 0,
        }));
        let (cut, cuts) = watch::channel(0);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state), cuts));
        Self { port, state, cut, _tasks: tasks }
    }

    /// The server's URL by way of this address.
    pub fn url(&self, url: &str) -> String {
        let (before, after) = url.split_once("@127.0.0.1:").unwrap_or(("mysql://root", url));
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}@127.0.0.1:{}{after}", self.port)
    }

    /// New connections lead to this server; those there are stay where they are.
    pub fn lead_to(&self, server: &Server) {
        self.now(|state| state.target = server.port());
    }

    /// What is sent from now on takes so long, in each direction.
    pub fn take(&self, one_way: Duration) {
        self.now(|state| state.one_way = one_way);
    }

    /// What is sent on the connections that there are does not arrive, until it does.
    pub fn keep_back(&self) {
        self.now(|state| state.kept_back = state.connections);
    }

    /// What is answered on the connections that there are does not arrive any more.
    pub fn keep_answers_back(&self) {
        self.now(|state| state.unanswered = state.connections);
    }

    /// What was sent arrives.
    pub fn deliver(&self) {
        self.now(|state| state.kept_back = 0);
    }

    /// The connections that there are end for the client; what it had sent on them is still on its way.
    pub fn cut(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }

    fn now(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>, cuts: watch::Receiver<u64>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(carry(client, Arc::clone(&state), cuts.clone()));
    }
}

async fn carry(client: TcpStream, state: Arc<Mutex<State>>, mut cuts: watch::Receiver<u64>) {
    let (target, number) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.connections += 1;
        (state.target, state.connections - 1)
    };
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else { return };
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    cuts.mark_unchanged();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pass(from_client, to_server, |state| number < state.kept_back, &state);
    let back = async {
        tokio::select! {
            _ = pass(from_server, to_client, |state| number < state.unanswered, &state) => {}
            _ = cuts.changed() => {}
        }
    };
    drop(tokio::join!(there, back));
}

/// A chunk at a time: what comes later waits for what came before, as on a line.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    is_kept_back: impl Fn(&State) -> bool,
    state: &Mutex<State>,
) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        let now = || *state.lock().unwrap_or_else(PoisonError::into_inner);
        let one_way = now().one_way;
        if !one_way.is_zero() {
            sleep(one_way).await;
        }
        while is_kept_back(&now()) {
            sleep(Duration::from_millis(5)).await;
        }
        to.write_all(&chunk[..read]).await?;
    }
}
