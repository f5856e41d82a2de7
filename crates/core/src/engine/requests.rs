use std::sync::Arc;

use futures::future::BoxFuture;

use super::Inner;
use super::caller::Caller;
use super::state::{Event, LeaseId, Request, RequestId};
use crate::clock::Moment;
use crate::{Error, ErrorKind, Held, Hint, LockKey, Renewal, Result};

impl Inner {
    /// The future that carries a request out and feeds its answer back; dropped before that, it says that nobody knows.
    pub(super) fn request(self: &Arc<Self>, request: Request, by: Option<Caller>) -> BoxFuture<'static, ()> {
        match request {
            Request::Claim(request, claim) => {
                let answered = move |key, answer| Event::Answered { key, request, answer };
                let lost = Err(Error::new(ErrorKind::Indeterminate, "acquire"));
                let answering = Answering::new(self, None, answered(claim.key.clone(), lost));
                Box::pin(async move {
                    let answer = answering.engine.backend.try_acquire(&claim).await;
                    answering.with(answered(claim.key, answer));
                })
            }
            Request::Release(request, grant) => {
                let released = move |key, answer| Event::Released { key, request, answer };
                let lost = Err(Error::new(ErrorKind::Indeterminate, "release"));
                let answering = Answering::new(self, by, released(grant.key.clone(), lost));
                Box::pin(async move {
                    let answer = answering.engine.backend.release(&grant).await;
                    answering.with(released(grant.key, answer));
                })
            }
            Request::TakeOver(request, grant, owner, ttl) => {
                let taken_over = move |key, answer| Event::TakenOver { key, request, answer };
                let lost = Err(Error::new(ErrorKind::Indeterminate, "adopt"));
                let answering = Answering::new(self, None, taken_over(grant.key.clone(), lost));
                Box::pin(async move {
                    let answer = answering.engine.backend.take_over(&grant, owner, ttl).await;
                    answering.with(taken_over(grant.key, answer));
                })
            }
            Request::Renew { id, sent_at, leases, renewals, within } => {
                let lost = renewed(id, sent_at, &leases, &renewals, Vec::new());
                let answering = Answering::new(self, by, lost);
                Box::pin(async move {
                    let engine = &answering.engine;
                    let answers = engine.backend.renew(&renewals, within);
                    // Backends keep to that themselves; one that does not is not waited for.
                    let answers = tokio::time::timeout(within * 4 / 3, answers).await.unwrap_or_default();
                    let event = renewed(id, sent_at, &leases, &renewals, answers);
                    if let Event::Renewed { answers, .. } = &event {
                        for (key, _, answer) in answers {
                            engine.driver.observer.renewed(key, answer);
                        }
                    }
                    answering.with(event);
                })
            }
            Request::Listen(request, key) => self.listen(request, key),
        }
    }

    fn listen(self: &Arc<Self>, request: RequestId, key: LockKey) -> BoxFuture<'static, ()> {
        let subscription = self.driver.subscribed(request);
        let lost = Answering::new(self, None, Event::Heard { key: key.clone(), request, hint: Hint::Ended });
        let begins = Answering::new(self, None, Event::Listening { key: key.clone(), request, begun: false });
        Box::pin(async move {
            let engine = Arc::clone(&lost.engine);
            let listening = async {
                let mut listener = match engine.backend.wakeups() {
                    Some(wakeups) => match wakeups.listen(&key).await {
                        Ok(listener) => listener,
                        Err(error) => {
                            tracing::debug!(backend = engine.name(), key = key.as_str(), %error, "no wake-up signals; polling");
                            return;
                        }
                    },
                    None => return,
                };
                begins.with(Event::Listening { key: key.clone(), request, begun: true });
                loop {
                    if !engine.driver.look(|state| state.is_subscribed(&key, request)) {
                        return;
                    }
                    let hint = listener.hint().await;
                    engine.apply(Event::Heard { key: key.clone(), request, hint });
                }
            };
            tokio::select! {
                () = listening => {}
                () = subscription.over() => {}
            }
            drop(lost);
        })
    }
}

fn renewed(
    request: RequestId,
    sent_at: Moment,
    leases: &[LeaseId],
    renewals: &[Renewal],
    answers: Vec<Result<Held>>,
) -> Event {
    let mut answers = answers.into_iter();
    let answers = leases.iter().zip(renewals).map(|(lease, renewal)| {
        let answer = answers.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Indeterminate, "renew")));
        (renewal.grant.key.clone(), *lease, answer)
    });
    Event::Renewed { request, sent_at, answers: answers.collect() }
}

/// The answer to a request, which comes in any case: a future that is dropped, by a runtime that ends or by a panic, says
/// that nobody knows.
struct Answering {
    engine: Arc<Inner>,
    by: Option<Caller>,
    lost: Option<Event>,
}

impl Answering {
    fn new(engine: &Arc<Inner>, by: Option<Caller>, lost: Event) -> Self {
        Self { engine: Arc::clone(engine), by, lost: Some(lost) }
    }

    fn with(mut self, event: Event) {
        self.lost = None;
        self.say(event);
    }

    fn say(&mut self, event: Event) {
        let answer = match &event {
            Event::Released { answer, .. } => Some(answer.clone()),
            Event::Renewed { answers, .. } => answers.first().map(|(.., answer)| answer.clone()),
            _ => None,
        };
        self.engine.apply(event);
        if let (Some(by), Some(answer)) = (self.by.take(), answer) {
            by.tell(|told| told.answer = Some(answer));
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(lost) = self.lost.take() {
            self.say(lost);
        }
    }
}
