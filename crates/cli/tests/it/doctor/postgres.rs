use leasehold_testkit::postgres::Server;
#[cfg(feature = "tls-rustls")]
use leasehold_testkit::{Authority, needs};
use leasehold_testkit::{eventually_some, test};

use super::{doctor, is_cured, wait_for};
use crate::postgres::sql;
use crate::support::Place;

/// A server with its schema, and a user `app` who has the rights that locks need.
fn start() -> Server {
    let server = wait_for(Server::needed(&["fsync=on"]));
    assert_eq!(Place::at(server.url()).code(&["migrate"]), 0);
    run(
        &server,
        "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA leasehold TO app; \
         GRANT SELECT, INSERT, UPDATE ON leasehold.locks TO app; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.readers TO app; GRANT SELECT ON leasehold.holders TO app",
    );
    server
}

/// Runs statements one by one, such as a cure as it stands there.
fn run(server: &Server, statements: &str) {
    for statement in statements.split("; ") {
        sql(server, statement);
    }
}

/// What a setting was changed to reaches sessions a little later.
fn is_cured_soon(server: &Server, id: &str, health: &str) {
    let url = server.url();
    eventually_some("the setting has reached sessions", || (!doctor(&url, &[]).bad(id).is_empty()).then_some(()));
    let said = doctor(&url, &[]);
    assert_eq!(said.finding(id).0, health, "{said:?}");
    run(server, said.finding(id).1);
    eventually_some(&format!("{id} is cured"), || doctor(&url, &[]).bad(id).is_empty().then_some(()));
}

#[test]
fn settings_that_forget_or_refuse_are_found_and_their_cures_end_them() {
    let server = start();
    doctor(&server.url(), &[]).is_well();
    doctor(&server.url_of("app", "a-secret"), &[]).is_well();
    for (bad, id, health) in [
        ("synchronous_commit = off", "synchronous-commit", "warning"),
        ("full_page_writes = off", "full-page-writes", "warning"),
        ("default_transaction_read_only = on", "read-only", "error"),
    ] {
        run(&server, &format!("ALTER SYSTEM SET {bad}; SELECT pg_reload_conf()"));
        is_cured_soon(&server, id, health);
    }
    doctor(&server.url(), &[]).is_well();
    for (place, of) in [("DATABASE leasehold", ""), ("ROLE app", ""), ("ROLE app", " IN DATABASE leasehold")] {
        for (bad, id, health) in [
            ("synchronous_commit = off", "synchronous-commit", "warning"),
            ("default_transaction_read_only = on", "read-only", "error"),
        ] {
            run(&server, &format!("ALTER {place}{of} SET {bad}"));
            is_cured(&server.url_of("app", "a-secret"), id, health, |cure| {
                assert!(cure.contains(&format!("ALTER {place}{of} RESET ")), "{cure}");
                sql(&server, cure);
            });
        }
    }
    // What the command line of a server says wins over its configuration.
    let forgetful = wait_for(Server::needed(&["fsync=off"]));
    let said = doctor(&forgetful.url(), &[]);
    assert_eq!(said.finding("fsync"), ("warning", "take fsync off the command line of the server"), "{said:?}");
    let said = doctor(&format!("{}&options=-csynchronous_commit%3Doff", server.url_of("app", "a-secret")), &[]);
    assert_eq!(
        said.finding("synchronous-commit").1,
        "take synchronous_commit out of the options in the URL",
        "{said:?}"
    );
}

#[test]
fn each_missing_right_is_named_and_the_grant_that_gives_it_is_enough() {
    let server = start();
    let app = server.url_of("app", "a-secret");
    for right in [
        "USAGE ON SCHEMA \"leasehold\"",
        "SELECT ON \"leasehold\".locks",
        "INSERT ON \"leasehold\".locks",
        "UPDATE ON \"leasehold\".locks",
        "SELECT ON \"leasehold\".readers",
        "INSERT ON \"leasehold\".readers",
        "UPDATE ON \"leasehold\".readers",
        "DELETE ON \"leasehold\".readers",
        "SELECT ON \"leasehold\".holders",
    ] {
        run(&server, &format!("REVOKE {right} FROM app"));
        let said = doctor(&app, &[]);
        assert_eq!(said.finding("privilege").1, format!("GRANT {right} TO app"), "{said:?}");
        is_cured(&app, "privilege", "error", |cure| run(&server, cure));
    }
    doctor(&app, &[]).is_well();
}

