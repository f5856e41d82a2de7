//! What the advisory queue does for waiters, and that nothing depends on it, on a private server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_mysql_unique::{
    Capability, LocalHandoff, LockGuard, LockKey, LockOptions, Locker, LockerExt, MysqlUnique, Wait,
};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{crowd, eventually, test};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// A locker with the advisory queue, which sends every release to the server.
async fn locker(server: &Server, query: &str) -> MysqlUnique {
    let url = format!("{}&advisory_queue=true{query}", server.url());
    MysqlUnique::migrate(&url).await.unwrap();
    MysqlUnique::builder().url(url).local_handoff(LocalHandoff::off()).connect().await.unwrap()
}

fn patient() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

async fn waits(locks: &MysqlUnique, server: &Server, key: &str) -> JoinHandle<()> {
    // A connection that was killed may be among them for a moment longer.
    let before = server.waiting_for_locks().await;
    let (locks, key) = (locks.clone(), LockKey::new(key).unwrap());
    let waiter = tokio::spawn(async move {
        let guard = locks.acquire(&key, &patient()).await.unwrap().expect("it becomes free");
        guard.release().await.unwrap();
    });
    let is_new = |(id, _): &(u64, String)| before.iter().all(|(known, _)| known != id);
    let waits = async || server.waiting_for_locks().await.iter().any(is_new);
    eventually("it waits for the advisory lock", waits).await;
    waiter
}

/// A guard that came through the queue, so that the advisory lock stays with it.
async fn queued_guard(ours: &MysqlUnique, theirs: &MysqlUnique, server: &Server, key: &str) -> LockGuard {
    for _ in 0..2 {
        let guard = theirs.lock(key).await.unwrap();
        let (next, ()) = tokio::join!(ours.lock(key), async {
            sleep(Duration::from_millis(20)).await;
            guard.release().await.unwrap();
        });
        next.unwrap().release().await.unwrap();
    }
    let guard = ours.lock(key).await.unwrap();
    let waiter = waits(theirs, server, key).await;
    let name = server.waiting_for_locks().await[0].1.split('\'').nth(1).unwrap().to_owned();
    waiter.abort();
    let is_used = server.number(&format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL")).await;
    assert_eq!(is_used, 1, "the holder has no advisory lock");
    guard
}

#[test(multi_thread, server)]
async fn an_acquisition_takes_four_statements_on_a_busy_key_and_two_on_another() {
    let server = Server::needed(&[]).await;
    let lockers = [locker(&server, "").await, locker(&server, "").await];
    crowd(&lockers, "k", lockers.len(), 20).await;
    let before = server.status("Questions").await;
    crowd(&lockers, "k", lockers.len(), 200).await;
    let (count, spent) = (2 * 200, server.status("Questions").await - before);
    // When the machine stalls, a waiter looks whether the advisory lock was lost.
    assert!(spent <= count * 4 + count / 10, "{spent} statements for {count} acquisitions");
    assert_eq!(server.status("Innodb_deadlocks").await, 0);

    lockers[0].lock("cold").await.unwrap().release().await.unwrap();
    let before = server.status("Questions").await;
    for _ in 0..100 {
        lockers[0].lock("cold").await.unwrap().release().await.unwrap();
    }
    // The queries for the status are counted, too.
    assert!(server.status("Questions").await - before < 210);
}

#[test(multi_thread, server)]
async fn clients_take_turns_in_the_order_in_which_they_came() {
    const CLIENTS: usize = 8;
    let server = Server::needed(&[]).await;
    let first = locker(&server, "").await;
    let guard = queued_guard(&first, &locker(&server, "").await, &server, "k").await;
    let turns = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for client in 0..CLIENTS {
        let locks = locker(&server, "").await;
        let (turns, key) = (Arc::clone(&turns), guard.key().clone());
        tasks.spawn(async move {
            for _ in 0..50 {
                let guard = locks.acquire(&key, &patient()).await.unwrap().expect("it becomes free");
                turns.lock().unwrap().push(client);
                sleep(Duration::from_millis(5)).await;
                guard.release().await.unwrap();
            }
        });
    }
    eventually("all wait for their turn", async || server.waiting_for_locks().await.len() == CLIENTS).await;
    guard.release().await.unwrap();
    tasks.join_all().await;
    let turns = turns.lock().unwrap();
    let rounds = turns.windows(CLIENTS);
    let fair = rounds.clone().filter(|round| (0..CLIENTS).all(|client| round.contains(&client))).count();
    // When the machine stalls for a second, a waiter looks whether the advisory lock was lost, and may be first.
    assert!(fair * 2 > rounds.len(), "everybody had a turn in {fair} of {} rounds: {turns:?}", rounds.len());
}

#[test(server)]
async fn waiters_send_hardly_any_claims() {
    let server = Server::needed(&[]).await;
    let (ours, theirs) = (locker(&server, "").await, locker(&server, "").await);
    assert!(ours.capabilities().has(Capability::Wakeup) && !MysqlUnique::claims().has(Capability::Wakeup));
    let guard = queued_guard(&ours, &theirs, &server, "k").await;
    let waiter = waits(&theirs, &server, "k").await;
    let before = server.status("Com_insert").await;
    sleep(Duration::from_secs(2)).await;
    let asked = server.status("Com_insert").await - before;
    assert!(asked <= 8, "asked {asked} times in two seconds");
    guard.release().await.unwrap();
    waiter.await.unwrap();
}

#[test(multi_thread, server)]
async fn where_no_connection_is_left_waiters_poll() {
    let server = Server::needed(&[]).await;
    let lockers = [locker(&server, "&pool_max=1").await, locker(&server, "&pool_max=1").await];
    let guard = queued_guard(&lockers[0], &lockers[1], &server, "k").await;
    // Their one connection waits for the advisory lock of one key; for the other key they have to poll.
    let waiter = waits(&lockers[1], &server, "k").await;
    crowd(&lockers, "other", lockers.len(), 20).await;
    assert!(!waiter.is_finished());
    guard.release().await.unwrap();
    waiter.await.unwrap();
}

#[test(multi_thread, server)]
async fn beside_a_pool_of_the_caller_the_queue_has_connections_of_its_own() {
    let server = Server::needed(&[]).await;
    MysqlUnique::migrate(&server.url()).await.unwrap();
    let pool = leasehold_mysql::Pool::from_url(format!("{}&prefer_socket=false&pool_max=1", server.url())).unwrap();
    let connect =
        || MysqlUnique::builder().pool(pool.clone()).local_handoff(LocalHandoff::off()).advisory_queue(true).connect();
    let (ours, theirs) = (connect().await.unwrap(), connect().await.unwrap());
    let all_of_the_callers = pool.get_conn().await.unwrap();
    let guard = queued_guard(&ours, &theirs, &server, "k").await;
    let waiter = waits(&theirs, &server, "k").await;
    guard.release().await.unwrap();
    waiter.await.unwrap();
    drop(all_of_the_callers);
}
