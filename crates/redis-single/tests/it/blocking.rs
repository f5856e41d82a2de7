//! The release of the last blocking guard, whose thread has the connection, on a private server; without one it is ignored.

use std::time::Duration;

use leasehold_core::{LockOptions, LockerExt, blocking};
use leasehold_redis_single::RedisSingle;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};

const LEASE: Duration = Duration::from_secs(60);

fn last_guard(url: String) -> blocking::LockGuard {
    let connects = move || {
        let locks = blocking::Locks::connect(|| RedisSingle::connect(&url)).unwrap();
        locks.lock_with("k", &LockOptions::new().ttl(LEASE)).unwrap()
    };
    std::thread::spawn(connects).join().unwrap()
}

#[test(multi_thread)]
async fn the_last_guard_is_released_within_a_runtime_and_when_a_silent_server_goes_on() {
    let server = needs("redis-server", Server::start(&[]).await);
    let is_free_and_alone = async || {
        let locks = RedisSingle::connect(&server.url()).await.unwrap();
        let guard = locks.lock_for("k", LEASE / 2).await.expect("it is released, and not left to its lease");
        guard.release().await.unwrap();
        drop(locks);
        eventually("the thread has ended with its connection", async || server.clients().await == 0).await;
    };
    drop(last_guard(server.url()));
    is_free_and_alone().await;
    let guard = last_guard(server.url());
    server.pause();
    let drops = std::thread::spawn(move || drop(guard));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    server.resume();
    drops.join().unwrap();
    is_free_and_alone().await;
}
