use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::Shared;
use futures::{FutureExt, Stream, StreamExt, stream};
use leasehold_core::{BoxFuture, Error, ErrorKind, Home, OwnerId, Result};
use prost::Message;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::address::Address;
use crate::failure::{Failure, classify, innermost, is_about_tls};
use crate::proto::{AUTHENTICATE, AuthenticateRequest, AuthenticateResponse};

/// The servers of one address. All requests go to one of them, as long as that answers; then to the next one. It need not be the
/// leader: each server asks the leader itself.
pub(crate) struct Nodes {
    pub(crate) address: Address,
    home: Option<Home>,
    connections: Vec<Mutex<Option<Connecting>>>,
    /// Counts on with every node that was left.
    current: AtomicUsize,
    closed: watch::Sender<bool>,
}

/// A connection to one server, which is logged in where the address names a user.
#[derive(Clone)]
struct Connection {
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

/// The connection to one server, or the task that opens it, for all who wait for it: one that is not polled any more must not keep
/// the others from it.
type Connecting = Shared<BoxFuture<'static, Result<Connection, NotConnected>>>;

/// Why there is no connection.
#[derive(Clone)]
enum NotConnected {
    Unreachable(String),
    /// Why there is no agreement on TLS.
    Untrusted(String),
    /// What the server says to the login.
    Refused(Status),
}

/// A request under way at one node.
type Asked<A> = BoxFuture<'static, Result<A, Status>>;

/// A stream of answers. Dropping it ends the request, too: while a request goes on, its server goes on to answer.
pub(crate) struct Listening<A> {
    pub(crate) answers: Streaming<A>,
    _open: oneshot::Sender<()>,
}

/// What a request is about.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// The operation that errors name.
    pub(crate) operation: &'static str,
    pub(crate) path: &'static str,
    /// Whether it changes who holds a key, so that its outcome is unknown if the answer is lost.
    pub(crate) writes: bool,
}

/// How long an answer is waited for, over all nodes.
pub(crate) const LIMIT: Duration = Duration::from_millis(2_500);

/// How long one node has to answer. The next one may still answer after it.
const EACH: Duration = Duration::from_millis(1_500);

/// The same where no other node is asked after it.
const ALONE: Duration = Duration::from_millis(2_200);

/// How long a node has to accept a connection.
const CONNECT: Duration = Duration::from_millis(700);

/// A silent connection is noticed within this and [`EACH`]. etcd refuses clients that ask more often than every 5 s.
const PING: Duration = Duration::from_secs(6);

impl Nodes {
    /// The servers of this address, beginning with any of them. Nothing is sent.
    pub(crate) fn new(mut address: Address) -> Self {
        let tune = |endpoint: Endpoint| {
            let endpoint = endpoint.connect_timeout(CONNECT).tcp_nodelay(true);
            endpoint.http2_keep_alive_interval(PING).keep_alive_timeout(EACH).keep_alive_while_idle(true)
        };
        address.endpoints = address.endpoints.into_iter().map(tune).collect();
        let connections = address.endpoints.iter().map(|_| Mutex::default()).collect();
        let any = usize::from(OwnerId::random().as_bytes()[0]);
        Self {
            address,
            home: Home::here(),
            connections,
            current: AtomicUsize::new(any),
            closed: watch::Sender::new(false),
        }
    }

