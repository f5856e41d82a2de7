//! One connection to an agent: steps go out, each with a number, and its reply comes back under that.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Error, ErrorKind, GrantRef, LockKey, Notification, Result, Subscription};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::pipe::{Lines, NoLine, Outbox};
use crate::protocol::line;
use crate::wire::{BATCH, LONGEST_REPLY, Reply, STEPS, Served, Step};

/// A connection that lasts as long as anybody has it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) served: Served,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Who waits for what comes.
#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    /// How many lines the agent has sent.
    heard: u64,
    has_ended: bool,
    steps: HashMap<u64, oneshot::Sender<Reply>>,
    subscriptions: HashMap<u64, mpsc::UnboundedSender<Notification>>,
}

/// A step that is on its way.
pub(crate) struct Sent {
    number: u64,
    /// What the agent had sent before.
    heard: u64,
    reply: oneshot::Receiver<Reply>,
    connection: Arc<Connection>,
}

/// What the store tells of one key, until this is dropped.
#[derive(Debug)]
pub(crate) struct Notified {
    number: u64,
    connection: Arc<Connection>,
    notifications: mpsc::UnboundedReceiver<Notification>,
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Connects on the runtime that this is called on, with the task that ends with the connection. Nothing was asked of the store when it
    /// fails.
    pub(crate) async fn open(path: &Path, within: Duration) -> Result<(Arc<Self>, JoinHandle<()>)> {
        let unavailable = || Error::new(ErrorKind::Unavailable, "connect").at(&path.display().to_string());
        let opened = async {
            let stream = UnixStream::connect(path).await.map_err(|cause| unreached(path, &cause))?;
            let (read, write) = stream.into_split();
            let mut output = Outbox::new(write, line(&json!({ "steps": STEPS })));
            let mut input = Lines::new(read, Vec::new(), LONGEST_REPLY);
            // An agent that refuses may have closed the connection already: what it said is there all the same.
            while !output.is_empty() && output.send().await.is_ok() {}
            let closed = |_: NoLine| unavailable().detail("the agent closed the connection");
            input.next().await.map_err(closed)?;
            let served = input.next().await.map_err(closed)?;
            let served =
                serde_json::from_slice(&served).map_err(|_| refused(&served).at(&path.display().to_string()))?;
            Ok((served, input, output))
        };
        let (served, mut input, mut output) =
            timeout(within, opened).await.unwrap_or_else(|_| Err(unavailable().detail("the agent gave no answer")))?;
        let (lines, mut asked) = mpsc::unbounded_channel::<Vec<u8>>();
        let connection = Arc::new(Self { served, lines, waiting: Arc::default() });
        let ends = Ends(Arc::clone(&connection.waiting));
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    sent = output.send(), if !output.is_empty() => if sent.is_err() { return },
                    read = input.next() => match read.map(|read| serde_json::from_slice(&read)) {
                        Ok(Ok((number, reply))) => ends.tell(number, reply),
                        _ => return,
                    },
                    line = asked.recv() => match line {
                        Some(line) => output.put(&line),
                        None => return,
                    },
                }
            }
        });
        Ok((connection, task))
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.waiting).has_ended
    }

    /// Sends a step, and lets `told` hear what comes of it after its reply.
    pub(crate) fn send(
        self: &Arc<Self>,
        step: &Step,
        told: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<Sent> {
        let (to, reply) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.has_ended {
            return Err(Error::new(ErrorKind::Unavailable, "ask").detail("the agent closed the connection"));
        }
        waiting.last += 1;
        let (number, heard) = (waiting.last, waiting.heard);
        waiting.steps.insert(number, to);
        waiting.subscriptions.extend(told.map(|told| (number, told)));
        // Under the lock: the agent carries steps out in the order in which they come.
        self.put(number, step);
        Ok(Sent { number, heard, reply, connection: Arc::clone(self) })
    }

    fn put(&self, number: u64, step: &Step) {
        let _ = self.lines.send(line(&(number, step)));
    }

    /// Subscribes to what the store tells of a key.
    pub(crate) fn subscribe(self: &Arc<Self>, key: &LockKey) -> Result<(Sent, Notified)> {
        let (tell, notifications) = mpsc::unbounded_channel();
        let sent = self.send(&Step::Subscribe(key.clone()), Some(tell))?;
        let notified = Notified { number: sent.number, connection: Arc::clone(self), notifications };
        Ok((sent, notified))
    }

    /// Tells the agent what this process holds, and for how long from now.
    pub(crate) fn holds(&self, grants: &[(GrantRef, Duration)]) {
        for some in grants.chunks(BATCH) {
            self.put(0, &Step::Holds(some.to_vec()));
        }
    }

    /// Ends the connection for all that use it.
    pub(crate) fn end(&self) {
        lock(&self.waiting).end();
    }
}

