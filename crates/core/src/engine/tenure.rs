use std::future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use super::observe::Observer;
use super::sessions::Level;
use crate::clock::Moment;
use crate::{Clock, FencingToken, GrantRef, LockOptions, LossReason};

/// One stretch in which the store has one owner id of ours as the holder, and all that is known of it here.
#[derive(Debug)]
pub(crate) struct Tenure {
    pub(crate) grant: GrantRef,
    pub(crate) ttl: Duration,
    first_lease: Duration,
    pub(super) in_doubt: bool,
    observer: Arc<Observer>,
    clock: Clock,
    pub(super) since: Moment,
    label: Option<String>,
    reason: Option<String>,
    cap: AtomicU64,
    /// Whether a guard that stands on it asked for that.
    renews: AtomicBool,
    deadline: AtomicU64,
    next_renewal: AtomicU64,
    /// Where the keeper has noted it down.
    pub(super) noted_at: AtomicU64,
    /// A renewal was sent, and no answer to it has been seen.
    unanswered: AtomicBool,
    /// How many guards stand on it: more than one in a re-entrant session.
    grips: AtomicUsize,
    end: OnceLock<End>,
    ended: Notify,
}

/// What one guard has of a tenure: a grant of its own, which it can give up alone.
#[derive(Debug)]
pub(crate) struct Grip {
    pub(crate) tenure: Arc<Tenure>,
    pub(crate) grant: GrantRef,
    /// How many had the tenure before, by hand-over, or which rider of a shared one it is.
    pub(crate) hand_overs: u16,
    over: AtomicBool,
}

/// The lease that a grant begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstLease {
    pub(super) length: Duration,
    /// A moment before which the store cannot have granted it, so that the deadline errs early.
    pub(super) sent_at: Moment,
    /// False for a kernel lock, which has no deadline.
    pub(super) ends: bool,
    /// Nobody but a message says so, and somebody may have forged it.
    pub(super) told: bool,
    /// A claim of its owner got no answer, and may be carried out late, also behind the release.
    pub(super) in_doubt: bool,
}

impl FirstLease {
    /// When it has to be regarded as over here.
    pub(super) fn deadline(&self) -> Moment {
        if self.ends { deadline(self.sent_at, self.length) } else { Moment::NEVER }
    }

    /// Whether a renewal soon makes it what was asked for.
    pub(super) fn is_provisional(&self, ttl: Duration) -> bool {
        self.told || self.length < ttl
    }
}

/// How long a grant out of the store's queue stays unconfirmed and with its short first lease: who is done by then has
/// cost no renewal.
const SOON: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
enum End {
    LetGo,
    Lost(LossReason),
}

impl Tenure {
    pub(super) fn new(
        grant: GrantRef,
        options: &LockOptions,
        observer: &Arc<Observer>,
        clock: &Clock,
        lease: FirstLease,
    ) -> Self {
        let since = clock.now();
        let third = renewal_after(lease.sent_at, lease.length.min(options.ttl));
        let next_renewal = if lease.is_provisional(options.ttl) { since.plus(SOON).min(third) } else { third };
        Self {
            grant,
            ttl: options.ttl,
            first_lease: lease.length,
            in_doubt: lease.in_doubt,
            observer: Arc::clone(observer),
            clock: clock.clone(),
            since,
            label: options.label.clone(),
            reason: options.reason.clone(),
            cap: AtomicU64::new(cap_of(options, since).as_nanos()),
            renews: AtomicBool::new(options.renew),
            deadline: AtomicU64::new(lease.deadline().as_nanos()),
            next_renewal: AtomicU64::new(next_renewal.as_nanos()),
            noted_at: AtomicU64::new(0),
            unanswered: AtomicBool::new(false),
            grips: AtomicUsize::new(0),
            end: OnceLock::new(),
            ended: Notify::new(),
        }
    }

