use std::iter::once;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, Error, ErrorKind, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::words::Finished;
use crate::{Connection, Reply, Step, Steps, Words};

/// So many steps leave together at most: more hold up everything else in the server for longer, and gain nothing.
const FULL: usize = 32;

/// While so many commands are on their way, steps wait for each other: until one of the commands is back, or until
/// there are enough for a full batch.
const ENOUGH: usize = 2;

/// Each of them takes its share of the steps, so that the server works on one while we attend to the other; but so many
/// go together, because the round trip is most of what they cost.
const FEW: usize = 4;

/// Sends steps on locks: alone as long as that keeps up, and as one script those that come in meanwhile.
///
/// With nothing in flight a step leaves at once and alone, so that an idle connection costs no delay. In a Cluster
/// every step leaves alone: two keys are hardly ever in the same slot.
#[derive(Debug)]
pub struct GroupCommit {
    connection: Connection,
    steps: &'static Steps,
    /// `None`: each alone.
    line: Option<Arc<Line>>,
}

impl GroupCommit {
    /// Over this connection, of these steps; each alone unless it is `enabled`.
    pub fn new(connection: &Connection, steps: &'static Steps, enabled: bool) -> Self {
        let line = || Arc::new(Line::new(connection, steps));
        let line = (enabled && connection.keys_in_a_script() > 1).then(line);
        Self { connection: connection.clone(), steps, line }
    }

    /// Has the server learn the scripts, where the order of steps matters: one that is sent again with its source comes
    /// after what was sent behind it.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says.
    pub async fn teach(&self) -> Result<()> {
        for script in self.steps.scripts() {
            self.connection.run(script, [], [], None).await?;
        }
        Ok(())
    }

    /// Runs one of the steps, within the command timeout or less; before, as long again for what is in flight.
    ///
    /// What is given less time than the command timeout and misses it fails alone: others wait for as long as theirs.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says, each step its own; [`Unavailable`](ErrorKind::Unavailable) if it never
    /// left because what left before got no answer.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not keep the step from being done. Others are not touched.
    pub async fn run(&self, step: &'static Step, words: Words, within: Option<Duration>) -> Result<Reply> {
        debug_assert!(step.takes(words.count()), "{step:?}");
        let order = Order { step, words: words.finish(), limit: self.connection.limit(within) };
        let Some(line) = &self.line else { return Box::pin(order.alone(&self.connection)).await };
        match line.enter(order) {
            Place::InFlight(order, flight) => {
                let (limit, sent_at) = (order.limit, line.clock.now());
                // Boxed, because the driver's futures have kilobytes, which those who wait need not copy.
                let answer = Box::pin(order.alone(&self.connection)).await;
                if let Err(error) = &answer {
                    flight.0.failed(error, limit, sent_at);
                }
                answer
            }
            Place::Waiting(answer) => answer.await.unwrap_or_else(|_| {
                let error = Error::new(ErrorKind::Indeterminate, "ask Redis");
                Err(error.detail("the runtime that was sending it ended"))
            }),
        }
    }
}

/// A step, and what it is to be done with.
#[derive(Debug)]
struct Order {
    step: &'static Step,
    words: Finished,
    limit: Duration,
}

impl Order {
    async fn alone(&self, connection: &Connection) -> Result<Reply> {
        connection.evaluate(self.step.alone(), self.step.keys(), self.words.iter(), self.limit).await
    }
}

/// Who waits to be sent, and how much is on its way.
#[derive(Debug)]
struct Line {
    connection: Connection,
    steps: &'static Steps,
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    /// Fewer than fill a batch; somebody only if something is in flight, which looks here when it is back.
    waiting: Vec<Waiting>,
    in_flight: usize,
    /// So many steps are in them.
    carried: usize,
}

#[derive(Debug)]
struct Waiting {
    order: Order,
    since: Moment,
    answer: oneshot::Sender<Result<Reply>>,
}

enum Place {
    InFlight(Order, Flight),
    Waiting(oneshot::Receiver<Result<Reply>>),
}

impl Line {
    fn new(connection: &Connection, steps: &'static Steps) -> Self {
        Self { connection: connection.clone(), steps, state: Mutex::default(), clock: Clock::system() }
    }

