use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use leasehold_core::{Clock, Cursor, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, OwnerId, Result};
use leasehold_redis::{
    CHANNEL, ConnectionSettings, Endpoint, FORCE_RELEASE, INSPECT, KeyNames, Namespace, Notify, PROLONG, REWRITE,
    Reply, Script, ScriptArguments, ScriptFunction, StoreOptions, read_epoch,
};
use metrics::{Key, Level, Metadata, with_recorder};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answer::{
    BatchAnswers, Claimed, Confirmed, Marker, NodeEntry, batch_answers, failure, lease_status, marker, node_entry,
    release_answer,
};
use crate::error::Failure;
use crate::node_clock::NodeClock;
use crate::node_state::NodeCondition;

/// The name of the backend.
pub(crate) const NAME: &str = "redlock";

/// The parts of a key's names, see the README.
pub(crate) const LOCK: &str = "lock";
pub(crate) const FENCE: &str = "fence";
pub(crate) const FORCED: &str = "forced";
pub(crate) const MARKER: &str = "node";

/// What several scripts call.
const NODE: &str = include_str!("lua/node.lua");
static CONFIRM: ScriptFunction = ScriptFunction::new("confirm", 3, 4, &[NODE, include_str!("lua/confirm.lua")]);
static RELEASE: ScriptFunction = ScriptFunction::new("release", 2, 2, &[include_str!("lua/release.lua")]);
static FUNCTIONS: [&ScriptFunction; 2] = [&CONFIRM, &RELEASE];
static FLEET: Script = Script::new(&[NODE, include_str!("lua/fleet.lua")]);
static RENEW: Script = Script::new(&[PROLONG, include_str!("lua/renew.lua")]);
static TAKE_OVER: Script = Script::new(&[REWRITE, include_str!("lua/take_over.lua")]);
static MARKER_STEP: Script = Script::new(&[NODE, include_str!("lua/marker_step.lua")]);
static READ_COUNTERS: Script = Script::new(&[NODE, include_str!("lua/read_counters.lua")]);
static RAISE_COUNTERS: Script = Script::new(&[NODE, include_str!("lua/raise_counters.lua")]);
static CLOCK: Script = Script::new(&[include_str!("lua/clock.lua")]);

/// One of the servers. Each request to it is one script.
pub(crate) struct Node {
    endpoint: Endpoint,
    /// The address, without credentials.
    pub(crate) name: String,
    namespace: Namespace,
    settings: ConnectionSettings,
    fence_retention: Duration,
    membership: RwLock<Membership>,
    /// The longest limit, in ms, that the node has missed since it last answered in time.
    silent_for: AtomicU64,
    /// Whether the node was without its data when it last told.
    is_reset: AtomicBool,
    /// The gauge that tells whether the node has a vote.
    has_vote: Key,
    /// Our own clock.
    clock: Clock,
    pub(crate) its_clock: NodeClock,
    /// For the batches that it has not answered.
    room: Semaphore,
}

/// Whether a node has a vote: 1, or 0 where it has none.
const HAS_VOTE: &str = "leasehold_redlock_node_has_vote";
static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// How many batches a node is sent before it answers. What is beyond comes late to a node that was silent.
const BATCHES_IN_FLIGHT: usize = 16;

/// Whether a node takes part in votes.
enum Membership {
    /// The node takes part; with its marker as it was when it joined.
    Joined(Peer, Option<Marker>),
    /// The node does not take part, for this reason.
    Absent(NodeCondition),
}

/// The connection to a node.
pub(crate) type Peer = leasehold_redis::Store;

/// What an attempt asks a node for.
#[derive(Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) owner: OwnerId,
    pub(crate) names: KeyNames,
    pub(crate) lease: Duration,
    pub(crate) metadata: String,
}

/// What is done with the marker of a node; see `marker_step.lua`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkerStep {
    Look,
    Begin,
    Finish,
    Heal,
    Healed,
}

impl Node {
    pub(crate) fn new(
        endpoint: Endpoint,
        namespace: Namespace,
        settings: ConnectionSettings,
        fence_retention: Duration,
        clock: Clock,
    ) -> Self {
        let absent = Membership::Absent(NodeCondition::Unreachable("not connected yet".into()));
        let name = endpoint.to_string();
        Self {
            has_vote: Key::from_parts(HAS_VOTE, &[("backend", NAME.to_owned()), ("node", name.clone())]),
            endpoint,
            name,
            namespace,
            settings,
            fence_retention,
            membership: RwLock::new(absent),
            silent_for: AtomicU64::new(0),
            is_reset: AtomicBool::new(false),
            clock,
            its_clock: NodeClock::new(),
            room: Semaphore::new(BATCHES_IN_FLIGHT),
        }
    }

