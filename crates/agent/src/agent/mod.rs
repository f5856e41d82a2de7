//! The agent: one connection to the store, and a Unix socket for all processes of a host.

mod peer;
mod positions;
mod shared;
mod socket;
mod steps;
mod subscriptions;
mod systemd;

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{Capability, Locker, Locks};
use rustix::net::sockopt::socket_acceptconn;
use tokio::io::{AsyncWriteExt, empty, sink};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::peer::{Peer, accounts};
use self::positions::Positions;
use self::shared::{Counted, Shared};
use self::socket::{Socket, bind};
use self::subscriptions::Subscriptions;
use self::systemd::{Handed, from_memory, handed, in_memory};
use crate::connection::{Begin, End, Stop, Suspended, serve};
use crate::policy::{Limits, Policy};
use crate::protocol::Request;

pub use self::systemd::Systemd;

/// The name under which systemd stores what the connections were, and the beginning of the names of their sockets.
const STORED: &str = "leasehold-connections";
const STORED_SOCKET: &str = "leasehold-connection-";

const ONE_CONNECTION: Limits = Limits { keys: 0, connections: 1 };

/// Grants locks to the processes of this host, each on a connection of its own.
#[derive(Debug)]
pub struct Agent {
    shared: Arc<Shared>,
    systemd: Systemd,
    stop: watch::Sender<Option<Stop>>,
    /// A task for each. Dropping the agent ends them, and releases what they held.
    connections: JoinSet<Option<Left>>,
}

/// A connection that was suspended: its socket, and what it was.
type Left = (StdStream, Suspended);

impl Agent {
    /// An agent for this store, with these rules. It tells its clients where the store is, a text without a password: by that they know
    /// an agent of another store, at which what they hold would be free.
    #[must_use]
    pub fn new(locks: Locks, place: &str, policy: Policy, systemd: Systemd) -> Self {
        let positions = Positions::default();
        let shared = Arc::new(Shared {
            locks,
            place: place.to_owned(),
            policy,
            usage: Mutex::default(),
            subscriptions: Subscriptions::of(&positions),
            positions,
        });
        Self { shared, systemd, stop: watch::Sender::new(None), connections: JoinSet::new() }
    }

