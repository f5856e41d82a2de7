use std::time::Duration;

use leasehold_redlock::{Admin, ErrorKind, NodeCondition, Redlock};
use leasehold_testkit::redis::Answer;
use leasehold_testkit::{eventually, needs, test};

use crate::bench::{Nodes, acquire, conditions, cycle, deployment, fence, lock, patient, token};

/// Markers can be read all along, so that every node but the empty one is seen to serve.
#[test]
async fn a_node_that_refuses_to_tell_a_lease_or_a_counter_is_no_source_of_a_repair() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let everywhere = async |words: &[&str]| {
        for node in &nodes.0 {
            let words = [&["ACL", "SETUSER", "app"], words].concat();
            assert_eq!(node.ask(&words).await, Answer::Text("OK".into()), "{words:?}");
        }
    };
    let all = ["on", ">pw", "~*", "&*", "+@all", "clearselectors"];
    everywhere(&all).await;
    let urls = nodes.0.iter().map(|node| node.url().replace("//", "//app:pw@"));
    let locks = Redlock::builder().nodes(urls).connect().await.unwrap();
    let guard = acquire(&locks, "k", &patient().ttl(Duration::from_secs(3600)).renew(false)).await.unwrap().unwrap();
    let before = token(&guard);
    nodes.0[0].ask(&["FLUSHALL"]).await;
    eventually("it is seen to be empty", async || conditions(&locks).await[0] == NodeCondition::Reset).await;

    let refused = async |rules: &[&str], command: &str| {
        everywhere(rules).await;
        let error = locks.repair().await.expect_err(command);
        assert_eq!(error.kind(), ErrorKind::Backend, "{command}: {error}");
        assert!(error.to_string().contains(&format!("({command})")), "{command}: {error}");
        assert_eq!(conditions(&locks).await[0], NodeCondition::Reset, "{command}");
        everywhere(&all).await;
    };
    refused(&["-pttl"], "PTTL").await;
    refused(&["-get", "(+get ~*:node)"], "GET").await;
    locks.force_release(guard.key()).await.unwrap();
    // No lease is left, and the counters are asked for.
    refused(&["-get", "(+get ~*:node)", "(+get ~*:lock)"], "GET").await;

    locks.repair().await.unwrap();
    let (healed, known) = (&nodes.0[0], &nodes.0[1]);
    let counter = ["GET", "{leasehold:k}:fence"];
    assert_eq!(healed.ask(&counter).await.text(), known.ask(&counter).await.text());
    assert!(before < cycle(&locks, "k").await);
}

#[test]
async fn a_counter_that_is_not_ours_is_neither_copied_nor_overwritten_by_a_repair() {
    let (nodes, locks) = deployment(5).await;
    cycle(&locks, "k").await;
    nodes.0[1].ask(&["SET", &fence("k"), "140737488355328"]).await;
    let empty = async || {
        nodes.0[0].ask(&["FLUSHALL"]).await;
        eventually("it is seen to be empty", async || conditions(&locks).await[0] == NodeCondition::Reset).await;
    };
    empty().await;
    locks.repair().await.expect("the other three know the counters");
    let counter = async |node: usize| nodes.0[node].ask(&["GET", &fence("k")]).await.text().to_owned();
    assert_eq!(counter(0).await, counter(2).await);

    empty().await;
    nodes.0[0].ask(&["SADD", &fence("k"), "theirs"]).await;
    let error = locks.repair().await.expect_err("there is an entry in the way");
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains(&fence("k")), "{error}");
    assert_eq!(nodes.0[0].ask(&["TYPE", &fence("k")]).await.text(), "set");
}

#[test]
async fn a_lock_that_never_ends_is_named_and_prevents_a_repair() {
    let (nodes, locks) = deployment(3).await;
    let guard = acquire(&locks, "k", &patient().renew(false)).await.unwrap().unwrap();
    nodes.0[0].ask(&["FLUSHALL"]).await;
    eventually("it is seen to be empty", async || conditions(&locks).await[0] == NodeCondition::Reset).await;
    for node in &nodes.0[1..] {
        node.ask(&["PERSIST", &lock("k")]).await;
    }
    let error = locks.repair().await.expect_err("its holder may have it for ever");
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains(&lock("k")) && error.to_string().contains("never expires"), "{error}");
    assert_eq!(locks.inspect(guard.key()).await.unwrap().holders[0].remaining, None);
    locks.force_release(guard.key()).await.unwrap();
    // What somebody else wrote may be a lock of theirs.
    for node in &nodes.0[1..] {
        node.ask(&["SET", &lock("k"), "theirs", "PX", "60000"]).await;
    }
    let error = locks.repair().await.expect_err("nobody knows what it is");
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains(&lock("k")), "{error}");
    locks.force_release(guard.key()).await.unwrap();
    locks.repair().await.unwrap();
    assert_eq!(conditions(&locks).await[0], NodeCondition::Serving);
}
