//! A password is in nothing that the backends on Redis show of themselves. What the driver tells is asked of `redis-single`, and what is
//! traced of the program.

use std::fmt::Debug;

use leasehold_core::{Admin, Backed, LockerExt, Result};
use leasehold_redis_reentrant::RedisReentrant;
use leasehold_redis_rw::RedisRw;
use leasehold_redlock::Redlock;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};

const CANARY: &str = "hunter2canary";

/// What is shown of a builder and of its locker, while it has a key and when it is closed.
async fn shown(builder: impl Debug, connected: Result<impl Backed>) -> String {
    let locks = connected.unwrap();
    let guard = locks.lock("k").await.unwrap();
    let told = format!("{builder:?} {locks:?} {guard:?} {:?}", locks.inspect(guard.key()).await);
    guard.release().await.unwrap();
    locks.engine().close().await;
    format!("{told} {:?}", locks.lock("k").await)
}

#[test]
async fn no_backend_on_redis_shows_its_password() {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(needs("redis-server", Server::start(&["--requirepass", CANARY]).await));
    }
    let nodes: Vec<String> = servers.iter().map(Server::url).collect();
    // Of what another backend left under the same names, it would complain.
    let [one, other] = ["one", "other"].map(|namespace| format!("{}?namespace={namespace}", nodes[0]));
    let sessions = RedisReentrant::connect(&one).await;
    let told = [
        shown(RedisReentrant::builder().url(&one), sessions.map(|sessions| sessions.session())).await,
        shown(RedisRw::builder().url(&other), RedisRw::connect(&other).await).await,
        shown(Redlock::builder().nodes(&nodes), Redlock::connect(&nodes.join(",")).await).await,
    ];
    assert!(told.iter().all(|told| told.contains("127.0.0.1") && !told.contains(CANARY)), "{told:#?}");
}
