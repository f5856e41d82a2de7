use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::Instrument;

use super::Core;
use super::attempt::{Place, Tried};
use super::observe::Acquired;
use super::queue::{Said, Ticket, Turn};
use super::release::Hold;
use super::waiting::BackOff;
use crate::clock::Moment;
use crate::{Backend, Clock, Error, ErrorKind, Hint, Listener, LockKey, LockOptions, LossReason, Mode, Result, Wait};

/// How far past its limit a wait may go for an answer that is under way.
const GRACE: Duration = Duration::from_millis(50);

/// What is asked for, by whom it may be waited for, and until when.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) key: &'a LockKey,
    pub(super) mode: Mode,
    pub(super) options: &'a LockOptions,
    started: Moment,
    limit: Moment,
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
        let span = tracing::debug_span!("acquire", backend = self.name(), key = key.as_str(), %mode);
        let result = self.until_closed(self.serve(&request)).instrument(span).await;
        let outcome = match &result {
            Ok(Some(_)) => Acquired::Granted,
            Ok(None) => Acquired::Busy,
            Err(_) => Acquired::Failed,
        };
        self.observer.acquired(key, mode, outcome, self.clock.now().since(request.started));
        result.map_err(|error| error.within("acquire", self.name(), Some(key)))
    }

    /// Joins the queue, and as its head tries, and waits for a signal or a while, until it is granted or the wait is
    /// over.
    async fn serve(self: &Arc<Self>, request: &Request<'_>) -> Result<Option<Hold>> {
        if let Some(result) = self.reenter(request).await {
            return result;
        }
        let mut ticket = self.queue.join(request.key, request.mode, request.options, self.session);
        let mut waiting = Waiting::new(request.started);
        let mut place: Option<Place<B>> = None;
        let mut last = None;
        loop {
            if let ControlFlow::Break(result) = self.admitted(&mut ticket, request).await {
                return result;
            }
            let freed = ticket.freed_so_far();
            let rested = request.limit.min(ticket.rests_until());
            if self.clock.now() < rested {
                tokio::select! {
                    biased;
                    hold = ticket.given() => return Ok(Some(hold)),
                    () = self.clock.reach(rested) => {}
                }
            }
            let queued = ticket.queued_so_far();
            let tried = if let Some(holder) = ticket.held_here() {
                Tried::HeldHere { until: holder.limit() }
            } else {
                tokio::select! {
                    biased;
                    hold = ticket.given() => return Ok(Some(self.arrived(&ticket, hold, queued))),
                    tried = self.attempt(request, place.as_ref()) => tried,
                }
            };
            let mut unheard = false;
            // The store says when it is our turn, and what is freed here goes to the first in its line.
            let in_line = matches!(tried, Tried::Queued { told: true, .. });
            let (said, pause) = match tried {
                Tried::Granted(hold) => {
                    Place::forget(place);
                    return Ok(Some(self.arrived(&ticket, hold, queued)));
                }
                Tried::Unanswered => return answer(last.unwrap_or_else(no_answer)),
                Tried::HeldHere { until } => (Said::Busy, until.since(self.clock.now())),
                Tried::Busy { retry_in, session } => {
                    place = None;
                    unheard = true;
                    ticket.held_by(session);
                    (Said::Busy, waiting.between_polls(retry_in))
                }
                Tried::Queued { place: noted, retry_in, told } => {
                    Place::forget(place.replace(noted));
                    unheard = !told;
                    if told && waiting.listener.is_none() {
                        self.listen(&mut waiting, request).await;
                    }
                    (Said::Busy, waiting.between_polls(Some(retry_in)))
                }
                Tried::Interrupted { place: kept, error } => {
                    Place::forget(place.replace(kept));
                    self.observer.attempt_failed(request.key, &error);
                    (Said::Failed(error), waiting.after_failure.next(None))
                }
                Tried::Failed(error) => {
                    place = None;
                    self.observer.attempt_failed(request.key, &error);
                    (Said::Failed(error), waiting.after_failure.next(None))
                }
            };
            ticket.tell(said.retell());
            if said.is_for_good() || request.is_over(self.clock.now()) {
                return answer(said);
            }
            if !ticket.may_ask() {
                continue;
            }
            if unheard && self.listen(&mut waiting, request).await {
                continue;
            }
            last = Some(said);
            let until = request.limit.min(self.clock.now().plus(pause));
            tokio::select! {
                biased;
                given = ticket.given_or_freed_after((!in_line).then_some(freed)) => match given {
                    Some(hold) => return Ok(Some(hold)),
                    None => waiting.start_over(),
                },
                hint = heard(&mut waiting.listener, place.as_ref(), &self.clock) => match (hint, place.take()) {
                    (Hint::Granted { tenure, .. }, Some(granted)) => {
                        match self.granted_in(granted.told(), tenure, request.options).await {
                            Tried::Granted(hold) => return Ok(Some(self.arrived(&ticket, hold, queued))),
                            Tried::Failed(error) => self.observer.attempt_failed(request.key, &error),
                            _ => {}
                        }
                    }
                    (hint, still) => {
                        place = still;
                        waiting.heard(hint);
                    }
                },
                () = self.clock.reach(until) => {}
            }
        }
    }

    /// Ends when this waiter may ask the store, or with the end of its wait.
    async fn admitted(
        self: &Arc<Self>,
        ticket: &mut Ticket,
        request: &Request<'_>,
    ) -> ControlFlow<Result<Option<Hold>>> {
        loop {
            match self.turn(ticket, request).await {
                Turn::Ours => {}
                Turn::Given(hold) => return ControlFlow::Break(Ok(Some(hold))),
                Turn::Over(said) => return ControlFlow::Break(answer(said)),
            }
            // Another task of the same session may have got it while this one waited for its turn.
            if let Some(result) = self.reenter(request).await {
                return ControlFlow::Break(result);
            }
            // If not, it was called for the sake of its session, which does not hold the key any more.
            if ticket.may_ask() {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Lets those behind the head know.
    fn arrived(self: &Arc<Self>, ticket: &Ticket, hold: Hold, queued: u64) -> Hold {
        match hold.grip().grant.mode {
            Mode::Shared => self.take_along(&hold, queued),
            Mode::Exclusive => ticket.tell_those_behind(Said::Busy),
        }
        hold
    }

    /// Takes another level of the tenure that this session holds, past the queue. `None`: it holds none.
    async fn reenter(self: &Arc<Self>, request: &Request<'_>) -> Option<Result<Option<Hold>>> {
        // Boxed, because few need its kilobyte, and all would carry it.
        if self.sessions.are_reentrant() { Box::pin(self.enter_again(request)).await } else { None }
    }

    async fn enter_again(self: &Arc<Self>, request: &Request<'_>) -> Option<Result<Option<Hold>>> {
        let mut back_off = BackOff::after_failure();
        while let Some(tenure) = self.sessions.of(request.key) {
            // Under a lost outer guard no fresh lease may begin.
            if let Some(reason) = tenure.loss() {
                let lost = Error::new(ErrorKind::Lost(reason), "acquire");
                return Some(Err(lost.detail("a guard of this session that is still there lost the key")));
            }
            match self.attempt(request, None).await {
                Tried::Granted(hold) => return Some(Ok(Some(hold))),
                Tried::Busy { .. } | Tried::Queued { .. } | Tried::HeldHere { .. } => tenure.lose(LossReason::Stolen),
                Tried::Unanswered => return Some(answer(no_answer())),
                Tried::Failed(error) | Tried::Interrupted { error, .. }
                    if !error.is_transient() || request.is_over(self.clock.now()) =>
                {
                    return Some(Err(error));
                }
                Tried::Failed(error) | Tried::Interrupted { error, .. } => {
                    self.observer.attempt_failed(request.key, &error);
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
        let _queued = (!first).then(|| self.observer.queued(request.key));
        if first {
            return Turn::Ours;
        }
        if !request.is_try() {
            tokio::select! {
                biased;
                turn = ticket.turn() => return turn,
                () = self.clock.reach(request.limit) => {}
            }
        }
        // What the head learns answers those behind it: they must neither overtake, nor take silence for "held".
        tokio::select! {
            biased;
            turn = ticket.turn_or_news() => turn,
            () = self.clock.reach(self.latest(request)) => Turn::Over(no_answer()),
        }
    }

    /// Until when an answer that is under way is waited for: one round trip past the limit. A try has no limit but
    /// the backend's own.
    pub(super) fn latest(&self, request: &Request<'_>) -> Moment {
        let round_trip = Duration::from_nanos(self.round_trip.load(Ordering::Relaxed));
        if request.is_try() { Moment::NEVER } else { request.limit.plus((round_trip * 2).max(GRACE)) }
    }

    /// Starts to listen for releases if it does not yet. True if the key must be tried once more, because it may have
    /// been freed before anybody listened.
    async fn listen(&self, waiting: &mut Waiting, request: &Request<'_>) -> bool {
        let now = self.clock.now();
        if waiting.listener.is_some() || now < waiting.deaf_until {
            return false;
        }
        let Some(wakeups) = self.backend.wakeups() else {
            waiting.deaf_until = Moment::NEVER;
            return false;
        };
        waiting.deaf_until = now.plus(waiting.between_listeners.next(None));
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
                tracing::debug!(backend = self.name(), key = request.key.as_str(), %error, "no wake-up signals; polling");
                false
            }
        }
    }
}

/// The state of one wait between its attempts.
struct Waiting {
    listener: Option<Box<dyn Listener>>,
    /// No other listener is asked for before.
    deaf_until: Moment,
    between_listeners: BackOff,
    polling: BackOff,
    after_failure: BackOff,
}

impl Waiting {
    fn new(now: Moment) -> Self {
        Self {
            listener: None,
            deaf_until: now,
            between_listeners: BackOff::between_listeners(),
            polling: BackOff::polling(),
            after_failure: BackOff::after_failure(),
        }
    }

    fn between_polls(&mut self, retry_in: Option<Duration>) -> Duration {
        self.after_failure = BackOff::after_failure();
        self.polling.next(retry_in)
    }

    fn heard(&mut self, hint: Hint) {
        if hint == Hint::Ended {
            self.listener = None;
        } else {
            self.between_listeners = BackOff::between_listeners();
        }
        self.start_over();
    }

    fn start_over(&mut self) {
        self.polling = if self.listener.is_some() { BackOff::beside_signals() } else { BackOff::polling() };
    }
}

/// The next hint that is meant for this wait. Of a grant that may be over, the store has to be asked. Cancel safe.
async fn heard<B: Backend>(listener: &mut Option<Box<dyn Listener>>, place: Option<&Place<B>>, clock: &Clock) -> Hint {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        let hint = listener.hint().await;
        let Hint::Granted { owner, tenure } = hint else { return hint };
        if let Some(place) = place.filter(|place| place.owner() == owner) {
            return if place.may_have_become(tenure, clock.now()) { hint } else { Hint::Freed };
        }
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

    pub(super) fn is_over(&self, now: Moment) -> bool {
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
