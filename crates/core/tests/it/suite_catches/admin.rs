//! The operator's view, broken.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use leasehold_core::conformance::report;
use leasehold_core::{
    Attempt, Backend, Claim, Cursor, FencingToken, GrantRef, Holder, Holders, LeaseStatus, LockKey, Mode, Page,
    Renewal, Result,
};
use leasehold_testkit::test;

use crate::suite_catches::double::{Broken, Client, Double};
use crate::suite_catches::{MODEL, catches};

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
    TrimsTexts Shows(|holder| holder.label = holder.label.take().map(|label| label.trim_end_matches(' ').to_owned())),
    ListsByPattern ListsByPattern => c25_list_takes_the_prefix_literally,
    ListsOnePage ListsOnePage => c25_list_pages_through_held_keys,
    ListsWithoutCase ListsWithoutCase,
    ListsUpToAPageOfEnded ListsUpToAPageOfEnded::default() => c25_list_goes_on_behind_what_has_ended,
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

/// As `LIKE` does where it folds case.
struct ListsWithoutCase;

#[async_trait]
impl Double for ListsWithoutCase {
    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut page = client.store.list("", after).await?;
        let like = |key: &str| key.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        page.keys.retain(|seen| like(seen.key.as_str()));
        Ok(page)
    }
}

/// The author is told of the listing, and not of a store that failed.
#[test(multi_thread)]
async fn a_listing_of_other_keys_is_told_as_such() -> std::result::Result<(), String> {
    for _ in 0..5 {
        let failed = report(Arc::new(Broken::new(Box::new(ListsWithoutCase))), Some(MODEL)).await.failed;
        if let Some((_, told)) = failed.into_iter().next() {
            let is_named = told.starts_with("C25") && told.contains("the listing of what begins with");
            return if is_named { Ok(()) } else { Err(told) };
        }
    }
    Err("it passes".to_owned())
}

/// Reads a page of rows, leaves out those that have ended, and takes a page that is not full then for the last one.
#[derive(Default)]
struct ListsUpToAPageOfEnded(Mutex<BTreeSet<LockKey>>);

#[async_trait]
impl Double for ListsUpToAPageOfEnded {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(claim.key.clone());
        client.store.try_acquire(claim).await
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        const PAGE: usize = 100;
        let rows: Vec<_> = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let behind = |key: &&LockKey| after.is_none_or(|after| key.as_str() > after.0.as_str());
            all.iter().filter(|key| key.as_str().starts_with(prefix)).filter(behind).take(PAGE).cloned().collect()
        };
        let mut keys = Vec::new();
        for key in &rows {
            keys.push(client.store.inspect(key).await?);
        }
        keys.retain(|seen| !seen.holders.is_empty());
        let is_full = keys.len() == PAGE;
        let next = rows.last().filter(|_| is_full).map(|last| Cursor(last.as_str().to_owned()));
        Ok(Page { keys, next })
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
