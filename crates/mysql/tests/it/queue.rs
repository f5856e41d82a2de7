//! The queue of waiters in the server: who is notified, in which order, and what ends a lock.

use std::time::Duration;

use leasehold_core::{
    Attempt, Claim, ErrorKind, LeaseStatus, LockKey, Mode, Notification, Notifications, Renewal, Subscription,
};
use leasehold_mysql::{AdvisoryQueue, ConnectionSettings};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Deadline, PATIENCE, Proxy, eventually, test};
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

/// A client of this server, with its queue.
struct Client {
    queue: AdvisoryQueue,
}

impl Client {
    async fn of(url: &str) -> Self {
        let opened = ConnectionSettings::default().url(url).advisory_queue(true).open("t").await.unwrap();
        Self { queue: opened.advisory_queue.unwrap() }
    }

    async fn pair(server: &Server) -> [Self; 2] {
        [Self::of(&server.url()).await, Self::of(&server.url()).await]
    }

    /// A subscription that has the lock already.
    async fn first(&self, key: &str) -> Box<dyn Subscription> {
        let mut first = self.queue.subscribe(&LockKey::new(key).unwrap()).await.unwrap();
        assert_eq!(first.next().await, Notification::Freed);
        first
    }

    /// A subscription that waits for the lock in the server.
    async fn next(&self, server: &Server, key: &str) -> Box<dyn Subscription> {
        // A connection that was killed may be among them for a moment longer.
        let before = waiting(server).await;
        let next = self.queue.subscribe(&LockKey::new(key).unwrap()).await.unwrap();
        eventually("it waits for the lock", async || waiting(server).await.iter().any(|id| !before.contains(id))).await;
        next
    }
}

/// The connections that wait for a lock.
async fn waiting(server: &Server) -> Vec<u64> {
    let ids = "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT IS_USED_LOCK%'";
    server.session().await.unwrap().query(ids).await.unwrap()
}

async fn freed(subscription: &mut Box<dyn Subscription>) {
    let next = timeout(PATIENCE, subscription.next()).await;
    assert_eq!(next.expect("the lock was not given up"), Notification::Freed);
}

/// What is not kept is given up in far less.
async fn is_kept(server: &Server, next: &mut Box<dyn Subscription>) {
    assert!(timeout(Duration::from_millis(300), next.next()).await.is_err(), "the lock was given up");
    assert_eq!(waiting(server).await.len(), 1);
}

fn claim(key: &str, ttl: Duration) -> Claim {
    Claim { waits: true, ..Claim::new(&LockKey::new(key).unwrap(), Mode::Exclusive, ttl) }
}

const GRANTED: Attempt = Attempt::Granted { epoch: None };
const BUSY: Attempt = Attempt::Busy { retry_in: Some(Duration::ZERO) };

#[test(multi_thread, server)]
async fn subscribers_are_notified_one_after_the_other_in_the_order_in_which_they_came() {
    let server = Server::needed(&[]).await;
    let [ours, theirs] = Client::pair(&server).await;
    let first = ours.first("k").await;
    let mut second = theirs.next(&server, "k").await;
    let mut third = ours.next(&server, "k").await;
    let mut of_other = theirs.first("other").await;
    is_kept_from(&mut second).await;
    drop(first);
    freed(&mut second).await;
    is_kept_from(&mut third).await;
    drop(second);
    freed(&mut third).await;
    // While it is first and finds the key held, it asks again: after 2 ms, 4, 8, 16, 32, and then every 50 ms, or half of each.
    let mut asked = 0;
    let asks = async {
        loop {
            freed(&mut of_other).await;
            asked += 1;
        }
    };
    assert!(timeout(Duration::from_secs(1), asks).await.is_err());
    assert!((2..60).contains(&asked), "asked {asked} times in a second");
    eventually("nobody waits", async || waiting(&server).await.is_empty()).await;
}

async fn is_kept_from(next: &mut Box<dyn Subscription>) {
    assert!(timeout(Duration::from_millis(300), next.next()).await.is_err(), "it is another's turn");
}

