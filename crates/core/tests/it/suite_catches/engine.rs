//! Lockers that go about it wrongly on a sound store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use leasehold_core::conformance::TestClient;
use leasehold_core::{
    Busy, Capabilities, Clock, DetachedLock, LockGuard, LockKey, LockOptions, Locker, LockerExt, OrBusy, Result, Wait,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::Double;

catches! {
    LeaksOnCancel instead(leaks_on_cancel) => c07_a_cancelled_attempt_gives_back_what_it_wins,
    OvershootsTheLimit instead(overshoots_the_limit) => c11_the_wait_limit_is_kept,
    NeverBacksOff instead(never_backs_off) => c12_attempts_back_off_during_an_outage,
    TakesFailureForHeld instead(takes_failure_for_held) => c10_a_failing_store_is_an_error,
    KeepsTheLeaseToItself instead(tells_no_lease) => c10_busy_tells_what_is_left_of_the_lease,
}

pub(crate) type Granted = Result<Option<LockGuard>>;
type Acquire = Arc<dyn Fn(Arc<dyn Locker>, LockKey, LockOptions) -> BoxFuture<'static, Granted> + Send + Sync>;

/// Acquires like this instead.
pub(crate) fn instead<A: Future<Output = Granted> + Send + 'static>(
    acquire: fn(Arc<dyn Locker>, LockKey, LockOptions) -> A,
) -> Double {
    let acquire: Acquire = Arc::new(move |inner, key, options| Box::pin(acquire(inner, key, options)));
    let client = move |client: TestClient| {
        let wrong = Wrong { inner: client.locker, acquire: Arc::clone(&acquire) };
        TestClient { locker: Arc::new(wrong), ..client }
    };
    Double { client: Box::new(client), ..Double::sound() }
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
pub(crate) async fn leaks_on_cancel(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    let (tell, told) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        if let Err(unheard) = tell.send(inner.acquire(&key, &options).await) {
            std::mem::forget(unheard);
        }
    });
    told.await.expect("the task does not panic")
}

async fn overshoots_the_limit(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    let clock = Clock::system();
    let began = clock.now();
    let answer = inner.acquire(&key, &options).await;
    if matches!(answer, Ok(None)) && clock.now().since(began) >= Duration::from_millis(100) {
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    answer
}

async fn never_backs_off(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    let clock = Clock::system();
    let over = clock.now().plus(Duration::from_secs(1));
    loop {
        match inner.acquire(&key, &options.clone().wait(Wait::Never)).await {
            Err(error) if error.is_transient() && clock.now() < over => tokio::task::yield_now().await,
            answer => return answer,
        }
    }
}

pub(crate) async fn takes_failure_for_held(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    Ok(inner.acquire(&key, &options).await.unwrap_or_default())
}

/// By the form of acquiring that has no room for it.
async fn tells_no_lease(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    inner.acquire(&key, &options).await
}
