//! TLS with a real server, whose certificates the program `openssl` makes in the test.

use std::path::Path;

use leasehold_core::{Error, ErrorKind, Result};
use leasehold_mysql::{Columns, Params, Sessions, Step};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Authority, Issued, needs, test};

/// A server with a certificate for these names, and with a user `u` whose password is `canary`.
async fn serving(authority: &Authority, names: &str) -> Server {
    let issued = authority.issue("server", names);
    let options = ["ca", "cert", "key"].into_iter().zip(authority.files(&issued));
    let options: Vec<_> = options.map(|(option, file)| format!("--ssl-{option}={}", file.display())).collect();
    let server = Server::needed(&options.iter().map(String::as_str).collect::<Vec<_>>()).await;
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'canary'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    server
}

/// The cipher of a session that was opened with these parameters in the URL.
async fn cipher(server: &Server, query: &str) -> Result<String> {
    let url = server.url_of("u", "canary").replace("allow_public_key_retrieval=true", query);
    let sessions = Sessions::at(&url)?;
    let reply = sessions.run(Step::new("test", "SHOW STATUS LIKE 'Ssl_cipher'"), Params::Empty).await;
    sessions.close().await;
    let reply = reply?;
    let mut columns = Columns::of(&reply.rows[0], "test");
    columns.text()?;
    Ok(columns.text()?.unwrap_or_default())
}

fn ca(file: &Path) -> String {
    format!("ssl_ca={}", file.display())
}

fn refused(answer: Result<String>) -> Error {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "waiting does not help: {error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    error
}

#[test(multi_thread, server)]
async fn only_a_server_of_the_ca_that_the_url_names_is_trusted_and_under_its_name() {
    let [ours, theirs] = [(); 2].map(|()| needs("openssl", Authority::new()));
    let server = serving(&ours, "IP:127.0.0.1").await;
    assert!(!cipher(&server, &ca(ours.cert())).await.unwrap().is_empty(), "it is not encrypted");
    // Another authority of the same name, and the CAs of the web.
    refused(cipher(&server, &ca(theirs.cert())).await);
    refused(cipher(&server, "require_ssl=true").await);
    let elsewhere = serving(&ours, "DNS:db.example").await;
    refused(cipher(&elsewhere, &ca(ours.cert())).await);
}

#[test(multi_thread, server)]
async fn a_server_without_tls_is_refused_and_so_is_a_client() {
    let authority = needs("openssl", Authority::new());
    let plain = Server::needed(&[]).await;
    plain.sql(&["CREATE USER u@'%' IDENTIFIED BY 'canary'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    let error = refused(cipher(&plain, &ca(authority.cert())).await);
    assert!(error.to_string().contains("does not offer TLS"), "{error}");

    let server = serving(&authority, "IP:127.0.0.1").await;
    server.sql(&["ALTER USER u@'%' REQUIRE SSL"]).await;
    refused(cipher(&server, "allow_public_key_retrieval=true").await);
    cipher(&server, &ca(authority.cert())).await.unwrap();
}

#[test(multi_thread, server)]
async fn a_client_shows_the_certificate_that_the_url_names() {
    let [ours, theirs] = [(); 2].map(|()| needs("openssl", Authority::new()));
    let server = serving(&ours, "IP:127.0.0.1").await;
    server.sql(&["ALTER USER u@'%' REQUIRE X509"]).await;
    let with = |authority: &Authority| {
        let Issued { cert, key } = authority.issue("client", "DNS:client");
        format!("{}&ssl_cert={}&ssl_key={}", ca(ours.cert()), cert.display(), key.display())
    };
    cipher(&server, &with(&ours)).await.unwrap();
    refused(cipher(&server, &ca(ours.cert())).await);
    assert!(cipher(&server, &with(&theirs)).await.is_err());
}
