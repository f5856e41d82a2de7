//! What the program says when there is no server: which one, and what to do, on one line, without a credential.

use leasehold_testkit::launch::free_port;
use leasehold_testkit::test;

use crate::support::{Place, ended, leasehold, redis};

/// What `list` says on this store, which is not there: 69, and one line with what is wrong, and one with what to do.
fn said(url: &str) -> String {
    let refused = Place::at(url).run("list");
    refused.is(69, &[]).prints("");
    for unsaid in ["Os {", "Custom {", "Input/output error"] {
        assert!(!refused.errors.contains(unsaid), "{refused:?}");
    }
    let told = refused.errors.lines().filter(|line| !line.starts_with("leasehold: warning: everybody on the way"));
    let [what, hint] = &told.collect::<Vec<_>>()[..] else { panic!("{refused:?}") };
    assert_eq!(refused.errors.matches("is the server").count(), 1, "the same advice twice, or none: {refused:?}");
    assert!(hint.contains("LEASEHOLD_BACKEND") && what.len() < 320, "{refused:?}");
    what.to_string()
}

#[test]
fn a_server_that_is_down_is_named_with_what_to_do() {
    let at = format!("127.0.0.1:{}", free_port().unwrap());
    for url in [
        "redis://ada:c4n4ry@HOST",
        "redis-rw:redis://ada:c4n4ry@HOST",
        "reentrant:redis://ada:c4n4ry@HOST",
        "redis-sentinel://ada:c4n4ry@HOST?sentinelServiceName=m",
        "redis-cluster://ada:c4n4ry@HOST",
        "mysql://ada:c4n4ry@HOST/locks?allow_public_key_retrieval=true",
        "mysql-rw://ada:c4n4ry@HOST/locks?allow_public_key_retrieval=true",
        "postgres://ada:c4n4ry@HOST/locks?sslmode=disable",
        "etcd://ada:c4n4ry@HOST?sslmode=disable",
    ] {
        let url = url.replace("HOST", &at);
        let said = said(&url);
        assert!(said.contains(&at) && said.to_lowercase().contains("connection refused"), "{url}: {said}");
        let asked = said.contains("nothing listens there; is the server running?");
        assert!(asked || url.starts_with("etcd:"), "{url}: {said}");
    }
    for (store, url) in [
        ("redis-rw", format!("redis-rw:redis://ada:c4n4ry@{at}")),
        ("postgres", format!("postgres://ada:c4n4ry@{at}/locks?sslmode=disable")),
        ("etcd", format!("etcd://ada:c4n4ry@{at}?sslmode=disable")),
        ("agent", "agent:/nowhere/agent.sock".to_owned()),
    ] {
        for (args, code) in [
            ("run -n k -- echo ran", 69),
            ("run -n --unavailable-exit-code 5 k -- echo ran", 5),
            ("inspect k", 69),
            ("force-release k", 69),
            ("doctor", 2),
        ] {
            let down = Place::at(&url).run(args);
            down.is(code, &[store, "is the server"]);
            assert!((args == "doctor" || down.output.is_empty()) && !down.errors.contains("trying again"), "{down:?}");
        }
    }
}

#[test]
fn a_host_that_is_not_known_and_a_port_of_something_else_are_named() {
    // A name that never leads anywhere (RFC 6761).
    const NOWHERE: &str = "no-such-host.invalid";
    let (server, _) = redis("");
    let redis = format!("127.0.0.1:{}", server.port());
    for url in [
        "redis://ada:c4n4ry@HOST",
        "mysql://ada@HOST/locks",
        "postgres://ada:c4n4ry@HOST/locks?sslmode=disable",
        "etcd://ada:c4n4ry@HOST?sslmode=disable",
    ] {
        let unknown = said(&url.replace("HOST", NOWHERE));
        assert!(unknown.contains(NOWHERE) && unknown.contains("lookup address"), "{url}: {unknown}");
        if !url.starts_with("redis:") {
            let other = said(&url.replace("etcd://ada:c4n4ry@", "etcd://").replace("HOST", &redis));
            assert!(other.contains(&redis), "{url}: {other}");
        }
    }
}

#[test]
fn what_was_meant_by_an_address_is_guessed_without_what_may_be_a_password() {
    for (url, meant) in [
        ("localhost:6399", "did you mean redis://localhost:6399?"),
        ("localhost:3306/locks", "did you mean mysql://localhost:3306?"),
        ("db1:6379", "did you mean redis://db1:6379?"),
        ("db1:5432/locks", "did you mean postgres://db1:5432?"),
        ("ada:60444", "did you mean redis://ada:PORT?"),
        ("reddis://:c4n4ry@h", "did you mean redis://…?"),
        ("redis+cluster://h", "did you mean redis-cluster://…?"),
        ("rediss+cluster://h", "did you mean rediss-cluster://…?"),
        ("redis.rw:redis://h", "did you mean redis-rw:…?"),
        ("postgress://ada:c4n4ry@h/x", "did you mean postgres://…?"),
        ("mariadb://ada:c4n4ry@h/db", "did you mean mysql://…?"),
        ("FILES:/var/lock", "did you mean file:…?"),
        ("flock:c4n4ry", "did you mean file:…?"),
        ("http://ada:c4n4ry@h:2379", "did you mean etcd://…?"),
        ("HTTPS://h:2379", "did you mean etcds://…?"),
        ("ada:c4n4ry", "unknown backend scheme \"ada\"; this program was built with"),
        ("mongodb://:c4n4ry@h", "unknown backend scheme \"mongodb\"; this program was built with"),
        ("c4n4ry", "is not a URL such as redis://HOST:6379 or file:/DIR"),
        ("redis:c4n4ry", "did you mean redis://…?"),
        ("redis:c4n4ry:6379", "did you mean redis://…?"),
        ("redis-rw:c4n4ry", "did you mean redis-rw://…?"),
        ("redis-rw:redis:c4n4ry", "did you mean redis-rw:redis://…?"),
        ("reentrant:c4n4ry", "did you mean reentrant:redis://…?"),
        ("reentrant:redis:c4n4ry:6379", "did you mean reentrant:redis://…?"),
        ("redlock:c4n4ry,c4n4ry", "did you mean redlock:redis://…?"),
    ] {
        let refused = ended(&mut leasehold(&format!("--backend {url} list")));
        assert!(!refused.is(64, &[meant]).errors.contains("60444"), "it may be a password: {refused:?}");
    }
}

/// What a message advises has to be possible with the program that says it.
#[test]
fn the_program_speaks_tls_to_every_store() {
    let at = format!("127.0.0.1:{}", free_port().unwrap());
    for url in [
        "rediss://:c4n4ry@HOST",
        "redlock:rediss://:c4n4ry@HOST/0,rediss://:c4n4ry@HOST/1,rediss://:c4n4ry@HOST/2",
        "mysql://ada:c4n4ry@HOST/locks?require_ssl=true",
        "postgres://ada:c4n4ry@HOST/locks?sslmode=require",
        "etcds://ada:c4n4ry@HOST",
    ] {
        // Nothing listens there, which is found when the connection is made: the URL was not refused.
        let down = Place::at(url.replace("HOST", &at)).run("inspect k");
        down.is(69, &[]);
        assert!(!down.errors.contains("tls-rustls"), "{down:?}");
    }
}
