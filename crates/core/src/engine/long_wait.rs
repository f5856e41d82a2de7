//! The warning about a wait that takes long, which names the holder.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::inner::Inner;
use crate::clock::Moment;
use crate::{Error, LockKey};

/// What an acquisition polls beside its wait. Dropped with the wait, it warns of nothing.
pub(super) struct LongWait<'w>(Option<BoxFuture<'w, ()>>);

impl<'w> LongWait<'w> {
    /// Warns of a wait for `key` that began at `since`, when it has lasted for `after`.
    pub(super) fn of(engine: &'w Arc<Inner>, key: &'w LockKey, since: Moment, after: Option<Duration>) -> Self {
        // In a box, so that an acquisition without it does not make room for it.
        Self(after.map(|after| Box::pin(warn(engine, key, since, after)) as _))
    }

    /// Resolves after the warning, once. Cancel safe.
    pub(super) async fn warns(&mut self) {
        match &mut self.0 {
            Some(warning) => warning.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}

async fn warn(engine: &Inner, key: &LockKey, since: Moment, after: Duration) {
    engine.clock.reach(since.plus(after)).await;
    let _one_at_a_time = engine.asks.lock().await;
    let asked = tokio::select! {
        asked = engine.backend.inspect(key) => asked,
        () = engine.clock.reach(engine.clock.now().plus(engine.backend.answers_within())) => {
            Err(Error::unanswered("inspect"))
        }
    };
    let waited = engine.clock.now().since(since);
    engine.driver.observer.waits_long(key, waited, &asked, &engine.clock);
}
