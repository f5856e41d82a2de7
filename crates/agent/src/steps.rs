//! A client that brings its own engine: the agent passes its steps on to the store, and keeps nothing between two of them but who
//! holds what. So an agent can end, and another go on, without a word about locks.

use std::collections::HashMap;
use std::pin::Pin;

use futures::future::{AbortHandle, Abortable, BoxFuture, join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, poll};
use leasehold_core::{
    Attempt, Backend, Claim, Cursor, ErrorKind, GrantRef, LeaseStatus, LockKey, Notification, OwnerId, Renewal, Result,
    Subscription,
};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::{Steps, Stop};
use crate::peer::Peer;
use crate::pipe::{Lines, Outbox};
use crate::protocol::{Answer, Refusal};
use crate::shared::{Counted, Shared};
use crate::wire::{Failure, LONGEST_STEP, Reply, STEPS, Served, Status, Step};

/// No more steps are read while so many are under way, or so many bytes of answers have not been taken.
const MOST_UNDER_WAY: usize = 1000;
const MOST_UNSENT: usize = LONGEST_STEP;

/// What the store did.
enum Done<'a> {
    Answered(u64, Reply, Change<'a>),
    Subscribed(u64, Result<Box<dyn Subscription>>),
    Notified(u64, Box<dyn Subscription>, Notification),
    Unsubscribed,
}

/// What an answer changes about who holds what.
enum Change<'a> {
    Nothing,
    /// This is in the store, or may be.
    Holds(GrantRef, Option<Counted<'a>>),
    HoldsNoMore(Vec<OwnerId>),
    /// Of these the store told whether it has them: an agent that has just begun hears of them so.
    Renewed(Vec<(GrantRef, bool)>),
}

