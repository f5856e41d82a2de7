//! A client that brings its own engine: the agent passes its steps on to the store, and keeps nothing between two of them but who
//! holds what. So an agent can end, and another go on, without a word about locks.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture, join, join_all, ready};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, poll};
use leasehold_core::{
    Attempt, Backend, Claim, ErrorKind, GrantRef, LeaseStatus, LockKey, LockOptions, Notification, OwnerId, Renewal,
    Result, Subscription,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, interval};

use crate::connection::{Steps, Stop};
use crate::peer::Peer;
use crate::pipe::{Lines, Outbox};
use crate::positions::{ClientId, Position};
use crate::protocol::{Answer, Refusal, line};
use crate::shared::{Counted, Shared};
use crate::wire::{Failure, LONGEST_STEP, Reply, STEPS, Served, Step};

/// No more steps are read while so many are under way, or so many bytes of answers have not been taken.
const MOST_UNDER_WAY: usize = 1000;
const MOST_UNSENT: usize = LONGEST_STEP;

/// How often leases that are over are taken out of what a client holds, and how long after their end.
const SWEEP: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(5);

/// What the store did.
enum Done {
    Answered(u64, Reply, Change),
    Subscribed(u64, LockKey, Result<Box<dyn Subscription>>),
    Notified(Listening, Notification),
    Unsubscribed,
}

/// A subscription: its number, and what it is about.
struct Listening {
    number: u64,
    key: LockKey,
    subscription: Box<dyn Subscription>,
}

/// What an answer changes about what the client holds.
enum Change {
    Nothing,
    HoldsNoMore(GrantRef),
    /// It is in the store for so long.
    Holds(GrantRef, Duration),
    /// Of these the store told whether it has them, and for how long: an agent that has just begun hears of them so.
    Renewed(Vec<(GrantRef, Option<Duration>)>),
}

/// What a client holds, waits for or asks for.
struct Held<'a> {
    grant: GrantRef,
    /// When the store has ended the lease, if nobody has prolonged it.
    ends: Instant,
    counted: Option<Counted<'a>>,
    /// While it was granted nothing that the client knows of.
    asks: Option<Position<'a>>,
}

struct Client<'a> {
    backend: &'a dyn Backend,
    shared: &'a Shared,
    peer: &'a Peer,
    id: ClientId,
    under_way: FuturesUnordered<BoxFuture<'a, Done>>,
    subscriptions: HashMap<u64, AbortHandle>,
    holds: HashMap<(LockKey, OwnerId), Held<'a>>,
}

