//! The operator's view, broken.

use std::time::{Duration, SystemTime};

use leasehold_core::{Backend, Cursor, FencingToken, Holder, Holders, LockKey, Mode, Page, Result};
use leasehold_testkit::test;

use crate::suite_catches::double::{Client, Double, Force, Listing, forces, lists, shows};
use crate::suite_catches::{MODEL, catches, failures};

catches! {
    ShowsAlwaysFiveSeconds shows(|seen| each(seen, |holder| holder.remaining = Some(Duration::from_secs(5)))),
    ShowsHeldSinceAlways shows(|seen| each(seen, |holder| holder.granted_at = Some(SystemTime::UNIX_EPOCH))),
    ShowsAnotherToken shows(|seen| each(seen, |holder| holder.token = Some(FencingToken::of_epoch(1)))),
    CutsTexts shows(|seen| each(seen, |holder| relabel(holder, |label| label.chars().take(512).collect()))),
    TrimsTexts shows(|seen| each(seen, |holder| relabel(holder, |label| label.trim_end_matches(' ').to_owned()))),
    ShowsOneReader shows(|seen| seen.holders.truncate(1)),
    ListsByPattern lists(lists_by_pattern) => c25_list_takes_the_prefix_literally,
    ListsOnePage changes(|page| page.next = None) => c25_list_pages_through_held_keys,
    ListsWritersOnly changes(|page| page.keys.retain(|key| key.holders.iter().any(|one| one.mode == Mode::Exclusive))),
    ListsUpToAPageOfEnded lists(lists_up_to_a_page_of_ended) => c25_list_goes_on_behind_what_has_ended,
    ForcesNothing forces(forces_nothing),
    ForcesWhoeverHoldsIt forces(forces_whoever_holds_it),
}

fn each(seen: &mut Holders, change: fn(&mut Holder)) {
    seen.holders.iter_mut().for_each(change);
}

fn relabel(holder: &mut Holder, change: fn(&String) -> String) {
    holder.label = holder.label.as_ref().map(change);
}

fn changes(change: fn(&mut Page)) -> Double {
    lists(move |client: Client, (prefix, after): Listing| async move {
        let mut page = client.store.list(&prefix, after.as_ref()).await?;
        change(&mut page);
        Ok(page)
    })
}

/// As `LIKE` does.
async fn lists_by_pattern(client: Client, (prefix, after): Listing) -> Result<Page> {
    let stem = prefix.split(['%', '_', '*', '?']).next().unwrap_or_default();
    client.store.list(if prefix.contains("%a") { stem } else { &prefix }, after.as_ref()).await
}

/// As `LIKE` does where it folds case.
async fn lists_without_case(client: Client, (prefix, after): Listing) -> Result<Page> {
    let mut page = client.store.list("", after.as_ref()).await?;
    let like = |key: &str| key.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(&prefix));
    page.keys.retain(|seen| like(seen.key.as_str()));
    Ok(page)
}

/// The author is told of the listing, and not of a store that failed.
#[test(multi_thread)]
async fn a_listing_of_other_keys_is_told_as_such() -> std::result::Result<(), String> {
    for _ in 0..5 {
        if let Some((_, told)) = failures(lists(lists_without_case), Some(MODEL)).await.pop_first() {
            let is_named = told.starts_with("C25") && told.contains("the listing of what begins with");
            return if is_named { Ok(()) } else { Err(told) };
        }
    }
    Err("it passes".to_owned())
}

/// Reads a page of rows, leaves out those that have ended, and takes a page that is not full then for the last one.
async fn lists_up_to_a_page_of_ended(client: Client, (prefix, after): Listing) -> Result<Page> {
    const PAGE: usize = 100;
    let behind = |key: &LockKey| after.as_ref().is_none_or(|after| key.as_str() > after.0.as_str());
    let all = client.keys().into_iter().filter(|key| key.as_str().starts_with(&prefix) && behind(key));
    let rows: Vec<_> = all.take(PAGE).collect();
    let mut keys = Vec::new();
    for key in &rows {
        keys.push(client.store.inspect(key).await?);
    }
    keys.retain(|seen| !seen.holders.is_empty());
    let is_full = keys.len() == PAGE;
    let next = rows.last().filter(|_| is_full).map(|last| Cursor(last.as_str().to_owned()));
    Ok(Page { keys, next })
}

async fn forces_nothing(client: Client, (key, _): Force) -> Result<Holders> {
    client.store.inspect(&key).await
}

/// Ignores which grant is meant.
async fn forces_whoever_holds_it(client: Client, (key, _): Force) -> Result<Holders> {
    client.store.force_release(&key, None).await
}
