//! The queue of waiters in the server, where connections break or lead elsewhere.

use leasehold_core::{ErrorKind, LockKey, Notification, Notifications, Subscription};
use leasehold_mysql::{AdvisoryQueue, ConnectionSettings};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{PATIENCE, Proxy, eventually, test};
use tokio::time::timeout;

/// The queue of a client of this server.
async fn client(url: &str) -> AdvisoryQueue {
    ConnectionSettings::default().url(url).advisory_queue(true).open("t").await.unwrap().advisory_queue.unwrap()
}

/// A subscription that has the lock already.
async fn first(client: &AdvisoryQueue, key: &str) -> Box<dyn Subscription> {
    let mut first = client.subscribe(&LockKey::new(key).unwrap()).await.unwrap();
    assert_eq!(first.next().await, Notification::Freed);
    first
}

/// A subscription that waits for the lock in the server.
async fn next(client: &AdvisoryQueue, server: &Server, key: &str) -> Box<dyn Subscription> {
    // A connection that was killed may be among them for a moment longer.
    let before = server.waiting_for_locks().await;
    let next = client.subscribe(&LockKey::new(key).unwrap()).await.unwrap();
    let waits = async || server.waiting_for_locks().await.iter().any(|waits| !before.contains(waits));
    eventually("it waits for the lock", waits).await;
    next
}

#[test(multi_thread, server)]
async fn a_waiter_whose_connection_broke_is_told_and_keeps_no_place() {
    let server = Server::needed(&[]).await;
    let ours = client(&server.url()).await;
    let theirs = client(&format!("{}&pool_max=1", server.url())).await;
    let first_of_all = first(&ours, "k").await;
    for _ in 0..2 {
        let mut waits = next(&theirs, &server, "k").await;
        let full = theirs.subscribe(&LockKey::new("other").unwrap()).await.map(drop).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Unavailable);
        assert!(full.to_string().contains("pool_max"), "{full}");
        server.sql(&[&format!("KILL CONNECTION {}", server.waiting_for_locks().await[0].0)]).await;
        assert_eq!(timeout(PATIENCE, waits.next()).await.expect("nobody tells"), Notification::Ended);
        assert_eq!(waits.next().await, Notification::Ended);
    }
    drop(first_of_all);
}

#[test(multi_thread, server)]
async fn the_locks_of_a_server_that_was_left_are_given_up() {
    let (old, new) = (Server::needed(&[]).await, Server::needed(&[]).await);
    let address = Proxy::start(old.port());
    let ours = client(&address.url(&old.url())).await;
    let theirs = client(&old.url()).await;
    let mut had = first(&ours, "k").await;
    let mut waits = next(&theirs, &old, "k").await;
    // A connection for another key finds that the address leads elsewhere.
    address.redirect(new.port());
    let there = first(&ours, "other").await;
    let told = timeout(PATIENCE, waits.next()).await;
    assert_eq!(told.expect("the lock was not given up"), Notification::Freed);
    let told = async { while had.next().await != Notification::Ended {} };
    timeout(PATIENCE, told).await.expect("its waiter goes on asking");
    drop(there);
    // What is on the other server stays.
    let _first = first(&ours, "k").await;
    next(&ours, &new, "k").await;
}
