use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_redlock::{NodeCondition, Redlock};
use leasehold_testkit::{eventually, needs, test};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tokio::time::sleep;

use crate::bench::{Nodes, acquire, conditions, cycle, fence, patient};

/// A recorder that knows one gauge, of one node.
struct HasVote {
    node: String,
    shown: Arc<AtomicU64>,
}

impl Recorder for HasVote {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let of_this_node = key.labels().any(|label| label.key() == "node" && label.value() == self.node);
        if key.name() == "leasehold_redlock_node_has_vote" && of_this_node {
            Gauge::from_arc(Arc::clone(&self.shown))
        } else {
            Gauge::noop()
        }
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

async fn all_serve(locks: &Redlock) {
    let serve = async || conditions(locks).await.iter().all(|condition| *condition == NodeCondition::Serving);
    eventually("all nodes serve", serve).await;
}

#[test]
async fn nodes_that_lost_their_data_get_their_votes_back_without_a_call_and_a_gauge_tells() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let node = nodes.0[0].url().trim_end_matches('/').to_owned();
    let recorder = HasVote { node, shown: Arc::new(AtomicU64::new(f64::to_bits(-1.0))) };
    let shown = || f64::from_bits(recorder.shown.load(Ordering::Relaxed));
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let bystander = nodes.redlock().await;
    let before = cycle(&bystander, "k").await;
    assert!(shown() > 0.5, "it shows {}", shown());

    nodes.0[0].ask(&["FLUSHALL"]).await;
    cycle(&bystander, "other").await;
    eventually("the gauge shows it", async || conditions(&bystander).await.len() == 3 && shown().abs() < 0.5).await;
    let mut lockers = Vec::new();
    for _ in 0..3 {
        lockers.push(nodes.builder().auto_repair(true).connect().await.unwrap());
    }
    all_serve(&bystander).await;
    assert!(shown() > 0.5, "it shows {}", shown());
    let counter = async |node: usize| nodes.0[node].ask(&["GET", &fence("k")]).await.text().to_owned();
    assert_eq!(counter(0).await, counter(1).await);

    // Again, with the programs that have repaired one, of which two go away.
    lockers.truncate(1);
    nodes.0[2].ask(&["FLUSHALL"]).await;
    all_serve(&bystander).await;
    assert!(before < cycle(&bystander, "k").await);
    lockers[0].close().await;
}

#[test]
async fn of_several_who_repair_a_node_one_does_and_the_others_wait() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let (one, other) = (nodes.redlock().await, nodes.redlock().await);
    let guard = acquire(&one, "k", &patient().ttl(Duration::from_secs(5)).renew(false)).await.unwrap().unwrap();
    nodes.0[0].ask(&["FLUSHALL"]).await;
    let mut both = std::pin::pin!(async { tokio::join!(one.repair(), other.repair()) });
    let mut healers = BTreeSet::new();
    // For longer than what has been left may stay so.
    let (one_did, other_did) = loop {
        tokio::select! {
            done = &mut both => break done,
            () = sleep(Duration::from_millis(20)) => {
                let marker = nodes.0[0].ask(&["GET", "{leasehold:}:node"]).await;
                let healing = marker.text().strip_prefix("2 healing ").and_then(|rest| rest.split(' ').next());
                healers.extend(healing.map(str::to_owned));
            }
        }
    };
    assert_eq!(healers.len(), 1, "they took the node from each other: {healers:?}");
    for states in [one_did.expect("one"), other_did.expect("the other")] {
        assert!(states.iter().all(|state| state.condition == NodeCondition::Serving), "{states:?}");
    }
    drop(guard);
}
