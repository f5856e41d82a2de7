//! Renewals, broken.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Error, ErrorKind, GrantRef, LeaseStatus, Mode, OwnerId, Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    GivesHalfTheLease Gives(|lease| lease / 2),
    IsShorterThanItSays Gives(|lease| lease / 2) => c05_nobody_is_granted_before_the_guard_gives_up,
    GivesADay Gives(|_| Duration::from_secs(86_400)),
    LastsLongerThanItSays Gives(|lease| lease * 20),
    IgnoresWhatIsAskedFor Gives(|_| Duration::from_secs(60)),
    RenewsNothing RenewsNothing,
    RenewsOnlyTheFirst RenewsOnlyTheFirst,
    AnswersInReverse AnswersInReverse,
    ForgetsTheLastAnswer ForgetsTheLastAnswer,
    OneGoneEndsTheBatch OneGone(|_| Ok(LeaseStatus::NotHeld)),
    OneGoneFailsTheBatch OneGone(|_| Err(Error::new(ErrorKind::Backend, "renew"))),
    OneGoneIsOverlooked OneGone(|held| Ok(if held == LeaseStatus::NotHeld { LeaseStatus::Held } else { held })),
    OneGoneKeepsTheOthers OneGoneKeepsTheOthers,
    OneOfTwins OneOfTwins,
    FirstFiveOfMany FirstOfMany(5) => c09_the_largest_batch_renews_every_one,
    FirstThirtyTwoOfMany FirstOfMany(32) => c09_the_largest_batch_renews_every_one,
    AllButTheLastOfMany FirstOfMany(249) => c09_the_largest_batch_renews_every_one,
    TiresOutSoon TiresOut::after(6),
    TiresOut TiresOut::after(12) => c09_a_grant_is_renewed_as_often_as_is_asked,
    RecreatesWhatWasReleased Recreates(|_| true),
    RecreatesReaders Recreates(|grant| grant.mode == Mode::Shared) => c09_renewal_of_an_expired_grant_creates_nothing,
    RecreatesReadersBesideWriters RecreatesReadersBesideWriters,
    RenewsForEveryOwner RenewsForEveryOwner,
}

fn with_lease(renewals: &[Renewal], lease: impl Fn(Duration) -> Duration) -> Vec<Renewal> {
    renewals.iter().map(|renewal| Renewal { ttl: lease(renewal.ttl), grant: renewal.grant.clone() }).collect()
}

struct Gives(fn(Duration) -> Duration);

#[async_trait]
impl Double for Gives {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        client.renew(&with_lease(renewals, self.0)).await
    }
}

struct RenewsNothing;

#[async_trait]
impl Double for RenewsNothing {
    async fn renew(&self, _: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        renewals.iter().map(|_| Ok(LeaseStatus::Held)).collect()
    }
}

struct RenewsOnlyTheFirst;

#[async_trait]
impl Double for RenewsOnlyTheFirst {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        client.renew(&renewals[..1]).await;
        renewals.iter().map(|_| Ok(LeaseStatus::Held)).collect()
    }
}

/// Of a grant that is in a batch twice, the first entry counts, as in a lookup that finds the first.
struct OneOfTwins;

#[async_trait]
impl Double for OneOfTwins {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let first = |renewal: &Renewal| renewals.iter().find(|other| other.grant.owner == renewal.grant.owner).cloned();
        client.renew(&renewals.iter().filter_map(first).collect::<Vec<_>>()).await
    }
}

/// So many of a batch are renewed, and the others are told so.
struct FirstOfMany(usize);

#[async_trait]
impl Double for FirstOfMany {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let mut answers = client.renew(&renewals[..renewals.len().min(self.0)]).await;
        answers.resize_with(renewals.len(), || Ok(LeaseStatus::Held));
        answers
    }
}

/// A grant is renewed so many times, and later only told so.
struct TiresOut {
    after: usize,
    renewed: Mutex<HashMap<OwnerId, usize>>,
}

impl TiresOut {
    fn after(after: usize) -> Self {
        Self { after, renewed: Mutex::default() }
    }

    fn is_tired_of(&self, renewal: &Renewal) -> bool {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let times = renewed.entry(renewal.grant.owner).or_default();
        *times += 1;
        *times > self.after
    }
}