    /// Why it is lost; `None` while it is held, and after it was let go.
    ///
    /// Compares the clock with the deadline here, at the point of use: after a pause of the whole process, a flag
    /// that some task should have set still says "held" on the first instruction (measured: 1 resume in 5).
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.loss_at(self.clock.now())
    }

    fn loss_at(&self, now: Moment) -> Option<LossReason> {
        if self.end.get().is_none() && now >= self.limit() {
            self.lose(match () {
                () if self.cap() <= self.deadline() => LossReason::MaxHold,
                () if self.unanswered.load(Ordering::Acquire) => LossReason::Unreachable,
                () => LossReason::Expired,
            });
        }
        match self.end.get() {
            Some(End::Lost(reason)) => Some(*reason),
            Some(End::LetGo) | None => None,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held_at(self.clock.now())
    }

    pub(super) fn is_held_at(&self, now: Moment) -> bool {
        self.loss_at(now).is_none() && self.end.get().is_none()
    }

    /// Whether it can be handed over to a request like this: it must be one that the store would not tell from it.
    pub(super) fn suits(&self, options: &LockOptions) -> bool {
        options.ttl == self.ttl
            && options.renew == self.renews.load(Ordering::Acquire)
            && options.max_hold.is_none()
            && self.cap() == Moment::NEVER
            && options.label == self.label
            && options.reason == self.reason
    }

    /// Whether it certainly stays ours for a quarter of its lease, also if the store falls silent now.
    pub(super) fn is_settled(&self, now: Moment) -> bool {
        let spare = now.plus(self.first_lease.min(self.ttl) / 4);
        self.is_held_at(now) && spare < self.limit() && !self.unanswered.load(Ordering::Acquire)
    }

    /// Another guard on the same tenure, by a grant of its own that left at `sent_at` and prolonged the lease.
    pub(super) fn reentered(&self, ttl: Duration, sent_at: Moment) {
        self.prolong(sent_at, ttl);
        self.next_renewal.fetch_min(renewal_after(sent_at, self.ttl).as_nanos(), Ordering::AcqRel);
    }

    /// From now on it does what these levels ask for: what one that is gone had asked for ended with it.
    pub(super) fn serve(&self, levels: &[Level]) {
        if let Some(tightest) = levels.iter().map(|level| level.cap).min() {
            self.cap.store(tightest.as_nanos(), Ordering::Release);
            self.renews.store(levels.iter().any(|level| level.renew), Ordering::Release);
        }
    }

    pub(super) fn lose(&self, reason: LossReason) {
        if self.end.set(End::Lost(reason)).is_ok() {
            self.observer.lost(&self.grant.key, reason, self.held_for());
            self.ended.notify_waiters();
        }
    }

    /// Ends it on our own account, unless it had ended already.
    pub(super) fn let_go(&self) {
        if self.end.set(End::LetGo).is_ok() {
            self.observer.let_go(self.held_for());
            self.ended.notify_waiters();
        }
    }

    /// The store prolonged it, on a request that left at `sent_at`.
    pub(super) fn renewed(&self, sent_at: Moment) {
        self.unanswered.store(false, Ordering::Release);
        self.prolong(sent_at, self.ttl);
        self.next_renewal.store(renewal_after(sent_at, self.ttl).as_nanos(), Ordering::Release);
    }

    /// A renewal leaves; until its answer is seen, nobody knows.
    pub(super) fn asked(&self) {
        self.unanswered.store(true, Ordering::Release);
    }

    /// The store gave no answer to a renewal; the deadline stays where it was.
    pub(super) fn retry(&self, retry_at: Moment) {
        self.next_renewal.store(retry_at.as_nanos(), Ordering::Release);
    }

    /// When it ends unless it is renewed.
    pub(super) fn limit(&self) -> Moment {
        self.deadline().min(self.cap())
    }

    pub(super) fn next_renewal(&self) -> Moment {
        if self.renews.load(Ordering::Acquire) {
            Moment::from_nanos(self.next_renewal.load(Ordering::Acquire))
        } else {
            Moment::NEVER
        }
    }

    /// When it needs attention next.
    pub(super) fn next_event(&self) -> Moment {
        self.next_renewal().min(self.limit())
    }

    fn prolong(&self, sent_at: Moment, ttl: Duration) {
        if self.deadline() != Moment::NEVER {
            self.deadline.fetch_max(deadline(sent_at, ttl).as_nanos(), Ordering::AcqRel);
        }
    }

    fn cap(&self) -> Moment {
        Moment::from_nanos(self.cap.load(Ordering::Acquire))
    }

    fn deadline(&self) -> Moment {
        Moment::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    fn held_for(&self) -> Duration {
        self.clock.now().since(self.since)
    }
}

impl Grip {
    pub(super) fn new(tenure: Arc<Tenure>, grant: GrantRef, hand_overs: u16) -> Self {
        tenure.grips.fetch_add(1, Ordering::AcqRel);
        Self { tenure, grant, hand_overs, over: AtomicBool::new(false) }
    }

    /// What the next one in line gets in the place of this one, which counts as one as long as not both are used.
    pub(super) fn next(&self) -> Self {
        let (tenure, grant) = (Arc::clone(&self.tenure), self.grant.clone());
        Self { tenure, grant, hand_overs: self.hand_overs + 1, over: AtomicBool::new(false) }
    }

    /// Its place on the tenure is another's.
    pub(super) fn passed_on(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.tenure.ended.notify_waiters();
        }
    }

    /// What another gets beside this one, with this number in its token.
    pub(super) fn beside(&self, number: u16) -> Self {
        Self::new(Arc::clone(&self.tenure), self.grant.clone(), number)
    }

    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        self.grant.tenure.map(|tenure| FencingToken::new(tenure, self.hand_overs))
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        if self.is_over() { None } else { self.tenure.loss() }
    }

    pub(crate) fn is_held(&self) -> bool {
        !self.is_over() && self.tenure.is_held()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn remaining(&self) -> Duration {
        if self.is_held() { self.tenure.limit().since(self.tenure.clock.now()) } else { Duration::ZERO }
    }

    /// Resolves when it is lost; never, once it was given up.
    pub(crate) fn lost(self: &Arc<Self>) -> impl Future<Output = LossReason> + Send + 'static {
        let grip = Arc::clone(self);
        async move {
            let tenure = &grip.tenure;
            loop {
                let mut ended = pin!(tenure.ended.notified());
                ended.as_mut().enable();
                if let Some(reason) = grip.loss() {
                    return reason;
                }
                // The clock is not asked again: a deadline that passes meanwhile is a loss.
                if grip.is_over() || tenure.end.get().is_some_and(|end| matches!(end, End::LetGo)) {
                    break;
                }
                tokio::select! {
                    () = ended => {}
                    () = tenure.clock.reach(tenure.limit()) => {}
                }
            }
            drop(grip);
            future::pending().await
        }
    }

    /// Gives it up. True if it was the last on its tenure.
    pub(super) fn give_up(&self) -> bool {
        let first = !self.over.swap(true, Ordering::AcqRel);
        if first {
            self.tenure.ended.notify_waiters();
        }
        first && self.tenure.grips.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

pub(super) fn cap_of(options: &LockOptions, since: Moment) -> Moment {
    options.max_hold.map_or(Moment::NEVER, |cap| since.plus(cap))
}

/// The lease less a margin for clocks that tick at different rates: 1 % and 2 ms, as in Redlock's description.
fn deadline(sent_at: Moment, ttl: Duration) -> Moment {
    sent_at.plus(ttl.saturating_sub(ttl / 100 + Duration::from_millis(2)))
}

/// A third of the lease after it was granted, rounded up so that leases of about the same age share a batch.
fn renewal_after(sent_at: Moment, ttl: Duration) -> Moment {
    const GRID_NANOS: u64 = 16_000_000;
    let third = sent_at.plus(ttl / 3);
    if ttl < Duration::from_secs(1) { third } else { Moment::from_nanos(third.as_nanos().next_multiple_of(GRID_NANOS)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockKey, Mode, OwnerId};

    fn tenure(options: &LockOptions, clock: &Clock) -> Arc<Tenure> {
        let grant = GrantRef {
            key: LockKey::new("k").unwrap(),
            owner: OwnerId::random(),
            mode: Mode::Exclusive,
            tenure: Some(1),
        };
        let lease = FirstLease { length: options.ttl, sent_at: clock.now(), ends: true, told: false, in_doubt: false };
        Arc::new(Tenure::new(grant, options, &Arc::new(Observer::new("test")), clock, lease))
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_the_lease_less_the_margin_from_before_the_send() {
        let clock = Clock::tokio();
        let tenure = tenure(&LockOptions::new().ttl(Duration::from_secs(10)), &clock);
        clock.advance(Duration::from_millis(9897));
        assert!(tenure.is_held());
        clock.advance(Duration::from_millis(1));
        assert!(!tenure.is_held());
        assert_eq!(tenure.loss(), Some(LossReason::Expired));
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_tells_silence_and_the_cap_from_mere_expiry() {
        let clock = Clock::tokio();
        let silent = tenure(&LockOptions::new(), &clock);
        silent.asked();
        let capped = tenure(&LockOptions::new().max_hold(Duration::from_secs(1)), &clock);
        clock.advance(Duration::from_secs(31));
        assert_eq!(silent.loss(), Some(LossReason::Unreachable));
        assert_eq!(capped.loss(), Some(LossReason::MaxHold));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_never_moves_the_deadline_back() {
        let clock = Clock::tokio();
        let tenure = tenure(&LockOptions::new(), &clock);
        let early = clock.now();
        clock.advance(Duration::from_secs(5));
        tenure.renewed(clock.now());
        let far = tenure.limit();
        tenure.renewed(early);
        assert_eq!(tenure.limit(), far);
    }

    #[tokio::test(start_paused = true)]
    async fn letting_go_is_not_a_loss() {
        let clock = Clock::tokio();
        let tenure = tenure(&LockOptions::new(), &clock);
        let grip = Arc::new(Grip::new(Arc::clone(&tenure), tenure.grant.clone(), 0));
        let lost = grip.lost();
        assert!(grip.give_up());
        tenure.let_go();
        assert!(!grip.is_held() && !tenure.is_held());
        assert_eq!(tenure.loss(), None);
        assert_eq!(grip.remaining(), Duration::ZERO);
        assert!(tokio::time::timeout(Duration::from_secs(3600), lost).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_level_given_up_hears_nothing_of_a_later_loss() {
        let clock = Clock::tokio();
        let tenure = tenure(&LockOptions::new(), &clock);
        let [outer, inner] = [(); 2].map(|()| Arc::new(Grip::new(Arc::clone(&tenure), tenure.grant.clone(), 0)));
        let (outer_lost, inner_lost) = (outer.lost(), inner.lost());
        assert!(!inner.give_up());
        assert!(outer.is_held() && !inner.is_held());
        clock.advance(Duration::from_secs(31));
        assert_eq!(outer_lost.await, LossReason::Expired);
        assert!(tokio::time::timeout(Duration::from_secs(3600), inner_lost).await.is_err());
    }
}
