use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tracing::Instrument;

use super::Core;
use super::detached::Detached;
use super::observe::{self, Acquired};
use super::queue::{Said, Ticket};
use super::release::Hold;
use super::sessions::Entered;
use super::tenure::{Grip, Tenure, deadline};
use super::waiting::BackOff;
use crate::clock::Moment;
use crate::{
    Attempt, Backend, Capability, Claim, Error, ErrorKind, GrantRef, HandOff, Held, Listener, LockKey, LockOptions,
    LossReason, Mode, OwnerId, Renewal, Result, Wait,
};

/// How far past its limit a wait may go for an answer that is under way.
const GRACE: Duration = Duration::from_millis(50);

/// What is asked for, by whom it may be waited for, and until when.
#[derive(Debug)]
struct Request<'a> {
    key: &'a LockKey,
    mode: Mode,
    options: &'a LockOptions,
    started: Moment,
    limit: Moment,
}

/// What came of one attempt.
enum Tried {
    Granted(Hold),
    /// A guard of this process holds it, until then at most; nothing was sent.
    HeldHere {
        until: Moment,
    },
    Busy {
        retry_in: Option<Duration>,
    },
    Failed(Error),
    /// Not within the wait.
    Unanswered,
}

/// How the wait for the head of the queue ended.
enum Turn {
    Ours,
    Given(Hold),
    Over(Said),
}

