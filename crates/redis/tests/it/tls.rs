//! TLS with certificates made here, against a real server and others that listen where it should.

use std::path::Path;
use std::time::Duration;

use leasehold_core::{ErrorKind, LockKey, Notifications};
use leasehold_redis::{Endpoint, Source};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Authority, Issued, needs, shown, test};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::stores::{heard, open};

const PASSWORD: &str = "hunter2-canary";
const HERE: &str = "IP:127.0.0.1,DNS:localhost";

async fn works(url: &str) {
    let connection = open(url).await.unwrap();
    assert_eq!(heard(&connection, "k").await.unwrap(), "a");
    connection.subscribe(&LockKey::new("k").unwrap()).await.unwrap();
    connection.close().await;
}

async fn is_refused(url: &str, why: &str) {
    let error = timeout(Duration::from_secs(60), open(url)).await.expect("an end").unwrap_err();
    let told = shown(&error);
    assert_eq!(error.kind(), ErrorKind::Backend, "{told}");
    assert!(told.contains(why), "{why}: {told}");
    assert!(!told.contains(PASSWORD), "{told}");
}

fn url(port: u16, parameters: &[(&str, &Path)]) -> String {
    let words: Vec<_> = parameters.iter().map(|(name, file)| format!("{name}={}", file.to_str().unwrap())).collect();
    format!("rediss://:{PASSWORD}@127.0.0.1:{port}?{}", words.join("&"))
}

async fn server() -> Option<(Server, Authority, Issued)> {
    let server = Server::start(&["--requirepass", PASSWORD]).await?;
    let authority = Authority::new()?;
    let issued = authority.issue("server", HERE);
    Some((server, authority, issued))
}

#[test]
async fn a_server_whose_certificate_is_trusted_by_name_is_used() {
    let (server, authority, issued) = needs("redis-server", server().await);
    let port = needs("redis-server with TLS", server.serve_tls(authority.files(&issued), "no").await);
    let url = url(port, &[("cacert", authority.cert())]);
    works(&url).await;
    works(&url.replace("127.0.0.1", "localhost")).await;
}

#[test]
async fn a_certificate_of_somebody_else_or_for_another_name_is_refused() {
    let (server, authority, issued) = needs("redis-server", server().await);
    let stranger = Authority::new().unwrap();
    let port = needs("redis-server with TLS", server.serve_tls(authority.files(&issued), "no").await);
    is_refused(&url(port, &[("cacert", stranger.cert())]), "InvalidCertificate").await;
    is_refused(&url(port, &[]), "InvalidCertificate").await;
    let elsewhere = authority.issue("elsewhere", "IP:127.0.0.2,DNS:elsewhere");
    let port = needs("redis-server with TLS", server.serve_tls(authority.files(&elsewhere), "no").await);
    let told = server.calls("auth").await;
    is_refused(&url(port, &[("cacert", authority.cert())]), "NotValidForName").await;
    assert_eq!(server.calls("auth").await, told + 1, "somebody else than this test told a password");
}

#[test]
async fn sentinels_and_the_primary_behind_them_are_both_asked_in_tls() {
    let (primary, authority, issued) = needs("redis-server", server().await);
    let port = needs("redis-server with TLS", primary.serve_tls(authority.files(&issued), "yes").await);
    let (ca, ours) = (authority.cert(), authority.issue("us", "DNS:us"));
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port().to_string();
    let file = |path: &Path| path.to_str().unwrap().to_owned();
    let (cert, key, cacert) = (file(&issued.cert), file(&issued.key), file(ca));
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &cacert];
    let arguments = [&["--sentinel", "--tls-port", &free, "--tls-replication", "yes"], &files[..]].concat();
    let sentinel = needs("redis-server", Server::start(&arguments).await);
    sentinel.ask(&["SENTINEL", "MONITOR", "main", "127.0.0.1", &port.to_string(), "1"]).await;
    sentinel.ask(&["SENTINEL", "SET", "main", "auth-pass", PASSWORD]).await;
    let behind = format!(
        "rediss-sentinel://:{PASSWORD}@127.0.0.1:{free}?sentinelServiceName=main&cacert={cacert}&cert={}&key={}",
        file(&ours.cert),
        file(&ours.key)
    );
    works(&behind).await;
    let stranger = Authority::new().unwrap();
    let error = open(&behind.replace(&cacert, &file(stranger.cert()))).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Backend | ErrorKind::Unavailable), "{error}");
}

#[test]
async fn a_server_that_asks_who_we_are_is_shown_a_certificate() {
    let (server, authority, issued) = needs("redis-server", server().await);
    let (ours, stranger) = (authority.issue("us", "DNS:us"), Authority::new().unwrap());
    let theirs = stranger.issue("them", "DNS:them");
    let port = needs("redis-server with TLS", server.serve_tls(authority.files(&issued), "yes").await);
    let ca = authority.cert();
    let with = |issued: &Issued| url(port, &[("cacert", ca), ("cert", &issued.cert), ("key", &issued.key)]);
    works(&with(&ours)).await;
    is_refused(&with(&theirs), "?cert=FILE").await;
    is_refused(&url(port, &[("cacert", ca)]), "?cert=FILE").await;
}

#[test]
async fn nothing_is_said_in_plain_text_to_whoever_does_not_speak_tls() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        let count = client.read(&mut heard).await.unwrap();
        heard.truncate(count);
        tokio::io::AsyncWriteExt::write_all(&mut client, b"+OK\r\n").await.unwrap();
        while client.read_buf(&mut heard).await.is_ok_and(|count| count > 0) {}
        heard
    });
    is_refused(&url(port, &[]), "does not answer in TLS").await;
    let heard = plain.await.unwrap();
    // A greeting of TLS, and nothing else but an alert.
    assert_eq!(heard[0], 22, "{heard:?}");
    assert!(!String::from_utf8_lossy(&heard).contains(PASSWORD));
}

#[test]
async fn files_that_are_not_what_they_should_be_are_refused_before_anything_is_sent() {
    let authority = needs("openssl", Authority::new());
    let (one, other) = (authority.issue("one", HERE), authority.issue("other", HERE));
    let nowhere = Path::new("/nowhere/x.pem");
    for (parameters, why) in [
        (vec![("cacert", nowhere)], "cannot be read"),
        (vec![("cacert", &one.key)], "has no certificate in PEM"),
        (vec![("cert", &one.cert)], "together"),
        (vec![("key", &one.key)], "together"),
        (vec![("cert", &one.cert), ("key", nowhere)], "cannot be read"),
        (vec![("cert", &one.key), ("key", &one.key)], "has no certificate"),
        (vec![("cert", &one.cert), ("key", &one.cert)], "has no private key"),
        (vec![("cert", &one.cert), ("key", &other.key)], "do not go together"),
    ] {
        let error = Endpoint::of(&Source::Url(url(1, &parameters))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{why}: {error}");
        assert!(error.to_string().contains(why), "{why}: {error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    }
}
