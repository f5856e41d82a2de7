use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::{ClientLike, ClusterInterface};
use fred::types::config::{Options, Server};
use fred::types::{ClusterHash, CustomCommand, Value};
use leasehold_core::{Error, ErrorKind, Result};
use tokio::time::{sleep, timeout};

use crate::lifeline::{Doubt, Lifeline};
use crate::secrets::Secrets;
use crate::{Endpoint, error, settings};

/// How many commands may wait for their answers; more are refused before they are sent.
pub(crate) const MOST_IN_FLIGHT: usize = 10_000;

/// One server, Sentinel set or Cluster, over one connection each that all commands share. Clones share it.
///
/// An own connection ([`open`](Self::open)) ends with its last clone, or with [`close`](Self::close); a borrowed one
/// ([`borrow`](Self::borrow)) is left alone.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    client: Client,
    shown: String,
    secrets: Secrets,
    command_timeout: Duration,
    /// `None`: borrowed.
    lifeline: Option<Lifeline>,
    in_flight: AtomicUsize,
    closed: AtomicBool,
}

impl Connection {
    /// Connects with the settings that locks need.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) when nobody answers at that address, and
    /// [`Backend`](ErrorKind::Backend) when the server does not let us in; both say what to check.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn open(endpoint: &Endpoint, command_timeout: Duration) -> Result<Self> {
        let secrets = Secrets::of(endpoint.config());
        let unreachable = |error| error::unreachable(&endpoint.to_string(), &error, &secrets);
        let client = settings::builder(endpoint.config().clone(), command_timeout).build().map_err(unreachable)?;
        let lifeline = Lifeline::start(&client).await.map_err(unreachable)?;
        Ok(Self::new(client, endpoint.to_string(), command_timeout, Some(lifeline)))
    }

    /// Uses a client that somebody else made and will close.
    ///
    /// Its reconnection policy is the owner's business; timeouts and the rule that no command is sent twice are ours.
    pub fn borrow(client: Client, command_timeout: Duration) -> Self {
        let hosts: Vec<_> = client.client_config().server.hosts().iter().map(ToString::to_string).collect();
        Self::new(client, hosts.join(","), command_timeout, None)
    }

    fn new(client: Client, shown: String, command_timeout: Duration, lifeline: Option<Lifeline>) -> Self {
        let (in_flight, closed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let secrets = Secrets::of(&client.client_config());
        Self(Arc::new(Inner { client, shown, secrets, command_timeout, lifeline, in_flight, closed }))
    }

    /// Says goodbye to the server and ends the connection, if it is our own. Later commands fail with
    /// [`Closed`](ErrorKind::Closed).
    pub async fn close(&self) {
        if !self.0.closed.swap(true, Ordering::AcqRel)
            && let Some(lifeline) = &self.0.lifeline
        {
            lifeline.close().await;
        }
    }

    /// The driver's client.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// How long a command may take unless the caller says otherwise.
    pub fn command_timeout(&self) -> Duration {
        self.0.command_timeout
    }

    /// Whether keys are spread over nodes by hash slot, so that a script may touch those of one slot only.
    pub fn is_clustered(&self) -> bool {
        self.0.client.is_clustered()
    }

    /// The nodes that hold data: one, or every primary of a Cluster. `None` goes with any command to the only one.
    pub(crate) fn primaries(&self) -> Vec<Option<Server>> {
        match self.0.client.cached_cluster_state().filter(|_| self.is_clustered()) {
            Some(state) => state.unique_primary_nodes().into_iter().map(Some).collect(),
            None => vec![None],
        }
    }

    /// Sends one command and waits for its answer for at most `within`; before, as long again for a lost connection
    /// to come back.
    pub(crate) async fn send(
        &self,
        name: &'static str,
        arguments: Vec<Value>,
        target: Target,
        within: Duration,
    ) -> Result<Value, Failed> {
        /// A node may send us on, and the next one again.
        const REDIRECTIONS: usize = 3;
        self.ready(within).await.map_err(Failed::Here)?;
        let place = self.place().map_err(Failed::Here)?;
        let (slot, node) = match target {
            Target::Slot(slot) => (Some(slot), None),
            Target::Node(node) => (None, node),
        };
        let command = CustomCommand::new_static(name, slot.map_or(ClusterHash::Random, ClusterHash::Custom), false);
        let client = self.0.client.with_options(&self.options(within, node));
        let mut redirections = if self.is_clustered() { REDIRECTIONS } else { 0 };
        let answer = loop {
            if redirections == 0 {
                break client.custom(command, arguments).await;
            }
            let answer: Result<Value, DriverError> = client.custom(command.clone(), arguments.clone()).await;
            // Not carried out by the node that it went to; the driver knows the right one by now.
            if !answer.as_ref().is_err_and(|error| *error.kind() == DriverKind::Routing) {
                break answer;
            }
            redirections -= 1;
        };
        if let Err(error) = &answer {
            self.look_into(error);
        }
        answer.map_err(|error| Failed::There(place.blame(error), self.0.secrets.clone()))
    }

    /// The error of a command, for the engine, which adds operation, backend and key.
    pub fn failed(&self, error: &DriverError) -> Error {
        error::failed(error, &self.0.secrets)
    }

    /// What a server said, without the passwords that it was told.
    pub fn quote(&self, said: &str) -> String {
        self.0.secrets.hide(said)
    }

    /// The server refused a step inside a script, in these words.
    pub fn refused(&self, reply: &str) -> Error {
        // Redis before 7 puts a `-` in front.
        let error = DriverError::new(DriverKind::Unknown, reply.trim_start_matches('-').to_owned());
        self.look_into(&error);
        self.failed(&error)
    }

    async fn ready(&self, within: Duration) -> Result<()> {
        /// There is no event that covers all ways of coming back.
        const SLICE: Duration = Duration::from_millis(10);
        if self.0.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "ask Redis"));
        }
        if self.is_connected() {
            return Ok(());
        }
        let connected = async {
            while !self.is_connected() {
                sleep(SLICE).await;
            }
        };
        timeout(within, connected).await.map_err(|_| {
            let detail = format!("no connection to {}; it is being tried again", self.0.shown);
            Error::new(ErrorKind::Unavailable, "ask Redis").detail(detail)
        })
    }

    fn is_connected(&self) -> bool {
        self.0.client.is_connected() && !self.0.lifeline.as_ref().is_some_and(Lifeline::is_down)
    }

    fn place(&self) -> Result<Place<'_>> {
        let before = self.0.in_flight.fetch_add(1, Ordering::AcqRel);
        let place = Place(&self.0.in_flight);
        if before < MOST_IN_FLIGHT {
            return Ok(place);
        }
        let detail = format!("{MOST_IN_FLIGHT} commands are waiting for their answers");
        Err(Error::new(ErrorKind::Unavailable, "ask Redis").detail(detail))
    }

    fn options(&self, within: Duration, node: Option<Server>) -> Options {
        let client = &self.0.client;
        // A client that follows redirections by itself needs a try for each; `fail_fast` keeps it from using them
        // after a lost connection.
        let follows = client.is_clustered() && client.connection_config().max_redirections > 0;
        Options {
            max_attempts: Some(if follows { 4 } else { 1 }),
            fail_fast: follows,
            timeout: Some(within),
            cluster_node: node,
            ..Options::default()
        }
    }

    fn look_into(&self, error: &DriverError) {
        let Some(lifeline) = &self.0.lifeline else { return };
        match error::refusal(error) {
            Some(refusal) if refusal.is_of_a_wrong_server() => lifeline.doubt(Doubt::WrongServer),
            None if *error.kind() == DriverKind::Timeout => lifeline.doubt(Doubt::Silence),
            _ => {}
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.0.shown)
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

/// Where a command goes. Means something in a Cluster only.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Slot(u16),
    Node(Option<Server>),
}

/// Why there is no answer.
pub(crate) enum Failed {
    /// It never left.
    Here(Error),
    /// In the driver's words, and what of them nobody may see.
    There(DriverError, Secrets),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Here(error) => error,
            Failed::There(error, secrets) => error::failed(&error, &secrets),
        }
    }
}

/// One of the commands that wait for their answers.
struct Place<'c>(&'c AtomicUsize);

impl Place<'_> {
    /// When the driver drops a connection over a refusal, it tells all commands in flight the same, also those that
    /// the server may have carried out.
    fn blame(&self, error: DriverError) -> DriverError {
        let alone = self.0.load(Ordering::Acquire) == 1;
        if !alone && error::refusal(&error).is_some_and(error::Refusal::is_told_to_all) {
            let told =
                DriverError::new(DriverKind::Canceled, format!("The connection ended with: {}", error.details()));
            return told;
        }
        error
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
