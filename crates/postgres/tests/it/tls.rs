//! TLS with a real server, whose certificates the program `openssl` makes in the test.

use std::error::Error as _;
use std::path::Path;

use leasehold_postgres::{ErrorKind, LockOptions, LockerExt, Postgres, Wait};
use leasehold_testkit::postgres::Server;
use leasehold_testkit::{Authority, PATIENCE, eventually, needs, test};

use crate::sql::session;

const HERE: &str = "IP:127.0.0.1,DNS:localhost";

/// A server with a certificate for these names.
async fn serving(authority: &Authority, names: &str) -> Server {
    let issued = authority.issue("server", names);
    Server::with_tls(authority.files(&issued)).await
}

fn url(server: &Server, query: &str) -> String {
    server.url_of("leasehold", "canary").replace("sslmode=disable", query)
}

fn ca(file: &Path) -> String {
    format!("sslmode=require&sslrootcert={}", file.display())
}

/// How many sessions of Leasehold the server has, with TLS and without.
async fn sessions(server: &Server) -> [i64; 2] {
    let count = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl
                 JOIN pg_stat_activity USING (pid) WHERE application_name = 'leasehold'";
    let row = session(&server.url()).await.query_one(count, &[]).await.unwrap();
    [row.get(0), row.get(1)]
}

/// That it is no use to wait for a server, and why.
async fn is_refused(url: &str, why: &str) {
    let error = Postgres::connect(url).await.map(drop).unwrap_err();
    let told = format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default());
    assert_eq!(error.kind(), ErrorKind::Backend, "{told}");
    assert!(told.contains(why), "{why}: {told}");
    assert!(!format!("{told} {error:?}").contains("canary"), "{told}");
}

#[test(multi_thread, server)]
async fn a_server_whose_certificate_is_trusted_by_name_is_used() {
    let authority = needs("openssl", Authority::new());
    let server = serving(&authority, HERE).await;
    Postgres::migrate(&url(&server, &ca(authority.cert()))).await.unwrap();
    for (host, mode) in [("127.0.0.1", "require"), ("localhost", "verify-full")] {
        let query = ca(authority.cert()).replace("require", mode);
        let url = url(&server, &query).replace("127.0.0.1", host);
        let [ours, theirs] = [Postgres::connect(&url).await.unwrap(), Postgres::connect(&url).await.unwrap()];
        let guard = ours.lock("k").await.unwrap();
        let (key, options) = (guard.key().clone(), LockOptions::new().wait(Wait::UpTo(PATIENCE)));
        let waiter = tokio::spawn({
            let theirs = theirs.clone();
            async move { theirs.acquire(&key, &options).await }
        });
        // One for the locks of each, and one that listens.
        eventually("the waiter listens", async || sessions(&server).await[0] >= 3).await;
        assert_eq!(sessions(&server).await[1], 0, "without TLS");
        guard.release().await.unwrap();
        waiter.await.unwrap().unwrap().unwrap().release().await.unwrap();
        ours.close().await;
        theirs.close().await;
        eventually("its sessions are closed", async || sessions(&server).await == [0, 0]).await;
    }
}

#[test(multi_thread, server)]
async fn a_certificate_of_somebody_else_or_for_another_name_is_refused() {
    let [ours, theirs] = [(); 2].map(|()| needs("openssl", Authority::new()));
    let server = serving(&ours, HERE).await;
    // Another authority of the same name, and those of the system.
    is_refused(&url(&server, &ca(theirs.cert())), "invalid peer certificate").await;
    is_refused(&url(&server, "sslmode=require"), "invalid peer certificate").await;
    let elsewhere = serving(&ours, "IP:127.0.0.2,DNS:db.example").await;
    is_refused(&url(&elsewhere, &ca(ours.cert())), "not valid for name").await;
}

#[test(multi_thread, server)]
async fn a_server_without_tls_is_refused() {
    let authority = needs("openssl", Authority::new());
    let server = Server::needed(&[]).await;
    is_refused(&url(&server, &ca(authority.cert())), "does not support TLS").await;
}
