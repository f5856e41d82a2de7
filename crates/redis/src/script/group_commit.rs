use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::poll;
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, Error, ErrorKind, Home, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::client::connection::Connection;
use crate::script::arguments::ScriptArguments;
use crate::script::batch::{self, Request};
use crate::script::function::{ScriptFunction, ScriptFunctions};
use crate::script::reply::Reply;

/// Largest batch. Beyond 32 functions the server's time for each no longer falls, and other clients wait longer.
const MAX_BATCH: usize = 32;

/// While so many commands are in flight, functions wait for each other: until one of the commands is answered, or until there
/// are enough for a full batch.
const MAX_IN_FLIGHT: usize = 2;

/// Smallest share of a batch. Each command in flight takes its share of the functions, so that the server works on one while
/// the other is on its way; but below four the round trip is most of what they cost.
const MIN_BATCH: usize = 4;

/// Sends script functions: alone as long as that keeps up, and as one batch those that come in meanwhile.
///
/// With nothing in flight a function is sent at once and alone, so that an idle connection costs no delay. In a Cluster
/// every function is sent alone: two keys are hardly ever in the same slot.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    connection: Connection,
    functions: Arc<ScriptFunctions>,
    /// `None`: each function is sent alone.
    queue: Option<Arc<CommitQueue>>,
}

impl GroupCommit {
    /// Sends these functions over this connection; each alone unless it is `enabled`.
    pub(crate) fn new(connection: &Connection, functions: &'static [&'static ScriptFunction], enabled: bool) -> Self {
        let functions = Arc::new(ScriptFunctions::new(functions));
        let queue = || Arc::new(CommitQueue::new(connection, &functions));
        let queue = (enabled && connection.keys_in_a_script() > 1).then(queue);
        Self { connection: connection.clone(), functions, queue }
    }

    /// Loads the script into the server. Where the order of commands matters this comes first: a script that is sent
    /// again with its source comes after what was sent behind it.
    ///
    /// # Errors
    /// As `client::error::classify` says.
    pub(crate) async fn load(&self) -> Result<()> {
        let limit = self.connection.command_timeout();
        self.connection.evaluate(self.functions.script(), 0, [].into_iter(), limit).await.map(drop)
    }

    /// Runs one of the functions, within the command timeout or less; before that, the wait for what is in flight takes as
    /// long again at most. A function that is given less time than the command timeout, and misses it, fails alone: the
    /// others of its batch go on for as long as they were given.
    ///
    /// # Errors
    /// As `client::error::classify` says, each function its own; [`Unavailable`](ErrorKind::Unavailable) if it was never
    /// sent because what was sent before got no answer.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not keep the function from being run. Others are not touched.
    pub(crate) fn run(
        &self,
        function: &'static ScriptFunction,
        arguments: ScriptArguments,
        within: Option<Duration>,
    ) -> BoxFuture<'_, Result<Reply>> {
        debug_assert!(function.takes(arguments.count()), "{function:?}");
        let request = Request { function, arguments, limit: self.connection.limit(within) };
        let Some(queue) = &self.queue else {
            return Box::pin(async move { send_alone(&self.connection, &self.functions, &request).await });
        };
        match queue.enter(request) {
            Admission::InFlight(request, flight) => Box::pin(async move {
                let (limit, sent_at) = (request.limit, queue.clock.now());
                let answer = send_alone(&self.connection, &self.functions, &request).await;
                if let Err(error) = &answer {
                    flight.0.failed(error, limit, sent_at);
                }
                answer
            }),
            // Not the driver's future, which has kilobytes.
            Admission::Waiting(answer) => Box::pin(async {
                answer.await.unwrap_or_else(|_| {
                    let error = Error::new(ErrorKind::Indeterminate, "ask Redis");
                    Err(error.detail("the runtime that was sending it ended"))
                })
            }),
        }
    }
}

/// Who waits to be sent, and how much is on its way.
#[derive(Debug)]
struct CommitQueue {
    connection: Connection,
    functions: Arc<ScriptFunctions>,
    state: Mutex<State>,
    /// Whose batch hands out its answers and sends the next one, on a runtime with one thread.
    turn: tokio::sync::Mutex<()>,
    home: Option<Home>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    /// Fewer than fill a batch; somebody only if something is in flight, which looks here when it is back.
    waiting: Vec<Waiting>,
    in_flight: usize,
    /// How many functions the commands in flight carry.
    carried: usize,
}

