//! One story on several stores: what is told is the same.

use std::time::Duration;

use leasehold::{Admin, LockOptions, LockerExt, Locks, Memory, Wait};
use leasehold_testkit::{mysql, needs, redis, test};

use crate::document::Document;
use crate::recorder::{Seen, seen_of};

/// Waits, renewals, a forced release and releases.
async fn story(ours: &Locks, theirs: &Locks) {
    let options = LockOptions::new().ttl(Duration::from_secs(2)).label("ada");
    let held = ours.lock_with("k", &options).await.expect("a lock");
    let warns = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(1))).warn_after(Duration::from_millis(100));
    assert!(theirs.lock_with("k", &warns).await.is_err(), "busy");
    let (next, released) = tokio::join!(ours.lock_with("k", &options), held.release());
    released.expect("a release");
    let next = next.expect("a lock");
    theirs.force_release(next.key()).await.expect("a forced release");
    next.lost().await;
    drop(next);
    theirs.lock("k").await.expect("a lock").release().await.expect("a release");
    ours.close().await;
    theirs.close().await;
}

/// What the story tells in memory.
fn in_memory() -> Seen {
    let memory = Memory::new();
    let (ours, theirs) = (Locks::shared(memory.clone()), Locks::shared(memory.contender()));
    seen_of(async move { story(&ours, &theirs).await }).0
}

#[test]
fn redis_tells_the_same_as_memory() {
    let start = async {
        let server = needs("redis-server", redis::Server::start(&[]).await);
        let url = server.url();
        (server, [url.clone(), url.replacen("redis:", "redis-rw:", 1)])
    };
    tells_the_same("redis-single redis-rw", start);
}

#[test]
fn mariadb_tells_the_same_as_memory() {
    let start = async {
        let server = mysql::Server::needed(&[]).await;
        let url = server.url();
        (server, [url.clone(), url.replacen("mysql:", "mysql-rw:", 1)])
    };
    tells_the_same("mysql-unique mysql-rw", start);
}

fn tells_the_same<S>(backends: &str, start: impl Future<Output = (S, [String; 2])>) {
    let (document, expected) = (Document::read(), in_memory());
    let starting =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (server, urls) = starting.block_on(start);
    for (url, backend) in urls.iter().zip(backends.split(' ')) {
        let (seen, ()) = seen_of(async {
            if let Some(tables) = leasehold::kind_of(url).expect("a kind").tables {
                (tables.migrate)(url).await.expect("tables");
            }
            let (ours, theirs) = (leasehold::connect(url).await, leasehold::connect(url).await);
            story(&ours.expect("a connection"), &theirs.expect("a connection")).await;
        });
        // A server may also have been slow, which is told and documented.
        assert!(seen.spans == expected.spans && seen.events.is_superset(&expected.events), "{backend}: {seen:#?}");
        assert!(seen.events.is_subset(&document.events), "{backend}: {seen:#?}");
        for (name, metric) in &expected.metrics {
            let of_memory: Vec<_> = metric.labels.keys().collect();
            let found = seen.metrics.get(name).unwrap_or_else(|| panic!("{backend} has no {name}"));
            assert_eq!((&found.kind, found.labels.keys().collect::<Vec<_>>()), (&metric.kind, of_memory), "{name}");
            assert_eq!(found.labels["backend"], [backend.to_owned()].into(), "{name}");
        }
        assert!(seen.metrics.keys().all(|name| document.metrics.contains_key(name)), "{backend}: {seen:#?}");
    }
    drop(server);
}