    /// What whoever starts it should know: that a restart releases what is held, although systemd would keep the connections; and whom the
    /// policy names although this host does not know them, so that their lines allow nobody anything.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let why = self.shared.locks.capabilities().why_not(Capability::Detach).filter(|_| self.systemd.room > 0);
        let releases = why.map(|why| format!("a restart releases what is held: {why}"));
        let strangers = self.shared.policy.strangers(&accounts("/etc/passwd"), &accounts("/etc/group"));
        let unknown = |who| format!("the policy names {who}, whom /etc/passwd and /etc/group do not know");
        releases.into_iter().chain(strangers.into_iter().map(unknown)).collect()
    }

    /// Serves at the socket that systemd hands over, else at one at `path`, until `told_to_end`. Then either everything is
    /// released, or systemd keeps so many connections as this answers, and their locks, for the next process.
    ///
    /// # Errors
    /// When there is no listening at the socket, or systemd hands over what is none.
    pub async fn run(mut self, path: &Path, told_to_end: impl Future<Output = ()>) -> io::Result<usize> {
        let (listener, _removed_at_the_end) = self.open(path)?;
        self.systemd.tell("READY=1", &[])?;
        let mut told_to_end = std::pin::pin!(told_to_end);
        loop {
            tokio::select! {
                biased;
                () = &mut told_to_end => break,
                Some(_) = self.connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.welcome(stream),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        // Without a pause this would go round as fast as it can, as long as there is no descriptor left.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
        // The locks are given back whether or not anybody hears of it.
        let _ = self.systemd.tell("STOPPING=1", &[]);
        self.end().await
    }

    /// Goes on with the connections of the process before, and begins to listen.
    fn open(&mut self, path: &Path) -> io::Result<(UnixListener, Option<Socket>)> {
        let (stored, mut sockets): (Vec<_>, Vec<_>) =
            handed()?.into_iter().partition(|(name, _)| name.starts_with(STORED_SOCKET) || name == STORED);
        self.go_on_with(stored)?;
        let (listener, socket) = match (sockets.pop(), sockets.is_empty()) {
            (None, _) => {
                let (listener, socket) = bind(path)?;
                (listener, Some(socket))
            }
            (Some((_, fd)), true) if socket_acceptconn(&fd)? => (fd.into(), None),
            _ => return Err(io::Error::other("systemd hands over something else than one listening socket")),
        };
        listener.set_nonblocking(true)?;
        Ok((UnixListener::from_std(listener)?, socket))
    }

    fn go_on_with(&mut self, stored: Vec<Handed>) -> io::Result<()> {
        let mut sockets = HashMap::new();
        let mut connections: Vec<(String, Suspended)> = Vec::new();
        for (name, fd) in stored {
            // As long as it is stored, its connection stays open.
            self.systemd.tell(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), &[])?;
            if name == STORED {
                connections = serde_json::from_slice(&from_memory(fd)?)?;
            } else {
                sockets.insert(name, fd);
            }
        }
        for (name, suspended) in connections {
            let begin = Begin::GoOn(suspended);
            let Some(fd) = sockets.remove(&name) else {
                self.release(begin);
                continue;
            };
            let stream = StdStream::from(fd);
            stream.set_nonblocking(true)?;
            let stream = UnixStream::from_std(stream)?;
            let peer = Peer::of(&stream.peer_cred()?);
            let (counted, _) = self.shared.count(&peer, ONE_CONNECTION);
            self.spawn(stream, peer, counted, begin);
        }
        Ok(())
    }

    /// Ends the connection of a client that died while there was no agent: else its lock would stay until the lease ends.
    fn release(&mut self, begin: Begin) {
        let shared = Arc::clone(&self.shared);
        self.connections.spawn(async move {
            serve((empty(), sink()), begin, &shared.locks, |_| Ok(()), pending()).await;
            None
        });
    }

    fn welcome(&mut self, stream: UnixStream) {
        let Ok(credentials) = stream.peer_cred() else { return };
        let peer = Peer::of(&credentials);
        match self.shared.take(&peer, ONE_CONNECTION) {
            Ok(counted) => self.spawn(stream, peer, counted, Begin::Ask),
            // Nothing was written before, so that there is room for it.
            Err(refusal) => drop(stream.try_write(&refusal.at_the_door())),
        }
    }

    fn spawn(&mut self, stream: UnixStream, peer: Peer, counted: Counted, begin: Begin) {
        let shared = Arc::clone(&self.shared);
        self.connections.spawn(connection(stream, (peer, counted), begin, shared, self.stop.subscribe()));
    }

    async fn end(mut self) -> io::Result<usize> {
        // A socket for each connection, and what they were.
        let has_room = self.connections.len() < self.systemd.room;
        self.stop.send_replace(Some(if has_room { Stop::Suspend } else { Stop::Release }));
        let mut left = Vec::new();
        while let Some(ended) = self.connections.join_next().await {
            left.extend(ended.ok().flatten());
        }
        if left.is_empty() {
            return Ok(0);
        }
        let named = left.into_iter().enumerate().map(|(at, left)| (format!("{STORED_SOCKET}{at}"), left));
        let (sockets, connections): (Vec<_>, Vec<_>) =
            named.map(|(name, (stream, suspended))| ((name.clone(), stream), (name, suspended))).unzip();
        let store = |name: &str, fd: BorrowedFd<'_>| self.systemd.tell(&format!("FDSTORE=1\nFDNAME={name}"), &[fd]);
        store(STORED, in_memory(&serde_json::to_vec(&connections)?)?.as_fd())?;
        sockets.iter().try_for_each(|(name, stream)| store(name, stream.as_fd()))?;
        Ok(sockets.len())
    }
}

/// One client, from its first line to its end.
async fn connection(
    mut stream: UnixStream,
    (peer, _counted): (Peer, Counted),
    begin: Begin,
    shared: Arc<Shared>,
    mut told: watch::Receiver<Option<Stop>>,
) -> Option<Left> {
    let stop = async {
        let told = told.wait_for(Option::is_some).await.ok().and_then(|told| *told);
        told.unwrap_or(Stop::Release)
    };
    let admit = |request: &mut Request| shared.admit(&peer, request);
    let mut stop = std::pin::pin!(stop);
    match serve(stream.split(), begin, &shared.locks, admit, &mut stop).await {
        End::Suspended(suspended) => return Some((stream.into_std().ok()?, suspended)),
        End::Steps(version, rest) => steps::serve(stream.split(), (version, rest), &shared, &peer, stop).await,
        _ => {}
    }
    // Not only closed: of a connection that was handed over, this process has a second descriptor.
    let _ = stream.shutdown().await;
    None
}
