//! A server that connects well and is no place for locks all the same.

use crate::support::{Place, text};

/// What doctor says, and its exit code.
fn doctor(url: &str) -> (Option<i32>, String) {
    let output = Place::at(url).run(&["doctor"]);
    (output.status.code(), text(&output.stdout))
}

#[test]
#[cfg(feature = "redis")]
fn a_redis_that_evicts_is_a_warning_and_one_that_refuses_an_error() {
    use crate::redis::Server;

    let Some(well) = Server::start(&[]) else { return };
    for prefix in ["", "reentrant:"] {
        let (code, said) = doctor(&format!("{prefix}redis://127.0.0.1:{}", well.port()));
        assert_eq!(code, Some(0), "{said}");
    }
    let Some(evicting) = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]) else { return };
    let (code, said) = doctor(&format!("redis://127.0.0.1:{}", evicting.port()));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("CONFIG SET maxmemory-policy noeviction"), "{said}");
    let replicates = well.port().to_string();
    let Some(replica) = Server::start(&["--replicaof", "127.0.0.1", &replicates]) else { return };
    let Some(poor) = Server::start(&["--user", "app", "on", ">pw", "~*", "&*", "+@all", "-set"]) else { return };
    for url in [format!("redis://127.0.0.1:{}", replica.port()), format!("redis://app:pw@127.0.0.1:{}", poor.port())] {
        let (code, said) = doctor(&url);
        assert_eq!(code, Some(2), "{url}: {said}");
        assert!(said.contains("connect to the primary") && said.contains("ACL SETUSER"), "{url}: {said}");
        assert!(!said.contains("pw"), "{said}");
    }
}

#[test]
#[cfg(feature = "mysql")]
fn a_mysql_that_cannot_be_written_or_that_forgets_is_found() {
    use leasehold_mysql::testing::Server;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Some(server) = runtime.block_on(Server::start_or_skip(&[])) else { return };
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
