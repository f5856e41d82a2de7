//! Renewals, broken.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use leasehold_core::LeaseStatus::{Held, NotHeld};
use leasehold_core::{Attempt, Claim, FencingToken, GrantRef, LeaseStatus, Mode, OwnerId, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, renews, renews_for};

catches! {
    GivesADay renews_for(|renewal| renewal.ttl = Duration::from_secs(86_400)),
    ReadersGetHalfTheLease renews_for(readers_get_half) => c05_nobody_is_granted_before_the_guard_gives_up,
    RenewsOnlyTheFirst first_of_many(1),
    AllButTheLastOfMany first_of_many(249) => c09_the_largest_batch_renews_every_one,
    AnswersInReverse says(|answers| answers.reverse()),
    ForgetsTheLastAnswer says(|answers| answers.truncate(answers.len().max(2) - 1)),
    HoldsOnToWhatWasForcedLongAgo renews(holds_on_to_what_was_forced)
        => c25_force_release_frees_the_key_and_tells_the_holder,
    OneGoneKeepsTheOthers renews(one_gone_keeps_the_others),
    OneOfTwins renews(one_of_twins),
    TiresOut tires_out(12) => c09_a_grant_is_renewed_as_often_as_is_asked,
    RecreatesWhatWasReleased recreates(|_| true),
    RecreatesReaders recreates(|grant| grant.mode == Mode::Shared),
    RenewsForEveryOwner renews(renews_for_every_owner),
}

fn readers_get_half(renewal: &mut Renewal) {
    if renewal.grant.mode == Mode::Shared {
        renewal.ttl /= 2;
    }
}

/// So many of a batch are renewed, and the others are told so.
fn first_of_many(most: usize) -> Double {
    renews(move |client: Client, renewals: Vec<Renewal>| async move {
        let mut answers = client.renew(&renewals[..renewals.len().min(most)]).await;
        answers.resize_with(renewals.len(), || Ok(Held));
        answers
    })
}

type Answers = Vec<Result<LeaseStatus>>;

/// Renews, and says something else.
fn says(change: fn(&mut Answers)) -> Double {
    renews(move |client: Client, renewals: Vec<Renewal>| async move {
        let mut answers = client.renew(&renewals).await;
        change(&mut answers);
        answers
    })
}

/// What was ended by force is told as held, once the key has been granted ten seconds later.
async fn holds_on_to_what_was_forced(client: Client, renewals: Vec<Renewal>) -> Answers {
    let mut answers = client.renew(&renewals).await;
    for (Renewal { grant, .. }, answer) in renewals.iter().zip(&mut answers) {
        let newest = client.granted(&grant.key).last().and_then(|newest| newest.epoch);
        let long_ago = grant.epoch.map(|epoch| epoch + FencingToken::epoch_at(Duration::from_secs(10)));
        if matches!(answer, Ok(LeaseStatus::ForceReleased)) && long_ago.is_some() && newest > long_ago {
            *answer = Ok(Held);
        }
    }
    answers
}

/// Of a grant that is in a batch twice, the first entry counts, as in a lookup that finds the first.
async fn one_of_twins(client: Client, renewals: Vec<Renewal>) -> Answers {
    let first = |renewal: &Renewal| renewals.iter().find(|other| other.grant.owner == renewal.grant.owner).cloned();
    client.renew(&renewals.iter().filter_map(first).collect::<Vec<_>>()).await
}

/// A grant is renewed so many times, and later only told so: a renewal for no time prolongs nothing.
fn tires_out(after: usize) -> Double {
    let renewed: Mutex<HashMap<OwnerId, usize>> = Mutex::default();
    renews(move |client: Client, mut renewals: Vec<Renewal>| {
        for renewal in &mut renewals {
            let mut renewed = renewed.lock().unwrap();
            let times = renewed.entry(renewal.grant.owner).or_default();
            *times += 1;
            if *times > after {
                renewal.ttl = Duration::ZERO;
            }
        }
        async move { client.renew(&renewals).await }
    })
}

fn claim_of(Renewal { grant, ttl }: &Renewal) -> Claim {
    Claim { owner: grant.owner, ..Claim::new(&grant.key, grant.mode, *ttl) }
}

async fn is_held(client: &Client, grant: &GrantRef) -> bool {
    client.holders(&grant.key).await.is_ok_and(|holders| !holders.is_empty())
}

/// Answers right, but renews nothing if one is gone, like a transaction that was rolled back.
async fn one_gone_keeps_the_others(client: Client, renewals: Vec<Renewal>) -> Answers {
    let mut answers = Vec::new();
    for renewal in &renewals {
        // A claim of who has it already prolongs nothing; this one only shows who holds.
        let ours = is_held(&client, &renewal.grant).await
            && matches!(client.claim(&claim_of(renewal)).await, Ok(Attempt::Granted { .. }));
        answers.push(Ok(if ours { Held } else { NotHeld }));
    }
    if answers.iter().any(|held| matches!(held, Ok(NotHeld))) { answers } else { client.renew(&renewals).await }
}

/// Brings these grants back.
fn recreates(which: fn(&GrantRef) -> bool) -> Double {
    renews(move |client: Client, renewals: Vec<Renewal>| async move {
        let mut answers = client.renew(&renewals).await;
        for (renewal, answer) in renewals.iter().zip(&mut answers) {
            let claim = claim_of(renewal);
            if which(&renewal.grant) && matches!(client.claim_in_time(&claim).await, Ok(Attempt::Granted { .. })) {
                *answer = Ok(Held);
            }
        }
        answers
    })
}

/// Compares the key alone.
async fn renews_for_every_owner(client: Client, renewals: Vec<Renewal>) -> Answers {
    let mut answers = client.renew(&renewals).await;
    for (renewal, answer) in renewals.iter().zip(&mut answers) {
        if is_held(&client, &renewal.grant).await {
            *answer = Ok(Held);
        }
    }
    answers
}
