//! Requests to the store: each becomes a future that feeds its answer back as an event, in any case.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::caller::Caller;
use super::driver::Participant;
use super::inner::{Inner, within};
use super::state::{Batch, Event, Member, Request, RequestId};
use crate::home::Home;
use crate::{Attempt, Claim, Error, ErrorKind, GrantRef, LeaseStatus, LockKey, Notification, Result};

impl Participant for Inner {
    fn member(&self) -> Member {
        self.member
    }

    /// If the future is dropped before there is an answer, the answer is that the outcome is unknown.
    fn request(self: &Arc<Self>, request: Request, by: Option<Caller>) -> BoxFuture<'static, ()> {
        match request {
            Request::Claim(request, claim) => {
                let pending = PendingAnswer::new(self, None, (request, claim));
                Box::pin(async move {
                    let (_, claim) = &pending.query;
                    let answer = pending.engine.claim(claim).await;
                    pending.answered(answer);
                })
            }
            Request::Release(request, grant) => {
                let pending = PendingAnswer::new(self, by, (request, grant));
                Box::pin(async move {
                    let (engine, (_, grant)) = (&pending.engine, &pending.query);
                    let answer = engine.bounded("release", engine.backend.release(grant)).await;
                    pending.answered(answer);
                })
            }
            Request::TakeOver(request, grant, owner, ttl) => {
                let pending = PendingAnswer::new(self, None, OwnerChange(request, grant));
                Box::pin(async move {
                    let (engine, OwnerChange(_, grant)) = (&pending.engine, &pending.query);
                    let held = engine.bounded("take over", engine.backend.take_over(grant, owner, ttl)).await;
                    let answer = held.map(|held| pending.query.came_to(held));
                    pending.answered(answer);
                })
            }
            Request::Downgrade(request, writer, claim) => {
                let pending = PendingAnswer::new(self, None, OwnerChange(request, writer));
                Box::pin(async move {
                    let engine = &pending.engine;
                    let answer = engine.bounded("downgrade", engine.backend.downgrade(&pending.query.1, &claim)).await;
                    pending.answered(answer);
                })
            }
            Request::Renew(batch) => self.renew(batch, by),
            Request::Subscribe(request, key) => self.subscribe(request, key),
        }
    }

    fn releases_in_place(&self) -> bool {
        self.backend.releases_in_place()
    }

    fn home(&self) -> Option<&Handle> {
        self.home.as_ref().and_then(Home::runtime)
    }

    fn idle(&self) {
        self.idle.notify_waiters();
    }
}

impl Inner {
    /// Sends a claim, and sends it again if the key may be free in a moment: another's lease ends, or the store has granted
    /// the key as often as its clock allows. Otherwise a `try` would take a key for held that nobody holds.
    async fn claim(&self, claim: &Claim) -> Result<Attempt> {
        const A_MOMENT: Duration = Duration::from_millis(1);
        const AGAIN: usize = 3;
        for _ in 0..AGAIN {
            match self.bounded("acquire", self.backend.try_acquire(claim)).await {
                // Outside of a runtime nothing would end the pause.
                Ok(Attempt::Busy { retry_in: Some(left) }) if left <= A_MOMENT && Handle::try_current().is_ok() => {
                    // Half of it, because a timer of a millisecond takes two: a busy key would be granted half as often.
                    // Boxed, so that other claims do not make room for a timer.
                    Box::pin(self.clock.reach(self.clock.now().plus(left / 2))).await;
                }
                answer => return answer,
            }
        }
        self.bounded("acquire", self.backend.try_acquire(claim)).await
    }

    fn renew(self: &Arc<Self>, batch: Batch, by: Option<Caller>) -> BoxFuture<'static, ()> {
        let pending = PendingAnswer::new(self, by, batch);
        Box::pin(async move {
            let (engine, batch) = (&pending.engine, &pending.query);
            let answers = engine.backend.renew(&batch.renewals, batch.within);
            // Backends keep to this limit themselves. A call that does not is dropped before the next renewal is due.
            let answers = within(batch.within * 5 / 4, answers).await;
            let answers = batch.answered(answers.unwrap_or_default());
            for (renewal, answer) in batch.renewals.iter().zip(&answers) {
                engine.driver.observer.renewed(&renewal.grant.key, answer);
            }
            pending.answered(answers);
        })
    }

    fn subscribe(self: &Arc<Self>, request: RequestId, key: LockKey) -> BoxFuture<'static, ()> {
        let subscription = self.driver.subscribed(request);
        let start = PendingAnswer::new(self, None, SubscriptionStart(request));
        let events = PendingAnswer::new(self, None, SubscriptionEvents(request));
        Box::pin(async move {
            let engine = Arc::clone(&events.engine);
            let key = &key;
            let listening = async {
                let mut subscription = match engine.backend.notifications() {
                    Some(notifications) => match notifications.subscribe(key).await {
                        Ok(subscription) => subscription,
                        Err(error) => {
                            tracing::debug!(backend = engine.name(), key = key.as_str(), %error, "no wake-up signals; polling");
                            return;
                        }
                    },
                    None => return,
                };
                start.answered(true);
                loop {
                    if !engine.driver.look(|state| state.is_subscribed(request)) {
                        return;
                    }
                    let notification = subscription.next().await;
                    engine.apply(Event::Notified { request, notification });
                }
            };
            tokio::select! {
                () = listening => {}
                () = subscription.over() => {}
            }
            events.answered(Notification::Ended);
        })
    }
}