struct Client<'a> {
    backend: &'a dyn Backend,
    shared: &'a Shared,
    peer: &'a Peer,
    under_way: FuturesUnordered<BoxFuture<'a, Done<'a>>>,
    subscriptions: HashMap<u64, AbortHandle>,
    /// What this client holds or waits for.
    holds: HashMap<OwnerId, (GrantRef, Option<Counted<'a>>)>,
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
        under_way: FuturesUnordered::new(),
        subscriptions: HashMap::new(),
        holds: HashMap::new(),
    };
    loop {
        let steps = client.under_way.len().saturating_sub(client.subscriptions.len());
        let has_room = steps < MOST_UNDER_WAY && output.len() < MOST_UNSENT;
        tokio::select! {
            biased;
            // Who goes on with its leases asks the agent that follows.
            _ = &mut told_to_end => return,
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

fn line(said: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
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

    fn step(&mut self, number: u64, step: Step) -> Result<Option<BoxFuture<'a, Done<'a>>>, Refusal> {
        let backend = self.backend;
        let answered = move |reply| Done::Answered(number, reply, Change::Nothing);
        Ok(Some(match step {
            Step::TryAcquire(claim) => self.try_acquire(number, claim)?,
            Step::Renew { renewals, within } => {
                let renewals: Vec<_> = renewals.into_iter().map(Renewal::from).collect();
                renewals.iter().try_for_each(|renewal| self.check(&renewal.grant.key))?;
                async move { renewed(number, &renewals, backend.renew(&renewals, within).await) }.boxed()
            }
            Step::Release(grant) => {
                self.check(&grant.key)?;
                async move {
                    let released = backend.release(&grant).await;
                    let change =
                        if released.is_ok() { Change::HoldsNoMore(vec![grant.owner]) } else { Change::Nothing };
                    Done::Answered(number, reply(released.map(|status| Reply::Status(Status(status)))), change)
                }
                .boxed()
            }
            Step::Downgrade { writer, claim } => self.downgrade(number, writer, claim)?,
            Step::Inspect(key) => {
                self.check(&key)?;
                async move { answered(reply(backend.inspect(&key).await.map(|of| Reply::Holders(of.into())))) }.boxed()
            }
            Step::List { prefix, after } => {
                self.shared.policy.check(&self.peer.names, &prefix)?;
                let list = async move { backend.list(&prefix, after.map(Cursor).as_ref()).await };
                list.map(move |page| answered(reply(page.map(Reply::from)))).boxed()
            }
            Step::ForceRelease { key, only } => {
                self.check(&key)?;
                let force = async move { backend.force_release(&key, only).await };
                force.map(move |of| answered(reply(of.map(|of| Reply::Holders(of.into()))))).boxed()
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

    fn try_acquire(&mut self, number: u64, claim: Claim) -> Result<BoxFuture<'a, Done<'a>>, Refusal> {
        self.check(&claim.key)?;
        // A waiter asks again, and is counted already.
        let counted = if self.holds.contains_key(&claim.owner) { None } else { Some(self.shared.take(self.peer, 1)?) };
        let backend = self.backend;
        Ok(async move { claimed(number, &claim, backend.try_acquire(&claim).await, counted) }.boxed())
    }

    fn downgrade(&mut self, number: u64, writer: GrantRef, claim: Claim) -> Result<BoxFuture<'a, Done<'a>>, Refusal> {
        self.check(&writer.key)?;
        self.check(&claim.key)?;
        // The place of the writer, who is gone then.
        let counted = self.holds.remove(&writer.owner).and_then(|(_, counted)| counted);
        let backend = self.backend;
        Ok(async move { claimed(number, &claim, backend.downgrade(&writer, &claim).await, counted) }.boxed())
    }

    fn subscribe(&mut self, number: u64, key: LockKey) -> Result<BoxFuture<'a, Done<'a>>, Refusal> {
        self.check(&key)?;
        let limit = self.shared.policy.limits(&self.peer.names).keys;
        if self.subscriptions.len() >= limit {
            return Err(Refusal::full(format!("a program waits for {limit} keys at most")));
        }
        let none = || Refusal::refused("the store has no notifications");
        let notifications = self.backend.notifications().ok_or_else(none)?;
        let begun = async move { Done::Subscribed(number, notifications.subscribe(&key).await) };
        Ok(self.abortable(number, begun))
    }

    /// A part of a subscription, which ends with it.
    fn abortable(&mut self, number: u64, part: impl Future<Output = Done<'a>> + Send + 'a) -> BoxFuture<'a, Done<'a>> {
        let (handle, registration) = AbortHandle::new_pair();
        self.subscriptions.insert(number, handle);
        Abortable::new(part, registration).map(|part| part.unwrap_or(Done::Unsubscribed)).boxed()
    }

    /// Tells the client of what is done.
    fn tell(&mut self, done: Done<'a>, output: &mut Outbox<impl AsyncWrite + Unpin>) {
        let (number, reply) = match done {
            Done::Unsubscribed => return,
            Done::Answered(number, reply, change) => {
                self.change(change);
                (number, reply)
            }
            Done::Subscribed(number, Ok(subscription)) => {
                self.listen(number, subscription);
                (number, Reply::Subscribed)
            }
            Done::Subscribed(number, Err(error)) => {
                self.subscriptions.remove(&number);
                (number, Reply::Failed(error.into()))
            }
            Done::Notified(number, subscription, notification) => {
                if notification == Notification::Ended {
                    self.subscriptions.remove(&number);
                } else {
                    self.listen(number, subscription);
                }
                (number, Reply::Notified(notification))
            }
        };
        output.put(&line(&(number, reply)));
    }

    fn listen(&mut self, number: u64, mut subscription: Box<dyn Subscription>) {
        let next = async move {
            let notification = subscription.next().await;
            Done::Notified(number, subscription, notification)
        };
        let next = self.abortable(number, next);
        self.under_way.push(next);
    }

    fn change(&mut self, change: Change<'a>) {
        match change {
            Change::Nothing => {}
            Change::Holds(grant, counted) => {
                let before = self.holds.remove(&grant.owner).and_then(|(_, counted)| counted);
                self.holds.insert(grant.owner, (grant, counted.or(before)));
            }
            Change::HoldsNoMore(owners) => {
                for owner in owners {
                    self.holds.remove(&owner);
                }
            }
            Change::Renewed(renewed) => {
                for (grant, is_held) in renewed {
                    if !is_held {
                        self.holds.remove(&grant.owner);
                    } else if !self.holds.contains_key(&grant.owner) {
                        self.holds.insert(grant.owner, (grant, self.shared.take(self.peer, 1).ok()));
                    }
                }
            }
        }
    }

    /// Gives back at once what a process held that has ended, for which others would wait until its leases end.
    async fn end(mut self) {
        self.under_way.clear();
        if self.holds.is_empty() || !self.peer.has_ended().await {
            return;
        }
        // A release that fails leaves the key to its lease.
        join_all(self.holds.values().map(|(grant, _)| self.backend.release(grant))).await;
    }
}

fn reply(step: Result<Reply>) -> Reply {
    step.unwrap_or_else(|error| Reply::Failed(error.into()))
}

fn claimed<'a>(number: u64, claim: &Claim, attempt: Result<Attempt>, counted: Option<Counted<'a>>) -> Done<'a> {
    let change = match &attempt {
        Ok(Attempt::Granted { epoch }) => Change::Holds(claim.grant(*epoch), counted),
        Ok(Attempt::Queued { .. }) => Change::Holds(claim.grant(None), counted),
        Err(error) if error.kind() == ErrorKind::Indeterminate => Change::Holds(claim.grant(None), counted),
        _ => Change::HoldsNoMore(vec![claim.owner]),
    };
    Done::Answered(number, reply(attempt.map(Reply::Attempt)), change)
}

fn renewed<'a>(number: u64, renewals: &[Renewal], statuses: Vec<Result<LeaseStatus>>) -> Done<'a> {
    let told = |(renewal, status): (&Renewal, &Result<LeaseStatus>)| {
        status.as_ref().ok().map(|status| (renewal.grant.clone(), *status == LeaseStatus::Held))
    };
    let change = Change::Renewed(renewals.iter().zip(&statuses).filter_map(told).collect());
    let statuses = statuses.into_iter().map(|status| status.map(Status).map_err(Failure::from)).collect();
    Done::Answered(number, Reply::Statuses(statuses), change)
}
