use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::OwnerId;

use crate::error::Failure;
use crate::node::{ClaimRequest, Node};

/// One attempt to acquire a key, which slow nodes may still answer when it is decided.
#[derive(Debug)]
pub(crate) struct ClaimAttempt {
    pub(crate) request: ClaimRequest,
    /// How long one node may take for an answer.
    pub(crate) limit: Duration,
    /// Whether it was given up, or its grant released: what nodes still grant is given back.
    over: AtomicBool,
    /// The nodes that granted when the vote was decided.
    late: Mutex<Vec<usize>>,
}

impl ClaimAttempt {
    pub(crate) fn new(request: ClaimRequest, limit: Duration) -> Self {
        Self { request, limit, over: AtomicBool::new(false), late: Mutex::default() }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Notes that a node granted when the vote was decided. Returns whether the attempt is over, so that it has to be given back.
    pub(crate) fn granted_late(&self, index: usize) -> bool {
        // Before it looks, so that whoever ends the attempt finds it here.
        self.late.lock().unwrap_or_else(PoisonError::into_inner).push(index);
        self.is_over()
    }

    /// The nodes that granted late, as far as is known.
    pub(crate) fn late_grants(&self) -> Vec<usize> {
        std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Releases the key at a node. `signal`: notifies waiters, who may have taken the attempt for a lock.
    pub(crate) async fn give_back(&self, node: &Node, signal: bool) -> Result<(), Failure> {
        let released = node.release(&self.request.names, self.request.owner, signal, self.limit).await;
        released.map(drop)
    }
}

/// The attempts that some nodes have not answered yet, by owner id.
#[derive(Debug, Default)]
pub(crate) struct AttemptsInFlight(Mutex<HashMap<OwnerId, Arc<ClaimAttempt>>>);

impl AttemptsInFlight {
    pub(crate) fn register(self: &Arc<Self>, attempt: ClaimAttempt) -> Arc<RegisteredAttempt> {
        let attempt = Arc::new(attempt);
        self.map().insert(attempt.request.owner, Arc::clone(&attempt));
        Arc::new(RegisteredAttempt(Arc::clone(self), attempt))
    }

    /// Ends the attempt of this owner, so that what nodes still grant to it is given back.
    pub(crate) fn end(&self, owner: OwnerId) {
        if let Some(attempt) = self.map().get(&owner) {
            attempt.end();
        }
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Arc<ClaimAttempt>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that is in flight until this drops.
#[derive(Debug)]
pub(crate) struct RegisteredAttempt(Arc<AttemptsInFlight>, Arc<ClaimAttempt>);

impl RegisteredAttempt {
    pub(crate) fn attempt(&self) -> &Arc<ClaimAttempt> {
        &self.1
    }
}

impl Drop for RegisteredAttempt {
    fn drop(&mut self) {
        self.0.map().remove(&self.1.request.owner);
    }
}