impl Sent {
    pub(crate) async fn answer<T: DeserializeOwned>(self, within: Duration) -> Result<T> {
        let unknown = |why| Err(Error::new(ErrorKind::Indeterminate, "ask").detail(why));
        match timeout(within, self.reply).await {
            Ok(Ok(reply)) => reply.answer(),
            Ok(Err(_)) => unknown("the agent closed the connection"),
            Err(_) => {
                // Of an agent that says nothing, whoever asks next finds out whether it is there. One that answers others is.
                if lock(&self.connection.waiting).heard == self.heard {
                    self.connection.end();
                }
                unknown("the agent gave no answer")
            }
        }
    }
}

/// Why there is no connection, and what to do.
fn unreached(path: &Path, cause: &io::Error) -> Error {
    let is_socket = fs::metadata(path).map(|found| found.file_type().is_socket());
    let (kind, why) = match cause.kind() {
        io::ErrorKind::PermissionDenied => (ErrorKind::Backend, "this user may not ask the agent".to_owned()),
        io::ErrorKind::InvalidInput => (ErrorKind::InvalidOptions, cause.to_string()),
        _ if matches!(is_socket, Ok(false)) => (ErrorKind::Backend, "it is no socket".to_owned()),
        _ => (ErrorKind::Unavailable, format!("no agent serves there: {cause}")),
    };
    Error::new(kind, "connect").detail(why).at(&path.display().to_string())
}

/// What an agent said in place of what it serves.
fn refused(said: &[u8]) -> Error {
    let said: Value = serde_json::from_slice(said).unwrap_or_default();
    let message = said["message"].as_str().unwrap_or("what answers there is no agent of this version").to_owned();
    let kind = if said["retry"] == true { ErrorKind::Unavailable } else { ErrorKind::Backend };
    Error::new(kind, "connect").detail(message)
}

impl Waiting {
    fn end(&mut self) {
        self.has_ended = true;
        self.steps.clear();
        self.subscriptions.clear();
    }
}

/// Ends the waits of a connection with its task, also where the runtime ends.
struct Ends(Arc<Mutex<Waiting>>);

impl Ends {
    fn tell(&self, number: u64, reply: Reply) {
        let mut waiting = lock(&self.0);
        waiting.heard += 1;
        if let Reply::Notified(notification) = reply {
            let _ = waiting.subscriptions.get(&number).map(|told| told.send(notification));
        } else if let Some(step) = waiting.steps.remove(&number) {
            let _ = step.send(reply);
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        lock(&self.0).end();
    }
}

#[async_trait]
impl Subscription for Notified {
    async fn next(&mut self) -> Notification {
        self.notifications.recv().await.unwrap_or(Notification::Ended)
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        let mut waiting = lock(&self.connection.waiting);
        waiting.steps.remove(&self.number);
        waiting.subscriptions.remove(&self.number);
        self.connection.put(self.number, &Step::Unsubscribe(self.number));
    }
}
