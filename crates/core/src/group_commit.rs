//! Group commit, for the authors of backends: what many callers ask for at the same time goes to the store together.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::{BoxFuture, Error, ErrorKind, Home, Result};

/// Operations of one kind, each on one row, which a server carries out alone, or several by one statement.
pub trait Operations: Send + Sync + 'static {
    /// What is asked for.
    type Request: Send + Sync + 'static;
    /// What became of it.
    type Answer: Send + 'static;
    /// The operation that errors name.
    const NAME: &'static str;

    /// The name of the row.
    fn row(request: &Self::Request) -> &[u8];

    /// Carries out one operation.
    fn alone<'a>(&'a self, request: &'a Self::Request) -> BoxFuture<'a, Result<Self::Answer>>;

    /// Carries out several, on different rows, which are sorted by their names, and answers in this order.
    fn together<'a>(&'a self, requests: &'a [&'a Self::Request]) -> BoxFuture<'a, Result<Answers<Self>>>;
}

/// The answers to several operations. `None`: this one is to be carried out alone, because it was not applied, or may be
/// applied twice.
pub type Answers<O> = Vec<Option<Result<<O as Operations>::Answer>>>;

/// Carries out operations of one kind: at once and alone as long as that keeps up, and together those that come in
/// meanwhile.
///
/// An idle server costs no delay. Of two operations on one row, the second waits for another batch. All batches take the
/// rows in one order, so that no two of them lock rows crosswise.
pub struct GroupCommit<O: Operations>(Arc<Lane<O>>);

/// Lets batches of several kinds take turns, whatever their rows are: it is no lock of a row. Whoever is answered by a batch of claims finds that no releases are in flight,
/// and joins the next batch of them. Side by side, each kind would leave the half of those that come in to the batch after.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<tokio::sync::Mutex<()>>);

/// Largest batch. Beyond 64 rows the server's time for each no longer falls, and all of them stay locked longer.
const MAX_BATCH: usize = 64;

/// How long operations wait for the one in flight, or the batch. Whatever keeps that one for longer, a row or a connection,
/// keeps nobody else.
const PATIENCE: Duration = Duration::from_millis(25);

struct Lane<O: Operations> {
    operations: O,
    enabled: bool,
    turns: Turns,
    home: Option<Home>,
    state: Mutex<State<O>>,
}

struct State<O: Operations> {
    /// Somebody only if something is in flight, which looks here when it is back.
    waiting: Vec<Waiting<O>>,
    in_flight: bool,
}

struct Waiting<O: Operations> {
    request: O::Request,
    answer: oneshot::Sender<Result<O::Answer>>,
}

enum Admission<O: Operations> {
    InFlight(O::Request, Flight<O>),
    Waiting(oneshot::Receiver<Result<O::Answer>>),
}

impl<O: Operations> GroupCommit<O> {
    /// Carries out each operation alone unless it is `enabled`. Its batches take turns with those of the others that have
    /// these `turns`.
    pub fn new(operations: O, enabled: bool, turns: &Turns) -> Self {
        let state = Mutex::new(State { waiting: Vec::new(), in_flight: false });
        Self(Arc::new(Lane { operations, enabled, turns: turns.clone(), home: Home::here(), state }))
    }