    /// Opens a connection; the node uses it from [`join`](Self::join) on.
    pub(crate) async fn connect(&self) -> Result<Peer> {
        let options = StoreOptions { functions: &FUNCTIONS, notifications: Notify::Releases };
        Peer::connect(&self.endpoint, &self.namespace, &self.settings, options).await
    }

    /// Lets the node take part in votes, over this connection.
    pub(crate) fn join(&self, peer: Peer, marker: Option<Marker>) {
        *self.membership.write().unwrap_or_else(PoisonError::into_inner) = Membership::Joined(peer, marker);
        self.tell_vote();
    }

    /// Keeps the node out of votes.
    pub(crate) fn leave(&self, why: NodeCondition) {
        *self.membership.write().unwrap_or_else(PoisonError::into_inner) = Membership::Absent(why);
        self.tell_vote();
    }

    /// Tells in each answer, because a program may install its recorder late.
    fn tell_vote(&self) {
        let silent = self.silent_for.load(Ordering::Relaxed) > 0;
        let has_vote = !silent && !self.is_reset.load(Ordering::Relaxed) && self.peer().is_ok();
        let gauge = with_recorder(|recorder| recorder.register_gauge(&self.has_vote, &METADATA));
        gauge.set(if has_vote { 1.0 } else { 0.0 });
    }

    /// The connection of a node that takes part, or why it does not.
    pub(crate) fn peer(&self) -> Result<Peer, Failure> {
        match &*self.membership.read().unwrap_or_else(PoisonError::into_inner) {
            Membership::Joined(peer, _) => Ok(peer.clone()),
            Membership::Absent(why) => Err(Failure::of(why.clone())),
        }
    }

    /// The marker that the node had when it joined, if it takes part.
    pub(crate) fn marker(&self) -> Option<Marker> {
        match &*self.membership.read().unwrap_or_else(PoisonError::into_inner) {
            Membership::Joined(_, marker) => marker.clone(),
            Membership::Absent(_) => None,
        }
    }

    pub(crate) async fn close(&self) {
        if let Ok(peer) = self.peer() {
            peer.close().await;
        }
    }

    /// Runs a batch of so many releases and claims: first rounds. `arguments` are so many keys, then the arguments, of
    /// `fleet.lua`. If the node has too many batches that it has not answered, and goes on so for the limit, it is not sent.
    pub(crate) async fn run_batch(
        &self,
        keys: usize,
        arguments: ScriptArguments,
        count: (usize, usize),
        limit: Duration,
    ) -> Result<BatchAnswers, Failure> {
        self.peer()?;
        let Ok(_room) = timeout(limit, self.room.acquire()).await else {
            let error = Error::new(ErrorKind::Unavailable, "ask Redis");
            let not_sent = Err(error.detail("not sent, for what was sent before has no answer"));
            return self.note_answer(not_sent, limit);
        };
        let sent_at = self.clock.now();
        let (peer, reply) = self.run(&FLEET, keys, arguments, limit).await?;
        let answers = batch_answers(&peer, &reply.words(), count)?;
        if let Some(is_reset) = answers.claims.iter().find_map(Claimed::is_of_a_reset_node) {
            self.note_reset(is_reset);
        }
        if answers.clock > 0 {
            self.its_clock.note(answers.clock, sent_at, self.clock.now());
        }
        Ok(answers)
    }

    /// Second round: writes the number on a node that granted, if it is at most so far ahead of the node's clock.
    pub(crate) async fn confirm(&self, request: &ClaimRequest, number: u64, ahead: u64, limit: Duration) -> Confirmed {
        let names = &request.names;
        let arguments = ScriptArguments::default()
            .name(names, LOCK)
            .name(names, FENCE)
            .text(self.namespace.own(MARKER))
            .text(request.owner.to_hex())
            .text(number)
            .text(ahead)
            .text(self.fence_retention.as_millis());
        let answered =
            self.run_batched(&CONFIRM, arguments, limit).await.and_then(|(peer, reply)| match *reply.words() {
                ["fenced"] => Ok(Confirmed::Written),
                ["gone"] | ["conflict", _] => Ok(Confirmed::Conflict),
                ["early"] => Ok(Confirmed::Early),
                ref words => Err(failure(&peer, words)),
            });
        answered.unwrap_or_else(Confirmed::Failed)
    }

    /// Releases the key on the node, and notifies waiters if `signal` is set.
    pub(crate) async fn release(
        &self,
        names: &KeyNames,
        owner: OwnerId,
        signal: bool,
        limit: Duration,
    ) -> Result<LeaseStatus, Failure> {
        let arguments = ScriptArguments::default().name(names, LOCK).name(names, FORCED).text(owner.to_hex());
        let arguments = if signal { arguments.name(names, CHANNEL) } else { arguments.text("") };
        let (peer, reply) = self.run_batched(&RELEASE, arguments, limit).await?;
        release_answer(&peer, &reply.words())
    }

