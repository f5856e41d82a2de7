use std::time::Duration;

use leasehold_redlock::{Capability, Locker};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{eventually, needs, test};
use tokio::time::sleep;

use crate::bench::{Nodes, acquire, cycle, deployment, fence, lock, once, take};

/// What a busy machine may take between a grant and a look at its counter.
const AMPLE: Duration = Duration::from_secs(60);

/// Whether a counter has its whole time before it, but for what has passed since the last grant.
pub(crate) async fn is_kept_for(server: &Server, counter: &str, retention: Duration) -> bool {
    let left = server.ask(&["PTTL", counter]).await.number();
    u64::try_from(left).map(Duration::from_millis).is_ok_and(|left| left + AMPLE > retention && left <= retention)
}

/// What every step may call.
pub(crate) const COMMANDS: &str = include_str!("../../../redis/src/lua/commands.lua");
pub(crate) const NODE: &str = include_str!("../../src/lua/node.lua");
pub(crate) const FLEET: &str = include_str!("../../src/lua/fleet.lua");
const CONFIRM: &str = include_str!("../../src/lua/confirm.lua");

/// Above every clock, as after one that was set back, so that the numbers of the test are all told.
const LAST: u64 = 130_000_000_000_000;

const KEY: &str = "k";
const MARKER: &str = "{leasehold:}:node";
const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// What a node answers to a claim with this proposal, and its clock.
async fn claim(server: &Server, owner: &str, proposal: &str) -> (String, u64) {
    let (script, step) = (format!("{COMMANDS}{NODE}{FLEET}"), format!("{owner} 60000 }}"));
    let words = ["EVAL", &script, "3", MARKER, &fence(KEY), &lock(KEY), "0", proposal, "86400000", &step];
    match server.ask(&words).await {
        Answer::List(answers) => (answers[1].text().to_owned(), answers[0].text().parse().unwrap()),
        other => panic!("{other:?}"),
    }
}

/// A number that a node takes is the rule of the model, `tests/model/state.rs`.
#[test]
async fn a_node_takes_a_number_above_its_own_and_not_ahead_of_its_clock() {
    let Nodes(nodes) = needs("redis-server", Nodes::start(3).await);
    let node = &nodes[0];
    let own: u64 = 20_000_000_000_000;
    for (since, fence_of_the_key, takes) in [(own, "0", own), (0, &own.to_string()[..], own), (own + 5, "7", own + 5)] {
        let answer = async |proposal: u64| {
            for word in [lock(KEY), fence(KEY)] {
                node.ask(&["DEL", &word]).await;
            }
            node.ask(&["SET", MARKER, &format!("2 up 1 {since}")]).await;
            if fence_of_the_key != "0" {
                node.ask(&["SET", &fence(KEY), fence_of_the_key]).await;
            }
            let (answer, clock) = claim(node, A, &proposal.to_string()).await;
            let words: Vec<&str> = answer.split(' ').collect();
            let [granted, floor, number] = words[..] else { panic!("{answer}") };
            assert_eq!((granted, floor), ("granted", &takes.to_string()[..]), "{proposal}");
            let entry = node.ask(&["GET", &lock(KEY)]).await.text().to_owned();
            assert!(entry.starts_with(&format!("{A} {number} {{")), "{entry}");
            let written = node.ask(&["GET", &fence(KEY)]).await;
            assert!(number == "-" || written.text() == number, "{written:?}");
            (number.parse().ok(), clock)
        };
        assert_eq!(answer(0).await.0, None);
        assert_eq!(answer(takes - 1).await.0, None, "below");
        assert_eq!(answer(takes).await.0, None, "its own");
        assert_eq!(answer(takes + 1).await.0, Some(takes + 1));
        let clock = answer(0).await.1;
        assert_eq!(answer(clock).await.0, Some(clock));
        // A minute on a slow machine.
        assert_eq!(answer(clock + 60 * 16_000).await.0, None, "ahead");
    }
    // In the second round, too, unless the clock was set back.
    node.ask(&["DEL", &lock(KEY)]).await;
    claim(node, A, "0").await;
    let script = format!("{COMMANDS}{NODE}{CONFIRM}\nreturn alone(confirm, 0, 0)");
    let confirm = async |owner: &str, ahead: &str| {
        let keys = ["EVAL", &script, "3", &lock(KEY), &fence(KEY), MARKER];
        node.ask(&[&keys[..], &[owner, &LAST.to_string(), ahead, "86400000"]].concat()).await.text().to_owned()
    };
    assert_eq!(confirm(A, "0").await, "early");
    assert_eq!(confirm(A, "200000000000000").await, "fenced");
    // A grant that comes late, after another owner had that number there: strictly above, as the model wants it.
    node.ask(&["DEL", &lock(KEY)]).await;
    claim(node, B, "0").await;
    assert_eq!(confirm(B, "200000000000000").await, format!("conflict {LAST}"));
}

