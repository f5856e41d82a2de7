use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

/// Tasks that go on after an operation has answered its caller: they wait for the slow nodes.
///
/// At most [`MOST`](Self::MOST) run at a time. If the runtime ends or the locker is dropped, they end unfinished, and what
/// is left on a minority of the nodes ends with its lease.
pub(crate) struct BackgroundTasks(Mutex<JoinSet<()>>);

impl BackgroundTasks {
    const MOST: usize = 16_384;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(JoinSet::new()))
    }

    /// Spawns `work`, and must be called inside a runtime. Returns false, and drops `work`, when too many tasks are
    /// running.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        let has_room = tasks.len() < Self::MOST;
        if has_room {
            tasks.spawn(work);
        }
        has_room
    }

    /// Waits for the tasks for at most `within`, and aborts those that are left.
    pub(crate) async fn finish(&self, within: Duration) {
        let mut tasks = std::mem::take(&mut *self.tasks());
        let _ = timeout(within, async { while tasks.join_next().await.is_some() {} }).await;
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BackgroundTasks").field(&self.tasks().len()).finish()
    }
}
