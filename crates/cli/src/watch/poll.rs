use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use leasehold::{Holders, LockKey, Locks, Result};

use crate::admin::each_held;
use crate::stopwatch::Stopwatch;

/// Everything that is held under a prefix, as the store said.
#[derive(Debug)]
pub(super) struct Answer {
    /// Each key with its holders, and when the page came on which they were. Or why the store did not say.
    pub(super) held: Result<BTreeMap<LockKey, (Holders, Duration)>>,
    /// How long it took.
    pub(super) took: Duration,
}

/// Asks the store again and again what is held. Between two questions it waits for the interval, and for as long as the answer
/// took, so that a slow store is idle half of the time.
pub(super) struct Poll<'a> {
    store: &'a Locks,
    prefix: &'a str,
    interval: Duration,
    stopwatch: &'a Stopwatch,
    asking: Pin<Box<dyn Future<Output = Answer> + 'a>>,
}

impl<'a> Poll<'a> {
    pub(super) fn new(store: &'a Locks, prefix: &'a str, interval: Duration, stopwatch: &'a Stopwatch) -> Self {
        let asking = Box::pin(ask(store, prefix, stopwatch, Duration::ZERO));
        Self { store, prefix, interval, stopwatch, asking }
    }

    /// The next answer. Cancel safe: the question goes on.
    pub(super) async fn next(&mut self) -> Answer {
        let answer = self.asking.as_mut().await;
        self.ask_after(self.interval.max(answer.took));
        answer
    }

    /// Asks at once; a question that is under way is dropped.
    pub(super) fn hurry(&mut self) {
        self.ask_after(Duration::ZERO);
    }

    fn ask_after(&mut self, pause: Duration) {
        self.asking = Box::pin(ask(self.store, self.prefix, self.stopwatch, pause));
    }
}

async fn ask(store: &Locks, prefix: &str, stopwatch: &Stopwatch, pause: Duration) -> Answer {
    tokio::time::sleep(pause).await;
    let began = stopwatch.read();
    let mut held = BTreeMap::new();
    let show = |holders: Holders| drop(held.insert(holders.key.clone(), (holders, stopwatch.read())));
    let listed = each_held(store, prefix, show).await;
    Answer { held: listed.map(|()| held), took: stopwatch.read().saturating_sub(began) }
}
