use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use leasehold_core::clock::{Moment, lease_deadline};
use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, OwnerId, Result};
use leasehold_redis::Metadata;

use crate::answer::{Claimed, Confirmed};
use crate::backend::RedlockBackend;
use crate::condition::Failure;
use crate::debts::{Debt, Late};
use crate::fleet::Asked;
use crate::node::{Claiming, Node};
use crate::vote::{Vote, soon};

/// One try for a key, of which slow nodes may still hear when it is decided.
#[derive(Debug)]
pub(crate) struct Try {
    pub(crate) claiming: Claiming,
    limit: Duration,
    /// It was given up, or released: what it still gets goes back.
    over: AtomicBool,
}

impl Try {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// `signal`: whether somebody may have taken it for a lock, and wait for it.
    async fn give_back(&self, node: &Node, signal: bool) -> Result<(), Failure> {
        let released = node.release(&self.claiming.names, self.claiming.owner, signal, self.limit).await;
        released.map(drop)
    }

    /// What a node that granted has to give back, as long as its lease may be.
    fn debt(&self, until: Moment) -> Debt {
        let Claiming { owner, names, .. } = &self.claiming;
        Debt { owner: *owner, names: names.clone(), signal: false, until, late: None }
    }
}

/// Why an attempt did not win.
enum Lost {
    Busy { retry_in: Option<Duration> },
    Failed(Error),
}

impl RedlockBackend {
    /// One attempt: both rounds, and on failure a release wherever something may be left of it.
    pub(crate) async fn attempt(&self, claim: &Claim) -> Result<Attempt> {
        if claim.mode == Mode::Shared {
            return Err(Error::new(ErrorKind::Unsupported, "acquire"));
        }
        let sent_at = self.clock.now();
        let enlisted = self.tries.enlist(Try {
            claiming: Claiming {
                owner: claim.owner,
                names: self.names.of(&claim.key),
                lease: claim.ttl + self.drift,
                metadata: Metadata::of(claim).tail(),
            },
            limit: self.limit(claim.ttl),
            over: AtomicBool::new(false),
        });
        let attempt = enlisted.attempt();
        let mut asked = self.fleet.ask(|node| {
            let attempt = Arc::clone(attempt);
            async move { node.claim(&attempt.claiming, attempt.limit).await }
        });
        let mut expected = self.fleet.places();
        expected.retain(|index| self.fleet.nodes()[*index].is_expected_within(attempt.limit));
        let mut vote = Vote::count(self.fleet.places(), expected, &mut asked).await;
        let until = sent_at.plus(claim.ttl);
        let decided = self.decide(&enlisted, &mut vote, asked, sent_at, claim.ttl).await;
        if decided.is_err() {
            attempt.end();
        }
        self.expect_late(&enlisted, &vote, until);
        match decided {
            Ok(epoch) => Ok(Attempt::Granted { epoch }),
            Err(lost) => {
                self.give_up(attempt, &vote, until).await;
                match lost {
                    Lost::Busy { retry_in } => Ok(Attempt::Busy { retry_in }),
                    Lost::Failed(error) => Err(error),
                }
            }
        }
    }

    async fn decide(
        &self,
        enlisted: &Arc<Enlisted>,
        vote: &mut Vote,
        slow: Asked<Claimed>,
        sent_at: Moment,
        ttl: Duration,
    ) -> Result<Option<u64>, Lost> {
        let attempt = enlisted.attempt();
        let epoch = Some(vote.epoch()).filter(|_| self.fencing && vote.is_won());
        if !vote.is_won() {
            attempt.end();
        }
        self.attend(enlisted, vote, slow, epoch, sent_at.plus(ttl));
        if !vote.is_won() {
            let retry_in = vote.retry_in(self.clock.now().since(sent_at));
            return Err(if vote.is_busy() { Lost::Busy { retry_in } } else { Lost::Failed(self.too_few(vote)) });
        }
        if let Some(epoch) = epoch {
            self.confirm(attempt, vote, epoch, sent_at).await?;
        }
        // After the last answer, so that no delay before it matters.
        if self.clock.now() >= lease_deadline(sent_at, ttl) {
            let late = Error::new(ErrorKind::Unavailable, "acquire").detail("the votes came after the lease ran out");
            return Err(Lost::Failed(late));
        }
        Ok(epoch)
    }

    /// The second round, at the nodes whose counters are in the number, and at no other.
    async fn confirm(&self, attempt: &Arc<Try>, vote: &mut Vote, epoch: u64, sent_at: Moment) -> Result<(), Lost> {
        let mut asked = self.fleet.ask_some(vote.granted.iter().copied(), |node| {
            let attempt = Arc::clone(attempt);
            async move { node.confirm(&attempt.claiming, epoch, attempt.limit).await }
        });
        let (majority, mut confirmed, mut beaten) = (self.fleet.majority(), 0, false);
        while confirmed < majority && confirmed + asked.len() >= majority {
            match asked.next().await {
                Some((_, Confirmed::Yes)) => confirmed += 1,
                Some((_, Confirmed::Beaten)) => beaten = true,
                Some((index, Confirmed::Failed(failure))) => vote.failed.push((index, failure)),
                None => break,
            }
        }
        if !asked.is_empty() {
            self.background.run(async move { while asked.next().await.is_some() {} });
        }
        match () {
            () if confirmed >= majority => Ok(()),
            () if beaten => Err(Lost::Busy { retry_in: Some(soon(self.clock.now().since(sent_at))) }),
            () => Err(Lost::Failed(self.too_few(vote))),
        }
    }

