//! Stores that give a detached lock to a new owner in a way that does not keep it from others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Attempt, Backend, Claim, FencingToken, GrantRef, LeaseStatus, Mode, OwnerId, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, TakeOver, TakesOver};

catches! {
    AttachesBySayingSo TakesOver(renews_instead),
    AttachesForTwoAtOnce TakesOver(looks_first) => c28_of_two_who_attach_at_once_one_has_the_lock,
    LetsTheOldOwnerRenew StillKnows::new(Step::Renew),
    LetsTheOldOwnerRelease StillKnows::new(Step::Release),
    AttachesWhatWasReleased TakesOver(takes_anew),
    AttachesUnderANewNumber TakesOver(releases_and_takes),
    AttachesForNoTime takes_over_for(|_| Duration::ZERO),
    AttachesForADay takes_over_for(|_| Duration::from_secs(86_400)),
    AttachesUnderAnyNumber TakesOver(any_number),
    TakesARepeatForAStranger once_only(),
}

/// Prolongs the lease, and changes no owner.
async fn renews_instead(client: Client, (grant, _, ttl): TakeOver) -> Result<LeaseStatus> {
    client.renew(&[Renewal { grant, ttl }]).await.remove(0)
}

/// Asks who has it, and then writes: two steps.
async fn looks_first(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let held = client.renew(&[Renewal { grant: grant.clone(), ttl: Duration::from_millis(1) }]).await.remove(0)?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    client.store.take_over(&grant, new_owner, ttl).await?;
    Ok(held)
}

/// Takes the key if nobody has it.
async fn takes_anew(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let held = client.store.take_over(&grant, new_owner, ttl).await?;
    if held == LeaseStatus::Held || !client.store.inspect(&grant.key).await?.holders.is_empty() {
        return Ok(held);
    }
    client.store.try_acquire(&Claim { owner: new_owner, ..Claim::new(&grant.key, grant.mode, ttl) }).await?;
    Ok(LeaseStatus::Held)
}

/// Frees the key, and takes it again.
async fn releases_and_takes(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let held = client.store.release(&grant).await?;
    if held == LeaseStatus::Held {
        let claim = Claim::new(&grant.key, Mode::Exclusive, ttl);
        client.store.try_acquire(&Claim { owner: new_owner, ..claim }).await?;
    }
    Ok(held)
}

fn takes_over_for(lease: fn(Duration) -> Duration) -> impl Double {
    TakesOver(move |client: Client, (grant, new_owner, ttl): TakeOver| async move {
        client.store.take_over(&grant, new_owner, lease(ttl)).await
    })
}

/// Believes the text.
async fn any_number(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let shown = client.store.inspect(&grant.key).await?;
    let token = shown.holders.first().and_then(|holder| holder.token);
    let grant = GrantRef { epoch: token.map(FencingToken::epoch), ..grant };
    client.store.take_over(&grant, new_owner, ttl).await
}

/// Asked again with the same new owner, it says no.
fn once_only() -> impl Double {
    let asked: Arc<Mutex<Vec<OwnerId>>> = Arc::default();
    TakesOver(move |client: Client, (grant, new_owner, ttl): TakeOver| {
        let again = asked.lock().unwrap().contains(&new_owner);
        asked.lock().unwrap().push(new_owner);
        async move { if again { Ok(LeaseStatus::NotHeld) } else { client.store.take_over(&grant, new_owner, ttl).await } }
    })
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Renew,
    /// And says that it did not.
    RenewInVain,
    Release,
}

/// Keeps the owner from before beside the new one, or the writer beside the reader that it became, for one step.
pub(crate) struct StillKnows {
    step: Step,
    now: Mutex<HashMap<OwnerId, GrantRef>>,
}

impl StillKnows {
    pub(crate) fn new(step: Step) -> Self {
        Self { step, now: Mutex::default() }
    }

    fn became(&self, before: &GrantRef, now: GrantRef) {
        self.now.lock().unwrap().insert(before.owner, now);
    }

    fn now(&self, grant: &GrantRef) -> GrantRef {
        self.now.lock().unwrap().get(&grant.owner).unwrap_or(grant).clone()
    }
}

#[async_trait]
impl Double for StillKnows {
    async fn take_over(&self, client: &Client, grant: &GrantRef, new: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let held = client.store.take_over(grant, new, ttl).await?;
        if held == LeaseStatus::Held {
            self.became(grant, GrantRef { owner: new, ..grant.clone() });
        }
        Ok(held)
    }

    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.downgrade(writer, claim).await?;
        if let Attempt::Granted { epoch } = attempt {
            self.became(writer, claim.grant(epoch));
        }
        Ok(attempt)
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        if self.step == Step::Release {
            return client.renew(renewals).await;
        }
        let now = |renewal: &Renewal| Renewal { grant: self.now(&renewal.grant), ttl: renewal.ttl };
        let changed: Vec<_> = renewals.iter().map(now).collect();
        let mut answers = client.renew(&changed).await;
        for ((asked, changed), answer) in renewals.iter().zip(&changed).zip(&mut answers) {
            if self.step == Step::RenewInVain && asked.grant != changed.grant {
                *answer = Ok(LeaseStatus::NotHeld);
            }
        }
        answers
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let grant = if self.step == Step::Release { self.now(grant) } else { grant.clone() };
        client.store.release(&grant).await
    }
}
