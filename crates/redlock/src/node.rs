use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use leasehold_core::{Cursor, Error, ErrorKind, LockKey, OwnerId, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::{CHANNEL, Connection, Endpoint, KeyNames, Names, Reply, Script, Signals, trouble};

use crate::condition::{Failure, NodeCondition};
use crate::entry::Entry;

/// The parts of a key's names, see the README.
pub(crate) const LOCK: &str = "lock";
pub(crate) const FENCE: &str = "fence";
const FORCED: &str = "forced";
const MARKER: &str = "node";

static CLAIM: Script = Script::new(include_str!("lua/claim.lua"));
static CONFIRM: Script = Script::new(include_str!("lua/fence.lua"));
static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static RELEASE: Script = Script::new(include_str!("lua/release.lua"));
static INSPECT: Script = Script::new(include_str!("lua/inspect.lua"));
static FORCE: Script = Script::new(include_str!("lua/force.lua"));
static MARK: Script = Script::new(include_str!("lua/marker.lua"));
static COUNTERS: Script = Script::new(include_str!("lua/counters.lua"));
static RAISE: Script = Script::new(include_str!("lua/raise.lua"));

/// One server: what it can be asked, each question one script.
pub(crate) struct Node {
    source: Source,
    name: String,
    names: Names,
    fence_retention: Duration,
    command_timeout: Duration,
    link: RwLock<Link>,
}

/// How to get to a node.
#[derive(Clone)]
pub(crate) enum Source {
    Url(Box<Endpoint>),
    Client(Client),
}

enum Link {
    Up(Peer),
    Down(NodeCondition),
}

/// A node that takes part.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) signals: Arc<Signals>,
}

/// What a node is asked for in an attempt.
#[derive(Debug)]
pub(crate) struct Claiming {
    pub(crate) owner: OwnerId,
    pub(crate) names: KeyNames,
    pub(crate) lease: Duration,
    pub(crate) metadata: String,
}

/// A node's answer in the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// It is ours there; a token must exceed `seed`, or is `token` if this owner has one there already.
    Granted { seed: u64, token: Option<u64> },
    /// It is somebody else's there; `by` tells holders apart.
    Busy { left: Duration, by: String },
    /// No vote.
    Failed(Failure),
}

impl Claimed {
    /// Whether the node may have the key as ours.
    pub(crate) fn may_be_ours(&self) -> bool {
        match self {
            Self::Granted { .. } => true,
            Self::Busy { .. } => false,
            Self::Failed(failure) => failure.maybe_done,
        }
    }
}

/// A node's answer in the second round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    Yes,
    /// Another came in between: the key is not ours there any more, or a number was not smaller.
    Beaten,
    Failed(Failure),
}

/// What a node says of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    Gone,
    Forced,
}

/// What a node says of a key: who holds it there, and for how long.
pub(crate) type Seen = Option<(Entry, Duration)>;

/// A node's marker, and which server it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) phase: Phase,
    pub(crate) incarnation: String,
    /// Empty: we may not know.
    pub(crate) run: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    None,
    New,
    Healing,
    Up,
}

/// What is done with a marker; see the script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Look,
    Begin,
    Finish,
    Heal,
    Healed,
}

impl Node {
    pub(crate) fn new(source: Source, names: Names, fence_retention: Duration, command_timeout: Duration) -> Self {
        let link = RwLock::new(Link::Down(NodeCondition::Unreachable("not connected yet".into())));
        Self { name: source.to_string(), source, names, fence_retention, command_timeout, link }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A connection of its own, which the node does not use yet.
    pub(crate) async fn reach(&self) -> Result<Peer> {
        let connection = match &self.source {
            Source::Url(endpoint) => Connection::open(endpoint, self.command_timeout).await?,
            Source::Client(client) => Connection::borrow(client.clone(), self.command_timeout),
        };
        let signals = Arc::new(Signals::new(&connection, &self.names));
        Ok(Peer { connection, signals })
    }

    pub(crate) fn join(&self, peer: Peer) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = Link::Up(peer);
    }

