use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, Error, ErrorKind, GrantRef, Holders, LeaseStatus,
    LockKey, Notifications, OwnerId, Page, Renewal, Result,
};
use leasehold_redis::{DEFAULT_COMMAND_TIMEOUT, KeyNames, Names};
use tokio::task::JoinHandle;

use crate::answer::Kept;
use crate::attempt::Tries;
use crate::background::Background;
use crate::condition::Failure;
use crate::debts::{Debt, Debts};
use crate::fleet::{Asked, Fleet};
use crate::node::TakingOver;
use crate::notifications::QuorumSignals;

pub(crate) const NAME: &str = "redlock";

/// The store-level steps of [`Redlock`](crate::Redlock), each decided by a majority of the nodes; from
/// [`RedlockBuilder::backend`](crate::RedlockBuilder::backend).
#[derive(Debug)]
pub struct RedlockBackend {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) names: Names,
    pub(crate) fencing: bool,
    pub(crate) drift: Duration,
    pub(crate) node_limit: Duration,
    pub(crate) clock: Clock,
    pub(crate) tries: Arc<Tries>,
    pub(crate) background: Background,
    pub(crate) debts: Arc<Debts>,
    pub(crate) signals: QuorumSignals,
    pub(crate) knocking: Option<Knocking>,
}

/// The task that goes on knocking at nodes that do not take part. Ends with its backend.
#[derive(Debug)]
pub(crate) struct Knocking(pub(crate) JoinHandle<()>);

impl Drop for Knocking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RedlockBackend {
    pub(crate) fn claims(fencing: bool) -> Capabilities {
        let capabilities = Capabilities::new(NAME)
            .with(Capability::Lease)
            .with(Capability::Wakeup)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Shared, "one exclusive holder per key; see mysql-rw or file for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
            .without(Capability::Reentrancy, "a locker contends with itself; see redis-reentrant");
        if fencing {
            capabilities.with(Capability::Fencing)
        } else {
            capabilities.without(Capability::Fencing, "switched off")
        }
    }

    /// Waits for a majority that says the same of each grant, and no longer than the limit for the rest.
    async fn renew_all(&self, renewals: &[Renewal], within: Duration) -> Vec<Tally> {
        let grants: Arc<[(KeyNames, OwnerId, Duration)]> = renewals
            .iter()
            .map(|renewal| (self.names.of(&renewal.grant.key), renewal.grant.owner, renewal.ttl + self.drift))
            .collect();
        let shortest = renewals.iter().map(|renewal| renewal.ttl).min().unwrap_or_default();
        let limit = self.limit(shortest).max(within.min(Duration::from_secs(1)));
        let mut asked = self.fleet.ask(|node| {
            let grants = Arc::clone(&grants);
            async move { node.renew(&grants, limit).await }
        });
        let mut tallies: Vec<Tally> = renewals.iter().map(|_| Tally::default()).collect();
        while tallies.iter().any(|tally| tally.is_open(self.fleet.majority())) {
            let Some((index, answers)) = asked.next().await else { break };
            match answers {
                Ok(answers) => tallies.iter_mut().zip(answers).for_each(|(tally, answer)| tally.add(index, answer)),
                Err(failure) => tallies.iter_mut().for_each(|tally| tally.add(index, Err(failure.clone()))),
            }
        }
        self.hear_out(asked);
        tallies
    }

    /// Waits for a majority that says the same.
    async fn take_over_all(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Tally {
        let taking = TakingOver {
            names: self.names.of(&grant.key),
            owner: grant.owner,
            epoch: grant.epoch,
            new_owner,
            lease: ttl + self.drift,
        };
        let limit = self.limit(ttl);
        let mut asked = self.fleet.ask(|node| {
            let taking = taking.clone();
            async move { node.take_over(&taking, limit).await }
        });
        let mut tally = Tally::default();
        while tally.is_open(self.fleet.majority()) {
            let Some((index, answer)) = asked.next().await else { break };
            tally.add(index, answer);
        }
        self.hear_out(asked);
        tally
    }

    /// Lets the rest arrive: a node that stays silent is noticed, and connected again.
    pub(crate) fn hear_out<T: Send + 'static>(&self, mut asked: Asked<T>) {
        if !asked.is_empty() {
            self.background.run(async move { while asked.next().await.is_some() {} });
        }
    }

    async fn release_all(&self, grant: &GrantRef) -> Tally {
        /// How long a node that gives no answer is told again.
        const PATIENCE: Duration = Duration::from_secs(10);
        self.tries.end(grant.owner);
        let (names, owner, limit) = (self.names.of(&grant.key), grant.owner, self.node_limit);
        let mut asked = self.fleet.ask(|node| {
            let names = names.clone();
            async move { node.release(&names, owner, true, limit).await }
        });
        let (mut tally, mut unheard) = (Tally::default(), self.fleet.places());
        while tally.is_open(self.fleet.majority()) {
            let Some((index, answer)) = asked.next().await else { break };
            unheard.remove(&index);
            tally.add(index, answer);
        }
        let debt = Debt { owner, names, signal: true, until: self.clock.now().plus(PATIENCE), late: None };
        for (index, _) in tally.failed.iter().filter(|(_, failure)| failure.is_transient()) {
            self.debts.owe(*index, debt.clone());
        }
        if unheard.is_empty() {
            return tally;
        }
        let (debts, late) = (Arc::clone(&self.debts), debt.clone());
        let heard_out = self.background.run(async move {
            while let Some((index, answer)) = asked.next().await {
                if answer.is_err_and(|failure| failure.is_transient()) {
                    debts.owe(index, late.clone());
                }
            }
        });
        if !heard_out {
            for index in unheard {
                self.debts.owe(index, debt.clone());
            }
        }
        tally
    }
}

