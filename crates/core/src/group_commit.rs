//! Group commit, for the authors of backends: what many callers ask for at the same time goes to the store together.

mod queue;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::poll;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout;

pub use self::queue::{Limits, Queue};
use crate::{BoxFuture, Error, ErrorKind, Home, Result};

/// Operations of one kind, which a server carries out alone, or several together.
pub trait Operations: Send + Sync + 'static {
    /// What is asked for.
    type Request: Send + Sync + 'static;
    /// What became of it.
    type Answer: Send + 'static;
    /// The operation that errors name.
    const NAME: &'static str;
    /// How many go together. By default all that wait, up to 64: beyond 64 rows the server's time for each no longer falls, and all
    /// of them stay locked longer.
    const LIMITS: Limits = Limits { in_flight: 1, least: 64, most: 64 };

    /// The name of the row that only one operation of a batch may touch. `None`: a batch may have several for one key, which are carried
    /// out in the order in which they came.
    fn row(request: &Self::Request) -> Option<&[u8]>;

    /// Whether another operation may be in the batch of this one.
    fn alike(_one: &Self::Request, _another: &Self::Request) -> bool {
        true
    }

    /// How long operations wait for those in flight. Whatever keeps those for longer, a row or a connection, keeps nobody else. 25 ms by
    /// default.
    fn patience(&self) -> Duration {
        Duration::from_millis(25)
    }

    /// Carries out one operation.
    fn alone<'a>(&'a self, request: &'a Self::Request) -> BoxFuture<'a, Result<Self::Answer>>;

    /// Carries out several, sorted by their [`row`](Self::row)s, and answers in this order.
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

type Turn = OwnedMutexGuard<()>;

struct Lane<O: Operations> {
    operations: O,
    enabled: bool,
    turns: Turns,
    home: Option<Home>,
    queue: Mutex<Queue<Waiting<O>>>,
}

struct Waiting<O: Operations> {
    request: O::Request,
    answer: oneshot::Sender<Result<O::Answer>>,
}