    /// Sends a request to the present node. If it was definitely not carried out because of the node, it is sent to the next
    /// ones, too.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if nothing was changed, [`ErrorKind::Indeterminate`] if the answer to a request that writes is
    /// missing, [`ErrorKind::Backend`] if the server refused for good, [`ErrorKind::Closed`] after [`close`](Self::close).
    pub(crate) fn ask<Q, A>(&self, step: Step, request: Q) -> BoxFuture<'_, Result<A>>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.at_some_node(step, move |connection| Box::pin(unary(connection, step.path, request.clone())))
    }

    /// Sends these requests as a stream, and collects as many answers.
    pub(crate) fn ask_each<Q, A>(&self, step: Step, requests: Vec<Q>) -> BoxFuture<'_, Result<Vec<A>>>
    where
        Q: Message + 'static + Clone,
        A: Message + Default + 'static,
    {
        let all = move |connection| -> Asked<Vec<A>> {
            let (sent, wanted) = (stream::iter(requests.clone()), requests.len());
            Box::pin(async move {
                let mut answers = streaming::<Q, A>(connection, step.path, sent).await?;
                let mut each = Vec::with_capacity(wanted);
                while each.len() < wanted {
                    each.push(answers.message().await?.ok_or_else(|| Status::unknown("the stream ended early"))?);
                }
                Ok(each)
            })
        };
        self.at_some_node(step, all)
    }

    /// Begins a stream of answers to this request, which stays open as long as what is answered.
    pub(crate) fn listen<Q, A>(&self, step: Step, request: Q) -> BoxFuture<'_, Result<Listening<A>>>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let listen = move |connection| -> Asked<Listening<A>> {
            let (open, ended) = oneshot::channel();
            let requests = stream::iter([request.clone()]).chain(stream::pending()).take_until(ended);
            Box::pin(async move {
                Ok(Listening { answers: streaming(connection, step.path, requests).await?, _open: open })
            })
        };
        self.at_some_node(step, listen)
    }

    /// The error for a stream that broke off; leaves the node that it came from.
    pub(crate) fn broke_off(&self, step: Step, status: &Status) -> Error {
        let failure = classify(step.operation, status, step.writes, &self.address.secrets);
        self.current.fetch_add(1, Ordering::Relaxed);
        failure.error
    }

    fn at_some_node<A: Send + 'static>(
        &self,
        step: Step,
        ask: impl Fn(Connection) -> Asked<A> + Send + Sync + 'static,
    ) -> BoxFuture<'_, Result<A>> {
        Box::pin(async move {
            let mut closed = self.closed.subscribe();
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => Err(Error::new(ErrorKind::Closed, step.operation)),
                done = timeout(LIMIT, self.one_after_another(step, &ask)) => {
                    let late = || Failure { error: no_answer(step, LIMIT), elsewhere: true, answered: false };
                    done.unwrap_or_else(|_| Err(self.located(self.turn().1, late()).error))
                }
            }
        })
    }

    async fn one_after_another<A>(
        &self,
        step: Step,
        ask: &(impl Fn(Connection) -> Asked<A> + Send + Sync),
    ) -> Result<A> {
        let mut tries = self.connections.len();
        let mut told = None;
        loop {
            let (turn, node) = self.turn();
            let Failure { error, elsewhere, answered } = match self.at(node, step, ask).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => self.located(node, failure),
            };
            if elsewhere {
                *locked(&self.connections[node]) = None;
                // Only the first that fails on a node leaves it.
                let next = turn.wrapping_add(1);
                let _ = self.current.compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            let is_final = !elsewhere || error.kind() == ErrorKind::Indeterminate;
            // What a server says explains more than that another one cannot be reached. Only if none can be trusted, waiting
            // does not help.
            let known = told.filter(|told: &Error| !is_final && !answered && told.kind() == ErrorKind::Unavailable);
            let error = known.unwrap_or(error);
            if is_final || tries == 0 {
                return Err(error);
            }
            told = Some(error);
            // With a single node: once more, on a new connection.
            tries -= 1;
        }
    }

    /// How often a node was left, and which one is asked now.
    fn turn(&self) -> (usize, usize) {
        let turn = self.current.load(Ordering::Relaxed);
        (turn, turn % self.connections.len())
    }

    /// Names the node that is at fault, where that is not told yet.
    fn located(&self, node: usize, failure: Failure) -> Failure {
        let server = self.address.endpoints[node].uri().authority().map_or("", |authority| authority.as_str());
        if !failure.elsewhere || failure.error.to_string().contains(server) {
            return failure;
        }
        Failure { error: failure.error.at(&format!("etcd://{server}")), ..failure }
    }

    async fn at<A>(
        &self,
        node: usize,
        step: Step,
        ask: &(impl Fn(Connection) -> Asked<A> + Send + Sync),
    ) -> Result<A, Failure> {
        let connection = self.connection(node, step.operation).await?;
        // What writes is not sent to another node when there was no answer.
        let limit = if step.writes || self.connections.len() == 1 { ALONE } else { EACH };
        match timeout(limit, ask(connection)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(classify(step.operation, &status, step.writes, &self.address.secrets)),
            Err(_) => Err(Failure { error: no_answer(step, limit), elsewhere: true, answered: false }),
        }
    }

    async fn connection(&self, node: usize, operation: &'static str) -> Result<Connection, Failure> {
        if let Some(home) = &self.home {
            home.check(operation).map_err(|error| Failure { error, elsewhere: false, answered: false })?;
        }
        let connecting = locked(&self.connections[node]).get_or_insert_with(|| self.open(node)).clone();
        let failed = match connecting.clone().await {
            Ok(connection) => return Ok(connection),
            Err(failed) => failed,
        };
        // Whoever comes next tries anew.
        locked(&self.connections[node]).take_if(|known| known.ptr_eq(&connecting));
        Err(match failed {
            NotConnected::Refused(status) => classify(operation, &status, false, &self.address.secrets),
            NotConnected::Unreachable(why) => {
                let error = Error::new(ErrorKind::Unavailable, operation).detail(self.address.secrets.hide(&why));
                Failure { error, elsewhere: true, answered: false }
            }
            NotConnected::Untrusted(why) => {
                let error = Error::new(ErrorKind::Backend, operation).detail(UNTRUSTED).caused_by(why);
                Failure { error, elsewhere: true, answered: false }
            }
        })
    }

    /// Opens a connection to this node. It is driven by the runtime on which it is opened.
    fn open(&self, node: usize) -> Connecting {
        let (endpoint, user) = (self.address.endpoints[node].clone(), self.address.user.clone());
        let opened = self.runtime().map(|runtime| runtime.spawn(connect(endpoint, user)));
        let opened = async {
            let unreachable = |why: &str| Err(NotConnected::Unreachable(why.to_owned()));
            match opened {
                Some(opened) => opened.await.unwrap_or_else(|_| unreachable("the runtime that was connecting ended")),
                None => unreachable("there is no tokio runtime here"),
            }
        };
        opened.boxed().shared()
    }

    /// Closes the connections. Requests that are under way, or sent later, fail with [`ErrorKind::Closed`].
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
        for connection in &self.connections {
            *locked(connection) = None;
        }
    }

    /// The runtime on which all connections are driven.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        Home::for_all(self.home.as_ref())
    }
}