#[async_trait]
impl Double for TiresOut {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let mut answers = Vec::new();
        for renewal in renewals {
            if self.is_tired_of(renewal) {
                answers.push(Ok(LeaseStatus::Held));
            } else {
                answers.extend(client.renew(std::slice::from_ref(renewal)).await);
            }
        }
        answers
    }
}

struct AnswersInReverse;

#[async_trait]
impl Double for AnswersInReverse {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let mut answers = client.renew(renewals).await;
        answers.reverse();
        answers
    }
}

struct ForgetsTheLastAnswer;

#[async_trait]
impl Double for ForgetsTheLastAnswer {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let mut answers = client.renew(renewals).await;
        if answers.len() > 1 {
            answers.pop();
        }
        answers
    }
}

/// What each of a batch is told if one of it is gone.
struct OneGone(fn(LeaseStatus) -> Result<LeaseStatus>);

#[async_trait]
impl Double for OneGone {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let answers = client.renew(renewals).await;
        if renewals.len() > 1 && answers.iter().any(|held| matches!(held, Ok(LeaseStatus::NotHeld))) {
            return answers.into_iter().map(|held| held.and_then(self.0)).collect();
        }
        answers
    }
}

/// Answers right, but renews nothing if one is gone, like a transaction that was rolled back.
struct OneGoneKeepsTheOthers;

#[async_trait]
impl Double for OneGoneKeepsTheOthers {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        // A lease of no length would end it; this one only shows who holds.
        let mut answers = Vec::new();
        for Renewal { grant, .. } in renewals {
            let claim = Claim { owner: grant.owner, ..Claim::new(&grant.key, grant.mode, Duration::from_secs(60)) };
            let held = client.store.inspect(&grant.key).await.is_ok_and(|seen| !seen.holders.is_empty());
            let ours = held && matches!(client.store.try_acquire(&claim).await, Ok(Attempt::Granted { .. }));
            answers.push(Ok(if ours { LeaseStatus::Held } else { LeaseStatus::NotHeld }));
        }
        if answers.iter().any(|held| matches!(held, Ok(LeaseStatus::NotHeld))) {
            return answers;
        }
        client.renew(renewals).await
    }
}

/// Which grants a renewal brings back.
struct Recreates(fn(&GrantRef) -> bool);

/// The answer to a claim, once its epoch would not be ahead of the clock.
async fn granted_in_time(client: &Client, claim: &Claim) -> Result<Attempt> {
    loop {
        match client.store.try_acquire(claim).await {
            Ok(Attempt::AHEAD_OF_THE_CLOCK) => tokio::time::sleep(Duration::from_millis(1)).await,
            answer => return answer,
        }
    }
}

#[async_trait]
impl Double for Recreates {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let mut answers = client.renew(renewals).await;
        for (Renewal { grant, ttl }, answer) in renewals.iter().zip(&mut answers) {
            let claim = Claim { owner: grant.owner, ..Claim::new(&grant.key, grant.mode, *ttl) };
            if self.0(grant) && matches!(granted_in_time(client, &claim).await, Ok(Attempt::Granted { .. })) {
                *answer = Ok(LeaseStatus::Held);
            }
        }
        answers
    }
}

/// A reader's row that is still there is prolonged, whatever was granted since.
struct RecreatesReadersBesideWriters;

#[async_trait]
impl Double for RecreatesReadersBesideWriters {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let answers = client.renew(renewals).await;
        let readers = renewals.iter().map(|renewal| renewal.grant.mode == Mode::Shared);
        answers
            .into_iter()
            .zip(readers)
            .map(|(held, reader)| if reader { Ok(LeaseStatus::Held) } else { held })
            .collect()
    }
}

/// Compares the key alone.
struct RenewsForEveryOwner;

#[async_trait]
impl Double for RenewsForEveryOwner {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let mut answers = client.renew(renewals).await;
        for (renewal, answer) in renewals.iter().zip(&mut answers) {
            if client.store.inspect(&renewal.grant.key).await.is_ok_and(|seen| !seen.holders.is_empty()) {
                *answer = Ok(LeaseStatus::Held);
            }
        }
        answers
    }
}
