//! The nodes of a Cluster, played by the test, so that slots move and nodes die when it says so.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{Attempt, Clock, Cursor, ErrorKind, LeaseStatus, LockKey, Notifications, Result};
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::Config;
use leasehold_redis::fred::util::redis_keyslot;
use leasehold_redis::{ConnectionSettings, LOCK, ScriptArguments, Store};
use leasehold_testkit::redis::FakeRedis;
use leasehold_testkit::{eventually, shown, test};

use crate::stores::{self, ECHO, RELEASES, bulk, heard};

/// The last slot of each node, and its port, in order: what the nodes say.
type Map = Arc<Mutex<Vec<(u16, u16)>>>;

/// What a node says beside the others.
#[derive(Clone, Copy, Default)]
struct Node {
    /// It does not see most of the others, and tells a map of its own, in which it serves everything.
    is_cut_off: bool,
    /// How many replicas confirm what is written on it.
    replicas: u16,
    /// It has a slot of which it has some entries, and another node the rest.
    tries: bool,
}

async fn node(map: &Map, says: Node) -> FakeRedis {
    let (map, own) = (Arc::clone(map), Arc::new(Mutex::new(0)));
    let port = Arc::clone(&own);
    let fake = FakeRedis::start(move |words| {
        let (map, own) = (map.lock().unwrap().clone(), *own.lock().unwrap());
        let map = if says.is_cut_off { vec![(16383, own)] } else { map };
        let serving = |slot: u16| map.iter().find(|(last, _)| slot <= *last).map_or(0, |(_, port)| *port);
        let answer = match *words {
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
                    _ if says.tries => "-TRYAGAIN Multiple keys request during rehashing of slot\r\n".to_owned(),
                    _ => format!("*2\r\n{}{}", bulk("heard"), bulk(&own.to_string())),
                }
            }
            ["SCAN", from, ..] => {
                let name = bulk(&format!("{{leasehold:{own} {from}}}:lock").replace(' ', "%20"));
                let next = if from == "0" { "7" } else { "0" };
                format!("*2\r\n{}*1\r\n{name}", bulk(next))
            }
            ["WAIT", ..] => format!(":{}\r\n", says.replicas),
            ["SUBSCRIBE", channel] => format!("*3\r\n{}{}:1\r\n", bulk("subscribe"), bulk(channel)),
            _ => return FakeRedis::greeting(words).unwrap_or_else(|| "-ERR unknown\r\n".into()),
        };
        answer.into()
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
        (0..1000).map(|n| format!("k{n}")).find(|key| slots.contains(&redis_keyslot(key.as_bytes())))
    };
    [0..5461, 5461..10923, 10923..16384].map(|slots| in_slots(slots).unwrap())
}

