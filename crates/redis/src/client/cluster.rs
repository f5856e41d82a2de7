use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::types::Value;
use fred::types::config::{Config, Server};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use leasehold_core::Clock;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::client::command::{Command, SendError, Target};
use crate::client::driver::{self, for_server};
use crate::client::error::{self, no_connection};
use crate::client::link::Link;
use crate::client::slots::{self, Redirection, Slots};
use crate::client::supervisor::AbortOnDrop;

/// A Cluster: a connection to each primary, and which of them serves which slots.
///
/// Each connection lives for itself, so that a node that is gone costs its own slots only.
pub(crate) struct Cluster {
    state: Arc<State>,
    /// Keeps up with the Cluster. If it never runs, `MOVED` says as much, slot by slot.
    scout: AbortOnDrop<()>,
}

struct State {
    config: Config,
    shown: String,
    command_timeout: Duration,
    map: RwLock<Map>,
    probes: Notify,
}

#[derive(Default)]
struct Map {
    slots: Vec<(u16, u16, Arc<Node>)>,
    /// What nodes said since.
    moved: HashMap<u16, Arc<Node>>,
    /// Where entries of a slot were that is on its way.
    asked: HashMap<u16, Arc<Node>>,
    /// Those that serve slots, and those that are about to.
    nodes: HashMap<Server, Arc<Node>>,
}

struct Node {
    server: Server,
    link: Link,
}

impl Cluster {
    /// Asks all nodes that the configuration names at once, and takes the first answer.
    pub(crate) async fn open(config: &Config, shown: String, command_timeout: Duration) -> Result<Self, DriverError> {
        let (map, probes) = (RwLock::default(), Notify::new());
        let state = Arc::new(State { config: config.clone(), shown, command_timeout, map, probes });
        state.begin().await?;
        let scout = tokio::spawn(scout(Arc::clone(&state)));
        Ok(Self { state, scout: AbortOnDrop(scout) })
    }

    pub(crate) async fn close(&self) {
        self.scout.0.abort();
        let nodes = self.state.nodes();
        join_all(nodes.iter().map(|node| node.link.close())).await;
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.state.nodes().iter().any(|node| node.link.is_connected())
    }

    /// Every node that serves slots.
    pub(crate) fn primaries(&self) -> Vec<Server> {
        let mut servers: Vec<Server> = Vec::new();
        for (_, _, node) in &self.state.read().slots {
            if !servers.contains(&node.server) {
                servers.push(node.server.clone());
            }
        }
        servers
    }

    /// The configuration for one of the nodes to which there is a connection: a message that is published on one node reaches
    /// the subscribers of all.
    pub(crate) fn any(&self) -> Option<Config> {
        let nodes = self.state.connected();
        let chance = usize::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
        let node = nodes.get(chance % nodes.len().max(1))?;
        Some(for_server(node.server.clone(), &self.state.config))
    }

    /// The nodes that may have entries of this slot: the one that serves it, and the one to which it is being moved.
    pub(crate) fn with(&self, slot: u16) -> Vec<Server> {
        let nodes = [self.state.serving(slot), self.state.read().asked.get(&slot).cloned()];
        nodes.into_iter().flatten().map(|node| node.server.clone()).collect()
    }

