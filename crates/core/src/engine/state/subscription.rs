//! Whether a key is subscribed to.

use std::time::Duration;

use super::backoff::BackOff;
use super::event::{Member, RequestId};
use crate::clock::Moment;

#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) state: Subscribed,
    /// No new subscription is begun before this moment.
    pub(super) not_before: Moment,
    pub(super) pauses: BackOff,
    /// How many times it said that the key is free since the key was granted here.
    pub(super) vain: u32,
    /// After many vain ones, no claim is sent for another one before this moment.
    pub(super) heeds_at: Moment,
}

/// So many vain notifications follow each other before they are doubted. Beside busy processes most of them are vain.
const VAIN: u32 = 16;

/// How often a notification that is doubted is heeded.
const DOUBTED: Duration = Duration::from_millis(5);

impl Subscription {
    pub(super) fn new() -> Self {
        Self {
            state: Subscribed::No,
            not_before: Moment::default(),
            pauses: BackOff::between_subscriptions(),
            vain: 0,
            heeds_at: Moment::default(),
        }
    }

    /// The key is said to be free. When that is heeded: a subscription that says so all the time must not become as many claims.
    pub(super) fn heard(&mut self, now: Moment) -> Moment {
        self.vain = self.vain.saturating_add(1);
        if self.vain > VAIN && self.heeds_at <= now {
            self.heeds_at = now.plus(DOUBTED);
            return now;
        }
        self.heeds(now)
    }

    /// When a notification that came since is heeded.
    pub(super) fn heeds(&self, now: Moment) -> Moment {
        if self.vain > VAIN { self.heeds_at.max(now) } else { now }
    }

    /// Whether there is no subscription, and was none of late.
    pub(super) fn is_as_new(&self) -> bool {
        self.state == Subscribed::No && self.not_before == Moment::default()
    }

    pub(super) fn is_request(&self, request: RequestId) -> bool {
        matches!(self.state, Subscribed::Asked(of, _) | Subscribed::Yes(of, _) if of == request)
    }

    pub(super) fn is_by(&self, member: Member) -> bool {
        matches!(self.state, Subscribed::Asked(_, by) | Subscribed::Yes(_, by) if by == member)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subscribed {
    No,
    Asked(RequestId, Member),
    Yes(RequestId, Member),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_doubted_behind_so_many_in_vain_and_not_before() {
        let (mut subscription, now) = (Subscription::new(), Moment::default());
        for _ in 0..=VAIN {
            assert_eq!(subscription.heard(now), now);
        }
        assert_eq!(subscription.heard(now), now.plus(DOUBTED));
        subscription.vain = VAIN;
        assert_eq!(subscription.heeds(now), now, "the one that is doubted comes behind so many");
    }
}
