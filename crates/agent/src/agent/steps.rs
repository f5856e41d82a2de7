//! A client that brings its own engine: the agent passes its steps on to the store, and keeps nothing between two of them but who
//! holds what. So an agent can end, and another go on, without a word about locks.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join, join_all, ready};
use futures::stream::{BoxStream, FuturesUnordered, StreamExt, iter};
use futures::{FutureExt, poll};
use leasehold_core::{
    Attempt, Backend, Claim, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, LockOptions, Mode, Notification,
    OwnerId, Renewal, Result,
};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, interval};
use tokio_stream::StreamMap;

use super::peer::Peer;
use super::positions::{ClientId, Position};
use super::shared::{Counted, Shared};
use crate::connection::{Rest, Stop};
use crate::pipe::{Lines, NoLine, Outbox};
use crate::policy::Limits;
use crate::protocol::{Answer, Refusal, line};
use crate::wire::{LONGEST_STEP, Reply, STEPS, Served, Step};

/// No more steps are read while so many are under way, or so many bytes of answers have not been taken.
const MOST_UNDER_WAY: usize = 1000;
const MOST_UNSENT: usize = LONGEST_STEP;

/// A client that leaves so many bytes of answers is ended. Steps under way are not put off: they have connections of the store, which
/// others would wait for.
const MOST_UNREAD: usize = 16 * LONGEST_STEP;

const ONE_KEY: Limits = Limits { keys: 1, connections: 0 };

/// How often leases that are over are taken out of what a client holds, and how long after their end.
const SWEEP: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(5);

/// The number of a step, its reply, and what of the grants of the client is in the store for so long from now on, or no more.
struct Done(u64, Reply, Changes);

type Changes = Vec<(GrantRef, Option<Duration>)>;

/// What a client holds, waits for or asks for.
struct Held<'a> {
    grant: GrantRef,
    /// When the store has ended the lease, if nobody has prolonged it.
    ends: Instant,
    counted: Option<Counted>,
    /// While it was granted nothing that the client knows of.
    asks: Option<Position<'a>>,
}

struct Client<'a> {
    backend: &'a dyn Backend,
    shared: &'a Arc<Shared>,
    peer: &'a Peer,
    id: ClientId,
    under_way: FuturesUnordered<BoxFuture<'a, Done>>,
    subscriptions: StreamMap<u64, BoxStream<'a, Reply>>,
    holds: HashMap<(LockKey, OwnerId), Held<'a>>,
}

/// Serves a client until its end. What it holds is released if its process has ended; one that lives may still count on its leases.
pub(crate) async fn serve<S: Future<Output = Stop>>(
    (input, output): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    (version, rest): (u32, Rest),
    shared: &Arc<Shared>,
    peer: &Peer,
    mut told_to_end: Pin<&mut S>,
) {
    let mut output = Outbox::new(output, rest.unsent);
    let backend = shared.locks.backend();
    if let Err(refusal) = refuse(backend, version) {
        output.put(&Answer::from(&refusal).line());
        return output.finish().await;
    }
    output.put(&line(&Served::of(backend, &shared.place)));
    let mut input = Lines::new(input, rest.read, LONGEST_STEP);
    let mut client = Client {
        backend,
        shared,
        peer,
        id: shared.positions.new_client(),
        under_way: FuturesUnordered::new(),
        subscriptions: StreamMap::new(),
        holds: HashMap::new(),
    };
    let mut sweep = interval(SWEEP);
    loop {
        let has_room = client.under_way.len() < MOST_UNDER_WAY && output.len() < MOST_UNSENT;
        tokio::select! {
            biased;
            // Who goes on with its leases asks the agent that follows.
            _ = &mut told_to_end => return,
            _ = sweep.tick() => client.sweep(),
            sent = output.send(), if !output.is_empty() => if sent.is_err() { break },
            Some(done) = client.under_way.next() => {
                client.tell(done, &mut output);
                if output.len() > MOST_UNREAD {
                    break;
                }
            }
            Some(told) = client.subscriptions.next(), if output.len() < MOST_UNSENT => output.put(&line(&told)),
            read = input.next(), if has_room => match read.map(|read| serde_json::from_slice(&read)) {
                Ok(Ok((number, step))) => client.begin(number, step, &mut output).await,
                Err(NoLine::Closed) => break,
                Ok(Err(_)) | Err(NoLine::TooLong) => {
                    output.put(&Answer::from(&Refusal::usage("a step is not understood, or too long")).line());
                    output.finish().await;
                    break;
                }
            },
        }
    }
    client.end().await;
}

