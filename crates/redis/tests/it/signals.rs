//! Notifications through real servers, which the tests start; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_core::{ErrorKind, LockKey, Notification, Notifications, Subscription};
use leasehold_redis::{CHANNEL, Namespace, Store};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{Proxy, eventually, needs, test};
use tokio::time::timeout;

use crate::stores::open;

struct Radio {
    store: Store,
}

impl Radio {
    async fn new(url: &str) -> Self {
        Self { store: open(url).await.expect("a connection") }
    }

    async fn subscribe(&self, key: &str) -> leasehold_core::Result<Box<dyn Subscription>> {
        self.store.subscribe(&LockKey::new(key)?).await
    }
}

fn channel(key: &str) -> String {
    Namespace::default().of(&LockKey::new(key).expect("a good key")).part(CHANNEL)
}

/// Returns to how many it went.
async fn publish(server: &Server, key: &str) -> i64 {
    server.ask(&["PUBLISH", &channel(key), "1"]).await.number()
}

async fn channels(server: &Server) -> usize {
    match server.ask(&["PUBSUB", "CHANNELS"]).await {
        Answer::List(channels) => channels.len(),
        other => panic!("{other:?}"),
    }
}

async fn hears(listener: &mut dyn Subscription) {
    timeout(Duration::from_secs(20), listener.next()).await.expect("a hint within 20 s");
}

#[test]
async fn everybody_is_woken_after_a_break_and_subscribed_again() {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let radio = Radio::new(&proxy.url(&server.url())).await;
    let (mut one, mut two) = (radio.subscribe("a").await.unwrap(), radio.subscribe("b").await.unwrap());
    proxy.cut();
    hears(&mut *one).await;
    hears(&mut *two).await;
    eventually("it is subscribed again", async || channels(&server).await == 2).await;
    publish(&server, "a").await;
    hears(&mut *one).await;
}

#[test]
async fn a_flood_of_signals_loses_nobody() {
    let server = needs("redis-server", Server::start(&[]).await);
    let radio = Radio::new(&server.url()).await;
    let (mut flooded, mut quiet) = (radio.subscribe("flooded").await.unwrap(), radio.subscribe("quiet").await.unwrap());
    let flood = format!("for i = 1, 20000 do redis.call('PUBLISH', '{}', '1') end", channel("flooded"));
    server.ask(&["EVAL", &flood, "0"]).await;
    publish(&server, "quiet").await;
    hears(&mut *flooded).await;
    hears(&mut *quiet).await;
    publish(&server, "flooded").await;
    hears(&mut *flooded).await;
}

#[test]
async fn refused_subscriptions_are_an_error_and_are_asked_for_again_only_after_a_while() {
    let server = needs("redis-server", Server::start(&[]).await);
    server.ask(&["ACL", "SETUSER", "mute", "on", ">pw", "~*", "resetchannels", "+@all"]).await;
    let url = server.url().replace("redis://", "redis://mute:pw@");
    let radio = Radio::new(&url).await;
    let kind = radio.subscribe("k").await.err().unwrap().kind();
    assert_eq!(kind, ErrorKind::Backend);
    let subscriptions = server.calls("subscribe").await;
    let kind = radio.subscribe("k").await.err().unwrap().kind();
    assert_eq!(kind, ErrorKind::Unsupported);
    assert_eq!(server.calls("subscribe").await, subscriptions);
    server.ask(&["ACL", "SETUSER", "mute", "allchannels"]).await;
    eventually("the server is asked again", async || radio.subscribe("k").await.is_ok()).await;
}

#[test]
async fn whoever_listens_is_told_when_nothing_will_be_heard_any_more() {
    let server = needs("redis-server", Server::start(&[]).await);
    server.ask(&["ACL", "SETUSER", "app", "on", ">pw", "~*", "allchannels", "+@all"]).await;
    let radio = Radio::new(&server.url().replace("redis://", "redis://app:pw@")).await;
    let mut listener = radio.subscribe("k").await.unwrap();
    // The connection is gone, and subscribing again is refused.
    server.ask(&["ACL", "SETUSER", "app", "resetchannels"]).await;
    let ended = async { while listener.next().await != Notification::Ended {} };
    timeout(Duration::from_secs(60), ended).await.expect("an end");
    server.ask(&["ACL", "SETUSER", "app", "allchannels"]).await;
    let mut listener = radio.subscribe("k").await.unwrap();
    assert_eq!(publish(&server, "k").await, 1);
    hears(&mut *listener).await;
}
