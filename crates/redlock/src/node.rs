use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join;
use leasehold_core::{Cursor, LockKey, OwnerId, Result};
use leasehold_redis::fred::clients::Client;
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::{
    CHANNEL, Connection, Endpoint, FORCE_RELEASE, GroupCommit, INSPECT, KeyNames, Names, PubSub, Reply, Script,
    ScriptArguments, ScriptFunction, ScriptFunctions, millis, number,
};

use crate::answer::{Claimed, Confirmed, Kept, Marker, Phase, Seen, Standing, endless, kept, not_understood, seen};
use crate::condition::{Failure, NodeCondition};

/// The parts of a key's names, see the README.
pub(crate) const LOCK: &str = "lock";
pub(crate) const FENCE: &str = "fence";
const FORCED: &str = "forced";
const MARKER: &str = "node";

/// What several scripts call.
const COUNTER: &str = include_str!("lua/counter.lua");
static CLAIM: ScriptFunction = ScriptFunction::new("claim", 3, 3, &[COUNTER, include_str!("lua/claim.lua")]);
static CONFIRM: ScriptFunction = ScriptFunction::new("confirm", 3, 3, &[COUNTER, include_str!("lua/fence.lua")]);
static RELEASE: ScriptFunction = ScriptFunction::new("release", 2, 2, &[include_str!("lua/release.lua")]);
static STEPS: ScriptFunctions = ScriptFunctions::new(&[&CLAIM, &CONFIRM, &RELEASE]);
static RENEW: Script = Script::new(include_str!("lua/renew.lua"));
static TAKE_OVER: Script = Script::new(include_str!("lua/take_over.lua"));
static MARK: Script = Script::new(include_str!("lua/marker.lua"));
static COUNTERS: Script = Script::new(concat!(include_str!("lua/counter.lua"), include_str!("lua/counters.lua")));
static NOW: Script = Script::new(include_str!("lua/now.lua"));
static RAISE: Script = Script::new(concat!(include_str!("lua/counter.lua"), include_str!("lua/raise.lua")));

/// One server: what it can be asked, each question one script.
pub(crate) struct Node {
    source: Source,
    name: String,
    names: Names,
    fence_retention: Duration,
    command_timeout: Duration,
    group_commit: bool,
    link: RwLock<Link>,
    /// How many ms it was waited for in vain since it answered the last time, or gave its answer too late.
    silent_for: AtomicU64,
}

/// How to get to a node.
#[derive(Clone)]
pub(crate) enum Source {
    Url(Box<Endpoint>),
    Client(Client),
}

enum Link {
    /// With its marker as it was then.
    Up(Peer, Option<Marker>),
    Down(NodeCondition),
}

/// A node that takes part.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    commits: Arc<GroupCommit>,
    pub(crate) signals: Arc<PubSub>,
}

/// What a node is asked for in an attempt.
#[derive(Debug)]
pub(crate) struct Claiming {
    pub(crate) owner: OwnerId,
    pub(crate) names: KeyNames,
    pub(crate) lease: Duration,
    pub(crate) metadata: String,
}

/// What a node is asked for when a detached lock is attached.
#[derive(Clone, Debug)]
pub(crate) struct TakingOver {
    pub(crate) names: KeyNames,
    pub(crate) owner: OwnerId,
    pub(crate) epoch: Option<u64>,
    pub(crate) new_owner: OwnerId,
    pub(crate) lease: Duration,
}

/// What is done with a marker; see the script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Look,
    Begin,
    Finish,
    Heal,
    Healed,
}

impl Node {
    pub(crate) fn new(
        source: Source,
        names: Names,
        fence_retention: Duration,
        command_timeout: Duration,
        group_commit: bool,
    ) -> Self {
        let link = RwLock::new(Link::Down(NodeCondition::Unreachable("not connected yet".into())));
        let (name, silent_for) = (source.to_string(), AtomicU64::new(0));
        Self { source, name, names, fence_retention, command_timeout, group_commit, link, silent_for }
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
        let signals = Arc::new(PubSub::new(&connection, &self.names));
        let commits = Arc::new(GroupCommit::new(&connection, &STEPS, self.group_commit));
        Ok(Peer { connection, commits, signals })
    }

