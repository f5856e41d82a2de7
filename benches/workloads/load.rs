//! The closed loop that every contender runs: acquire, hold, release, again.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::LockKey;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::log::{HoldSpan, Keys, Log};
use crate::machine;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// How long a round of a workload is, and how many rounds there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) warm_up_millis: u64,
    pub(crate) window_millis: u64,
    pub(crate) quick: bool,
}

impl Pace {
    pub(crate) const FULL: Self = Self { rounds: 5, warm_up_millis: 300, window_millis: 1000, quick: false };
    pub(crate) const QUICK: Self = Self { rounds: 3, warm_up_millis: 150, window_millis: 350, quick: true };
}

/// A way to lock: ours, a floor that only does the round trips, or a peer.
pub(crate) trait Contender: Send + Sync + 'static {
    /// What a grant is, beside its key.
    type Held: Send;
    /// What the names of its keys begin with, where others use the same store in the same way.
    const PREFIX: &'static str = "";

    /// Acquires the key, and waits without limit.
    fn acquire(&self, key: &Key) -> impl Future<Output = Result<Self::Held>> + Send;
    fn release(&self, key: &Key, held: Self::Held) -> impl Future<Output = Result<()>> + Send;
    /// The fencing token of the grant. 0 if the lock has no fencing tokens.
    fn token(_held: &Self::Held) -> u64 {
        0
    }
}

/// The key of a task.
#[derive(Debug)]
pub(crate) struct Key {
    /// Of the task.
    pub(crate) number: usize,
    pub(crate) name: LockKey,
}

/// A load: the number of tasks, their keys, and how long each grant is held.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) keys: Keys,
    pub(crate) tasks: usize,
    /// The number of the first task. Tasks of other processes have smaller numbers.
    pub(crate) first_task: usize,
    pub(crate) hold_micros: u64,
    pub(crate) warm_up_millis: u64,
    pub(crate) window_millis: u64,
}

impl Load {
    /// The measured window of a run that starts at `start`.
    pub(crate) fn window(&self, start: u64) -> Range<u64> {
        let from = start + self.warm_up_millis * 1_000_000;
        from..from + self.window_millis * 1_000_000
    }

    /// Runs the load from `start` on. Ends when the window has ended and every waiting task has had a turn.
    pub(crate) async fn run<C: Contender>(&self, contender: C, start: u64) -> Result<Log> {
        let contender = Arc::new(contender);
        sleep(Duration::from_nanos(start.saturating_sub(now()))).await;
        let cpu = machine::cpu_micros();
        let mut tasks = JoinSet::new();
        for number in self.first_task..self.first_task + self.tasks {
            let name = match self.keys {
                Keys::Own => format!("{}bench/{number}", C::PREFIX),
                Keys::Shared => format!("{}bench/hot", C::PREFIX),
            };
            let key = Key { number, name: LockKey::new(name)? };
            let (contender, hold, end) = (Arc::clone(&contender), self.hold_micros, self.window(start).end);
            tasks.spawn(async move {
                let task = number as u64;
                let mut spans = Vec::with_capacity(1 << 12);
                while now() < end {
                    let grant = contender.acquire(&key).await?;
                    let acquired = now();
                    if hold > 0 {
                        sleep(Duration::from_micros(hold)).await;
                    }
                    let token = C::token(&grant);
                    let releasing = now();
                    contender.release(&key, grant).await?;
                    spans.push(HoldSpan { task, acquired, releasing, token });
                }
                Ok::<_, Failure>(spans)
            });
        }
        let mut log = Log::default();
        while let Some(ended) = tasks.join_next().await {
            log.spans.extend(ended??);
        }
        log.cpu = machine::cpu_micros() - cpu;
        Ok(log)
    }
}

/// The reading of the monotonic clock in nanoseconds. All processes of the machine share this clock.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
