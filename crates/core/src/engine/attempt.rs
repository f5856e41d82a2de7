use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;

use super::Core;
use super::acquire::Request;
use super::detached::Detached;
use super::release::{Done, Hold};
use super::sessions::{Entered, Level};
use super::tenure::{FirstLease, Grip, Tenure, cap_of};
use crate::clock::Moment;
use crate::{
    Attempt, Backend, Capability, Claim, Error, ErrorKind, GrantRef, HandOff, Held, LockOptions, LossReason, OwnerId,
    Renewal, Result, SessionId,
};

/// What came of one attempt.
pub(super) enum Tried<B: Backend> {
    Granted(Hold),
    /// A guard of this process holds it, until then at most; nothing was sent.
    HeldHere {
        until: Moment,
    },
    Busy {
        retry_in: Option<Duration>,
        /// Who holds it, where that is a session.
        session: Option<SessionId>,
    },
    Queued {
        place: Place<B>,
        retry_in: Duration,
        told: bool,
    },
    Failed(Error),
    /// It failed for the moment, and the store may have a place or a grant for its owner: the same one asks again.
    Interrupted {
        place: Place<B>,
        error: Error,
    },
    /// Not within the wait.
    Unanswered,
}

/// What an owner id has in the store: a grant that is nobody's yet, a place in the store's own queue, or something of
/// which nobody knows. Dropping it gives that up, and with it what was granted to it meanwhile.
pub(super) struct Place<B: Backend> {
    /// Taken when it is given up, or when there is nothing to give up any more.
    core: Option<Arc<Core<B>>>,
    grant: GrantRef,
    ttl: Duration,
    first_lease: FirstLease,
    /// The tenure number of who had the key when the place in the queue was last confirmed, and the largest that a grant
    /// may have since.
    epochs: Option<(u64, u64)>,
    runtime: Handle,
    /// The last to drop, so that `close` does not cut short what is given up here.
    _pending: Done,
}

impl<B: Backend> Place<B> {
    pub(super) fn owner(&self) -> OwnerId {
        self.grant.owner
    }

    /// Whether the store may have granted this number since the last confirmation, from which the lease counts. A message
    /// may be so late that another was granted the key since, and it may not be the store's at all. When that lease is
    /// over, only the store knows whose the key is.
    pub(super) fn may_have_become(&self, tenure: Option<u64>, now: Moment) -> bool {
        let within = |((before, latest), granted)| before < granted && granted <= latest;
        now < self.first_lease.deadline() && self.epochs.zip(tenure).is_some_and(within)
    }

    /// A message says that it is granted.
    pub(super) fn told(mut self) -> Self {
        self.first_lease.told = true;
        self
    }

    /// There is nothing to give up any more: it became a grant, or the same owner's next place.
    pub(super) fn forget(place: Option<Self>) {
        if let Some(mut place) = place {
            place.core = None;
        }
    }
}

impl<B: Backend> Drop for Place<B> {
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            core.give_back(&self.grant, self.ttl, &self.runtime);
            if self.first_lease.in_doubt {
                core.give_back_again(&self.grant, self.ttl, &self.runtime);
            }
        }
    }
}

impl<B: Backend> Core<B> {
    /// Sends one claim and sees it through, whether or not the caller stays: for the place in the store's queue, if
    /// there is one, else for a new owner.
    pub(super) async fn attempt(self: &Arc<Self>, request: &Request<'_>, place: Option<&Place<B>>) -> Tried<B> {
        let claim = Claim {
            key: request.key.clone(),
            owner: place.map_or_else(OwnerId::random, Place::owner),
            mode: request.mode,
            ttl: request.options.ttl,
            waits: !request.is_over(self.clock.now()),
            label: request.options.label.clone(),
            reason: request.options.reason.clone(),
        };
        let pending = Arc::clone(&self.pending).begin();
        let waits_in_store = claim.waits && self.capabilities.has(Capability::Queue);
        let queued = place.map(|place| place.first_lease);
        let attempt = Detached::new(Handle::current(), Box::pin(Arc::clone(self).claim(claim, queued, pending)));
        let (answer, won) = tokio::select! {
            biased;
            answered = attempt => answered,
            () = self.clock.reach(self.latest(request)) => return Tried::Unanswered,
        };
        match answer {
            Ok(Attempt::Granted { tenure }) => self.granted_in(won, tenure, request.options).await,
            Ok(Attempt::Busy { retry_in }) => Tried::Busy { retry_in, session: None },
            Ok(Attempt::HeldBy { retry_in, session }) => Tried::Busy { retry_in, session: Some(session) },
            Ok(Attempt::Queued { retry_in, told, .. }) => Tried::Queued { place: won, retry_in, told },
            // Given up, it would come back at the end of the line.
            Err(error) if waits_in_store && won.core.is_some() && error.is_transient() => {
                Tried::Interrupted { place: won, error }
            }
            Err(error) => Tried::Failed(error),
        }
    }