    /// Carries out an operation, with others if others come in at the same time.
    ///
    /// # Errors
    /// Those of the operation, each its own. A batch whose outcome is unknown is unknown for each of it;
    /// [`Unavailable`](ErrorKind::Unavailable) if it was never sent because the runtime that sends ended.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not keep the operation from being carried out. Others are not touched.
    pub fn run(&self, request: O::Request) -> BoxFuture<'_, Result<O::Answer>> {
        if !self.0.enabled {
            return self.alone(request);
        }
        match self.0.enter(request) {
            Admission::InFlight(request, flight) => Box::pin(async move {
                let mut work = self.0.operations.alone(&request);
                if let Ok(answer) = timeout(PATIENCE, &mut work).await {
                    return answer;
                }
                drop(flight);
                work.await
            }),
            Admission::Waiting(answer) => Box::pin(async {
                answer.await.unwrap_or_else(|_| {
                    let error = Error::new(ErrorKind::Indeterminate, O::NAME);
                    Err(error.detail("the runtime that was sending it ended"))
                })
            }),
        }
    }

    /// Carries out an operation that nobody else is to wait for.
    ///
    /// # Errors
    /// Those of the operation.
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub fn alone(&self, request: O::Request) -> BoxFuture<'_, Result<O::Answer>> {
        Box::pin(async move { self.0.operations.alone(&request).await })
    }
}

impl<O: Operations> Lane<O> {
    fn enter(self: &Arc<Self>, request: O::Request) -> Admission<O> {
        let mut state = self.state();
        if !state.in_flight {
            state.in_flight = true;
            return Admission::InFlight(request, Flight(Arc::clone(self)));
        }
        let (answer, answered) = oneshot::channel();
        state.waiting.push(Waiting { request, answer });
        Admission::Waiting(answered)
    }

    async fn deliver(self: Arc<Self>, batch: Vec<Waiting<O>>) {
        let requests: Vec<_> = batch.iter().map(|waiting| &waiting.request).collect();
        let answers = match &*requests {
            [request] => vec![Some(self.operations.alone(request).await)],
            _ => self.operations.together(&requests).await.unwrap_or_else(|failed| {
                // Refused for good and not carried out, perhaps for one of them.
                let refused = failed.kind() == ErrorKind::Backend;
                requests.iter().map(|_| (!refused).then(|| Err(failed.retell()))).collect()
            }),
        };
        for (waiting, answer) in batch.into_iter().zip(answers) {
            match answer {
                Some(answer) => drop(waiting.answer.send(answer)),
                None => self.deliver_alone(waiting),
            }
        }
    }

    /// If the task never ends, its caller hears that the runtime did.
    fn deliver_alone(self: &Arc<Self>, Waiting { request, answer }: Waiting<O>) {
        let lane = Arc::clone(self);
        tokio::spawn(async move {
            let _ = answer.send(lane.operations.alone(&request).await);
        });
    }

    fn state(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One operation in flight. When it drops, those that wait are sent.
struct Flight<O: Operations>(Arc<Lane<O>>);

impl<O: Operations> Drop for Flight<O> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.waiting.is_empty() {
            state.in_flight = false;
            return;
        }
        drop(state);
        let batches = Batches { lane: Arc::clone(&self.0), ended: false };
        if let Some(runtime) = Home::for_all(self.0.home.as_ref()) {
            // In a task of its own, which nobody can cancel.
            runtime.spawn(batches.run());
        }
    }
}

/// One batch after the other in flight, as long as somebody waits.
struct Batches<O: Operations> {
    lane: Arc<Lane<O>>,
    ended: bool,
}

impl<O: Operations> Batches<O> {
    async fn run(mut self) {
        loop {
            let turn = Arc::clone(&self.lane.turns.0).lock_owned().await;
            let Some(batch) = self.next() else { break };
            let mut delivery = Box::pin(Arc::clone(&self.lane).deliver(batch));
            if timeout(PATIENCE, &mut delivery).await.is_err() {
                // If the task never ends, its callers hear that the runtime did.
                tokio::spawn(delivery);
            }
            drop(turn);
            // The callers that just got their answers may ask again at once, and are then sent together again.
            yield_now().await;
        }
    }

