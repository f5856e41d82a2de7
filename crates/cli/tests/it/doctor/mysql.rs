use leasehold_testkit::mysql::Server;
use leasehold_testkit::{eventually_some, test};

use super::{doctor, five_are_told, is_cured};
use crate::support::{Place, wait_for};

/// The schemes, and the tables of each with the rights that taking a lock needs.
const STORES: [(&str, &[(&str, &str)]); 2] = [
    ("mysql", &[("leasehold_locks", "SELECT, INSERT, UPDATE")]),
    (
        "mysql-rw",
        &[("leasehold_rw", "SELECT, INSERT, UPDATE"), ("leasehold_rw_readers", "SELECT, INSERT, UPDATE, DELETE")],
    ),
];

/// A server with its tables, and a user `app` who has the rights that locks need.
fn start(arguments: &[&str]) -> Server {
    let server = wait_for(Server::needed(arguments));
    sql(&server, "CREATE USER app@'%' IDENTIFIED BY 'c4n4ry'");
    for (scheme, tables) in STORES {
        assert_eq!(Place::at(url(&server, scheme, "root", "")).code("migrate"), 0);
        for (table, rights) in tables {
            sql(&server, &format!("GRANT {rights} ON leasehold.{table} TO app@'%'"));
        }
    }
    server
}

fn url(server: &Server, scheme: &str, user: &str, password: &str) -> String {
    server.url_of(user, password).replacen("mysql:", &format!("{scheme}:"), 1)
}

/// Runs a statement, such as a cure as it stands there, in the database of the locks.
fn sql(server: &Server, statement: &str) {
    wait_for(server.sql(&["USE leasehold", statement]));
}

#[test]
fn settings_that_forget_or_refuse_and_each_missing_right_are_found_and_their_cures_end_them() {
    let server = start(&["--log-bin", "--sync-binlog=1"]);
    for (scheme, tables) in STORES {
        let (app, root) = (url(&server, scheme, "app", "c4n4ry"), url(&server, scheme, "root", ""));
        doctor(&app).is_well();
        for (bad, id) in [
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 0", "flush-log"),
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 2", "flush-log"),
            ("SET GLOBAL sync_binlog = 0", "binary-log"),
            ("SET GLOBAL read_only = 1", "read-only"),
        ] {
            sql(&server, bad);
            if id == "read-only" {
                doctor(&app).has("lock", "error");
            }
            is_cured(&root, id, "warning", |cure| sql(&server, cure));
        }
        doctor(&app).is_well();
        for (table, rights) in tables {
            for right in rights.split(", ") {
                sql(&server, &format!("REVOKE {right} ON leasehold.{table} FROM app@'%'"));
                let cure = format!("GRANT {right} ON `leasehold`.`{table}` TO 'app'@'%'");
                assert_eq!(doctor(&app).has("privilege", "error"), cure);
                is_cured(&app, "privilege", "error", |cure| sql(&server, cure));
            }
        }
        doctor(&app).is_well();
    }
}

#[test]
fn tables_and_rows_that_are_not_as_they_should_be_are_found_and_their_cures_end_them() {
    let server = start(&[]);
    let run = |cure: &str, scheme: &str| match cure.strip_prefix("leasehold ") {
        Some(command) => assert_eq!(Place::at(url(&server, scheme, "root", "")).code(command), 0, "{cure}"),
        None => sql(&server, cure),
    };
    for (scheme, tables) in STORES {
        let root = url(&server, scheme, "root", "");
        for (table, _) in tables {
            let name = "VARCHAR(320) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL";
            for bad in [
                format!("ALTER TABLE {table} MODIFY COLUMN name {name}"),
                format!("ALTER TABLE {table} MODIFY COLUMN acquired_at DATETIME NOT NULL"),
                format!("ALTER TABLE {table} DROP COLUMN label"),
                format!("ALTER TABLE {table} ENGINE=Aria"),
                format!("ALTER TABLE {table} DROP PRIMARY KEY"),
                format!("ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (epoch)"),
                format!("DROP TABLE {table}"),
            ] {
                sql(&server, &bad);
                is_cured(&root, "table", "error", |cure| run(cure, scheme));
            }
        }
        let (table, older) =
            (tables[0].0, if scheme == "mysql" { "leasehold mysql-unique 2" } else { "leasehold mysql-rw 2" });
        sql(&server, &format!("ALTER TABLE {table} COMMENT='{older}'"));
        let drop_it = "install the leasehold of that version, or drop the table while nobody uses it and migrate";
        assert_eq!(doctor(&root).has("table", "error"), drop_it);
        sql(&server, &format!("DROP TABLE {table}"));
        run("leasehold migrate", scheme);
        doctor(&root).is_well();

        let ends = if scheme == "mysql" { "expires_at" } else { "writer_expires_at" };
        assert_eq!(Place::at(&root).code("run k true"), 0);
        for bad in [
            format!("UPDATE {table} SET name = 'hello' LIMIT 1"),
            format!("UPDATE {table} SET name = CONCAT('a', X'00', 'it''s') LIMIT 1"),
        ] {
            // A row that doctor left, made anew each time.
            doctor(&root).is_well();
            sql(&server, &bad);
            sql(&server, &format!("UPDATE {table} SET {ends} = '2999-01-01' WHERE name NOT LIKE 'leasehold%'"));
            is_cured(&root, "foreign-row", "warning", |cure| sql(&server, cure));
        }
        (0..9).for_each(|number| assert_eq!(Place::at(&root).code(&format!("run k{number} true")), 0));
        let mut foreign = 0;
        five_are_told(&root, "foreign-row", |count| {
            let of_no_namespace = "SET name = REPLACE(name, X'00', '-') WHERE LOCATE(X'00', name) > 0";
            sql(&server, &format!("UPDATE {table} {of_no_namespace} LIMIT {}", count - foreign));
            foreign = count;
        });
        let said = doctor(&root);
        assert!(said.bad("foreign-row")[0]["text"].as_str().unwrap().contains("is of no namespace"), "{said:?}");
        sql(&server, &format!("DELETE FROM {table}"));
    }
}

#[test]
fn a_replica_that_no_lock_waits_for_is_found_and_the_cure_ends_that() {
    let primary = start(&["--log-bin", "--sync-binlog=1", "--server-id=1"]);
    let url = url(&primary, "mysql", "app", "c4n4ry");
    doctor(&url).is_well();
    sql(&primary, "CREATE USER copies@'%' IDENTIFIED BY 'c4n4ry'");
    sql(&primary, "GRANT REPLICATION SLAVE ON *.* TO copies@'%'");
    let replica = wait_for(Server::needed(&["--server-id=2"]));
    for statement in [
        "SET GLOBAL rpl_semi_sync_slave_enabled = 1".to_owned(),
        format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'copies', \
             MASTER_PASSWORD = 'c4n4ry'",
            primary.port()
        ),
        "START SLAVE".to_owned(),
    ] {
        sql(&replica, &statement);
    }
    eventually_some("the replica is there", || (!doctor(&url).bad("replicas").is_empty()).then_some(()));
    is_cured(&url, "replicas", "warning", |cure| sql(&primary, cure));
    doctor(&url).is_well();
}

#[test]
fn a_node_of_galera_cannot_tell_who_writes_to_the_others() {
    // Without a provider the server is a cluster of its own, and says so in the same variable.
    let server = start(&["--wsrep-on=ON", "--binlog-format=ROW"]);
    let said = doctor(&url(&server, "mysql", "app", "c4n4ry"));
    said.has("galera", "unknown");
    assert_eq!(said.code, 0, "{said:?}");
}
