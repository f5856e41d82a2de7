//! A quorum over TLS, with certificates made here; without `redis-server` with TLS, or `openssl`, it is ignored.

use leasehold_redlock::{ErrorKind, LockerExt, NodeCondition, Redlock};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Authority, needs, test};

#[test]
async fn nodes_are_reached_over_tls_and_one_that_is_not_itself_has_no_vote() {
    let [authority, stranger] = [(); 2].map(|()| needs("openssl", Authority::new()));
    let ours = authority.issue("us", "DNS:us");
    let (mut servers, mut urls) = (Vec::new(), Vec::new());
    for number in 0..5 {
        let server = needs("redis-server", Server::start(&[]).await);
        let issued = authority.issue(&format!("node{number}"), "IP:127.0.0.1");
        let port = needs("redis-server with TLS", server.serve_tls(authority.files(&issued), "yes").await);
        let [ca, cert, key] = authority.files(&ours).map(|file| file.to_str().unwrap().to_owned());
        urls.push(format!("rediss://127.0.0.1:{port}?cacert={ca}&cert={cert}&key={key}"));
        servers.push(server);
    }
    let locks = Redlock::connect(&urls.join(",")).await.unwrap();
    let guard = locks.lock("k").await.unwrap();
    assert!(guard.fencing_token().is_some());
    guard.release().await.unwrap();
    locks.close().await;

    let elsewhere = stranger.issue("node0", "IP:127.0.0.1");
    let port = servers[0].serve_tls(authority.files(&elsewhere), "yes").await.unwrap();
    urls[0] = format!("rediss://127.0.0.1:{port}?{}", urls[0].split_once('?').unwrap().1);
    let locks = Redlock::connect(&urls.join(",")).await.unwrap();
    assert!(locks.try_lock("k").await.unwrap().is_some());
    let refused =
        locks.node_states().await.into_iter().filter(|node| matches!(node.condition, NodeCondition::Refused(_)));
    assert_eq!(refused.count(), 1);
    locks.close().await;

    let ca = authority.cert().to_str().unwrap().to_owned();
    let trusting_another = urls.join(",").replace(&ca, stranger.cert().to_str().unwrap());
    let error = Redlock::connect(&trusting_another).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
}
