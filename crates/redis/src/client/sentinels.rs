use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::config::{Config, Server, ServerConfig};
use fred::types::{ClusterHash, CustomCommand, RespVersion, Value};
use leasehold_core::{Error, ErrorKind};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::client::command::{Command, SendError, Target};
use crate::client::driver::{self, for_server};
use crate::client::error::{self, no_connection};
use crate::client::link::Link;
use crate::client::secrets;
use crate::client::supervisor::{self, AbortOnDrop};

mod views;

use self::views::{Named, View, Views};

/// A primary that Sentinels name, and the connection to it.
///
/// All Sentinels are asked every second and their messages are read, and the answer with the largest epoch counts: a fail-over
/// that is planned cuts no connection, so that nothing else shows that the primary is none any more.
pub(crate) struct Sentinels {
    state: Arc<State>,
    /// One for each Sentinel, and one that follows what they say. If they never run, the primary stays who it was.
    tasks: Vec<AbortOnDrop<()>>,
}

struct State {
    config: Config,
    service: String,
    shown: String,
    command_timeout: Duration,
    views: Mutex<Views>,
    named: watch::Sender<Option<Named>>,
    /// `None` between two primaries.
    link: watch::Sender<Option<Arc<Link>>>,
    /// Why there is no connection to the one that was named last.
    out_of_reach: Mutex<Option<DriverError>>,
    /// Has all Sentinels asked now.
    probes: watch::Sender<()>,
}

impl Sentinels {
    /// Asks all Sentinels, and connects to whom they name.
    pub(crate) async fn open(config: &Config, shown: String, command_timeout: Duration) -> Result<Self, DriverError> {
        let Some((sentinels, service)) = named_in(config) else {
            return Err(DriverError::new(DriverKind::Config, "There are no Sentinels."));
        };
        let state = Arc::new(State {
            config: config.clone(),
            service: service.to_owned(),
            shown,
            command_timeout,
            views: Mutex::new(Views(vec![View::Awaited; sentinels.len()])),
            named: watch::Sender::new(None),
            link: watch::Sender::new(None),
            out_of_reach: Mutex::new(None),
            probes: watch::Sender::new(()),
        });
        let mut tasks = Vec::new();
        for (index, config) in sentinels.into_iter().enumerate() {
            tasks.push(AbortOnDrop(tokio::spawn(attend(Arc::clone(&state), index, config))));
        }
        let named = state.first_named().await?;
        let link = state.reach(&named).await?;
        state.link.send_replace(Some(Arc::new(link)));
        tasks.push(AbortOnDrop(tokio::spawn(follow(Arc::clone(&state), named))));
        Ok(Self { state, tasks })
    }

