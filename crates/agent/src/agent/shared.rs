//! What all connections of an agent share: the store, the rules, and what each user has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_core::Locks;

use super::peer::Peer;
use super::positions::Positions;
use super::subscriptions::Subscriptions;
use crate::policy::{Limits, Policy};
use crate::protocol::{Refusal, Request};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) locks: Locks,
    pub(crate) place: String,
    pub(crate) policy: Policy,
    pub(crate) usage: Mutex<HashMap<u32, Limits>>,
    pub(crate) positions: Positions,
    pub(crate) subscriptions: Subscriptions,
}

impl Shared {
    /// Checks who asks for which keys, and labels the request.
    pub(crate) fn admit(self: &Arc<Self>, peer: &Peer, request: &mut Request) -> Result<Counted, Refusal> {
        let keys = request.keys()?;
        keys.iter().try_for_each(|key| self.policy.check(&peer.names, key.as_str()))?;
        let counted = self.take(peer, Limits { keys: keys.len(), connections: 0 })?;
        request.label = Some(peer.label(request.label.as_deref()));
        Ok(counted)
    }

    /// Counts what a user has more until what is answered is dropped, unless that is too much.
    pub(crate) fn take(self: &Arc<Self>, peer: &Peer, more: Limits) -> Result<Counted, Refusal> {
        let (counted, has) = self.count(peer, more);
        let Limits { keys, connections } = self.policy.limits(&peer.names);
        if more.keys > 0 && has.keys > keys {
            return Err(Refusal::full(format!("a user holds or waits for {keys} keys at most")));
        }
        if more.connections > 0 && has.connections > connections {
            return Err(Refusal::full(format!("a user has {connections} connections at most")));
        }
        Ok(counted)
    }

    /// Counts what a user has more, and answers with how much it then is.
    pub(crate) fn count(self: &Arc<Self>, peer: &Peer, more: Limits) -> (Counted, Limits) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let own = usage.entry(peer.uid).or_insert(Limits { keys: 0, connections: 0 });
        own.keys += more.keys;
        own.connections += more.connections;
        (Counted { shared: Arc::clone(self), uid: peer.uid, what: more }, *own)
    }
}

/// What a connection has, which its user has no more when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    shared: Arc<Shared>,
    uid: u32,
    what: Limits,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut usage = self.shared.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = usage.get_mut(&self.uid) else { return };
        own.keys = own.keys.saturating_sub(self.what.keys);
        own.connections = own.connections.saturating_sub(self.what.connections);
        if (own.keys, own.connections) == (0, 0) {
            usage.remove(&self.uid);
        }
    }
}
