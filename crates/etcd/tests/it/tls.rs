//! TLS with a real server, whose certificates the program `openssl` makes in the test.

use std::error::Error as _;
use std::path::Path;

use leasehold_etcd::{ErrorKind, Etcd, LockOptions, LockerExt, Wait};
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::{Authority, PATIENCE, needs, test};

use crate::clients::log_in;

const HERE: &str = "IP:127.0.0.1,DNS:localhost";

/// A server with a certificate for these names, and the port of TLS.
async fn serving(authority: &Authority, names: &str) -> (Cluster, u16) {
    let issued = authority.issue("server", names);
    Cluster::one_with_tls(authority.files(&issued)).await
}

fn ca(file: &Path) -> String {
    format!("ca={}", file.display())
}

/// That it is no use to wait for a server, and why.
async fn is_refused(url: &str, why: &str) {
    let error = Etcd::connect(url).await.map(drop).unwrap_err();
    let told = format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default());
    assert_eq!(error.kind(), ErrorKind::Backend, "{told}");
    assert!(told.contains("check the certificate") && told.contains(why), "{why}: {told}");
    assert!(!format!("{told} {error:?}").contains("canary"), "{told}");
}

#[test(multi_thread, server)]
async fn a_server_whose_certificate_is_trusted_by_name_is_used() {
    let authority = needs("openssl", Authority::new());
    let (cluster, port) = serving(&authority, HERE).await;
    log_in(&cluster, "app:canary", "readwrite", "leasehold/").await.unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("etcds://app:canary@{host}:{port}?{}", ca(authority.cert()));
        let [ours, theirs] = [Etcd::connect(&url).await.unwrap(), Etcd::connect(&url).await.unwrap()];
        let guard = ours.lock("k").await.unwrap();
        let (key, options) = (guard.key().clone(), LockOptions::new().wait(Wait::UpTo(PATIENCE)));
        let waiter = tokio::spawn(async move { theirs.acquire(&key, &options).await });
        guard.renew().await.unwrap();
        guard.release().await.unwrap();
        waiter.await.unwrap().unwrap().unwrap().release().await.unwrap();
    }
}

#[test(multi_thread, server)]
async fn a_certificate_of_somebody_else_or_for_another_name_is_refused() {
    let [ours, theirs] = [(); 2].map(|()| needs("openssl", Authority::new()));
    let (_here, port) = serving(&ours, HERE).await;
    let url = format!("etcds://u:canary@127.0.0.1:{port}");
    // Another authority of the same name, and those of the system.
    is_refused(&format!("{url}?{}", ca(theirs.cert())), "invalid peer certificate").await;
    is_refused(&url, "invalid peer certificate").await;
    let (_elsewhere, port) = serving(&ours, "IP:127.0.0.2,DNS:db.example").await;
    is_refused(&format!("etcds://u:canary@127.0.0.1:{port}?{}", ca(ours.cert())), "not valid for name").await;
}

#[test(multi_thread, server)]
async fn a_server_without_tls_is_not_used() {
    let authority = needs("openssl", Authority::new());
    let cluster = Cluster::one(&[]).await;
    let url = format!("etcds://u:canary@127.0.0.1:{}?{}", cluster.ports()[0], ca(authority.cert()));
    // It ends the connection without a word, as one does that is just starting.
    let error = Etcd::connect(&url).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    // By when it does so, the end of the handshake or of the connection is told.
    let told = ["tls handshake", "reset by peer"].iter().any(|why| error.to_string().contains(why));
    assert!(told && !format!("{error:?}").contains("canary"), "{error:?}");
}

#[test(multi_thread, server)]
async fn a_server_that_is_not_trusted_keeps_nobody_from_the_others() {
    let [ours, theirs] = [(); 2].map(|()| needs("openssl", Authority::new()));
    let (_trusted, trusted) = serving(&ours, HERE).await;
    let (_stranger, stranger) = serving(&theirs, HERE).await;
    let down = leasehold_testkit::launch::free_port().unwrap();
    // It begins with any of them.
    for number in 0..8 {
        let url = format!("etcds://127.0.0.1:{stranger},127.0.0.1:{trusted}?{}", ca(ours.cert()));
        Etcd::connect(&url).await.unwrap().lock(format!("k{number}").as_str()).await.unwrap().release().await.unwrap();
        let url = format!("etcds://127.0.0.1:{stranger},127.0.0.1:{down}?{}", ca(ours.cert()));
        let error = Etcd::connect(&url).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "the one that is down may come back: {error:?}");
    }
}
