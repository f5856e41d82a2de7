//! The suite on lockers that are broken on purpose: each must fail exactly the cases that are meant to catch it.
//! Without this, the suite would be a belief.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::conformance::{Contender, Fixture, Shareable, Subject, report};
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, GrantRef, HandOff, HandOver, Held, Holders, LockGuard,
    LockKey, LockOptions, Locker, MemoryBackend, Mode, Page, Renewal, Result, SharedBackend, Wakeups,
};
use libtest_mimic::{Arguments, Failed, Trial};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NeverExcludes,
    IgnoresTheLease,
    ReleasesWithoutComparing,
    LosesTheTokenOrder,
    FoldsKeyCase,
    LeaksOnCancel,
    TellsLossOnRelease,
    RecreatesOnRenew,
    BlocksTry,
    RenewsNothing,
    NeverSignals,
    MixesNamespaces,
    ForgetsReaders,
}

/// A store with one fault.
#[derive(Clone, Debug)]
struct Broken {
    inner: MemoryBackend,
    fault: Fault,
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn key(&self, key: &LockKey) -> LockKey {
        if self.is(Fault::FoldsKeyCase) {
            LockKey::new(key.as_str().to_lowercase()).expect("no longer than before")
        } else {
            key.clone()
        }
    }

    fn claim(&self, claim: &Claim) -> Claim {
        let ttl = if self.is(Fault::IgnoresTheLease) { Duration::from_secs(86_400) } else { claim.ttl };
        Claim { key: self.key(&claim.key), ttl, ..claim.clone() }
    }

    fn grant(&self, grant: &GrantRef) -> GrantRef {
        GrantRef { key: self.key(&grant.key), ..grant.clone() }
    }
}

#[async_trait]
impl Backend for Broken {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let claim = self.claim(claim);
        loop {
            let attempt = self.inner.try_acquire(&claim).await?;
            match (self.fault, attempt) {
                (Fault::NeverExcludes, Attempt::Busy { .. }) => {
                    self.inner.force_release(&claim.key).await?;
                }
                (Fault::BlocksTry, Attempt::Busy { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
                (Fault::LosesTheTokenOrder, Attempt::Granted { tenure }) => {
                    return Ok(Attempt::Granted { tenure: tenure.map(|tenure| (1 << 42) - tenure) });
                }
                (Fault::ForgetsReaders, Attempt::Granted { .. }) if claim.mode == Mode::Shared => {
                    self.inner.force_release(&claim.key).await?;
                    return self.inner.try_acquire(&claim).await;
                }
                (_, attempt) => return Ok(attempt),
            }
        }
    }

    async fn renew(&self, renewals: &[Renewal]) -> Vec<Result<Held>> {
        let ours: Vec<_> =
            renewals.iter().map(|renewal| Renewal { grant: self.grant(&renewal.grant), ttl: renewal.ttl }).collect();
        if self.is(Fault::RenewsNothing) {
            return ours.iter().map(|_| Ok(Held::Yes)).collect();
        }
        let mut answers = self.inner.renew(&ours).await;
        if self.is(Fault::RecreatesOnRenew) {
            for (renewal, answer) in ours.iter().zip(&mut answers) {
                let GrantRef { key, owner, mode, .. } = renewal.grant.clone();
                let claim = Claim { key, owner, mode, ttl: renewal.ttl, waits: false, label: None, reason: None };
                if matches!(self.inner.try_acquire(&claim).await, Ok(Attempt::Granted { .. })) {
                    *answer = Ok(Held::Yes);
                }
            }
        }
        answers
    }

    async fn release(&self, grant: &GrantRef) -> Result<Held> {
        let grant = self.grant(grant);
        match self.fault {
            Fault::ReleasesWithoutComparing => {
                let holders = self.inner.force_release(&grant.key).await?;
                Ok(if holders.holders.is_empty() { Held::No } else { Held::Yes })
            }
            Fault::TellsLossOnRelease => self.inner.release(&grant).await.map(|_| Held::No),
            _ => self.inner.release(&grant).await,
        }
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let holders = self.inner.inspect(&self.key(key)).await?;
        Ok(Holders { key: key.clone(), ..holders })
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.inner.list(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.inner.force_release(&self.key(key)).await
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        if self.is(Fault::NeverSignals) { None } else { self.inner.wakeups() }
    }
}

impl SharedBackend for Broken {}

#[async_trait]
impl Fixture for Broken {
    type Backend = Self;

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn connect(&self, namespace: &str) -> Result<Self> {
        let namespace = if self.is(Fault::MixesNamespaces) { "all" } else { namespace };
        Ok(Self { inner: self.inner.namespace(namespace), fault: self.fault })
    }
}

/// A locker that forgets to give back what a cancelled acquire won.
#[derive(Debug)]
struct Leaky(Arc<dyn Locker>);

#[async_trait]
impl Locker for Leaky {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn acquire(&self, key: &LockKey, options: &LockOptions) -> Result<Option<LockGuard>> {
        let (inner, key, options) = (Arc::clone(&self.0), key.clone(), options.clone());
        let (tell, told) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let granted = inner.acquire(&key, &options).await;
            if let Err(unheard) = tell.send(granted) {
                std::mem::forget(unheard);
            }
        });
        told.await.expect("the task does not panic")
    }