    fn enter(self: &Arc<Self>, order: Order) -> Place {
        let mut state = self.state();
        if state.in_flight < ENOUGH && state.waiting.is_empty() {
            state.in_flight += 1;
            state.carried += 1;
            return Place::InFlight(order, Flight(Arc::clone(self)));
        }
        let (answer, answered) = oneshot::channel();
        state.waiting.push(Waiting { order, since: self.clock.now(), answer });
        if state.waiting.len() >= FULL {
            state.in_flight += 1;
            drop(state);
            Batches::send(self);
        }
        Place::Waiting(answered)
    }

    /// What was sent at that moment failed as a whole.
    ///
    /// A limit shorter than the connection's own says nothing of the connection: then only those give up who have
    /// waited for as long as theirs.
    fn failed(&self, error: &Error, limit: Duration, sent_at: Moment) {
        let now = self.clock.now();
        let is_only_late = limit < self.connection.command_timeout() && now.since(sent_at) >= limit;
        self.hold_back(error, |waiting| !is_only_late || now.since(waiting.since) >= waiting.order.limit);
    }

    /// Sent now, they would wait for as long again.
    fn hold_back(&self, failed: &Error, whom: impl Fn(&Waiting) -> bool) {
        let kind = match failed.kind() {
            ErrorKind::Closed => ErrorKind::Closed,
            ErrorKind::Unavailable | ErrorKind::Indeterminate => ErrorKind::Unavailable,
            // Their steps may be none that are refused.
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

/// One command on its way. When it drops, whoever waits goes next.
struct Flight(Arc<Line>);

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
    line: Arc<Line>,
    /// So many steps are in the one that is on its way.
    carries: usize,
    ended: bool,
}

impl Batches {
    /// In a task of its own, which nobody can cancel.
    fn send(line: &Arc<Line>) {
        let batches = Self { line: Arc::clone(line), carries: 0, ended: false };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(batches.run());
        }
    }

    async fn run(mut self) {
        while let Some(batch) = self.next() {
            let many = batch.len() > 1;
            self.line.deliver(batch).await;
            if many {
                // Those who just got their answers may come back at once, and then leave together again.
                yield_now().await;
            }
        }
    }

    fn next(&mut self) -> Option<Vec<Waiting>> {
        let mut state = self.line.state();
        state.carried -= std::mem::take(&mut self.carries);
        // Nobody wants to know any more.
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        let limit = state.waiting.first().map(|waiting| waiting.order.limit);
        let beyond = state.in_flight > ENOUGH;
        let even = (state.waiting.len() + state.carried).div_ceil(ENOUGH).clamp(FEW, FULL);
        let share = if beyond { FULL } else { even };
        let alike = state.waiting.iter().take(share).take_while(|waiting| Some(waiting.order.limit) == limit).count();
        if alike == 0 || (beyond && state.waiting.len() < FULL) {
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
        self.line.hold_back(&error, |_| true);
        let mut state = self.line.state();
        state.in_flight -= 1;
        state.carried -= self.carries;
    }
}

impl Line {
    async fn deliver(&self, batch: Vec<Waiting>) {
        let (orders, askers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|Waiting { order, answer, .. }| (order, answer)).unzip();
        for (asker, answer) in askers.into_iter().zip(self.ask(&orders).await) {
            let _ = asker.send(answer);
        }
    }

    async fn ask(&self, orders: &[Order]) -> Vec<Result<Reply>> {
        let sent_at = self.clock.now();
        if let [order] = orders {
            let answer = order.alone(&self.connection).await;
            if let Err(error) = &answer {
                self.failed(error, order.limit, sent_at);
            }
            return vec![answer];
        }
        match self.together(orders).await {
            Ok(reply) => reply.each_of(orders.len()).into_iter().map(Ok).collect(),
            // Refused as a whole and not carried out, perhaps for the keys of one of them.
            Err(error) if error.kind() == ErrorKind::Backend => {
                join_all(orders.iter().map(|order| order.alone(&self.connection))).await
            }
            Err(error) => {
                self.failed(&error, orders.first().map_or(Duration::MAX, |order| order.limit), sent_at);
                orders.iter().map(|_| Err(error.retell())).collect()
            }
        }
    }

    async fn together(&self, orders: &[Order]) -> Result<Reply> {
        let keys = orders.iter().flat_map(|order| order.words.iter().take(order.step.keys()));
        let arguments =
            orders.iter().flat_map(|order| once(order.step.name()).chain(order.words.iter().skip(order.step.keys())));
        let count = orders.iter().map(|order| order.step.keys()).sum();
        let limit = orders.first().map_or(self.connection.command_timeout(), |order| order.limit);
        self.connection.evaluate(self.steps.together(), count, keys.chain(arguments), limit).await
    }
}
