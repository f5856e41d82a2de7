use std::time::Duration;

use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::Config;
use leasehold_redlock::core::Clock;
use leasehold_redlock::{Admin, ErrorKind, LockKey, NodeCondition, Redlock, Result};
use leasehold_testkit::redis::{LeastUser, Recorder, Server, a_release_by_force_is_told};
use leasehold_testkit::{eventually, needs, test};

use crate::bench::{Nodes, acquire, conditions, cycle, deployment, lock, once, patient, take, unavailable};
use crate::tokens::is_kept_for;

#[test]
async fn one_server_under_two_names_is_refused() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let url = |index: usize, host: &str, tail: &str| format!("redis://{host}:{}{tail}", nodes.0[index].port());
    let nobody = ["ACL", "SETUSER", "nobody", "on", ">pw", "~*", "+@all", "-info"];
    nodes.0[0].ask(&nobody).await;
    let unknown = |host| url(0, host, "").replace("//", "//nobody:pw@");
    for [first, twin] in [
        [url(0, "127.0.0.1", ""), url(0, "localhost", "")],
        [url(0, "127.0.0.1", "/0"), url(0, "127.0.0.1", "/1")],
        // Where the server does not tell which it is, its marker does.
        [unknown("127.0.0.1"), unknown("localhost")],
    ] {
        let refused = Redlock::builder().nodes([first, twin, url(1, "127.0.0.1", "")]).connect().await;
        let error = refused.expect_err("two votes of one server");
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().contains("the same server"), "{error}");
    }
}

#[test]
async fn a_node_that_refuses_the_password_is_named_and_outvoted_and_a_majority_of_them_is_an_error_for_good() {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(needs("redis-server", Server::start(&["--requirepass", "hunter2"]).await));
    }
    let connect = |right: usize| {
        let wrong = servers[right..].iter().map(|server| server.url().replace("hunter2", "sesame"));
        Redlock::builder().nodes(servers[..right].iter().map(Server::url).chain(wrong)).connect()
    };
    connect(3).await.unwrap().close().await;
    let locks = connect(2).await.unwrap();
    cycle(&locks, "k").await;
    let states = conditions(&locks).await;
    assert_eq!(states[..2], [NodeCondition::Serving, NodeCondition::Serving]);
    let NodeCondition::Refused(why) = &states[2] else { panic!("{states:?}") };
    assert!(why.contains("wrong user or password"), "{why}");
    let error = connect(1).await.expect_err("no majority lets us in");
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    let told = format!("{error} {error:?} {locks:?}");
    assert!(told.contains("wrong user or password") && !told.contains("sesame"), "{told}");
}

