//! The nodes of a Cluster, played by the test, so that slots move and nodes die when it says so.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use leasehold_core::{Attempt, ErrorKind, GrantRef, LeaseStatus, Result};
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::Config;
use leasehold_redis::fred::util::redis_keyslot;
use leasehold_redis::{ConnectionSettings, LOCK, Store};
use leasehold_testkit::redis::FakeRedis;
use leasehold_testkit::test;

use crate::stores::{self, RELEASES, bulk, heard};

/// The last slot of each node, and its port, in order: what the nodes say.
type Map = Arc<Mutex<Vec<(u16, u16)>>>;

/// What a node says beside the others.
#[derive(Clone, Copy, Default)]
struct Node {
    /// It does not see most of the others, and tells a map of its own, in which it serves everything.
    is_cut_off: bool,
    /// How many replicas confirm what is written on it.
    replicas: u16,
}

async fn node(map: &Map, says: Node) -> FakeRedis {
    let (map, own) = (Arc::clone(map), Arc::new(Mutex::new(0)));
    let port = Arc::clone(&own);
    let fake = FakeRedis::start(move |words| {
        let (map, own) = (map.lock().unwrap().clone(), *own.lock().unwrap());
        let map = if says.is_cut_off { vec![(16383, own)] } else { map };
        let serving = |slot: u16| map.iter().find(|(last, _)| slot <= *last).map_or(0, |(_, port)| *port);
        Some(match *words {
            ["CLUSTER", "SLOTS"] => {
                let mut first = 0;
                let ranges: Vec<_> = map
                    .iter()
                    .map(|(last, port)| {
                        let (host, id) = (bulk("127.0.0.1"), bulk(&format!("id-{port}")));
                        let range = format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n{host}:{port}\r\n{id}");
                        first = last + 1;
                        range
                    })
                    .collect();
                format!("*{}\r\n{}", ranges.len(), ranges.concat())
            }
            ["CLUSTER", "INFO"] => bulk(if says.is_cut_off { "cluster_state:fail" } else { "cluster_state:ok" }),
            ["EVALSHA", _, _, ref keys @ ..] => {
                let slot = redis_keyslot(keys[0].as_bytes());
                match serving(slot) {
                    port if port != own => format!("-MOVED {slot} 127.0.0.1:{port}\r\n"),
                    _ => format!("*2\r\n{}{}", bulk("heard"), bulk(&own.to_string())),
                }
            }
            ["EVAL", _, _, ref keys @ ..] => match serving(redis_keyslot(keys[0].as_bytes())) {
                port if port != own => format!("-MOVED {} 127.0.0.1:{port}\r\n", redis_keyslot(keys[0].as_bytes())),
                _ => bulk("held"),
            },
            ["SCAN", from, ..] => {
                let name = bulk(&format!("{{leasehold:{own} {from}}}:lock").replace(' ', "%20"));
                let next = if from == "0" { "7" } else { "0" };
                format!("*2\r\n{}*1\r\n{name}", bulk(next))
            }
            ["WAIT", ..] => format!(":{}\r\n", says.replicas),
            _ => return None,
        })
    })
    .await;
    *port.lock().unwrap() = fake.port();
    fake
}

/// Three nodes that share the slots, and as many more as serve none.
async fn cluster() -> (Map, [FakeRedis; 3]) {
    let map = Map::default();
    let nodes =
        [node(&map, Node::default()).await, node(&map, Node::default()).await, node(&map, Node::default()).await];
    *map.lock().unwrap() = [5460, 10922, 16383].into_iter().zip(nodes.iter().map(FakeRedis::port)).collect();
    (map, nodes)
}

async fn open_with(nodes: &[&FakeRedis], settings: &ConnectionSettings) -> Result<Store> {
    let more: Vec<_> = nodes[1..].iter().map(|node| format!("node=127.0.0.1:{}", node.port())).collect();
    let url = format!("redis-cluster://127.0.0.1:{}?{}", nodes[0].port(), more.join("&"));
    stores::open_with(&url, settings).await
}

async fn open(nodes: &[&FakeRedis]) -> Result<Store> {
    open_with(nodes, &ConnectionSettings::default()).await
}

/// The port of the node that answers for this key.
async fn asked(store: &Store, key: &str) -> Result<u16> {
    Ok(heard(store, key).await?.parse().unwrap())
}

fn scripts(node: &FakeRedis) -> usize {
    node.received().iter().filter(|words| words[0] == "EVALSHA").count()
}

/// A key in the slots of each of three nodes, and what is the slot of the last.
fn keys() -> [String; 3] {
    let in_slots = |slots: Range<u16>| {
        (0..1000).map(|n| format!("leasehold:k{n}")).find(|key| slots.contains(&redis_keyslot(key.as_bytes())))
    };
    [0..5461, 5461..10923, 10923..16384].map(|slots| in_slots(slots).unwrap())
}