    pub(crate) async fn close(&self) {
        for task in &self.tasks {
            task.0.abort();
        }
        let link = self.state.link.borrow().clone();
        if let Some(link) = link {
            link.close().await;
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.state.link.borrow().as_ref().is_some_and(|link| link.is_connected())
    }

    /// How to connect to the primary, and what changes when it is none any more.
    pub(crate) fn primary(&self) -> Option<(Config, watch::Receiver<Option<Arc<Link>>>)> {
        let mut changes = self.state.link.subscribe();
        let link = changes.borrow_and_update().clone()?;
        Some((link.client.client_config(), changes))
    }

    /// Asks the primary. What one answers that is none any more by then counts for nothing.
    pub(crate) async fn send(&self, command: Command, within: Duration) -> Result<Value, SendError> {
        let Some(link) = self.state.link(within).await else {
            return Err(SendError::NotSent(self.state.no_connection(self.state.out_of_reach().clone())));
        };
        let answer = link.send(command, within).await;
        match &answer {
            Err(SendError::NotSent(error)) => {
                self.state.probe();
                if error.kind() == ErrorKind::Unavailable && !link.is_connected() {
                    // Nobody comes to say who has taken its place, either.
                    let why = self.state.views().silence();
                    return Err(SendError::NotSent(self.state.no_connection(why)));
                }
            }
            Err(SendError::Sent(error)) => self.look_into(error),
            _ => {}
        }
        let stays = self.state.link.borrow().as_ref().is_some_and(|now| Arc::ptr_eq(now, &link));
        if answer.is_ok() && !stays {
            let error = DriverError::new(DriverKind::Canceled, "Another server has become the primary meanwhile.");
            return Err(SendError::Sent(error));
        }
        answer
    }

    /// Asks all Sentinels now, if this error is a reason to.
    pub(crate) fn look_into(&self, error: &DriverError) {
        if error::is_of_another_server(error) {
            self.state.probe();
        }
    }
}

/// Listens to one Sentinel, and asks it from time to time.
async fn attend(state: Arc<State>, index: usize, config: Config) {
    const PAUSE: Duration = Duration::from_millis(500);
    let (mut listens, mut warned) = (true, false);
    loop {
        let Err(error) = state.converse(index, &config, listens).await;
        let refused = error::refusal(&error).is_some();
        if refused && listens {
            // It may let us ask, and not listen.
            listens = false;
            continue;
        }
        if refused && !warned {
            let (sentinel, why) = (config.server.hosts(), secrets::keep_out(&secrets::of(&state.config), &error));
            tracing::warn!(?sentinel, %why, "a Sentinel refuses to say who is the primary: a fail-over may go unnoticed");
            warned = true;
        }
        state.heard(index, View::Silent(error));
        listens = true;
        sleep(PAUSE).await;
    }
}

/// Goes where the Sentinels say.
async fn follow(state: Arc<State>, first: Named) {
    let (mut named, mut at) = (state.named.subscribe(), Some(first.server));
    loop {
        let next = named.borrow_and_update().clone();
        let Some(next) = next.filter(|next| at.as_ref() != Some(&next.server)) else {
            let _ = named.changed().await;
            continue;
        };
        tracing::info!(server = ?next.server.to_string(), "the Sentinels name another primary");
        // From here on nobody asks the old one.
        at = None;
        state.link.send_replace(None);
        tokio::select! {
            link = state.reach_at_last(&next) => {
                state.link.send_replace(Some(Arc::new(link)));
                at = Some(next.server);
            }
            _ = named.changed() => {}
        }
    }
}

impl State {
    /// Until something goes wrong.
    async fn converse(&self, index: usize, config: &Config, listens: bool) -> Result<Infallible, DriverError> {
        const OFTEN: Duration = Duration::from_secs(1);
        let client = driver::without_reconnecting(config.clone(), self.command_timeout).build()?;
        let _router = supervisor::connect(&client).await?;
        let (mut messages, mut probes) = (client.message_rx(), self.probes.subscribe());
        if listens {
            // Answers come in order: a refusal is taken for the answer to the PING.
            let batch = client.pipeline();
            batch.subscribe(vec!["+switch-master", "+promoted-slave"]).await?;
            batch.custom::<Value, Value>(custom("PING"), Vec::new()).await?;
            batch.last::<Value>().await?;
        }
        loop {
            let named = self.ask(&client).await?;
            self.heard(index, View::Says(named));
            tokio::select! {
                _ = messages.recv() => {}
                _ = probes.changed() => {}
                () = sleep(OFTEN) => {}
            }
        }
    }

    async fn ask(&self, client: &Client) -> Result<Named, DriverError> {
        let question = |what: &'static str| vec![Value::from_static_str(what), Value::from(self.service.as_str())];
        let answer: Value = client.custom(custom("SENTINEL"), question("GET-MASTER-ADDR-BY-NAME")).await?;
        let unknown = || DriverError::new(DriverKind::Sentinel, "The Sentinel knows no such service.");
        let (host, port): (String, u16) = if answer.is_null() { return Err(unknown()) } else { answer.convert()? };
        // The address changes with the promotion, and so does the epoch; the other fields change later.
        let details: Result<Value, DriverError> = client.custom(custom("SENTINEL"), question("MASTER")).await;
        let epoch = match details {
            Ok(details) => {
                let fields: HashMap<String, String> = details.convert()?;
                fields.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
            }
            // It may name the primary and nothing else: then it is believed when all others agree.
            Err(error) if error::refusal(&error).is_some() => 0,
            Err(error) => return Err(error),
        };
        Ok(Named { epoch, server: Server::new(host, port) })
    }