#[test]
async fn a_node_that_came_back_empty_is_told_of_once_and_does_not_count_until_it_is_repaired() {
    let (mut nodes, locks) = deployment(3).await;
    let mut tokens = vec![cycle(&locks, "k").await];
    let log = Recorder::start();
    let lines = |what: &str| log.recorded().lines().filter(|line| line.contains(what)).count();
    nodes.0[0].restart().await;
    eventually("it is seen to be empty", async || conditions(&locks).await[0] == NodeCondition::Reset).await;
    tokens.push(cycle(&locks, "k").await);

    nodes.0[1].pause();
    let error = unavailable(&locks, "k").await;
    assert!(error.to_string().contains("node reset"), "{error}");
    nodes.0[1].resume();
    for _ in 0..10 {
        tokens.push(cycle(&locks, "k").await);
    }
    assert_eq!((lines("quorum has no data"), lines("has a vote again")), (1, 0), "{}", log.recorded());
    // Another program that connects does not take it for a new one either.
    let others = nodes.redlock().await;
    assert_eq!(conditions(&others).await[0], NodeCondition::Reset);

    eventually("all others answer", async || conditions(&locks).await[1] == NodeCondition::Serving).await;
    let states = locks.repair().await.unwrap();
    assert!(states.iter().all(|state| state.condition == NodeCondition::Serving), "{states:?}");
    assert_eq!(lines("has a vote again"), 1, "{}", log.recorded());
    let week = Duration::from_secs(7 * 24 * 3600);
    assert!(is_kept_for(&nodes.0[0], "{leasehold:k}:fence", week).await, "the counters were not copied");
    nodes.0[1].pause();
    tokens.push(cycle(&locks, "k").await);
    nodes.0[1].resume();
    tokens.push(cycle(&others, "k").await);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
async fn a_repair_waits_until_the_leases_that_lost_a_vote_are_over() {
    let (mut nodes, locks) = deployment(3).await;
    let lease = Duration::from_secs(2);
    let (clock, began) = (Clock::system(), Clock::system().now());
    let guard = acquire(&locks, "k", &patient().ttl(lease).renew(false)).await.unwrap().unwrap();
    nodes.0[0].restart().await;
    eventually("it is seen to be empty", async || conditions(&locks).await[0] == NodeCondition::Reset).await;
    locks.repair().await.unwrap();
    assert!(clock.now().since(began) >= lease && !guard.is_held());
}

#[test]
async fn most_nodes_without_their_data_are_beyond_repair() {
    let (mut nodes, locks) = deployment(3).await;
    for node in &mut nodes.0[..2] {
        node.restart().await;
    }
    eventually("they are seen to be empty", async || {
        conditions(&locks).await[..2] == [NodeCondition::Reset, NodeCondition::Reset]
    })
    .await;
    let error = locks.repair().await.expect_err("nobody knows the counters");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("1 of 3 nodes have their data, 2 must"), "{error}");
}

#[test]
async fn a_new_deployment_is_set_up_only_when_all_nodes_answer() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    nodes.0[2].pause();
    let locks = nodes.redlock().await;
    let error = unavailable(&locks, "k").await;
    assert!(error.to_string().contains("node reset"), "{error}");
    nodes.0[2].resume();
    // Without connecting again: the missing node is knocked at.
    cycle(&locks, "k").await;
    eventually("all serve", async || conditions(&locks).await == vec![NodeCondition::Serving; 3]).await;
}

#[test]
async fn a_deployment_that_was_set_up_by_half_is_completed() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let marker = "{leasehold:}:node";
    for (node, mark) in nodes.0.iter().zip(["2 new 1 0", "2 new 2 0", "2 up 3 0"]) {
        node.ask(&["SET", marker, mark]).await;
    }
    let locks = nodes.redlock().await;
    assert_eq!(conditions(&locks).await, vec![NodeCondition::Serving; 3]);
    assert!(nodes.0[0].ask(&["GET", marker]).await.text().starts_with("2 up 1 "));
}

#[test]
async fn inspection_tells_which_nodes_are_silent() {
    let (nodes, locks) = deployment(3).await;
    let guard = acquire(&locks, "k", &patient().label("me")).await.unwrap().unwrap();
    nodes.0[1].pause();
    let seen = locks.inspect(guard.key()).await.unwrap();
    let listed = locks.list("", None).await.unwrap();
    nodes.0[1].resume();
    let label = seen.holders[0].label.clone().unwrap();
    assert!(label.starts_with("me (on 2 of 3 nodes; redis://127.0.0.1:"), "{label}");
    assert_eq!(seen.holders[0].token, guard.fencing_token());
    assert_eq!(listed.keys.len(), 1);
    assert_eq!(listed.keys[0].key, LockKey::new("k").unwrap());
}

#[test]
async fn borrowed_clients_serve_and_are_left_alone() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let mut clients = Vec::new();
    for server in &nodes.0 {
        let client = Builder::from_config(Config::from_url(&server.url()).unwrap()).build().unwrap();
        client.init().await.unwrap();
        clients.push(client);
    }
    let locks = Redlock::from_clients(clients.clone()).await.unwrap();
    take(&locks, "k").await.release().await.unwrap();
    locks.close().await;
    for client in &clients {
        client.ping::<()>(None).await.unwrap();
        client.quit().await.unwrap();
    }
}