    /// Sends a command to the node that serves its slot, and on to the node to which that one redirects it.
    ///
    /// While entries of one command are on two nodes, which both refuse it, this asks again for half of `within`, so that
    /// the last question has as long to be answered.
    pub(crate) async fn send(&self, command: Command, within: Duration) -> Result<Value, SendError> {
        /// Between two questions, when there is nobody else to ask.
        const PAUSE: Duration = Duration::from_millis(20);
        /// Sent on so often without a pause.
        const AT_ONCE: usize = 3;
        let slot = match &command.target {
            Target::Slot(slot) => *slot,
            Target::Node(node) => return self.send_to(node.clone(), command, within).await,
        };
        let clock = Clock::system();
        let begun = clock.now();
        let (mut asking, mut hops) = (None, 0);
        loop {
            let left = within.saturating_sub(clock.now().since(begun));
            let asks = asking.is_some();
            let Some(node): Option<Arc<Node>> = asking.take().or_else(|| self.state.serving(slot)) else {
                return Err(SendError::NotSent(no_connection(&self.state.shown)));
            };
            let answer = if asks {
                self.state.write().asked.insert(slot, Arc::clone(&node));
                node.link.send_asking(command.clone(), left).await
            } else {
                node.link.send(command.clone(), left).await
            };
            let Err(failed) = answer else { return answer };
            let redirection = match &failed {
                SendError::NotSent(_) => None,
                SendError::Sent(error) => Redirection::read(error, &node.server),
            };
            let Some(redirection) = redirection else {
                self.state.look_into(&failed);
                return Err(failed);
            };
            hops += 1;
            if clock.now().since(begun) > within / 2 {
                // Nobody carried it out. Without the words of the nodes, which may say anything.
                let on_the_way = DriverError::new(DriverKind::Routing, "The slot is on the way to another node.");
                return Err(SendError::Sent(on_the_way));
            }
            match redirection {
                Redirection::Moved(server) => self.state.moved(slot, &server),
                Redirection::Ask(server) => asking = self.state.known(&server, &node, left).await,
                Redirection::TryAgain => sleep(PAUSE).await,
            }
            if hops > AT_ONCE {
                sleep(PAUSE).await;
            }
        }
    }

    async fn send_to(&self, server: Option<Server>, command: Command, within: Duration) -> Result<Value, SendError> {
        let node = server.and_then(|server| self.state.read().nodes.get(&server).cloned());
        let Some(node) = node else { return Err(SendError::NotSent(no_connection(&self.state.shown))) };
        node.link.send(command, within).await.inspect_err(|failed| self.state.look_into(failed))
    }

    /// Reads the map of slots anew, if this error is a reason to.
    pub(crate) fn look_into(&self, error: &DriverError) {
        if error::is_of_another_server(error) {
            self.state.probes.notify_one();
        }
    }
}

/// Asks who serves what, when there is a reason to and from time to time.
async fn scout(state: Arc<State>) {
    const OFTEN: Duration = Duration::from_secs(10);
    /// However many complain.
    const AT_MOST: Duration = Duration::from_millis(200);
    loop {
        tokio::select! {
            () = state.probes.notified() => {}
            () = sleep(OFTEN) => {}
        }
        state.ask_around().await;
        sleep(AT_MOST).await;
    }
}

impl State {
    /// By a new connection to one of the nodes that the configuration names.
    async fn begin(&self) -> Result<(), DriverError> {
        let seeds = self.config.server.hosts();
        let mut asked: FuturesUnordered<_> = seeds.into_iter().map(|seed| self.meet(seed)).collect();
        let mut told: Option<DriverError> = None;
        while let Some(met) = asked.next().await {
            match met {
                Ok((node, slots)) => {
                    // Kept if the others call it by the same name.
                    self.write().nodes.insert(node.server.clone(), Arc::new(node));
                    self.learn(slots);
                    return Ok(());
                }
                // What a server said tells more than that another did not answer.
                Err(error) if told.as_ref().is_none_or(|told| error::refusal(told).is_none()) => told = Some(error),
                Err(_) => {}
            }
        }
        Err(told.unwrap_or_else(|| DriverError::new(DriverKind::Cluster, "There is no node to ask.")))
    }

    async fn meet(&self, seed: Server) -> Result<(Node, Slots), DriverError> {
        let link = Link::open(for_server(seed.clone(), &self.config), seed.to_string(), self.command_timeout).await?;
        let node = Node { server: seed, link };
        let slots = node.slots(driver::CONNECT_TIMEOUT).await?;
        Ok((node, slots))
    }

    /// Over the connections that there are. A node that is cut off may know less than one that is not.
    async fn ask_around(&self) {
        const WITHIN: Duration = Duration::from_secs(1);
        let mut second_best = None;
        for node in self.connected() {
            let info = node.ask("INFO", WITHIN).await;
            let whole = info.is_ok_and(|info| info.as_str().is_some_and(|info| info.contains("cluster_state:ok")));
            let Ok(slots) = node.slots(WITHIN).await else { continue };
            if whole {
                return self.learn(slots);
            }
            second_best.get_or_insert(slots);
        }
        match second_best {
            Some(slots) => self.learn(slots),
            // The next who complains has it tried again.
            None => drop(self.begin().await),
        }
    }