    fn heard(&self, index: usize, view: View) {
        let mut views = self.views();
        if let Some(place) = views.0.get_mut(index) {
            *place = view;
        }
        self.named.send_if_modified(|named| {
            let next = views.choose(named.as_ref());
            let changes = next != *named;
            *named = next;
            changes
        });
    }

    /// The primary that is named once most Sentinels have answered, or all that can be reached.
    async fn first_named(&self) -> Result<Named, DriverError> {
        const SLICE: Duration = Duration::from_millis(5);
        let heard = async {
            while !self.views().is_enough() {
                sleep(SLICE).await;
            }
        };
        // One that hangs must not keep us when others have spoken.
        let _ = timeout(driver::CONNECT_TIMEOUT, heard).await;
        let named = self.named.borrow().clone();
        named.ok_or_else(|| self.views().script_error())
    }

    /// Connects to a server that was named, if it says so itself.
    async fn reach(&self, named: &Named) -> Result<Link, DriverError> {
        let config = for_server(named.server.clone(), &self.config);
        let link = Link::open(config, self.shown.clone(), self.command_timeout).await?;
        let role = Command { name: "ROLE", arguments: Vec::new(), target: Target::Node(None), wait: None };
        match link.send(role, driver::CONNECT_TIMEOUT).await {
            Ok(Value::Array(role)) if role.first().is_some_and(|role| role.as_str().as_deref() == Some("master")) => {
                Ok(link)
            }
            Ok(_) => Err(DriverError::new(DriverKind::Sentinel, "The server that was named is no primary.")),
            Err(SendError::Sent(error)) => Err(error),
            Err(SendError::NotSent(error)) => Err(DriverError::new(DriverKind::Sentinel, error.to_string())),
        }
    }

    async fn reach_at_last(&self, named: &Named) -> Link {
        const PAUSE: Duration = Duration::from_millis(100);
        *self.out_of_reach() = None;
        loop {
            match self.reach(named).await {
                Ok(link) => return link,
                Err(error) => *self.out_of_reach() = Some(error),
            }
            sleep(PAUSE).await;
        }
    }

    async fn link(&self, within: Duration) -> Option<Arc<Link>> {
        if let Some(link) = &*self.link.borrow() {
            return Some(Arc::clone(link));
        }
        let mut links = self.link.subscribe();
        let link = timeout(within, links.wait_for(Option::is_some)).await.ok()?.ok()?;
        link.clone()
    }

    /// The error of a command for which there is no connection, for this reason if it is one for good.
    fn no_connection(&self, why: Option<DriverError>) -> Error {
        let refused = why.and_then(|why| error::shut_out(&self.shown, &why, &secrets::of(&self.config)));
        refused.unwrap_or_else(|| no_connection(&self.shown))
    }

    fn probe(&self) {
        self.probes.send_replace(());
    }

    fn out_of_reach(&self) -> MutexGuard<'_, Option<DriverError>> {
        self.out_of_reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How to connect to each of the Sentinels, and the name under which they know the primary. `None`: there are no Sentinels.
pub(crate) fn named_in(config: &Config) -> Option<(Vec<Config>, &str)> {
    let ServerConfig::Sentinel { hosts, service_name, username, password } = &config.server else { return None };
    let of_one = |host: &Server| {
        let mut config = for_server(host.clone(), config);
        (config.username, config.password) = (username.clone(), password.clone());
        (config.database, config.version) = (None, RespVersion::RESP3);
        config
    };
    Some((hosts.iter().map(of_one).collect(), service_name.as_str()))
}

fn custom(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::Random, false)
}
