//! Whether a key is subscribed to.

use super::backoff::BackOff;
use super::event::{Member, RequestId};
use crate::clock::Moment;

#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) state: Subscribed,
    /// No new subscription is begun before this moment.
    pub(super) not_before: Moment,
    pub(super) pauses: BackOff,
}

impl Subscription {
    pub(super) fn new() -> Self {
        Self { state: Subscribed::No, not_before: Moment::default(), pauses: BackOff::between_subscriptions() }
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
