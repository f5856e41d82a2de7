use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::{Attempt, LockKey, Result};
use leasehold_mysql::BoxFuture;
use tokio::sync::oneshot::{self, error::TryRecvError};

/// Collects the requests for epochs that the readers of this process make at the same time, so that one statement draws
/// for all of them. Also knows how far away the server is.
///
/// Drawing changes the row of the key, which only one session at a time can do.
#[derive(Debug, Default)]
pub(crate) struct EpochAllocator {
    keys: Mutex<HashMap<LockKey, Arc<KeyRequests>>>,
    /// The time of a round trip, in microseconds.
    round_trip: AtomicU64,
}

/// The longest round trip for which the readers' turn is kept open. The turn keeps all writers out, and the reader for
/// which it is kept may be dead.
const LONGEST_ROUND_TRIP: Duration = Duration::from_millis(500);

/// For so many readers one statement draws. The server gives a key 16 epochs in a millisecond, and all wait for the last.
const MOST_TOGETHER: usize = 64;

/// The requests for epochs of one key.
#[derive(Debug, Default)]
struct KeyRequests {
    /// Locked by the reader that draws.
    drawing: tokio::sync::Mutex<()>,
    pending: Mutex<Vec<EpochRequest>>,
}

/// The request of one reader, and where its answer goes.
#[derive(Debug)]
struct EpochRequest {
    waits: bool,
    answer: oneshot::Sender<Result<Attempt>>,
}

/// The access of one reader to the requests for a key. The last reader to leave removes them, whichever way it leaves.
#[derive(Debug)]
struct Visit<'a> {
    allocator: &'a EpochAllocator,
    key: LockKey,
    requests: Arc<KeyRequests>,
}

impl EpochAllocator {
    /// An epoch for one reader, or what `draw` answers if a writer is in the way. `waits` says whether the reader waits.
    ///
    /// One of the readers that ask at the same time calls `draw`, for those that had asked by then, or the first of them: with their number, and
    /// whether one of them waits. It answers the newest of as many epochs.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an epoch unused, which is harmless. Readers for which it was drawing ask again.
    pub(crate) async fn allocate<'d>(
        &self,
        key: &LockKey,
        waits: bool,
        draw: impl Fn(u64, bool) -> BoxFuture<'d, Result<Attempt>>,
    ) -> Result<Attempt> {
        loop {
            let visit = self.visit(key);
            let requests = &*visit.requests;
            let (sender, mut answer) = oneshot::channel();
            requests.pending().push(EpochRequest { waits, answer: sender });
            let drawing = tokio::select! {
                biased;
                answer = &mut answer => match answer {
                    Ok(answer) => return answer,
                    // The reader that drew for this one was dropped before it had an answer.
                    Err(_) => continue,
                },
                drawing = requests.drawing.lock() => drawing,
            };
            match answer.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Closed) => continue,
                Err(TryRecvError::Empty) => {}
            }
            let pending: Vec<_> = {
                let mut pending = requests.pending();
                let count = pending.len().min(MOST_TOGETHER);
                pending.drain(..count).collect()
            };
            let count = pending.len() as u64;
            let drawn = draw(count, pending.iter().any(|request| request.waits)).await;
            for (request, answer) in pending.into_iter().zip(answers(&drawn, count)) {
                // A reader that does not wait for its epoch any more leaves a gap, and gaps are harmless.
                drop(request.answer.send(answer));
            }
            // Only now, so that the next reader that draws and has no answer finds its own request still pending.
            drop(drawing);
            if let Ok(answer) = answer.try_recv() {
                return answer;
            }
        }
    }

    /// How long the next round trip to the server may take.
    pub(crate) fn round_trip(&self) -> Duration {
        Duration::from_micros(self.round_trip.load(Ordering::Relaxed)).min(LONGEST_ROUND_TRIP)
    }

    /// Notes how long a round trip took. A long one counts for a while, because those that follow may be as long.
    pub(crate) fn note_round_trip(&self, took: Duration) {
        let took = u64::try_from(took.min(LONGEST_ROUND_TRIP).as_micros()).unwrap_or(0);
        self.round_trip.store(took.max(self.round_trip.load(Ordering::Relaxed) / 2), Ordering::Relaxed);
    }

    fn visit(&self, key: &LockKey) -> Visit<'_> {
        let requests = Arc::clone(self.keys().entry(key.clone()).or_default());
        Visit { allocator: self, key: key.clone(), requests }
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<LockKey, Arc<KeyRequests>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyRequests {
    fn pending(&self) -> MutexGuard<'_, Vec<EpochRequest>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers for `count` readers, of whose epochs the newest was drawn.
fn answers(drawn: &Result<Attempt>, count: u64) -> impl Iterator<Item = Result<Attempt>> {
    (0..).map(move |index| match drawn {
        Ok(Attempt::Granted { epoch: Some(newest) }) => {
            Ok(Attempt::Granted { epoch: Some(newest - (count - 1) + index) })
        }
        Ok(busy) => Ok(*busy),
        Err(error) => Err(error.retell()),
    })
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut keys = self.allocator.keys();
        // That of the map, and this one: while the map is locked, no other visit can begin.
        if Arc::strong_count(&self.requests) == 2 {
            keys.remove(&self.key);
        }
    }
}