/// Why the steps of a store cannot be passed on.
fn refuse(backend: &dyn Backend, version: u32) -> Result<(), Refusal> {
    use leasehold_core::Capability::{Lease, Reentrancy};
    let capabilities = backend.capabilities();
    let store = capabilities.backend();
    if version != STEPS {
        return Err(Refusal::usage(format!("this agent passes on steps of version {STEPS}, and not of {version}")));
    }
    if !capabilities.has(Lease) {
        let why = "has no leases: who holds there is the agent, and not its client; use the store without an agent";
        return Err(Refusal::refused(format!("{store} {why}")));
    }
    if capabilities.has(Reentrancy) {
        let why = "has sessions, and all clients of the agent would be one: use the store without an agent";
        return Err(Refusal::refused(format!("{store} {why}")));
    }
    Ok(())
}

impl<'a> Client<'a> {
    /// Sends a step to the store. The first part of it is done before the next line is read: a release that follows its claim stays
    /// behind it.
    async fn begin(&mut self, number: u64, step: Step, output: &mut Outbox<impl AsyncWrite + Unpin>) {
        let mut done = match self.step(number, step) {
            Ok(Some(done)) => done,
            Ok(None) => return,
            Err(refusal) => return output.put(&line(&(number, Reply::Failed(refusal.into())))),
        };
        match poll!(&mut done) {
            std::task::Poll::Ready(done) => self.tell(done, output),
            std::task::Poll::Pending => self.under_way.push(done),
        }
    }

