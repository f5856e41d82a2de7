//! A server that connects well and is no place for locks all the same.

use leasehold_testkit::{needs, needs_or_why};

use crate::support::{Place, text};

/// What doctor says, and its exit code.
fn doctor(url: &str) -> (Option<i32>, String) {
    let output = Place::at(url).run(&["doctor"]);
    (output.status.code(), text(&output.stdout))
}

#[cfg(feature = "redis")]
pub(crate) fn a_redis_that_evicts_is_a_warning_and_one_that_refuses_an_error() {
    use leasehold_testkit::redis::Server;

    let well = needs("redis-server", Server::start_blocking(&[]));
    for prefix in ["", "reentrant:", "redis-rw:"] {
        let (code, said) = doctor(&format!("{prefix}redis://127.0.0.1:{}", well.port()));
        assert_eq!(code, Some(0), "{said}");
    }
    let evicting =
        needs("redis-server", Server::start_blocking(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]));
    let (code, said) = doctor(&format!("redis://127.0.0.1:{}", evicting.port()));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("CONFIG SET maxmemory-policy noeviction"), "{said}");
    let replicates = well.port().to_string();
    let replica = needs("redis-server", Server::start_blocking(&["--replicaof", "127.0.0.1", &replicates]));
    let poor =
        needs("redis-server", Server::start_blocking(&["--user", "app", "on", ">pw", "~*", "&*", "+@all", "-set"]));
    for (url, cure) in [
        (format!("redis://127.0.0.1:{}", replica.port()), format!("connect to the primary, 127.0.0.1:{replicates}")),
        (format!("redis://app:pw@127.0.0.1:{}", poor.port()), "ACL SETUSER".to_owned()),
    ] {
        let (code, said) = doctor(&url);
        assert_eq!(code, Some(2), "{url}: {said}");
        assert!(said.contains(&cure), "{url}: {said}");
        assert!(!said.contains("pw"), "{said}");
    }
}

#[cfg(feature = "mysql")]
pub(crate) fn a_mysql_that_cannot_be_written_or_that_forgets_is_found() {
    use leasehold_testkit::mysql::Server;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = needs_or_why("MariaDB or MySQL", runtime.block_on(Server::start(&[])));
    let sql = |statements: &[&str]| runtime.block_on(server.sql(statements));
    for scheme in ["mysql", "mysql-rw"] {
        let url = |user: &str, password| server.url_of(user, password).replacen("mysql:", &format!("{scheme}:"), 1);
        assert_eq!(Place::at(url("root", "")).code(&["migrate"]), 0);
        sql(&[
            "CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'r-secret'",
            "GRANT SELECT ON leasehold.* TO reader@'%'",
            "CREATE OR REPLACE USER app@'%' IDENTIFIED BY 'a-secret'",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.* TO app@'%'",
        ]);
        let (code, said) = doctor(&url("app", "a-secret"));
        assert_eq!(code, Some(0), "{said}");
        let (code, said) = doctor(&url("reader", "r-secret"));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("GRANT SELECT, INSERT, UPDATE, DELETE") && !said.contains("secret"), "{said}");
        sql(&["SET GLOBAL innodb_flush_log_at_trx_commit = 0"]);
        let (code, said) = doctor(&url("app", "a-secret"));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("SET GLOBAL innodb_flush_log_at_trx_commit = 1"), "{said}");
        sql(&["SET GLOBAL innodb_flush_log_at_trx_commit = 1", "SET GLOBAL read_only = 1"]);
        for (user, password, expected) in [("app", "a-secret", 2), ("root", "", 1)] {
            let (code, said) = doctor(&url(user, password));
            assert_eq!(code, Some(expected), "{user}: {said}");
            assert!(said.contains("SET GLOBAL read_only = 0"), "{user}: {said}");
        }
        sql(&["SET GLOBAL read_only = 0"]);
    }
}