    pub(crate) fn leave(&self, why: NodeCondition) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = Link::Down(why);
    }

    pub(crate) fn peer(&self) -> Result<Peer, Failure> {
        match &*self.link.read().unwrap_or_else(PoisonError::into_inner) {
            Link::Up(peer) => Ok(peer.clone()),
            Link::Down(why) => Err(Failure::of(why.clone())),
        }
    }

    pub(crate) async fn close(&self) {
        if let Ok(peer) = self.peer() {
            peer.signals.close().await;
            peer.connection.close().await;
        }
    }

    pub(crate) async fn claim(&self, claiming: &Claiming, limit: Duration) -> Claimed {
        let names = &claiming.names;
        let keys = [names.part(LOCK), names.part(FENCE), self.names.own(MARKER)];
        let arguments = [claiming.owner.to_hex(), millis(claiming.lease), claiming.metadata.clone()];
        let answered = self.ask(&CLAIM, keys, arguments, limit).await.and_then(|(peer, reply)| {
            let words = reply.words();
            match *refs(&words) {
                ["granted", seed, token] => match (seed.parse(), token.parse()) {
                    (Ok(seed), token) => Ok(Claimed::Granted { seed, token: token.ok() }),
                    (Err(_), _) => Err(not_understood(&peer, &[])),
                },
                ["busy", left, by] => {
                    let left = Duration::from_millis(left.parse().unwrap_or_default());
                    Ok(Claimed::Busy { left, by: by.to_owned() })
                }
                ref words => Err(not_understood(&peer, words)),
            }
        });
        answered.unwrap_or_else(Claimed::Failed)
    }

    pub(crate) async fn confirm(&self, claiming: &Claiming, tenure: u64, limit: Duration) -> Confirmed {
        let names = &claiming.names;
        let keys = [names.part(LOCK), names.part(FENCE), self.names.own(MARKER)];
        let arguments = [claiming.owner.to_hex(), tenure.to_string(), millis(self.fence_retention)];
        let answered = self.ask(&CONFIRM, keys, arguments, limit).await.and_then(|(peer, reply)| {
            let words = reply.words();
            match *refs(&words) {
                ["fenced"] => Ok(Confirmed::Yes),
                ["gone"] | ["conflict", _] => Ok(Confirmed::Beaten),
                ref words => Err(not_understood(&peer, words)),
            }
        });
        answered.unwrap_or_else(Confirmed::Failed)
    }

    /// `signal`: whether somebody may wait for it.
    pub(crate) async fn release(
        &self,
        names: &KeyNames,
        owner: OwnerId,
        signal: bool,
        limit: Duration,
    ) -> Result<Kept, Failure> {
        let keys = [names.part(LOCK), names.part(FORCED)];
        let channel = if signal { names.part(CHANNEL) } else { String::new() };
        let (peer, reply) = self.ask(&RELEASE, keys, [owner.to_hex(), channel], limit).await?;
        kept(&peer, &refs(&reply.words()))
    }

    /// One answer for each, in their order.
    pub(crate) async fn renew(
        &self,
        grants: &[(KeyNames, OwnerId, Duration)],
        limit: Duration,
    ) -> Result<Vec<Result<Kept, Failure>>, Failure> {
        let keys = grants.iter().flat_map(|(names, ..)| [names.part(LOCK), names.part(FORCED)]);
        let arguments = grants.iter().flat_map(|(_, owner, lease)| [owner.to_hex(), millis(*lease)]);
        let (peer, reply) = self.ask(&RENEW, keys, arguments, limit).await?;
        let mut words = reply.words();
        words.resize(grants.len(), String::new());
        let read = |word: &String| match word.strip_prefix("refused ") {
            Some(reply) => Err(peer.connection.refused(reply).into()),
            None => kept(&peer, &[word]),
        };
        Ok(words.iter().map(read).collect())
    }

    /// Who holds these keys here, in their order.
    pub(crate) async fn inspect(&self, keys: &[LockKey]) -> Result<Vec<Result<Seen, Failure>>, Failure> {
        let locks = keys.iter().map(|key| self.names.of(key).part(LOCK));
        let (peer, reply) = self.ask(&INSPECT, locks, [], self.command_timeout).await?;
        let mut rows = reply.rows();
        rows.resize(keys.len(), Vec::new());
        Ok(rows.iter().map(|words| seen(&peer, &refs(words))).collect())
    }

    /// Frees the key here, and tells who held it here.
    pub(crate) async fn force(&self, key: &LockKey, grace: Duration) -> Result<Seen, Failure> {
        let names = self.names.of(key);
        let keys = [names.part(LOCK), names.part(FORCED)];
        let arguments = [names.part(CHANNEL), millis(grace)];
        let (peer, reply) = self.ask(&FORCE, keys, arguments, self.command_timeout).await?;
        seen(&peer, &refs(&reply.words()))
    }

    /// Some of the keys that have this part here and start with `prefix`, and where to go on.
    pub(crate) async fn scan(
        &self,
        prefix: &str,
        part: &str,
        after: Option<&Cursor>,
    ) -> Result<(Vec<LockKey>, Option<Cursor>), Failure> {
        let (found, next) = self.peer()?.connection.scan(&self.names.pattern(prefix, part), after).await?;
        let mut keys: Vec<LockKey> = found.iter().filter_map(|name| self.names.key(name, part)).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok((keys, next))
    }

    /// The counters of these keys here, 0 where there is none.
    pub(crate) async fn counters(&self, keys: &[LockKey]) -> Result<Vec<u64>, Failure> {
        let fences = keys.iter().map(|key| self.names.of(key).part(FENCE));
        let (_, reply) = self.ask(&COUNTERS, fences, [], self.command_timeout).await?;
        Ok(reply.words().iter().map(|word| word.parse().unwrap_or_default()).collect())
    }

    pub(crate) async fn raise(&self, counters: &[(LockKey, u64)]) -> Result<(), Failure> {
        let fences = counters.iter().map(|(key, _)| self.names.of(key).part(FENCE));
        let numbers = counters.iter().map(|(_, number)| number.to_string());
        let arguments = std::iter::once(millis(self.fence_retention)).chain(numbers);
        let (peer, reply) = self.ask(&RAISE, fences, arguments, self.command_timeout).await?;
        match *refs(&reply.words()) {
            ["raised"] => Ok(()),
            ref words => Err(not_understood(&peer, words)),
        }
    }

    /// `incarnation`: for a node that has none.
    pub(crate) async fn mark(&self, peer: &Peer, step: Step, incarnation: OwnerId) -> Result<Marker, Failure> {
        let step = match step {
            Step::Look => "look",
            Step::Begin => "begin",
            Step::Finish => "finish",
            Step::Heal => "heal",
            Step::Healed => "healed",
        };
        let arguments = [step.to_owned(), incarnation.to_hex()];
        let words = peer.connection.run(&MARK, [self.names.own(MARKER)], arguments, None).await?.words();
        let marker = |phase, incarnation: &str, run: &str| Marker {
            phase,
            incarnation: incarnation.to_owned(),
            run: run.to_owned(),
        };
        match *refs(&words) {
            ["none", incarnation, run] => Ok(marker(Phase::None, incarnation, run)),
            ["new", incarnation, run] => Ok(marker(Phase::New, incarnation, run)),
            ["healing", incarnation, run] => Ok(marker(Phase::Healing, incarnation, run)),
            ["up", incarnation, run] => Ok(marker(Phase::Up, incarnation, run)),
            ref words => Err(not_understood(peer, words)),
        }
    }

    /// Has the server learn the scripts whose order matters: one that is sent again with its source would come after
    /// what was sent behind it.
    pub(crate) async fn teach(peer: &Peer) -> Result<(), Failure> {
        for script in [&CLAIM, &CONFIRM, &RENEW, &RELEASE] {
            peer.connection.run(script, [], [], None).await?;
        }
        Ok(())
    }

    async fn ask(
        &self,
        script: &Script,
        keys: impl IntoIterator<Item = String>,
        arguments: impl IntoIterator<Item = String>,
        limit: Duration,
    ) -> Result<(Peer, Reply), Failure> {
        let peer = self.peer()?;
        let reply = peer.connection.run(script, keys, arguments, Some(limit)).await?;
        Ok((peer, reply))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = self.peer().err().map_or(NodeCondition::Serving, |failure| failure.condition);
        f.debug_struct("Node").field("name", &self.name).field("condition", &condition).finish_non_exhaustive()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(endpoint) => endpoint.fmt(f),
            Self::Client(client) => {
                let hosts: Vec<_> =
                    client.client_config().server.hosts().iter().map(|host| format!("redis://{host}")).collect();
                f.write_str(&hosts.join(","))
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}

fn kept(peer: &Peer, words: &[&str]) -> Result<Kept, Failure> {
    match *words {
        ["held"] => Ok(Kept::Yes),
        ["gone"] => Ok(Kept::Gone),
        ["forced"] => Ok(Kept::Forced),
        _ => Err(not_understood(peer, words)),
    }
}

fn seen(peer: &Peer, words: &[&str]) -> Result<Seen, Failure> {
    match *words {
        ["free"] => Ok(None),
        ["held", entry, left] => match Entry::read(entry) {
            Some(entry) => Ok(Some((entry, Duration::from_millis(left.parse().unwrap_or_default())))),
            None => Err(Failure::of(NodeCondition::Refused("an entry that Leasehold did not write".into()))),
        },
        _ => Err(not_understood(peer, words)),
    }
}

/// The answers that scripts give instead of their own.
fn not_understood(peer: &Peer, words: &[&str]) -> Failure {
    match *words {
        ["reset"] => Failure::of(NodeCondition::Reset),
        ["endless", key] => {
            Failure::from(Error::new(ErrorKind::Backend, "ask Redis").detail(format!(
                "the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"
            )))
        }
        _ => trouble(&peer.connection, words).into(),
    }
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
