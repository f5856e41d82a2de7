use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::context::{AMPLE, SHORT, TestContext, past, patient};
use crate::conformance::process::Holder;
use crate::conformance::verdict::{Verdict, ensure};
use crate::{Attempt, Claim, GrantRef, LeaseStatus, LockOptions, Mode, OwnerId, ReleaseOutcome, Wait};

pub(super) async fn c01_a_second_holder_is_excluded(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ensure!(guard.is_held(), "a fresh guard is not held");
    theirs.finds_it_held(&key).await?;
    ensure!(guard.release().await? == ReleaseOutcome::Released, "the release found it gone");
    let guard = theirs.take(&key, &patient()).await?;
    ours.finds_it_held(&key).await?;
    drop(guard);
    Ok(())
}

pub(super) async fn c01_a_locker_contends_with_itself(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ours.finds_it_held(&key).await?;
    drop(guard);
    ours.finds_it_free(&key).await
}

pub(super) async fn c01_distinct_keys_do_not_contend(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    let mut guards = Vec::new();
    for _ in 0..20 {
        guards.push(ours.take(&context.key(), &LockOptions::new().wait(Wait::Never)).await?);
    }
    ensure!(guards.iter().all(crate::Guard::is_held), "one of 20 keys was lost");
    Ok(())
}

pub(super) async fn c01_sixteen_contenders_never_overlap(context: TestContext) -> Verdict {
    const ROUNDS: usize = 5;
    let (inside, overlaps, key) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), context.key());
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(16, 4).await? {
        let key = key.clone();
        let (inside, overlaps) = (Arc::clone(&inside), Arc::clone(&overlaps));
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                let guard = client.take(&key, &LockOptions::new().wait(Wait::UpTo(AMPLE * 2))).await?;
                overlaps.fetch_add(inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                ensure!(guard.release().await? == ReleaseOutcome::Released, "a held lock was gone");
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    ensure!(overlaps.load(Ordering::SeqCst) == 0, "{} overlaps", overlaps.load(Ordering::SeqCst));
    Ok(())
}

/// Random steps of three owners, each on a locker of its own, each compared with what a table of one row would answer.
pub(super) async fn c01_random_steps_match_the_model(context: TestContext) -> Verdict {
    let seed = rand::rng().random::<u64>();
    let mut random = StdRng::seed_from_u64(seed);
    let contenders = [context.client().await?, context.client().await?, context.client().await?];
    for _ in 0..10 {
        let key = context.key();
        let grant = |owner, epoch| GrantRef { key: key.clone(), owner, mode: Mode::Exclusive, epoch };
        let owners: Vec<_> = (0..3).map(|_| OwnerId::random()).collect();
        let mut holder: Option<(OwnerId, Option<u64>)> = None;
        let mut newest = None;
        for step in 0..20 {
            let who = random.random_range(0..3);
            let (owner, store) = (owners[who], &contenders[who].store);
            let epoch = holder.filter(|(held, _)| *held == owner).and_then(|(_, epoch)| epoch);
            let ours = holder.is_some_and(|(held, _)| held == owner);
            match random.random_range(0..4) {
                0 | 1 => {
                    let claim = Claim { owner, ..Claim::new(&key, Mode::Exclusive, Duration::from_secs(60)) };
                    match (store.try_acquire(&claim).await?, holder) {
                        (Attempt::Granted { epoch: got }, None) => {
                            ensure!(
                                got.is_none() || got > newest,
                                "seed {seed}, step {step}: epoch {got:?} after {newest:?}"
                            );
                            holder = Some((owner, got));
                            newest = got;
                        }
                        (Attempt::Granted { epoch: got }, Some((held, had))) => {
                            ensure!(
                                held == owner && got == had,
                                "seed {seed}, step {step}: granted {got:?} while held as {had:?}"
                            );
                        }
                        (Attempt::Busy { .. } | Attempt::HeldBy { .. } | Attempt::Queued { .. }, held) => {
                            ensure!(
                                held.is_some() && !ours,
                                "seed {seed}, step {step}: busy while {holder:?} for {owner:?}"
                            );
                        }
                    }
                }
                2 => {
                    let held = store.renew(&grant(owner, epoch), Duration::from_secs(60)).await?;
                    ensure!((held == LeaseStatus::Held) == ours, "seed {seed}, step {step}: renewal said {held:?}");
                }
                _ => {
                    let held = store.release(&grant(owner, epoch)).await?;
                    ensure!((held == LeaseStatus::Held) == ours, "seed {seed}, step {step}: release said {held:?}");
                    holder = holder.filter(|_| !ours);
                }
            }
        }
        if let Some((held, epoch)) = holder {
            let who = owners.iter().position(|owner| *owner == held).unwrap_or_default();
            contenders[who].store.release(&grant(held, epoch)).await?;
        }
    }
    Ok(())
}

pub(super) async fn c01_processes_exclude_each_other(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let role = TestContext::role(&key, Duration::from_secs(30));
    let mut theirs = Holder::start(context.subject.as_ref(), &role).await?;
    ours.finds_it_held(&key).await?;
    let answer = theirs.ask().await?;
    ensure!(answer == "held", "the other process says {answer}");
    theirs.kill().await
}

pub(super) async fn c03_an_unrenewed_holder_frees_the_key(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &context.brief()).await?;
    let began = theirs.clock.now();
    let brief = context.brief_ttl();
    theirs.take(&key, &past(brief)).await?.release().await?;
    let waited = theirs.clock.now().since(began);
    ensure!(!guard.is_held(), "the first guard still believes in a lease of {brief:?} after {waited:?}");
    Ok(())
}

pub(super) async fn c03_a_killed_holder_frees_the_key(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let role = TestContext::role(&key, SHORT);
    let theirs = Holder::start(context.subject.as_ref(), &role).await?;
    ours.finds_it_held(&key).await?;
    theirs.kill().await?;
    ours.finds_it_free(&key).await
}
