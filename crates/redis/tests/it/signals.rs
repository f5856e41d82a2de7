//! Notifications through real servers.

use std::time::Duration;

use leasehold_core::{ErrorKind, LockKey, Notification, Notifications, Result, Subscription};
use leasehold_redis::{CHANNEL, Namespace, Store};
use leasehold_testkit::redis::{Answer, Server, user};
use leasehold_testkit::{Proxy, eventually, needs, test};
use tokio::time::timeout;

use crate::stores::open;

async fn subscribe(store: &Store, key: &str) -> Result<Box<dyn Subscription>> {
    store.subscribe(&LockKey::new(key)?).await
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
    let store = open(&proxy.url(&server.url())).await.unwrap();
    let (mut one, mut two) = (subscribe(&store, "a").await.unwrap(), subscribe(&store, "b").await.unwrap());
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
    let store = open(&server.url()).await.unwrap();
    let mut flooded = subscribe(&store, "flooded").await.unwrap();
    let mut quiet = subscribe(&store, "quiet").await.unwrap();
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
    let store = open(&user(&server, &["resetchannels"]).await).await.unwrap();
    assert_eq!(subscribe(&store, "k").await.err().unwrap().kind(), ErrorKind::Backend);
    let subscriptions = server.calls("subscribe").await;
    assert_eq!(subscribe(&store, "k").await.err().unwrap().kind(), ErrorKind::Unsupported);
    assert_eq!(server.calls("subscribe").await, subscriptions);
    server.ask(&["ACL", "SETUSER", "app", "allchannels"]).await;
    eventually("the server is asked again", async || subscribe(&store, "k").await.is_ok()).await;
}

#[test]
async fn whoever_listens_is_told_when_nothing_will_be_heard_any_more() {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = open(&user(&server, &[]).await).await.unwrap();
    let mut listener = subscribe(&store, "k").await.unwrap();
    // The connection is gone, and subscribing again is refused.
    server.ask(&["ACL", "SETUSER", "app", "resetchannels"]).await;
    let ended = async { while listener.next().await != Notification::Ended {} };
    timeout(Duration::from_secs(60), ended).await.expect("an end");
    server.ask(&["ACL", "SETUSER", "app", "allchannels"]).await;
    let mut listener = subscribe(&store, "k").await.unwrap();
    assert_eq!(publish(&server, "k").await, 1);
    hears(&mut *listener).await;
}
