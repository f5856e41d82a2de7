use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::Home;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Tasks that go on after an operation has answered its caller: they wait for the slow nodes.
///
/// At most [`MOST`](Self::MOST) run at a time. If the runtime ends or the locker is dropped, they end unfinished, and what
/// is left on a minority of the nodes ends with its lease.
pub(crate) struct BackgroundTasks {
    tasks: Mutex<JoinSet<()>>,
    home: Option<Home>,
}

impl BackgroundTasks {
    const MOST: usize = 16_384;

    pub(crate) fn new() -> Self {
        Self { tasks: Mutex::default(), home: Home::here() }
    }

    /// Spawns `work`. Returns false, and drops `work`, when too many tasks are running, or outside of a runtime.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        let runtime = Home::for_all(self.home.as_ref()).filter(|_| tasks.len() < Self::MOST);
        runtime.map(|runtime| tasks.spawn_on(work, &runtime)).is_some()
    }

    /// Waits for the tasks for at most `within`, and aborts those that are left.
    pub(crate) async fn finish(&self, within: Duration) {
        let mut tasks = std::mem::take(&mut *self.tasks());
        let _ = timeout(within, async { while tasks.join_next().await.is_some() {} }).await;
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BackgroundTasks").field(&self.tasks().len()).finish()
    }
}
