use leasehold_redlock::{ErrorKind, Redlock};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{a_runtime_that_rests_stalls_nobody, eventually, needs, test};
use tokio::task::JoinSet;

use crate::bench::{Nodes, TASKS, acquire, cycle, cycle_many, deployment, fence, lock, once};
use crate::tokens::{COMMANDS, FLEET, NODE};

const CYCLES: usize = 50;

/// How many commands a node was sent, or called in scripts.
async fn calls(node: &Server) -> u64 {
    let mut calls = 0;
    for command in ["evalsha", "get", "mget", "set", "del", "publish", "time", "pttl"] {
        calls += node.calls(command).await;
    }
    calls
}

#[test]
async fn a_cycle_of_many_costs_a_node_few_calls() {
    let (nodes, locks) = deployment(5).await;
    let all_cycle = || cycle_many(&locks, CYCLES, |task, _| task.to_string());
    // The first claim of a key looks what is in the place of its counter.
    all_cycle().await;
    let before = calls(&nodes.0[0]).await;
    all_cycle().await;
    let cycles = u64::try_from(TASKS * CYCLES).unwrap();
    let calls = calls(&nodes.0[0]).await - before;
    assert!(calls <= 5 * cycles, "{calls} calls for {cycles} cycles");
}

#[test(multi_thread)]
async fn a_runtime_that_rests_keeps_nobody_waiting() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    a_runtime_that_rests_stalls_nobody(nodes.redlock().await).await;
}

#[test]
async fn a_key_that_nodes_refuse_is_refused_alone() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    for node in &nodes.0 {
        let rules = ["on", ">pw", "resetkeys", "~{leasehold:}:node", "~{leasehold:ours*", "&*", "+@all"];
        node.ask(&[&["ACL", "SETUSER", "app"][..], &rules].concat()).await;
    }
    let urls = nodes.0.iter().map(|node| node.url().replace("//", "//app:pw@"));
    let locks = Redlock::builder().nodes(urls).connect().await.unwrap();
    let mut trying = JoinSet::new();
    for number in 0..TASKS {
        let locks = locks.clone();
        trying.spawn(async move {
            if number % 8 == 0 {
                let refused = acquire(&locks, &format!("theirs/{number}"), &once()).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Backend, "{refused}");
            } else {
                cycle(&locks, &format!("ours/{number}")).await;
            }
        });
    }
    trying.join_all().await;
    eventually("nothing is left", async || nodes.having("ours/1").await == 0).await;
}

#[test]
async fn a_claim_whose_counter_is_none_keeps_no_other_of_its_batch_from_its_lease() {
    let node = needs("redis-server", Nodes::start(1).await);
    let node = &node.0[0];
    let marker = "{leasehold:}:node";
    node.ask(&["SET", marker, "2 up 1 0"]).await;
    node.ask(&["SET", &fence("a"), "none"]).await;
    let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(32));
    let keys = [fence("a"), fence("b"), fence("c"), lock("a"), lock("b"), lock("c")];
    let keys: Vec<&str> = [marker].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let (same, other) = (format!("{a} 60000 ,\"label\":\"one\"}}"), format!("{c} 5000 ,\"label\":\"two\"}}"));
    let words = ["0", "0", "86400000", &same, &b, &other];
    let script = format!("{COMMANDS}{NODE}{FLEET}");
    let answers = node.ask(&[&["EVAL", &script, "7"], &keys[..], &words].concat()).await;
    let Answer::List(answers) = answers else { panic!("{answers:?}") };
    let lines: Vec<&str> = answers[1].text().lines().collect();
    assert!(lines[0].starts_with("foreign "), "{lines:?}");
    assert!(lines[1..].iter().all(|line| line.starts_with("granted ")), "{lines:?}");
    for (key, owner, label, lease) in [("b", &b, "one", 50_000..=60_000), ("c", &c, "two", 1..=5_000)] {
        let entry = node.ask(&["GET", &lock(key)]).await.text().to_owned();
        assert!(entry.starts_with(owner.as_str()) && entry.contains(label), "{entry}");
        assert!(lease.contains(&node.ask(&["PTTL", &lock(key)]).await.number()), "the lease of {key}");
    }
}