    fn step(&mut self, number: u64, step: Step) -> Result<Option<BoxFuture<'a, Done>>, Refusal> {
        let backend = self.backend;
        Ok(Some(match step {
            Step::TryAcquire(claim) => self.try_acquire(number, claim)?,
            Step::Renew(renewals, within) => self.renew(number, renewals, within)?,
            Step::Release(grant) => {
                self.check(&grant.key)?;
                let known =
                    self.holds.get(&(grant.key.clone(), grant.owner)).map_or(grant.mode, |held| held.grant.mode);
                async move {
                    let released = backend.release(&grant).await;
                    // What was there is gone, whatever its epoch. What was not may be there in another mode.
                    let mode = if matches!(released, Ok(LeaseStatus::NotHeld)) { grant.mode } else { known };
                    let changes = released.iter().map(|_| (GrantRef { epoch: None, mode, ..grant.clone() }, None));
                    let changes = changes.collect();
                    Done(number, reply(released), changes)
                }
                .boxed()
            }
            Step::Downgrade(writer, claim) => self.downgrade(number, writer, claim)?,
            Step::Inspect(key) => {
                self.check(&key)?;
                answered(number, async move { backend.inspect(&key).await }).boxed()
            }
            Step::List(prefix, after) => {
                self.shared.policy.check_list(&self.peer.names, &prefix)?;
                answered(number, async move { backend.list(&prefix, after.as_ref()).await }).boxed()
            }
            Step::ForceRelease(key, only) => {
                self.check(&key)?;
                answered(number, async move { backend.force_release(&key, only).await }).boxed()
            }
            Step::Holds(grants) => {
                self.take_note(grants)?;
                return Ok(None);
            }
            Step::Subscribe(key) => {
                self.subscribe(number, key)?;
                return Ok(None);
            }
            Step::Unsubscribe(number) => {
                self.subscriptions.remove(&number);
                return Ok(None);
            }
        }))
    }

    fn check(&self, key: &LockKey) -> Result<(), Refusal> {
        self.shared.policy.check(&self.peer.names, key.as_str())
    }

    fn try_acquire(&mut self, number: u64, claim: Claim) -> Result<BoxFuture<'a, Done>, Refusal> {
        self.admit(&claim)?;
        let is_again = self.holds.contains_key(&(claim.key.clone(), claim.owner));
        let counted = if is_again { None } else { Some(self.shared.take(self.peer, ONE_KEY)?) };
        let Some(position) = self.shared.positions.take(&claim.grant(None), self.id) else {
            // The engine claims anew, with another owner id.
            let free = Attempt::Busy { retry_in: Some(Duration::from_millis(1)) };
            return Ok(ready(claimed(number, &claim, Ok(free), false)).boxed());
        };
        // From now on, since a process may end before the answer comes.
        self.hold(claim.grant(None), claim.ttl, (counted, Some(position)));
        let backend = self.backend;
        Ok(async move { claimed(number, &claim, backend.try_acquire(&claim).await, is_again) }.boxed())
    }

    fn renew(&self, number: u64, renewals: Vec<Renewal>, within: Duration) -> Result<BoxFuture<'a, Done>, Refusal> {
        for renewal in &renewals {
            self.check(&renewal.grant.key)?;
            not_above(renewal.ttl)?;
        }
        let (backend, positions) = (self.backend, &self.shared.positions);
        let is_asked: Vec<_> =
            renewals.iter().map(|Renewal { grant, .. }| positions.keep(&grant.key, grant.owner)).collect();
        let asked = renewals.iter().zip(&is_asked).filter(|(_, is_asked)| **is_asked);
        let asked: Vec<_> = asked.map(|(renewal, _)| renewal.clone()).collect();
        let renew = async move {
            let mut told = backend.renew(&asked, within).await.into_iter();
            // Of what was given up a release may be under way.
            let status = |is_asked| if is_asked { told.next() } else { Some(Ok(LeaseStatus::NotHeld)) };
            renewed(number, &renewals, is_asked.into_iter().map_while(status).collect())
        };
        Ok(renew.boxed())
    }

    fn downgrade(&mut self, number: u64, writer: GrantRef, claim: Claim) -> Result<BoxFuture<'a, Done>, Refusal> {
        self.admit(&claim)?;
        if (&writer.key, writer.mode, claim.mode) != (&claim.key, Mode::Exclusive, Mode::Shared) {
            return Err(Refusal::refused("only the writer of a key becomes a reader of it"));
        }
        // Which of the two is there is not known before the answer.
        self.hold(claim.grant(None), claim.ttl, (None, None));
        let backend = self.backend;
        let downgrade = async move {
            let Done(number, reply, mut changes) =
                claimed(number, &claim, backend.downgrade(&writer, &claim).await, false);
            if changes.iter().any(|(_, left)| left.is_some()) {
                changes.insert(0, (GrantRef { epoch: None, ..writer }, None));
            }
            Done(number, reply, changes)
        };
        Ok(downgrade.boxed())
    }

    /// Refuses what the client's engine would not have sent.
    fn admit(&self, claim: &Claim) -> Result<(), Refusal> {
        self.check(&claim.key)?;
        not_above(claim.ttl)?;
        let longest = [&claim.label, &claim.reason].into_iter().flatten().map(|text| text.len()).max();
        if longest.is_some_and(|longest| longest > LockOptions::MAX_TEXT_BYTES) {
            return Err(Refusal::refused(format!("a text is longer than {} bytes", LockOptions::MAX_TEXT_BYTES)));
        }
        Ok(())
    }

    /// Nothing that a client says makes a lease end earlier in the store than it would.
    fn hold(&mut self, grant: GrantRef, ttl: Duration, (counted, asks): (Option<Counted>, Option<Position<'a>>)) {
        let id = (grant.key.clone(), grant.owner);
        let before = self.holds.remove(&id);
        let ends = before.iter().map(|held| held.ends).fold(Instant::now() + ttl + AFTER, Instant::max);
        let known = before.as_ref().filter(|held| held.grant.epoch.is_some() && grant.epoch.is_none());
        let grant = known.map_or(grant, |held| held.grant.clone());
        let counted = counted.or_else(|| before?.counted);
        self.holds.insert(id, Held { grant, ends, counted, asks });
    }

    /// Of what the client holds since an earlier connection, so that it is free at once if its process ends now.
    fn take_note(&mut self, grants: Vec<(GrantRef, Duration)>) -> Result<(), Refusal> {
        let most = self.shared.policy.limits(&self.peer.names).keys;
        for (grant, left) in grants {
            self.check(&grant.key)?;
            not_above(left)?;
            // No store is asked: a client that says more than is true costs no more memory than it may have.
            if self.holds.len() < most && self.shared.positions.keep(&grant.key, grant.owner) {
                let (counted, _) = self.shared.count(self.peer, ONE_KEY);
                self.hold(grant, left, (Some(counted), None));
            }
        }
        Ok(())
    }

    /// Forgets the leases that the store has ended.
    fn sweep(&mut self) {
        let now = Instant::now();
        self.holds.retain(|_, held| held.ends > now);
    }

    /// Answers, and tells of a key from then on.
    fn subscribe(&mut self, number: u64, key: LockKey) -> Result<(), Refusal> {
        self.check(&key)?;
        let limit = self.shared.policy.limits(&self.peer.names).keys;
        if self.subscriptions.len() >= limit {
            return Err(Refusal::full(format!("a program waits for {limit} keys at most")));
        }
        if self.subscriptions.contains_key(&number) {
            return Err(Refusal::refused("the number is that of another subscription"));
        }
        let none = || Refusal::refused("the store has no notifications");
        let notifications = self.backend.notifications().ok_or_else(none)?;
        let (shared, id) = (self.shared, self.id);
        let told = async move {
            let joined = match shared.subscriptions.subscribe(notifications, &key, id).await {
                Ok(joined) => joined,
                Err(error) => return iter([Reply::Failed(passed_on(error))]).boxed(),
            };
            let told = joined.map(move |notification| {
                if let Notification::Granted { owner, .. } = notification {
                    shared.positions.keep(&key, owner);
                }
                Reply::Notified(notification)
            });
            let (subscribed, ended) = (Reply::done(&()), Reply::Notified(Notification::Ended));
            iter([subscribed]).chain(told).chain(iter([ended])).boxed()
        };
        self.subscriptions.insert(number, told.flatten_stream().boxed());
        Ok(())
    }

    /// Tells the client of what is done.
    fn tell(&mut self, Done(number, reply, changes): Done, output: &mut Outbox<impl AsyncWrite + Unpin>) {
        for (grant, left) in changes {
            let id = (grant.key.clone(), grant.owner);
            let before = self.holds.get(&id);
            // Its mode and epoch are what the client says.
            let is_this =
                |held: &Held<'_>| held.grant.mode == grant.mode && [None, held.grant.epoch].contains(&grant.epoch);
            if let Some(ttl) = left {
                let is_counted = before.is_some_and(|held| held.counted.is_some());
                let counted = if is_counted { None } else { self.shared.take(self.peer, ONE_KEY).ok() };
                self.hold(grant, ttl, (counted, None));
            } else if before.is_some_and(is_this) {
                self.holds.remove(&id);
            }
        }
        output.put(&line(&(number, reply)));
    }

    /// Gives up what it asked for, since nobody would hear of a grant; and at once what a process held that has ended. Others would
    /// wait for either until a lease ends.
    async fn end(self) {
        drop(self.under_way);
        let (mut given_up, mut left) = (Vec::new(), Vec::new());
        for Held { grant, asks, .. } in self.holds.into_values() {
            if asks.is_some_and(Position::give_up) { &mut given_up } else { &mut left }.push(grant);
        }
        // A release that fails leaves the key to its lease. One that follows a claim under way frees what that gets.
        let backend = self.backend;
        let release = async |all: &[GrantRef]| drop(join_all(all.iter().map(|grant| backend.release(grant))).await);
        let ended = async {
            if !left.is_empty() && self.peer.has_ended().await {
                release(&left).await;
            }
        };
        join(release(&given_up), ended).await;
    }
}

