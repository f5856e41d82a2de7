//! What all connections of an agent share: the store, the rules, and what each user has.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use leasehold_core::Locks;

use crate::peer::Peer;
use crate::policy::{Limits, Policy};
use crate::positions::Positions;
use crate::protocol::{Refusal, Request};
use crate::subscriptions::Subscriptions;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) locks: Locks,
    pub(crate) place: Option<String>,
    pub(crate) policy: Policy,
    pub(crate) usage: Mutex<HashMap<u32, Limits>>,
    pub(crate) positions: Positions,
    pub(crate) subscriptions: Subscriptions,
}

impl Shared {
    /// Checks who asks for which keys, and labels the request.
    pub(crate) fn admit(&self, peer: &Peer, request: &mut Request) -> Result<Counted<'_>, Refusal> {
        let keys = request.keys()?;
        keys.iter().try_for_each(|key| self.policy.check(&peer.names, key.as_str()))?;
        let counted = self.take(peer, keys.len())?;
        request.label = Some(peer.label(request.label.as_deref()));
        Ok(counted)
    }

    /// Counts keys that a user holds or waits for, until what is answered is dropped.
    pub(crate) fn take(&self, peer: &Peer, keys: usize) -> Result<Counted<'_>, Refusal> {
        let what = Limits { keys, connections: 0 };
        let counted = Counted { shared: self, uid: peer.uid, what };
        let limit = self.policy.limits(&peer.names).keys;
        if self.count(peer, what).keys > limit {
            return Err(Refusal::full(format!("a user holds or waits for {limit} keys at most")));
        }
        Ok(counted)
    }

    /// Counts what a user has more, and answers how much that is.
    pub(crate) fn count(&self, peer: &Peer, more: Limits) -> Limits {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let own = usage.entry(peer.uid).or_insert(Limits { keys: 0, connections: 0 });
        own.keys += more.keys;
        own.connections += more.connections;
        *own
    }

    pub(crate) fn discount(&self, uid: u32, less: Limits) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = usage.get_mut(&uid) else { return };
        own.keys = own.keys.saturating_sub(less.keys);
        own.connections = own.connections.saturating_sub(less.connections);
        if (own.keys, own.connections) == (0, 0) {
            usage.remove(&uid);
        }
    }
}

/// What a connection has, which its user has no more when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) uid: u32,
    pub(crate) what: Limits,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.shared.discount(self.uid, self.what);
    }
}