#[test(multi_thread, server)]
async fn a_lock_that_led_to_a_grant_is_given_up_when_the_grant_ends() {
    let server = Server::needed(&[]).await;
    let [ours, theirs] = Client::pair(&server).await;
    let minute = Duration::from_secs(60);
    let ends: [(&str, Option<LeaseStatus>); 4] = [
        ("released", None),
        ("not held", Some(LeaseStatus::NotHeld)),
        ("by force", Some(LeaseStatus::ForceReleased)),
        ("over", Some(LeaseStatus::Held)),
    ];
    for (how, status) in ends {
        let (first, _beside) = (ours.first("k").await, ours.first("beside").await);
        let claim = claim("k", minute);
        ours.queue.claimed(&claim, GRANTED);
        drop(first);
        let mut next = theirs.next(&server, "k").await;
        is_kept(&server, &mut next).await;
        // Nobody says that a lease is over.
        let renewal = Renewal { grant: claim.grant(None), ttl: Duration::from_millis(10) };
        match status {
            None => ours.queue.released(&renewal.grant).await,
            Some(status) => ours.queue.renewed(&renewal, &Ok(status)),
        }
        let told = timeout(PATIENCE, next.next()).await;
        assert_eq!(told.ok(), Some(Notification::Freed), "{how}");
    }
}

#[test(multi_thread, server)]
async fn a_waiter_whose_connection_broke_is_told_and_keeps_no_place() {
    let server = Server::needed(&[]).await;
    let ours = Client::of(&server.url()).await;
    let theirs = Client::of(&format!("{}&pool_max=1", server.url())).await;
    let first = ours.first("k").await;
    for _ in 0..2 {
        let mut next = theirs.next(&server, "k").await;
        let full = theirs.queue.subscribe(&LockKey::new("other").unwrap()).await.map(drop).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Unavailable);
        assert!(full.to_string().contains("pool_max"), "{full}");
        server.sql(&[&format!("KILL CONNECTION {}", waiting(&server).await[0])]).await;
        assert_eq!(timeout(PATIENCE, next.next()).await.expect("nobody tells"), Notification::Ended);
        assert_eq!(next.next().await, Notification::Ended);
    }
    drop(first);
}

#[test(multi_thread, server)]
async fn the_locks_of_a_server_that_was_left_are_given_up() {
    let (old, new) = (Server::needed(&[]).await, Server::needed(&[]).await);
    let address = Proxy::start(old.port());
    let ours = Client::of(&address.url(&old.url())).await;
    let theirs = Client::of(&old.url()).await;
    let mut first = ours.first("k").await;
    let mut next = theirs.next(&old, "k").await;
    // A connection for another key finds that the address leads elsewhere.
    address.redirect(new.port());
    let there = ours.first("other").await;
    freed(&mut next).await;
    let told = async { while first.next().await != Notification::Ended {} };
    timeout(PATIENCE, told).await.expect("its waiter goes on asking");
    drop(there);
    // What is on the other server stays.
    let _first = ours.first("k").await;
    ours.next(&new, "k").await;
}

/// A statement waits ten seconds for the lock, and is sent again.
#[test(multi_thread, server)]
async fn a_waiter_remembers_others_for_as_long_as_it_waits() {
    let server = Server::needed(&[]).await;
    let [ours, theirs] = Client::pair(&server).await;
    let deadline = Deadline::after(PATIENCE * 3);
    loop {
        let first = theirs.first("k").await;
        let mut next = ours.next(&server, "k").await;
        let before = server.status("Com_select").await;
        assert!(timeout(Duration::from_secs(11), next.next()).await.is_err(), "it is another's turn");
        assert!(server.status("Com_select").await > before, "the statement did not end");
        drop(first);
        freed(&mut next).await;
        let claim = claim("k", PATIENCE);
        ours.queue.claimed(&claim, GRANTED);
        drop(next);
        ours.queue.released(&claim.grant(None)).await;
        // What is known of others holds for two seconds.
        if ours.queue.defer(&claim).is_some() {
            return;
        }
        assert!(!deadline.is_over(), "it forgot those who were there before");
    }
}

#[test(multi_thread, server)]
async fn who_begins_to_wait_for_the_lock_trusts_it_for_a_second() {
    let server = Server::needed(&[]).await;
    let [ours, theirs] = Client::pair(&server).await;
    let _first = theirs.first("k").await;
    let claim = claim("k", PATIENCE);
    let deadline = Deadline::after(PATIENCE);
    loop {
        ours.queue.claimed(&claim, BUSY);
        assert_eq!(ours.queue.defer(&claim), None);
        let _next = ours.queue.subscribe(&claim.key).await.unwrap();
        if ours.queue.defer(&claim).is_some() {
            return;
        }
        assert!(!deadline.is_over(), "it asks the row although it waits for the lock");
    }
}
