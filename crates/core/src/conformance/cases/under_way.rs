//! Requests of which one changes a key while another, of the same grant, is under way. A step of two requests to the store, of
//! which the second does not ask whether the first is still true, carries out what was decided on an entry that is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::context::{AMPLE, TestContext, eventually};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict};
use crate::{Attempt, Claim, GrantRef, LeaseStatus, LockKey, Mode};

/// Longer than a case.
const LEASE: Duration = Duration::from_secs(120);

/// As many keys at one moment, so that the requests for them meet in every order.
const KEYS: usize = 32;

/// What is under way.
#[derive(Clone, Copy)]
enum Late {
    Renewal,
    Release,
    ForcedRelease,
    Downgrade,
}

impl Late {
    /// Sends it, and waits for its end. Its answer may be any.
    async fn ends(self, client: &TestClient, grant: &GrantRef) {
        match self {
            Self::Renewal => drop(client.store.renew(grant, LEASE).await),
            Self::Release => drop(client.store.release(grant).await),
            Self::ForcedRelease => drop(client.store.steps().force_release(&grant.key, grant.epoch).await),
            Self::Downgrade => {
                let claim = Claim::new(&grant.key, Mode::Shared, LEASE);
                drop(client.store.steps().downgrade(grant, &claim).await);
            }
        }
    }
}

/// What is done to a grant while something of it is under way.
#[derive(Clone, Copy)]
enum Change {
    Release,
    ForcedRelease,
}

impl Change {
    /// Asks until the store has answered.
    async fn is_answered(self, client: &TestClient, grant: &GrantRef) -> Verdict {
        let limit = client.clock.now().plus(AMPLE);
        loop {
            let answer = match self {
                Self::Release => client.store.release(grant).await.map(drop),
                Self::ForcedRelease => client.store.steps().force_release(&grant.key, None).await.map(drop),
            };
            match answer {
                Err(error) if error.is_transient() && client.clock.now() < limit => {}
                answer => return Ok(answer?),
            }
        }
    }
}

/// Grants of as many keys as meet.
async fn grants(context: &TestContext, client: &Arc<TestClient>, mode: Mode) -> Result<Vec<GrantRef>, Failure> {
    let mut claiming = JoinSet::new();
    for _ in 0..KEYS {
        let (client, key) = (Arc::clone(client), context.key());
        claiming.spawn(async move { client.claims(&key, mode, LEASE).await });
    }
    claiming.join_all().await.into_iter().collect()
}

/// Changes a key by one client while something of its holder is under way, and answers the clients. The key is free when both
/// have ended.
async fn is_free_after(context: &TestContext, change: Change, late: Late, modes: &[Mode]) -> Verdict {
    let (ours, theirs) = (Arc::new(context.client().await?), Arc::new(context.client().await?));
    for &mode in modes {
        let mut all = JoinSet::new();
        for grant in grants(context, &ours, mode).await? {
            let (ours, theirs) = (Arc::clone(&ours), Arc::clone(&theirs));
            all.spawn(async move {
                let who = if matches!(change, Change::Release) { &ours } else { &theirs };
                let ((), answered) = futures::join!(late.ends(&ours, &grant), change.is_answered(who, &grant));
                answered?;
                // A node of several may be told a little later.
                let (key, looks) = (&grant.key, theirs.store.steps());
                let free = || async { Ok(looks.inspect(key).await.is_ok_and(|seen| seen.holders.is_empty())) };
                eventually(&format!("{key} is free, as nobody claimed it again"), free).await
            });
        }
        for is_free in all.join_all().await {
            is_free?;
        }
    }
    Ok(())
}

/// Asks for a key until it is granted.
async fn next_grant(client: &TestClient, key: &LockKey) -> Result<GrantRef, Failure> {
    let (claim, limit) = (Claim::new(key, Mode::Exclusive, LEASE), client.clock.now().plus(AMPLE));
    loop {
        match client.store.try_acquire(&claim).await {
            Ok(Attempt::Granted { epoch }) => return Ok(claim.grant(epoch)),
            Err(error) if !error.is_transient() => return Err(error.into()),
            _ if client.clock.now() < limit => tokio::task::yield_now().await,
            other => return Err(Failure(format!("{key} was released, and is not granted: {other:?}"))),
        }
    }
}

/// Releases a grant while something else of it is under way and another client asks for the key: that client keeps it.
async fn the_next_holder_is_spared(context: &TestContext, late: Late) -> Verdict {
    let (ours, theirs) = (Arc::new(context.client().await?), Arc::new(context.client().await?));
    let mut all = JoinSet::new();
    for old in grants(context, &ours, Mode::Exclusive).await? {
        let (ours, theirs) = (Arc::clone(&ours), Arc::clone(&theirs));
        all.spawn(async move {
            let releasing = Change::Release.is_answered(&ours, &old);
            let ((), released, next) = futures::join!(late.ends(&ours, &old), releasing, next_grant(&theirs, &old.key));
            released?;
            let (next, limit) = (next?, theirs.clock.now().plus(AMPLE));
            loop {
                match theirs.store.renew(&next, LEASE).await {
                    Err(error) if error.is_transient() && theirs.clock.now() < limit => {}
                    Ok(LeaseStatus::Held) => return Ok(()),
                    other => return Err(Failure(format!("the next holder of {} lost it: {other:?}", next.key))),
                }
            }
        });
    }
    all.join_all().await.into_iter().collect()
}

pub(super) async fn c09_a_renewal_beside_a_release_brings_nothing_back(context: TestContext) -> Verdict {
    is_free_after(&context, Change::Release, Late::Renewal, context.modes()).await
}

pub(super) async fn c09_a_renewal_beside_a_forced_release_brings_nothing_back(context: TestContext) -> Verdict {
    is_free_after(&context, Change::ForcedRelease, Late::Renewal, context.modes()).await
}

pub(super) async fn c09_a_renewal_beside_a_release_spares_the_next_holder(context: TestContext) -> Verdict {
    the_next_holder_is_spared(&context, Late::Renewal).await
}

pub(super) async fn c20_a_release_that_is_sent_twice_spares_the_next_holder(context: TestContext) -> Verdict {
    the_next_holder_is_spared(&context, Late::Release).await
}

pub(super) async fn c25_a_forced_release_by_token_beside_a_release_spares_the_next_holder(
    context: TestContext,
) -> Verdict {
    the_next_holder_is_spared(&context, Late::ForcedRelease).await
}

pub(super) async fn c29_a_downgrade_beside_a_forced_release_brings_nothing_back(context: TestContext) -> Verdict {
    is_free_after(&context, Change::ForcedRelease, Late::Downgrade, &[Mode::Exclusive]).await
}