#[derive(Debug)]
struct Waiting {
    request: Request,
    since: Moment,
    answer: Asker,
}

type Asker = oneshot::Sender<Result<Reply>>;

enum Admission {
    InFlight(Request, Flight),
    Waiting(oneshot::Receiver<Result<Reply>>),
}

impl CommitQueue {
    fn new(connection: &Connection, functions: &Arc<ScriptFunctions>) -> Self {
        let functions = Arc::clone(functions);
        Self {
            connection: connection.clone(),
            functions,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            home: Home::here(),
            clock: Clock::system(),
        }
    }

    fn enter(self: &Arc<Self>, request: Request) -> Admission {
        let mut state = self.state();
        if state.in_flight < MAX_IN_FLIGHT && state.waiting.is_empty() {
            state.in_flight += 1;
            state.carried += 1;
            return Admission::InFlight(request, Flight(Arc::clone(self)));
        }
        let (answer, answered) = oneshot::channel();
        state.waiting.push(Waiting { request, since: self.clock.now(), answer });
        if state.waiting.len() >= MAX_BATCH {
            state.in_flight += 1;
            drop(state);
            Batches::send(self);
        }
        Admission::Waiting(answered)
    }

    /// What was sent at that moment failed as a whole.
    ///
    /// A limit shorter than the connection's own says nothing of the connection: then only those give up who have
    /// waited for as long as theirs.
    fn failed(&self, error: &Error, limit: Duration, sent_at: Moment) {
        let now = self.clock.now();
        let is_only_late = limit < self.connection.command_timeout() && now.since(sent_at) >= limit;
        self.hold_back(error, |waiting| !is_only_late || now.since(waiting.since) >= waiting.request.limit);
    }

    /// Sent now, they would wait for as long again.
    fn hold_back(&self, failed: &Error, whom: impl Fn(&Waiting) -> bool) {
        let kind = match failed.kind() {
            ErrorKind::Closed => ErrorKind::Closed,
            ErrorKind::Unavailable | ErrorKind::Indeterminate => ErrorKind::Unavailable,
            // Refused for good; the functions that wait may not be.
            _ => return,
        };
        let held_back: Vec<Waiting> = {
            let mut state = self.state();
            let (held_back, stay) = std::mem::take(&mut state.waiting).into_iter().partition(whom);
            state.waiting = stay;
            held_back
        };
        for Waiting { answer, .. } in held_back {
            let error = Error::new(kind, "ask Redis").detail(format!("not sent, for what was sent before: {failed}"));
            let _ = answer.send(Err(error));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One command in flight. When it drops, the functions that wait are sent.
struct Flight(Arc<CommitQueue>);

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.carried -= 1;
        if state.waiting.is_empty() {
            state.in_flight -= 1;
            return;
        }
        drop(state);
        Batches::send(&self.0);
    }
}

/// One batch after the other on its way, as long as somebody waits.
struct Batches {
    queue: Arc<CommitQueue>,
    /// How many functions the batch in flight carries.
    carries: usize,
    ended: bool,
}

impl Batches {
    /// In a task of its own, which nobody can cancel.
    fn send(queue: &Arc<CommitQueue>) {
        let batches = Self { queue: Arc::clone(queue), carries: 0, ended: false };
        if let Some(runtime) = Home::for_all(queue.home.as_ref()) {
            runtime.spawn(batches.run());
        }
    }

    async fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        // On one thread, what two batches send after answers that came together would reach the server together, and so on
        // for ever: it would idle while this process works, and the other way round.
        let one_thread = Handle::current().metrics().num_workers() == 1;
        let mut turn = None;
        while let Some(batch) = self.next() {
            let many = batch.len() > 1;
            let (requests, askers) = queue.sorted(batch);
            let mut asked = pin!(queue.ask(&requests));
            let sent = poll!(&mut asked);
            drop(turn.take());
            let answers = match sent {
                Poll::Ready(answers) => answers,
                Poll::Pending => asked.await,
            };
            if one_thread {
                turn = Some(queue.turn.lock().await);
            }
            for (asker, answer) in askers.into_iter().zip(answers) {
                let _ = asker.send(answer);
            }
            if many {
                // The callers that just got their answers may call again at once, and are then sent together again.
                yield_now().await;
            }
        }
    }