    /// Prolongs grants on the node; answers one status for each, in their order.
    pub(crate) async fn renew(
        &self,
        grants: &[(KeyNames, OwnerId, Duration)],
        limit: Duration,
    ) -> Result<Vec<Result<LeaseStatus, Failure>>, Failure> {
        let keys = |keys: ScriptArguments, names: &KeyNames| keys.name(names, LOCK).name(names, FORCED);
        let keys = grants.iter().fold(ScriptArguments::default(), |all, (names, ..)| keys(all, names));
        let arguments = grants
            .iter()
            .fold(keys, |arguments, (_, owner, lease)| arguments.text(owner.to_hex()).text(lease.as_millis()));
        let (peer, reply) = self.run(&RENEW, 2 * grants.len(), arguments, limit).await?;
        Ok(reply.each_of(grants.len()).iter().map(|answer| lease_status(&peer, &answer.words())).collect())
    }

    /// Gives the grant on the node to a new owner, if the old owner has it there.
    pub(crate) async fn take_over(
        &self,
        grant: &GrantRef,
        new_owner: OwnerId,
        lease: Duration,
        limit: Duration,
    ) -> Result<LeaseStatus, Failure> {
        let names = self.namespace.of(&grant.key);
        let epoch = grant.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
        let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED).text(grant.owner.to_hex());
        let arguments = arguments.text(epoch).text(new_owner.to_hex()).text(lease.as_millis());
        let (peer, reply) = self.run(&TAKE_OVER, 2, arguments, limit).await?;
        lease_status(&peer, &reply.words())
    }

    /// Reads the entries of these keys on the node, in their order.
    pub(crate) async fn inspect(&self, keys: &[LockKey]) -> Result<Vec<Result<NodeEntry, Failure>>, Failure> {
        let locks = self.parts(keys.iter(), LOCK);
        let (peer, reply) = self.run(&INSPECT, keys.len(), locks, self.settings.command_timeout).await?;
        Ok(reply.each_of(keys.len()).iter().map(|answer| node_entry(&peer, &answer.words())).collect())
    }

    /// The failure that an entry of this key stands for, as a script names it: `endless`, or `foreign` and what it is.
    pub(crate) fn failure_of(&self, key: &LockKey, word: &str, kind: Option<&str>) -> Failure {
        let lock = self.namespace.of(key).part(LOCK);
        let words: Vec<&str> = [word, &lock].into_iter().chain(kind).collect();
        self.peer().map_or_else(|absent| absent, |peer| failure(&peer, &words))
    }

    /// Frees the key on the node whoever holds it, and answers the entry that was there.
    pub(crate) async fn force_release(&self, key: &LockKey, grace: Duration, only: &str) -> Result<NodeEntry, Failure> {
        let names = self.namespace.of(key);
        let arguments = ScriptArguments::default().name(&names, LOCK).name(&names, FORCED);
        let arguments = arguments.name(&names, CHANNEL).text(grace.as_millis()).text(only);
        let (peer, reply) = self.run(&FORCE_RELEASE, 2, arguments, self.settings.command_timeout).await?;
        let words = reply.words();
        if let ["held", _, _, reason @ ..] = &words[..] {
            peer.warn_of_waiters(reason);
        }
        node_entry(&peer, &words)
    }

    /// Some of the keys that have this part on the node and start with `prefix`, and where to go on.
    pub(crate) async fn scan(
        &self,
        prefix: &str,
        part: &str,
        after: Option<&Cursor>,
    ) -> Result<(Vec<LockKey>, Option<Cursor>), Failure> {
        Ok(self.peer()?.keys(part, prefix, after).await?)
    }

    /// The clock of the node, in ms.
    pub(crate) async fn clock(&self) -> Result<u64, Failure> {
        let (peer, reply) = self.run(&CLOCK, 0, ScriptArguments::default(), self.settings.command_timeout).await?;
        match *reply.words() {
            ["now", millis] => millis.parse().map_err(|_| failure(&peer, &[])),
            ref words => Err(failure(&peer, words)),
        }
    }

    /// Reads the counters of these keys on the node; 0 where there is none.
    pub(crate) async fn read_counters(&self, keys: &[LockKey]) -> Result<Vec<u64>, Failure> {
        let fences = self.parts(keys.iter(), FENCE);
        let (peer, reply) = self.run(&READ_COUNTERS, keys.len(), fences, self.settings.command_timeout).await?;
        let counter = |answer: &Reply| match *answer.words() {
            ["none"] => Ok(0),
            ["counter", last] => read_epoch(last).ok_or_else(|| failure(&peer, &[])),
            ref words => Err(failure(&peer, words)),
        };
        reply.each_of(keys.len()).iter().map(counter).collect()
    }

    /// Raises counters on the node to at least these numbers.
    pub(crate) async fn raise_counters(&self, counters: &[(LockKey, u64)]) -> Result<(), Failure> {
        let fences = self.parts(counters.iter().map(|(key, _)| key), FENCE);
        let arguments = fences.text(self.fence_retention.as_millis());
        let arguments = counters.iter().fold(arguments, |arguments, (_, number)| arguments.text(number));
        let limit = self.settings.command_timeout;
        let (peer, reply) = self.run(&RAISE_COUNTERS, counters.len(), arguments, limit).await?;
        match *reply.words() {
            ["raised"] => Ok(()),
            ref words => Err(failure(&peer, words)),
        }
    }

    /// Reads or changes the marker of the node. `incarnation` is for a node that has none.
    pub(crate) async fn marker_step(
        &self,
        peer: &Peer,
        step: MarkerStep,
        incarnation: OwnerId,
    ) -> Result<Marker, Failure> {
        let step = match step {
            MarkerStep::Look => "look",
            MarkerStep::Begin => "begin",
            MarkerStep::Finish => "finish",
            MarkerStep::Heal => "heal",
            MarkerStep::Healed => "healed",
        };
        let arguments = ScriptArguments::default().text(self.namespace.own(MARKER));
        let arguments = arguments.text(step).text(incarnation.to_hex());
        let sent_at = self.clock.now();
        let reply = peer.run(&MARKER_STEP, 1, arguments, None).await?;
        let marker = marker(peer, &reply.words())?;
        self.its_clock.note(marker.clock, sent_at, self.clock.now());
        Ok(marker)
    }

    /// Loads the scripts whose order matters into the server.
    pub(crate) async fn load_scripts(peer: &Peer) -> Result<(), Failure> {
        Ok(peer.load(&[&FLEET, &RENEW, &TAKE_OVER]).await?)
    }

    /// Runs a script that may leave together with those of other keys.
    async fn run_batched(
        &self,
        function: &'static ScriptFunction,
        arguments: ScriptArguments,
        limit: Duration,
    ) -> Result<(Peer, Reply), Failure> {
        let peer = self.peer()?;
        let reply = self.note_answer(peer.run_function(function, arguments, Some(limit)).await, limit)?;
        Ok((peer, reply))
    }

    /// This part of the names of all keys.
    fn parts<'k>(&self, keys: impl Iterator<Item = &'k LockKey>, part: &str) -> ScriptArguments {
        keys.fold(ScriptArguments::default(), |names, key| names.name(&self.namespace.of(key), part))
    }

    /// Runs a script on its own.
    async fn run(
        &self,
        script: &Script,
        keys: usize,
        arguments: ScriptArguments,
        limit: Duration,
    ) -> Result<(Peer, Reply), Failure> {
        let peer = self.peer()?;
        let reply = self.note_answer(peer.run(script, keys, arguments, Some(limit)).await, limit)?;
        Ok((peer, reply))
    }

    /// Whether an answer may be expected within `limit`: not if the node has missed a limit as long since it last answered.
    pub(crate) fn is_expected_within(&self, limit: Duration) -> bool {
        limit.as_millis() > u128::from(self.silent_for.load(Ordering::Relaxed)) && self.peer().is_ok()
    }

    /// Notes whether the node has lost its data, and tells when that changes: its vote is missing from then on, and nothing else
    /// shows it as long as a majority has votes.
    pub(crate) fn note_reset(&self, is_reset: bool) {
        if self.is_reset.swap(is_reset, Ordering::Relaxed) == is_reset {
            return;
        }
        if is_reset {
            tracing::warn!(node = self.name, "a node of the quorum has no data, and has no vote until it is repaired");
        } else {
            tracing::info!(node = self.name, "a node of the quorum that had no data has a vote again");
        }
        self.tell_vote();
    }

    /// Notes whether the node answered within the limit.
    fn note_answer<T>(&self, answer: Result<T>, within: Duration) -> Result<T, Failure> {
        let answer = answer.map_err(Failure::from);
        if answer.as_ref().is_err_and(Failure::is_transient) {
            let waited = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
            self.silent_for.fetch_max(waited, Ordering::Relaxed);
        } else {
            self.silent_for.store(0, Ordering::Relaxed);
        }
        self.tell_vote();
        answer
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = self.peer().err().map_or(NodeCondition::Serving, |failure| failure.condition);
        f.debug_struct("Node").field("name", &self.name).field("condition", &condition).finish_non_exhaustive()
    }
}