#[test]
fn a_schema_and_rows_that_are_not_as_they_should_be_are_found_and_their_cures_end_them() {
    let server = start();
    let url = server.url();
    let cure = |cure: &str| {
        assert!(!cure.contains("PRIMARY KEY") || cure.ends_with("(name, owner)"), "{cure}");
        match cure.strip_prefix("leasehold ") {
            Some(command) => assert_eq!(Place::at(&url).code(&[command]), 0, "{cure}"),
            None => run(&server, cure),
        }
    };
    for (bad, id, health) in [
        ("DROP FUNCTION leasehold.version()", "schema", "error"),
        ("DROP VIEW leasehold.holders CASCADE", "schema", "error"),
        ("DROP SCHEMA leasehold CASCADE", "schema", "error"),
        ("ALTER TABLE leasehold.locks SET UNLOGGED", "table", "warning"),
        ("ALTER TABLE leasehold.readers DROP CONSTRAINT readers_pkey", "table", "error"),
        ("INSERT INTO leasehold.locks (name, epoch) VALUES ('hello', 1)", "foreign-row", "warning"),
        (
            "INSERT INTO leasehold.locks (name, epoch, expires_at) VALUES ('\\x6e006b', 1, now() + interval '9 days')",
            "foreign-row",
            "warning",
        ),
    ] {
        run(&server, bad);
        is_cured(&url, id, health, cure);
    }
    let with_foreign_rows = |count: u32| {
        let foreign = format!("SELECT ('foreign' || n)::bytea, 1 FROM generate_series(1, {count}) AS n");
        run(&server, &format!("INSERT INTO leasehold.locks (name, epoch) {foreign} ON CONFLICT DO NOTHING"));
        doctor(&url, &[]).bad("foreign-row").len()
    };
    assert_eq!([5, 6, 7].map(with_foreign_rows), [5, 6, 6], "five are told, and that there are more");
    run(
        &server,
        "CREATE OR REPLACE FUNCTION leasehold.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 99'",
    );
    let said = doctor(&url, &[]);
    assert_eq!((said.code, said.finding("schema").0), (2, "error"), "{said:?}");
}

#[test]
fn a_standby_is_an_error_and_a_pooler_through_which_no_notification_comes_a_warning() {
    let server = start();
    let standby = wait_for(server.standby()).unwrap();
    let said = doctor(&standby.url(), &[]);
    assert_eq!((said.code, said.finding("standby").0), (2, "error"), "{said:?}");
    assert_eq!(doctor(&server.url_of("app", "a-secret"), &[]).finding("replicas").0, "warning");
    is_cured_soon(&server, "replicas", "warning");
    run(&server, "ALTER SYSTEM SET synchronous_commit = local; SELECT pg_reload_conf()");
    is_cured_soon(&server, "replicas", "warning");
    doctor(&server.url(), &[]).is_well();
    run(&server, "ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()");
    drop(standby);
    eventually_some("no standby is left", || doctor(&server.url(), &[]).bad("replicas").is_empty().then_some(()));
    let pooler = wait_for(server.pooler());
    let said = doctor(&pooler.url(), &[]);
    assert_eq!((said.code, said.finding("notifications").0), (1, "warning"), "{said:?}");
    assert!(said.finding("notifications").1.contains("listen=HOST:PORT"), "{said:?}");
    doctor(&format!("{}?listen=127.0.0.1:{}", pooler.url(), server.port()), &[]).is_well();
    doctor(&format!("{}?listen=false", pooler.url()), &[]).is_well();
}

#[cfg(feature = "tls-rustls")]
#[test]
fn a_url_without_authorities_trusts_those_of_the_system() {
    let authority = needs("openssl", Authority::new());
    let issued = authority.issue("server", "IP:127.0.0.1");
    let server = wait_for(Server::with_tls(authority.files(&issued)));
    let url = server.url_of("leasehold", "a-secret").replace("sslmode=disable", "sslmode=require");
    let mut migrates = Place::at(&url).leasehold(&["migrate"]);
    assert!(migrates.env("SSL_CERT_FILE", authority.cert()).status().unwrap().success());
    super::is_trusted_as_by_the_system(&url, authority.cert());
}
