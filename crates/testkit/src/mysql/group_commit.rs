//! Claims and releases of many callers in one statement: each is answered for itself, and no batch stands in another's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Attempt, Backend, Claim, Clock, FencingToken, LeaseStatus, Renewal, Result};
use mysql_async::prelude::Queryable;

use super::steps::{claim, migrated, store};
use super::subject::Subject;
use LeaseStatus::{Held, NotHeld};
use leasehold_mysql::ConnectionSettings;

const MINUTE: Duration = Duration::from_secs(60);

fn claims(kind: &str, count: usize) -> Vec<Claim> {
    (0..count).map(|number| claim(&format!("{kind}/{number}"), MINUTE)).collect()
}

/// The first goes alone, and the others come in meanwhile.
async fn claim_all(store: &impl Backend, claims: &[Claim]) -> Vec<Result<Attempt>> {
    join_all(claims.iter().map(|claim| store.try_acquire(claim))).await
}

async fn release_all(store: &impl Backend, claims: &[Claim]) -> Vec<Result<LeaseStatus>> {
    let grants: Vec<_> = claims.iter().map(|claim| claim.grant(None)).collect();
    join_all(grants.iter().map(|grant| store.release(grant))).await
}

fn is_granted(attempt: &Result<Attempt>) -> bool {
    matches!(attempt, Ok(Attempt::Granted { epoch: Some(_) }))
}

pub async fn what_comes_in_meanwhile_is_committed_together<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    for (enabled, kind) in [(true, "on"), (false, "off")] {
        let settings = ConnectionSettings::default().url(server.url()).group_commit(enabled);
        let store = S::store(settings).await.unwrap();
        let claims = claims(kind, 65);
        assert!(claim_all(&store, &claims).await.iter().all(is_granted));
        assert!(release_all(&store, &claims).await.iter().all(|status| matches!(status, Ok(Held))));
        // Again, on keys that have rows.
        let before = server.status("Handler_commit").await;
        assert!(claim_all(&store, &claims).await.iter().all(is_granted));
        let claimed = server.status("Handler_commit").await;
        assert!(release_all(&store, &claims).await.iter().all(|status| matches!(status, Ok(Held))));
        let released = server.status("Handler_commit").await;
        let (claiming, releasing) = (claimed - before, released - claimed);
        assert!((claiming < 20) == enabled, "{kind}: {claiming} commits for 65 claims");
        assert!((releasing < 20) == enabled, "{kind}: {releasing} commits for 65 releases");
    }
}

pub async fn each_claim_of_a_batch_is_answered_for_itself<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let (ours, theirs) = (store::<S>(&server.url()).await, store::<S>(&server.url()).await);
    let earlier = claims("k", 6);
    assert!(claim_all(&theirs, &earlier).await.iter().all(is_granted));
    // The first two are held, the third expires; the others are free, the last of them with an epoch ahead of the clock.
    release_all(&theirs, &earlier[3..]).await;
    let change = |set: &str, key: &str| {
        format!("UPDATE leasehold.{} SET {set} WHERE name = CONCAT('leasehold', CHAR(0), '{key}')", S::TABLE)
    };
    let over = change(&format!("{} = UTC_TIMESTAMP(6)", S::EXPIRY), "k/2");
    let clock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 2 DIV 125";
    server.sql(&[&over, &change(&format!("epoch = {clock} + 12000"), "k/5")]).await;

    let mut asked = claims("new", 2);
    asked.extend(claims("k", 6));
    // Of two for one key, one waits for another batch, and finds the first.
    asked.push(claim("new/1", MINUTE));
    let answers = claim_all(&ours, &asked).await;
    let granted: Vec<_> = answers.iter().map(is_granted).collect();
    assert_eq!(granted, [true, true, false, false, true, true, true, false, false], "{answers:?}");
    for held in &answers[2..4] {
        let Ok(Attempt::Busy { retry_in: Some(left) }) = held else { panic!("{held:?}") };
        assert!(*left > MINUTE / 2 && *left <= MINUTE, "{left:?}");
    }
    assert_eq!(answers[7].as_ref().unwrap(), &Attempt::AHEAD_OF_THE_CLOCK);
    // What was granted is held under the epoch that was told, and what was refused did not change.
    for (asked, answer) in asked.iter().zip(&answers).take(8) {
        let seen = ours.inspect(&asked.key).await.unwrap();
        let epoch = seen.holders.first().and_then(|holder| holder.token).map(FencingToken::epoch);
        match answer {
            Ok(Attempt::Granted { epoch: told }) => assert_eq!(epoch, *told, "{:?}", asked.key),
            _ => assert_eq!(ours.release(&asked.grant(None)).await.unwrap(), NotHeld),
        }
    }
    // Asked again by the same owners, in another batch, everything is as it was.
    let again = claim_all(&ours, &asked[..7]).await;
    for (first, second) in answers.iter().zip(&again).filter(|(first, _)| is_granted(first)) {
        assert_eq!(first.as_ref().unwrap(), second.as_ref().unwrap());
    }
}

