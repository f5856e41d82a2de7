//! Semaphores and elections on stores and lockers that break what these are made of.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::conformance::TestClient;
use leasehold_core::{
    Admin, Cursor, FencingToken, Holders, LockKey, LockOptions, Locker, LockerExt, Page, Result, Wait,
};

use crate::suite_catches::admin::{each, forces_nothing};
use crate::suite_catches::catches;
use crate::suite_catches::double::{Double, asks, claims, forces, releases, shows};
use crate::suite_catches::engine::{Granted, instead, leaks_on_cancel, takes_failure_for_held};
use crate::suite_catches::exclusive::{folds, never_excludes, releases_nothing, tokens};

catches! {
    HasOneSlotForAll folds(|key| key.trim_end_matches(|last: char| last.is_ascii_digit()).to_owned())
        => c30_there_are_as_many_permits_as_were_asked_for_and_no_more,
    GrantsMoreThanThePermits claims(never_excludes) => c30_there_are_as_many_permits_as_were_asked_for_and_no_more,
    LetsAllContendersIn claims(never_excludes) => c30_of_many_contenders_never_more_than_the_permits_are_inside,
    WaitsForTheFirstSlotOnly instead(waits_for_the_first_slot) => c30_a_waiter_is_granted_whichever_permit_is_released,
    KeepsThePermitsOfTheDead asks(|claim| claim.ttl *= 1000)
        => c30_the_permit_of_a_holder_that_died_is_granted_after_its_lease,
    KeepsThePermitsOfTheCancelled instead(leaks_on_cancel) => c30_a_wait_that_ends_without_a_permit_leaves_nothing,
    KeepsWhatARaceGrantedTooMuch instead(leaks_on_cancel) => c30_of_permits_released_at_once_a_waiter_keeps_one,
    LetsAllGatherAtOnce instead(takes_no_turns) => c30_who_want_several_permits_do_not_block_each_other,
    KeepsSomeOfTooFewPermits releases(releases_nothing) => c30_several_permits_are_granted_all_or_none,
    GrantsWhatAnotherHasByNow asks(|claim| claim.ttl /= 2)
        => c30_of_several_permits_none_was_lost_while_waiting_for_the_others,
    TakesFailureForNoPermit instead(takes_failure_for_held)
        => c30_a_failing_store_is_an_error_and_not_a_semaphore_without_permits,
    LetsAllCandidatesLead claims(never_excludes) => c31_one_candidate_leads_at_a_time_and_terms_grow,
    HasTermsThatShrink tokens(|_, epoch| (1 << 46) - epoch) => c31_one_candidate_leads_at_a_time_and_terms_grow,
    LeadsOnAfterItResigned releases(releases_nothing) => c31_who_resigns_is_followed_by_a_candidate_that_waits,
    LeadsAfterItGaveUp instead(leaks_on_cancel) => c31_a_campaign_that_is_cancelled_leaves_nothing,
    HidesWhoLeads shows(|seen| each(seen, |holder| holder.label = None))
        => c31_an_observer_sees_each_leader_and_that_nobody_leads,
    HidesTheTerm shows(|seen| each(seen, |holder| holder.token = None))
        => c31_an_observer_sees_each_leader_and_that_nobody_leads,
    HidesThatSomebodyLeads shows(|seen| seen.holders.clear())
        => c31_an_observer_sees_each_leader_and_that_nobody_leads,
    LetsTheNextWorkTooEarly asks(|claim| claim.ttl /= 2) => c31_work_stops_before_the_next_leader_works,
    LeadsOnAfterItWasForced forces(forces_nothing) => c31_a_leader_that_was_lost_leads_again_in_a_greater_term,
    LeadsOnAfterItsShutdown releases(releases_nothing) => c31_at_a_shutdown_the_work_stops_and_the_next_candidate_leads,
    LeadsOnAfterItsWork releases(releases_nothing) => c31_work_that_ends_is_returned_and_its_candidate_resigns,
    TakesFailureForNobody sees_nobody_instead() => c31_an_observer_is_told_of_a_failing_store_and_not_that_nobody_leads,
    TakesFailureForALeader instead(takes_failure_for_held) => c31_a_failing_store_is_not_an_election_without_a_leader,
}

async fn waits_for_the_first_slot(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    let another = options.patience() != Wait::Never && (key.as_str().ends_with("#01") || key.as_str().ends_with("#02"));
    if another { Ok(None) } else { inner.acquire(&key, &options).await }
}

/// Whoever asks for the turn to gather several permits has it.
async fn takes_no_turns(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Granted {
    let own = key.as_str().strip_suffix("#many").map(|stem| format!("{stem}{:p}", &raw const inner));
    let key = own.map_or(Ok(key), LockKey::new)?;
    let permit = inner.acquire(&key, &options).await;
    // So that both have gathered one before either has two.
    tokio::time::sleep(Duration::from_millis(5)).await;
    permit
}

/// Whoever asks a store that fails is told that nobody holds the key.
fn sees_nobody_instead() -> Double {
    let client = |client: TestClient| TestClient { admin: Arc::new(Blind(client.admin)), ..client };
    Double { client: Box::new(client), ..Double::sound() }
}

#[derive(Debug)]
struct Blind(Arc<dyn Admin>);

#[async_trait]
impl Admin for Blind {
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        Ok(self.0.inspect(key).await.unwrap_or_else(|_| Holders::new(key, Vec::new())))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.0.list(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.0.force_release(key).await
    }

    async fn force_release_grant(&self, key: &LockKey, token: FencingToken) -> Result<Holders> {
        self.0.force_release_grant(key, token).await
    }
}
