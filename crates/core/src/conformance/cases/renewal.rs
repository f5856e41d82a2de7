//! Renewals straight to the store: what each gives, alone and in a batch.

use std::time::Duration;

use futures::future::try_join_all;

use super::admin::listed;
use super::context::TestContext;
use crate::conformance::direct::WITHIN;
use crate::conformance::model::ENDINGS;
use crate::conformance::verdict::{Verdict, ensure};
use crate::{LeaseStatus, LockKey, Mode, Renewal, Result};

const LEASE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);

pub(super) async fn c09_the_largest_batch_renews_every_one(context: TestContext) -> Verdict {
    let (ours, stem) = (context.client().await?, context.key());
    let size = ours.store.steps().renewal_batch().min(1000);
    // What separates the keys of a batch may be in one.
    let key = |number| LockKey::new(format!("{stem}{},/{number}", ENDINGS[number % ENDINGS.len()]));
    let keys = (0..size).map(key).collect::<Result<Vec<_>>>()?;
    let mut renewals = Vec::new();
    for some in keys.chunks(25) {
        let grants = try_join_all(some.iter().map(|key| ours.claims(key, Mode::Exclusive, LEASE))).await?;
        renewals.extend(grants.into_iter().map(|grant| Renewal { grant, ttl: LEASE }));
    }
    // A few are gone, so that an answer in the place of another is seen. They are in no order of the keys.
    let is_gone = |place: usize| place % 7 == 3;
    let gone = renewals.iter().enumerate().filter(|(place, _)| is_gone(*place)).map(|(_, renewal)| &renewal.grant);
    for some in gone.collect::<Vec<_>>().chunks(25) {
        try_join_all(some.iter().map(|grant| ours.store.release(grant))).await?;
    }
    // Each for a time of its own.
    for (place, renewal) in renewals.iter_mut().enumerate() {
        renewal.ttl = LONG + Duration::from_millis(37 * place as u64);
    }
    let asked = ours.clock.now();
    let answers = ours.store.steps().renew(&renewals, WITHIN).await.into_iter().collect::<Result<Vec<_>>>()?;
    ensure!(answers.len() == size, "{} answers to {size} renewals", answers.len());
    let is_wrong = |(place, held): &(usize, &LeaseStatus)| (**held == LeaseStatus::Held) == is_gone(*place);
    let wrong: Vec<_> = answers.iter().enumerate().filter(is_wrong).collect();
    ensure!(wrong.is_empty(), "(place, answer) {wrong:?} in a batch of {size}, of which each seventh was released");
    let shown = listed(&ours, stem.as_str()).await?;
    let passed = ours.clock.now().since(asked);
    let rounded = Duration::from_millis(5) + context.subject.capabilities().lease_granularity();
    for (_, Renewal { grant, ttl }) in renewals.iter().enumerate().filter(|(place, _)| !is_gone(*place)) {
        let left = shown.get(&grant.key).and_then(|holders| holders.first()?.remaining);
        let is_right = left.is_some_and(|left| left <= *ttl + rounded && left + passed + rounded >= *ttl);
        ensure!(is_right, "{left:?} left of {:?}, {passed:?} after it was renewed for {ttl:?}", grant.key);
    }
    Ok(())
}

pub(super) async fn c09_a_grant_is_renewed_as_often_as_is_asked(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    for mode in context.modes() {
        let key = context.key();
        let grant = ours.claims(&key, *mode, LEASE).await?;
        for number in 1..=100 {
            let held = ours.store.renew(&grant, LEASE * number).await?;
            ensure!(held == LeaseStatus::Held, "renewal {number} of a held grant, {mode:?}, said {held:?}");
        }
        ours.sees_left(&key, LEASE * 100).await?;
    }
    Ok(())
}
