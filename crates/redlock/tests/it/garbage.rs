//! Nodes that answer what no node should: a typed error, no panic, and never "nobody holds it"; and one such node is
//! outvoted. The tests that need real nodes beside are ignored where `redis-server` is not installed.

use std::time::Duration;

use leasehold_redlock::{Admin, LockKey, LockOptions, LockerExt, Redlock, RedlockBuilder, Wait};
use leasehold_testkit::redis::{FakeRedis, MALFORMED, Server, rejects_malformed_answers};
use leasehold_testkit::{needs, test};
use tokio::task::JoinSet;

use crate::bench::Nodes;

/// Answers that are odd from a node, whatever they are elsewhere.
const ODD_OF_A_NODE: [&str; 17] = [
    "*1\r\n+9\r\n",
    "*2\r\n+9\r\n+granted 7\r\n",
    "*2\r\n+9\r\n+granted 7 x\r\n",
    "*2\r\n+9\r\n+granted 7 -7\r\n",
    "*2\r\n+9\r\n+granted x -\r\n",
    "*2\r\n+x\r\n+granted 7 -\r\n",
    "*2\r\n+9\r\n+granted 140737488355327 -\r\n",
    "*2\r\n+140737488355327\r\n+granted 7 -\r\n",
    "*2\r\n+9\r\n+granted 7 140737488355328\r\n",
    "*2\r\n+9\r\n$25\r\ngranted 7 -\ngranted 7 - x\r\n",
    "*2\r\n+9\r\n+taken x 0123abcd\r\n",
    "*2\r\n+9\r\n+taken -7 0123abcd\r\n",
    "*2\r\n+9\r\n+held 7 0123abcd\r\n",
    "*2\r\n+9\r\n+claimed 99999999999999999999 0123abcd\r\n",
    "*2\r\n+9\r\n+busy 7 0123abcd\r\n",
    "*1\r\n*3\r\n+held\r\n+0123456789abcdef0123456789abcdef 7 {}\r\n+x\r\n",
    "*3\r\n+held\r\n+0123456789abcdef0123456789abcdef 7 {}\r\n+x\r\n",
];

/// A node that is in service, and answers nothing else as it should.
async fn odd_node(answer: &'static str, incarnation: u8) -> FakeRedis {
    let marker = format!("*4\r\n+up\r\n+{incarnation}{incarnation}\r\n+\r\n+28000000000000\r\n");
    FakeRedis::malformed_but(answer, move |words| match words {
        ["EVALSHA" | "EVAL", _, "1", key, ..] if key.ends_with(":node") => Some(marker.clone().into()),
        ["EVALSHA" | "EVAL", _, "0", ..] => Some("+loaded\r\n".into()),
        _ => None,
    })
    .await
}

/// Of the names of this test alone.
fn of(nodes: impl IntoIterator<Item = String>) -> RedlockBuilder {
    // Longer than reading an answer takes on a busy machine.
    Redlock::builder().nodes(nodes).node_limit(Duration::from_secs(1))
}

#[test]
async fn nothing_that_the_nodes_answer_makes_a_panic_a_guard_or_a_free_key() {
    let mut asking = JoinSet::new();
    for odd in MALFORMED.into_iter().chain(ODD_OF_A_NODE) {
        asking.spawn(async move {
            let nodes = [odd_node(odd, 1).await, odd_node(odd, 2).await, odd_node(odd, 3).await];
            let store = of(nodes.each_ref().map(FakeRedis::url)).backend().await.expect("a connection");
            rejects_malformed_answers(&store, odd).await;
        });
    }
    asking.join_all().await;
}

#[test]
async fn one_node_that_answers_oddly_is_outvoted() {
    let Nodes(nodes) = needs("redis-server", Nodes::start(3).await);
    // All three are set up; the odd one takes the place of the third.
    of(nodes.iter().map(Server::url)).connect().await.unwrap().close().await;
    let mut asking = JoinSet::new();
    for (number, odd) in MALFORMED.into_iter().chain(ODD_OF_A_NODE).enumerate() {
        let [one, other] = [nodes[0].url(), nodes[1].url()];
        asking.spawn(async move {
            let fake = odd_node(odd, 3).await;
            let locks = of([one, other, fake.url()]).connect().await.expect("a connection");
            let key = LockKey::new(format!("k{number}")).unwrap();
            let patient = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)));
            let mut last = None;
            for _ in 0..3 {
                let guard = locks.acquire(&key, &patient).await.expect(odd).expect("it is free");
                assert!(guard.fencing_token() > last, "{odd:?}");
                last = guard.fencing_token();
                let holders = locks.inspect(&key).await.expect(odd);
                assert_eq!(holders.holders.len(), 1, "{odd:?}: {holders:?}");
                let listed = locks.list(key.as_str(), None).await.expect(odd);
                assert!(listed.keys.iter().any(|holders| holders.key == key), "{odd:?}: {listed:?}");
                guard.release().await.expect(odd);
            }
            assert!(locks.inspect(&key).await.expect(odd).holders.is_empty(), "{odd:?}");
            locks.force_release(&key).await.expect(odd);
            locks.close().await;
        });
    }
    asking.join_all().await;
}