    fn too_few(&self, vote: &Vote) -> Error {
        let fell_silent = vote.failed.iter().filter(|(index, _)| vote.granted.contains(index)).count();
        let answered = vote.answered() - fell_silent;
        self.fleet.quorum_not_reached(answered, vote.failed.clone()).into_error("acquire")
    }

    /// Hears the slow nodes to the end: what they grant is confirmed too, or goes back if the attempt is over. Whom nobody
    /// attends to stay unheard.
    fn attend(
        &self,
        enlisted: &Arc<Enlisted>,
        vote: &mut Vote,
        slow: Asked<Claimed>,
        epoch: Option<u64>,
        until: Moment,
    ) {
        if slow.is_empty() {
            return;
        }
        let (fleet, debts, enlisted) = (Arc::clone(&self.fleet), Arc::clone(&self.debts), Arc::clone(enlisted));
        let attended = self.background.run(async move {
            let follow = |(index, claimed): (usize, Claimed)| {
                let (enlisted, node, debts) = (&enlisted, &fleet.nodes()[index], &debts);
                async move {
                    let attempt = enlisted.attempt();
                    if !matches!(claimed, Claimed::Granted { .. }) {
                        if claimed.may_be_ours() {
                            debts.owe(index, enlisted.late_debt(until));
                        }
                        return;
                    }
                    if let (false, Some(epoch)) = (attempt.is_over(), epoch) {
                        node.confirm(&attempt.claiming, epoch, attempt.limit).await;
                    }
                    if attempt.is_over() && attempt.give_back(node, false).await.is_err() {
                        debts.owe(index, attempt.debt(until));
                    }
                }
            };
            slow.for_each_concurrent(None, follow).await;
        });
        if attended {
            vote.unheard.clear();
        }
    }

    /// Has the nodes give back, once the attempt is over, what they grant too late to tell.
    fn expect_late(&self, enlisted: &Arc<Enlisted>, vote: &Vote, until: Moment) {
        // Those that granted failed in the second round.
        let is_late = |index: &usize| !vote.granted.contains(index);
        let unknown = vote.failed.iter().filter(|(_, failure)| failure.maybe_done).map(|(index, _)| index);
        for index in unknown.chain(&vote.unheard).filter(|index| is_late(index)) {
            self.debts.owe(*index, enlisted.late_debt(until));
        }
    }

    /// Releases at every node that granted. Waits for their answers, so that a split vote is over when this ends; who
    /// does not answer hears of it in the background.
    ///
    /// A node that said "busy" has nothing of this attempt, and is not asked.
    async fn give_up(&self, attempt: &Try, vote: &Vote, until: Moment) {
        let nodes = self.fleet.nodes();
        let give_back = |index: &usize| attempt.give_back(&nodes[*index], vote.is_won());
        let released = join_all(vote.granted.iter().map(give_back)).await;
        for (index, _) in vote.granted.iter().zip(released).filter(|(_, released)| released.is_err()) {
            self.debts.owe(*index, attempt.debt(until));
        }
    }

    /// How long one node may take: far less than the lease, and of a short one so much that two rounds fit in.
    pub(crate) fn limit(&self, ttl: Duration) -> Duration {
        let of_a_short_lease = (ttl / 3).min(Duration::from_millis(100));
        (ttl / 10).max(of_a_short_lease).min(self.node_limit)
    }
}

/// The tries of which nodes have not heard everything.
#[derive(Debug, Default)]
pub(crate) struct Tries(Mutex<HashMap<OwnerId, Arc<Try>>>);

/// Takes a try off the list when it drops.
#[derive(Debug)]
pub(crate) struct Enlisted(Arc<Tries>, Arc<Try>);

impl Tries {
    fn enlist(self: &Arc<Self>, attempt: Try) -> Arc<Enlisted> {
        let attempt = Arc::new(attempt);
        self.map().insert(attempt.claiming.owner, Arc::clone(&attempt));
        Arc::new(Enlisted(Arc::clone(self), attempt))
    }

    /// What nodes still grant to this owner goes back.
    pub(crate) fn end(&self, owner: OwnerId) {
        if let Some(attempt) = self.map().get(&owner) {
            attempt.end();
        }
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Arc<Try>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Enlisted {
    fn attempt(&self) -> &Arc<Try> {
        &self.1
    }

    pub(crate) fn is_over(&self) -> bool {
        self.1.is_over()
    }

    /// What a node that gave no answer has to give back, now or when the claim comes. Others may have taken that for a
    /// lock, and wait for it.
    fn late_debt(self: &Arc<Self>, until: Moment) -> Debt {
        let late = Late { lease: self.1.claiming.lease, enlisted: Arc::clone(self) };
        Debt { signal: true, late: Some(late), ..self.1.debt(until) }
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.0.map().remove(&self.1.claiming.owner);
    }
}
