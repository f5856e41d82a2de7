//! Requests of which one changes a key while another, of the same grant, is under way. A step of two requests to the store, of
//! which the second does not ask whether the first is still true, carries out what was decided on an entry that is gone.

use std::time::Duration;

use super::context::{AMPLE, TestContext, eventually};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Capability, Claim, GrantRef, LeaseStatus, LockKey, Mode, OwnerId};

/// Longer than a case.
const LEASE: Duration = Duration::from_secs(120);

/// How often they meet, each time a little later than before.
const ROUNDS: u32 = 40;

/// As many rounds make the one as much later than the other as a request takes.
const STEPS: u32 = 10;

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
    async fn is_answered(self, client: &TestClient, grant: &GrantRef) -> Verdict {
        match self {
            Self::Release => until_answered(client, || client.store.release(grant)).await.map(drop),
            Self::ForcedRelease => {
                until_answered(client, || client.store.steps().force_release(&grant.key, None)).await.map(drop)
            }
        }
    }
}

/// A grant of a new key, and how long before its two requests each is to wait: so that they meet in every way, one waits for a
/// part of the time that the store takes to answer.
async fn grant(
    context: &TestContext,
    client: &TestClient,
    mode: Mode,
    round: u32,
) -> Result<(GrantRef, [Duration; 2]), Failure> {
    let asked = client.clock.now();
    let grant = client.claims(&context.key(), mode, LEASE).await?;
    let part = client.clock.now().since(asked) * (round / 2 % STEPS) / STEPS;
    let pauses = if round.is_multiple_of(2) { [part, Duration::ZERO] } else { [Duration::ZERO, part] };
    Ok((grant, pauses))
}

/// Does something after a pause that is shorter than timers count.
async fn after<T>(pause: Duration, client: &TestClient, then: impl Future<Output = T>) -> T {
    let begun = client.clock.now();
    while client.clock.now().since(begun) < pause {
        tokio::task::yield_now().await;
    }
    then.await
}

/// Changes a key while something of its holder is under way. The key is free when both have ended.
async fn is_free_after(
    context: &TestContext,
    [ours, theirs]: [&TestClient; 2],
    change: Change,
    late: Late,
    modes: &[Mode],
) -> Verdict {
    let who = if matches!(change, Change::Release) { ours } else { theirs };
    for round in 0..ROUNDS {
        for &mode in modes {
            let (grant, [first, second]) = grant(context, ours, mode, round).await?;
            let ((), answered) = futures::join!(
                after(first, ours, late.ends(ours, &grant)),
                after(second, who, change.is_answered(who, &grant))
            );
            answered?;
            // A node of several may be told a little later.
            let (key, looks) = (&grant.key, theirs.store.steps());
            let free = || async { Ok(looks.inspect(key).await.is_ok_and(|seen| seen.holders.is_empty())) };
            eventually(&format!("{key} is free, as nobody claimed it again"), free).await?;
        }
    }
    Ok(())
}

/// Gives a grant to a new owner while a renewal of the old one is under way: the new owner keeps it.
pub(super) async fn c28_a_renewal_beside_a_take_over_spares_the_new_owner(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for round in 0..ROUNDS {
        for &mode in context.modes() {
            let (old, [first, second]) = grant(&context, &ours, mode, round).await?;
            let new = GrantRef { owner: OwnerId::random(), ..old.clone() };
            let attach = until_answered(&theirs, || theirs.store.steps().take_over(&old, new.owner, LEASE));
            let ((), taken) =
                futures::join!(after(first, &ours, Late::Renewal.ends(&ours, &old)), after(second, &theirs, attach));
            let (taken, kept) = (taken?, until_answered(&theirs, || theirs.store.renew(&new, LEASE)).await?);
            ensure!(taken == LeaseStatus::Held, "{} was not taken over: {taken:?}", new.key);
            ensure!(kept == LeaseStatus::Held, "the new owner of {} lost it: {kept:?}", new.key);
            theirs.store.release(&new).await?;
        }
    }
    Ok(())
}

/// Asks until the store has answered.
async fn until_answered<T, F: Future<Output = crate::Result<T>>>(
    client: &TestClient,
    mut ask: impl FnMut() -> F,
) -> Result<T, Failure> {
    let limit = client.clock.now().plus(AMPLE);
    loop {
        match ask().await {
            Err(error) if error.is_transient() && client.clock.now() < limit => {}
            answer => return Ok(answer?),
        }
    }
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
async fn the_next_holder_is_spared(context: &TestContext, [ours, theirs]: [&TestClient; 2], late: Late) -> Verdict {
    for round in 0..ROUNDS {
        let (old, [first, second]) = grant(context, ours, Mode::Exclusive, round).await?;
        let ((), released, next) = futures::join!(
            after(first, ours, late.ends(ours, &old)),
            after(second, ours, Change::Release.is_answered(ours, &old)),
            next_grant(theirs, &old.key)
        );
        released?;
        let next = next?;
        let held = until_answered(theirs, || theirs.store.renew(&next, LEASE)).await?;
        ensure!(held == LeaseStatus::Held, "the next holder of {} lost it: {held:?}", next.key);
        theirs.store.release(&next).await?;
    }
    Ok(())
}

/// A renewal beside a release, and beside a forced one, and a downgrade beside a forced one.
pub(super) async fn c09_a_step_beside_a_release_brings_nothing_back(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let downgrades: &[_] =
        if context.subject.capabilities().has(Capability::Shared) { &[Mode::Exclusive] } else { &[] };
    let is_free = |change, late, modes| is_free_after(&context, [&ours, &theirs], change, late, modes);
    let released = is_free(Change::Release, Late::Renewal, context.modes());
    let forced = is_free(Change::ForcedRelease, Late::Renewal, context.modes());
    futures::try_join!(released, forced, is_free(Change::ForcedRelease, Late::Downgrade, downgrades)).map(|_| ())
}

/// A renewal, another release, and a forced release by token.
pub(super) async fn c20_a_step_beside_a_release_spares_the_next_holder(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let is_spared = |late| the_next_holder_is_spared(&context, [&ours, &theirs], late);
    let forced = async {
        let fenced = context.subject.capabilities().has(Capability::Fencing);
        if fenced { is_spared(Late::ForcedRelease).await } else { Ok(()) }
    };
    futures::try_join!(is_spared(Late::Renewal), is_spared(Late::Release), forced).map(|_| ())
}
