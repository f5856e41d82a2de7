use leasehold_redlock::{Admin, ErrorKind, LockKey, Redlock};
use leasehold_testkit::redis::{LeastUser, Recorder, Server};
use leasehold_testkit::{needs, test};

use crate::bench::{Nodes, acquire, deployment, lock, once, take};

#[test]
async fn a_listing_without_a_right_that_it_needs_is_an_error_and_not_an_empty_one() {
    let (nodes, locks) = deployment(3).await;
    let _held = take(&locks, "k").await;
    let least = LeastUser::of(include_str!("../../README.md"));
    for (refusing, is_an_error) in [(3, true), (2, true), (1, false)] {
        let mut urls: Vec<String> = nodes.0.iter().map(Server::url).collect();
        for (url, node) in urls.iter_mut().zip(&nodes.0[..refusing]) {
            *url = least.make(node, &["+pttl"]).await;
        }
        let theirs = Redlock::builder().nodes(urls).connect().await.unwrap();
        match theirs.list("", None).await {
            Ok(page) => assert!(!is_an_error && page.keys.len() == 1, "{refusing} refuse: {page:?}"),
            Err(error) => {
                assert!(is_an_error, "{refusing} refuse: {error}");
                assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
                assert!(error.to_string().contains("PTTL"), "{error}");
            }
        }
    }
}

#[test]
async fn a_listing_of_a_minority_is_an_error_wherever_in_the_order_it_is() {
    let nodes = needs("redis-server", Nodes::start(3).await);
    for answering in 0..3 {
        let locks = nodes.redlock().await;
        let silent = || nodes.0.iter().enumerate().filter(|(index, _)| *index != answering).map(|(_, node)| node);
        silent().for_each(Server::pause);
        let listed = locks.list("", None).await;
        silent().for_each(Server::resume);
        let error = listed.expect_err("too few nodes answered");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[test]
async fn an_entry_that_is_not_ours_is_named_or_shown_where_it_is_in_the_way_and_freed_by_force() {
    let (nodes, locks) = deployment(3).await;
    let held = take(&locks, "k").await;
    let theirs = LockKey::new("b").unwrap();
    for node in &nodes.0 {
        node.ask(&["SADD", &lock("a"), "theirs"]).await;
        node.ask(&["SET", &lock("b"), "theirs", "PX", "60000"]).await;
    }
    let error = acquire(&locks, "a", &once()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("set"), "{error}");
    assert_eq!(nodes.0[0].ask(&["SCARD", &lock("a")]).await.number(), 1);
    assert!(acquire(&locks, "b", &once()).await.unwrap().is_none(), "it is in the way");
    let mut listed = locks.list("", None).await.unwrap().keys;
    listed.sort_by(|one, other| one.key.as_str().cmp(other.key.as_str()));
    let keys: Vec<_> = listed.iter().map(|holders| &holders.key).collect();
    assert_eq!(keys, [&theirs, held.key()], "an entry of another type is no held key");
    for seen in [listed.remove(0), locks.inspect(&theirs).await.unwrap(), locks.force_release(&theirs).await.unwrap()] {
        let [holder] = &seen.holders[..] else { panic!("{seen:?}") };
        assert_eq!((holder.token, &holder.label), (None, &None));
        assert!(holder.remaining.is_some());
    }
    take(&locks, "b").await.release().await.unwrap();
}

#[test]
async fn a_release_by_force_that_may_not_signal_says_so() {
    let (nodes, locks) = deployment(3).await;
    let guard = take(&locks, "k").await;
    let urls = LeastUser::of(include_str!("../../README.md")).make_on(&nodes.0, &["+publish"]).await;
    let theirs = Redlock::builder().nodes(urls).connect().await.unwrap();
    let recorder = Recorder::start();
    assert_eq!(theirs.force_release(guard.key()).await.unwrap().holders.len(), 1);
    let told = recorder.recorded();
    assert!(told.contains("(PUBLISH)") && told.contains("find out by asking"), "{told}");
}
