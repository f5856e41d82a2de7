use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

/// What goes on after an answer was given: the slow nodes hear the rest.
///
/// At most [`MOST`](Self::MOST) at a time. If the runtime ends or the locker is dropped, it is not done, and what is left
/// on a minority of the nodes ends with its lease.
pub(crate) struct Background(Mutex<JoinSet<()>>);

impl Background {
    const MOST: usize = 4096;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(JoinSet::new()))
    }

    /// Must be called inside a runtime. False: there is too much under way, so that it is not done.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        let has_room = tasks.len() < Self::MOST;
        if has_room {
            tasks.spawn(work);
        }
        has_room
    }

    /// Lets it finish for so long, and ends what is left.
    pub(crate) async fn finish(&self, within: Duration) {
        let mut tasks = std::mem::take(&mut *self.tasks());
        let _ = timeout(within, async { while tasks.join_next().await.is_some() {} }).await;
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Background").field(&self.tasks().len()).finish()
    }
}
