use crate::engine::{BackOff, SystemRandom};
use crate::{Clock, Result, Wait};

/// Connects to a store, and tries again as long as the store cannot be reached and `wait` is not over.
///
/// The `connect` of a backend asks the server once: a server that is about to start is an error. This gives it the wait
/// that acquiring has anyway, with the same growing and jittered pauses (20 ms to 1 s). With [`Wait::Never`] there is one
/// attempt. An attempt that has begun is seen through, so the answer may come later than `wait` by one attempt.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// use std::time::Duration;
/// use leasehold_core::{Memory, Wait, connect_within};
///
/// # async fn connect(_url: &str) -> leasehold_core::Result<Memory> { Ok(Memory::new()) }
/// // Such as `|| RedisSingle::connect("redis://db1")`.
/// let locks = connect_within(Wait::UpTo(Duration::from_secs(20)), || connect("redis://db1")).await?;
/// # drop(locks);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The error of the last attempt when the wait is over. Any error that is not
/// [transient](crate::Error::is_transient), such as a wrong password, at once.
///
/// # Panics
/// When it has to wait outside of a tokio runtime with timers.
///
/// # Cancel safety
/// Dropping the future drops the attempt under way.
pub async fn connect_within<T, F>(wait: Wait, mut connect: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let clock = Clock::tokio();
    let limit = wait.limit(clock.now());
    let (mut pauses, mut random) = (BackOff::after_failure(), SystemRandom::new());
    loop {
        let error = match connect().await {
            Err(error) if error.is_transient() && clock.now() < limit => error,
            done => return done,
        };
        tracing::warn!(%error, "connecting failed; it is tried again until the wait is over");
        let pause = pauses.next(&mut random, None);
        tokio::time::sleep(pause.min(limit.since(clock.now()))).await;
    }
}
