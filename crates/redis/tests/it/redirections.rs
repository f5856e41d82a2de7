//! A node of a Cluster that sends its clients elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use leasehold_core::ErrorKind;
use leasehold_testkit::redis::FakeRedis;
use leasehold_testkit::{shown, test};

use crate::stores::{bulk, heard, open};

/// Serves all slots, at least so it says, and sends every script elsewhere. Whether it lists that node is up to the test.
async fn node_that_sends_on(word: &'static str, elsewhere: u16, lists: bool) -> FakeRedis {
    let own = Arc::new(AtomicU16::new(0));
    let port = Arc::clone(&own);
    let fake = FakeRedis::start(move |words| {
        let own = own.load(Ordering::Relaxed);
        Some(match *words {
            // An empty name: the host that is asked.
            ["CLUSTER", "SLOTS"] => format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:{own}\r\n"),
            ["CLUSTER", "NODES"] => {
                let other = if lists { elsewhere } else { 1 };
                let nodes = format!(
                    "aa 127.0.0.1:{own}@1 myself,master - 0 1 1 connected 0-16383\n\
                     bb 127.0.0.1:{other}@1 master - 0 1 2 connected\n"
                );
                bulk(&nodes)
            }
            ["EVALSHA" | "EVAL", ..] => format!("-{word} 7 127.0.0.1:{elsewhere}\r\n"),
            _ => return None,
        })
    })
    .await;
    port.store(fake.port(), Ordering::Relaxed);
    fake
}

async fn echo(node: &FakeRedis) -> leasehold_core::Result<String> {
    heard(&open(&format!("redis-cluster://:secret@127.0.0.1:{}", node.port())).await?, "k").await
}

async fn elsewhere() -> FakeRedis {
    FakeRedis::start(|words| match *words {
        ["ASKING"] => Some("+OK\r\n"),
        ["EVALSHA", ..] => Some("*2\r\n$5\r\nheard\r\n$1\r\na\r\n"),
        _ => None,
    })
    .await
}

#[test]
async fn nobody_is_followed_to_a_server_that_the_cluster_does_not_list() {
    for word in ["ASK", "MOVED"] {
        let stranger = elsewhere().await;
        let node = node_that_sends_on(word, stranger.port(), false).await;
        let error = echo(&node).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(shown(&error).contains("on the way to another node"), "{}", shown(&error));
        // Three times at once, and then every 20 ms for half a second.
        let times = node.received().iter().filter(|words| words[0] == "EVALSHA").count();
        assert!((4..40).contains(&times), "{times}");
        assert_eq!(stranger.received(), Vec::<Vec<String>>::new(), "{word}");
    }
}

#[test]
async fn a_node_that_the_cluster_lists_is_asked_with_the_word_that_it_wants() {
    let other = elsewhere().await;
    let node = node_that_sends_on("ASK", other.port(), true).await;
    assert_eq!(echo(&node).await.unwrap(), "a");
    let heard: Vec<String> = other.received().into_iter().map(|mut words| words.swap_remove(0)).collect();
    let asking = heard.iter().position(|word| word == "ASKING").expect("it is told");
    assert_eq!(heard[asking + 1], "EVALSHA");
}