impl<B: Backend> Core<B> {
    /// Acquires `key`, and tells how that went.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        key: &LockKey,
        mode: Mode,
        options: &LockOptions,
    ) -> Result<Option<Hold>> {
        let request = Request::new(key, mode, options, self.clock.now());
        let span = tracing::debug_span!("acquire", backend = self.name(), %key, %mode);
        let result = self.serve(&request).instrument(span).await;
        let outcome = match &result {
            Ok(Some(_)) => Acquired::Granted,
            Ok(None) => Acquired::Busy,
            Err(_) => Acquired::Failed,
        };
        observe::acquired(self.name(), key, mode, outcome, self.clock.now().since(request.started));
        result.map_err(|error| error.within("acquire", self.name(), Some(key)))
    }

    /// Joins the queue, and as its head tries, and waits for a signal or a while, until it is granted or the wait is
    /// over.
    async fn serve(self: &Arc<Self>, request: &Request<'_>) -> Result<Option<Hold>> {
        if let Some(result) = self.reenter(request).await {
            return result;
        }
        let mut ticket = self.queue.join(request.key, request.mode, request.options);
        match self.turn(&mut ticket, request).await {
            Turn::Ours => {}
            Turn::Given(hold) => return Ok(Some(hold)),
            Turn::Over(said) => return answer(said),
        }
        let mut waiting = Waiting::new();
        let mut last = None;
        loop {
            // Another task of the same session may have got it while this one waited for its turn.
            if let Some(result) = self.reenter(request).await {
                return result;
            }
            if self.closed.load(Ordering::Acquire) {
                return Err(Error::new(ErrorKind::Closed, "acquire"));
            }
            let freed = ticket.freed_so_far();
            let rested = request.limit.min(ticket.rests_until());
            tokio::select! {
                biased;
                hold = ticket.given() => return Ok(Some(hold)),
                () = self.clock.reach(rested) => {}
            }
            let tried = if let Some(holder) = ticket.held_here() {
                Tried::HeldHere { until: holder.limit() }
            } else {
                tokio::select! {
                    biased;
                    hold = ticket.given() => Tried::Granted(hold),
                    tried = self.attempt(request) => tried,
                }
            };
            let (said, pause) = match tried {
                Tried::Granted(hold) => {
                    if !self.sessions.are_reentrant() {
                        ticket.tell(Said::Busy);
                    }
                    return Ok(Some(hold));
                }
                Tried::Unanswered => return answer(last.unwrap_or_else(no_answer)),
                Tried::HeldHere { until } => (Said::Busy, until.since(self.clock.now())),
                Tried::Busy { retry_in } => (Said::Busy, waiting.between_polls(retry_in)),
                Tried::Failed(error) => {
                    observe::attempt_failed(self.name(), request.key, &error);
                    (Said::Failed(error), waiting.after_failure.next(None))
                }
            };
            ticket.tell(said.retell());
            if said.is_for_good() || request.is_over(self.clock.now()) {
                return answer(said);
            }
            if matches!(said, Said::Busy) && ticket.held_here().is_none() && self.listen(&mut waiting, request).await {
                continue;
            }
            last = Some(said);
            let until = request.limit.min(self.clock.now().plus(pause));
            tokio::select! {
                biased;
                given = ticket.given_or_freed_after(freed) => match given {
                    Some(hold) => return Ok(Some(hold)),
                    None => waiting.start_over(),
                },
                () = hint(waiting.listener.as_deref_mut()) => waiting.start_over(),
                () = self.clock.reach(until) => {}
            }
        }
    }

    /// Takes another level of the tenure that this session holds, past the queue. `None`: it holds none.
    async fn reenter(self: &Arc<Self>, request: &Request<'_>) -> Option<Result<Option<Hold>>> {
        let mut back_off = BackOff::after_failure();
        while let Some(tenure) = self.sessions.of(request.key) {
            // Under a lost outer guard no fresh lease may begin.
            if let Some(reason) = tenure.loss() {
                let lost = Error::new(ErrorKind::Lost(reason), "acquire");
                return Some(Err(lost.detail("a guard of this session that is still there lost the key")));
            }
            match self.attempt(request).await {
                Tried::Granted(hold) => return Some(Ok(Some(hold))),
                Tried::Busy { .. } | Tried::HeldHere { .. } => tenure.lose(LossReason::Stolen),
                Tried::Unanswered => return Some(answer(no_answer())),
                Tried::Failed(error) if !error.is_transient() || request.is_over(self.clock.now()) => {
                    return Some(Err(error));
                }
                Tried::Failed(error) => {
                    observe::attempt_failed(self.name(), request.key, &error);
                    let pause = self.clock.now().plus(back_off.next(None));
                    self.clock.reach(request.limit.min(pause)).await;
                }
            }
        }
        None
    }

    /// Waits for the turn to talk to the store.
    async fn turn(&self, ticket: &mut Ticket, request: &Request<'_>) -> Turn {
        let first = ticket.is_admitted();
        let _queued = (!first).then(|| observe::queued(self.name(), request.key));
        if !first && !request.is_try() {
            tokio::select! {
                biased;
                given = ticket.admitted() => return given.map_or(Turn::Ours, Turn::Given),
                () = self.clock.reach(request.limit) => {}
            }
        }
        if !first {
            // What the head learns answers those behind it: they must neither overtake, nor take silence for "held".
            tokio::select! {
                biased;
                told = ticket.admitted_or_told() => if let Some(said) = told { return Turn::Over(said) },
                () = self.clock.reach(self.latest(request)) => return Turn::Over(no_answer()),
            }
        }
        Turn::Ours
    }

    /// Sends one claim and sees it through, whether or not the caller stays.
    async fn attempt(self: &Arc<Self>, request: &Request<'_>) -> Tried {
        let claim = Claim {
            key: request.key.clone(),
            owner: OwnerId::random(),
            mode: request.mode,
            ttl: request.options.ttl,
            waits: !request.is_over(self.clock.now()),
            label: request.options.label.clone(),
            reason: request.options.reason.clone(),
        };
        // Abandoned, it is pending until what it won is being given back, so that `close` does not cut it short.
        let underway = Arc::clone(&self.pending).begin();
        let claim = Arc::clone(self).claim(claim, request.options.clone());
        let attempt = Detached::new(Handle::current(), async move { (claim.await, underway) });
        tokio::select! {
            biased;
            (tried, _underway) = attempt => tried,
            () = self.clock.reach(self.latest(request)) => Tried::Unanswered,
        }
    }

    /// Until when an answer that is under way is waited for: one round trip past the limit. A try has no limit but
    /// the backend's own.
    fn latest(&self, request: &Request<'_>) -> Moment {
        let round_trip = Duration::from_nanos(self.round_trip.load(Ordering::Relaxed));
        if request.is_try() { Moment::NEVER } else { request.limit.plus((round_trip * 2).max(GRACE)) }
    }

    async fn claim(self: Arc<Self>, claim: Claim, options: LockOptions) -> Tried {
        let runtime = Handle::current();
        let sent_at = self.clock.now();
        let answer = self.backend.try_acquire(&claim).await;
        let answered_at = self.clock.now();
        let took = u64::try_from(answered_at.since(sent_at).as_nanos()).unwrap_or(u64::MAX);
        self.round_trip.store(took, Ordering::Relaxed);
        let grant = |tenure| GrantRef { key: claim.key.clone(), owner: claim.owner, mode: claim.mode, tenure };
        match answer {
            Ok(Attempt::Granted { tenure }) if self.leased() && answered_at >= deadline(sent_at, options.ttl) => {
                // It may be another's by now; a guard on it would be lost at birth.
                self.give_back(&grant(tenure), options.ttl, &runtime);
                Tried::Failed(
                    Error::new(ErrorKind::Unavailable, "acquire").detail("the grant came after its lease ran out"),
                )
            }
            Ok(Attempt::Granted { tenure }) => {
                self.hold(grant(tenure), 0, &options, sent_at, runtime).map_or_else(Tried::Failed, Tried::Granted)
            }
            Ok(Attempt::Busy { retry_in }) => Tried::Busy { retry_in },
            Err(error) => {
                if error.kind() == ErrorKind::Indeterminate {
                    self.give_back(&grant(None), options.ttl, &runtime);
                }
                Tried::Failed(error)
            }
        }
    }

    pub(super) async fn adopt(self: &Arc<Self>, handed: &HandOff, options: &LockOptions) -> Result<Option<Hold>> {
        let grant = handed.to_grant();
        let sent_at = self.clock.now();
        let renewal = Renewal { grant: grant.clone(), ttl: options.ttl };
        match self.backend.renew(std::slice::from_ref(&renewal)).await.pop() {
            Some(Ok(Held::Yes)) => self.hold(grant, handed.hand_overs(), options, sent_at, Handle::current()).map(Some),
            Some(Ok(Held::No | Held::Forced)) => Ok(None),
            Some(Err(error)) => Err(error.within("adopt", self.name(), Some(&grant.key))),
            None => Err(Error::new(ErrorKind::Indeterminate, "adopt").backend(self.name()).key(&grant.key)),
        }
    }

    /// What a guard holds, on a tenure of its own or, in a re-entrant session, on the one that is held already.
    fn hold(
        self: &Arc<Self>,
        grant: GrantRef,
        hand_overs: u16,
        options: &LockOptions,
        sent_at: Moment,
        runtime: Handle,
    ) -> Result<Hold> {
        let mut entered = self.sessions.lock();
        let tenure = match entered.as_mut().and_then(|entered| entered.get_mut(&grant.key)) {
            Some(Entered { tenure, levels }) if tenure.grant.tenure == grant.tenure && tenure.is_held() => {
                tenure.reentered(options, sent_at);
                levels.push(grant.owner);
                Arc::clone(tenure)
            }
            Some(gone) => {
                // The store began a new tenure: the outer one was not ours any more when this was granted.
                gone.tenure.lose(LossReason::Stolen);
                self.give_back(&grant, options.ttl, &runtime);
                return Err(Error::new(ErrorKind::Lost(LossReason::Stolen), "acquire"));
            }
            None => {
                let leased = self.leased();
                let tenure = Tenure::new(grant.clone(), options, self.name(), leased, &self.clock, sent_at);
                let tenure = Arc::new(tenure);
                if let Some(entered) = &mut entered {
                    let levels = vec![grant.owner];
                    entered.insert(grant.key.clone(), Entered { tenure: Arc::clone(&tenure), levels });
                }
                tenure
            }
        };
        let grip = Grip::new(Arc::clone(&tenure), grant, hand_overs);
        if !self.sessions.are_reentrant() {
            self.queue.held(&tenure);
        }
        self.keeper.watch(&tenure, self);
        Ok(Hold::new(grip, Arc::clone(self) as _, runtime))
    }

    fn leased(&self) -> bool {
        self.capabilities.has(Capability::Lease)
    }

    /// Starts to listen for releases if it does not yet. True if the key must be tried once more, because it may have
    /// been freed before anybody listened.
    async fn listen(&self, waiting: &mut Waiting, request: &Request<'_>) -> bool {
        if waiting.listener.is_some() || waiting.deaf {
            return false;
        }
        let Some(wakeups) = self.backend.wakeups() else {
            waiting.deaf = true;
            return false;
        };
        let listening = tokio::select! {
            listening = wakeups.listen(request.key) => listening,
            () = self.clock.reach(request.limit) => return false,
        };
        match listening {
            Ok(listener) => {
                waiting.listener = Some(listener);
                waiting.polling = BackOff::beside_signals();
                true
            }
            Err(error) => {
                tracing::debug!(backend = self.name(), key = %request.key, %error, "no wake-up signals; polling");
                waiting.deaf = true;
                false
            }
        }
    }
}