    async fn adopt(&self, grant: &HandOff, options: &LockOptions) -> Result<Option<LockGuard>> {
        self.0.adopt(grant, options).await
    }
}

struct LeakySubject(Shareable<Broken>);

#[async_trait]
impl Subject for LeakySubject {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    async fn contender(&self, namespace: &str, clock: Clock, hand_over: HandOver) -> Result<Contender> {
        let contender = self.0.contender(namespace, clock, hand_over).await?;
        Ok(Contender { locker: Arc::new(Leaky(contender.locker)), ..contender })
    }

    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// A fault, the case that is meant to catch it, and the cases that may stumble over it on their way to something
/// else, because they have two contenders on one key, say. No other case may fail.
type Catch = (Fault, &'static str, &'static [&'static str]);

const CATCHES: &[Catch] = &[
    (
        Fault::NeverExcludes,
        "c01_a_second_holder_is_excluded",
        &[
            "c01_a_locker_contends_with_itself",
            "c01_random_steps_match_the_model",
            "c01_sixteen_contenders_never_overlap",
            "c01_the_last_reader_admits_a_writer",
            "c01_writers_and_readers_exclude_each_other",
            "c02_a_handed_off_grant_is_adopted_and_released_elsewhere",
            "c02_a_stale_release_spares_the_next_holder",
            "c02_a_stranger_can_neither_renew_nor_release",
            "c03_an_unrenewed_holder_frees_the_key",
            "c07_a_cancelled_wait_leaves_no_trace",
            "c08_a_client_an_hour_off_behaves_like_any_other",
            "c10_busy_tells_what_is_left_of_the_lease",
            "c10_try_answers_none_while_held",
            "c10_try_answers_while_others_wait",
            "c11_a_limit_of_zero_is_try",
            "c11_the_wait_limit_is_kept",
            "c11_without_a_limit_it_waits_until_granted",
            "c13_lost_signals_do_not_cost_liveness",
            "c14_a_cancelled_waiter_is_skipped",
            "c15_a_waiting_writer_holds_back_later_readers",
            "c16_a_failed_renewal_is_not_a_loss",
            "c16_renewal_outlives_the_lease",
            "c20_repeating_a_release_spares_the_successor",
            "c22_awkward_keys_are_ordinary",
            "c26_metrics_have_the_same_names_everywhere",
            "c04_concurrent_tokens_are_unique_and_in_order",
            "c13_a_waiter_gets_the_key_after_its_release",
            "c13_only_the_head_talks_to_the_store",
            "c14_waiters_are_served_in_order",
            "c14_no_contender_starves",
            "c07_a_cancelled_attempt_gives_back_what_it_wins",
            "c07_the_wait_limit_leaves_nothing",
            "c07_a_lost_reply_does_not_block_its_own_waiter",
        ],
    ),
    (
        Fault::IgnoresTheLease,
        "c03_an_unrenewed_holder_frees_the_key",
        &[
            "c02_a_stale_release_spares_the_next_holder",
            "c02_a_stale_renewal_does_not_prolong_the_successor",
            "c03_a_dead_reader_ends_with_its_own_lease",
            "c04_tokens_grow_across_expiry",
            "c09_renewal_of_an_expired_grant_creates_nothing",
            "c10_busy_tells_what_is_left_of_the_lease",
            "c21_drop_after_the_runtime_ended_is_harmless",
            "c25_inspect_shows_the_holder",
        ],
    ),
    (
        Fault::ReleasesWithoutComparing,
        "c02_a_stale_release_spares_the_next_holder",
        &[
            "c01_random_steps_match_the_model",
            "c01_the_last_reader_admits_a_writer",
            "c02_a_stranger_can_neither_renew_nor_release",
            "c06_a_grant_that_vanished_is_stolen",
            "c20_a_lost_reply_is_settled_in_the_background",
            "c20_repeating_a_release_spares_the_successor",
        ],
    ),
    (
        Fault::LosesTheTokenOrder,
        "c04_tokens_grow_across_release",
        &[
            "c01_random_steps_match_the_model",
            "c04_concurrent_tokens_are_unique_and_in_order",
            "c04_readers_have_tokens_too",
            "c04_tokens_grow_across_expiry",
            "c04_tokens_grow_across_force_release",
            "c04_tokens_grow_across_reconnect",
            "c25_inspect_shows_the_holder",
        ],
    ),
    (Fault::FoldsKeyCase, "c22_keys_that_look_alike_are_distinct", &[]),
    (
        Fault::LeaksOnCancel,
        "c07_a_cancelled_attempt_gives_back_what_it_wins",
        &["c07_a_cancelled_wait_leaves_no_trace", "c14_a_cancelled_waiter_is_skipped"],
    ),
    (
        Fault::TellsLossOnRelease,
        "c20_release_says_that_it_released",
        &[
            "c01_a_second_holder_is_excluded",
            "c01_random_steps_match_the_model",
            "c01_sixteen_contenders_never_overlap",
            "c02_a_claim_is_idempotent_for_its_owner",
            "c02_a_handed_off_grant_is_adopted_and_released_elsewhere",
            "c02_a_stale_release_spares_the_next_holder",
            "c02_a_stranger_can_neither_renew_nor_release",
            "c06_a_grant_that_vanished_is_stolen",
            "c16_a_failed_renewal_is_not_a_loss",
            "c16_renewal_outlives_the_lease",
            "c20_a_lost_reply_is_settled_in_the_background",
            "c20_repeating_a_release_spares_the_successor",
        ],
    ),
    (
        Fault::RecreatesOnRenew,
        "c09_renewal_of_a_released_grant_creates_nothing",
        &[
            "c01_random_steps_match_the_model",
            "c02_a_handed_off_grant_is_adopted_and_released_elsewhere",
            "c06_a_grant_that_vanished_is_stolen",
            "c09_renewal_of_an_expired_grant_creates_nothing",
            "c17_no_renewal_after_loss",
            "c25_force_release_is_told_as_such",
            "c26_metrics_have_the_same_names_everywhere",
        ],
    ),
    (
        Fault::BlocksTry,
        "c10_try_answers_none_while_held",
        &[
            "c01_a_locker_contends_with_itself",
            "c01_a_second_holder_is_excluded",
            "c01_random_steps_match_the_model",
            "c01_the_last_reader_admits_a_writer",
            "c01_writers_and_readers_exclude_each_other",
            "c02_a_handed_off_grant_is_adopted_and_released_elsewhere",
            "c02_a_stale_release_spares_the_next_holder",
            "c02_a_stranger_can_neither_renew_nor_release",
            "c08_a_client_an_hour_off_behaves_like_any_other",
            "c10_busy_tells_what_is_left_of_the_lease",
            "c10_try_answers_while_others_wait",
            "c11_a_limit_of_zero_is_try",
            "c11_the_wait_limit_is_kept",
            "c11_without_a_limit_it_waits_until_granted",
            "c13_a_release_is_signalled",
            "c13_lost_signals_do_not_cost_liveness",
            "c13_only_the_head_talks_to_the_store",
            "c15_a_waiting_writer_holds_back_later_readers",
            "c16_a_failed_renewal_is_not_a_loss",
            "c16_renewal_outlives_the_lease",
            "c20_repeating_a_release_spares_the_successor",
            "c22_awkward_keys_are_ordinary",
            "c26_metrics_have_the_same_names_everywhere",
        ],
    ),
    (
        Fault::RenewsNothing,
        "c16_renewal_outlives_the_lease",
        &[
            "c01_random_steps_match_the_model",
            "c02_a_handed_off_grant_is_adopted_and_released_elsewhere",
            "c02_a_stale_renewal_does_not_prolong_the_successor",
            "c02_a_stranger_can_neither_renew_nor_release",
            "c06_a_grant_that_vanished_is_stolen",
            "c09_renewal_of_a_released_grant_creates_nothing",
            "c09_renewal_of_an_expired_grant_creates_nothing",
            "c17_no_renewal_after_loss",
            "c25_force_release_frees_the_key_and_tells_the_holder",
            "c25_force_release_is_told_as_such",
            "c26_metrics_have_the_same_names_everywhere",
        ],
    ),
    (Fault::NeverSignals, "c13_a_release_is_signalled", &[]),
    (Fault::MixesNamespaces, "c22_namespaces_do_not_see_each_other", &[]),
    (Fault::ForgetsReaders, "c03_a_dead_reader_ends_with_its_own_lease", &[]),
];

async fn failed(fault: Fault) -> BTreeSet<(&'static str, String)> {
    let broken = Broken { inner: MemoryBackend::new(Clock::system()), fault };
    let subject: Arc<dyn Subject> = match fault {
        Fault::LeaksOnCancel => Arc::new(LeakySubject(Shareable(broken))),
        _ => Arc::new(Shareable(broken)),
    };
    report(subject).await.failed.into_iter().collect()
}

async fn check((fault, meant, stumble): Catch) -> std::result::Result<(), Failed> {
    let mut unexpected = failed(fault).await;
    if !unexpected.iter().any(|(name, _)| *name == meant) {
        return Err(format!("{fault:?} was not caught by {meant}, only by {unexpected:#?}").into());
    }
    unexpected.retain(|(name, _)| *name != meant && !stumble.contains(name));
    // A lease that ran out on a machine that is busy with something else does not run out three times.
    for _ in 0..2 {
        if unexpected.is_empty() {
            return Ok(());
        }
        let again = failed(fault).await;
        unexpected.retain(|(name, _)| again.iter().any(|(failed, _)| name == failed));
    }
    if unexpected.is_empty() { Ok(()) } else { Err(format!("{fault:?} also failed {unexpected:#?}").into()) }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait for leases most of the time.
    arguments.test_threads.get_or_insert(6);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"));
    let trials = CATCHES.iter().map(|catch| {
        let runtime = Arc::clone(&runtime);
        Trial::test(format!("the_suite_catches_{:?}", catch.0), move || runtime.block_on(check(*catch)))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
