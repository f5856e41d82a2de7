//! One guard, from the call of acquire to the release, with all that the history says about it.

use std::time::Duration;

use leasehold_chaos::history::{Event, Mode, now};
use leasehold_core::{
    DetachedLock, Error, Exclusive, Guard, GuardMode, LockKey, LockOptions, Locker, LockerExt, Locks, LossReason,
    ReadGuard, ReleaseOutcome, Result as Locked, RwLockerExt, Shared, Wait,
};
use rand::Rng;
use tokio::time::timeout;

use super::recorder::{CANCELLED, Op, name_of};

/// The longest pause between two looks at a guard that is held for a moment, and at one that is held for longer.
const LOOK: Duration = Duration::from_millis(12);
const LONG_LOOK: Duration = Duration::from_millis(30);

/// A look that comes so much later was kept from coming: the process was stopped, or starved.
const KEPT: u64 = 60_000_000;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) key: &'a str,
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    /// The caller goes away after so long.
    pub(crate) cancelled_after: Option<Duration>,
    pub(crate) session: Option<u32>,
}

/// What an acquire came to: a guard, or the word in the history for why there is none.
pub(crate) type Answer<T> = Result<T, String>;

/// A guard and its op.
#[derive(Debug)]
pub(crate) struct Held<M: GuardMode = Exclusive> {
    pub(crate) guard: Guard<M>,
    pub(crate) op: Op,
    /// When the guard was asked last, and how long it said that it would last.
    looked: (u64, Duration),
}

impl Wish<'_> {
    pub(crate) fn options(&self) -> LockOptions {
        let wait = if self.wait.is_zero() { Wait::Never } else { Wait::UpTo(self.wait) };
        LockOptions::new().ttl(self.ttl).wait(wait)
    }

    fn key(&self) -> LockKey {
        LockKey::new(self.key).expect("a valid key")
    }

    fn called(&self, op: &Op, mode: Mode) {
        // An acquire that goes away has no limit that it could exceed.
        let wait = self.cancelled_after.is_none().then(|| millis(self.wait));
        op.called(self.key, mode, (wait, self.session, false));
    }

    /// Takes the key exclusively.
    pub(crate) async fn write(&self, locks: &Locks, op: Op) -> Answer<Held> {
        self.called(&op, Mode::Exclusive);
        let (key, options) = (self.key(), self.options());
        self.settle(op, locks.acquire(&key, &options)).await
    }

    /// Takes the key beside other readers.
    pub(crate) async fn read(&self, locks: &Locks, op: Op) -> Answer<Held<Shared>> {
        let readers = locks.rw().ok_or("there are no readers")?;
        self.called(&op, Mode::Shared);
        let (key, options) = (self.key(), self.options());
        self.settle(op, readers.acquire_read(&key, &options)).await
    }

    async fn settle<M: GuardMode>(
        &self,
        op: Op,
        call: impl Future<Output = Locked<Option<Guard<M>>>>,
    ) -> Answer<Held<M>> {
        let outcome = match self.cancelled_after {
            Some(limit) => timeout(limit, call).await.ok(),
            None => Some(call.await),
        };
        let busy = if self.wait.is_zero() { "busy" } else { "timed_out" };
        let Some(outcome) = outcome else { return refused(&op, CANCELLED.to_owned()) };
        settled(op, outcome, busy, self.ttl)
    }
}

/// Writes the answer down.
fn settled<M: GuardMode>(op: Op, outcome: Locked<Option<Guard<M>>>, busy: &str, ttl: Duration) -> Answer<Held<M>> {
    match outcome {
        Ok(Some(guard)) => {
            let token = guard.fencing_token().map_or(0, u64::from);
            op.log(Event::Granted { token, lease_ms: millis(ttl) });
            let looked = (now(), guard.remaining());
            Ok(Held { guard, op, looked })
        }
        Ok(None) => refused(&op, busy.to_owned()),
        Err(error) => refused(&op, name_of(error.kind())),
    }
}

fn refused<T>(op: &Op, error: String) -> Answer<T> {
    op.log(Event::Refused { error: error.clone() });
    Err(error)
}

impl<M: GuardMode> Held<M> {
    pub(crate) fn token(&self) -> Option<u64> {
        self.guard.fencing_token().map(u64::from)
    }

    /// Whether the guard says that it is held. The moment is read before.
    pub(crate) fn look(&mut self) -> bool {
        let at = now();
        self.looked = (at, self.guard.remaining());
        let held = self.guard.is_held();
        if held {
            self.op.log_at(at, Event::Held {});
        }
        held
    }

    /// Works for so long, and looks at the guard all the time. False: it was lost.
    pub(crate) async fn work(&mut self, duration: Duration) -> bool {
        let end = now().saturating_add(nanos(duration));
        let longest_pause = if duration > LONG_LOOK { LONG_LOOK } else { LOOK };
        loop {
            let looked = self.looked;
            if !self.look() {
                let reason = self.guard.lost().await;
                self.lost(reason, looked);
                return false;
            }
            let left = Duration::from_nanos(end.saturating_sub(now()));
            if left.is_zero() {
                return true;
            }
            let pause = rand::rng().random_range(longest_pause / 3..longest_pause).min(left);
            if let Ok(reason) = timeout(pause, self.guard.lost()).await {
                self.lost(reason, self.looked);
                return false;
            }
        }
    }

    fn lost(&self, reason: LossReason, (looked_at, lasts): (u64, Duration)) {
        let at = now();
        let overdue = at.checked_sub(looked_at.saturating_add(nanos(lasts)));
        let resumed = at.saturating_sub(looked_at) > KEPT;
        let deadline_overdue_ms = overdue.map(|nanos| nanos / 1_000_000);
        self.op.log_at(at, Event::Lost { reason: reason.as_str().to_owned(), deadline_overdue_ms, resumed });
    }

    /// What comes before a release, or before the guard is dropped.
    pub(crate) fn give_up(&mut self) {
        self.look();
        self.op.log(Event::ReleaseCalled {});
    }

    /// Releases the lock, or drops the guard.
    pub(crate) async fn give_back(mut self, by_drop: bool) {
        self.give_up();
        if !by_drop {
            log_release(&self.op, self.guard.release().await);
        }
    }
}

fn log_release(op: &Op, released: Locked<ReleaseOutcome>) {
    op.log(match released {
        Ok(outcome) => Event::Released { ok: outcome == ReleaseOutcome::Released },
        Err(error) => Event::ReleaseFailed { error: name_of(error.kind()) },
    });
}

/// A writer goes on as a reader: another op.
pub(crate) async fn downgrade(mut writer: Held, wish: &Wish<'_>, reader: Op) -> Answer<Held<Shared>> {
    writer.give_up();
    wish.called(&reader, Mode::Shared);
    let outcome: Locked<ReadGuard> = writer.guard.downgrade(&wish.options()).await;
    let released = outcome.as_ref().map(|_| ReleaseOutcome::Released).map_err(Error::retell);
    let reader = settled(reader, outcome.map(Some), "busy", wish.ttl);
    log_release(&writer.op, released);
    reader
}

/// Attaches a lock that another process detached.
pub(crate) async fn attach(text: &str, locks: &Locks, op: Op, ttl: Duration) -> Answer<Held> {
    let Ok(detached) = text.parse::<DetachedLock>() else { return refused(&op, "invalid".to_owned()) };
    op.called(detached.key().as_str(), Mode::Exclusive, (None, None, true));
    settled(op, locks.attach(&detached, &LockOptions::new().ttl(ttl)).await, "busy", ttl)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