#[test]
async fn a_token_takes_one_round_unless_counters_are_ahead_of_what_is_proposed() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let (fenced, plain) = (nodes.redlock().await, nodes.builder().fencing(false).connect().await.unwrap());
    assert!(fenced.capabilities().has(Capability::Fencing));
    assert_eq!(plain.capabilities().why_not(Capability::Fencing), Some("switched off"));
    let mut calls = Vec::new();
    for (locks, behind) in [(&fenced, false), (&plain, false), (&fenced, true)] {
        if behind {
            for node in &nodes.0 {
                node.ask(&["SET", &fence(KEY), &LAST.to_string()]).await;
            }
        }
        let before = nodes.0[0].calls("set").await;
        for _ in 0..10 {
            let guard = take(locks, KEY).await;
            assert_eq!(guard.fencing_token().is_some(), std::ptr::eq(locks, &raw const fenced));
            guard.release().await.unwrap();
        }
        // What was decided without this node arrives too.
        eventually("the last release", async || nodes.having(KEY).await == 0).await;
        sleep(Duration::from_millis(20)).await;
        calls.push(nodes.0[0].calls("set").await - before);
    }
    let [one_round, plain, two_rounds] = calls[..] else { panic!("{calls:?}") };
    // Lock and counter, the lock, and the lock twice and the counter. Few may need a second round on a busy machine.
    assert!(one_round < 25 && plain == 10 && two_rounds > 25, "{calls:?}");
}

/// A clock that is set back would otherwise give tokens again, which only the counters prevent.
#[test]
async fn most_counters_have_their_whole_retention_after_each_grant() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let nodes = needs("redis-server", Nodes::start(3).await);
    let locks = nodes.builder().fence_retention(DAY).connect().await.unwrap();
    let kept = async || {
        let mut kept = 0;
        for node in &nodes.0 {
            kept += usize::from(is_kept_for(node, &fence(KEY), DAY).await);
        }
        kept >= 2
    };
    let in_two_rounds = LAST.to_string();
    // What the counter of each node is before each grant, if it is not what the grant before it left.
    for before in [None, None, None, Some(&in_two_rounds), None] {
        for node in &nodes.0 {
            if let Some(counter) = before {
                node.ask(&["SET", &fence(KEY), counter]).await;
            }
            node.ask(&["PEXPIRE", &fence(KEY), "600000"]).await;
        }
        let guard = take(&locks, KEY).await;
        assert!(kept().await, "a grant: {before:?}");
        guard.renew().await.unwrap();
        guard.release().await.unwrap();
        assert!(kept().await, "a renewal and a release: {before:?}");
    }
}

#[test]
async fn nodes_of_another_version_are_refused_by_its_number_with_what_to_do() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    // Longer than an answer takes on a busy machine.
    let connect = || nodes.builder().node_limit(Duration::from_secs(5)).connect();
    let mut last = 0;
    for (marker, told) in [
        ("3 up a1 0", "version 3, and this program knows version 2"),
        ("10 idle and more", "version 10, and this program knows version 2"),
        ("up a1", "not a marker"),
    ] {
        let locks = connect().await.unwrap();
        let token = cycle(&locks, KEY).await;
        assert!(token > last, "{token} after {last}");
        last = token;
        for node in &nodes.0 {
            node.ask(&["SET", MARKER, marker]).await;
        }
        let error = connect().await.unwrap_err();
        assert_eq!(error.kind(), leasehold_redlock::ErrorKind::Backend, "{error}");
        assert!(error.to_string().contains(told), "{marker}: {error}");
        let error = acquire(&locks, KEY, &once()).await.unwrap_err();
        assert!(error.to_string().contains("reset"), "{error}");
        for node in &nodes.0 {
            assert_eq!(node.ask(&["GET", MARKER]).await.text(), marker);
            // As the error says.
            node.ask(&["DEL", MARKER]).await;
        }
    }
}

#[test]
async fn a_counter_beyond_all_times_is_outvoted_and_refused_only_by_a_majority() {
    let (nodes, locks) = deployment(3).await;
    let mut last = cycle(&locks, KEY).await;
    for counter in [(1_u64 << 47) - 1, 1 << 47, 999_999_999_999_999, 9_999_999_999_999_999] {
        let counter = counter.to_string();
        for node in &nodes.0 {
            node.ask(&["SET", &fence(KEY), &counter]).await;
            // One node is outvoted, like one that is down.
            for _ in 0..5 {
                let token = cycle(&locks, KEY).await;
                assert!(token > last && token < 1 << 53, "{token} after {last}, beside {counter}");
                last = token;
            }
            assert_eq!(node.ask(&["GET", &fence(KEY)]).await.text(), counter, "what is not ours was changed");
            node.ask(&["DEL", &fence(KEY)]).await;
        }
        // Two counters at once are a majority's memory: they are put back, and the third's was deleted above.
        let mut before = Vec::new();
        for node in &nodes.0[..2] {
            before.push(node.ask(&["SET", &fence(KEY), &counter, "GET"]).await);
        }
        let error = acquire(&locks, KEY, &once()).await.unwrap_err();
        assert_eq!(error.kind(), leasehold_redlock::ErrorKind::Backend, "{error}");
        assert!(error.to_string().contains(&fence(KEY)), "{error}");
        eventually("nothing is left", async || nodes.having(KEY).await == 0).await;
        for (node, before) in nodes.0.iter().zip(before) {
            node.ask(&["SET", &fence(KEY), before.text()]).await;
        }
    }
}
