use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// A future that is finished whatever happens to whoever awaits it.
///
/// Dropping a driver's future never un-sends a command (measured with fred and `mysql_async`), so what was begun must
/// be seen through: polled in place as long as the caller is there, and in a task of its own from the moment in which
/// the caller is not. If the runtime is gone too, the future is dropped and the lease runs out.
pub(super) struct Detached<T: Send + 'static> {
    work: Option<BoxFuture<'static, T>>,
    runtime: Handle,
}

impl<T: Send + 'static> Detached<T> {
    pub(super) fn new(runtime: Handle, work: BoxFuture<'static, T>) -> Self {
        Self { work: Some(work), runtime }
    }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let output = work.as_mut().poll(context);
        if output.is_ready() {
            self.work = None;
        }
        output
    }
}

impl<T: Send + 'static> Drop for Detached<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(async move { drop(work.await) });
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Detached<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached").field("finished", &self.work.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn slow(done: &Arc<AtomicBool>) -> BoxFuture<'static, ()> {
        let done = Arc::clone(done);
        Box::pin(async move {
            tokio::task::yield_now().await;
            done.store(true, Ordering::Release);
        })
    }

    #[tokio::test]
    async fn it_is_finished_when_the_caller_leaves_before_or_after_the_first_poll() {
        for polls in [0, 1] {
            let done = Arc::new(AtomicBool::new(false));
            let mut work = Box::pin(Detached::new(Handle::current(), slow(&done)));
            for _ in 0..polls {
                assert!(futures::poll!(&mut work).is_pending());
            }
            drop(work);
            while !done.load(Ordering::Acquire) {
                tokio::task::yield_now().await;
            }
        }
    }

    #[test]
    fn dropping_it_after_the_runtime_ended_is_harmless() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let work = Detached::new(runtime.handle().clone(), slow(&done));
        drop(runtime);
        drop(work);
        assert!(!done.load(Ordering::Acquire));
    }
}
