//! The futures of `attach` and `downgrade`: the store gives a grant to a new owner id.

use std::sync::Arc;

use super::acquire::WaiterHandle;
use super::caller::{Caller, DetachOnDrop};
use super::guard_inner::GuardInner;
use super::inner::Inner;
use super::state::{Attach, Collected, Join, Outcome};
use crate::{DetachedLock, Error, ErrorKind, LockKey, LockOptions, LossReason, Mode, Result};

impl Inner {
    /// Attaches a detached lock under a new owner id. `None`: the lock is not held any more, or another attach was first.
    pub(super) async fn attach(
        self: &Arc<Self>,
        detached: &DetachedLock,
        options: &LockOptions,
    ) -> Result<Option<GuardInner>> {
        let (caller, grant) = (Caller::new(), detached.to_grant());
        let _detach_on_drop = DetachOnDrop(&caller, &*self.driver);
        let join = self.joins(detached.key(), Mode::Exclusive, options, &caller);
        let attach = Attach { join, grant, number: detached.handoffs() };
        let id = self.driver.with_caller(self, &caller, |state, at| state.attach(at, attach));
        let taken = self.taken_over(WaiterHandle::outside_queue(self, detached.key(), id), &caller).await;
        taken.map_err(|error| error.within("attach", self.name(), Some(detached.key())))
    }

    /// Downgrades a writer to a reader in one step of the store. The writer's guard is over in any case.
    pub(super) async fn downgrade(self: &Arc<Self>, writer: GuardInner, options: &LockOptions) -> Result<GuardInner> {
        let key = writer.state().key().clone();
        let error = |kind| Error::new(kind, "downgrade").with_backend(self.name()).key(&key);
        let caller = Caller::new();
        let _detach_on_drop = DetachOnDrop(&caller, &*self.driver);
        let join = self.joins(&key, Mode::Shared, options, &caller);
        let lost = || error(ErrorKind::Lost(writer.state().loss().unwrap_or(LossReason::Expired)));
        let id = writer.downgrade(&caller, join).ok_or_else(lost)?;
        match self.taken_over(WaiterHandle::outside_queue(self, &key, id), &caller).await {
            Ok(Some(reader)) => Ok(reader),
            // The lease ended before its guard was collected.
            Ok(None) => Err(error(ErrorKind::Lost(LossReason::Expired))),
            Err(failed) => Err(failed.within("downgrade", self.name(), Some(&key))),
        }
    }

    fn joins(&self, key: &LockKey, mode: Mode, options: &LockOptions, caller: &Caller) -> Join<Caller> {
        let (options, limit) = (options.clone(), self.clock.now());
        Join { member: self.member, key: key.clone(), mode, options, limit, handle: caller.clone() }
    }

    async fn taken_over(
        self: &Arc<Self>,
        mut waiting: WaiterHandle<'_>,
        caller: &Caller,
    ) -> Result<Option<GuardInner>> {
        match caller.outcome(&*self.driver).await {
            Outcome::Granted(granted) => match waiting.collect(&granted) {
                Collected::Yes => Ok(Some(GuardInner::new(self, granted))),
                _ if self.is_closed() => Err(Error::new(ErrorKind::Closed, "take over")),
                // The lease ended before its guard was collected.
                _ => Ok(None),
            },
            // It is in no queue, in which somebody could be called.
            Outcome::Busy(_) | Outcome::Called => waiting.answered(Ok(None)),
            Outcome::Failed(error) => waiting.answered(Err(error)),
        }
    }
}
