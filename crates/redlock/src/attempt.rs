use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use leasehold_core::clock::Moment;
use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, OwnerId, Result};
use leasehold_redis::Metadata;

use crate::answer::{Claimed, Confirmed};
use crate::backend::RedlockBackend;
use crate::condition::Failure;
use crate::debts::Debt;
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

    /// What a node that did not say what it has of this attempt has to give back, as long as its lease may be.
    fn debt(&self, until: Moment) -> Debt {
        let Claiming { owner, names, .. } = &self.claiming;
        Debt { owner: *owner, names: names.clone(), signal: false, until }
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
        let attempt = Arc::new(Try {
            claiming: Claiming {
                owner: claim.owner,
                names: self.names.of(&claim.key),
                lease: claim.ttl + self.drift,
                metadata: Metadata::of(claim).tail(),
            },
            limit: self.limit(claim.ttl),
            over: AtomicBool::new(false),
        });
        let mut asked = self.fleet.ask(|node| {
            let attempt = Arc::clone(&attempt);
            async move { node.claim(&attempt.claiming, attempt.limit).await }
        });
        let mut expected = self.fleet.places();
        expected.retain(|index| self.fleet.nodes()[*index].is_expected_within(attempt.limit));
        let mut vote = Vote::count(self.fleet.places(), expected, &mut asked).await;
        let decided = self.decide(&attempt, &mut vote, asked, sent_at, claim.ttl).await;
        match decided {
            Ok(tenure) => Ok(Attempt::Granted { tenure }),
            Err(lost) => {
                attempt.end();
                self.give_up(&attempt, &vote, sent_at.plus(claim.ttl)).await;
                match lost {
                    Lost::Busy { retry_in } => Ok(Attempt::Busy { retry_in }),
                    Lost::Failed(error) => Err(error),
                }
            }
        }
    }

    async fn decide(
        &self,
        attempt: &Arc<Try>,
        vote: &mut Vote,
        slow: Asked<Claimed>,
        sent_at: Moment,
        ttl: Duration,
    ) -> Result<Option<u64>, Lost> {
        let tenure = Some(vote.tenure()).filter(|_| self.fencing && vote.is_won());
        if !vote.is_won() {
            attempt.end();
        }
        self.attend(attempt, vote, slow, tenure, sent_at.plus(ttl));
        if !vote.is_won() {
            let retry_in = vote.retry_in(self.clock.now().since(sent_at));
            return Err(if vote.is_busy() { Lost::Busy { retry_in } } else { Lost::Failed(self.too_few(vote)) });
        }
        if let Some(tenure) = tenure {
            self.confirm(attempt, vote, tenure, sent_at).await?;
        }
        // After the last answer, so that no delay before it matters.
        if self.clock.now() >= sent_at.plus(ttl.saturating_sub(ttl / 100 + Duration::from_millis(2))) {
            let late = Error::new(ErrorKind::Unavailable, "acquire").detail("the votes came after the lease ran out");
            return Err(Lost::Failed(late));
        }
        Ok(tenure)
    }

    /// The second round, at the nodes whose counters are in the number, and at no other.
    async fn confirm(&self, attempt: &Arc<Try>, vote: &mut Vote, tenure: u64, sent_at: Moment) -> Result<(), Lost> {
        let mut asked = self.fleet.ask_some(vote.granted.iter().copied(), |node| {
            let attempt = Arc::clone(attempt);
            async move { node.confirm(&attempt.claiming, tenure, attempt.limit).await }
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
    fn attend(&self, attempt: &Arc<Try>, vote: &mut Vote, slow: Asked<Claimed>, tenure: Option<u64>, until: Moment) {
        if slow.is_empty() {
            return;
        }
        let enlisted = self.tries.enlist(attempt);
        let (fleet, debts, late) = (Arc::clone(&self.fleet), Arc::clone(&self.debts), Arc::clone(attempt));
        let attended = self.background.run(async move {
            let follow = |(index, claimed): (usize, Claimed)| {
                let (attempt, node, debts) = (&late, &fleet.nodes()[index], &debts);
                async move {
                    let granted = matches!(claimed, Claimed::Granted { .. });
                    if let (true, false, Some(tenure)) = (granted, attempt.is_over(), tenure) {
                        node.confirm(&attempt.claiming, tenure, attempt.limit).await;
                    }
                    let goes_back = claimed.may_be_ours() && attempt.is_over();
                    if goes_back && (!granted || attempt.give_back(node, false).await.is_err()) {
                        debts.owe(index, attempt.debt(until));
                    }
                }
            };
            slow.for_each_concurrent(None, follow).await;
            drop(enlisted);
        });
        if attended {
            vote.unheard.clear();
        }
    }

    /// Releases at every node that may have granted. Waits for those that answered, so that a split vote is over when
    /// this ends; the others hear of it in the background.
    ///
    /// A node that said "busy" has nothing of this attempt, and is not asked.
    async fn give_up(&self, attempt: &Arc<Try>, vote: &Vote, until: Moment) {
        let nodes = self.fleet.nodes();
        let give_back = |index: &usize| attempt.give_back(&nodes[*index], vote.is_won());
        let released = join_all(vote.granted.iter().map(give_back)).await;
        let unreleased = vote.granted.iter().zip(released).filter(|(_, released)| released.is_err());
        let unknown = vote.failed.iter().filter(|(_, failure)| failure.maybe_done);
        let unknown = unknown.map(|(index, _)| index).chain(&vote.unheard);
        for index in unreleased.map(|(index, _)| index).chain(unknown) {
            self.debts.owe(*index, attempt.debt(until));
        }
    }

    /// How long one node may take: far less than the lease, and of a short one so much that two rounds fit in.
    pub(crate) fn limit(&self, ttl: Duration) -> Duration {
        let of_a_short_lease = (ttl / 3).min(Duration::from_millis(100));
        (ttl / 10).max(of_a_short_lease).min(self.node_limit)
    }
}

/// The tries of which slow nodes have not heard everything.
#[derive(Debug, Default)]
pub(crate) struct Tries(Mutex<HashMap<OwnerId, Arc<Try>>>);

/// Takes a try off the list when it drops.
struct Enlisted(Arc<Tries>, OwnerId);

impl Tries {
    fn enlist(self: &Arc<Self>, attempt: &Arc<Try>) -> Enlisted {
        let owner = attempt.claiming.owner;
        self.map().insert(owner, Arc::clone(attempt));
        Enlisted(Arc::clone(self), owner)
    }

    /// What slow nodes still grant to this owner goes back.
    pub(crate) fn end(&self, owner: OwnerId) {
        if let Some(attempt) = self.map().get(&owner) {
            attempt.end();
        }
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Arc<Try>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.0.map().remove(&self.1);
    }
}
