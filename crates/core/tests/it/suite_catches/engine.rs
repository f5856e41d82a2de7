//! Lockers that go about it wrongly on a sound store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::conformance::TestClient;
use leasehold_core::{
    Busy, Capabilities, Clock, DetachedLock, LockGuard, LockKey, LockOptions, Locker, LockerExt, OrBusy, Result, Wait,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::Double;

catches! {
    LeaksOnCancel Instead(leaks_on_cancel) => c07_a_cancelled_attempt_gives_back_what_it_wins,
    OvershootsTheLimit Instead(overshoots_the_limit) => c11_the_wait_limit_is_kept,
    NeverBacksOff Instead(never_backs_off) => c12_attempts_back_off_during_an_outage,
    TakesFailureForHeld Instead(takes_failure_for_held) => c10_a_failing_store_is_an_error,
    KeepsTheLeaseToItself Instead(tells_no_lease) => c10_busy_tells_what_is_left_of_the_lease,
}

pub(crate) type Acquiring = futures::future::BoxFuture<'static, Result<Option<LockGuard>>>;
pub(crate) type Acquire = fn(Arc<dyn Locker>, LockKey, LockOptions) -> Acquiring;

/// Acquires like this instead.
pub(crate) struct Instead(pub(crate) Acquire);

impl Double for Instead {
    fn client(&self, client: TestClient) -> TestClient {
        TestClient { locker: Arc::new(Wrong { inner: client.locker, acquire: self.0 }), ..client }
    }
}

struct Wrong {
    inner: Arc<dyn Locker>,
    acquire: Acquire,
}

impl fmt::Debug for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wrong").field(&self.inner).finish()
    }
}

#[async_trait]
impl Locker for Wrong {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>> {
        let granted = (self.acquire)(Arc::clone(&self.inner), key.clone(), options.clone()).await?;
        Ok(granted.ok_or_else(Busy::default))
    }

    async fn attach(&self, grant: &DetachedLock, options: &LockOptions) -> Result<Option<LockGuard>> {
        self.inner.attach(grant, options).await
    }
}

/// Forgets to give back what a cancelled acquire won.
pub(crate) fn leaks_on_cancel(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move {
        let (tell, told) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let granted = inner.acquire(&key, &options).await;
            if let Err(unheard) = tell.send(granted) {
                std::mem::forget(unheard);
            }
        });
        told.await.expect("the task does not panic")
    })
}

fn overshoots_the_limit(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move {
        let clock = Clock::system();
        let began = clock.now();
        let answer = inner.acquire(&key, &options).await;
        if matches!(answer, Ok(None)) && clock.now().since(began) >= Duration::from_millis(100) {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        answer
    })
}

fn never_backs_off(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move {
        let clock = Clock::system();
        let over = clock.now().plus(Duration::from_secs(1));
        loop {
            match inner.acquire(&key, &options.clone().wait(Wait::Never)).await {
                Err(error) if error.is_transient() && clock.now() < over => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    })
}

pub(crate) fn takes_failure_for_held(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move { Ok(inner.acquire(&key, &options).await.unwrap_or_default()) })
}

/// By the form of acquiring that has no room for it.
fn tells_no_lease(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move { inner.acquire(&key, &options).await })
}
