//! What renewing, releasing and handing over have in common in backends that know a holder by its random owner id alone.

use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use leasehold_core::{GrantRef, LeaseStatus, OwnerId, Renewal, Result};

use crate::keyspace::names::{FORCED, LOCK};
use crate::script::arguments::ScriptArguments;
use crate::script::reply::Reply;
use crate::script::source::Script;
use crate::store::Store;

impl Store {
    /// Prolongs grants, each only if the server still has its owner under its epoch, and has replicas confirm that where they
    /// are asked.
    ///
    /// The keys of the script are the [`LOCK`]s; its argument is one text with owner id, epoch and lease in ms of each, divided by
    /// spaces. It answers `held` if all are held, and otherwise a list with `held`, `gone`, or what
    /// [`script_error`](Self::script_error) reads, of each.
    pub fn renew<'a>(
        &'a self,
        script: &'a Script,
        renewals: &'a [Renewal],
        within: Duration,
    ) -> BoxFuture<'a, Vec<Result<LeaseStatus>>> {
        Box::pin(async move {
            let arguments = |range: Range<usize>| self.renew_arguments(&renewals[range]);
            let answers = self.run_for_each(script, renewals.len(), &arguments, Some(within)).await;
            let held = answers.into_iter().map(|answer| self.is_held(&answer?));
            let status = |held| if held { LeaseStatus::Held } else { LeaseStatus::NotHeld };
            let mut statuses: Vec<_> = held.map(|held| held.map(status)).collect();
            // Few are gone, if any.
            let gone =
                statuses.iter_mut().zip(renewals).filter(|(status, _)| matches!(status, Ok(LeaseStatus::NotHeld)));
            join_all(gone.map(async |(status, renewal)| *status = Ok(self.why_not_held(&renewal.grant).await))).await;
            self.confirm_renewals(within, renewals.iter().map(|renewal| &renewal.grant), statuses).await
        })
    }

    /// The arguments of the script of [`renew`](Self::renew) for one grant.
    pub fn renewal_of(&self, grant: &GrantRef, ttl: Duration) -> ScriptArguments {
        self.renew_arguments(&[Renewal { grant: grant.clone(), ttl }])
    }

    /// The locks, and in one text the owner id, the epoch and the lease in ms of each.
    fn renew_arguments(&self, renewals: &[Renewal]) -> ScriptArguments {
        let (mut arguments, mut grants) = (ScriptArguments::default(), String::new());
        for Renewal { grant, ttl } in renewals {
            arguments = arguments.name(&self.names(&grant.key), LOCK);
            // Writing to a string does not fail.
            let _ = write!(grants, "{} {} {} ", grant.owner.to_hex(), grant.epoch.unwrap_or_default(), ttl.as_millis());
        }
        arguments.text(grants)
    }

    /// Gives a grant to `new_owner` and prolongs it to `ttl`, if the server still has its owner under its epoch, and has replicas
    /// confirm that by `renew` where they are asked.
    ///
    /// The key of the script is the [`LOCK`]; its arguments are the old owner, the epoch or `-`, the new owner and the lease in ms. It
    /// answers `held`, `gone`, or what [`script_error`](Self::script_error) reads.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function); [`Indeterminate`](leasehold_core::ErrorKind::Indeterminate) too where replicas do not confirm.
    pub fn take_over<'a>(
        &'a self,
        script: &'a Script,
        renew: &'a Script,
        grant: &'a GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<LeaseStatus>> {
        Box::pin(async move {
            let epoch = grant.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
            let lock = self.names(&grant.key).part(LOCK);
            let arguments = ScriptArguments::default().text(lock).text(grant.owner.to_hex()).text(epoch);
            let arguments = arguments.text(new_owner.to_hex()).text(ttl.as_millis());
            let reply = self.run(script, 1, arguments, None).await?;
            let status = self.lease_status(&reply, grant).await?;
            if status == LeaseStatus::Held {
                let taken = GrantRef { owner: new_owner, ..grant.clone() };
                self.confirm_owner(renew, self.renewal_of(&taken, ttl)).await?;
            }
            Ok(status)
        })
    }

    /// Reads what a script says of one grant: `held`, `gone`, or why it cannot be said. What is gone may have been released by
    /// force.
    ///
    /// # Errors
    /// As of [`script_error`](Self::script_error).
    pub fn lease_status<'a>(&'a self, answer: &'a Reply, grant: &'a GrantRef) -> BoxFuture<'a, Result<LeaseStatus>> {
        Box::pin(async move {
            let held = self.is_held(answer)?;
            Ok(if held { LeaseStatus::Held } else { self.why_not_held(grant).await })
        })
    }

    /// Reads whether a script says `held`, and not `gone`.
    fn is_held(&self, answer: &Reply) -> Result<bool> {
        match *answer.words() {
            ["held", ..] => Ok(true),
            ["gone"] => Ok(false),
            ref words => Err(self.script_error(words)),
        }
    }

    /// Asks apart from the script itself, so that the script touches one key only: a Cluster refuses scripts on several
    /// keys while a slot moves. If nobody answers, the grant is gone all the same.
    async fn why_not_held(&self, grant: &GrantRef) -> LeaseStatus {
        match self.get(&self.names(&grant.key).part(FORCED)).await {
            Ok(Some(owners)) if owners.split(' ').any(|owner| owner == grant.owner.to_hex()) => {
                LeaseStatus::ForceReleased
            }
            _ => LeaseStatus::NotHeld,
        }
    }
}
