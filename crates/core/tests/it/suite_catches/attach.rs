//! Stores that give a detached lock to a new owner in a way that does not keep it from others.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Backend, Claim, GrantRef, LeaseStatus, Mode, OwnerId, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    AttachesBySayingSo RenewsInstead,
    AttachesForTwoAtOnce LooksFirst => c28_of_two_who_attach_at_once_one_has_the_lock,
    LetsTheOldOwnerRenew StillKnows::new(Step::Renew),
    LetsTheOldOwnerRelease StillKnows::new(Step::Release),
    AttachesWhatWasReleased TakesAnew,
    AttachesUnderANewNumber ReleasesAndTakes,
    AttachesForNoTime WithLease(|_| Duration::ZERO),
    AttachesForADay WithLease(|_| Duration::from_secs(86_400)),
    AttachesUnderAnyNumber AnyNumber,
    TakesARepeatForAStranger OnceOnly::default(),
}

/// Prolongs the lease, and changes no owner.
struct RenewsInstead;

#[async_trait]
impl Double for RenewsInstead {
    async fn take_over(&self, client: &Client, grant: &GrantRef, _: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        client.renew(&[Renewal { grant: grant.clone(), ttl }]).await.remove(0)
    }
}

/// Asks who has it, and then writes: two steps.
struct LooksFirst;

#[async_trait]
impl Double for LooksFirst {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let held = client.renew(&[Renewal { grant: grant.clone(), ttl: Duration::from_millis(1) }]).await.remove(0)?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.store.take_over(grant, new_owner, ttl).await?;
        Ok(held)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Renew,
    Release,
}

/// Keeps the old owner beside the new one, for one step.
struct StillKnows {
    step: Step,
    new_owners: Mutex<HashMap<OwnerId, OwnerId>>,
}

impl StillKnows {
    fn new(step: Step) -> Self {
        Self { step, new_owners: Mutex::default() }
    }

    fn owner(&self, step: Step, grant: &GrantRef) -> GrantRef {
        let known = self.new_owners.lock().ok().and_then(|owners| owners.get(&grant.owner).copied());
        let owner = known.filter(|_| step == self.step).unwrap_or(grant.owner);
        GrantRef { owner, ..grant.clone() }
    }
}

#[async_trait]
impl Double for StillKnows {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let held = client.store.take_over(grant, new_owner, ttl).await?;
        if let (LeaseStatus::Held, Ok(mut owners)) = (held, self.new_owners.lock()) {
            owners.insert(grant.owner, new_owner);
        }
        Ok(held)
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let known = |renewal: &Renewal| Renewal { grant: self.owner(Step::Renew, &renewal.grant), ttl: renewal.ttl };
        client.renew(&renewals.iter().map(known).collect::<Vec<_>>()).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        client.store.release(&self.owner(Step::Release, grant)).await
    }
}

/// Takes the key if nobody has it.
struct TakesAnew;

#[async_trait]
impl Double for TakesAnew {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let held = client.store.take_over(grant, new_owner, ttl).await?;
        let claim = Claim { owner: new_owner, ..Claim::new(&grant.key, grant.mode, ttl) };
        if held != LeaseStatus::Held && client.store.inspect(&grant.key).await?.holders.is_empty() {
            client.store.try_acquire(&claim).await?;
            return Ok(LeaseStatus::Held);
        }
        Ok(held)
    }
}

/// Frees the key, and takes it again.
struct ReleasesAndTakes;

#[async_trait]
impl Double for ReleasesAndTakes {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let held = client.store.release(grant).await?;
        if held == LeaseStatus::Held {
            let claim = Claim::new(&grant.key, Mode::Exclusive, ttl);
            client.store.try_acquire(&Claim { owner: new_owner, ..claim }).await?;
        }
        Ok(held)
    }
}

struct WithLease(fn(Duration) -> Duration);

#[async_trait]
impl Double for WithLease {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        client.store.take_over(grant, new_owner, (self.0)(ttl)).await
    }
}

/// Believes the text.
struct AnyNumber;

#[async_trait]
impl Double for AnyNumber {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let shown = client.store.inspect(&grant.key).await?;
        let token = shown.holders.first().and_then(|holder| holder.token);
        let grant = GrantRef { epoch: token.map(leasehold_core::FencingToken::epoch), ..grant.clone() };
        client.store.take_over(&grant, new_owner, ttl).await
    }
}

/// Asked again with the same new owner, it says no.
#[derive(Default)]
struct OnceOnly(Mutex<Vec<OwnerId>>);

#[async_trait]
impl Double for OnceOnly {
    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        let again = self.0.lock().is_ok_and(|mut owners| {
            owners.push(new_owner);
            owners.iter().filter(|owner| **owner == new_owner).count() > 1
        });
        if again { Ok(LeaseStatus::NotHeld) } else { client.store.take_over(grant, new_owner, ttl).await }
    }
}