pub async fn a_row_that_somebody_locks_fails_nobody_else_of_its_batch<S: Subject>() {
    const KEYS: usize = 40;
    let server = migrated::<S>(&[]).await;
    let store = store::<S>(&server.url()).await;
    let claims = claims("k", KEYS);
    let renewal = |claim: &Claim| Renewal { grant: claim.grant(None), ttl: MINUTE };
    let renewals: Vec<_> = claims.iter().map(renewal).collect();
    assert!(claim_all(&store, &claims).await.iter().all(is_granted));
    release_all(&store, &claims).await;
    // The first is sent alone.
    let locked = KEYS / 2;
    let lock = format!(
        "SELECT 1 FROM leasehold.{} WHERE name = CONCAT('leasehold', CHAR(0), 'k/{locked}') FOR UPDATE",
        S::TABLE
    );
    let sent = async || server.status("Com_stmt_execute").await;
    let mut other = server.session().await.unwrap();
    other.query_drop("BEGIN").await.unwrap();
    other.query_drop(&lock).await.unwrap();
    let granted = async |what| only_one_fails(what, locked, claim_all(&store, &claims).await.iter().map(is_granted));
    granted("claim").await;
    let before = sent().await;
    granted("claim again").await;
    let claimed = sent().await - before;
    assert!(claimed < KEYS as u64 / 2, "{claimed} statements: the batch met the row again");

    other.query_drop("ROLLBACK").await.unwrap();
    assert!(claim_all(&store, &claims).await.iter().all(is_granted));
    other.query_drop("BEGIN").await.unwrap();
    other.query_drop(&lock).await.unwrap();
    let is_held = |status: &Result<LeaseStatus>| matches!(status, Ok(Held));
    only_one_fails("renewal", locked, store.renew(&renewals, MINUTE).await.iter().map(is_held));
    only_one_fails("release", locked, release_all(&store, &claims).await.iter().map(is_held));
    let before = sent().await;
    only_one_fails("release again", locked, release_all(&store, &claims).await.iter().map(Result::is_ok));
    let released = sent().await - before;
    assert!(released < KEYS as u64 / 2, "{released} statements: the batch met the row again");
    other.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(release_all(&store, &claims).await[locked].as_ref().unwrap(), &Held);
}

fn only_one_fails(what: &str, one: usize, went_well: impl Iterator<Item = bool>) {
    let failed: Vec<_> = went_well.enumerate().filter(|(_, went_well)| !went_well).map(|(number, _)| number).collect();
    assert_eq!(failed, [one], "{what}");
}

/// For how many seconds batches over the same keys are sent at each isolation level, where this variable says so.
const SECONDS: &str = "LEASEHOLD_TEST_DEADLOCK_SECONDS";

pub async fn batches_over_the_same_keys_are_never_a_deadlock<S: Subject>() {
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let server = migrated::<S>(&["--innodb-flush-log-at-trx-commit=0", "--max-connections=500"]).await;
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}")]).await;
        let before = server.status("Innodb_deadlocks").await;
        let clock = Clock::system();
        let end = clock.now().plus(Duration::from_secs(seconds));
        let (grants, round) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..12u64 {
            let store = store::<S>(&server.url()).await;
            let (grants, round, clock) = (Arc::clone(&grants), Arc::clone(&round), clock.clone());
            tasks.spawn(async move {
                while clock.now() < end {
                    // Every tenth batch is of keys that have no rows yet, which others may add at the same time.
                    let turn = round.fetch_add(1, Ordering::Relaxed);
                    let kind = if turn.is_multiple_of(10) { format!("new/{}", turn / 40) } else { "old".to_owned() };
                    let key =
                        |place: u64| claim(&format!("{kind}/{:02}", (place * 7 + number * 5 + turn) % 48), MINUTE);
                    let claims: Vec<_> = (0..24).map(key).collect();
                    let answers = claim_all(&store, &claims).await;
                    grants.fetch_add(
                        answers.iter().filter(|answer| is_granted(answer)).count() as u64,
                        Ordering::Relaxed,
                    );
                    for answer in &answers {
                        assert!(answer.is_ok(), "{answer:?}");
                    }
                    let granted = claims.iter().zip(&answers).filter(|(_, answer)| is_granted(answer));
                    let granted: Vec<_> = granted.map(|(claim, _)| claim.clone()).collect();
                    for status in release_all(&store, &granted).await {
                        assert_eq!(status.unwrap(), Held);
                    }
                }
            });
        }
        tasks.join_all().await;
        let (grants, deadlocks) = (grants.load(Ordering::Relaxed), server.status("Innodb_deadlocks").await - before);
        eprintln!("{isolation}: {deadlocks} deadlocks, {grants} grants in {seconds} s");
        assert!(grants > 100, "so few show nothing: {grants}");
        assert_eq!(deadlocks, 0, "{isolation}");
    }
}
