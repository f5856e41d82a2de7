use std::sync::Arc;

use super::Inner;
use super::acquire::Waiting;
use super::caller::{Caller, SeenThrough};
use super::guard_inner::Hold;
use super::state::{Attach, Collected, Join, Outcome};
use crate::{Error, ErrorKind, HandOff, LockOptions, Mode, Result};

impl Inner {
    /// Takes a detached lock over, with an owner of its own. `None`: it is not held any more, or somebody else did.
    pub(super) async fn attach(self: &Arc<Self>, detached: &HandOff, options: &LockOptions) -> Result<Option<Hold>> {
        let (caller, grant) = (Caller::new(), detached.to_grant());
        let _seen_through = SeenThrough(&caller, &self.driver);
        let join = Join {
            member: self.member,
            key: grant.key.clone(),
            mode: Mode::Exclusive,
            options: options.clone(),
            limit: self.clock.now(),
            handle: caller.clone(),
        };
        let attach = Attach { join, grant, number: detached.hand_overs() };
        let waiting = Waiting::attach(self, detached.key(), &caller, attach);
        self.attached(waiting, &caller).await.map_err(|error| error.within("adopt", self.name(), Some(detached.key())))
    }

    async fn attached(self: &Arc<Self>, mut waiting: Waiting<'_>, caller: &Caller) -> Result<Option<Hold>> {
        match caller.outcome(&self.driver).await {
            Outcome::Granted(granted) => match waiting.collect(&granted) {
                Collected::Yes => Ok(Some(Hold::new(self, granted))),
                _ if self.is_closed() => Err(Error::new(ErrorKind::Closed, "adopt")),
                // It ended before its caller came for it.
                _ => Ok(None),
            },
            Outcome::Busy => waiting.answered(Ok(None)),
            Outcome::Failed(error) => waiting.answered(Err(error)),
        }
    }
}