/// What the nodes say of one grant.
#[derive(Debug, Default)]
struct Tally {
    yes: usize,
    gone: usize,
    forced: bool,
    failed: Vec<(usize, Failure)>,
}

impl Tally {
    fn add(&mut self, index: usize, answer: Result<Kept, Failure>) {
        match answer {
            Ok(Kept::Yes) => self.yes += 1,
            Ok(Kept::Gone) => self.gone += 1,
            Ok(Kept::Forced) => {
                self.gone += 1;
                self.forced = true;
            }
            Err(failure) => self.failed.push((index, failure)),
        }
    }

    fn is_open(&self, majority: usize) -> bool {
        self.yes < majority && self.gone < majority
    }

    fn held(&self, majority: usize) -> Option<LeaseStatus> {
        match () {
            () if self.yes >= majority => Some(LeaseStatus::Held),
            () if self.gone >= majority && self.forced => Some(LeaseStatus::ForceReleased),
            () if self.gone >= majority => Some(LeaseStatus::NotHeld),
            () => None,
        }
    }
}

#[async_trait]
impl Backend for RedlockBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims(self.fencing)
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.attempt(claim).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let majority = self.fleet.majority();
        let judge = |tally: Tally| {
            tally.held(majority).ok_or_else(|| {
                let missing = self.fleet.quorum_not_reached(tally.yes + tally.gone, tally.failed);
                missing.into_error_or(ErrorKind::Indeterminate, "renew")
            })
        };
        self.renew_all(renewals, within).await.into_iter().map(judge).collect()
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let tally = self.take_over_all(grant, new_owner, ttl).await;
        let held = tally.held(self.fleet.majority());
        if matches!(held, Some(LeaseStatus::NotHeld | LeaseStatus::ForceReleased)) {
            // What a few nodes gave, or give yet, would keep them from everybody for a lease.
            self.release_all(&GrantRef { owner: new_owner, ..grant.clone() }).await;
        }
        held.ok_or_else(|| {
            let missing = self.fleet.quorum_not_reached(tally.yes + tally.gone, tally.failed);
            let error = missing.into_error_or(ErrorKind::Indeterminate, "attach");
            // Where some nodes have the new owner, it is given back.
            let unknown = Error::new(ErrorKind::Indeterminate, "attach");
            if tally.yes > 0 { unknown.caused_by(error) } else { error }
        })
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let tally = self.release_all(grant).await;
        let (majority, answered) = (self.fleet.majority(), tally.yes + tally.gone);
        match tally.held(majority) {
            Some(held) => Ok(held),
            // Free at a majority, and gone from too few to have been lost before.
            None if answered >= majority => Ok(LeaseStatus::Held),
            None => {
                let missing = self.fleet.quorum_not_reached(answered, tally.failed);
                Err(missing.into_error_or(ErrorKind::Indeterminate, "release"))
            }
        }
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let mut inspected = self.inspect_all(std::slice::from_ref(key)).await?;
        inspected.pop().ok_or_else(|| Error::new(ErrorKind::Backend, "inspect"))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.page(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.force(key).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(&self.signals)
    }

    fn answers_within(&self) -> Duration {
        self.node_limit.max(DEFAULT_COMMAND_TIMEOUT)
    }

    async fn close(&self) {
        // The other half is for the connections.
        self.background.finish(self.answers_within() / 4).await;
        self.debts.finish(self.answers_within() / 4).await;
        if let Some(Knocking(task)) = &self.knocking {
            task.abort();
        }
        futures::future::join_all(self.fleet.nodes().iter().map(|node| node.close())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeCondition;

    fn tally(answers: &[Option<Kept>]) -> Tally {
        let mut tally = Tally::default();
        for (index, answer) in answers.iter().enumerate() {
            tally.add(index, answer.ok_or_else(|| Failure::of(NodeCondition::Unreachable("silent".into()))));
        }
        tally
    }

    #[test]
    fn only_a_majority_says_yes_or_no() {
        use Kept::{Forced, Gone, Yes};
        for (answers, expected) in [
            (&[Some(Yes), Some(Yes), Some(Yes), None, None][..], Some(LeaseStatus::Held)),
            (&[Some(Gone), Some(Gone), Some(Gone), Some(Yes), Some(Yes)], Some(LeaseStatus::NotHeld)),
            (&[Some(Forced), Some(Gone), Some(Gone), None, None], Some(LeaseStatus::ForceReleased)),
            (&[Some(Yes), Some(Yes), Some(Gone), Some(Gone), None], None),
            (&[Some(Yes), Some(Yes), None, None, None], None),
            (&[None, None, None, None, None], None),
        ] {
            assert_eq!(tally(answers).held(3), expected, "{answers:?}");
        }
    }

    #[test]
    fn without_fencing_the_reason_is_told() {
        assert!(RedlockBackend::claims(true).has(Capability::Fencing));
        assert_eq!(RedlockBackend::claims(false).why_not(Capability::Fencing), Some("switched off"));
    }
}
