//! What the program says when there is no server: which one, and what to do, on one line, without a credential.

use leasehold_testkit::launch::free_port;

use crate::support::{Place, leasehold, text};

/// What `list` says on this store, which is not there. It is 69 and has no password in it.
fn said(url: &str) -> String {
    let output = Place::at(url).run(&["list"]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(69), ""), "{url}: {said}");
    for unsaid in ["c4n4ry", "Os {", "Custom {", "Input/output error"] {
        assert!(!said.contains(unsaid), "{url}: {said}");
    }
    let [what, hint] = &said.lines().collect::<Vec<_>>()[..] else { panic!("{url}: {said}") };
    assert!(hint.contains("is the server up"), "{url}: {said}");
    assert!(what.len() < 320, "{} characters: {what}", what.len());
    what.to_string()
}

pub(crate) fn a_server_that_is_down_is_named_with_what_to_do() {
    let port = free_port().unwrap();
    let at = format!("127.0.0.1:{port}");
    for url in [
        #[cfg(feature = "redis")]
        format!("redis://ada:c4n4ry@{at}"),
        #[cfg(feature = "redis")]
        format!("redis-rw:redis://ada:c4n4ry@{at}"),
        #[cfg(feature = "redis")]
        format!("reentrant:redis://ada:c4n4ry@{at}"),
        #[cfg(feature = "redis")]
        format!("redis-sentinel://ada:c4n4ry@{at}?sentinelServiceName=m"),
        #[cfg(feature = "redis")]
        format!("redis-cluster://ada:c4n4ry@{at}"),
        #[cfg(feature = "mysql")]
        format!("mysql://ada:c4n4ry@{at}/locks?allow_public_key_retrieval=true"),
        #[cfg(feature = "mysql")]
        format!("mysql-rw://ada:c4n4ry@{at}/locks?allow_public_key_retrieval=true"),
        #[cfg(feature = "postgres")]
        format!("postgres://ada:c4n4ry@{at}/locks?sslmode=disable"),
        #[cfg(feature = "etcd")]
        format!("etcd://ada:c4n4ry@{at}?sslmode=disable"),
    ] {
        let said = said(&url);
        assert!(said.contains(&at), "{url}: {said}");
        let refused = said.contains("nothing listens there; is the server running?") || url.starts_with("etcd:");
        assert!(refused && said.to_lowercase().contains("connection refused"), "{url}: {said}");
    }
}

pub(crate) fn a_host_that_is_not_known_is_named() {
    // A name that never leads anywhere (RFC 6761).
    const HOST: &str = "no-such-host.invalid";
    for url in [
        #[cfg(feature = "redis")]
        format!("redis://ada:c4n4ry@{HOST}"),
        #[cfg(feature = "mysql")]
        format!("mysql://ada@{HOST}/locks"),
        #[cfg(feature = "postgres")]
        format!("postgres://ada:c4n4ry@{HOST}/locks?sslmode=disable"),
        #[cfg(feature = "etcd")]
        format!("etcd://ada:c4n4ry@{HOST}?sslmode=disable"),
    ] {
        let said = said(&url);
        assert!(said.contains(HOST) && said.contains("lookup address"), "{url}: {said}");
    }
}

#[cfg(feature = "redis")]
pub(crate) fn a_port_of_something_else_is_named() {
    use leasehold_testkit::{needs, redis::Server};

    let server = needs("redis-server", Server::start_blocking(&[]));
    let at = format!("127.0.0.1:{}", server.port());
    for url in [
        #[cfg(feature = "mysql")]
        format!("mysql://ada@{at}/locks"),
        #[cfg(feature = "postgres")]
        format!("postgres://ada:c4n4ry@{at}/locks?sslmode=disable"),
        #[cfg(feature = "etcd")]
        format!("etcd://{at}"),
    ] {
        let said = said(&url);
        assert!(said.contains(&at), "{url}: {said}");
    }
}

pub(crate) fn what_was_meant_by_an_address_is_guessed_without_what_may_be_a_password() {
    for (url, meant) in [
        #[cfg(feature = "redis")]
        ("localhost:6399", "did you mean redis://localhost:6399?"),
        #[cfg(feature = "redis")]
        ("rediss+cluster://ada:c4n4ry@h", "did you mean rediss-cluster://…?"),
        #[cfg(feature = "postgres")]
        ("postgress://ada:c4n4ry@h/x", "did you mean postgres://…?"),
        ("flock:c4n4ry", "did you mean file:…?"),
        ("c4n4ry", "is not a URL such as redis://HOST:6379 or file:DIR"),
    ] {
        let refused = leasehold(&["--backend", url, "list"]).output().unwrap();
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(64), "{url}: {said}");
        assert!(said.contains(meant) && !said.contains("c4n4ry"), "{url}: {said}");
    }
}
