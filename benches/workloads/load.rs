//! The closed loop that every contender runs: acquire, hold, release, again.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::log::{HoldSpan, Keys, Log};
use crate::machine;

pub(crate) type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// A way to lock: ours, a floor that only does the round trips, or a peer.
pub(crate) trait Contender: Send + Sync + 'static {
    /// A key in the form that `acquire` takes. It is created once per task.
    type Key: Send + Sync;
    /// A grant, which has to be released.
    type Held: Send;

    fn key(&self, name: &str) -> Result<Self::Key>;
    /// Acquires the key, and waits without limit.
    fn acquire(&self, key: &Self::Key) -> impl Future<Output = Result<Self::Held>> + Send;
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<()>> + Send;
    /// The fencing token of the grant. 0 if the lock has no fencing tokens.
    fn token(_held: &Self::Held) -> u64 {
        0
    }
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
                Keys::Own => format!("bench/{number}"),
                Keys::Shared => "bench/hot".to_owned(),
            };
            let key = contender.key(&name)?;
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
                    contender.release(grant).await?;
                    spans.push(HoldSpan { task, acquired, releasing, token });
                }
                Ok::<_, Box<dyn Error + Send + Sync>>(spans)
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
