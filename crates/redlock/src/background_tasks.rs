use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::Home;
use tokio::sync::oneshot;
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
        let Some(runtime) = Home::for_all(self.home.as_ref()).filter(|_| tasks.len() < Self::MOST) else {
            // Dropped work may have a successor, which is run here, too.
            drop(tasks);
            return false;
        };
        let (start, started) = oneshot::channel();
        let task = async {
            if let Ok(work) = started.await {
                work.await;
            }
        };
        tasks.spawn_on(task, &runtime);
        drop(tasks);
        // Not given to the task before: a runtime that has ended would drop it at once, while the tasks are locked.
        start.send(work).is_ok()
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

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::{Arc, mpsc};
    use std::thread;

    use tokio::runtime::Builder;

    use super::*;

    /// Work that has other work to do when it is dropped, as a batch has whose place the next one takes.
    struct Next(Arc<BackgroundTasks>);

    impl Drop for Next {
        fn drop(&mut self) {
            self.0.run(async {});
        }
    }

    #[test]
    fn work_that_is_refused_may_have_a_successor() {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let tasks = Arc::new(BackgroundTasks::new());
                while tasks.run(pending()) {}
                let next = Next(Arc::clone(&tasks));
                let refused = !tasks.run(async move { drop(next) });
                let _ = done.send(refused);
            });
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