#[test]
async fn each_key_goes_straight_to_the_node_that_serves_its_slot() {
    let (_, nodes) = cluster().await;
    let store = open(&[&nodes[1]]).await.unwrap();
    for number in 0..50 {
        let key = format!("k{number}");
        let slot = redis_keyslot(key.as_bytes());
        let expected = &nodes[usize::from(slot > 5460) + usize::from(slot > 10922)];
        assert_eq!(asked(&store, &key).await.unwrap(), expected.port(), "{key}");
    }
    assert_eq!(nodes.iter().map(scripts).sum::<usize>(), 50);
    // One key in each script.
    let locks = |range: Range<usize>| range.fold(ScriptArguments::default(), ScriptArguments::text);
    assert_eq!(store.run_for_each(&ECHO, 5, &locks, None).await.len(), 5);
    assert_eq!(nodes.iter().map(scripts).sum::<usize>(), 55);
    assert!(format!("{store:?}").contains("connected: true"), "{store:?}");
    store.close().await;
    assert_eq!(asked(&store, "k").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
async fn all_nodes_are_listed_one_after_the_other() {
    let (_, nodes) = cluster().await;
    let store = open(&[&nodes[0]]).await.unwrap();
    let (mut found, mut after) = (BTreeSet::new(), None);
    for _ in 0..20 {
        let (page, next) = store.keys(LOCK, "", after.as_ref()).await.unwrap();
        assert_eq!(page.len(), 1, "a page ends where something was found");
        found.extend(page.iter().map(ToString::to_string));
        after = next;
        if after.is_none() {
            break;
        }
    }
    let expected = nodes.iter().flat_map(|node| ["0", "7"].map(|place| format!("{} {place}", node.port())));
    assert_eq!((found, after), (expected.collect(), None));
    // A place on a node that is gone: from the beginning of the next one.
    let (page, _) = store.keys(LOCK, "", Some(&Cursor("1 7 1".into()))).await.unwrap();
    assert!(page[0].as_str().ends_with(" 0"), "{page:?}");
}

#[test]
async fn a_slot_that_has_moved_is_followed_once_and_then_known() {
    let (map, nodes) = cluster().await;
    let store = open(&[&nodes[0], &nodes[1]]).await.unwrap();
    let [first, _, last] = keys();
    assert_eq!(asked(&store, &last).await.unwrap(), nodes[2].port());
    // All of it to the second node.
    map.lock().unwrap()[2].1 = nodes[1].port();
    for _ in 0..3 {
        assert_eq!(asked(&store, &last).await.unwrap(), nodes[1].port());
    }
    assert_eq!(scripts(&nodes[2]), 2, "it was asked once more, and said where to go");
    assert_eq!(asked(&store, &first).await.unwrap(), nodes[0].port());
    // To a node that nobody knew.
    let newcomer = node(&map, Node::default()).await;
    map.lock().unwrap()[0].1 = newcomer.port();
    eventually("it is found", async || asked(&store, &first).await.is_ok_and(|port| port == newcomer.port())).await;
    let before = scripts(&nodes[0]);
    assert_eq!(asked(&store, &first).await.unwrap(), newcomer.port());
    assert_eq!(scripts(&nodes[0]), before);
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
async fn a_slot_of_which_two_nodes_have_a_part_is_asked_for_again_for_half_of_the_time() {
    let map = Map::default();
    let torn = node(&map, Node { tries: true, ..Node::default() }).await;
    *map.lock().unwrap() = vec![(16383, torn.port())];
    let limit = Duration::from_millis(600);
    let settings = ConnectionSettings { command_timeout: limit, ..ConnectionSettings::default() };
    let store = open_with(&[&torn], &settings).await.unwrap();
    let clock = Clock::system();
    let began = clock.now();
    let error = asked(&store, "k").await.unwrap_err();
    let took = clock.now().since(began);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(shown(&error).contains("on the way to another node"), "{}", shown(&error));
    assert!(took >= limit / 2, "{took:?}");
    // Every 20 ms, and no more often.
    let times = scripts(&torn);
    assert!(times >= 2 && times <= 2 + usize::try_from(took.as_millis() / 20).unwrap(), "{times}");
}

#[test]
async fn replicas_are_asked_of_the_node_that_wrote() {
    let map = Map::default();
    let one = node(&map, Node { replicas: 1, ..Node::default() }).await;
    let none = node(&map, Node::default()).await;
    *map.lock().unwrap() = vec![(8000, one.port()), (16383, none.port())];
    let settings = ConnectionSettings { replicas: (1, Duration::from_millis(100)), ..ConnectionSettings::default() };
    let store = open_with(&[&one], &settings).await.unwrap();
    let [first, _, last] = keys();
    let back = || Box::pin(async { Ok(LeaseStatus::Held) });
    assert_eq!(store.confirm(&first, 7, back()).await.unwrap(), Attempt::Granted { epoch: Some(7) });
    assert_eq!(store.confirm(&last, 7, back()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let names = vec![last.clone(), first, last];
    let renewed = (0..3).map(|_| Ok(LeaseStatus::Held)).collect();
    let renewed = store.confirm_renewals(Duration::from_secs(4), names, renewed).await;
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
    let back = || Box::pin(async { Ok(LeaseStatus::Held) });
    assert!(store.confirm(&first, 7, back()).await.is_ok());
    assert_eq!(store.confirm(&last, 7, back()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    // Its slots have moved: the client follows.
    map.lock().unwrap()[1].1 = one.port();
    assert_eq!(asked(&store, &last).await.unwrap(), one.port());
    client.quit().await.unwrap();
}

#[test]
async fn notifications_come_from_any_node() {
    let (_, nodes) = cluster().await;
    let key = LockKey::new("k").unwrap();
    let store = open(&[&nodes[0]]).await.unwrap();
    for number in 0..3 {
        asked(&store, &keys()[number]).await.unwrap();
    }
    drop(store.subscribe(&key).await.unwrap());
    let heard = nodes.iter().filter(|node| node.received().iter().any(|words| words[0] == "SUBSCRIBE")).count();
    assert_eq!(heard, 1);
}

#[test]
async fn a_cluster_of_which_no_node_answers_or_lets_us_in_says_which() {
    let refuses = FakeRedis::start(|words| match *words {
        ["CLUSTER", ..] => "-NOPERM you may not\r\n".into(),
        _ => FakeRedis::greeting(words).unwrap_or_else(|| "-ERR unknown\r\n".into()),
    })
    .await;
    let (_, nodes) = cluster().await;
    let gone = node(&Map::default(), Node::default()).await;
    let empty = node(&Map::default(), Node::default()).await;
    assert_eq!(open(&[&refuses, &gone]).await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(open(&[&gone, &refuses]).await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(open(&[&empty]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(asked(&open(&[&refuses, &empty, &nodes[0]]).await.unwrap(), "k").await.is_ok());
}