/// Serves a client until its end. What it holds is released if its process has ended; one that lives may still count on its leases.
pub(crate) async fn serve<S: Future<Output = Stop>>(
    (input, output): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    asked: Steps,
    shared: &Shared,
    peer: &Peer,
    mut told_to_end: Pin<&mut S>,
) {
    let mut output = Outbox::new(output, asked.unsent);
    let backend = shared.locks.backend();
    if let Err(refusal) = refuse(backend, asked.version) {
        output.put(&Answer::from(&refusal).line());
        return output.finish().await;
    }
    output.put(&line(&Served::of(backend, shared.place.as_deref())));
    let mut input = Lines::new(input, asked.read).up_to(LONGEST_STEP);
    let mut client = Client {
        backend,
        shared,
        peer,
        id: shared.positions.new_client(),
        under_way: FuturesUnordered::new(),
        subscriptions: HashMap::new(),
        holds: HashMap::new(),
    };
    let mut sweep = interval(SWEEP);
    loop {
        let steps = client.under_way.len().saturating_sub(client.subscriptions.len());
        let has_room = steps < MOST_UNDER_WAY && output.len() < MOST_UNSENT;
        tokio::select! {
            biased;
            // Who goes on with its leases asks the agent that follows.
            _ = &mut told_to_end => return,
            _ = sweep.tick() => client.sweep(),
            sent = output.send(), if !output.is_empty() => if sent.is_err() { break },
            Some(done) = client.under_way.next(), if output.len() < 2 * MOST_UNSENT => client.tell(done, &mut output),
            read = input.next(), if has_room => match read.map(|read| serde_json::from_slice(&read)) {
                Ok(Ok((number, step))) => client.begin(number, step, &mut output).await,
                Ok(Err(_)) => {
                    output.put(&Answer::from(&Refusal::usage("a step is not understood")).line());
                    output.finish().await;
                    break;
                }
                Err(_) => break,
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
            Err(refusal) => return output.put(&line(&(number, Reply::Failed(Failure::from(refusal))))),
        };
        match poll!(&mut done) {
            std::task::Poll::Ready(done) => self.tell(done, output),
            std::task::Poll::Pending => self.under_way.push(done),
        }
    }

    fn step(&mut self, number: u64, step: Step) -> Result<Option<BoxFuture<'a, Done>>, Refusal> {
        let backend = self.backend;
        let answered = move |reply| Done::Answered(number, reply, Change::Nothing);
        Ok(Some(match step {
            Step::TryAcquire(claim) => self.try_acquire(number, claim)?,
            Step::Renew { renewals, within } => self.renew(number, renewals, within)?,
            Step::Release(grant) => {
                self.check(&grant.key)?;
                async move {
                    let released = backend.release(&grant).await;
                    let change = if released.is_ok() { Change::HoldsNoMore(grant) } else { Change::Nothing };
                    Done::Answered(number, reply(released.map(Reply::Status)), change)
                }
                .boxed()
            }
            Step::Downgrade { writer, claim } => self.downgrade(number, writer, claim)?,
            Step::Inspect(key) => {
                self.check(&key)?;
                async move { answered(reply(backend.inspect(&key).await.map(Reply::Holders))) }.boxed()
            }
            Step::List { prefix, after } => {
                self.shared.policy.check(&self.peer.names, &prefix)?;
                let list = async move { backend.list(&prefix, after.as_ref()).await };
                list.map(move |page| answered(reply(page.map(Reply::Page)))).boxed()
            }
            Step::ForceRelease { key, only } => {
                self.check(&key)?;
                let force = async move { backend.force_release(&key, only).await };
                force.map(move |of| answered(reply(of.map(Reply::Holders)))).boxed()
            }
            Step::Subscribe(key) => self.subscribe(number, key)?,
            Step::Unsubscribe(number) => {
                if let Some(subscription) = self.subscriptions.remove(&number) {
                    subscription.abort();
                }
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
        let counted = self.place(&claim.grant(None))?;
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
        let is_asked: Vec<_> = renewals.iter().map(|renewal| positions.keep(&renewal.grant)).collect();
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
        self.check(&writer.key)?;
        self.admit(&claim)?;
        // The writer is gone then.
        let counted = self.place(&writer)?;
        self.hold(claim.grant(None), claim.ttl, (counted, None));
        let backend = self.backend;
        Ok(async move { claimed(number, &claim, backend.downgrade(&writer, &claim).await, false) }.boxed())
    }

    /// Takes the place of this grant among what is counted, or a new one.
    fn place(&mut self, grant: &GrantRef) -> Result<Option<Counted<'a>>, Refusal> {
        match self.holds.remove(&(grant.key.clone(), grant.owner)) {
            Some(held) => Ok(held.counted),
            None => self.shared.take(self.peer, 1).map(Some),
        }
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

    fn hold(&mut self, grant: GrantRef, ttl: Duration, (counted, asks): (Option<Counted<'a>>, Option<Position<'a>>)) {
        let held = Held { ends: Instant::now() + ttl + AFTER, counted, asks, grant };
        self.holds.insert((held.grant.key.clone(), held.grant.owner), held);
    }

    /// Forgets the leases that the store has ended.
    fn sweep(&mut self) {
        let now = Instant::now();
        self.holds.retain(|_, held| held.ends > now);
    }

    fn subscribe(&mut self, number: u64, key: LockKey) -> Result<BoxFuture<'a, Done>, Refusal> {
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
        let (subscriptions, id) = (&self.shared.subscriptions, self.id);
        let begun = async move {
            let begun = subscriptions.subscribe(notifications, &key, id).await;
            Done::Subscribed(number, key, begun)
        };
        Ok(self.abortable(number, begun))
    }

    /// A part of a subscription, which ends with it.
    fn abortable(&mut self, number: u64, part: impl Future<Output = Done> + Send + 'a) -> BoxFuture<'a, Done> {
        let (handle, registration) = AbortHandle::new_pair();
        self.subscriptions.insert(number, handle);
        Abortable::new(part, registration).map(|part| part.unwrap_or(Done::Unsubscribed)).boxed()
    }

    /// Tells the client of what is done.
    fn tell(&mut self, done: Done, output: &mut Outbox<impl AsyncWrite + Unpin>) {
        let (number, reply) = match done {
            Done::Unsubscribed => return,
            Done::Answered(number, reply, change) => {
                self.change(change);
                (number, reply)
            }
            Done::Subscribed(number, key, Ok(subscription)) => {
                self.listen(Listening { number, key, subscription });
                (number, Reply::Subscribed)
            }
            Done::Subscribed(number, _, Err(error)) => {
                self.subscriptions.remove(&number);
                (number, Reply::Failed(error.into()))
            }
            Done::Notified(listening, notification) => {
                let number = listening.number;
                let is_foreign = match notification {
                    Notification::Granted { owner, .. } => !self.is_told(&listening.key, owner),
                    _ => false,
                };
                if notification == Notification::Ended {
                    self.subscriptions.remove(&number);
                } else {
                    self.listen(listening);
                }
                if is_foreign {
                    return;
                }
                (number, Reply::Notified(notification))
            }
        };
        output.put(&line(&(number, reply)));
    }

    /// Whether a grant is this client's, which now knows of it. The owner id of somebody else is none of its business: who has it could
    /// release the grant.
    fn is_told(&mut self, key: &LockKey, owner: OwnerId) -> bool {
        let held = self.holds.get_mut(&(key.clone(), owner));
        held.map(|held| held.asks = None).is_some()
    }

    fn listen(&mut self, mut listening: Listening) {
        let number = listening.number;
        let next = async move {
            let notification = listening.subscription.next().await;
            Done::Notified(listening, notification)
        };
        let next = self.abortable(number, next);
        self.under_way.push(next);
    }

    fn change(&mut self, change: Change) {
        let told = match change {
            Change::Nothing => return,
            Change::HoldsNoMore(grant) => vec![(grant, None)],
            Change::Holds(grant, ttl) => vec![(grant, Some(ttl))],
            Change::Renewed(renewed) => renewed,
        };
        for (grant, left) in told {
            let before = self.holds.remove(&(grant.key.clone(), grant.owner));
            if let Some(ttl) = left {
                let counted = before.map_or_else(|| self.shared.take(self.peer, 1).ok(), |held| held.counted);
                self.hold(grant, ttl, (counted, None));
            }
        }
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

fn reply(step: Result<Reply>) -> Reply {
    step.unwrap_or_else(|error| Reply::Failed(error.into()))
}

fn claimed(number: u64, claim: &Claim, attempt: Result<Attempt>, is_again: bool) -> Done {
    let change = match &attempt {
        Ok(Attempt::Granted { epoch }) => Change::Holds(claim.grant(*epoch), claim.ttl),
        Ok(Attempt::Queued { .. }) => Change::Nothing,
        Err(error) if error.kind() == ErrorKind::Indeterminate => Change::Nothing,
        // Of the position that it has from before this says nothing: at the end of a wait it is asked once more, without waiting.
        _ if is_again => Change::Nothing,
        _ => Change::HoldsNoMore(claim.grant(None)),
    };
    Done::Answered(number, reply(attempt.map(Reply::Attempt)), change)
}

fn renewed(number: u64, renewals: &[Renewal], statuses: Vec<Result<LeaseStatus>>) -> Done {
    let told = |(renewal, status): (&Renewal, &Result<LeaseStatus>)| {
        let left = |status: &LeaseStatus| (*status == LeaseStatus::Held).then_some(renewal.ttl);
        status.as_ref().ok().map(|status| (renewal.grant.clone(), left(status)))
    };
    let change = Change::Renewed(renewals.iter().zip(&statuses).filter_map(told).collect());
    let statuses = statuses.into_iter().map(|status| status.map_err(Failure::from)).collect();
    Done::Answered(number, Reply::Statuses(statuses), change)
}
