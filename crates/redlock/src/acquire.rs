use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use leasehold_core::clock::{Moment, lease_deadline};
use leasehold_core::{Attempt, Claim, Error, ErrorKind, Mode, Result};
use leasehold_redis::encode_metadata;

use crate::answer::Confirmed;
use crate::attempt::{ClaimAttempt, RegisteredAttempt};
use crate::node::ClaimRequest;
use crate::numbers::Decision;
use crate::pending_releases::PendingRelease;
use crate::store::Store;
use crate::vote::{Vote, jittered_pause};

/// Takes the key if a majority of the nodes grants it: one round, or two where a majority does not take the number that is
/// proposed. On failure it releases wherever something may be left of the attempt.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        return Err(Error::new(ErrorKind::Unsupported, "acquire"));
    }
    let sent_at = store.clock.now();
    let (registered, until) = (register(store, claim), sent_at.plus(claim.ttl));
    let attempt = registered.attempt();
    let (mut vote, decision) =
        store.fleet.claim(Arc::clone(&registered), until).await.inspect_err(|_| attempt.end())?;
    let decided = decide(store, attempt, &mut vote, decision, sent_at, claim.ttl).await;
    let is_won = matches!(decided, Ok(Attempt::Granted { .. }));
    if !is_won {
        attempt.end();
    }
    release_late_claims(store, &registered, &vote, until);
    if !is_won {
        give_up(store, attempt, &vote, until).await;
    }
    decided
}

fn register(store: &Store, claim: &Claim) -> Arc<RegisteredAttempt> {
    let request = ClaimRequest {
        owner: claim.owner,
        names: store.namespace.of(&claim.key),
        lease: claim.ttl + store.drift,
        metadata: encode_metadata(claim),
    };
    store.attempts.register(ClaimAttempt::new(request, store.limit(claim.ttl)))
}

/// What the vote of the first round comes to, after a second round if it needs one.
async fn decide(
    store: &Store,
    attempt: &Arc<ClaimAttempt>,
    vote: &mut Vote,
    decision: Option<Decision>,
    sent_at: Moment,
    ttl: Duration,
) -> Result<Attempt> {
    if !vote.is_won() {
        let retry_in = vote.retry_in(store.clock.now().since(sent_at));
        return if vote.is_busy() { Ok(Attempt::Busy { retry_in }) } else { Err(too_few(store, vote)) };
    }
    let answer = match decision {
        None => Attempt::Granted { epoch: None },
        Some(Decision::Won(number)) => Attempt::Granted { epoch: Some(number) },
        Some(Decision::Write { number, ahead }) => confirm(store, attempt, vote, (number, ahead), sent_at).await?,
        Some(Decision::Early) => Attempt::AHEAD_OF_THE_CLOCK,
    };
    // After the last answer, so that no delay before it matters.
    if matches!(answer, Attempt::Granted { .. }) && store.clock.now() >= lease_deadline(sent_at, ttl) {
        return Err(Error::new(ErrorKind::Unavailable, "acquire").detail("the votes came after the lease ran out"));
    }
    Ok(answer)
}

/// The second round, at the nodes whose counters are in the number, and at no other.
async fn confirm(
    store: &Store,
    attempt: &Arc<ClaimAttempt>,
    vote: &mut Vote,
    (number, ahead): (u64, u64),
    sent_at: Moment,
) -> Result<Attempt> {
    let mut answers = store.nodes.ask_some(vote.granted.iter().copied(), |node| {
        let attempt = Arc::clone(attempt);
        async move { node.confirm(&attempt.request, number, ahead, attempt.limit).await }
    });
    let (majority, mut confirmed, mut conflict, mut early) = (store.nodes.majority(), 0, false, false);
    while confirmed < majority && confirmed + answers.len() >= majority {
        match answers.next().await {
            Some((_, Confirmed::Written)) => confirmed += 1,
            Some((_, Confirmed::Conflict)) => conflict = true,
            Some((_, Confirmed::Early)) => early = true,
            Some((index, Confirmed::Failed(failure))) => vote.failed.push((index, failure)),
            None => break,
        }
    }
    store.await_rest(answers);
    match () {
        () if confirmed >= majority => Ok(Attempt::Granted { epoch: Some(number) }),
        () if early => Ok(Attempt::AHEAD_OF_THE_CLOCK),
        () if conflict => Ok(Attempt::Busy { retry_in: Some(jittered_pause(store.clock.now().since(sent_at))) }),
        () => Err(too_few(store, vote)),
    }
}

fn too_few(store: &Store, vote: &Vote) -> Error {
    let fell_silent = vote.failed.iter().filter(|(index, _)| vote.granted.contains(index)).count();
    let answered = vote.answered() - fell_silent;
    store.nodes.quorum_not_reached(answered, vote.failed.clone()).into_error("acquire")
}

/// Has the nodes release, once the attempt is over, what they may grant too late to answer.
fn release_late_claims(store: &Store, registered: &Arc<RegisteredAttempt>, vote: &Vote, until: Moment) {
    // A node that granted has failed in the second round.
    let is_late = |index: &usize| !vote.granted.contains(index);
    let unknown = vote.failed.iter().filter(|(_, failure)| failure.maybe_done).map(|(index, _)| index);
    for index in unknown.chain(&vote.unanswered).filter(|index| is_late(index)) {
        store.pending_releases.add(*index, PendingRelease::of_late_claim(registered, until));
    }
}

/// Releases at every node that granted, and waits for the answers, so that a split vote is over when this ends. A node
/// that does not answer gets its release in the background.
///
/// A node that said "busy" has nothing of this attempt, and is not asked.
async fn give_up(store: &Store, attempt: &ClaimAttempt, vote: &Vote, until: Moment) {
    let nodes = store.nodes.all();
    let give_back = |index: &usize| attempt.give_back(&nodes[*index], vote.is_won());
    let released = join_all(vote.granted.iter().map(give_back)).await;
    for (index, _) in vote.granted.iter().zip(released).filter(|(_, released)| released.is_err()) {
        store.pending_releases.add(*index, PendingRelease::of(attempt, until));
    }
    for index in attempt.late_grants() {
        store.pending_releases.add(index, PendingRelease::of(attempt, until));
    }
}