fn not_above(ttl: Duration) -> Result<(), Refusal> {
    let refused = || Refusal::refused(format!("a lease is longer than {:?}", LockOptions::MAX_TTL));
    if ttl > LockOptions::MAX_TTL { Err(refused()) } else { Ok(()) }
}

async fn answered(number: u64, step: impl Future<Output = Result<impl Serialize>>) -> Done {
    Done(number, reply(step.await), Vec::new())
}

fn reply(step: Result<impl Serialize>) -> Reply {
    step.map_or_else(|error| Reply::Failed(passed_on(error)), |done| Reply::done(&done))
}

/// If this agent ends, another may follow it.
fn passed_on(error: Error) -> Error {
    if error.kind() == ErrorKind::Closed { Refusal::ending().into() } else { error }
}

fn claimed(number: u64, claim: &Claim, attempt: Result<Attempt>, is_again: bool) -> Done {
    let changes = match &attempt {
        Ok(Attempt::Granted { epoch }) => vec![(claim.grant(*epoch), Some(claim.ttl))],
        Ok(Attempt::Queued { .. }) => Vec::new(),
        Err(error) if error.kind() == ErrorKind::Indeterminate => Vec::new(),
        // Of the position that it has from before this says nothing: at the end of a wait it is asked once more, without waiting.
        _ if is_again => Vec::new(),
        _ => vec![(claim.grant(None), None)],
    };
    Done(number, reply(attempt), changes)
}

fn renewed(number: u64, renewals: &[Renewal], statuses: Vec<Result<LeaseStatus>>) -> Done {
    let told = |(renewal, status): (&Renewal, &Result<LeaseStatus>)| {
        let left = |status: &LeaseStatus| (*status == LeaseStatus::Held).then_some(renewal.ttl);
        status.as_ref().ok().map(|status| (renewal.grant.clone(), left(status)))
    };
    let changes = renewals.iter().zip(&statuses).filter_map(told).collect();
    let statuses: Vec<_> = statuses.into_iter().map(|status| status.map_err(passed_on)).collect();
    Done(number, Reply::done(&statuses), changes)
}