impl<O: Operations> GroupCommit<O> {
    /// Carries out each operation alone unless it is `enabled`. Its batches take turns with those of the others that have
    /// these `turns`.
    pub fn new(operations: O, enabled: bool, turns: &Turns) -> Self {
        let queue = Mutex::new(Queue::new(O::LIMITS));
        Self(Arc::new(Lane { operations, enabled, turns: turns.clone(), home: Home::here(), queue }))
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
        let mut queue = self.0.queue();
        if queue.admits_one() {
            drop(queue);
            let flight = Flight(Arc::clone(&self.0));
            return Box::pin(async move {
                let mut work = self.0.operations.alone(&request);
                if let Ok(answer) = timeout(self.0.operations.patience(), &mut work).await {
                    return answer;
                }
                drop(flight);
                work.await
            });
        }
        let (answer, answered) = oneshot::channel();
        let is_full = queue.wait(Waiting { request, answer });
        drop(queue);
        if is_full {
            Batches::send(&self.0, None);
        }
        Box::pin(async {
            answered.await.unwrap_or_else(|_| {
                let error = Error::new(ErrorKind::Indeterminate, O::NAME);
                Err(error.detail("the runtime that was sending it ended"))
            })
        })
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

impl Turns {
    async fn take(&self) -> Turn {
        Arc::clone(&self.0).lock_owned().await
    }
}

impl<O: Operations> Lane<O> {
    /// Carries out a batch and hands out its answers: `apart` from every other batch, until the turn that this returns is over.
    async fn deliver(self: Arc<Self>, batch: Vec<Waiting<O>>, apart: bool) -> Option<Turn> {
        let requests: Vec<_> = batch.iter().map(|waiting| &waiting.request).collect();
        let answers = match &*requests {
            [request] => vec![Some(self.operations.alone(request).await)],
            _ => self.operations.together(&requests).await.unwrap_or_else(|failed| {
                // Refused for good and not carried out, perhaps for one of them.
                let refused = failed.kind() == ErrorKind::Backend;
                requests.iter().map(|_| (!refused).then(|| Err(failed.retell()))).collect()
            }),
        };
        let turn = if apart { Some(self.turns.take().await) } else { None };
        for (waiting, answer) in batch.into_iter().zip(answers) {
            match answer {
                Some(answer) => drop(waiting.answer.send(answer)),
                None => self.deliver_alone(waiting),
            }
        }
        turn
    }

    /// If the task never ends, its caller hears that the runtime did.
    fn deliver_alone(self: &Arc<Self>, Waiting { request, answer }: Waiting<O>) {
        let lane = Arc::clone(self);
        tokio::spawn(async move {
            let _ = answer.send(lane.operations.alone(&request).await);
        });
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Waiting<O>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One operation in flight. When it drops, those that wait are sent.
struct Flight<O: Operations>(Arc<Lane<O>>);

impl<O: Operations> Drop for Flight<O> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        if queue.is_empty() {
            queue.landed(1);
            return;
        }
        drop(queue);
        Batches::send(&self.0, Some(1));
    }
}

/// One batch after the other in flight, as long as somebody waits.
struct Batches<O: Operations> {
    lane: Arc<Lane<O>>,
    /// How many operations the batch in flight carries.
    carries: Option<usize>,
    ended: bool,
}

impl<O: Operations> Batches<O> {
    /// Sends batches once what is in flight, and `carries` so many, is answered. In a task of its own, which nobody can cancel.
    fn send(lane: &Arc<Lane<O>>, carries: Option<usize>) {
        let batches = Self { lane: Arc::clone(lane), carries, ended: false };
        if let Some(runtime) = Home::for_all(lane.home.as_ref()) {
            runtime.spawn(batches.run());
        }
    }

    async fn run(mut self) {
        let lane = Arc::clone(&self.lane);
        let alternates = O::LIMITS.in_flight == 1;
        // On one thread, what two batches send after answers that came together would reach the server together, and so on
        // for ever: it would idle while this process works, and the other way round.
        let apart = !alternates && Handle::current().metrics().num_workers() == 1;
        let mut turn = None;
        loop {
            if alternates {
                turn = Some(lane.turns.take().await);
            }
            let Some(batch) = self.next() else { break };
            let many = batch.len() > 1;
            let mut delivery = Box::pin(Arc::clone(&lane).deliver(batch, apart));
            let mut sent = poll!(&mut delivery).map(Some);
            if !alternates {
                drop(turn.take());
            }
            if sent.is_pending() {
                sent = Poll::Ready(timeout(lane.operations.patience(), &mut delivery).await.ok());
            }
            turn = if let Poll::Ready(Some(next)) = sent {
                next
            } else {
                // If the task never ends, its callers hear that the runtime did.
                tokio::spawn(delivery);
                None
            };
            if many {
                // The callers that just got their answers may ask again at once, and are then sent together again.
                yield_now().await;
            }
        }
        drop(turn);
    }

    /// The next batch, sorted: of those that came first, one for each row.
    fn next(&mut self) -> Option<Vec<Waiting<O>>> {
        let mut queue = self.lane.queue();
        if let Some(carried) = self.carries.take() {
            queue.landed(carried);
        }
        // Nobody wants to know any more.
        queue.retain(|waiting| !waiting.answer.is_closed());
        let Some(mut batch) = queue.next(|first, one| O::alike(&first.request, &one.request)) else {
            self.ended = true;
            return None;
        };
        batch.sort_by(|one, other| O::row(&one.request).cmp(&O::row(&other.request)));
        let mut again = Vec::new();
        let mut first: Vec<Waiting<O>> = Vec::with_capacity(batch.len());
        for waiting in batch {
            let row = O::row(&waiting.request);
            let is_there = row.is_some() && first.last().is_some_and(|last| O::row(&last.request) == row);
            if is_there { again.push(waiting) } else { first.push(waiting) }
        }
        queue.put_back(again);
        self.carries = Some(first.len());
        Some(first)
    }
}

impl<O: Operations> Drop for Batches<O> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let waiting = {
            let mut queue = self.lane.queue();
            if let Some(carried) = self.carries.take() {
                queue.landed(carried);
            }
            queue.give_up()
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

    /// As all have it by default.
    const PATIENCE: Duration = Duration::from_millis(25);

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

        fn row(request: &[u8; 1]) -> Option<&[u8]> {
            Some(request)
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
