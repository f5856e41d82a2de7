use std::time::Duration;

use leasehold_redlock::{ErrorKind, NodeCondition, Redlock};
use leasehold_testkit::redis::{Answer, Server, ask};
use leasehold_testkit::{eventually, needs, test};
use tokio::time::timeout;

use crate::bench::{AMPLE, Nodes, acquire, conditions, cycle, once, patient, take};

const APP: [&str; 8] = ["ACL", "SETUSER", "app", "on", ">canary", "~*", "&*", "+@all"];
const ROOT: [&str; 8] = ["ACL", "SETUSER", "root", "on", ">root", "~*", "&*", "+@all"];

/// Asks as somebody whose password nobody changes.
async fn as_root(server: &Server, words: &[&str]) {
    let answer = ask(server.port(), &[&["AUTH", "root", "root"], words]).await.unwrap();
    assert!(!matches!(answer, Answer::Refused(_)), "{words:?}: {answer:?}");
}

/// Changes the password of all who are connected as `app`, and breaks their connections.
async fn shut_out(server: &Server) {
    as_root(server, &["ACL", "SETUSER", "app", "resetpass", ">other"]).await;
    as_root(server, &["CLIENT", "KILL", "USER", "app"]).await;
}

/// How many nodes refuse the user. No password is told.
async fn refusing(locks: &Redlock) -> usize {
    let conditions = conditions(locks).await;
    assert!(!format!("{conditions:?}").contains("canary"), "{conditions:?}");
    let refuses = |node: &&NodeCondition| matches!(node, NodeCondition::Refused(why) if why.contains("WRONGPASS"));
    conditions.iter().filter(refuses).count()
}

#[test]
async fn a_node_whose_password_was_changed_is_outvoted_and_a_majority_of_them_ends_waits() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let mut urls = Vec::new();
    for node in &nodes.0 {
        assert_eq!(node.ask(&APP).await.text(), "OK");
        assert_eq!(node.ask(&ROOT).await.text(), "OK");
        urls.push(node.url());
    }
    let connect = async |user: &str| {
        let urls = urls.iter().map(|url| url.replacen("://", &format!("://{user}@"), 1));
        Redlock::builder().nodes(urls).connect().await.unwrap()
    };
    let (theirs, locks) = (connect("root:root").await, connect("app:canary").await);
    let (held, mine) = (take(&theirs, "k").await, take(&locks, "mine").await);
    let wait = || {
        let locks = locks.clone();
        tokio::spawn(async move { acquire(&locks, "k", &patient()).await.map(|guard| guard.expect("it becomes free")) })
    };
    let waiting = wait();

    shut_out(&nodes.0[0]).await;
    eventually("one node refuses", async || refusing(&locks).await == 1).await;
    for _ in 0..10 {
        cycle(&locks, "other").await;
    }
    mine.renew().await.expect("the other two say so");
    assert!(!waiting.is_finished(), "one node ended the wait");
    held.release().await.unwrap();
    let guard = timeout(AMPLE, waiting).await.unwrap().unwrap().expect("the other two grant");
    guard.release().await.unwrap();

    let held = take(&theirs, "k").await;
    let waiting = wait();
    shut_out(&nodes.0[1]).await;
    let error = timeout(AMPLE, waiting).await.unwrap().unwrap().expect_err("a majority refuses for good");
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    let told = format!("{error} {error:?}");
    assert!(told.contains("WRONGPASS") && !told.contains("canary"), "{told}");
    assert!(mine.is_held(), "refused is not lost");

    held.release().await.unwrap();
    for node in &nodes.0[..2] {
        as_root(node, &APP).await;
    }
    let let_in =
        async || acquire(&locks, "k", &once().ttl(Duration::from_secs(60))).await.is_ok_and(|guard| guard.is_some());
    eventually("it is let in", let_in).await;
    mine.release().await.unwrap();
}
