//! The operator's view, broken.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Cursor, FencingToken, GrantRef, Holder, Holders, LeaseStatus, LockKey, Mode, Page,
    Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    ShowsWhatExpired ShowsWhatExpired::in_both(),
    ListsWhatExpired ShowsWhatExpired::in_listings(),
    ShowsAlwaysFiveSeconds Shows(|holder| holder.remaining = Some(Duration::from_secs(5))),
    ShowsNothingLeft Shows(|holder| holder.remaining = None),
    ShowsWhenItWasRenewed ShowsWhenItWasRenewed,
    ShowsHeldSinceAlways Shows(|holder| holder.granted_at = Some(SystemTime::UNIX_EPOCH)),
    ShowsNoLabel Shows(|holder| holder.label = None),
    ShowsAnotherToken Shows(|holder| holder.token = Some(FencingToken::of_epoch(1))),
    CutsTexts Shows(|holder| holder.label = holder.label.take().map(|label| label.chars().take(64).collect())),
    ListsByPattern ListsByPattern => c25_list_takes_the_prefix_literally,
    ListsOnePage ListsOnePage => c25_list_pages_through_held_keys,
    TrimsTexts Shows(|holder| holder.label = holder.label.take().map(|label| label.trim_end_matches(' ').to_owned())),
    ForcesNothing ForcesNothing,
    ForcesWhoeverHoldsIt ForcesWhoeverHoldsIt,
    ForcesNoGrantAlone ForcesNoGrantAlone,
    ForgetsThatItWasForced ForgetsThatItWasForced => c25_force_release_frees_the_key_and_tells_the_holder,
}

/// Keeps what was claimed last, and shows it until it is released.
struct ShowsWhatExpired {
    inspects: bool,
    claims: Mutex<HashMap<LockKey, Claim>>,
}

impl ShowsWhatExpired {
    fn in_both() -> Self {
        Self { inspects: true, claims: Mutex::default() }
    }

    fn in_listings() -> Self {
        Self { inspects: false, claims: Mutex::default() }
    }

    fn shown(&self, key: &LockKey) -> Vec<Holder> {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.get(key).map(|_| Holder::new(Mode::Exclusive)).into_iter().collect()
    }
}

#[async_trait]
impl Double for ShowsWhatExpired {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        if let Attempt::Granted { .. } = attempt {
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            claims.insert(claim.key.clone(), claim.clone());
        }
        Ok(attempt)
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let ours = |_: &LockKey, claim: &mut Claim| claim.owner != grant.owner;
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).retain(ours);
        client.store.release(grant).await
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let seen = client.store.inspect(key).await?;
        let stale = seen.holders.is_empty() && self.inspects;
        Ok(if stale { Holders::new(key, self.shown(key)) } else { seen })
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut page = client.store.list(prefix, after).await?;
        let key = LockKey::new(prefix).ok().filter(|key| page.keys.iter().all(|seen| seen.key != *key));
        let stale = key.map(|key| Holders::new(&key, self.shown(&key)));
        page.keys.extend(stale.filter(|stale| !stale.holders.is_empty()));
        Ok(page)
    }
}

/// What is shown of a holder.
struct Shows(fn(&mut Holder));

#[async_trait]
impl Double for Shows {
    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        seen.holders.iter_mut().for_each(self.0);
        Ok(seen)
    }
}

/// Takes what is left of the lease for what is left of the first one.
struct ShowsWhenItWasRenewed;

#[async_trait]
impl Double for ShowsWhenItWasRenewed {
    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        for holder in &mut seen.holders {
            let ends = SystemTime::UNIX_EPOCH + client.clock.since_1970() + holder.remaining.unwrap_or_default();
            holder.granted_at = Some(ends - Duration::from_secs(60));
        }
        Ok(seen)
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut page = client.store.list(prefix, after).await?;
        for held in &mut page.keys {
            held.holders = self.inspect(client, &held.key).await?.holders;
        }
        Ok(page)
    }
}

/// As `LIKE` does.
struct ListsByPattern;

#[async_trait]
impl Double for ListsByPattern {
    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let stem = prefix.split(['%', '_', '*', '?']).next().unwrap_or_default();
        client.store.list(if prefix.contains("%a") { stem } else { prefix }, after).await
    }
}

struct ListsOnePage;

#[async_trait]
impl Double for ListsOnePage {
    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        Ok(Page { next: None, ..client.store.list(prefix, after).await? })
    }
}

pub(crate) struct ForcesNothing;

#[async_trait]
impl Double for ForcesNothing {
    async fn force_release(&self, client: &Client, key: &LockKey, _only: Option<u64>) -> Result<Holders> {
        client.store.inspect(key).await
    }
}

struct ForgetsThatItWasForced;

#[async_trait]
impl Double for ForgetsThatItWasForced {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let answers = client.renew(renewals).await;
        answers
            .into_iter()
            .map(|held| held.map(|held| if held == LeaseStatus::ForceReleased { LeaseStatus::NotHeld } else { held }))
            .collect()
    }
}

/// Ignores which grant is meant.
struct ForcesWhoeverHoldsIt;

#[async_trait]
impl Double for ForcesWhoeverHoldsIt {
    async fn force_release(&self, client: &Client, key: &LockKey, _only: Option<u64>) -> Result<Holders> {
        client.store.force_release(key, None).await
    }
}

/// Never finds the one that is meant.
struct ForcesNoGrantAlone;

#[async_trait]
impl Double for ForcesNoGrantAlone {
    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        match only {
            None => client.store.force_release(key, None).await,
            Some(_) => Ok(Holders::new(key, Vec::new())),
        }
    }
}
