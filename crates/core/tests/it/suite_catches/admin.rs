//! The operator's view, broken.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use leasehold_core::conformance::report;
use leasehold_core::{
    Attempt, Backend, Claim, Cursor, FencingToken, GrantRef, Holder, Holders, LeaseStatus, LockKey, Mode, OwnerId,
    Page, Result,
};
use leasehold_testkit::test;

use crate::suite_catches::double::{Broken, Client, Double, Forces, Inspects, Lists};
use crate::suite_catches::{MODEL, catches};

catches! {
    ShowsWhatExpired ShowsWhatExpired::in_both(),
    ListsWhatExpired ShowsWhatExpired::in_listings(),
    ShowsAlwaysFiveSeconds Inspects(|seen| each(seen, |holder| holder.remaining = Some(Duration::from_secs(5)))),
    ShowsNothingLeft Inspects(|seen| each(seen, |holder| holder.remaining = None)),
    ShowsWhenItWasRenewed ShowsWhenItWasRenewed,
    ShowsHeldSinceAlways Inspects(|seen| each(seen, |holder| holder.granted_at = Some(SystemTime::UNIX_EPOCH))),
    ShowsNoLabel Inspects(|seen| each(seen, |holder| holder.label = None)),
    ShowsAnotherToken Inspects(|seen| each(seen, |holder| holder.token = Some(FencingToken::of_epoch(1)))),
    CutsTexts Inspects(|seen| each(seen, |holder| relabel(holder, |label| label.chars().take(64).collect()))),
    TrimsTexts Inspects(|seen| each(seen, |holder| relabel(holder, |label| label.trim_end_matches(' ').to_owned()))),
    ShowsOneReader Inspects(|seen| seen.holders.truncate(1)),
    ListsByPattern Lists(lists_by_pattern) => c25_list_takes_the_prefix_literally,
    ListsOnePage lists(|page| page.next = None) => c25_list_pages_through_held_keys,
    ListsWritersOnly lists(|page| page.keys.retain(|key| key.holders.iter().any(|one| one.mode == Mode::Exclusive))),
    ListsWithoutCase Lists(lists_without_case),
    ListsUpToAPageOfEnded ListsUpToAPageOfEnded::default() => c25_list_goes_on_behind_what_has_ended,
    ForcesNothing Forces(forces_nothing),
    ForcesWhoeverHoldsIt Forces(forces_whoever_holds_it),
    ForcesNoGrantAlone Forces(forces_no_grant_alone),
}

pub(crate) fn each(seen: &mut Holders, change: fn(&mut Holder)) {
    seen.holders.iter_mut().for_each(change);
}

fn relabel(holder: &mut Holder, change: fn(&String) -> String) {
    holder.label = holder.label.as_ref().map(change);
}

/// Keeps what was claimed last, and shows it until it is released.
struct ShowsWhatExpired {
    inspects: bool,
    claims: Mutex<HashMap<LockKey, OwnerId>>,
}

impl ShowsWhatExpired {
    fn in_both() -> Self {
        Self { inspects: true, ..Self::in_listings() }
    }

    fn in_listings() -> Self {
        Self { inspects: false, claims: Mutex::default() }
    }

    fn shown(&self, key: &LockKey) -> Holders {
        let claimed = self.claims.lock().unwrap().contains_key(key);
        Holders::new(key, claimed.then(|| Holder::new(Mode::Exclusive)).into_iter().collect())
    }
}

#[async_trait]
impl Double for ShowsWhatExpired {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        if let Attempt::Granted { .. } = attempt {
            self.claims.lock().unwrap().insert(claim.key.clone(), claim.owner);
        }
        Ok(attempt)
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        self.claims.lock().unwrap().retain(|_, owner| *owner != grant.owner);
        client.store.release(grant).await
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let seen = client.store.inspect(key).await?;
        Ok(if seen.holders.is_empty() && self.inspects { self.shown(key) } else { seen })
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut page = client.store.list(prefix, after).await?;
        let key = LockKey::new(prefix).ok().filter(|key| page.keys.iter().all(|seen| seen.key != *key));
        page.keys.extend(key.map(|key| self.shown(&key)).filter(|stale| !stale.holders.is_empty()));
        Ok(page)
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

fn lists(change: fn(&mut Page)) -> impl Double {
    Lists(move |client: Client, (prefix, after): (String, Option<Cursor>)| async move {
        let mut page = client.store.list(&prefix, after.as_ref()).await?;
        change(&mut page);
        Ok(page)
    })
}

/// As `LIKE` does.
async fn lists_by_pattern(client: Client, (prefix, after): (String, Option<Cursor>)) -> Result<Page> {
    let stem = prefix.split(['%', '_', '*', '?']).next().unwrap_or_default();
    client.store.list(if prefix.contains("%a") { stem } else { &prefix }, after.as_ref()).await
}

/// As `LIKE` does where it folds case.
async fn lists_without_case(client: Client, (prefix, after): (String, Option<Cursor>)) -> Result<Page> {
    let mut page = client.store.list("", after.as_ref()).await?;
    let like = |key: &str| key.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(&prefix));
    page.keys.retain(|seen| like(seen.key.as_str()));
    Ok(page)
}

/// The author is told of the listing, and not of a store that failed.
#[test(multi_thread)]
async fn a_listing_of_other_keys_is_told_as_such() -> std::result::Result<(), String> {
    for _ in 0..5 {
        let failed = report(Arc::new(Broken::new(Box::new(Lists(lists_without_case)))), Some(MODEL)).await.failed;
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
        self.0.lock().unwrap().insert(claim.key.clone());
        client.store.try_acquire(claim).await
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        const PAGE: usize = 100;
        let rows: Vec<_> = {
            let all = self.0.lock().unwrap();
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

pub(crate) async fn forces_nothing(client: Client, (key, _): (LockKey, Option<u64>)) -> Result<Holders> {
    client.store.inspect(&key).await
}

/// Ignores which grant is meant.
async fn forces_whoever_holds_it(client: Client, (key, _): (LockKey, Option<u64>)) -> Result<Holders> {
    client.store.force_release(&key, None).await
}

/// Never finds the one that is meant.
async fn forces_no_grant_alone(client: Client, (key, only): (LockKey, Option<u64>)) -> Result<Holders> {
    match only {
        None => client.store.force_release(&key, None).await,
        Some(_) => Ok(Holders::new(&key, Vec::new())),
    }
}