/// A request to the store, or a part of a subscription, and the event that its answer becomes.
trait Query {
    type Answer;

    /// The answer of a request that was dropped: the outcome is unknown.
    fn unknown(&self) -> Self::Answer;

    /// The answer for the caller that waits for this request, if it gets one.
    fn for_caller(_: &Self::Answer) -> Option<Result<LeaseStatus>> {
        None
    }

    /// The event for this answer. Called once.
    fn event(&mut self, answer: Self::Answer) -> Event;
}

impl Query for (RequestId, Claim) {
    type Answer = Result<Attempt>;

    fn unknown(&self) -> Self::Answer {
        Err(Error::new(ErrorKind::Indeterminate, "acquire"))
    }

    fn event(&mut self, answer: Self::Answer) -> Event {
        Event::Answered { request: self.0, answer }
    }
}

impl Query for (RequestId, GrantRef) {
    type Answer = Result<LeaseStatus>;

    fn unknown(&self) -> Self::Answer {
        Err(Error::new(ErrorKind::Indeterminate, "release"))
    }

    fn for_caller(answer: &Self::Answer) -> Option<Result<LeaseStatus>> {
        Some(answer.clone())
    }

    fn event(&mut self, answer: Self::Answer) -> Event {
        Event::Released { request: self.0, answer }
    }
}

/// A take-over or a downgrade: gives a grant to a new owner id.
struct OwnerChange(RequestId, GrantRef);

impl OwnerChange {
    fn came_to(&self, held: LeaseStatus) -> Attempt {
        match held {
            LeaseStatus::Held => Attempt::Granted { epoch: self.1.epoch },
            LeaseStatus::NotHeld | LeaseStatus::ForceReleased => Attempt::Busy { retry_in: None },
        }
    }
}

impl Query for OwnerChange {
    type Answer = Result<Attempt>;

    fn unknown(&self) -> Self::Answer {
        Err(Error::new(ErrorKind::Indeterminate, "take over"))
    }

    fn event(&mut self, answer: Self::Answer) -> Event {
        Event::TakenOver { request: self.0, answer }
    }
}

impl Query for Batch {
    type Answer = Vec<Result<LeaseStatus>>;

    fn unknown(&self) -> Self::Answer {
        self.answered(Vec::new())
    }

    fn for_caller(answers: &Self::Answer) -> Option<Result<LeaseStatus>> {
        answers.first().cloned()
    }

    fn event(&mut self, answers: Self::Answer) -> Event {
        Event::Renewed(self.take(), answers)
    }
}

struct SubscriptionStart(RequestId);

impl Query for SubscriptionStart {
    type Answer = bool;

    fn unknown(&self) -> bool {
        false
    }

    fn event(&mut self, begun: bool) -> Event {
        Event::Subscribed { request: self.0, begun }
    }
}

/// The notifications of a subscription, of which the last says that it has ended.
struct SubscriptionEvents(RequestId);

impl Query for SubscriptionEvents {
    type Answer = Notification;

    fn unknown(&self) -> Notification {
        Notification::Ended
    }

    fn event(&mut self, notification: Notification) -> Event {
        Event::Notified { request: self.0, notification }
    }
}

/// Feeds the answer of a request back in any case. Dropped without an answer, by a runtime that ends or by a panic, it
/// answers that the outcome is unknown.
struct PendingAnswer<Q: Query> {
    engine: Arc<Inner>,
    by: Option<Caller>,
    query: Q,
    is_answered: bool,
}

impl<Q: Query> PendingAnswer<Q> {
    fn new(engine: &Arc<Inner>, by: Option<Caller>, query: Q) -> Self {
        Self { engine: Arc::clone(engine), by, query, is_answered: false }
    }

    fn answered(mut self, answer: Q::Answer) {
        self.deliver(answer);
    }

    fn deliver(&mut self, answer: Q::Answer) {
        self.is_answered = true;
        let waiting = self.by.take().zip(Q::for_caller(&answer));
        self.engine.apply(self.query.event(answer));
        if let Some((by, answer)) = waiting {
            by.update(|state| state.answer = Some(answer));
        }
    }
}

impl<Q: Query> Drop for PendingAnswer<Q> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.deliver(self.query.unknown());
        }
    }
}
