use leasehold::postgres::tokio_postgres::{NoTls, connect};
use leasehold_testkit::postgres::Server;
use leasehold_testkit::{Authority, eventually_some, needs, test};

use super::{doctor, five_are_told, is_cured, is_trusted_as_by_the_system};
use crate::support::{Place, ended, wait_for};

/// A server with its schema, and a user `app` who has the rights that locks need.
fn start() -> Server {
    let server = wait_for(Server::needed(&["fsync=on"]));
    let place = Place::at(server.url());
    place.run("run -n k true").is(78, &["leasehold migrate"]);
    place.run("migrate").is(0, &[]).prints("the tables of postgres exist\n");
    run(
        &server,
        "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA leasehold TO app; \
         GRANT SELECT, INSERT, UPDATE ON leasehold.locks TO app; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.readers TO app; GRANT SELECT ON leasehold.holders TO app",
    );
    server
}

fn as_app(server: &Server) -> String {
    server.url_of("app", "c4n4ry")
}

/// Runs a statement past everything that the program does.
fn sql(server: &Server, statement: &str) {
    wait_for(async {
        let (client, connection) = connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statement).await.unwrap();
    });
}

/// Runs statements one by one, such as a cure as it stands there.
fn run(server: &Server, statements: &str) {
    statements.split("; ").for_each(|statement| sql(server, statement));
}

/// What a setting was changed to reaches sessions a little later.
fn is_cured_soon(server: &Server, id: &str, health: &str) {
    let is_bad = || !doctor(&server.url()).bad(id).is_empty();
    eventually_some("the setting has reached sessions", || is_bad().then_some(()));
    run(server, doctor(&server.url()).has(id, health));
    eventually_some(&format!("{id} is cured"), || (!is_bad()).then_some(()));
}

#[test]
fn settings_that_forget_or_refuse_and_each_missing_right_are_found_and_their_cures_end_them() {
    let server = start();
    let app = as_app(&server);
    doctor(&server.url()).is_well();
    doctor(&app).is_well();
    for (bad, id, health) in [
        ("synchronous_commit = off", "synchronous-commit", "warning"),
        ("full_page_writes = off", "full-page-writes", "warning"),
        ("default_transaction_read_only = on", "read-only", "error"),
    ] {
        run(&server, &format!("ALTER SYSTEM SET {bad}; SELECT pg_reload_conf()"));
        is_cured_soon(&server, id, health);
        for (place, of) in [("DATABASE leasehold", ""), ("ROLE app", ""), ("ROLE app", " IN DATABASE leasehold")] {
            // This one is of the server as a whole.
            if id != "full-page-writes" {
                run(&server, &format!("ALTER {place}{of} SET {bad}"));
                is_cured(&app, id, health, |cure| {
                    assert!(cure.contains(&format!("ALTER {place}{of} RESET ")), "{cure}");
                    sql(&server, cure);
                });
            }
        }
    }
    for (rights, of) in [
        ("USAGE", "SCHEMA \"leasehold\""),
        ("SELECT, INSERT, UPDATE", "\"leasehold\".locks"),
        ("SELECT, INSERT, UPDATE, DELETE", "\"leasehold\".readers"),
        ("SELECT", "\"leasehold\".holders"),
    ] {
        for right in rights.split(", ") {
            run(&server, &format!("REVOKE {right} ON {of} FROM app"));
            assert_eq!(doctor(&app).has("privilege", "error"), format!("GRANT {right} ON {of} TO app"));
            is_cured(&app, "privilege", "error", |cure| run(&server, cure));
        }
    }
    doctor(&server.url()).is_well();
    doctor(&app).is_well();
    // What the command line of a server says wins over its configuration.
    let forgetful = wait_for(Server::needed(&["fsync=off"]));
    let cure = "take fsync off the command line of the server";
    assert_eq!(doctor(&forgetful.url()).has("fsync", "warning"), cure);
    let said = doctor(&format!("{app}&options=-csynchronous_commit%3Doff"));
    let cure = "take synchronous_commit out of the options in the URL";
    assert_eq!(said.has("synchronous-commit", "warning"), cure);
}

#[test]
fn a_schema_and_rows_that_are_not_as_they_should_be_are_found_and_their_cures_end_them() {
    let server = start();
    let url = server.url();
    let place = Place::at(&url);
    assert_eq!(place.code("migrate"), 0, "once more does no harm");
    assert!(place.is_free("k"));
    place.run("gc").is(0, &[]).prints("0 idle rows deleted\n");
    let cure = |cure: &str| {
        assert!(!cure.contains("PRIMARY KEY") || cure.ends_with("(name, owner)"), "{cure}");
        match cure.strip_prefix("leasehold ") {
            Some(command) => assert_eq!(place.code(command), 0, "{cure}"),
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
    five_are_told(&url, "foreign-row", |count| {
        let foreign = format!("SELECT ('foreign' || n)::bytea, 1 FROM generate_series(1, {count}) AS n");
        run(&server, &format!("INSERT INTO leasehold.locks (name, epoch) {foreign} ON CONFLICT DO NOTHING"));
    });
    let version = "RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 99'";
    run(&server, &format!("CREATE OR REPLACE FUNCTION leasehold.version() {version}"));
    doctor(&url).has("schema", "error");
}

#[test]
fn a_standby_is_an_error_and_a_pooler_through_which_no_notification_comes_a_warning() {
    let server = start();
    let url = server.url();
    let standby = wait_for(server.standby()).unwrap();
    doctor(&standby.url()).has("standby", "error");
    doctor(&as_app(&server)).has("replicas", "warning");
    is_cured_soon(&server, "replicas", "warning");
    run(&server, "ALTER SYSTEM SET synchronous_commit = local; SELECT pg_reload_conf()");
    is_cured_soon(&server, "replicas", "warning");
    doctor(&url).is_well();
    run(&server, "ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()");
    drop(standby);
    eventually_some("no standby is left", || doctor(&url).bad("replicas").is_empty().then_some(()));
    let pooler = wait_for(server.pooler());
    let said = doctor(&pooler.url());
    assert!(said.has("notifications", "warning").contains("listen=HOST:PORT"), "{said:?}");
    assert_eq!(said.code, 1, "{said:?}");
    doctor(&format!("{}?listen=127.0.0.1:{}", pooler.url(), server.port())).is_well();
    doctor(&format!("{}?listen=false", pooler.url())).is_well();
}

#[test]
fn a_url_without_authorities_trusts_those_of_the_system() {
    let authority = needs("openssl", Authority::new());
    let issued = authority.issue("server", "IP:127.0.0.1");
    let server = wait_for(Server::with_tls(authority.files(&issued)));
    let url = server.url_of("leasehold", "c4n4ry").replace("sslmode=disable", "sslmode=require");
    ended(Place::at(&url).leasehold("migrate").env("SSL_CERT_FILE", authority.cert())).is(0, &[]);
    is_trusted_as_by_the_system(&url, authority.cert());
}
