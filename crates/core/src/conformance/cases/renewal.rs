//! Renewals straight to the store: what each gives, alone and in a batch, and what it must not bring back.

use std::time::Duration;

use futures::future::try_join_all;

use super::admin::listed;
use super::context::{TestContext, outlast};
use crate::conformance::TestClient;
use crate::conformance::direct::WITHIN;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Capability, GrantRef, LeaseStatus, LockKey, Mode, OwnerId, Renewal, Result};

const LEASE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);

fn of(grant: &GrantRef, ttl: Duration) -> Renewal {
    Renewal { grant: grant.clone(), ttl }
}

async fn renews(client: &TestClient, renewals: &[Renewal]) -> Result<Vec<LeaseStatus>, Failure> {
    let answers = client.store.steps().renew(renewals, WITHIN).await;
    ensure!(answers.len() == renewals.len(), "{} answers to {} renewals", answers.len(), renewals.len());
    Ok(answers.into_iter().collect::<Result<_>>()?)
}

/// Why a grant cannot be renewed.
#[derive(Clone, Copy, Debug)]
enum Gone {
    Released,
    NeverHeld,
    AnothersNow,
}

impl Gone {
    const ALL: [Self; 3] = [Self::Released, Self::NeverHeld, Self::AnothersNow];

    async fn grant(self, ours: &TestClient, theirs: &TestClient, key: &LockKey) -> Result<GrantRef, Failure> {
        if let Self::NeverHeld = self {
            let (key, owner) = (key.clone(), OwnerId::random());
            return Ok(GrantRef { key, owner, mode: Mode::Exclusive, epoch: Some(1) });
        }
        let grant = ours.claims(key, Mode::Exclusive, LEASE).await?;
        ours.store.release(&grant).await?;
        if let Self::AnothersNow = self {
            theirs.claims(key, Mode::Exclusive, LEASE).await?;
        }
        Ok(grant)
    }
}

pub(super) async fn c09_a_renewal_gives_the_whole_lease_and_no_more(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let grant = ours.claims(&key, Mode::Exclusive, LEASE).await?;
    for lease in [LEASE, LONG] {
        let held = ours.store.renew(&grant, lease).await?;
        ensure!(held == LeaseStatus::Held, "the renewal of a held grant said {held:?}");
        theirs.sees_left(&key, lease).await?;
    }
    Ok(())
}

pub(super) async fn c09_a_renewal_never_shortens_the_lease(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let grant = ours.claims(&key, Mode::Exclusive, LONG).await?;
    // As one that was delayed on its way, and arrives after another asked for more.
    ours.store.renew(&grant, LEASE).await?;
    ours.sees_left(&key, LONG).await?;
    renews(&ours, &[of(&grant, LONG), of(&grant, LEASE)]).await?;
    ours.sees_left(&key, LONG).await
}

pub(super) async fn c09_of_two_renewals_of_one_grant_in_a_batch_the_longer_counts(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    for mode in context.modes() {
        let key = context.key();
        let grant = ours.claims(&key, *mode, LEASE).await?;
        let answers = renews(&ours, &[of(&grant, LONG), of(&grant, LONG * 2)]).await?;
        ensure!(answers == [LeaseStatus::Held; 2], "{answers:?} for {mode:?}");
        ours.sees_left(&key, LONG * 2).await?;
    }
    Ok(())
}