    /// The next batch, sorted: of those that came first, one for each row.
    fn next(&mut self) -> Option<Vec<Waiting<O>>> {
        let mut state = self.lane.state();
        // Nobody wants to know any more.
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        let mut first = std::mem::take(&mut state.waiting);
        let behind = first.split_off(first.len().min(MAX_BATCH));
        first.sort_by(|one, other| O::row(&one.request).cmp(O::row(&other.request)));
        let mut batch: Vec<Waiting<O>> = Vec::with_capacity(first.len());
        for waiting in first {
            match batch.last() {
                Some(last) if O::row(&last.request) == O::row(&waiting.request) => state.waiting.push(waiting),
                _ => batch.push(waiting),
            }
        }
        state.waiting.extend(behind);
        self.ended = batch.is_empty();
        state.in_flight = !self.ended;
        (!self.ended).then_some(batch)
    }
}

impl<O: Operations> Drop for Batches<O> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let waiting = {
            let mut state = self.lane.state();
            state.in_flight = false;
            std::mem::take(&mut state.waiting)
        };
        for Waiting { answer, .. } in waiting {
            let error = Error::new(ErrorKind::Unavailable, O::NAME);
            let _ = answer.send(Err(error.detail("not sent, for the runtime is shutting down")));
        }
    }
}

impl<O: Operations> fmt::Debug for GroupCommit<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").field("of", &O::NAME).field("enabled", &self.0.enabled).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    /// Counts the batches in flight, and keeps their rows.
    #[derive(Default)]
    struct InFlight {
        now: AtomicUsize,
        most: AtomicUsize,
        rows: Mutex<Vec<Vec<[u8; 1]>>>,
    }

    /// Takes so long for several operations.
    struct Slow(Arc<InFlight>, Duration);

    impl Operations for Slow {
        type Request = [u8; 1];
        type Answer = ();
        const NAME: &'static str = "wait";

        fn row(request: &[u8; 1]) -> &[u8] {
            request
        }

        fn alone<'a>(&'a self, _: &'a [u8; 1]) -> BoxFuture<'a, Result<()>> {
            Box::pin(async {
                sleep(PATIENCE / 5).await;
                Ok(())
            })
        }

        fn together<'a>(&'a self, requests: &'a [&'a [u8; 1]]) -> BoxFuture<'a, Result<Answers<Self>>> {
            Box::pin(async {
                let InFlight { now, most, rows } = &*self.0;
                rows.lock().unwrap().push(requests.iter().map(|row| **row).collect());
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(self.1).await;
                now.fetch_sub(1, Ordering::Relaxed);
                Ok(requests.iter().map(|_| Some(Ok(()))).collect())
            })
        }
    }

    async fn most_in_flight(turns: [&Turns; 2], a_batch_takes: Duration) -> usize {
        let in_flight = Arc::new(InFlight::default());
        let lanes = turns.map(|turns| GroupCommit::new(Slow(Arc::clone(&in_flight), a_batch_takes), true, turns));
        let all = lanes.iter().flat_map(|lane| (0..4).map(|row| lane.run([row])));
        assert!(join_all(all).await.iter().all(Result::is_ok));
        in_flight.most.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn batches_with_the_same_turns_leave_one_after_the_other() {
        let [one, other] = [Turns::default(), Turns::default()];
        assert_eq!(most_in_flight([&one, &one], PATIENCE / 5).await, 1);
        assert_eq!(most_in_flight([&one, &other], PATIENCE / 5).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_takes_its_rows_in_the_order_of_their_names() {
        let in_flight = Arc::new(InFlight::default());
        let lane = GroupCommit::new(Slow(Arc::clone(&in_flight), PATIENCE / 5), true, &Turns::default());
        join_all((0..9).rev().map(|row| lane.run([row]))).await;
        let batches = in_flight.rows.lock().unwrap();
        assert!(batches.iter().any(|rows| rows.len() > 2), "nothing went together: {batches:?}");
        assert!(batches.iter().all(|rows| rows.is_sorted()), "two such batches can wait for each other: {batches:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_takes_long_gives_its_turn_away() {
        let turns = Turns::default();
        assert_eq!(most_in_flight([&turns, &turns], PATIENCE * 5).await, 2);
    }
}