/// The advice for a server that waiting does not make a trusted one.
const UNTRUSTED: &str = "no agreement on TLS: check the certificate, its name and the CA, or name another: ?ca=/path";

/// Connects, and logs in where there is a user.
async fn connect(endpoint: Endpoint, user: Option<(String, String)>) -> Result<Connection, NotConnected> {
    let host = endpoint.uri().authority().map(ToString::to_string).unwrap_or_default();
    let unreachable = |why: String| NotConnected::Unreachable(format!("{host}: {why}"));
    let channel = match timeout(CONNECT, endpoint.connect()).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(why)) if is_about_tls(&why) => {
            return Err(NotConnected::Untrusted(format!("{host}: {}", innermost(&why))));
        }
        Ok(Err(why)) => return Err(unreachable(innermost(&why))),
        Err(_) => return Err(unreachable(format!("no connection within {CONNECT:?}"))),
    };
    let opened = Connection { channel, token: None };
    let Some((name, password)) = user else { return Ok(opened) };
    let asked = unary(opened.clone(), AUTHENTICATE, AuthenticateRequest { name, password });
    let asked =
        timeout(EACH, asked).await.map_err(|_| unreachable(format!("no answer to the login within {EACH:?}")))?;
    let AuthenticateResponse { token } = asked.map_err(NotConnected::Refused)?;
    let odd = |_| NotConnected::Refused(Status::unknown("the token of a login cannot be sent back"));
    Ok(Connection { token: Some(token.parse().map_err(odd)?), ..opened })
}

async fn unary<Q, A>(connection: Connection, path: &'static str, message: Q) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = ready(connection.channel).await?;
    let path = PathAndQuery::from_static(path);
    let answer = grpc.unary(request(message, connection.token), path, ProstCodec::<Q, A>::default()).await?;
    Ok(answer.into_inner())
}

async fn streaming<Q, A>(
    connection: Connection,
    path: &'static str,
    messages: impl Stream<Item = Q> + Send + 'static,
) -> Result<Streaming<A>, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = ready(connection.channel).await?;
    let path = PathAndQuery::from_static(path);
    let answer = grpc.streaming(request(messages, connection.token), path, ProstCodec::<Q, A>::default()).await?;
    Ok(answer.into_inner())
}

async fn ready(channel: Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel);
    match grpc.ready().await {
        Ok(()) => Ok(grpc),
        Err(failed) => Err(Status::from_error(Box::new(failed))),
    }
}

fn request<M>(message: M, token: Option<MetadataValue<Ascii>>) -> Request<M> {
    let mut request = Request::new(message);
    // A server without a leader refuses at once, and ends streams.
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
    request
}

fn no_answer(step: Step, limit: Duration) -> Error {
    let kind = if step.writes { ErrorKind::Indeterminate } else { ErrorKind::Unavailable };
    Error::new(kind, step.operation).detail(format!("no answer within {limit:?}"))
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nodes").field(&self.address).finish()
    }
}