/// The state of one wait between its attempts.
struct Waiting {
    listener: Option<Box<dyn Listener>>,
    deaf: bool,
    polling: BackOff,
    after_failure: BackOff,
}

impl Waiting {
    fn new() -> Self {
        Self { listener: None, deaf: false, polling: BackOff::polling(), after_failure: BackOff::after_failure() }
    }

    fn between_polls(&mut self, retry_in: Option<Duration>) -> Duration {
        self.after_failure = BackOff::after_failure();
        self.polling.next(retry_in)
    }

    fn start_over(&mut self) {
        self.polling = if self.listener.is_some() { BackOff::beside_signals() } else { BackOff::polling() };
    }
}

async fn hint(listener: Option<&mut (dyn Listener + 'static)>) {
    match listener {
        Some(listener) => listener.hint().await,
        None => std::future::pending().await,
    }
}

impl<'a> Request<'a> {
    fn new(key: &'a LockKey, mode: Mode, options: &'a LockOptions, started: Moment) -> Self {
        let limit = match options.wait {
            Wait::Never => started,
            Wait::UpTo(patience) => started.plus(patience),
            Wait::Forever => Moment::NEVER,
        };
        Self { key, mode, options, started, limit }
    }

    fn is_try(&self) -> bool {
        self.limit == self.started
    }

    fn is_over(&self, now: Moment) -> bool {
        now >= self.limit
    }
}

fn no_answer() -> Said {
    Said::Failed(Error::new(ErrorKind::Indeterminate, "acquire").detail("the store gave no answer within the wait"))
}

fn answer(said: Said) -> Result<Option<Hold>> {
    match said {
        Said::Busy => Ok(None),
        Said::Failed(error) => Err(error),
    }
}