    pub(crate) fn join(&self, peer: Peer, marker: Option<Marker>) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = Link::Up(peer, marker);
    }

    pub(crate) fn leave(&self, why: NodeCondition) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = Link::Down(why);
    }

    pub(crate) fn peer(&self) -> Result<Peer, Failure> {
        match &*self.link.read().unwrap_or_else(PoisonError::into_inner) {
            Link::Up(peer, _) => Ok(peer.clone()),
            Link::Down(why) => Err(Failure::of(why.clone())),
        }
    }

    /// Its marker when it began to take part, if it does.
    pub(crate) fn marker(&self) -> Option<Marker> {
        match &*self.link.read().unwrap_or_else(PoisonError::into_inner) {
            Link::Up(_, marker) => marker.clone(),
            Link::Down(_) => None,
        }
    }

    pub(crate) async fn close(&self) {
        if let Ok(peer) = self.peer() {
            join(peer.signals.close(), peer.connection.close()).await;
        }
    }

    pub(crate) async fn claim(&self, claiming: &Claiming, limit: Duration) -> Claimed {
        let names = &claiming.names;
        let words = ScriptArguments::new()
            .name(names, LOCK)
            .name(names, FENCE)
            .text(&self.names.own(MARKER))
            .owner(claiming.owner)
            .millis(claiming.lease)
            .text(&claiming.metadata);
        let answered = self.commit(&CLAIM, words, limit).await.and_then(|(peer, reply)| match *reply.words() {
            ["granted", seed, token] => Claimed::granted(seed, token).ok_or_else(|| not_understood(&peer, &[])),
            [how @ ("taken" | "claimed"), left, by] => match left.parse() {
                Ok(left) => Ok(Claimed::Busy(Standing {
                    left: Duration::from_millis(left),
                    by: by.to_owned(),
                    confirmed: how == "taken",
                })),
                Err(_) => Err(not_understood(&peer, &[])),
            },
            ref words => Err(not_understood(&peer, words)),
        });
        answered.unwrap_or_else(Claimed::Failed)
    }

    pub(crate) async fn confirm(&self, claiming: &Claiming, epoch: u64, limit: Duration) -> Confirmed {
        let names = &claiming.names;
        let words = ScriptArguments::new()
            .name(names, LOCK)
            .name(names, FENCE)
            .text(&self.names.own(MARKER))
            .owner(claiming.owner)
            .text(&epoch.to_string())
            .millis(self.fence_retention);
        let answered = self.commit(&CONFIRM, words, limit).await.and_then(|(peer, reply)| match *reply.words() {
            ["fenced"] => Ok(Confirmed::Yes),
            ["gone"] | ["conflict", _] => Ok(Confirmed::Beaten),
            ref words => Err(not_understood(&peer, words)),
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
        let words = ScriptArguments::new().name(names, LOCK).name(names, FORCED).owner(owner);
        let words = if signal { words.name(names, CHANNEL) } else { words.text("") };
        let (peer, reply) = self.commit(&RELEASE, words, limit).await?;
        peer.signals.released(&reply.words());
        kept(&peer, &reply.words())
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
        Ok(reply.each_of(grants.len()).iter().map(|answer| kept(&peer, &answer.words())).collect())
    }

    /// Gives the lock to a new owner here, if the old one has it.
    pub(crate) async fn take_over(&self, taking: &TakingOver, limit: Duration) -> Result<Kept, Failure> {
        let TakingOver { names, owner, epoch, new_owner, lease } = taking;
        let number = epoch.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let arguments = [owner.to_hex(), number, new_owner.to_hex(), millis(*lease)];
        let (peer, reply) = self.ask(&TAKE_OVER, [names.part(LOCK), names.part(FORCED)], arguments, limit).await?;
        kept(&peer, &reply.words())
    }

    /// Who holds these keys here, in their order.
    pub(crate) async fn inspect(&self, keys: &[LockKey]) -> Result<Vec<Result<Seen, Failure>>, Failure> {
        let locks = keys.iter().map(|key| self.names.of(key).part(LOCK));
        let (peer, reply) = self.ask(&INSPECT, locks, [], self.command_timeout).await?;
        Ok(reply.each_of(keys.len()).iter().map(|answer| seen(&peer, &answer.words())).collect())
    }

    /// The key is held here without a lease.
    pub(crate) fn endless(&self, key: &LockKey) -> Failure {
        self.peer().map_or_else(|failure| failure, |peer| endless(&peer, &self.names.of(key).part(LOCK)))
    }

    /// The key is held here by an entry that somebody else wrote.
    pub(crate) fn foreign(&self, key: &LockKey) -> Failure {
        let lock = self.names.of(key).part(LOCK);
        self.peer().map_or_else(|failure| failure, |peer| not_understood(&peer, &["foreign", &lock, "not a lock"]))
    }

    /// Frees the key here, and tells who held it here.
    pub(crate) async fn force(&self, key: &LockKey, grace: Duration) -> Result<Seen, Failure> {
        let names = self.names.of(key);
        let keys = [names.part(LOCK), names.part(FORCED)];
        let arguments = [names.part(CHANNEL), millis(grace)];
        let (peer, reply) = self.ask(&FORCE_RELEASE, keys, arguments, self.command_timeout).await?;
        peer.signals.forced(&reply.words());
        seen(&peer, &reply.words())
    }

    /// Some of the keys that have this part here and start with `prefix`, and where to go on.
    pub(crate) async fn scan(
        &self,
        prefix: &str,
        part: &str,
        after: Option<&Cursor>,
    ) -> Result<(Vec<LockKey>, Option<Cursor>), Failure> {
        Ok(self.peer()?.connection.keys(&self.names, part, prefix, after).await?)
    }

    /// Its clock, in ms.
    pub(crate) async fn now(&self) -> Result<u64, Failure> {
        let (peer, reply) = self.ask(&NOW, [], [], self.command_timeout).await?;
        match *reply.words() {
            ["now", millis] => millis.parse().map_err(|_| not_understood(&peer, &[])),
            ref words => Err(not_understood(&peer, words)),
        }
    }

    /// The counters of these keys here, 0 where there is none.
    pub(crate) async fn counters(&self, keys: &[LockKey]) -> Result<Vec<u64>, Failure> {
        let fences = keys.iter().map(|key| self.names.of(key).part(FENCE));
        let (peer, reply) = self.ask(&COUNTERS, fences, [], self.command_timeout).await?;
        let counter = |answer: &Reply| match *answer.words() {
            ["none"] => Ok(0),
            ["counter", last] => number(last).ok_or_else(|| not_understood(&peer, &[])),
            ref words => Err(not_understood(&peer, words)),
        };
        reply.each_of(keys.len()).iter().map(counter).collect()
    }

    pub(crate) async fn raise(&self, counters: &[(LockKey, u64)]) -> Result<(), Failure> {
        let fences = counters.iter().map(|(key, _)| self.names.of(key).part(FENCE));
        let numbers = counters.iter().map(|(_, number)| number.to_string());
        let arguments = std::iter::once(millis(self.fence_retention)).chain(numbers);
        let (peer, reply) = self.ask(&RAISE, fences, arguments, self.command_timeout).await?;
        match *reply.words() {
            ["raised"] => Ok(()),
            ref words => Err(not_understood(&peer, words)),
        }
    }

    /// `incarnation`: for a node that has none.
    pub(crate) async fn mark(&self, peer: &Peer, mark: Mark, incarnation: OwnerId) -> Result<Marker, Failure> {
        let mark = match mark {
            Mark::Look => "look",
            Mark::Begin => "begin",
            Mark::Finish => "finish",
            Mark::Heal => "heal",
            Mark::Healed => "healed",
        };
        let arguments = [mark.to_owned(), incarnation.to_hex()];
        let reply = peer.connection.run(&MARK, [self.names.own(MARKER)], arguments, None).await?;
        let marker = |phase, incarnation: &str, run: &str| Marker {
            phase,
            incarnation: incarnation.to_owned(),
            run: run.to_owned(),
        };
        match *reply.words() {
            ["none", incarnation, run] => Ok(marker(Phase::None, incarnation, run)),
            ["new", incarnation, run] => Ok(marker(Phase::New, incarnation, run)),
            ["healing", incarnation, run] => Ok(marker(Phase::Healing, incarnation, run)),
            ["up", incarnation, run] => Ok(marker(Phase::Up, incarnation, run)),
            ref words => Err(not_understood(peer, words)),
        }
    }

    /// Has the server learn the scripts whose order matters.
    pub(crate) async fn teach(peer: &Peer) -> Result<(), Failure> {
        peer.commits.load().await?;
        peer.connection.run(&RENEW, [], [], None).await?;
        peer.connection.run(&TAKE_OVER, [], [], None).await?;
        Ok(())
    }

    async fn commit(
        &self,
        step: &'static ScriptFunction,
        words: ScriptArguments,
        limit: Duration,
    ) -> Result<(Peer, Reply), Failure> {
        let peer = self.peer()?;
        let reply = self.heard(peer.commits.run(step, words, Some(limit)).await, limit)?;
        Ok((peer, reply))
    }

    async fn ask(
        &self,
        script: &Script,
        keys: impl IntoIterator<Item = String>,
        arguments: impl IntoIterator<Item = String>,
        limit: Duration,
    ) -> Result<(Peer, Reply), Failure> {
        let peer = self.peer()?;
        let reply = self.heard(peer.connection.run(script, keys, arguments, Some(limit)).await, limit)?;
        Ok((peer, reply))
    }

    /// Whether an answer is to be expected within the limit: not where as long was waited for the last one, in vain.
    pub(crate) fn is_expected_within(&self, limit: Duration) -> bool {
        limit.as_millis() > u128::from(self.silent_for.load(Ordering::Relaxed)) && self.peer().is_ok()
    }

    fn heard(&self, answer: Result<Reply>, within: Duration) -> Result<Reply, Failure> {
        let answer = answer.map_err(Failure::from);
        if answer.as_ref().is_err_and(Failure::is_transient) {
            let waited = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
            self.silent_for.fetch_max(waited, Ordering::Relaxed);
        } else {
            self.silent_for.store(0, Ordering::Relaxed);
        }
        answer
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