/// A grant whose entry is in the slot of this key.
fn grant_of(key: &str) -> GrantRef {
    stores::grant(key.trim_start_matches("leasehold:"))
}

#[test]
async fn the_map_of_a_node_that_is_cut_off_is_not_believed_while_another_sees_all() {
    let (map, nodes) = cluster().await;
    let alone = node(&map, Node { is_cut_off: true, ..Node::default() }).await;
    map.lock().unwrap()[0].1 = alone.port();
    let store = open(&[&nodes[1]]).await.unwrap();
    let [_, second, last] = keys();
    map.lock().unwrap()[2].1 = nodes[1].port();
    // Whoever asks the last node is sent on, and then all are asked who serves what.
    for _ in 0..5 {
        assert_eq!(asked(&store, &last).await.unwrap(), nodes[1].port());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(asked(&store, &second).await.unwrap(), nodes[1].port());
    }
    assert_eq!(scripts(&alone), 0);
}

#[test]
async fn replicas_are_asked_of_the_node_that_wrote() {
    let map = Map::default();
    let one = node(&map, Node { replicas: 1, ..Node::default() }).await;
    let none = node(&map, Node::default()).await;
    *map.lock().unwrap() = vec![(8000, one.port()), (16383, none.port())];
    let settings = ConnectionSettings { replicas: (1, Duration::from_millis(100)), ..ConnectionSettings::default() };
    let store = open_with(&[&one], &settings).await.unwrap();
    let [first, _, last] = keys().map(|key| grant_of(&key));
    let renewal = |grant| (&stores::ECHO, store.renewal_of(grant, Duration::from_secs(60)));
    let back = || async { Ok(LeaseStatus::Held) }.boxed();
    assert_eq!(store.confirm(&first, || renewal(&first), back).await.unwrap(), Attempt::Granted { epoch: first.epoch });
    assert_eq!(store.confirm(&last, || renewal(&last), back).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let renewed = (0..3).map(|_| Ok(LeaseStatus::Held)).collect();
    let renewed = store.confirm_renewals(Duration::from_secs(4), [&last, &first, &last].into_iter(), renewed).await;
    let counts: Vec<_> = renewed.iter().map(Result::is_ok).collect();
    assert_eq!(counts, [false, true, false]);
    let waits = |node: &FakeRedis| node.received().iter().filter(|words| words[0] == "WAIT").count();
    assert_eq!((waits(&one), waits(&none)), (2, 2));
}

#[test]
async fn a_client_of_the_callers_that_looks_after_a_cluster_is_asked_for_all_nodes() {
    let map = Map::default();
    let one = node(&map, Node { replicas: 1, ..Node::default() }).await;
    let none = node(&map, Node::default()).await;
    *map.lock().unwrap() = vec![(8000, one.port()), (16383, none.port())];
    let config = Config::from_url(&format!("redis-cluster://127.0.0.1:{}", one.port())).unwrap();
    let client = Builder::from_config(config).build().unwrap();
    client.init().await.unwrap();
    let settings = ConnectionSettings { replicas: (1, Duration::from_millis(100)), ..ConnectionSettings::default() };
    let store = Store::from_client(client.clone(), &settings, RELEASES);
    let [first, _, last] = keys();
    assert_eq!(asked(&store, &first).await.unwrap(), one.port());
    assert_eq!(asked(&store, &last).await.unwrap(), none.port());
    let (mut found, mut after) = (BTreeSet::new(), None);
    for _ in 0..4 {
        let (page, next) = store.keys(LOCK, "", after.as_ref()).await.unwrap();
        found.extend(page);
        after = next;
    }
    assert_eq!(found.len(), 4);
    let renewal = |grant| (&stores::ECHO, store.renewal_of(grant, Duration::from_secs(60)));
    let back = || async { Ok(LeaseStatus::Held) }.boxed();
    let grants = [grant_of(&first), grant_of(&last)];
    assert!(store.confirm(&grants[0], || renewal(&grants[0]), back).await.is_ok());
    assert_eq!(
        store.confirm(&grants[1], || renewal(&grants[1]), back).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    // Its slots have moved: the client follows.
    map.lock().unwrap()[1].1 = one.port();
    assert_eq!(asked(&store, &last).await.unwrap(), one.port());
    client.quit().await.unwrap();
}

#[test]
async fn a_cluster_of_which_no_node_answers_or_lets_us_in_says_which() {
    let refuses = FakeRedis::start(|words| (words[0] == "CLUSTER").then_some("-NOPERM you may not\r\n")).await;
    let (_, nodes) = cluster().await;
    let gone = node(&Map::default(), Node::default()).await;
    let empty = node(&Map::default(), Node::default()).await;
    assert_eq!(open(&[&refuses, &gone]).await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(open(&[&gone, &refuses]).await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(open(&[&empty]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(asked(&open(&[&refuses, &empty, &nodes[0]]).await.unwrap(), "k").await.is_ok());
}