#[test]
async fn closing_leaves_no_connection() {
    let (nodes, locks) = deployment(3).await;
    let (guard, other) = (take(&locks, "k").await, nodes.redlock().await);
    assert!(acquire(&other, "k", &once()).await.unwrap().is_none());
    drop(other);
    locks.close().await;
    assert!(!guard.is_held());
    for node in &nodes.0 {
        eventually("the connections are gone", async || node.clients().await == 0).await;
    }
    assert_eq!(nodes.having("k").await, 0);
}

#[test]
async fn the_least_permissions_are_enough_for_a_repair() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let urls = LeastUser::of(include_str!("../../README.md")).make_on(&nodes.0, &[]).await;
    let locks = Redlock::builder().nodes(urls).connect().await.unwrap();
    cycle(&locks, "k").await;
    nodes.0[0].ask(&["FLUSHALL"]).await;
    eventually("it is seen to be empty", async || conditions(&locks).await[0] == NodeCondition::Reset).await;
    locks.repair().await.unwrap();
}

#[test]
async fn a_node_that_is_being_repaired_does_not_count() {
    let (nodes, locks) = deployment(3).await;
    let marker = "{leasehold:}:node";
    let before = nodes.0[0].ask(&["GET", marker]).await;
    // As a program leaves it that ends in the middle of healing.
    nodes.0[0].ask(&["SET", marker, "2 healing 1 0"]).await;
    let others = nodes.redlock().await;
    assert_eq!(conditions(&others).await[0], NodeCondition::Reset);
    nodes.0[1].pause();
    assert!(unavailable(&locks, "k").await.to_string().contains("node reset"));
    nodes.0[1].resume();
    eventually("all others answer", async || conditions(&locks).await[1] == NodeCondition::Serving).await;
    locks.repair().await.unwrap();
    let after = nodes.0[0].ask(&["GET", marker]).await;
    assert!(after.text().starts_with("2 up ") && after != before, "{after:?}");
}

/// All pages of a listing, with what happens after the first.
async fn listed(locks: &Redlock, after_the_first: impl AsyncFnOnce()) -> Vec<String> {
    let mut page = locks.list("", None).await.unwrap();
    after_the_first().await;
    let mut keys: Vec<String> = page.keys.iter().map(|holders| holders.key.as_str().to_owned()).collect();
    while let Some(next) = page.next {
        page = locks.list("", Some(&next)).await.unwrap();
        keys.extend(page.keys.iter().map(|holders| holders.key.as_str().to_owned()));
    }
    keys.sort();
    keys
}

#[test]
async fn a_key_that_came_late_to_a_node_is_listed_all_the_same() {
    let (nodes, locks) = deployment(3).await;
    let (_a, _b) = (take(&locks, "a").await, take(&locks, "b").await);
    eventually("each is listed once", async || listed(&locks, async || {}).await == ["a", "b"]).await;
    // The claim for it is still on its way to the first node while that is gone through.
    let entry = nodes.0[0].ask(&["GETDEL", &lock("b")]).await.text().to_owned();
    let (owner, metadata) = entry.split_once(" {\"since\":").unwrap();
    let rest = metadata.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let arrive = async || {
        let leasehold_testkit::redis::Answer::List(time) = nodes.0[0].ask(&["TIME"]).await else { panic!("no time") };
        let (seconds, micros): (u64, u64) = (time[0].text().parse().unwrap(), time[1].text().parse().unwrap());
        let entry = format!("{owner} {{\"since\":{}{rest}", seconds * 1000 + micros / 1000);
        nodes.0[0].ask(&["SET", &lock("b"), &entry, "PX", "30000"]).await;
    };
    let keys = listed(&locks, arrive).await;
    assert!(keys.contains(&"b".to_owned()), "{keys:?}");
}

#[test]
async fn the_process_of_a_holder_is_told_of_a_release_by_force() -> Result<()> {
    let nodes = needs("redis-server", Nodes::start(3).await);
    a_release_by_force_is_told(&nodes.builder().backend().await?, &nodes.builder().backend().await?).await
}