    /// Connections to nodes that serve nothing any more end.
    fn learn(&self, slots: Slots) {
        let mut map = self.write();
        let (mut nodes, mut served) = (HashMap::new(), Vec::new());
        for (from, to, server) in slots {
            let node = nodes.get(&server).or_else(|| map.nodes.get(&server)).cloned();
            if let Some(node) = node.or_else(|| self.launch(&server)) {
                nodes.insert(server, Arc::clone(&node));
                served.push((from, to, node));
            }
        }
        let mut asked = std::mem::take(&mut map.asked);
        *map = Map { slots: served, nodes, ..Map::default() };
        asked.retain(|slot, node| map.serving(*slot).is_some_and(|serving| !Arc::ptr_eq(serving, node)));
        map.nodes.extend(asked.values().map(|node| (node.server.clone(), Arc::clone(node))));
        map.asked = asked;
    }

    fn launch(&self, server: &Server) -> Option<Arc<Node>> {
        let link =
            Link::launch(for_server(server.clone(), &self.config), server.to_string(), self.command_timeout).ok()?;
        Some(Arc::new(Node { server: server.clone(), link }))
    }

    fn serving(&self, slot: u16) -> Option<Arc<Node>> {
        self.read().serving(slot).cloned()
    }

    /// A node said who serves the slot. One that is not known yet has to be named by the Cluster, not by one reply.
    fn moved(&self, slot: u16, server: &Server) {
        let mut map = self.write();
        if let Some(node) = map.nodes.get(server).cloned() {
            map.moved.insert(slot, node);
        }
        self.probes.notify_one();
    }

    /// The node at this address; one that serves no slot yet, only if `witness` lists it as part of the Cluster.
    async fn known(&self, server: &Server, witness: &Node, within: Duration) -> Option<Arc<Node>> {
        if let Some(node) = self.read().nodes.get(server) {
            return Some(Arc::clone(node));
        }
        let nodes = witness.ask("NODES", within).await.ok()?;
        if !slots::lists(&nodes.as_str().unwrap_or_default(), server) {
            return None;
        }
        let node = self.launch(server)?;
        Some(Arc::clone(self.write().nodes.entry(server.clone()).or_insert(node)))
    }

    fn look_into(&self, failed: &SendError) {
        let reason = match failed {
            SendError::NotSent(_) => true,
            SendError::Sent(error) => error::is_of_another_server(error),
        };
        if reason {
            self.probes.notify_one();
        }
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        self.read().nodes.values().cloned().collect()
    }

    fn connected(&self) -> Vec<Arc<Node>> {
        self.nodes().into_iter().filter(|node| node.link.is_connected()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Map {
    fn serving(&self, slot: u16) -> Option<&Arc<Node>> {
        if let Some(node) = self.moved.get(&slot) {
            return Some(node);
        }
        let place = self.slots.partition_point(|(from, _, _)| *from <= slot);
        let (_, to, node) = self.slots.get(place.checked_sub(1)?)?;
        (slot <= *to).then_some(node)
    }
}

impl Node {
    async fn slots(&self, within: Duration) -> Result<Slots, DriverError> {
        let slots = slots::read(&self.ask("SLOTS", within).await?, &self.server);
        if slots.is_empty() {
            return Err(DriverError::new(DriverKind::Cluster, "The node knows of nobody who serves slots."));
        }
        Ok(slots)
    }

    async fn ask(&self, what: &'static str, within: Duration) -> Result<Value, DriverError> {
        let arguments = vec![Value::from_static_str(what)];
        let command = Command { name: "CLUSTER", arguments, target: Target::Node(None), wait: None };
        self.link.send(command, within).await.map_err(|failed| match failed {
            SendError::Sent(error) => error,
            SendError::NotSent(error) => DriverError::new(DriverKind::Canceled, error.to_string()),
        })
    }
}
