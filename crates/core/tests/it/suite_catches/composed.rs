//! Semaphores and elections on stores and lockers that break what these are made of.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::conformance::TestClient;
use leasehold_core::{
    Admin, Backend, Cursor, FencingToken, GrantRef, Holders, LeaseStatus, LockKey, LockOptions, Locker, Page, Result,
    Wait,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};
use crate::suite_catches::engine::{Acquiring, Instead, leaks_on_cancel, takes_failure_for_held};
use crate::suite_catches::exclusive::{Folds, Grants, NeverExcludes, Tokens};

catches! {
    HasOneSlotForAll Folds(|key| key.trim_end_matches(|last: char| last.is_ascii_digit()).to_owned())
        => c01_any_script_of_steps_is_answered_as_the_contract_says,
    GrantsMoreThanThePermits NeverExcludes => c01_any_script_of_steps_is_answered_as_the_contract_says,
    LetsAllContendersIn NeverExcludes => c01_any_script_of_steps_is_answered_as_the_contract_says,
        WaitsForTheFirstSlotOnly Instead(waits_for_the_first_slot) => c30_a_waiter_is_granted_whichever_permit_is_released,
    KeepsThePermitsOfTheDead Grants(|lease| lease * 1000)
        => c01_any_script_of_steps_is_answered_as_the_contract_says,
        KeepsThePermitsOfTheCancelled Instead(leaks_on_cancel) => c30_a_wait_that_ends_without_a_permit_leaves_nothing,
        KeepsWhatARaceGrantedTooMuch Instead(leaks_on_cancel) => c30_of_permits_released_at_once_a_waiter_keeps_one,
        LetsAllGatherAtOnce Instead(takes_no_turns) => c30_who_want_several_permits_do_not_block_each_other,
    KeepsSomeOfTooFewPermits ReleasesNothing => c01_any_script_of_steps_is_answered_as_the_contract_says,
    GrantsWhatAnotherHasByNow Grants(|lease| lease / 2)
        => c01_any_script_of_steps_is_answered_as_the_contract_says,
        TakesFailureForNoPermit Instead(takes_failure_for_held)
        => c30_a_failing_store_is_an_error_and_not_a_semaphore_without_permits,
    LetsAllCandidatesLead NeverExcludes => c01_any_script_of_steps_is_answered_as_the_contract_says,
    HasTermsThatShrink Tokens::new(|_, epoch| (1 << 46) - epoch) => c01_any_script_of_steps_is_answered_as_the_contract_says,
    LeadsOnAfterItResigned ReleasesNothing => c01_any_script_of_steps_is_answered_as_the_contract_says,
        LeadsAfterItGaveUp Instead(leaks_on_cancel) => c31_a_campaign_that_is_cancelled_leaves_nothing,
    HidesWhoLeads Shows(nameless) => c01_any_script_of_steps_is_answered_as_the_contract_says,
    HidesTheTerm Shows(without_token) => c01_any_script_of_steps_is_answered_as_the_contract_says,
    HidesThatSomebodyLeads Shows(nobody) => c01_any_script_of_steps_is_answered_as_the_contract_says,
    LetsTheNextWorkTooEarly Grants(|lease| lease / 2) => c01_any_script_of_steps_is_answered_as_the_contract_says,
    LeadsOnAfterItWasForced ForcesNothing => c01_any_script_of_steps_is_answered_as_the_contract_says,
    LeadsOnAfterItsShutdown ReleasesNothing => c01_any_script_of_steps_is_answered_as_the_contract_says,
    LeadsOnAfterItsWork ReleasesNothing => c01_any_script_of_steps_is_answered_as_the_contract_says,
        TakesFailureForNobody SeesNobodyInstead => c31_an_observer_is_told_of_a_failing_store_and_not_that_nobody_leads,
        TakesFailureForALeader Instead(takes_failure_for_held) => c31_a_failing_store_is_not_an_election_without_a_leader,
}

fn waits_for_the_first_slot(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move {
        let another =
            options.patience() != Wait::Never && (key.as_str().ends_with("#01") || key.as_str().ends_with("#02"));
        if another { Ok(None) } else { inner.acquire(&key, &options).await }
    })
}

/// Whoever asks for the turn to gather several permits has it.
fn takes_no_turns(inner: Arc<dyn Locker>, key: LockKey, options: LockOptions) -> Acquiring {
    Box::pin(async move {
        let own = key.as_str().strip_suffix("#many").map(|stem| format!("{stem}{:p}", &raw const inner));
        let key = own.map_or(Ok(key), LockKey::new)?;
        let permit = inner.acquire(&key, &options).await;
        // So that both have gathered one before either has two.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        permit
    })
}

struct ReleasesNothing;

#[async_trait]
impl Double for ReleasesNothing {
    async fn release(&self, _: &Client, _: &GrantRef) -> Result<LeaseStatus> {
        Ok(LeaseStatus::Held)
    }
}

struct ForcesNothing;

#[async_trait]
impl Double for ForcesNothing {
    async fn force_release(&self, client: &Client, key: &LockKey, _only: Option<u64>) -> Result<Holders> {
        client.store.inspect(key).await
    }
}

/// Shows less than there is.
struct Shows(fn(Holders) -> Holders);

#[async_trait]
impl Double for Shows {
    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        client.store.inspect(key).await.map(self.0)
    }
}

fn nameless(mut seen: Holders) -> Holders {
    seen.holders.iter_mut().for_each(|holder| holder.label = None);
    seen
}

fn without_token(mut seen: Holders) -> Holders {
    seen.holders.iter_mut().for_each(|holder| holder.token = None);
    seen
}

fn nobody(mut seen: Holders) -> Holders {
    seen.holders.clear();
    seen
}

/// Whoever asks a store that fails is told that nobody holds the key.
struct SeesNobodyInstead;

impl Double for SeesNobodyInstead {
    fn client(&self, client: TestClient) -> TestClient {
        TestClient { admin: Arc::new(Blind(client.admin)), ..client }
    }
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
