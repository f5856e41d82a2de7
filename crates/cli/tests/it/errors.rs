//! What the program says when there is no server: which one, and what to do, on one line, without a credential.

use leasehold_testkit::launch::free_port;
use leasehold_testkit::test;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "etcd"))]
use crate::doctor::wait_for;
use crate::support::{Place, leasehold, text};

/// What `list` says on this store, which is not there. It is 69 and has no password in it.
fn said(url: &str) -> String {
    let output = Place::at(url).run(&["list"]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(69), ""), "{url}: {said}");
    for unsaid in ["c4n4ry", "Os {", "Custom {", "Input/output error"] {
        assert!(!said.contains(unsaid), "{url}: {said}");
    }
    let told = said.lines().filter(|line| !line.starts_with("leasehold: warning: everybody on the way"));
    let [what, hint] = &told.collect::<Vec<_>>()[..] else { panic!("{url}: {said}") };
    assert_eq!(said.matches("is the server").count(), 1, "the same advice twice, or none: {url}: {said}");
    assert!(hint.contains("LEASEHOLD_BACKEND"), "{url}: {said}");
    assert!(what.len() < 320, "{} characters: {what}", what.len());
    what.to_string()
}

#[test]
fn a_server_that_is_down_is_named_with_what_to_do() {
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

#[test]
fn a_host_that_is_not_known_is_named() {
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
#[test]
fn a_port_of_something_else_is_named() {
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

/// The store refuses what this URL says: 78, and why, without a password.
#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "etcd"))]
fn is_refused(url: &str, why: &str) {
    let output = Place::at(url).run(&["list"]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(78), ""), "{url}: {said}");
    assert!(said.contains("refused by the store") && said.contains(why), "{url}: {said}");
    assert!(!said.contains("c4n4ry"), "{url}: {said}");
}

#[cfg(feature = "redis")]
#[test]
fn a_password_or_a_database_that_redis_refuses_is_named() {
    use leasehold_testkit::{needs, redis::Server};

    let server = needs("redis-server", Server::start_blocking(&["--requirepass", "c4n4ry"]));
    let at = format!("127.0.0.1:{}", server.port());
    for scheme in ["redis", "redis-rw:redis", "reentrant:redis"] {
        is_refused(&format!("{scheme}://{at}"), "the server wants a password: redis://:PASSWORD@HOST or");
        is_refused(&format!("{scheme}://:c4n4ry-2@{at}"), "wrong user or password");
        is_refused(&format!("{scheme}://ada:c4n4ry@{at}"), "wrong user or password");
        is_refused(&format!("{scheme}://:c4n4ry@{at}/99"), &format!("{at}/99: it could not be set up"));
    }
}

#[cfg(feature = "mysql")]
#[test]
fn a_password_or_a_database_that_mysql_refuses_is_named() {
    use leasehold_testkit::mysql::Server;

    let server = wait_for(Server::needed(&[]));
    wait_for(server.sql(&["CREATE USER ada@'%' IDENTIFIED BY 'c4n4ry'", "GRANT ALL ON leasehold.* TO ada@'%'"]));
    for scheme in ["mysql", "mysql-rw"] {
        let url = |user, password, database| {
            let url = server.url_of(user, password).replacen("mysql:", &format!("{scheme}:"), 1);
            url.replacen("/leasehold", database, 1)
        };
        is_refused(&url("ada", "c4n4ry-2", "/leasehold"), "check user, password, and the user's rights");
        is_refused(&url("ada", "c4n4ry", "/nowhere"), "/nowhere: check user, password, and the user's rights");
        is_refused(&url("root", "", "/nowhere"), "/nowhere: create the database first");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_or_a_database_that_postgres_refuses_is_named() {
    use leasehold_testkit::postgres::Server;

    let server = wait_for(Server::needed(&[]));
    let nowhere = server.url_of("leasehold", "c4n4ry").replacen("/leasehold?", "/nowhere?", 1);
    is_refused(&nowhere, "database \"nowhere\" does not exist");
    crate::postgres::sql(&server, "CREATE ROLE ada LOGIN PASSWORD 'c4n4ry'");
    crate::postgres::sql(
        &server,
        "DO $$ BEGIN EXECUTE format('COPY (SELECT ''host all all all scram-sha-256'') TO %L', \
         current_setting('hba_file')); PERFORM pg_reload_conf(); END $$",
    );
    let wrong = server.url_of("ada", "c4n4ry-2");
    // A reload reaches the next connections a little later.
    leasehold_testkit::eventually_some("passwords are asked for", || {
        text(&Place::at(&wrong).run(&["list"]).stderr).contains("password authentication").then_some(())
    });
    is_refused(&wrong, "check user, password, database");
}

#[cfg(feature = "etcd")]
#[test]
fn a_password_that_etcd_refuses_is_named() {
    use leasehold_testkit::etcd::Cluster;

    let cluster = wait_for(Cluster::one(&[]));
    for command in ["user add root:c4n4ry", "user grant-role root root", "auth enable"] {
        wait_for(cluster.control(&command.split(' ').collect::<Vec<_>>())).unwrap();
    }
    is_refused(&cluster.url(), "the server wants a user and a password");
    let wrong = cluster.url().replacen("://", "://root:c4n4ry-2@", 1);
    is_refused(&format!("{wrong}?sslmode=disable"), "check user and password");
}

#[test]
fn what_was_meant_by_an_address_is_guessed_without_what_may_be_a_password() {
    for (url, meant) in [
        #[cfg(feature = "redis")]
        ("localhost:6399", "did you mean redis://localhost:6399?"),
        #[cfg(feature = "redis")]
        ("rediss+cluster://ada:c4n4ry@h", "did you mean rediss-cluster://…?"),
        #[cfg(feature = "postgres")]
        ("postgress://ada:c4n4ry@h/x", "did you mean postgres://…?"),
        ("flock:c4n4ry", "did you mean file:…?"),
        #[cfg(feature = "redis")]
        ("redis:c4n4ry", "did you mean redis://…?"),
        #[cfg(feature = "redis")]
        ("reentrant:redis:c4n4ry:6379", "did you mean reentrant:redis://…?"),
        #[cfg(feature = "etcd")]
        ("http://ada:c4n4ry@h:2379", "did you mean etcd://…?"),
        ("c4n4ry", "is not a URL such as redis://HOST:6379 or file:/DIR"),
    ] {
        let refused = leasehold(&["--backend", url, "list"]).output().unwrap();
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(64), "{url}: {said}");
        assert!(said.contains(meant) && !said.contains("c4n4ry"), "{url}: {said}");
    }
}

/// What a message advises has to be possible with the program that says it.
#[cfg(any(
    feature = "tls-rustls",
    all(feature = "redis", feature = "mysql", feature = "postgres", feature = "etcd", feature = "watch")
))]
#[test]
fn the_program_speaks_tls_to_every_store() {
    let port = free_port().unwrap();
    let at = format!("127.0.0.1:{port}");
    for url in [
        #[cfg(feature = "redis")]
        format!("rediss://:c4n4ry@{at}"),
        #[cfg(feature = "redis")]
        format!("redlock:rediss://:c4n4ry@{at}/0,rediss://:c4n4ry@{at}/1,rediss://:c4n4ry@{at}/2"),
        #[cfg(feature = "mysql")]
        format!("mysql://ada:c4n4ry@{at}/locks?require_ssl=true"),
        #[cfg(feature = "postgres")]
        format!("postgres://ada:c4n4ry@{at}/locks?sslmode=require"),
        #[cfg(feature = "etcd")]
        format!("etcds://ada:c4n4ry@{at}"),
    ] {
        // Nothing listens there, which is found when the connection is made: the URL was not refused.
        let output = Place::at(&url).run(&["inspect", "k"]);
        assert_eq!(output.status.code(), Some(69), "{url}: {output:?}");
        assert!(!text(&output.stderr).contains("tls-rustls"), "{url}: {output:?}");
    }
}
