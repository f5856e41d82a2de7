use futures::future::join_all;
use leasehold_testkit::{claim_each_for_two, eventually, test};
use std::time::Duration;

use leasehold_postgres::{
    Attempt, Backed, Backend, Claim, ErrorKind, LeaseStatus, LockKey, LockerExt, Mode, Postgres, Renewal, Result,
    RwLockerExt,
};
use tokio::task::JoinSet;

use crate::sql::{clients, number, patient, server, session};

const MINUTE: Duration = Duration::from_secs(60);

#[test(multi_thread, server)]
async fn batches_over_the_same_keys_are_never_a_deadlock() {
    let server = server(&["deadlock_timeout=50ms"]).await;
    let clients = clients(&server.url()).await;
    let mut tasks = JoinSet::new();
    for number in 0..48_u64 {
        let locks = clients[usize::try_from(number % 2).unwrap()].clone();
        tasks.spawn(async move {
            for round in 0..25 {
                let name = format!("key/{}", (number * 7 + round * 11) % 16);
                if (number + round) % 3 == 0 {
                    drop(locks.acquire_read(&LockKey::new(name).unwrap(), &patient()).await.unwrap());
                } else {
                    drop(locks.acquire(&LockKey::new(name).unwrap(), &patient()).await.unwrap());
                }
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(number(&server.url(), "SELECT sum(deadlocks)::bigint FROM pg_stat_database").await, 0);
}

#[test(server)]
async fn what_comes_together_is_few_transactions_and_a_key_goes_to_one_of_two() {
    let server = server(&[]).await;
    let [locks, _] = clients(&server.url()).await;
    let store = locks.engine().backend();
    let transactions = "SELECT count(DISTINCT xmin::text) FROM leasehold.locks";
    for _ in 0..2 {
        let granted = claim_each_for_two(store).await;
        let claimed = number(&server.url(), transactions).await;
        let released = join_all(granted.iter().map(|grant| store.release(grant))).await;
        assert!(released.iter().all(|status| matches!(status, Ok(LeaseStatus::Held))), "{released:?}");
        let written = [claimed, number(&server.url(), transactions).await];
        assert!(written.iter().all(|count| *count < 16), "claims and releases leave one by one: {written:?}");
    }
}

/// A stranger may lock the row, or change it, or delete it: only the last statement of it is yet to come.
#[test(multi_thread, server)]
async fn a_row_that_somebody_locks_fails_nobody_else_of_its_batch() {
    const KEYS: usize = 40;
    let server = server(&[]).await;
    let [ours, _] = clients(&server.url()).await;
    let (backend, other) = (ours.engine().backend(), session(&server.url()).await);
    let claims = [Mode::Exclusive, Mode::Shared].into_iter().cycle().take(KEYS).enumerate();
    let claims: Vec<_> =
        claims.map(|(number, mode)| Claim::new(&LockKey::new(format!("k/{number}")).unwrap(), mode, MINUTE)).collect();
    let grants: Vec<_> = claims.iter().map(|claim| claim.grant(None)).collect();
    let renewals: Vec<_> = grants.iter().map(|grant| Renewal { grant: grant.clone(), ttl: MINUTE }).collect();
    let claim = async || join_all(claims.iter().map(|claim| backend.try_acquire(claim))).await;
    let release = async || join_all(grants.iter().map(|grant| backend.release(grant))).await;
    claim().await;
    release().await;
    // The first is sent alone.
    let locked = KEYS / 2;
    let statuses = |answers: Vec<Result<LeaseStatus>>| -> Vec<_> {
        answers.into_iter().map(|answer| answer.map(|status| assert_eq!(status, LeaseStatus::Held))).collect()
    };
    for by in [
        "SELECT FROM leasehold.locks WHERE {} FOR UPDATE",
        "UPDATE leasehold.locks SET epoch = epoch WHERE {}",
        "DELETE FROM leasehold.locks WHERE {}",
    ] {
        let lock = format!("BEGIN; {}", by.replace("{}", &format!("name = 'leasehold\\000k/{locked}'")));
        let while_it_is_locked = async |what: &str, answers: Vec<Result<()>>| {
            other.batch_execute("ROLLBACK").await.unwrap();
            for (number, answer) in answers.into_iter().enumerate() {
                let failed = answer.err().map(|error| (error.kind(), error.to_string()));
                let is_told = failed.as_ref().is_some_and(|(kind, why)| {
                    *kind == ErrorKind::Unavailable && why.contains("another session has locked the row")
                });
                assert!(if number == locked { is_told } else { failed.is_none() }, "{by}: {what} {number}: {failed:?}");
            }
        };
        other.batch_execute(&lock).await.unwrap();
        let claimed = claim()
            .await
            .into_iter()
            .map(|answer| answer.map(|attempt| assert!(matches!(attempt, Attempt::Granted { .. }), "{attempt:?}")));
        while_it_is_locked("claim", claimed.collect()).await;
        claim().await[locked].as_ref().unwrap();
        other.batch_execute(&lock).await.unwrap();
        while_it_is_locked("renewal", statuses(backend.renew(&renewals, MINUTE).await)).await;
        other.batch_execute(&lock).await.unwrap();
        while_it_is_locked("release", statuses(release().await)).await;
        assert_eq!(release().await[locked].as_ref().unwrap(), &LeaseStatus::Held);
    }
}

#[test(multi_thread, server)]
async fn renewals_have_a_connection_of_their_own_and_no_longer_than_they_are_given() {
    let server = server(&[]).await;
    let locks = Postgres::connect(&format!("{}?pool_max=1", server.url())).await.unwrap();
    let backend = locks.engine().backend();
    let claims = ["a", "b"].map(|name| Claim::new(&LockKey::new(name).unwrap(), Mode::Exclusive, MINUTE));
    for claim in &claims {
        backend.try_acquire(claim).await.unwrap();
    }
    let renewals = claims.each_ref().map(|claim| Renewal { grant: claim.grant(None), ttl: MINUTE });
    let lock = async |name: &str| {
        let other = session(&server.url()).await;
        let lock = format!("BEGIN; SELECT FROM leasehold.locks WHERE name = 'leasehold\\000{name}' FOR UPDATE");
        other.batch_execute(&lock).await.unwrap();
        other
    };
    let waits = async |count: i64| {
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        eventually("somebody waits for a row", async || number(&server.url(), waits).await >= count).await;
    };

    // The only connection of the others is busy.
    let beside_a_claim = async || {
        let other = lock("a").await;
        let claimed = tokio::spawn({
            let (backend, claim) = (backend.clone(), claims[0].clone());
            async move { backend.try_acquire(&claim).await }
        });
        waits(1).await;
        let renewed = backend.renew(&renewals[1..], MINUTE).await.remove(0);
        let still_waits = !claimed.is_finished();
        drop(other);
        let _ = claimed.await.unwrap();
        assert_eq!(renewed.unwrap(), LeaseStatus::Held);
        still_waits
    };
    eventually("a renewal passes a claim", beside_a_claim).await;

    let other = lock("a").await;
    let error = backend.renew(&renewals[..1], Duration::from_millis(150)).await.remove(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    assert!(error.to_string().contains("150ms"), "{error}");
    drop(other);
}
