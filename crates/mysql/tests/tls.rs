//! TLS with certificates made here, by the program `openssl`, against a real server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_core::{Error, ErrorKind, Result};
use leasehold_mysql::testing::Server;
use leasehold_mysql::{Address, Params, Sessions, Step};
use leasehold_testkit::{needs, needs_or_why};
use tempfile::TempDir;

/// Whoever trusts `ca.pem` of its folder trusts what it signs.
struct Authority(TempDir);

impl Authority {
    fn new() -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        authority.openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem");
        authority
    }

    fn openssl(&self, arguments: &str) {
        let made = Command::new("openssl").args(arguments.split(' ')).current_dir(self.0.path()).output().unwrap();
        assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A certificate and its key, in `<name>.pem` and `<name>.key`.
    fn sign(&self, name: &str, subject: &str) {
        std::fs::write(self.file("names"), format!("subjectAltName={subject}")).unwrap();
        self.openssl(&format!("req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        let by = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names";
        self.openssl(&format!("x509 -req -in {name}.csr {by} -out {name}.pem"));
    }

    /// A server that shows a certificate for this name, and has a user `u` whose password is `canary`.
    async fn server(&self, subject: &str) -> Server {
        self.sign("server", subject);
        let option = |option: &str, file: &str| format!("--{option}={}", self.file(file).display());
        let options = [option("ssl-ca", "ca.pem"), option("ssl-cert", "server.pem"), option("ssl-key", "server.key")];
        let server = Server::needed(&options.each_ref().map(String::as_str)).await;
        server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'canary'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
        server
    }
}

fn installed() -> bool {
    Command::new("openssl").arg("version").output().is_ok()
}

/// The cipher of a session by this URL.
async fn cipher(server: &Server, query: &str) -> Result<String> {
    let url = server.url_of("u", "canary").replace("allow_public_key_retrieval=true", query);
    let sessions = Sessions::new(&Address::parse(&url)?);
    let reply = sessions.run(Step::new("test", "SHOW STATUS LIKE 'Ssl_cipher'"), Params::Empty).await;
    sessions.close().await;
    Ok(reply?.rows[0].get::<String, usize>(1).unwrap())
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

async fn a_server_of_the_ca_that_the_url_names_is_trusted_and_no_other() {
    needs("openssl", installed().then_some(()));
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = ours.server("IP:127.0.0.1").await;
    assert!(!cipher(&server, &ca(&ours.file("ca.pem"))).await.unwrap().is_empty(), "it is not encrypted");
    // An authority of the same name that is another one, and those of the world.
    refused(cipher(&server, &ca(&theirs.file("ca.pem"))).await);
    refused(cipher(&server, "require_ssl=true").await);
}

async fn a_certificate_for_another_name_is_refused() {
    needs("openssl", installed().then_some(()));
    let authority = Authority::new();
    let server = authority.server("DNS:db.example").await;
    refused(cipher(&server, &ca(&authority.file("ca.pem"))).await);
}

async fn a_server_without_tls_is_refused_and_so_is_a_client() {
    needs("openssl", installed().then_some(()));
    let authority = Authority::new();
    let plain = needs_or_why("MariaDB or MySQL", Server::start(&[]).await);
    plain.sql(&["CREATE USER u@'%' IDENTIFIED BY 'canary'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    let error = refused(cipher(&plain, &ca(&authority.file("ca.pem"))).await);
    assert!(error.to_string().contains("does not offer TLS"), "{error}");

    let server = authority.server("IP:127.0.0.1").await;
    server.sql(&["ALTER USER u@'%' REQUIRE SSL"]).await;
    refused(cipher(&server, "allow_public_key_retrieval=true").await);
    cipher(&server, &ca(&authority.file("ca.pem"))).await.unwrap();
}

async fn a_client_shows_the_certificate_that_the_url_names() {
    needs("openssl", installed().then_some(()));
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = ours.server("IP:127.0.0.1").await;
    server.sql(&["ALTER USER u@'%' REQUIRE X509"]).await;
    for authority in [&ours, &theirs] {
        authority.sign("client", "DNS:client");
    }
    let with = |authority: &Authority| {
        let file = |name: &str| authority.file(name).display().to_string();
        format!("{}&ssl_cert={}&ssl_key={}", ca(&ours.file("ca.pem")), file("client.pem"), file("client.key"))
    };
    cipher(&server, &with(&ours)).await.unwrap();
    refused(cipher(&server, &ca(&ours.file("ca.pem"))).await);
    assert!(cipher(&server, &with(&theirs)).await.is_err());
}

leasehold_testkit::main! {
    @multi_thread a_server_of_the_ca_that_the_url_names_is_trusted_and_no_other,
    @multi_thread a_certificate_for_another_name_is_refused,
    @multi_thread a_server_without_tls_is_refused_and_so_is_a_client,
    @multi_thread a_client_shows_the_certificate_that_the_url_names,
}