    fn next(&mut self) -> Option<Vec<Waiting>> {
        let mut state = self.queue.state();
        state.carried -= std::mem::take(&mut self.carries);
        // Nobody wants to know any more.
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        let limit = state.waiting.first().map(|waiting| waiting.request.limit);
        let beyond = state.in_flight > MAX_IN_FLIGHT;
        let even = (state.waiting.len() + state.carried).div_ceil(MAX_IN_FLIGHT).clamp(MIN_BATCH, MAX_BATCH);
        let share = if beyond { MAX_BATCH } else { even };
        let alike = state.waiting.iter().take(share).take_while(|waiting| Some(waiting.request.limit) == limit).count();
        if alike == 0 || (beyond && state.waiting.len() < MAX_BATCH) {
            state.in_flight -= 1;
            self.ended = true;
            return None;
        }
        self.carries = alike;
        state.carried += alike;
        Some(state.waiting.drain(..alike).collect())
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let error = Error::new(ErrorKind::Unavailable, "ask Redis").detail("the runtime is shutting down");
        self.queue.hold_back(&error, |_| true);
        let mut state = self.queue.state();
        state.in_flight -= 1;
        state.carried -= self.carries;
    }
}

impl CommitQueue {
    fn sorted(&self, mut batch: Vec<Waiting>) -> (Vec<Request>, Vec<Asker>) {
        batch::sort(&self.functions, &mut batch, |waiting| &waiting.request);
        batch.into_iter().map(|Waiting { request, answer, .. }| (request, answer)).unzip()
    }

    async fn ask(&self, requests: &[Request]) -> Vec<Result<Reply>> {
        let sent_at = self.clock.now();
        let limit = requests.first().map_or(self.connection.command_timeout(), |request| request.limit);
        match send(&self.connection, &self.functions, requests).await {
            Ok(reply) => reply.lines(requests.len()).into_iter().map(Ok).collect(),
            // Refused as a whole and not carried out, perhaps for the keys of one of them.
            Err(error) if error.kind() == ErrorKind::Backend && requests.len() > 1 => {
                let alone = requests.iter().map(|request| send_alone(&self.connection, &self.functions, request));
                join_all(alone).await
            }
            Err(error) => {
                self.failed(&error, limit, sent_at);
                requests.iter().map(|_| Err(error.retell())).collect()
            }
        }
    }
}

/// Sends requests with one limit, in one script.
async fn send(connection: &Connection, functions: &ScriptFunctions, requests: &[Request]) -> Result<Reply> {
    let limit = requests.first().map_or(connection.command_timeout(), |request| request.limit);
    let (keys, arguments) = batch::encode(requests.iter());
    connection.evaluate(functions.script(), keys, arguments.iter(), limit).await
}

async fn send_alone(connection: &Connection, functions: &ScriptFunctions, request: &Request) -> Result<Reply> {
    send(connection, functions, std::slice::from_ref(request)).await
}

#[cfg(test)]
mod tests {
    use ErrorKind::{Backend, Closed, Indeterminate, Unavailable};
    use fred::clients::Client;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(8);

    static STEP: ScriptFunction = ScriptFunction::new("step", 1, 0, &[]);

    type Answered = oneshot::Receiver<Result<Reply>>;

    /// On a client that never connects: what waits is not sent.
    fn queue() -> Arc<CommitQueue> {
        static FUNCTIONS: [&ScriptFunction; 1] = [&STEP];
        let connection = Connection::borrow(Client::default(), LIMIT);
        Arc::new(CommitQueue::new(&connection, &Arc::new(ScriptFunctions::new(&FUNCTIONS))))
    }

    fn request(limit: Duration) -> Request {
        Request { function: &STEP, arguments: ScriptArguments::default().word("k"), limit }
    }

