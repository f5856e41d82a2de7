//! The one clock that decides about deadlines. Nothing else in the project reads the time.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

/// A monotonic clock that counts on while the machine sleeps, and that tests can move.
///
/// A deadline on a clock that stops in suspend would still look good when a laptop or a frozen virtual machine wakes
/// up an hour later, with the lease long gone. Cloning gives another handle on the same clock.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    base: Base,
    shifted: AtomicU64,
    moved: Notify,
}

enum Base {
    Boot,
    Tokio(tokio::time::Instant),
}

/// A moment on a [`Clock`], with nanosecond resolution. Comparable only with moments of the same clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// Later than every other: the deadline of a grant without a lease.
    pub const NEVER: Self = Self(u64::MAX);

    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `duration` after this one. Saturates at [`NEVER`](Self::NEVER).
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        if self == Self::NEVER { Duration::MAX } else { Duration::from_nanos(self.0.saturating_sub(earlier.0)) }
    }
}

/// When a lease of `ttl`, asked for at `sent_at`, must be regarded as over by its holder.
///
/// Earlier than in the store by a margin for clocks that tick at different rates: 1 % of the lease and 2 ms, as in the
/// description of Redlock.
#[must_use]
pub fn lease_deadline(sent_at: Moment, ttl: Duration) -> Moment {
    sent_at.plus(ttl.saturating_sub(drift(ttl)))
}

/// When somebody else's lease, of which the store said at `heard_at` that it has `left`, is over in any case: later by the
/// margin of [`lease_deadline`].
#[must_use]
pub fn lease_over(heard_at: Moment, left: Duration) -> Moment {
    heard_at.plus(left.saturating_add(drift(left)))
}

fn drift(lease: Duration) -> Duration {
    lease / 100 + Duration::from_millis(2)
}

impl Clock {
    /// The machine's clock: `CLOCK_BOOTTIME` where the system has it, its monotonic clock elsewhere.
    pub fn system() -> Self {
        Self::on(Base::Boot)
    }

    /// A clock that follows tokio's, for tests under `start_paused`.
    pub fn tokio() -> Self {
        Self::on(Base::Tokio(tokio::time::Instant::now()))
    }

    fn on(base: Base) -> Self {
        Self(Arc::new(Inner { base, shifted: AtomicU64::new(0), moved: Notify::new() }))
    }

    /// The current moment.
    pub fn now(&self) -> Moment {
        let base = match self.0.base {
            Base::Boot => since_boot(),
            // One hour, so that a moment before the start can be told from the start.
            Base::Tokio(origin) => Moment(0).plus(origin.elapsed() + Duration::from_secs(3600)),
        };
        Moment(base.0.saturating_add(self.0.shifted.load(Ordering::Acquire)))
    }

    /// Moves this clock ahead, as a suspended machine finds it on waking up. For tests.
    pub fn advance(&self, by: Duration) {
        self.0.shifted.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::AcqRel);
        self.0.moved.notify_waiters();
    }

    /// The time since 1970 by the wall clock, for epochs ([`FencingToken::epoch_at`](crate::FencingToken::epoch_at)) and
    /// nothing else. [`advance`](Self::advance) does not move it.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn since_1970(&self) -> Duration {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }

    /// [`since_1970`](Self::since_1970) in milliseconds.
    pub fn unix_millis(&self) -> u64 {
        u64::try_from(self.since_1970().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sleeps until `moment` has come on this clock.
    ///
    /// Runtime timers stop while the machine sleeps, so it sleeps in slices and reads this clock after each.
    pub(crate) async fn reach(&self, moment: Moment) {
        const SLICE: Duration = Duration::from_secs(1);
        if moment == Moment::NEVER {
            return std::future::pending().await;
        }
        loop {
            let moved = self.0.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let left = moment.since(self.now());
            if left.is_zero() {
                return;
            }
            if tokio::runtime::Handle::try_current().is_err() {
                // Nothing here can wake it at a time. Moved into a runtime, it has to look again.
                poll_fn(|context| match tokio::runtime::Handle::try_current() {
                    Ok(_) => Poll::Ready(()),
                    Err(_) => moved.as_mut().poll(context),
                })
                .await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(SLICE)) => {}
                () = moved => {}
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> Moment {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let nanos = |part| u64::try_from(part).unwrap_or(0);
    Moment(nanos(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(nanos(now.tv_nsec)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[allow(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
fn since_boot() -> Moment {
    use std::sync::LazyLock;
    static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    Moment(0).plus(START.elapsed() + Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_by_itself_and_by_hand() {
        let clock = Clock::system();
        let start = clock.now();
        assert!(start > Moment(0));
        clock.advance(Duration::from_secs(3600));
        assert!(clock.now().since(start) >= Duration::from_secs(3600));
        assert_eq!(start.since(clock.now()), Duration::ZERO);
    }

    #[test]
    fn a_sleep_that_began_outside_of_a_runtime_ends_within_one() {
        let clock = Clock::system();
        let moment = clock.now().plus(Duration::from_millis(100));
        let mut sleep = Box::pin({
            let clock = clock.clone();
            async move { clock.reach(moment).await }
        });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), sleep).await }).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeper_notices_that_the_clock_was_moved() {
        let clock = Clock::tokio();
        let noon = clock.now().plus(Duration::from_secs(1_000_000));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.reach(noon).await }
        });
        tokio::task::yield_now().await;
        let before = tokio::time::Instant::now();
        clock.advance(Duration::from_secs(1_000_000));
        sleeper.await.unwrap();
        assert!(before.elapsed() <= Duration::from_secs(1));
    }
}