    /// What a claim wins is given back unless its waiter takes it: another grant may have come here since, and no guard
    /// must be born of the older one beside it.
    async fn claim(
        self: Arc<Self>,
        claim: Claim,
        queued: Option<FirstLease>,
        pending: Done,
    ) -> (Result<Attempt>, Place<B>) {
        let runtime = Handle::current();
        let buried = self.bury_dead(&claim.key).await;
        let sent_at = self.clock.now();
        let mut answer = match buried {
            Ok(()) => self.backend.try_acquire(&claim).await,
            Err(error) => Err(error),
        };
        let took = u64::try_from(self.clock.now().since(sent_at).as_nanos()).unwrap_or(u64::MAX);
        self.round_trip.store(took, Ordering::Relaxed);
        let unheard = answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Indeterminate);
        let in_doubt = unheard || queued.is_some_and(|queued| queued.in_doubt);
        let lease = |length| self.lease_from(sent_at, length);
        let (in_store, first_lease) = match &answer {
            Ok(Attempt::Busy { .. } | Attempt::HeldBy { .. }) => (false, lease(claim.ttl)),
            Ok(Attempt::Queued { lease: length, .. }) => (true, lease(claim.ttl.min(*length))),
            // From its place in the queue it may have been granted before this was sent.
            Ok(Attempt::Granted { .. }) => (true, queued.unwrap_or_else(|| lease(claim.ttl))),
            // Nobody knows with what lease it was granted, if it was.
            Err(_) => (unheard || queued.is_some(), queued.unwrap_or_else(|| lease(Duration::ZERO))),
        };
        let mut first_lease = FirstLease { in_doubt, ..first_lease };
        if let (Ok(Attempt::Granted { tenure }), Some(_)) = (&answer, queued)
            && self.clock.now() >= first_lease.deadline()
        {
            match self.prolonged(&claim.grant(*tenure), claim.ttl).await {
                Ok(prolonged) => first_lease = FirstLease { in_doubt, ..prolonged },
                Err(error) => answer = Err(error),
            }
        }
        let epochs = match answer {
            Ok(Attempt::Queued { epoch_of_holder, latest_epoch, .. }) => {
                epoch_of_holder.map(|before| (before, latest_epoch.unwrap_or(u64::MAX)))
            }
            _ => None,
        };
        let (core, grant) = (in_store.then_some(self), claim.grant(None));
        (answer, Place { core, grant, ttl: claim.ttl, first_lease, epochs, runtime, _pending: pending })
    }

    /// The lease of a grant that may have come long ago, from a moment that is known.
    async fn prolonged(&self, grant: &GrantRef, ttl: Duration) -> Result<FirstLease> {
        let sent_at = self.clock.now();
        let renewal = Renewal { grant: grant.clone(), ttl };
        match self.backend.renew(slice::from_ref(&renewal)).await.pop() {
            Some(Ok(Held::Yes)) => Ok(self.lease_from(sent_at, ttl)),
            Some(Ok(Held::No | Held::Forced)) | None => Err(too_late()),
            Some(Err(error)) => Err(error),
        }
    }

    /// The store granted what a waiter here asked for, or had a place for in its queue.
    pub(super) async fn granted_in(
        self: &Arc<Self>,
        mut place: Place<B>,
        tenure: Option<u64>,
        options: &LockOptions,
    ) -> Tried<B> {
        place.core = None;
        let grant = GrantRef { tenure, ..place.grant.clone() };
        self.granted(grant, place.first_lease, options, place.runtime.clone()).await
    }

    async fn granted(
        self: &Arc<Self>,
        grant: GrantRef,
        lease: FirstLease,
        options: &LockOptions,
        runtime: Handle,
    ) -> Tried<B> {
        if self.clock.now() >= lease.deadline() {
            // It may be another's by now; a guard on it would be lost at birth.
            self.give_back(&grant, options.ttl, &runtime);
            return Tried::Failed(too_late());
        }
        let hold = match self.hold(grant, 0, options, lease, runtime) {
            Ok(hold) => hold,
            Err(error) => return Tried::Failed(error),
        };
        // The keeper does it for the others, while they are held already.
        if !options.renew
            && lease.is_provisional(options.ttl)
            && let Err(error) = hold.renew().await
        {
            return Tried::Failed(error);
        }
        Tried::Granted(hold)
    }

    pub(super) async fn adopt(self: &Arc<Self>, handed: &HandOff, options: &LockOptions) -> Result<Option<Hold>> {
        let grant = handed.to_grant();
        let lease = self.lease_from(self.clock.now(), options.ttl);
        let renewal = Renewal { grant: grant.clone(), ttl: options.ttl };
        match self.backend.renew(slice::from_ref(&renewal)).await.pop() {
            Some(Ok(Held::Yes)) => self.hold(grant, handed.hand_overs(), options, lease, Handle::current()).map(Some),
            Some(Ok(Held::No | Held::Forced)) => Ok(None),
            Some(Err(error)) => Err(error.within("adopt", self.name(), Some(&grant.key))),
            None => Err(Error::new(ErrorKind::Indeterminate, "adopt").backend(self.name()).key(&grant.key)),
        }
    }

    /// What a guard holds, on a tenure of its own or, in a re-entrant session, on the one that is held already.
    fn hold(
        self: &Arc<Self>,
        grant: GrantRef,
        hand_overs: u16,
        options: &LockOptions,
        lease: FirstLease,
        runtime: Handle,
    ) -> Result<Hold> {
        let cap = cap_of(options, self.clock.now());
        let level = Level { owner: grant.owner, renew: options.renew, cap };
        let mut entered = self.sessions.lock();
        let tenure = match entered.as_mut().and_then(|entered| entered.get_mut(&grant.key)) {
            Some(Entered { tenure, levels }) if tenure.grant.tenure == grant.tenure && tenure.is_held() => {
                tenure.reentered(options.ttl, lease.sent_at);
                levels.push(level);
                tenure.serve(levels);
                Arc::clone(tenure)
            }
            Some(gone) => {
                // The store began a new tenure: the outer one was not ours any more when this was granted.
                gone.tenure.lose(LossReason::Stolen);
                self.give_back(&grant, options.ttl, &runtime);
                return Err(Error::new(ErrorKind::Lost(LossReason::Stolen), "acquire"));
            }
            None => {
                let tenure = Arc::new(Tenure::new(grant.clone(), options, &self.observer, &self.clock, lease));
                if let Some(entered) = &mut entered {
                    let levels = vec![level];
                    entered.insert(grant.key.clone(), Entered { tenure: Arc::clone(&tenure), levels });
                }
                tenure
            }
        };
        let grip = Grip::new(Arc::clone(&tenure), grant, hand_overs);
        self.queue.held(&tenure, self.session);
        self.keeper.watch(&tenure, self);
        Ok(Hold::new(grip, Arc::clone(self) as _, runtime))
    }

    fn lease_from(&self, sent_at: Moment, length: Duration) -> FirstLease {
        FirstLease { length, sent_at, ends: self.capabilities.has(Capability::Lease), told: false, in_doubt: false }
    }
}

fn too_late() -> Error {
    Error::new(ErrorKind::Unavailable, "acquire").detail("the grant came after its lease ran out")
}