pub(super) async fn c09_the_largest_batch_renews_every_one(context: TestContext) -> Verdict {
    let (ours, stem) = (context.client().await?, context.key());
    let size = ours.store.steps().renewal_batch().min(1000);
    let keys = (0..size).map(|number| LockKey::new(format!("{stem}/{number}"))).collect::<Result<Vec<_>>>()?;
    let mut renewals = Vec::new();
    for some in keys.chunks(25) {
        let grants = try_join_all(some.iter().map(|key| ours.claims(key, Mode::Exclusive, LEASE))).await?;
        renewals.extend(grants.iter().map(|grant| of(grant, LONG)));
    }
    let answers = renews(&ours, &renewals).await?;
    let refused: Vec<_> = answers.iter().filter(|held| **held != LeaseStatus::Held).collect();
    ensure!(refused.is_empty(), "{refused:?} in a batch of {size}");
    let shown = listed(&ours, stem.as_str()).await?;
    let renewed = |key: &&LockKey| shown.get(*key).is_some_and(|by| by.iter().any(|by| by.remaining > Some(LEASE)));
    let renewed = keys.iter().filter(renewed).count();
    ensure!(renewed == size, "{renewed} of {size} were renewed, and all were told so");
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

pub(super) async fn c09_each_renewal_of_a_batch_gives_its_own_lease(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    let mut renewals = Vec::new();
    for number in 1..=5 {
        let grant = ours.claims(&context.key(), Mode::Exclusive, LEASE).await?;
        renewals.push(of(&grant, LONG * number));
    }
    let answers = renews(&ours, &renewals).await?;
    ensure!(answers.iter().all(|held| *held == LeaseStatus::Held), "{answers:?}");
    for renewal in &renewals {
        ours.sees_left(&renewal.grant.key, renewal.ttl).await?;
    }
    Ok(())
}

pub(super) async fn c09_a_batch_answers_each_in_its_place(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let leased = context.subject.capabilities().has(Capability::Lease);
    for (gone, size) in Gone::ALL.into_iter().flat_map(|gone| [(gone, 2), (gone, 3)]) {
        for place in 0..size {
            let mut renewals = Vec::new();
            for number in 0..size {
                let key = context.key();
                let grant = if number == place {
                    gone.grant(&ours, &theirs, &key).await?
                } else {
                    ours.claims(&key, Mode::Exclusive, LEASE).await?
                };
                renewals.push(of(&grant, LONG));
            }
            let answers = renews(&ours, &renewals).await?;
            for (number, (held, renewal)) in answers.iter().zip(&renewals).enumerate() {
                let expected = number != place;
                ensure!(
                    (*held == LeaseStatus::Held) == expected,
                    "{answers:?} for a batch whose number {place} is {gone:?}"
                );
                if expected && leased {
                    ours.sees_left(&renewal.grant.key, LONG).await?;
                }
            }
        }
    }
    Ok(())
}

pub(super) async fn c09_an_expired_grant_that_nobody_took_is_not_renewed(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let grant = ours.claims_briefly(&key, Mode::Exclusive, context.brief_ttl()).await?;
    outlast(context.brief_ttl()).await;
    let held = ours.store.renew(&grant, LEASE).await?;
    ensure!(held != LeaseStatus::Held, "the renewal of an expired grant said {held:?}");
    theirs.sees_nobody(&key).await
}

pub(super) async fn c09_an_expired_reader_is_not_renewed(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let stale = ours.claims_briefly(&key, Mode::Shared, context.brief_ttl()).await?;
    // Another reader keeps what the store has of the key alive.
    theirs.claims(&key, Mode::Shared, LEASE).await?;
    outlast(context.brief_ttl()).await;
    let held = ours.store.renew(&stale, LEASE).await?;
    ensure!(held != LeaseStatus::Held, "the renewal of an expired reader said {held:?}");
    let holders = theirs.store.steps().inspect(&key).await?.holders;
    ensure!(holders.len() == 1, "{holders:?}");
    Ok(())
}

pub(super) async fn c09_an_expired_reader_is_not_renewed_beside_a_writer(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let stale = ours.claims_briefly(&key, Mode::Shared, context.brief_ttl()).await?;
    outlast(context.brief_ttl()).await;
    let writer = theirs.take(&key, &super::context::past(context.brief_ttl())).await?;
    let held = ours.store.renew(&stale, LEASE).await?;
    ensure!(held != LeaseStatus::Held, "beside a writer the renewal of an expired reader said {held:?}");
    let holders = theirs.store.steps().inspect(&key).await?.holders;
    ensure!(holders.len() == 1 && holders[0].mode == Mode::Exclusive, "{holders:?}");
    drop(writer);
    Ok(())
}