    /// So many that wait behind commands in flight that carry so many.
    fn waiting(queue: &Arc<CommitQueue>, count: usize, (in_flight, carried): (usize, usize)) -> Vec<Answered> {
        let since = queue.clock.now();
        let mut state = queue.state();
        (state.in_flight, state.carried) = (in_flight, carried);
        let wait = |_| {
            let (answer, answered) = oneshot::channel();
            state.waiting.push(Waiting { request: request(LIMIT), since, answer });
            answered
        };
        (0..count).map(wait).collect()
    }

    fn counts(queue: &CommitQueue) -> (usize, usize, usize) {
        let state = queue.state();
        (state.in_flight, state.carried, state.waiting.len())
    }

    #[tokio::test]
    async fn two_leave_at_once_and_the_next_wait_behind_them() {
        let queue = queue();
        let flights: Vec<_> = (0..4).map(|_| queue.enter(request(LIMIT))).collect();
        assert!(matches!(flights[..2], [Admission::InFlight(..), Admission::InFlight(..)]));
        assert!(matches!(flights[2..], [Admission::Waiting(_), Admission::Waiting(_)]));
        assert_eq!(counts(&queue), (2, 2, 2));
        queue.state().waiting.clear();
        drop(flights);
        assert_eq!(counts(&queue), (0, 0, 0));
    }

    #[tokio::test]
    async fn a_batch_takes_an_even_share_of_what_waits_and_is_on_its_way() {
        for (count, flown, expected) in [
            (40, (2, 8), Some(24)),
            (7, (2, 10), Some(7)),
            (10, (2, 0), Some(5)),
            (7, (2, 0), Some(4)),
            (100, (2, 1), Some(32)),
            // Beyond two commands only full batches leave.
            (31, (3, 0), None),
            (32, (3, 90), Some(32)),
            (0, (2, 0), None),
        ] {
            let queue = queue();
            let asked = waiting(&queue, count, flown);
            let mut batches = Batches { queue: Arc::clone(&queue), carries: 0, ended: false };
            let batch = batches.next();
            assert_eq!(batch.as_ref().map(Vec::len), expected, "{count} {flown:?}");
            let taken = expected.unwrap_or_default();
            assert_eq!(counts(&queue), (flown.0 - usize::from(batch.is_none()), flown.1 + taken, count - taken));
            // The next one no longer counts what the first carried, and those who left are not sent.
            drop(asked);
            assert!(batch.is_none() || batches.next().is_none());
            assert_eq!(counts(&queue).1, flown.1);
        }
    }

    #[tokio::test]
    async fn a_batch_has_one_limit_and_one_that_ends_early_gives_all_back() {
        let queue = queue();
        let mut asked = waiting(&queue, 6, (1, 0));
        queue.state().waiting[2].request.limit = LIMIT / 2;
        let mut batches = Batches { queue: Arc::clone(&queue), carries: 0, ended: false };
        assert_eq!(batches.next().map(|batch| batch.len()), Some(2));
        assert_eq!(counts(&queue), (1, 2, 4));
        drop(batches);
        assert_eq!(counts(&queue), (0, 0, 0));
        assert_eq!(asked[5].try_recv().unwrap().unwrap_err().kind(), Unavailable);
    }

    #[tokio::test]
    async fn behind_a_connection_that_failed_nobody_is_sent_and_behind_a_late_answer_only_the_late_are_not() {
        for (kind, told) in [(Closed, Some(Closed)), (Indeterminate, Some(Unavailable)), (Backend, None)] {
            let queue = queue();
            let mut asked = waiting(&queue, 2, (1, 1));
            queue.failed(&Error::new(kind, "test"), LIMIT, queue.clock.now());
            let answer = asked[1].try_recv().ok().map(|answer| answer.unwrap_err().kind());
            assert_eq!((answer, counts(&queue).2), (told, if told.is_some() { 0 } else { 2 }), "{kind:?}");
        }
        let (queue, short) = (queue(), LIMIT / 4);
        let asked = waiting(&queue, 3, (1, 1));
        let sent_at = queue.clock.now();
        queue.state().waiting[0].request.limit = short;
        queue.clock.advance(short);
        queue.failed(&Error::new(Indeterminate, "test"), short, sent_at);
        assert_eq!(counts(&queue).2, 2);
        // Not late, so that the connection broke.
        queue.failed(&Error::new(Indeterminate, "test"), short, queue.clock.now());
        assert_eq!(counts(&queue).2, 0);
        drop(asked);
    }
}
