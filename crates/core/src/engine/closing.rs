use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Core;
use super::release::Hold;
use crate::clock::Moment;
use crate::{Backend, Clock, Error, ErrorKind, LossReason, Result};

/// Whether an engine is closed, and until when it goes on with what is under way.
#[derive(Debug)]
pub(super) struct Closing(watch::Sender<Option<Moment>>);

impl Closing {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// False if it had begun before.
    fn begin(&self, until: Moment) -> bool {
        self.0.send_if_modified(|begun| {
            let first = begun.is_none();
            begun.get_or_insert(until);
            first
        })
    }

    pub(super) fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Says until when what is under way goes on. Cancel safe.
    async fn begun(&self) -> Moment {
        // The sender is here.
        let begun = self.0.subscribe().wait_for(Option::is_some).await.ok().and_then(|until| *until);
        begun.unwrap_or(Moment::NEVER)
    }

    /// Ends when nothing is to go on any more. Cancel safe.
    pub(super) async fn over(&self, clock: &Clock) {
        let until = self.begun().await;
        clock.reach(until).await;
    }
}

impl<B: Backend> Core<B> {
    /// From now on nothing begins here. What was held is given back, and that and what is under way has twice the time
    /// of an answer: one for the step that is under way, one for the step behind it.
    pub(super) async fn wind_up(self: &Arc<Self>) {
        let patience = self.backend.answers_within().saturating_mul(2);
        if self.closing.begin(self.clock.now().plus(patience)) {
            for tenure in self.keeper.all() {
                tenure.lose(LossReason::Shutdown);
                for grant in self.sessions.levels(&tenure) {
                    self.give_back(&grant, tenure.ttl, &Handle::current());
                }
            }
            self.keeper.stop();
        }
        tokio::select! {
            () = self.pending.all_done() => {}
            () = self.closing.over(&self.clock) => {}
        }
    }

    /// Waits as long as there is anything to wait for: no guard is born of a closed engine.
    pub(super) async fn until_closed(
        &self,
        acquiring: impl Future<Output = Result<Option<Hold>>>,
    ) -> Result<Option<Hold>> {
        let closed = Err(Error::new(ErrorKind::Closed, "acquire"));
        tokio::select! {
            biased;
            // Whoever closes sees a hold that is noted before; this one sees the closing otherwise, and gives it back.
            acquired = acquiring => if self.closing.has_begun() { closed } else { acquired },
            _ = self.closing.begun() => closed,
        }
    }
}
